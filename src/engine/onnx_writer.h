/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing ONNX models from C, with no protobuf library: an ONNX file is one protobuf
 * message, and writing protobuf needs only variable-length integers, a tag (field number
 * and wire type) before each value, and nested messages written as length and bytes.
 * Field numbers are those of ONNX's published schema (onnx.proto).
 *
 * Fill a struct onnx_graph with operators, constants, weights, inputs and outputs, in any
 * order as long as an operator follows those it reads from, then onnx_finish().
 * Attributes are integers, lists of integers and floats; tensors are float and int64;
 * lists and shapes have at most ONNX_LIST_MAX entries (all asserted).
 */
#ifndef TRANCHE_ENGINE_ONNX_WRITER_H
#define TRANCHE_ENGINE_ONNX_WRITER_H

#include <stdint.h>

#include "base/str.h"
#include "engine/tensor.h"

enum { ONNX_OPSET = 13, ONNX_LIST_MAX = 8 };

struct onnx_graph {
    struct str body;
    int names_used;
};
#define ONNX_GRAPH_EMPTY ((struct onnx_graph){.body = STR_EMPTY})

struct onnx_name {
    char text[32];
};

struct onnx_attribute {
    const char *name;
    enum { ONNX_INT, ONNX_INTS, ONNX_FLOAT } kind;
    int count; /* of ints */
    int64_t ints[ONNX_LIST_MAX];
    float number;
};

/* printf into a name; asserts that it fits. */
struct onnx_name onnx_name(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Appends an operator whose output gets a new name, and returns that name. */
struct onnx_name onnx_operator(struct onnx_graph *graph, const char *type,
                               const struct onnx_name *inputs, size_t input_count,
                               const struct onnx_attribute *attributes, size_t attribute_count);

/* Gives a value another name (operator Identity): for outputs. */
void onnx_alias(struct onnx_graph *graph, struct onnx_name from, struct onnx_name to);

/* A constant of one float; the name of its value. */
struct onnx_name onnx_constant_float(struct onnx_graph *graph, float value);
/* A constant list of `count` whole numbers; the name of its value. */
struct onnx_name onnx_constant_ints(struct onnx_graph *graph, const int64_t *values, int count);

/* A tensor stored in the model; data has as many elements as the shape says. */
void onnx_weights(struct onnx_graph *graph, struct onnx_name name, enum tensor_element element,
                  const struct tensor_shape *shape, const void *data);

/* Declares an input of the graph. */
void onnx_input(struct onnx_graph *graph, struct onnx_name name, enum tensor_element element,
                const struct tensor_shape *shape);
/* Declares an output of the graph, made by a node. */
void onnx_output(struct onnx_graph *graph, struct onnx_name name, enum tensor_element element,
                 const struct tensor_shape *shape);

/* Appends the model's bytes to *ret_model and empties the graph. */
void onnx_finish(struct onnx_graph *graph, const char *graph_name, struct str *ret_model);

/* Spelling aids: lists with their lengths. */
#define ONNX_INPUTS(...)                                                                       \
    (const struct onnx_name[]){__VA_ARGS__},                                                   \
        sizeof((const struct onnx_name[]){__VA_ARGS__}) / sizeof(struct onnx_name)
#define ONNX_ATTRIBUTES(...)                                                                   \
    (const struct onnx_attribute[]){__VA_ARGS__},                                              \
        sizeof((const struct onnx_attribute[]){__VA_ARGS__}) / sizeof(struct onnx_attribute)
#define ONNX_NO_ATTRIBUTES NULL, 0
/* Elements of ONNX_ATTRIBUTES. */
#define ONNX_ATTRIBUTE_INT(n, value)                                                           \
    {                                                                                          \
        .name = (n), .kind = ONNX_INT, .ints = { value }                                       \
    }
#define ONNX_ATTRIBUTE_INTS(n, ...)                                                            \
    {                                                                                          \
        .name = (n), .kind = ONNX_INTS,                                                        \
        .count = sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .ints = {           \
            __VA_ARGS__                                                                        \
        }                                                                                      \
    }
#define ONNX_CONSTANT_INTS(graph, ...)                                                         \
    onnx_constant_ints(graph, (const int64_t[]){__VA_ARGS__},                                  \
                       sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

#endif
