/* SPDX-License-Identifier: Apache-2.0
 *
 * See result_keys.h.
 */
#include "report/result_keys.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/str.h"
#include "draw/canvas.h"
#include "report/cell_ratio.h"

/* On one axis of a chart: names beyond are cut off. */
enum { AXIS_CHARACTERS = 64 };
/* A key of our own: slice, mode and process count together. */
static const char WAY[] = "way";

/* Keys that make the series, in order of preference: people compare these. */
static const char *const SERIES_KEYS[] = {"mode", "sharing", "slice", "model", "batch"};

const char *result_value_text(struct arena *arena, const json_t *value)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_number(value))
        str_add_number(&text, json_number_value(value));
    else if (value)
        json_write_line(value, &text);
    return arena_strdup(arena, text.bytes);
}

/* The value of a key. A rate is that of all slices together, so that slices at work together
 * stand beside one that takes as much. */
static const char *cell_value(struct arena *arena, const json_t *cell, const char *name)
{
    const json_t *value = json_object_get(json_object_get(cell, "key"), name);
    const char *load = strcmp(name, "load") == 0 ? json_string_value(value) : NULL;
    const char *colon = load ? strchr(load, ':') : NULL;
    char *end = NULL;
    double rate = colon ? strtod(colon + 1, &end) : NAN;
    if (!colon || end == colon + 1 || *end)
        return result_value_text(arena, value);
    return arena_printf(arena, "%.*s %g/s", (int)(colon - load), load,
                        rate * bench_cell_instances(cell));
}

static void note_key(struct results *results, const char *name, const json_t *cell)
{
    int i = 0;
    while (i < results->key_count && strcmp(results->keys[i].name, name) != 0)
        i++;
    if (i == RESULT_KEYS_MAX)
        return;
    if (i == results->key_count) {
        results->keys[i].name = name;
        results->key_count++;
    }
    const char *text = cell_value(&results->arena, cell, name);
    if (map_find(&results->keys[i].values, text) < 0)
        map_put(&results->keys[i].values, text, NULL);
}

static const char *join_keys(struct results *results, const json_t *cell,
                             bool (*wanted)(const struct results *, int));
static bool is_way(const struct results *results, int key);

static const char *key_text(struct results *results, const json_t *cell, int key)
{
    if (strcmp(results->keys[key].name, WAY) == 0)
        return join_keys(results, cell, is_way);
    return cell_value(&results->arena, cell, results->keys[key].name);
}

/* Whether cells with the same value of `of` have the same of `key`, as with slice and mode
 * where each mode has slices of its own. */
static bool key_follows(struct results *results, int key, int of)
{
    struct map seen = {0};
    bool follows = true;
    assert(key >= 0 && of >= 0);
    for (size_t i = 0; i < json_array_size(results->cells) && follows; i++) {
        const json_t *cell = json_array_get(results->cells, i);
        const char *text = key_text(results, cell, key);
        ptrdiff_t at = map_find(&seen, key_text(results, cell, of));
        if (at < 0)
            map_put(&seen, key_text(results, cell, of), (void *)(uintptr_t)text);
        else
            follows = strcmp(seen.entries[at].value, text) == 0;
    }
    map_done(&seen);
    return follows;
}

/* A key that says more than the one chosen, and all that it says, is the better one. */
static void refine_series_key(struct results *results)
{
    for (size_t k = 0; k < sizeof SERIES_KEYS / sizeof *SERIES_KEYS; k++)
        for (int i = 0; i < results->key_count && results->series_key >= 0; i++)
            if (strcmp(results->keys[i].name, SERIES_KEYS[k]) == 0 &&
                results->keys[i].values.count <= CANVAS_SERIES_COUNT &&
                results->keys[i].values.count >
                    results->keys[results->series_key].values.count &&
                key_follows(results, results->series_key, i))
                results->series_key = i;
    for (int i = 0; i < results->key_count && results->series_key >= 0; i++)
        results->keys[i].in_series = key_follows(results, i, results->series_key);
}

static void choose_series_key(struct results *results)
{
    results->series_key = -1;
    for (size_t k = 0; k < sizeof SERIES_KEYS / sizeof *SERIES_KEYS; k++)
        for (int i = 0; i < results->key_count && results->series_key < 0; i++)
            if (strcmp(results->keys[i].name, SERIES_KEYS[k]) == 0 &&
                results->keys[i].values.count > 1 &&
                results->keys[i].values.count <= CANVAS_SERIES_COUNT)
                results->series_key = i;
    refine_series_key(results);
}

/* Whatever varies and passes the filter, in the order of keys. */
static const char *join_keys(struct results *results, const json_t *cell,
                             bool (*wanted)(const struct results *, int))
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    for (int i = 0; i < results->key_count; i++)
        if (results->keys[i].values.count > 1 && wanted(results, i))
            str_addf(&text, "%s%s", text.length > 0 ? " " : "", key_text(results, cell, i));
    return arena_strdup(&results->arena, text.bytes);
}

