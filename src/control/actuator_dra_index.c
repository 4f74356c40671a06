/* SPDX-License-Identifier: Apache-2.0
 *
 * See actuator_dra.h. A cluster has tens of thousands of claims: whoever asks for those of a
 * GPU shall not look at all of them.
 */
#include "control/actuator_dra.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "control/actuator_internal.h"

/* --- devices and claims --- */

/* Takes "gpu-12" off the beginning of a device's name. */
static bool take_minor(const char **name, int *ret_minor)
{
    static const char gpu[] = "gpu-";
    const char *at = *name;
    long long minor;

    if (!text_starts_with(at, gpu))
        return false;
    at += strlen(gpu);
    if (!text_take_int(&at, INT_MAX, &minor))
        return false;
    *ret_minor = (int)minor;
    *name = at;
    return true;
}

/* Reads "gpu-0-mig-1g5gb-19-6" from its end, as the profile may hold dashes. */
bool dra_device_read(const char *name, struct dra_device *ret)
{
    static const char mig[] = "-mig-";
    const char *last = strrchr(name, '-'), *before = last, *at = name;
    long long start, profile_id;
    char number[16];

    if (!take_minor(&at, &ret->minor) || !text_starts_with(at, mig))
        return false;
    at += strlen(mig);
    while (before > name && before[-1] != '-')
        before--;
    if (before < at || (size_t)(last - before) >= sizeof number)
        return false;
    memcpy(number, before, (size_t)(last - before));
    number[last - before] = '\0';
    if (!text_to_int(number, 0, 10000, &profile_id) || !text_to_int(last + 1, 0, 127, &start))
        return false;
    ret->name = name;
    ret->profile_id = (int)profile_id;
    ret->start = (int)start;
    return true;
}

/* Whether a claim was made by us, for an instance. */
static bool is_ours(const json_t *claim)
{
    return !strcmp(object_label(claim, LABEL_MANAGED_BY), "tranche") &&
           *object_note(claim, NOTE_GPU);
}

static const json_t *results_of(const json_t *claim)
{
    const json_t *allocation = json_object_get(json_object_get(claim, "status"), "allocation");

    return json_object_get(json_object_get(allocation, "devices"), "results");
}

bool dra_claim_device(const json_t *claim, struct dra_device *ret)
{
    const json_t *result;
    size_t i;

    json_array_foreach(results_of(claim), i, result)
    {
        *ret = (struct dra_device){.pool = json_text(result, "pool")};
        if (!strcmp(json_text(result, "driver"), DRA_DRIVER) &&
            dra_device_read(json_text(result, "device"), ret))
            return true;
    }
    return false;
}

/* --- order --- */

static int compare_slices(const void *a, const void *b)
{
    const struct dra_slice *x = a, *y = b;

    return strcmp(x->node, y->node);
}

static int compare_claims(const void *a, const void *b)
{
    const struct dra_claim *x = a, *y = b;

    return strcmp(x->gpu, y->gpu);
}

static int compare_taken(const void *a, const void *b)
{
    const struct dra_taken *x = a, *y = b;
    int order = strcmp(x->pool, y->pool);

    return order ? order : x->minor - y->minor;
}

