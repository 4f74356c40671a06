/* SPDX-License-Identifier: Apache-2.0
 *
 * resnet: the shape of ResNet-18/34/50/101/152 (He et al., 2015): the same convolutions,
 * strides and residual additions, with batch norm folded into the convolutions, as
 * inference runtimes do. When it trains, there is no batch norm, and the stem is one
 * convolution of stride 4 in place of stride 2 and max pooling. Residual branches start small,
 * so that values stay finite at any depth without batch norm.
 */
#include <assert.h>

#include "engine/model_catalog.h"
#include "engine/model_layers.h"
#include "engine/network_internal.h"

enum { DEPTH, SIZE, CLASSES };
enum { STAGES = 4, STEM_CHANNELS = 64, STEM_FILTER = 7, BOTTLENECK_GROWTH = 4 };

static const struct depth {
    int64_t depth;
    int blocks[STAGES];
    bool bottleneck;
} depths[] = {
    {18, {2, 2, 2, 2}, false},  {34, {3, 4, 6, 3}, false},  {50, {3, 4, 6, 3}, true},
    {101, {3, 4, 23, 3}, true}, {152, {3, 8, 36, 3}, true},
};

/* The nearest depth that exists, from below. */
static const struct depth *find_depth(int64_t depth)
{
    const struct depth *best = &depths[0];
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        if (depths[i].depth <= depth)
            best = &depths[i];
    return best;
}

static int block(struct network *network, int x, struct conv_size size, bool bottleneck,
                 int *counter)
{
    int64_t out = bottleneck ? size.channels * BOTTLENECK_GROWTH : size.channels;
    int shortcut = x, y;
    if (size.stride != 1 || network_shape(network, x)->size[1] != out)
        shortcut = layer_conv(network, x, (struct conv_size){out, 1, size.stride}, counter);
    if (bottleneck) {
        y = network_relu(
            network, layer_conv(network, x, (struct conv_size){size.channels, 1, 1}, counter));
        y = network_relu(network, layer_conv(network, y, size, counter));
        y = layer_conv(network, y, (struct conv_size){out, 1, 1, .damped = true}, counter);
    } else {
        y = network_relu(network, layer_conv(network, x, size, counter));
        y = layer_conv(network, y, (struct conv_size){out, 3, 1, .damped = true}, counter);
    }
    return network_relu(network, network_add(network, y, shortcut));
}

static int build(struct network *network, const int64_t *sizes, int64_t batch)
{
    const struct depth *depth = find_depth(sizes[DEPTH]);
    bool training = network->purpose == NETWORK_TRAINING;
    int counter = 0;
    int x = network_input(network, "x", TENSOR_F32,
                          NETWORK_SHAPE(batch, 3, sizes[SIZE], sizes[SIZE]));
    x = layer_conv(network, x, (struct conv_size){STEM_CHANNELS, STEM_FILTER, training ? 4 : 2},
                   &counter);
    x = network_relu(network, x);
    if (!training)
        x = network_max_pool(network, x);
    for (int stage = 0; stage < STAGES; stage++)
        for (int i = 0; i < depth->blocks[stage]; i++)
            x = block(network, x,
                      (struct conv_size){(int64_t)STEM_CHANNELS << stage, 3,
                                         stage > 0 && i == 0 ? 2 : 1},
                      depth->bottleneck, &counter);
    return layer_linear(network, network_mean_picture(network, x), sizes[CLASSES], "f");
}

const struct model_kind model_resnet = {
    .name = "resnet",
    .summary = "the shape of ResNet; depth 18, 34, 50, 101 or 152",
    .sizes = {{"depth", 18, 18, 152}, {"size", 224, 32, 1024}, {"classes", 1000, 2, 100000}},
    .can_train = true,
    .learning_rate = 0.01f,
    .build = build,
};
