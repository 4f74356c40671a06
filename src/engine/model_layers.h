/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that several built-in models share: parameters with usual names and start
 * values, and the operations on them.
 */
#ifndef TRANCHE_ENGINE_MODEL_LAYERS_H
#define TRANCHE_ENGINE_MODEL_LAYERS_H

#include <stdbool.h>

#include "engine/network.h"

struct conv_size {
    int64_t channels, filter;
    int stride;
    bool damped; /* start at a tenth of the usual deviation: the last of a residual branch */
};
/* Convolution with bias, parameters wN and bN (N: `*counter`, which moves on); He's start
 * deviation √(2 / (in channels × filter²)). */
int layer_conv(struct network *network, int x, struct conv_size size, int *counter);

/* x [.., I] to [.., features], parameters NAME_w [I, features] (deviation √(1 / I)) and
 * NAME_b. */
int layer_linear(struct network *network, int x, int64_t features, const char *name);

/* Layer norm over the last size, parameters NAME_g and NAME_b. */
int layer_norm(struct network *network, int x, const char *name);

/* Multi-head self-attention over x [N, L, H], without mask: linear layers NAME_q, _k, _v,
 * _o of H features. */
int layer_attention(struct network *network, int x, int64_t heads, const char *name);

#endif
