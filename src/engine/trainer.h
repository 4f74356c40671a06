/* SPDX-License-Identifier: Apache-2.0
 *
 * Training with the plain inference runtime: the graph is one step (network.h), and its
 * new parameters are fed back as the inputs of the next. Data are made up, always the
 * same batch, from the reference generator: losses fall, and the first ones equal those of
 * another framework given the same values to about 1e-6 (docs/spec/training.md).
 */
#ifndef TRANCHE_ENGINE_TRAINER_H
#define TRANCHE_ENGINE_TRAINER_H

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/model_catalog.h"
#include "engine/session.h"

struct trainer;

/* E_UNSUPPORTED for a model that cannot train; else as session_open_bytes(). SGD with
 * momentum 0.9 and the model's own learning rate. */
int trainer_new(struct onnx_runtime *runtime, const struct model_choice *choice, int batch,
                const struct session_options *options, struct trainer **ret_trainer,
                struct error *err);
void trainer_free(struct trainer *trainer); /* NULL is fine */
CLEANUP_DEFINE_FREE(trainer)

/* One step; the loss is that before the update. Errors as session_call_run(). */
int trainer_step(struct trainer *trainer, float *ret_loss, struct error *err);
/* Appends all that the next step depends on (parameters and momenta), in this machine's byte
 * order; steps: how many were done, kept with it. */
int trainer_save(struct trainer *trainer, int64_t steps, struct str *bytes, struct error *err);
/* Goes on from what was saved; before the first step only. E_INPUT when it is of another
 * model, or damaged: nothing is changed then. */
int trainer_restore(struct trainer *trainer, const struct str *bytes, int64_t *ret_steps,
                    struct error *err);
size_t trainer_parameter_count(const struct trainer *trainer); /* numbers, not tensors */

#endif
