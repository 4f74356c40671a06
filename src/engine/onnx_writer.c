/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX as protobuf bytes. See onnx_writer.h.
 */
#include "engine/onnx_writer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_WEIGHTS = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_TYPE = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_FLOAT = 2, ATTRIBUTE_INT = 3, ATTRIBUTE_INTS = 8 };
enum { ATTRIBUTE_TYPE = 20, TYPE_IS_FLOAT = 1, TYPE_IS_INT = 2, TYPE_IS_INTS = 7 };
enum { TENSOR_DIM = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TYPE_ELEMENT = 1, TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1 };
enum { IR_VERSION = 8 };

static void put_varint(struct str *out, uint64_t value)
{
    do {
        str_add_char(out, (char)((value & 127) | (value > 127 ? 128 : 0)));
        value >>= 7;
    } while (value);
}

static void put_int(struct str *out, unsigned field, int64_t value)
{
    put_varint(out, (uint64_t)field << 3 | WIRE_VARINT);
    put_varint(out, (uint64_t)value);
}

static void put_float(struct str *out, unsigned field, float value)
{
    put_varint(out, (uint64_t)field << 3 | WIRE_FIXED32);
    str_add_bytes(out, &value, sizeof value);
}

static void put_bytes(struct str *out, unsigned field, const void *data, size_t size)
{
    put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(out, size);
    str_add_bytes(out, data, size);
}

static void put_text(struct str *out, unsigned field, const char *text)
{
    assert(text);
    put_bytes(out, field, text, strlen(text));
}

static void put_message(struct str *out, unsigned field, const struct str *message)
{
    put_bytes(out, field, message->bytes, message->length);
}

struct onnx_name onnx_name(const char *format, ...)
{
    struct onnx_name name;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(name.text, sizeof name.text, format, arguments);
    va_end(arguments);
    assert(length > 0 && (size_t)length < sizeof name.text);
    return name;
}

static void put_attribute(struct str *node, const struct onnx_attribute *attribute)
{
    CLEANUP(str_done) struct str out = STR_EMPTY;
    static const int types[] = {
        [ONNX_INT] = TYPE_IS_INT, [ONNX_INTS] = TYPE_IS_INTS, [ONNX_FLOAT] = TYPE_IS_FLOAT};
    assert(attribute->count <= ONNX_LIST_MAX);
    put_text(&out, ATTRIBUTE_NAME, attribute->name);
    if (attribute->kind == ONNX_FLOAT)
        put_float(&out, ATTRIBUTE_FLOAT, attribute->number);
    else if (attribute->kind == ONNX_INT)
        put_int(&out, ATTRIBUTE_INT, attribute->ints[0]);
    for (int i = 0; i < attribute->count; i++)
        put_int(&out, ATTRIBUTE_INTS, attribute->ints[i]);
    put_int(&out, ATTRIBUTE_TYPE, types[attribute->kind]);
    put_message(node, NODE_ATTRIBUTE, &out);
}

static void put_node(struct onnx_graph *graph, const char *type, const struct onnx_name *inputs,
                     size_t input_count, struct onnx_name output,
                     const struct onnx_attribute *attributes, size_t attribute_count)
{
    CLEANUP(str_done) struct str node = STR_EMPTY;
    assert(inputs || input_count == 0);
    for (size_t i = 0; i < input_count; i++)
        put_text(&node, NODE_INPUT, inputs[i].text);
    put_text(&node, NODE_OUTPUT, output.text);
    put_text(&node, NODE_TYPE, type);
    for (size_t i = 0; i < attribute_count; i++)
        put_attribute(&node, &attributes[i]);
    put_message(&graph->body, GRAPH_NODE, &node);
}

struct onnx_name onnx_operator(struct onnx_graph *graph, const char *type,
                               const struct onnx_name *inputs, size_t input_count,
                               const struct onnx_attribute *attributes, size_t attribute_count)
{
    struct onnx_name output = onnx_name("t%d", graph->names_used++);
    put_node(graph, type, inputs, input_count, output, attributes, attribute_count);
    return output;
}

