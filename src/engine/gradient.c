/* SPDX-License-Identifier: Apache-2.0
 *
 * The backward pass of a network as ONNX operators of opset 13: reverse-mode
 * differentiation over the remembered operations, one rule a kind of operation, then the
 * update. With dz the gradient of an operation's output:
 *
 *   cross-entropy  dlogits = (softmax(logits) − onehot) / rows
 *   matmul         da = dz bᵀ, db = aᵀ dz
 *   conv           db = sum(dz); dx = transposed convolution of dz with w; dw = convolution
 *                  of x with dz, batch and channel axes exchanged, the stride as a
 *                  dilation, cut to the filter's size (faster than sliced products)
 *   layer norm     with n the normalised values and d = dz gain:
 *                  dx = (d − mean(d) − n mean(d n)) / deviation
 *   softmax        dx = y (dz − sum(dz y))
 *   embedding      dtable = onehot(ids)ᵀ dz (adding scatter comes after opset 13)
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "engine/network_internal.h"

struct backward {
    struct network *network;
    struct onnx_name *gradients; /* by value; empty text: none yet */
};

/* Adds to the gradient of a value, if it needs one. */
static void give(struct backward *b, int value, struct onnx_name gradient)
{
    struct onnx_name *slot = &b->gradients[value];
    assert(gradient.text[0]);
    if (!b->network->values.data[value].needs_gradient)
        return;
    *slot = slot->text[0] ? network_op2(b->network, "Add", *slot, gradient) : gradient;
}

static bool wanted(const struct backward *b, int value)
{
    return b->network->values.data[value].needs_gradient;
}

/* Sum over all axes but the last. */
static struct onnx_name sum_leading(struct backward *b, struct onnx_name a, int rank)
{
    static const int64_t axes[TENSOR_RANK_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    assert(rank >= 1);
    return rank > 1 ? network_sum(b->network, a, axes, rank - 1, false) : a;
}

/* Exchanges two axes. */
static struct onnx_name swap(struct backward *b, struct onnx_name a, int rank, int first)
{
    int64_t order[TENSOR_RANK_MAX];
    assert(first >= 0 && first + 1 < rank);
    for (int i = 0; i < rank; i++)
        order[i] = i;
    order[first] = first + 1;
    order[first + 1] = first;
    return network_permute(b->network, a, order, rank);
}

/* As a matrix: all leading axes become rows. */
static struct onnx_name as_rows(struct backward *b, struct onnx_name a,
                                const struct tensor_shape *shape)
{
    int64_t width = shape->size[shape->rank - 1];
    assert(shape->rank >= 2);
    if (shape->rank == 2)
        return a;
    return network_reshape_to(
        b->network, a, &NETWORK_SHAPE((int64_t)tensor_shape_count(shape) / width, width));
}

static struct onnx_name conv_weight_gradient(struct backward *b, const struct operation *op,
                                             struct onnx_name dz)
{
    struct network *n = b->network;
    const struct tensor_shape *out = network_shape(n, op->output);
    int64_t size = network_shape(n, op->inputs[1])->size[2], pad = size / 2;
    struct onnx_name x = swap(b, network_name(n, op->inputs[0]), 4, 0);
    struct onnx_name dw = onnx_operator(
        &n->graph, "Conv", ONNX_INPUTS(x, swap(b, dz, 4, 0)),
        ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INTS("kernel_shape", out->size[2], out->size[3]),
                        ONNX_ATTRIBUTE_INTS("pads", pad, pad, pad, pad),
                        ONNX_ATTRIBUTE_INTS("dilations", op->stride, op->stride)));
    dw = onnx_operator(&n->graph, "Slice",
                       ONNX_INPUTS(dw, ONNX_CONSTANT_INTS(&n->graph, 0, 0),
                                   ONNX_CONSTANT_INTS(&n->graph, size, size),
                                   ONNX_CONSTANT_INTS(&n->graph, 2, 3)),
                       ONNX_NO_ATTRIBUTES);
    return swap(b, dw, 4, 0);
}

static void back_conv(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    struct network *n = b->network;
    const struct tensor_shape *in = network_shape(n, op->inputs[0]);
    const struct tensor_shape *out = network_shape(n, op->output);
    int64_t size = network_shape(n, op->inputs[1])->size[2], pad = size / 2;
    assert(op->stride >= 1);
    give(b, op->inputs[2], network_sum(n, dz, (const int64_t[]){0, 2, 3}, 3, false));
    give(b, op->inputs[1], conv_weight_gradient(b, op, dz));
    if (!wanted(b, op->inputs[0]))
        return;
    /* What the stride left over at the far edge. */
    int64_t rest_h = in->size[2] - ((out->size[2] - 1) * op->stride - 2 * pad + size);
    int64_t rest_w = in->size[3] - ((out->size[3] - 1) * op->stride - 2 * pad + size);
    give(b, op->inputs[0],
         onnx_operator(&n->graph, "ConvTranspose",
                       ONNX_INPUTS(dz, network_name(n, op->inputs[1])),
                       ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INTS("kernel_shape", size, size),
                                       ONNX_ATTRIBUTE_INTS("pads", pad, pad, pad, pad),
                                       ONNX_ATTRIBUTE_INTS("strides", op->stride, op->stride),
                                       ONNX_ATTRIBUTE_INTS("output_padding", rest_h, rest_w))));
}

