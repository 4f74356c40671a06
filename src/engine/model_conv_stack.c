/* SPDX-License-Identifier: Apache-2.0
 *
 * conv-stack: 3x3 convolutions with ReLU, all of one width: pure compute, for speed.
 */
#include "engine/model_catalog.h"
#include "engine/model_layers.h"

enum { CHANNELS, LAYERS, SIZE };

static int build(struct network *network, const int64_t *sizes, int64_t batch)
{
    int counter = 0;
    int x = network_input(network, "x", TENSOR_F32,
                          NETWORK_SHAPE(batch, sizes[CHANNELS], sizes[SIZE], sizes[SIZE]));
    for (int64_t i = 0; i < sizes[LAYERS]; i++)
        x = network_relu(
            network,
            layer_conv(network, x, (struct conv_size){sizes[CHANNELS], 3, 1}, &counter));
    return x;
}

const struct model_kind model_conv_stack = {
    .name = "conv-stack",
    .summary = "3x3 convolutions of one width",
    .sizes = {{"channels", 64, 1, 1024}, {"layers", 8, 1, 200}, {"size", 56, 1, 1024}},
    .build = build,
};