void onnx_alias(struct onnx_graph *graph, struct onnx_name from, struct onnx_name to)
{
    put_node(graph, "Identity", &from, 1, to, ONNX_NO_ATTRIBUTES);
}

void onnx_weights(struct onnx_graph *graph, struct onnx_name name, enum tensor_element element,
                  const struct tensor_shape *shape, const void *data)
{
    CLEANUP(str_done) struct str out = STR_EMPTY;
    assert(data);
    for (int i = 0; i < shape->rank; i++)
        put_int(&out, TENSOR_DIM, shape->size[i]);
    put_int(&out, TENSOR_TYPE, element);
    put_text(&out, TENSOR_NAME, name.text);
    put_bytes(&out, TENSOR_RAW, data,
              tensor_shape_count(shape) * tensor_element_bytes(element));
    put_message(&graph->body, GRAPH_WEIGHTS, &out);
}

struct onnx_name onnx_constant_float(struct onnx_graph *graph, float value)
{
    struct onnx_name name = onnx_name("c%d", graph->names_used++);
    onnx_weights(graph, name, TENSOR_F32, &(struct tensor_shape){0}, &value);
    return name;
}

struct onnx_name onnx_constant_ints(struct onnx_graph *graph, const int64_t *values, int count)
{
    struct onnx_name name = onnx_name("c%d", graph->names_used++);
    assert(count > 0);
    onnx_weights(graph, name, TENSOR_I64, &(struct tensor_shape){1, {count}}, values);
    return name;
}

static void put_value(struct onnx_graph *graph, unsigned field, struct onnx_name name,
                      enum tensor_element element, const struct tensor_shape *shape)
{
    CLEANUP(str_done) struct str dims = STR_EMPTY;
    CLEANUP(str_done) struct str tensor = STR_EMPTY;
    CLEANUP(str_done) struct str type = STR_EMPTY;
    CLEANUP(str_done) struct str value = STR_EMPTY;
    assert(shape->rank <= ONNX_LIST_MAX);
    for (int i = 0; i < shape->rank; i++) {
        CLEANUP(str_done) struct str dim = STR_EMPTY;
        put_int(&dim, DIM_VALUE, shape->size[i]);
        put_message(&dims, SHAPE_DIM, &dim);
    }
    put_int(&tensor, TYPE_ELEMENT, element);
    put_message(&tensor, TYPE_SHAPE, &dims);
    put_message(&type, TYPE_TENSOR, &tensor);
    put_text(&value, VALUE_NAME, name.text);
    put_message(&value, VALUE_TYPE, &type);
    put_message(&graph->body, field, &value);
}

void onnx_input(struct onnx_graph *graph, struct onnx_name name, enum tensor_element element,
                const struct tensor_shape *shape)
{
    put_value(graph, GRAPH_INPUT, name, element, shape);
}

void onnx_output(struct onnx_graph *graph, struct onnx_name name, enum tensor_element element,
                 const struct tensor_shape *shape)
{
    put_value(graph, GRAPH_OUTPUT, name, element, shape);
}

void onnx_finish(struct onnx_graph *graph, const char *graph_name, struct str *ret_model)
{
    CLEANUP(str_done) struct str opset = STR_EMPTY;
    assert(graph->body.length > 0);
    put_text(&graph->body, GRAPH_NAME, graph_name);
    put_int(ret_model, MODEL_IR_VERSION, IR_VERSION);
    put_text(ret_model, MODEL_PRODUCER, "tranche");
    put_message(ret_model, MODEL_GRAPH, &graph->body);
    put_text(&opset, OPSET_DOMAIN, "");
    put_int(&opset, OPSET_VERSION, ONNX_OPSET);
    put_message(ret_model, MODEL_OPSET, &opset);
    str_done(&graph->body);
    *graph = ONNX_GRAPH_EMPTY;
}
