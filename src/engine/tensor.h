/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor's type, shape and place in memory, as plain data.
 */
#ifndef TRANCHE_ENGINE_TENSOR_H
#define TRANCHE_ENGINE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

/* Values are those of ONNX's TensorProto.DataType. */
enum tensor_element {
    TENSOR_F32 = 1,
    TENSOR_U8 = 2,
    TENSOR_I8 = 3,
    TENSOR_U16 = 4,
    TENSOR_I16 = 5,
    TENSOR_I32 = 6,
    TENSOR_I64 = 7,
    TENSOR_STRING = 8,
    TENSOR_BOOL = 9,
    TENSOR_F16 = 10,
    TENSOR_F64 = 11,
    TENSOR_U32 = 12,
    TENSOR_U64 = 13,
    TENSOR_BF16 = 16,
    TENSOR_ELEMENT_COUNT = 17
};

enum { TENSOR_RANK_MAX = 8, TENSOR_OPEN = -1 };

struct tensor_shape {
    int rank;
    int64_t size[TENSOR_RANK_MAX]; /* TENSOR_OPEN: left open by the model */
};

struct tensor {
    enum tensor_element element;
    struct tensor_shape shape; /* all sizes known */
    void *data;
    size_t size_bytes;
};

/* Bytes of one element; 0 for text and unknown types. */
size_t tensor_element_bytes(enum tensor_element element);
/* "FP32", "INT64", …: the names of the KServe v2 protocol; "?" when unknown. */
const char *tensor_element_name(enum tensor_element element);
/* Number of elements, all sizes known; SIZE_MAX when it overflows. */
size_t tensor_shape_count(const struct tensor_shape *shape);

#endif
