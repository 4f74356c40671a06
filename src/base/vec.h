/* SPDX-License-Identifier: Apache-2.0
 *
 * A typed growing array: VEC(struct x) declares an anonymous struct type with `data` and
 * `count`; zero-initialised is empty. vec_push(&v) returns a pointer to a new zeroed
 * element, valid until the next push.
 */
#ifndef TRANCHE_BASE_VEC_H
#define TRANCHE_BASE_VEC_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define VEC(type)                                                                              \
    struct {                                                                                   \
        type *data;                                                                            \
        size_t count, capacity;                                                                \
    }

/* Makes room for one more element of `size` bytes; the macro below does the typing. */
void vec_grow(void **data, size_t *capacity, size_t count, size_t size);

#define vec_push(v)                                                                            \
    (vec_grow((void **)&(v)->data, &(v)->capacity, (v)->count, sizeof *(v)->data),             \
     memset(&(v)->data[(v)->count], 0, sizeof *(v)->data), &(v)->data[(v)->count++])
#define vec_add(v, value)                                                                      \
    (vec_grow((void **)&(v)->data, &(v)->capacity, (v)->count, sizeof *(v)->data),             \
     (void)((v)->data[(v)->count++] = (value)))
#define vec_done(v)  (free((v)->data), (v)->data = NULL, (void)((v)->count = (v)->capacity = 0))
#define vec_clear(v) ((void)((v)->count = 0))

#endif
