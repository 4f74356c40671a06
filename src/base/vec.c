/* SPDX-License-Identifier: Apache-2.0
 *
 * The one untyped step of growing arrays. Doubling keeps pushes constant on average.
 */
#include "base/vec.h"

#include <assert.h>

enum { VEC_FIRST_CAPACITY = 8 };

void vec_grow(void **data, size_t *capacity, size_t count, size_t size)
{
    assert(count <= *capacity);
    if (count < *capacity)
        return;
    size_t wanted = *capacity ? *capacity * 2 : VEC_FIRST_CAPACITY;
    assert(wanted > *capacity);
    *data = xrealloc(*data, wanted, size);
    *capacity = wanted;
}