static void back_mean_picture(struct backward *b, const struct operation *op,
                              struct onnx_name dz)
{
    struct network *n = b->network;
    const struct tensor_shape *in = network_shape(n, op->inputs[0]);
    struct onnx_name share = network_op2(
        n, "Div", dz, onnx_constant_float(&n->graph, (float)(in->size[2] * in->size[3])));
    struct onnx_name spread =
        network_reshape_to(n, share, &NETWORK_SHAPE(in->size[0], in->size[1], 1, 1));
    give(b, op->inputs[0],
         network_op2(n, "Expand", spread, onnx_constant_ints(&n->graph, in->size, in->rank)));
}

static void back_relu(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    struct network *n = b->network;
    struct onnx_name positive = network_op2(n, "Greater", network_name(n, op->output),
                                            onnx_constant_float(&n->graph, 0));
    struct onnx_name mask =
        onnx_operator(&n->graph, "Cast", ONNX_INPUTS(positive),
                      ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INT("to", TENSOR_F32)));
    give(b, op->inputs[0], network_op2(n, "Mul", dz, mask));
}

/* Φ(x) + x φ(x), with φ the normal density. */
static void back_gelu(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    struct network *n = b->network;
    struct onnx_name x = network_name(n, op->inputs[0]);
    struct onnx_name square = network_op2(n, "Mul", x, x);
    struct onnx_name density = network_op1(
        n, "Exp", network_op2(n, "Mul", square, onnx_constant_float(&n->graph, -0.5f)));
    struct onnx_name scaled = network_op2(
        n, "Mul", density, onnx_constant_float(&n->graph, (float)(1 / sqrt(2 * M_PI))));
    struct onnx_name slope =
        network_op2(n, "Add", op->kept[0], network_op2(n, "Mul", x, scaled));
    give(b, op->inputs[0], network_op2(n, "Mul", dz, slope));
}

static void back_add(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    give(b, op->inputs[0], dz);
    give(b, op->inputs[1], dz);
}

static void back_add_bias(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    give(b, op->inputs[0], dz);
    give(b, op->inputs[1], sum_leading(b, dz, network_shape(b->network, op->output)->rank));
}

static void back_matmul(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    struct network *n = b->network;
    const struct tensor_shape *left = network_shape(n, op->inputs[0]);
    const struct tensor_shape *right = network_shape(n, op->inputs[1]);
    struct onnx_name a = network_name(n, op->inputs[0]), w = network_name(n, op->inputs[1]);
    assert(op->input_count == 2);
    if (wanted(b, op->inputs[0]))
        give(b, op->inputs[0],
             network_op2(n, "MatMul", dz, swap(b, w, right->rank, right->rank - 2)));
    if (!wanted(b, op->inputs[1]))
        return;
    struct onnx_name rows = right->rank == 2 ? as_rows(b, a, left) : a;
    struct onnx_name drows =
        right->rank == 2 ? as_rows(b, dz, network_shape(n, op->output)) : dz;
    give(b, op->inputs[1],
         network_op2(n, "MatMul", swap(b, rows, right->rank, right->rank - 2), drows));
}

static void back_scale(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    struct network *n = b->network;
    give(b, op->inputs[0],
         network_op2(n, "Mul", dz, onnx_constant_float(&n->graph, op->factor)));
}

static void back_reshape(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    give(b, op->inputs[0],
         network_reshape_to(b->network, dz, network_shape(b->network, op->inputs[0])));
}

static void back_transpose(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    int64_t inverse[TENSOR_RANK_MAX];
    int rank = network_shape(b->network, op->output)->rank;
    for (int i = 0; i < rank; i++)
        inverse[op->order[i]] = i;
    give(b, op->inputs[0], network_permute(b->network, dz, inverse, rank));
}

static void back_softmax(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    struct network *n = b->network;
    struct onnx_name y = network_name(n, op->output);
    struct onnx_name product = network_op2(n, "Mul", dz, y);
    struct onnx_name total = network_sum(n, product, (const int64_t[]){-1}, 1, true);
    give(b, op->inputs[0], network_op2(n, "Mul", y, network_op2(n, "Sub", dz, total)));
}

static void back_layer_norm(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    struct network *n = b->network;
    int rank = network_shape(n, op->output)->rank;
    struct onnx_name normal = op->kept[0], inverse = op->kept[1];
    give(b, op->inputs[1], sum_leading(b, network_op2(n, "Mul", dz, normal), rank));
    give(b, op->inputs[2], sum_leading(b, dz, rank));
    struct onnx_name d = network_op2(n, "Mul", dz, network_name(n, op->inputs[1]));
    struct onnx_name along = network_mean_last(n, network_op2(n, "Mul", d, normal));
    struct onnx_name rest = network_op2(n, "Sub", d, network_mean_last(n, d));
    rest = network_op2(n, "Sub", rest, network_op2(n, "Mul", normal, along));
    give(b, op->inputs[0], network_op2(n, "Mul", rest, inverse));
}

