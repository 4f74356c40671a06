/* SPDX-License-Identifier: Apache-2.0
 *
 * Benchmark results ("tranche.result/1"): for each figure a chart of means with 95 %
 * intervals over the keys that vary, CDFs of the latency, every cell with its verdict, and
 * where it all comes from. The schema is checked by bench before it writes; what is missing
 * here is left out.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/hist.h"
#include "base/json.h"
#include "base/map.h"
#include "base/vec.h"
#include "draw/chart.h"
#include "report/html.h"
#include "report/report.h"

enum { KEYS_MAX = 32, CATEGORIES_MOST = 24, CDF_POINTS = 120, CDF_CHARTS_MOST = 8 };

/* What is drawn, in this order; results without a figure have no chart of it. */
static const struct {
    const char *figure, *title, *unit;
} FIGURES[] = {
    {"throughput_rps", "Throughput", "requests/s"},
    {"latency_ms_p50", "Median latency", "ms"},
    {"latency_ms_p95", "p95 latency", "ms"},
    {"latency_ms_p99", "p99 latency", "ms"},
    {"e2e_ms_p50", "Median latency from the intended time", "ms"},
    {"e2e_ms_p95", "p95 latency from the intended time", "ms"},
    {"e2e_ms_p99", "p99 latency from the intended time", "ms"},
    {"ttft_ms_p99", "p99 time to first token", "ms"},
    {"itl_ms_p99", "p99 time between tokens", "ms"},
    {"memory_mib", "Memory", "MiB"},
    {"gpu_memory_mib", "GPU memory of the slice", "MiB"},
    {"gpu_activity", "Activity", "ratio"},
    {"power_w", "Power of the whole GPU", "W"},
    {"energy_above_idle_j", "Energy of the whole GPU above idle", "J"},
    {"energy_slice_estimate_j", "Energy of the slice (estimate)", "J"},
    {"slo_rate_rps", "Highest rate that keeps the objective", "requests/s"},
};

/* Keys that make the series, in order of preference: people compare these. */
static const char *const SERIES_KEYS[] = {"mode", "sharing", "slice", "model", "batch"};

struct varying_key {
    const char *name;
    struct map values; /* text → nothing, in order of appearance */
    bool in_series;    /* the series says it already */
};

struct results {
    struct arena arena;
    const json_t *cells;
    struct varying_key keys[KEYS_MAX];
    int key_count;
    int series_key; /* index, or -1: one series */
};

static const char *value_text(struct arena *arena, const json_t *value)
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

static void note_key(struct results *results, const char *name, const json_t *value)
{
    int i = 0;
    while (i < results->key_count && strcmp(results->keys[i].name, name) != 0)
        i++;
    if (i == KEYS_MAX)
        return;
    if (i == results->key_count) {
        results->keys[i].name = name;
        results->key_count++;
    }
    const char *text = value_text(&results->arena, value);
    if (map_find(&results->keys[i].values, text) < 0)
        map_put(&results->keys[i].values, text, NULL);
}

static const char *key_text(struct results *results, const json_t *cell, int key)
{
    return value_text(&results->arena,
                      json_object_get(json_object_get(cell, "key"), results->keys[key].name));
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

static void results_init(struct results *results, const json_t *root)
{
    *results = (struct results){.cells = json_object_get(root, "cells")};
    size_t index;
    json_t *cell;
    json_array_foreach((json_t *)results->cells, index, cell)
    {
        const char *name;
        json_t *value;
        json_object_foreach(json_object_get(cell, "key"), name, value)
        {
            note_key(results, name, value);
        }
    }
    choose_series_key(results);
}

static void results_done(struct results *results)
{
    for (int i = 0; i < results->key_count; i++)
        map_done(&results->keys[i].values);
    arena_done(&results->arena);
}

/* What tells a cell from its neighbours on the axis: varying keys but the series'. */
static const char *category_of(struct results *results, const json_t *cell, bool with_series)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    for (int i = 0; i < results->key_count; i++) {
        if (results->keys[i].values.count < 2 || (results->keys[i].in_series && !with_series))
            continue;
        const json_t *value =
            json_object_get(json_object_get(cell, "key"), results->keys[i].name);
        str_addf(&text, "%s%s", text.length > 0 ? " " : "", value_text(&results->arena, value));
    }
    return arena_strdup(&results->arena, text.length > 0 ? text.bytes : "all");
}