static bool is_way(const struct results *results, int key)
{
    static const char *const names[] = {"slice", "mode", "procs"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(results->keys[key].name, names[i]) == 0)
            return true;
    return false;
}

static bool is_own(const struct results *results, int key)
{
    return strcmp(results->keys[key].name, WAY) != 0;
}

static bool is_outside_series(const struct results *results, int key)
{
    return !results->keys[key].in_series;
}

static bool is_of_group(const struct results *results, int key)
{
    return !results->keys[key].in_series && key != results->axis_key;
}

/* Whether the names of all categories have room on one axis. */
static bool has_room(struct results *results)
{
    struct map seen = {0};
    size_t longest = 0;
    for (size_t i = 0; i < json_array_size(results->cells); i++) {
        const char *name =
            join_keys(results, json_array_get(results->cells, i), is_outside_series);
        longest = strlen(name) > longest ? strlen(name) : longest;
        map_put(&seen, name, NULL);
    }
    size_t needed = seen.count * longest;
    map_done(&seen);
    return needed <= AXIS_CHARACTERS;
}

static int compare_texts(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strverscmp(*x, *y);
}

/* The ways of all cells, small slices first. */
static void find_ways(struct results *results, struct map *ways)
{
    size_t count = json_array_size(results->cells);
    CLEANUP(free_ptr) const char **names = xcalloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = join_keys(results, json_array_get(results->cells, i), is_way);
    if (count > 0)
        qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 0; i < count; i++)
        map_put(ways, names[i], NULL);
}

/* Makes slice, mode and process count one key, the series. False: too many of them. */
static bool join_ways(struct results *results)
{
    struct result_key *way = &results->keys[results->key_count];
    if (results->key_count == RESULT_KEYS_MAX)
        return false;
    *way = (struct result_key){.name = WAY};
    find_ways(results, &way->values);
    if (way->values.count < 2 || way->values.count > CANVAS_SERIES_COUNT) {
        map_done(&way->values);
        return false;
    }
    results->series_key = results->key_count++;
    for (int i = 0; i < results->key_count; i++)
        results->keys[i].in_series = is_way(results, i) || !is_own(results, i);
    return true;
}

/* The one key for the axis: what people draw curves over. */
static void choose_axis_key(struct results *results)
{
    static const char *const names[] = {"load",  "sequence", "batch", "concurrency",
                                        "procs", "slice",    "model"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (int i = 0; i < results->key_count && results->axis_key < 0; i++)
            if (strcmp(results->keys[i].name, names[k]) == 0 && !results->keys[i].in_series &&
                results->keys[i].values.count > 1)
                results->axis_key = i;
}

void results_init(struct results *results, const json_t *document)
{
    *results = (struct results){.cells = json_object_get(document, "cells"), .axis_key = -1};
    size_t index;
    json_t *cell;
    json_array_foreach((json_t *)results->cells, index, cell)
    {
        const char *name;
        json_t *value;
        json_object_foreach(json_object_get(cell, "key"), name, value)
            note_key(results, name, cell);
    }
    choose_series_key(results);
    if (!has_room(results)) {
        join_ways(results);
        choose_axis_key(results);
    }
    for (size_t i = 0; i < json_array_size(results->cells); i++)
        map_put(&results->groups, result_group(results, json_array_get(results->cells, i)),
                NULL);
}

void results_done(struct results *results)
{
    for (int i = 0; i < results->key_count; i++)
        map_done(&results->keys[i].values);
    map_done(&results->groups);
    arena_done(&results->arena);
}

int result_series(struct results *results, const json_t *cell)
{
    if (results->series_key < 0)
        return 0;
    struct result_key *key = &results->keys[results->series_key];
    return (int)map_find(&key->values, key_text(results, cell, results->series_key));
}

const char *result_category(struct results *results, const json_t *cell)
{
    const char *name = results->axis_key < 0 ? join_keys(results, cell, is_outside_series)
                                             : key_text(results, cell, results->axis_key);
    return *name ? name : "all";
}

const char *result_group(struct results *results, const json_t *cell)
{
    return results->axis_key < 0 ? "" : join_keys(results, cell, is_of_group);
}

const char *result_series_name(const struct results *results, size_t series)
{
    return results->series_key < 0
               ? NULL
               : results->keys[results->series_key].values.entries[series].key;
}

size_t result_series_count(const struct results *results)
{
    return results->series_key < 0 ? 1 : results->keys[results->series_key].values.count;
}

const char *result_name(struct results *results, const json_t *cell)
{
    const char *name = join_keys(results, cell, is_own);
    return *name ? name : "all";
}
