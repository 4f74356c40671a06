/* SPDX-License-Identifier: Apache-2.0
 *
 * How the cells of a result document are laid out in charts: what makes a series (what people
 * compare: modes, slices), what stands on the axis, and what needs a chart of its own.
 *
 * Where names on the axis are few and short, all that varies but the series stands there. Else
 * one thing does (rate, length, batch …), the series are the ways to run (slice, mode and
 * process count together), and every combination of the rest is a group with charts of its own.
 */
#ifndef TRANCHE_REPORT_RESULT_KEYS_H
#define TRANCHE_REPORT_RESULT_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/map.h"

enum { RESULT_KEYS_MAX = 32 };

struct result_key {
    const char *name;
    struct map values; /* text → nothing, in order of appearance */
    bool in_series;    /* the series says it already */
};

struct results {
    struct arena arena;
    const json_t *cells;
    struct result_key keys[RESULT_KEYS_MAX];
    int key_count;
    int series_key;    /* index, or -1: one series */
    int axis_key;      /* index, or -1: all that is in no series */
    struct map groups; /* names; one, "", unless the axis is a single key */
};

/* document must outlive the results. */
void results_init(struct results *results, const json_t *document);
/* Frees names and groups. */
void results_done(struct results *results);

/* The series that a cell stands in, from 0; 0 when there is one. */
int result_series(struct results *results, const json_t *cell);
/* The name on the axis at which a cell stands; in the arena. */
const char *result_category(struct results *results, const json_t *cell);
/* The group of charts that a cell belongs to; "" when there is one. */
const char *result_group(struct results *results, const json_t *cell);
/* What the series is called; NULL when there is one. */
const char *result_series_name(const struct results *results, size_t series);
/* How many series there are; at least 1. */
size_t result_series_count(const struct results *results);
/* All that varies, of this cell: for tables. */
const char *result_name(struct results *results, const json_t *cell);
/* A JSON value as text, in the arena. */
const char *result_value_text(struct arena *arena, const json_t *value);

#endif