static double figure_of(const json_t *cell, const char *figure, const char *part)
{
    const json_t *summary = json_object_get(json_object_get(cell, "summary"), figure);
    const json_t *value = json_object_get(summary, part);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static bool has_figure(const struct results *results, const char *figure)
{
    for (size_t i = 0; i < json_array_size(results->cells); i++)
        if (!isnan(figure_of(json_array_get(results->cells, i), figure, "mean")))
            return true;
    return false;
}

static int series_of(struct results *results, const json_t *cell)
{
    if (results->series_key < 0)
        return 0;
    struct varying_key *key = &results->keys[results->series_key];
    const json_t *value = json_object_get(json_object_get(cell, "key"), key->name);
    return (int)map_find(&key->values, value_text(&results->arena, value));
}

static double *blank(struct arena *arena, size_t count)
{
    double *values = arena_alloc(arena, count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = NAN;
    return values;
}

static void add_figure(struct results *results, size_t figure, struct str *html)
{
    struct map categories = {0};
    size_t series_count =
        results->series_key < 0 ? 1 : results->keys[results->series_key].values.count;
    struct chart_series series[CANVAS_SERIES_COUNT];
    double *means[CANVAS_SERIES_COUNT], *lows[CANVAS_SERIES_COUNT], *highs[CANVAS_SERIES_COUNT];
    assert(series_count > 0 && series_count <= CANVAS_SERIES_COUNT);
    for (size_t s = 0; s < series_count; s++) {
        means[s] = blank(&results->arena, CATEGORIES_MOST);
        lows[s] = blank(&results->arena, CATEGORIES_MOST);
        highs[s] = blank(&results->arena, CATEGORIES_MOST);
    }
    for (size_t i = 0; i < json_array_size(results->cells); i++) {
        const json_t *cell = json_array_get(results->cells, i);
        const char *category = category_of(results, cell, false);
        ptrdiff_t at = map_find(&categories, category);
        int s = series_of(results, cell);
        if (at < 0 && categories.count < CATEGORIES_MOST)
            at = (ptrdiff_t)map_put(&categories, category, NULL);
        if (at < 0 || s < 0)
            continue;
        assert((size_t)s < series_count && at < CATEGORIES_MOST);
        means[s][at] = figure_of(cell, FIGURES[figure].figure, "mean");
        lows[s][at] = figure_of(cell, FIGURES[figure].figure, "low");
        highs[s][at] = figure_of(cell, FIGURES[figure].figure, "high");
    }
    const char **names = arena_alloc(&results->arena, CATEGORIES_MOST, sizeof *names);
    for (size_t i = 0; i < categories.count; i++)
        names[i] = categories.entries[i].key;
    for (size_t s = 0; s < series_count; s++)
        series[s] = (struct chart_series){
            .label = results->series_key < 0
                         ? NULL
                         : results->keys[results->series_key].values.entries[s].key,
            .colour = (enum canvas_colour)(CANVAS_SERIES + (int)s),
            .y = means[s],
            .low = lows[s],
            .high = highs[s],
            .count = categories.count};
    chart_svg(&(struct chart){.kind = CHART_BARS,
                              .title = FIGURES[figure].title,
                              .y_label = FIGURES[figure].unit,
                              .categories = names,
                              .category_count = categories.count,
                              .series = series,
                              .series_count = series_count},
              html);
    map_done(&categories);
}

/* ---- CDF -------------------------------------------------------------------------- */

/* All VALID runs of a cell in one histogram, of an open loop from the intended time; NULL
 * when there is none. */
static struct hist *latency_of(const json_t *cell)
{
    struct hist *whole = NULL;
    const json_t *runs = json_object_get(cell, "runs");
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        const char *verdict = json_string_value(json_object_get(run, "verdict"));
        const json_t *histograms = json_object_get(run, "histograms");
        const char *text = json_string_value(json_object_get(histograms, "e2e"));
        if (!text)
            text = json_string_value(json_object_get(histograms, "latency"));
        CLEANUP(hist_free_ptr) struct hist *part = NULL;
        if (!verdict || strcmp(verdict, "VALID") != 0 || !text ||
            hist_decode(text, &part, NULL) != 0)
            continue;
        if (!whole)
            whole = hist_new();
        hist_merge(whole, part);
    }
    return whole;
}

/* Of the cells in one category ("": all), a line for each. */
static void add_cdf(struct results *results, const char *category, struct str *html)
{
    struct chart_series series[CANVAS_SERIES_COUNT];
    CLEANUP(str_done) struct str title = STR_EMPTY;
    size_t count = 0;
    size_t cells = json_array_size(results->cells);
    assert(category);
    for (size_t i = 0; i < cells && count < CANVAS_SERIES_COUNT; i++) {
        const json_t *cell = json_array_get(results->cells, i);
        CLEANUP(hist_free_ptr) struct hist *latency = NULL;
        int s = series_of(results, cell);
        if (*category && strcmp(category_of(results, cell, false), category) != 0)
            continue;
        latency = latency_of(cell);
        if (!latency || s < 0)
            continue;
        double *x = arena_alloc(&results->arena, CDF_POINTS, sizeof *x);
        double *y = arena_alloc(&results->arena, CDF_POINTS, sizeof *y);
        for (int k = 0; k < CDF_POINTS; k++) {
            y[k] = 100.0 * (k + 1) / CDF_POINTS;
            x[k] = (double)hist_percentile_ns(latency, y[k]) / 1e6;
        }
        int colour = *category ? s : (int)count;
        series[count++] = (struct chart_series){
            .label = *category ? key_text(results, cell, results->series_key)
                               : category_of(results, cell, true),
            .colour = (enum canvas_colour)(CANVAS_SERIES + colour),
            .x = x,
            .y = y,
            .count = CDF_POINTS};
    }
    if (count == 0)
        return;
    str_addf(&title, "Latency, cumulative%s%s", *category ? ": " : "", category);
    if (!*category && count < cells)
        str_add(&title, " (first cells)");
    chart_svg(&(struct chart){.kind = CHART_LINES,
                              .title = title.bytes,
                              .x_label = "ms",
                              .y_label = "% of requests",
                              .series = series,
                              .series_count = count},
              html);
}

/* Series beside each other, a chart for each of the first categories. */
static void add_cdfs(struct results *results, struct str *html)
{
    struct map seen = {0};
    if (results->series_key < 0)
        add_cdf(results, "", html);
    for (size_t i = 0; i < json_array_size(results->cells) && results->series_key >= 0; i++) {
        const char *category = category_of(results, json_array_get(results->cells, i), false);
        if (seen.count == CDF_CHARTS_MOST || map_find(&seen, category) >= 0)
            continue;
        map_put(&seen, category, NULL);
        add_cdf(results, category, html);
    }
    map_done(&seen);
}

/* ---- tables ----------------------------------------------------------------------- */

static void add_interval(const json_t *cell, const char *figure, struct str *html)
{
    double mean = figure_of(cell, figure, "mean");
    double low = figure_of(cell, figure, "low");
    double high = figure_of(cell, figure, "high");
    char text[64] = "";
    if (!isnan(mean) && !isnan(low))
        snprintf(text, sizeof text, "%.6g ± %.2g", mean, (high - low) / 2);
    else if (!isnan(mean))
        snprintf(text, sizeof text, "%.6g", mean);
    html_cell(html, text);
}

/* "VALID", or the reasons of the runs that are not, each once. */
static void verdict_of(const json_t *cell, struct str *words)
{
    struct map seen = {0};
    const json_t *runs = json_object_get(cell, "runs");
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        const json_t *reasons = json_object_get(run, "verdict_reasons");
        const char *status = json_string_value(json_object_get(run, "status"));
        const char *reason = json_string_value(json_object_get(run, "reason"));
        if (status && strcmp(status, "ok") != 0)
            map_put(&seen, reason ? reason : status, NULL);
        for (size_t k = 0; k < json_array_size(reasons); k++) {
            const char *why = json_string_value(json_array_get(reasons, k));
            if (why)
                map_put(&seen, why, NULL);
        }
    }
    str_add(words, seen.count == 0 ? "VALID" : "INVALID: ");
    for (size_t i = 0; i < seen.count; i++)
        str_addf(words, "%s%s", i > 0 ? ", " : "", seen.entries[i].key);
    map_done(&seen);
}