/* The equals of `key` in a sorted list. */
static const void *range_of(const void *key, const void *list, size_t count, size_t size,
                            int (*compare)(const void *, const void *), size_t *ret_count)
{
    const char *bytes = list;
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(bytes + middle * size, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_count = 0;
    while (low + *ret_count < count && !compare(bytes + (low + *ret_count) * size, key))
        ++*ret_count;
    return *ret_count ? bytes + low * size : NULL;
}

const struct dra_slice *dra_slices_of(const struct dra_index *index, const char *node,
                                      size_t *ret_count)
{
    const struct dra_slice key = {.node = node};

    return range_of(&key, index->slices, index->slice_count, sizeof key, compare_slices,
                    ret_count);
}

const struct dra_claim *dra_claims_of(const struct dra_index *index, const char *gpu,
                                      size_t *ret_count)
{
    const struct dra_claim key = {.gpu = gpu};

    return range_of(&key, index->claims, index->claim_count, sizeof key, compare_claims,
                    ret_count);
}

const struct dra_taken *dra_taken_of(const struct dra_index *index, const char *pool, int minor,
                                     size_t *ret_count)
{
    const struct dra_taken key = {.pool = pool, .minor = minor};

    return range_of(&key, index->taken, index->taken_count, sizeof key, compare_taken,
                    ret_count);
}

/* --- making --- */

static bool is_of_driver(const json_t *spec)
{
    return !strcmp(json_text(spec, "driver"), DRA_DRIVER);
}

static json_int_t generation_of(const json_t *spec)
{
    return json_integer_value(json_object_get(json_object_get(spec, "pool"), "generation"));
}

/* Of slices that a driver is just replacing, the newest of a pool count. */
static void index_slices(struct world *world, struct dra_index *index)
{
    const struct world_list *list = &world->sources.resource_slices;
    CLEANUP(map_done) struct map newest = {0}; /* pool: a spec of its newest generation */

    for (size_t i = 0; i < list->count; i++) {
        const json_t *spec = json_object_get(list->items[i], "spec");
        const char *pool = json_text(json_object_get(spec, "pool"), "name");
        const json_t *other = map_get(&newest, pool);
        if (is_of_driver(spec) && (!other || generation_of(other) < generation_of(spec)))
            map_put(&newest, pool, (void *)(uintptr_t)spec);
    }
    index->slices = arena_alloc(&world->arena, list->count + 1, sizeof *index->slices);
    for (size_t i = 0; i < list->count; i++) {
        const json_t *spec = json_object_get(list->items[i], "spec");
        const char *pool = json_text(json_object_get(spec, "pool"), "name");
        if (is_of_driver(spec) && generation_of(map_get(&newest, pool)) == generation_of(spec))
            index->slices[index->slice_count++] =
                (struct dra_slice){.node = json_text(spec, "nodeName"), .spec = spec};
    }
    if (index->slice_count)
        qsort(index->slices, index->slice_count, sizeof *index->slices, compare_slices);
}

static void index_claims(struct world *world, struct dra_index *index)
{
    const struct world_list *list = &world->sources.claims;

    index->claims = arena_alloc(&world->arena, list->count + 1, sizeof *index->claims);
    for (size_t i = 0; i < list->count; i++) {
        const json_t *claim = list->items[i];
        long long start;
        if (is_ours(claim) && text_to_int(object_note(claim, NOTE_START), 0, 127, &start))
            index->claims[index->claim_count++] =
                (struct dra_claim){.gpu = object_note(claim, NOTE_GPU),
                                   .slice = object_note(claim, NOTE_SLICE),
                                   .start = (int)start,
                                   .json = claim};
    }
    if (index->claim_count)
        qsort(index->claims, index->claim_count, sizeof *index->claims, compare_claims);
}

static void index_result(const json_t *claim, const json_t *result, struct dra_index *index)
{
    struct dra_taken taken = {
        .pool = json_text(result, "pool"), .claim = claim, .is_ours = is_ours(claim)};
    const char *name = json_text(result, "device"), *at = name;

    if (!is_of_driver(result) || json_is_true(json_object_get(result, "adminAccess")) ||
        !take_minor(&at, &taken.minor))
        return;
    taken.device = (struct dra_device){.name = name, .pool = taken.pool};
    taken.is_whole = !dra_device_read(name, &taken.device);
    index->taken[index->taken_count++] = taken;
}

static void index_taken(struct world *world, struct dra_index *index)
{
    const struct world_list *list = &world->sources.claims;
    const json_t *result;
    size_t capacity = 0, j;

    for (size_t i = 0; i < list->count; i++)
        capacity += json_array_size(results_of(list->items[i]));
    index->taken = arena_alloc(&world->arena, capacity + 1, sizeof *index->taken);
    for (size_t i = 0; i < list->count; i++)
        json_array_foreach(results_of(list->items[i]), j, result)
            index_result(list->items[i], result, index);
    assert(index->taken_count <= capacity);
    if (index->taken_count)
        qsort(index->taken, index->taken_count, sizeof *index->taken, compare_taken);
}

const struct dra_index *dra_index_of(struct world *world)
{
    if (!world->dra_index) {
        struct dra_index *index = arena_alloc(&world->arena, 1, sizeof *index);
        *index = (struct dra_index){0};
        index_slices(world, index);
        index_claims(world, index);
        index_taken(world, index);
        world->dra_index = index;
    }
    return world->dra_index;
}