static void back_embed(struct backward *b, const struct operation *op, struct onnx_name dz)
{
    struct network *n = b->network;
    const struct tensor_shape *ids = network_shape(n, op->inputs[1]);
    int64_t rows = ids->size[0] * ids->size[1];
    struct onnx_name flat =
        network_reshape_to(n, network_name(n, op->inputs[1]), &NETWORK_SHAPE(rows));
    struct onnx_name hot = onnx_operator(
        &n->graph, "OneHot",
        ONNX_INPUTS(flat,
                    ONNX_CONSTANT_INTS(&n->graph, network_shape(n, op->inputs[0])->size[0]),
                    onnx_name("off_on")),
        ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INT("axis", 0))); /* already transposed */
    give(b, op->inputs[0],
         network_op2(n, "MatMul", hot, as_rows(b, dz, network_shape(n, op->output))));
}

/* The start of the backward pass: the gradient of the loss by itself is 1. */
static void back_cross_entropy(struct backward *b, const struct operation *op,
                               struct onnx_name dz)
{
    struct network *n = b->network;
    float rows = (float)network_shape(n, op->inputs[0])->size[0];
    struct onnx_name error =
        network_op2(n, "Sub", network_op1(n, "Exp", op->kept[0]), op->kept[1]);
    (void)dz;
    give(b, op->inputs[0], network_op2(n, "Div", error, onnx_constant_float(&n->graph, rows)));
}

static void (*const rules[OPERATION_KIND_COUNT])(struct backward *, const struct operation *,
                                                 struct onnx_name) = {
    [OPERATION_CONV] = back_conv,       [OPERATION_MEAN_PICTURE] = back_mean_picture,
    [OPERATION_RELU] = back_relu,       [OPERATION_GELU] = back_gelu,
    [OPERATION_ADD] = back_add,         [OPERATION_ADD_BIAS] = back_add_bias,
    [OPERATION_MATMUL] = back_matmul,   [OPERATION_SCALE] = back_scale,
    [OPERATION_RESHAPE] = back_reshape, [OPERATION_TRANSPOSE] = back_transpose,
    [OPERATION_SOFTMAX] = back_softmax, [OPERATION_LAYER_NORM] = back_layer_norm,
    [OPERATION_EMBED] = back_embed,     [OPERATION_CROSS_ENTROPY] = back_cross_entropy,
};

static void update(struct backward *b, const struct parameter *parameter, float momentum)
{
    struct network *n = b->network;
    struct onnx_graph *graph = &n->graph;
    const struct tensor_shape *shape = network_shape(n, parameter->value);
    struct onnx_name name = network_name(n, parameter->value);
    struct onnx_name moment = onnx_name("m_%s", name.text);
    struct onnx_name new_name = onnx_name("new_%s", name.text);
    struct onnx_name new_moment = onnx_name("new_m_%s", name.text);
    assert(b->gradients[parameter->value].text[0]);
    onnx_input(graph, name, TENSOR_F32, shape);
    onnx_input(graph, moment, TENSOR_F32, shape);
    struct onnx_name kept = network_op2(n, "Mul", moment, onnx_constant_float(graph, momentum));
    struct onnx_name m = network_op2(n, "Add", kept, b->gradients[parameter->value]);
    struct onnx_name moved = network_op2(n, "Mul", m, onnx_name("lr"));
    onnx_alias(graph, network_op2(n, "Sub", name, moved), new_name);
    onnx_alias(graph, m, new_moment);
    onnx_output(graph, new_name, TENSOR_F32, shape);
    onnx_output(graph, new_moment, TENSOR_F32, shape);
}

void network_finish_training(struct network *network, int loss, float momentum,
                             const char *name, struct str *ret_model)
{
    CLEANUP(free_ptr)
    struct onnx_name *gradients = xcalloc(network->values.count, sizeof *gradients);
    struct backward b = {.network = network, .gradients = gradients};
    struct tensor_shape number = {0};
    assert(network->purpose == NETWORK_TRAINING);
    onnx_input(&network->graph, onnx_name("lr"), TENSOR_F32, &number);
    onnx_alias(&network->graph, network_name(network, loss), onnx_name("loss"));
    onnx_output(&network->graph, onnx_name("loss"), TENSOR_F32, &number);
    gradients[loss] = onnx_name("one");
    for (size_t i = network->operations.count; i-- > 0;) {
        const struct operation *op = &network->operations.data[i];
        if (!network->values.data[op->output].needs_gradient || !gradients[op->output].text[0])
            continue;
        assert(rules[op->kind]);
        rules[op->kind](&b, op, gradients[op->output]);
    }
    for (size_t i = 0; i < network->parameters.count; i++)
        update(&b, &network->parameters.data[i], momentum);
    onnx_finish(&network->graph, name, ret_model);
}
