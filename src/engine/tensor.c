/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of element types. See tensor.h.
 */
#include "engine/tensor.h"

#include <assert.h>

static const struct {
    const char *name;
    size_t bytes;
} elements[TENSOR_ELEMENT_COUNT] = {
    [TENSOR_F32] = {"FP32", 4},   [TENSOR_U8] = {"UINT8", 1},     [TENSOR_I8] = {"INT8", 1},
    [TENSOR_U16] = {"UINT16", 2}, [TENSOR_I16] = {"INT16", 2},    [TENSOR_I32] = {"INT32", 4},
    [TENSOR_I64] = {"INT64", 8},  [TENSOR_STRING] = {"BYTES", 0}, [TENSOR_BOOL] = {"BOOL", 1},
    [TENSOR_F16] = {"FP16", 2},   [TENSOR_F64] = {"FP64", 8},     [TENSOR_U32] = {"UINT32", 4},
    [TENSOR_U64] = {"UINT64", 8}, [TENSOR_BF16] = {"BF16", 2},
};

size_t tensor_element_bytes(enum tensor_element element)
{
    return (unsigned)element < TENSOR_ELEMENT_COUNT ? elements[element].bytes : 0;
}

const char *tensor_element_name(enum tensor_element element)
{
    const char *name = (unsigned)element < TENSOR_ELEMENT_COUNT ? elements[element].name : NULL;
    return name ? name : "?";
}

size_t tensor_shape_count(const struct tensor_shape *shape)
{
    size_t count = 1;
    assert(shape->rank >= 0 && shape->rank <= TENSOR_RANK_MAX);
    for (int i = 0; i < shape->rank; i++) {
        assert(shape->size[i] >= 0);
        if (__builtin_mul_overflow(count, (size_t)shape->size[i], &count))
            return SIZE_MAX;
    }
    return count;
}
