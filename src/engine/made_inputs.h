/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs made up from a model's own description, so that any model can be measured
 * without its data. The same seed gives the same bytes.
 *
 * Sizes left open by the model: a first size is the batch; of pictures ([N, C ≤ 4, H, W])
 * height and width are 224; any other is 32. A few well-known models, told by the names of
 * their inputs and outputs, have sizes of their own (PP-OCR, Silero VAD), and a shape text
 * overrides all.
 * Values: floats uniform in [−1, 1); integers by name: `sr`/`sample_rate` is 16000, masks
 * are 1, token types 0, lengths 32, anything else uniform in 0 … 99; booleans true.
 */
#ifndef TRANCHE_ENGINE_MADE_INPUTS_H
#define TRANCHE_ENGINE_MADE_INPUTS_H

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/session.h"

struct made_inputs {
    size_t count;
    struct tensor *tensors; /* one for each input of the session, in its order */
};

/* shapes: NULL, or "input=Nx3x320x320,mask=Nx32" with N for the batch; E_INPUT when it
 * names an unknown input or another rank, or contradicts a size the model fixes.
 * E_UNSUPPORTED when the model fixes the batch to another number, or has an input that is
 * no tensor of numbers or takes over 4 GiB. */
int made_inputs_new(const struct session *session, int batch, const char *shapes, uint64_t seed,
                    struct made_inputs **ret_inputs, struct error *err);
/* Frees the inputs; NULL is fine. */
void made_inputs_free(struct made_inputs *inputs);
CLEANUP_DEFINE_FREE(made_inputs)

#endif
