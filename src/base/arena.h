/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is freed all at once: for solvers and parsed documents. Not thread safe.
 */
#ifndef TRANCHE_BASE_ARENA_H
#define TRANCHE_BASE_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena {
    struct arena_block *blocks; /* newest first; a zeroed arena is empty */
    size_t used;                /* of the newest block */
    size_t total_bytes;         /* obtained from the system, for statistics */
};

/* count × size zeroed bytes, aligned for any type; never NULL; freed by arena_done(). */
void *arena_alloc(struct arena *arena, size_t count, size_t size);
/* A copy of text in the arena; never NULL. */
char *arena_strdup(struct arena *arena, const char *text);
/* A copy of the first `length` bytes of text, terminated; never NULL. */
char *arena_strndup(struct arena *arena, const char *text, size_t length);
/* The formatted text in the arena; never NULL. */
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Frees all that the arena gave out; it is empty after and may be used again. */
void arena_done(struct arena *arena);

#endif
