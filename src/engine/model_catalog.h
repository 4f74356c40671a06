/* SPDX-License-Identifier: Apache-2.0
 *
 * Built-in models, written as ONNX from C, so that nothing need be downloaded. Weights
 * are random: they hardly change speed. A model is named by text,
 *
 *     NAME[:SIZE=NUMBER,…]        resnet:depth=50,size=224        bert:layers=12,hidden=768
 *
 * The same description serves inference and, where the model ends in classes, training.
 */
#ifndef TRANCHE_ENGINE_MODEL_CATALOG_H
#define TRANCHE_ENGINE_MODEL_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/network.h"

enum { MODEL_SIZES_MAX = 6 };

struct model_size {
    const char *key; /* NULL ends the list */
    int64_t standard, minimum, maximum;
};

struct model_kind {
    const char *name;
    const char *summary;
    struct model_size sizes[MODEL_SIZES_MAX];
    bool can_train;
    float learning_rate; /* when it trains */
    /* Adds the network for this batch; sizes in the order of the list. Returns the output:
     * for a kind that can train, logits [rows, classes]. */
    int (*build)(struct network *network, const int64_t *sizes, int64_t batch);
};

struct model_choice {
    const struct model_kind *kind;
    int64_t sizes[MODEL_SIZES_MAX];
};

/* Whether the text names a built-in (the part before ':' does), not a file. */
bool model_is_builtin(const char *text);
/* E_INPUT for an unknown name (nearest named), size or value. */
int model_choose(const char *text, struct model_choice *ret_choice, struct error *err);
/* Appends the bytes of the inference model for this batch. */
void model_write(const struct model_choice *choice, int batch, struct str *ret_model);

/* The kinds (model_*.c). */
extern const struct model_kind model_conv_stack, model_resnet, model_bert, model_cnn,
    model_transformer;

#endif
