/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared layers. See model_layers.h.
 */
#include "engine/model_layers.h"

#include <assert.h>
#include <math.h>

/* A name with a part after it. */
static struct onnx_name part(const char *name, const char *suffix)
{
    return onnx_name("%s_%s", name, suffix);
}

int layer_conv(struct network *network, int x, struct conv_size size, int *counter)
{
    int64_t in = network_shape(network, x)->size[1], area = size.filter * size.filter;
    int index = (*counter)++;
    float deviation = sqrtf(2.0f / (float)(in * area)) * (size.damped ? 0.1f : 1.0f);
    int w = network_parameter(network, onnx_name("w%d", index).text,
                              NETWORK_SHAPE(size.channels, in, size.filter, size.filter),
                              (struct network_start){.deviation = deviation});
    int b = network_parameter(network, onnx_name("b%d", index).text,
                              NETWORK_SHAPE(size.channels), (struct network_start){0});
    assert(size.channels >= 1 && size.filter % 2 == 1 && size.stride >= 1);
    return network_conv(network, x, w, b, size.stride);
}

int layer_linear(struct network *network, int x, int64_t features, const char *name)
{
    const struct tensor_shape *shape = network_shape(network, x);
    int64_t in = shape->size[shape->rank - 1];
    int w = network_parameter(network, part(name, "w").text, NETWORK_SHAPE(in, features),
                              (struct network_start){.deviation = sqrtf(1.0f / (float)in)});
    int b = network_parameter(network, part(name, "b").text, NETWORK_SHAPE(features),
                              (struct network_start){0});
    assert(features >= 1);
    return network_add_bias(network, network_matmul(network, x, w), b);
}

int layer_norm(struct network *network, int x, const char *name)
{
    const struct tensor_shape *shape = network_shape(network, x);
    int64_t width = shape->size[shape->rank - 1];
    int gain = network_parameter(network, part(name, "g").text, NETWORK_SHAPE(width),
                                 (struct network_start){.constant = 1});
    int bias = network_parameter(network, part(name, "b").text, NETWORK_SHAPE(width),
                                 (struct network_start){0});
    return network_layer_norm(network, x, gain, bias);
}

/* [N, L, H] to [N, heads, L, H / heads]. */
static int split_heads(struct network *network, int x, int64_t heads)
{
    struct tensor_shape shape = *network_shape(network, x);
    int split = network_reshape(
        network, x, NETWORK_SHAPE(shape.size[0], shape.size[1], heads, shape.size[2] / heads));
    assert(heads >= 1);
    return network_transpose(network, split, (const int64_t[]){0, 2, 1, 3});
}

int layer_attention(struct network *network, int x, int64_t heads, const char *name)
{
    struct tensor_shape shape = *network_shape(network, x);
    int64_t width = shape.size[2], head = width / heads;
    assert(shape.rank == 3 && width % heads == 0);
    int q = layer_linear(network, x, width, part(name, "q").text);
    int k = layer_linear(network, x, width, part(name, "k").text);
    int v = layer_linear(network, x, width, part(name, "v").text);
    int keys = network_transpose(network, split_heads(network, k, heads),
                                 (const int64_t[]){0, 1, 3, 2});
    int scores = network_matmul(network, split_heads(network, q, heads), keys);
    int weights =
        network_softmax(network, network_scale(network, scores, 1 / sqrtf((float)head)));
    int mixed = network_matmul(network, weights, split_heads(network, v, heads));
    int joined = network_reshape(
        network, network_transpose(network, mixed, (const int64_t[]){0, 2, 1, 3}), shape);
    return layer_linear(network, joined, width, part(name, "o").text);
}
