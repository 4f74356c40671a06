/* SPDX-License-Identifier: Apache-2.0
 *
 * A bump allocator: blocks from calloc(), each twice the last up to 1 MiB, so that memory
 * is zeroed without being touched. What would fill a block by itself gets a block of its
 * own behind the newest one, whose rest stays in use.
 */
#include "base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { ARENA_BLOCK_FIRST = 4096, ARENA_BLOCK_LARGEST = 1 << 20 };

struct arena_block {
    struct arena_block *next;
    size_t capacity;
    alignas(max_align_t) unsigned char bytes[];
};

static struct arena_block *block_new(struct arena *arena, size_t capacity)
{
    assert(capacity <= SIZE_MAX - sizeof(struct arena_block));
    struct arena_block *block = xcalloc(1, sizeof *block + capacity);
    block->capacity = capacity;
    arena->total_bytes += sizeof *block + capacity;
    return block;
}

static size_t next_capacity(const struct arena *arena)
{
    if (!arena->blocks)
        return ARENA_BLOCK_FIRST;
    size_t doubled = arena->blocks->capacity * 2;
    return doubled < ARENA_BLOCK_LARGEST ? doubled : ARENA_BLOCK_LARGEST;
}

static void *alloc_in_new_block(struct arena *arena, size_t size)
{
    size_t capacity = next_capacity(arena);
    if (arena->blocks && size > capacity / 2) {
        struct arena_block *own = block_new(arena, size);
        own->next = arena->blocks->next;
        arena->blocks->next = own;
        return own->bytes;
    }
    struct arena_block *block = block_new(arena, size > capacity ? size : capacity);
    block->next = arena->blocks;
    arena->blocks = block;
    arena->used = size;
    return block->bytes;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
    const size_t unit = alignof(max_align_t);
    size_t total;
    if (__builtin_mul_overflow(count, size, &total) || total > SIZE_MAX / 2)
        return xcalloc(count, size); /* ends the process with its message */
    total = total ? (total + unit - 1) / unit * unit : unit;
    if (!arena->blocks || total > arena->blocks->capacity - arena->used)
        return alloc_in_new_block(arena, total);
    void *memory = arena->blocks->bytes + arena->used;
    arena->used += total;
    assert(arena->used <= arena->blocks->capacity);
    return memory;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    assert(text);
    return arena_strndup(arena, text, strlen(text));
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    assert(text);
    size_t kept = strnlen(text, length);
    char *copy = arena_alloc(arena, kept + 1, 1);
    memcpy(copy, text, kept);
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    assert(length >= 0);
    char *text = arena_alloc(arena, (size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void arena_done(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    *arena = (struct arena){0};
}
