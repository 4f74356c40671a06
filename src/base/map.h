/* SPDX-License-Identifier: Apache-2.0
 *
 * Text → index or pointer, open addressing; iteration is in insertion order, so that
 * results never depend on hashing. Keys are copied.
 */
#ifndef TRANCHE_BASE_MAP_H
#define TRANCHE_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
    char *key;
    void *value; /* borrowed */
};
struct map {
    struct map_entry *entries; /* in insertion order */
    size_t count;
    size_t capacity;
    uint32_t *slots; /* index + 1 into entries, 0 = free */
    size_t slot_count;
};

/* The value under key, borrowed as it was put; NULL when the key is absent (or was put with
 * NULL: map_find() tells the two apart). */
void *map_get(const struct map *map, const char *key);
/* The position of key in entries, or -1. */
ptrdiff_t map_find(const struct map *map, const char *key);
/* Adds a copy of key, or replaces the value under it, which then keeps its position. Returns
 * the position of the entry; what stood there before is not freed. */
size_t map_put(struct map *map, const char *key, void *value);
/* Frees keys and tables, not the values; the map is empty after. */
void map_done(struct map *map);

#endif
