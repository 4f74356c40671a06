/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries in insertion order beside a table of their positions: linear probing, at most
 * half full, FNV-1a (Fowler, Noll, Vo; 64 bit). Nothing is ever removed.
 */
#include "base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"

enum { MAP_FIRST_SLOTS = 16 };

static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *p = text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32; /* the table takes the low bits, FNV mixes the high ones */
}

/* The slot that holds key, or the free one where it belongs. */
static size_t find_slot(const struct map *map, const char *key)
{
    assert(map->slot_count > map->count);
    size_t mask = map->slot_count - 1;
    size_t slot = hash_text(key) & mask;
    while (map->slots[slot] && strcmp(map->entries[map->slots[slot] - 1].key, key) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

static void grow_slots(struct map *map)
{
    if (map->slot_count / 2 > map->count)
        return;
    assert(map->count < UINT32_MAX / 4);
    free(map->slots);
    map->slot_count = map->slot_count ? map->slot_count * 2 : MAP_FIRST_SLOTS;
    map->slots = xcalloc(map->slot_count, sizeof *map->slots);
    for (size_t i = 0; i < map->count; i++)
        map->slots[find_slot(map, map->entries[i].key)] = (uint32_t)i + 1;
}

void *map_get(const struct map *map, const char *key)
{
    ptrdiff_t position = map_find(map, key);
    return position < 0 ? NULL : map->entries[position].value;
}

ptrdiff_t map_find(const struct map *map, const char *key)
{
    assert(key);
    if (map->count == 0)
        return -1;
    return (ptrdiff_t)map->slots[find_slot(map, key)] - 1;
}

size_t map_put(struct map *map, const char *key, void *value)
{
    assert(key);
    grow_slots(map);
    size_t slot = find_slot(map, key);
    if (map->slots[slot] == 0) {
        vec_grow((void **)&map->entries, &map->capacity, map->count, sizeof *map->entries);
        map->entries[map->count++] = (struct map_entry){.key = xstrdup(key)};
        map->slots[slot] = (uint32_t)map->count;
    }
    size_t position = map->slots[slot] - 1;
    map->entries[position].value = value;
    return position;
}

void map_done(struct map *map)
{
    for (size_t i = 0; i < map->count; i++)
        free(map->entries[i].key);
    free(map->entries);
    free(map->slots);
    *map = (struct map){0};
}
