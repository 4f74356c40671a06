/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a small model for tests of serving:
 *
 *     make_model FILE [LAYERS [WIDTH]]
 *
 * Input x [N, WIDTH] float; output y = x + 1 (so that a wrong answer can be told), and
 * z = LAYERS dense layers of x, which take the time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "engine/onnx_writer.h"

static struct onnx_name layer(struct onnx_graph *graph, struct onnx_name x, int index,
                              int width)
{
    struct onnx_name weights = onnx_name("w%d", index);
    struct tensor_shape shape = {.rank = 2, .size = {width, width}};
    size_t count = (size_t)width * (size_t)width;
    float *values = xcalloc(count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)((i * 2654435761u + (size_t)index) % 1000) / (500.0f * (float)width);
    onnx_weights(graph, weights, TENSOR_F32, &shape, values);
    free(values);
    struct onnx_name product =
        onnx_operator(graph, "MatMul", ONNX_INPUTS(x, weights), ONNX_NO_ATTRIBUTES);
    return onnx_operator(graph, "Tanh", ONNX_INPUTS(product), ONNX_NO_ATTRIBUTES);
}

int main(int argc, char **argv)
{
    struct onnx_graph graph = ONNX_GRAPH_EMPTY;
    struct str model = STR_EMPTY;
    struct error err = {0};
    int layers = argc > 2 ? atoi(argv[2]) : 1;
    int width = argc > 3 ? atoi(argv[3]) : 16;
    struct tensor_shape shape = {.rank = 2, .size = {TENSOR_OPEN, width}};
    struct onnx_name x = onnx_name("x"), z = x;
    if (argc < 2)
        return 2;
    onnx_input(&graph, x, TENSOR_F32, &shape);
    for (int i = 0; i < layers; i++)
        z = layer(&graph, z, i, width);
    struct onnx_name one = onnx_constant_float(&graph, 1);
    struct onnx_name y = onnx_operator(&graph, "Add", ONNX_INPUTS(x, one), ONNX_NO_ATTRIBUTES);
    onnx_alias(&graph, y, onnx_name("y"));
    onnx_alias(&graph, z, onnx_name("z"));
    onnx_output(&graph, onnx_name("y"), TENSOR_F32, &shape);
    onnx_output(&graph, onnx_name("z"), TENSOR_F32, &shape);
    onnx_finish(&graph, "test", &model);
    int failed = file_write(argv[1], model.bytes, model.length, &err);
    str_done(&model);
    if (failed)
        fprintf(stderr, "%s\n", err.text);
    return failed ? 4 : 0;
}
