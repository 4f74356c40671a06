/* SPDX-License-Identifier: Apache-2.0
 *
 * The forward operations. See network.h.
 */
#include "engine/network.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "engine/network_internal.h"

enum { POOL_SIZE = 3, POOL_STRIDE = 2 };

struct network *network_new(enum network_purpose purpose)
{
    struct network *network = xcalloc(1, sizeof *network);
    network->purpose = purpose;
    network->graph = ONNX_GRAPH_EMPTY;
    network->start_values = STR_EMPTY;
    network->random = 1;
    return network;
}

void network_free(struct network *network)
{
    if (!network)
        return;
    str_done(&network->graph.body);
    str_done(&network->start_values);
    vec_done(&network->values);
    vec_done(&network->operations);
    vec_done(&network->parameters);
    free(network);
}

float reference_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-24f;
}

static int add_value(struct network *network, struct onnx_name name, struct tensor_shape shape)
{
    assert(network->values.count < INT32_MAX);
    *vec_push(&network->values) = (struct network_value){.name = name, .shape = shape};
    return (int)network->values.count - 1;
}

const struct tensor_shape *network_shape(const struct network *network, int value)
{
    assert(value >= 0 && (size_t)value < network->values.count);
    return &network->values.data[value].shape;
}

size_t network_parameter_count(const struct network *network)
{
    size_t count = 0;
    for (size_t i = 0; i < network->parameters.count; i++)
        count += tensor_shape_count(network_shape(network, network->parameters.data[i].value));
    return count;
}

const float *network_start_values(const struct network *network)
{
    assert(network->purpose == NETWORK_TRAINING);
    return (const float *)(const void *)network->start_values.bytes;
}

int network_input(struct network *network, const char *name, enum tensor_element element,
                  struct tensor_shape shape)
{
    assert(name && *name);
    onnx_input(&network->graph, onnx_name("%s", name), element, &shape);
    return add_value(network, onnx_name("%s", name), shape);
}

int network_parameter(struct network *network, const char *name, struct tensor_shape shape,
                      struct network_start start)
{
    size_t count = tensor_shape_count(&shape);
    CLEANUP(free_ptr) float *values = xcalloc(count, sizeof *values);
    int value = add_value(network, onnx_name("%s", name), shape);
    float width = sqrtf(12.0f) * start.deviation; /* of a uniform distribution */
    for (size_t i = 0; i < count; i++)
        values[i] = (reference_random(&network->random) - 0.5f) * width + start.constant;
    *vec_push(&network->parameters) = (struct parameter){.value = value, .start = start};
    network->values.data[value].needs_gradient = network->purpose == NETWORK_TRAINING;
    if (network->purpose == NETWORK_TRAINING)
        str_add_bytes(&network->start_values, values, count * sizeof *values);
    else
        onnx_weights(&network->graph, onnx_name("%s", name), TENSOR_F32, &shape, values);
    return value;
}

struct onnx_name network_op1(struct network *network, const char *type, struct onnx_name a)
{
    return onnx_operator(&network->graph, type, ONNX_INPUTS(a), ONNX_NO_ATTRIBUTES);
}

struct onnx_name network_op2(struct network *network, const char *type, struct onnx_name a,
                             struct onnx_name b)
{
    return onnx_operator(&network->graph, type, ONNX_INPUTS(a, b), ONNX_NO_ATTRIBUTES);
}

struct onnx_name network_sum(struct network *network, struct onnx_name a, const int64_t *axes,
                             int count, bool keep)
{
    struct onnx_name list = onnx_constant_ints(&network->graph, axes, count);
    assert(count >= 1);
    return onnx_operator(&network->graph, "ReduceSum", ONNX_INPUTS(a, list),
                         ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INT("keepdims", keep)));
}

struct onnx_name network_mean_last(struct network *network, struct onnx_name a)
{
    return onnx_operator(
        &network->graph, "ReduceMean", ONNX_INPUTS(a),
        ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INTS("axes", -1), ONNX_ATTRIBUTE_INT("keepdims", 1)));
}

