/* SPDX-License-Identifier: Apache-2.0
 *
 * cnn: three 3x3 convolutions (32, 64, 128 channels, the last two of stride 2) with ReLU,
 * mean over the picture, one linear layer: small, and the reference of training.
 */
#include "engine/model_catalog.h"
#include "engine/model_layers.h"

enum { SIZE, CLASSES };

static int build(struct network *network, const int64_t *sizes, int64_t batch)
{
    static const struct conv_size layers[] = {{32, 3, 1}, {64, 3, 2}, {128, 3, 2}};
    int counter = 0;
    int x = network_input(network, "x", TENSOR_F32,
                          NETWORK_SHAPE(batch, 3, sizes[SIZE], sizes[SIZE]));
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        x = network_relu(network, layer_conv(network, x, layers[i], &counter));
    return layer_linear(network, network_mean_picture(network, x), sizes[CLASSES], "f");
}

const struct model_kind model_cnn = {
    .name = "cnn",
    .summary = "three convolutions and a linear layer",
    .sizes = {{"size", 32, 8, 1024}, {"classes", 10, 2, 100000}},
    .can_train = true,
    .learning_rate = 0.05f,
    .build = build,
};