static void add_cells(struct results *results, struct str *html)
{
    static const char *const HEADERS[] = {"cell",   "runs",   "requests/s", "p50 ms",
                                          "p95 ms", "p99 ms", "verdict",    NULL};
    html_table_begin(html, HEADERS);
    for (size_t i = 0; i < json_array_size(results->cells); i++) {
        const json_t *cell = json_array_get(results->cells, i);
        CLEANUP(str_done) struct str verdict = STR_EMPTY;
        verdict_of(cell, &verdict);
        html_row_begin(html, strcmp(verdict.bytes, "VALID") == 0 ? NULL : "bad");
        html_cell(html, category_of(results, cell, true));
        html_cell_number(html, (double)json_array_size(json_object_get(cell, "runs")));
        add_interval(cell, "throughput_rps", html);
        add_interval(cell, "latency_ms_p50", html);
        add_interval(cell, "latency_ms_p95", html);
        add_interval(cell, "latency_ms_p99", html);
        html_cell(html, verdict.bytes);
        html_row_end(html);
    }
    html_table_end(html);
}

static void add_provenance(struct results *results, const json_t *root, struct str *html)
{
    static const char *const HEADERS[] = {"provenance", "", NULL};
    html_table_begin(html, HEADERS);
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(root, "provenance"), name, value)
    {
        html_row_begin(html, NULL);
        html_cell(html, name);
        html_cell(html, value_text(&results->arena, value));
        html_row_end(html);
    }
    /* Keys that are the same in all cells belong to the setting, not to each row. */
    for (int i = 0; i < results->key_count; i++) {
        if (results->keys[i].values.count != 1)
            continue;
        html_row_begin(html, NULL);
        html_cell(html, results->keys[i].name);
        html_cell(html, results->keys[i].values.entries[0].key);
        html_row_end(html);
    }
    html_table_end(html);
}

static int add(const char *path, const struct str *bytes, struct str *html, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    CLEANUP(str_done) struct str heading = STR_EMPTY;
    int failed = json_parse(path, bytes->bytes, bytes->length, &root, err);
    if (failed)
        return failed;
    struct results results;
    results_init(&results, root);
    str_addf(&heading, "Results %s", path);
    html_add_heading(html, 2, heading.bytes);
    const char *question =
        json_string_value(json_object_get(json_object_get(root, "experiment"), "question"));
    if (question)
        html_add_paragraph(html, NULL, question);
    html_figures_begin(html);
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
        if (has_figure(&results, FIGURES[i].figure))
            add_figure(&results, i, html);
    add_cdfs(&results, html);
    html_figures_end(html);
    add_cells(&results, html);
    add_provenance(&results, root, html);
    results_done(&results);
    return 0;
}

const struct report_section report_results = {
    .name = "results", .schema_prefix = "tranche.result/", .add = add};