struct onnx_name network_reshape_to(struct network *network, struct onnx_name a,
                                    const struct tensor_shape *shape)
{
    return network_op2(network, "Reshape", a,
                       onnx_constant_ints(&network->graph, shape->size, shape->rank));
}

struct onnx_name network_permute(struct network *network, struct onnx_name a,
                                 const int64_t *order, int rank)
{
    struct onnx_attribute attribute = {.name = "perm", .kind = ONNX_INTS, .count = rank};
    assert(rank <= ONNX_LIST_MAX);
    memcpy(attribute.ints, order, (size_t)rank * sizeof *order);
    return onnx_operator(&network->graph, "Transpose", ONNX_INPUTS(a), &attribute, 1);
}

/* Remembers an operation and makes its output a value. */
static int add_operation(struct network *network, struct operation operation,
                         struct onnx_name name, struct tensor_shape shape)
{
    assert(operation.input_count >= 1 && operation.input_count <= 3);
    operation.output = add_value(network, name, shape);
    for (int i = 0; i < operation.input_count; i++)
        if (network->values.data[operation.inputs[i]].needs_gradient)
            network->values.data[operation.output].needs_gradient = true;
    *vec_push(&network->operations) = operation;
    return operation.output;
}

/* An operation of one operator and one input that keeps the shape. */
static int add_simple(struct network *network, enum operation_kind kind, int x,
                      struct onnx_name name)
{
    return add_operation(network,
                         (struct operation){.kind = kind, .inputs = {x}, .input_count = 1},
                         name, *network_shape(network, x));
}

int network_conv(struct network *network, int x, int w, int b, int stride)
{
    const struct tensor_shape *in = network_shape(network, x);
    const struct tensor_shape *filter = network_shape(network, w);
    int64_t size = filter->size[2], pad = size / 2;
    assert(in->rank == 4 && filter->rank == 4 && filter->size[1] == in->size[1]);
    struct onnx_name name =
        onnx_operator(&network->graph, "Conv",
                      ONNX_INPUTS(network_name(network, x), network_name(network, w),
                                  network_name(network, b)),
                      ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INTS("kernel_shape", size, size),
                                      ONNX_ATTRIBUTE_INTS("pads", pad, pad, pad, pad),
                                      ONNX_ATTRIBUTE_INTS("strides", stride, stride)));
    return add_operation(
        network,
        (struct operation){
            .kind = OPERATION_CONV, .inputs = {x, w, b}, .input_count = 3, .stride = stride},
        name,
        NETWORK_SHAPE(in->size[0], filter->size[0], (in->size[2] + 2 * pad - size) / stride + 1,
                      (in->size[3] + 2 * pad - size) / stride + 1));
}

int network_max_pool(struct network *network, int x)
{
    const struct tensor_shape *in = network_shape(network, x);
    assert(network->purpose == NETWORK_INFERENCE && in->rank == 4);
    struct onnx_name name = onnx_operator(
        &network->graph, "MaxPool", ONNX_INPUTS(network_name(network, x)),
        ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INTS("kernel_shape", POOL_SIZE, POOL_SIZE),
                        ONNX_ATTRIBUTE_INTS("pads", 1, 1, 1, 1),
                        ONNX_ATTRIBUTE_INTS("strides", POOL_STRIDE, POOL_STRIDE)));
    struct tensor_shape shape = *in;
    for (int i = 2; i < 4; i++)
        shape.size[i] = (in->size[i] + 2 - POOL_SIZE) / POOL_STRIDE + 1;
    return add_operation(
        network,
        (struct operation){.kind = OPERATION_MAX_POOL, .inputs = {x}, .input_count = 1}, name,
        shape);
}

int network_mean_picture(struct network *network, int x)
{
    const struct tensor_shape *in = network_shape(network, x);
    assert(in->rank == 4);
    struct onnx_name name = onnx_operator(
        &network->graph, "ReduceMean", ONNX_INPUTS(network_name(network, x)),
        ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INTS("axes", 2, 3), ONNX_ATTRIBUTE_INT("keepdims", 0)));
    return add_operation(
        network,
        (struct operation){.kind = OPERATION_MEAN_PICTURE, .inputs = {x}, .input_count = 1},
        name, NETWORK_SHAPE(in->size[0], in->size[1]));
}

