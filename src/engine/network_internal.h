/* SPDX-License-Identifier: Apache-2.0
 *
 * What network.c and gradient.c share.
 */
#ifndef TRANCHE_ENGINE_NETWORK_INTERNAL_H
#define TRANCHE_ENGINE_NETWORK_INTERNAL_H

#include <stdbool.h>

#include "base/vec.h"
#include "engine/network.h"

enum operation_kind {
    OPERATION_CONV,
    OPERATION_MAX_POOL,
    OPERATION_MEAN_PICTURE,
    OPERATION_RELU,
    OPERATION_GELU,
    OPERATION_ADD,
    OPERATION_ADD_BIAS,
    OPERATION_MATMUL,
    OPERATION_SCALE,
    OPERATION_RESHAPE,
    OPERATION_TRANSPOSE,
    OPERATION_SOFTMAX,
    OPERATION_LAYER_NORM,
    OPERATION_EMBED,
    OPERATION_CROSS_ENTROPY,
    OPERATION_KIND_COUNT
};

struct network_value {
    struct onnx_name name;
    struct tensor_shape shape;
    bool needs_gradient; /* a parameter, or computed from one */
};

/* One step of the forward pass, with what its gradient needs. */
struct operation {
    enum operation_kind kind;
    int inputs[3], input_count; /* values */
    int output;                 /* value */
    int64_t stride;             /* conv */
    float factor;               /* scale */
    int64_t order[TENSOR_RANK_MAX];
    struct onnx_name kept[2]; /* layer norm: normalised, 1/deviation; loss: log p, one-hot */
};

struct parameter {
    int value;
    struct network_start start;
};

struct network {
    enum network_purpose purpose;
    struct onnx_graph graph;
    VEC(struct network_value) values;
    VEC(struct operation) operations;
    VEC(struct parameter) parameters;
    struct str start_values; /* floats */
    uint32_t random;
};

/* The name in the graph of a value; values count from 0. */
static inline struct onnx_name network_name(const struct network *network, int value)
{
    return network->values.data[value].name;
}

/* Adds an operator without attributes over one value; the name of its result, which is no value
 * of the network: nothing here has a gradient of its own. */
struct onnx_name network_op1(struct network *network, const char *type, struct onnx_name a);
/* The same over two values, a first; broadcast as ONNX does it. */
struct onnx_name network_op2(struct network *network, const char *type, struct onnx_name a,
                             struct onnx_name b);
/* Sum over these axes, which vanish or stay with size 1. */
struct onnx_name network_sum(struct network *network, struct onnx_name a, const int64_t *axes,
                             int count, bool keep);
/* Mean over the last axis, which stays with size 1. */
struct onnx_name network_mean_last(struct network *network, struct onnx_name a);
/* The same elements in the given shape; all its sizes known, their product that of a. */
struct onnx_name network_reshape_to(struct network *network, struct onnx_name a,
                                    const struct tensor_shape *shape);
/* The axes of a in this order, `rank` entries. */
struct onnx_name network_permute(struct network *network, struct onnx_name a,
                                 const int64_t *order, int rank);

#endif