int network_relu(struct network *network, int x)
{
    return add_simple(network, OPERATION_RELU, x,
                      network_op1(network, "Relu", network_name(network, x)));
}

/* x Φ(x), with Φ(x) = (1 + erf(x / √2)) / 2 kept for the gradient. */
int network_gelu(struct network *network, int x)
{
    struct onnx_graph *graph = &network->graph;
    struct onnx_name scaled = network_op2(network, "Mul", network_name(network, x),
                                          onnx_constant_float(graph, sqrtf(0.5f)));
    struct onnx_name one = network_op2(network, "Add", network_op1(network, "Erf", scaled),
                                       onnx_constant_float(graph, 1));
    struct onnx_name phi = network_op2(network, "Mul", one, onnx_constant_float(graph, 0.5f));
    struct onnx_name name = network_op2(network, "Mul", network_name(network, x), phi);
    struct operation operation = {
        .kind = OPERATION_GELU, .inputs = {x}, .input_count = 1, .kept = {phi}};
    return add_operation(network, operation, name, *network_shape(network, x));
}

static int add_two(struct network *network, enum operation_kind kind, int a, int b)
{
    struct onnx_name name =
        network_op2(network, "Add", network_name(network, a), network_name(network, b));
    return add_operation(network,
                         (struct operation){.kind = kind, .inputs = {a, b}, .input_count = 2},
                         name, *network_shape(network, a));
}

int network_add(struct network *network, int a, int b)
{
    assert(tensor_shape_count(network_shape(network, a)) ==
           tensor_shape_count(network_shape(network, b)));
    return add_two(network, OPERATION_ADD, a, b);
}

int network_add_bias(struct network *network, int x, int b)
{
    const struct tensor_shape *shape = network_shape(network, x);
    assert(network_shape(network, b)->rank == 1 &&
           network_shape(network, b)->size[0] == shape->size[shape->rank - 1]);
    return add_two(network, OPERATION_ADD_BIAS, x, b);
}

int network_matmul(struct network *network, int a, int b)
{
    const struct tensor_shape *left = network_shape(network, a);
    const struct tensor_shape *right = network_shape(network, b);
    assert(left->size[left->rank - 1] == right->size[right->rank - 2]);
    assert(right->rank == 2 || right->rank == left->rank);
    struct tensor_shape shape = *left;
    shape.size[shape.rank - 1] = right->size[right->rank - 1];
    struct onnx_name name =
        network_op2(network, "MatMul", network_name(network, a), network_name(network, b));
    return add_operation(
        network,
        (struct operation){.kind = OPERATION_MATMUL, .inputs = {a, b}, .input_count = 2}, name,
        shape);
}

int network_scale(struct network *network, int x, float factor)
{
    struct onnx_name name = network_op2(network, "Mul", network_name(network, x),
                                        onnx_constant_float(&network->graph, factor));
    struct operation operation = {
        .kind = OPERATION_SCALE, .inputs = {x}, .input_count = 1, .factor = factor};
    return add_operation(network, operation, name, *network_shape(network, x));
}

int network_reshape(struct network *network, int x, struct tensor_shape shape)
{
    assert(tensor_shape_count(&shape) == tensor_shape_count(network_shape(network, x)));
    struct onnx_name name = network_reshape_to(network, network_name(network, x), &shape);
    return add_operation(
        network, (struct operation){.kind = OPERATION_RESHAPE, .inputs = {x}, .input_count = 1},
        name, shape);
}

int network_transpose(struct network *network, int x, const int64_t *order)
{
    struct tensor_shape in = *network_shape(network, x), shape = in;
    struct operation operation = {.kind = OPERATION_TRANSPOSE, .inputs = {x}, .input_count = 1};
    assert(order);
    for (int i = 0; i < in.rank; i++) {
        shape.size[i] = in.size[order[i]];
        operation.order[i] = order[i];
    }
    struct onnx_name name = network_permute(network, network_name(network, x), order, in.rank);
    return add_operation(network, operation, name, shape);
}

int network_softmax(struct network *network, int x)
{
    return add_simple(network, OPERATION_SOFTMAX, x,
                      onnx_operator(&network->graph, "Softmax",
                                    ONNX_INPUTS(network_name(network, x)),
                                    ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INT("axis", -1))));
}

/* Keeps the normalised values and 1 / deviation for the gradient. */
int network_layer_norm(struct network *network, int x, int gain, int bias)
{
    struct onnx_graph *graph = &network->graph;
    struct onnx_name in = network_name(network, x);
    struct onnx_name centred = network_op2(network, "Sub", in, network_mean_last(network, in));
    struct onnx_name variance =
        network_mean_last(network, network_op2(network, "Mul", centred, centred));
    struct onnx_name deviation =
        network_op1(network, "Sqrt",
                    network_op2(network, "Add", variance, onnx_constant_float(graph, 1e-5f)));
    struct onnx_name inverse = network_op1(network, "Reciprocal", deviation);
    struct onnx_name normal = network_op2(network, "Mul", centred, inverse);
    struct onnx_name name = network_op2(
        network, "Add", network_op2(network, "Mul", normal, network_name(network, gain)),
        network_name(network, bias));
    struct operation operation = {.kind = OPERATION_LAYER_NORM,
                                  .inputs = {x, gain, bias},
                                  .input_count = 3,
                                  .kept = {normal, inverse}};
    return add_operation(network, operation, name, *network_shape(network, x));
}

int network_embed(struct network *network, int table, int ids)
{
    const struct tensor_shape *rows = network_shape(network, ids);
    assert(rows->rank == 2 && network_shape(network, table)->rank == 2);
    struct onnx_name name = network_op2(network, "Gather", network_name(network, table),
                                        network_name(network, ids));
    return add_operation(
        network,
        (struct operation){.kind = OPERATION_EMBED, .inputs = {table, ids}, .input_count = 2},
        name,
        NETWORK_SHAPE(rows->size[0], rows->size[1], network_shape(network, table)->size[1]));
}

int network_cross_entropy(struct network *network, int logits, int classes)
{
    struct onnx_graph *graph = &network->graph;
    const struct tensor_shape *shape = network_shape(network, logits);
    static const float off_on[2] = {0, 1};
    assert(shape->rank == 2 && network_shape(network, classes)->size[0] == shape->size[0]);
    struct onnx_name log_p =
        onnx_operator(graph, "LogSoftmax", ONNX_INPUTS(network_name(network, logits)),
                      ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INT("axis", 1)));
    onnx_weights(graph, onnx_name("off_on"), TENSOR_F32, &NETWORK_SHAPE(2), off_on);
    struct onnx_name target = onnx_operator(
        graph, "OneHot",
        ONNX_INPUTS(network_name(network, classes), ONNX_CONSTANT_INTS(graph, shape->size[1]),
                    onnx_name("off_on")),
        ONNX_ATTRIBUTES(ONNX_ATTRIBUTE_INT("axis", -1)));
    struct onnx_name picked = network_op2(network, "Mul", log_p, target);
    struct onnx_name total = network_sum(network, picked, (const int64_t[]){0, 1}, 2, false);
    struct onnx_name loss = network_op2(network, "Div", network_op1(network, "Neg", total),
                                        onnx_constant_float(graph, (float)shape->size[0]));
    struct operation operation = {.kind = OPERATION_CROSS_ENTROPY,
                                  .inputs = {logits, classes},
                                  .input_count = 2,
                                  .kept = {log_p, target}};
    return add_operation(network, operation, loss, (struct tensor_shape){0});
}

void network_finish_inference(struct network *network, int output, const char *name,
                              struct str *ret_model)
{
    assert(network->purpose == NETWORK_INFERENCE);
    onnx_alias(&network->graph, network_name(network, output), onnx_name("y"));
    onnx_output(&network->graph, onnx_name("y"), TENSOR_F32, network_shape(network, output));
    onnx_finish(&network->graph, name, ret_model);
}
