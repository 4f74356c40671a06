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
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/hist.h"
#include "base/json.h"
#include "base/map.h"
#include "base/vec.h"
#include "draw/chart.h"
#include "report/answer.h"
#include "report/html.h"
#include "report/report.h"
#include "report/result_keys.h"

enum { CATEGORIES_MOST = 24, GROUPS_MOST = 8, CDF_POINTS = 120, CDF_CHARTS_MOST = 8 };

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

static double *blank(struct arena *arena, size_t count)
{
    double *values = arena_alloc(arena, count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = NAN;
    return values;
}

/* A figure's values of one group: by series, then by category. */
struct figure_values {
    double *means[CANVAS_SERIES_COUNT], *lows[CANVAS_SERIES_COUNT], *highs[CANVAS_SERIES_COUNT];
    struct map categories;
    bool any;
};

static void find_values(struct results *results, const char *figure, const char *group,
                        struct figure_values *values)
{
    *values = (struct figure_values){0};
    for (size_t s = 0; s < result_series_count(results); s++) {
        values->means[s] = blank(&results->arena, CATEGORIES_MOST);
        values->lows[s] = blank(&results->arena, CATEGORIES_MOST);
        values->highs[s] = blank(&results->arena, CATEGORIES_MOST);
    }
    for (size_t i = 0; i < json_array_size(results->cells); i++) {
        const json_t *cell = json_array_get(results->cells, i);
        const char *category = result_category(results, cell);
        int s = result_series(results, cell);
        if (s < 0 || strcmp(result_group(results, cell), group) != 0)
            continue;
        ptrdiff_t at = map_find(&values->categories, category);
        if (at < 0 && values->categories.count < CATEGORIES_MOST)
            at = (ptrdiff_t)map_put(&values->categories, category, NULL);
        if (at < 0)
            continue;
        assert((size_t)s < result_series_count(results) && at < CATEGORIES_MOST);
        values->means[s][at] = figure_of(cell, figure, "mean");
        values->lows[s][at] = figure_of(cell, figure, "low");
        values->highs[s][at] = figure_of(cell, figure, "high");
        values->any |= !isnan(values->means[s][at]);
    }
}

/* "Throughput: resnet18" */
static const char *title_of(struct results *results, const char *title, const char *group)
{
    return *group ? arena_printf(&results->arena, "%s: %s", title, group) : title;
}

static void add_figure(struct results *results, size_t figure, const char *group,
                       struct str *html)
{
    struct figure_values values;
    struct chart_series series[CANVAS_SERIES_COUNT];
    size_t series_count = result_series_count(results);
    assert(series_count > 0 && series_count <= CANVAS_SERIES_COUNT);
    find_values(results, FIGURES[figure].figure, group, &values);
    const char **names = arena_alloc(&results->arena, CATEGORIES_MOST, sizeof *names);
    for (size_t i = 0; i < values.categories.count; i++)
        names[i] = values.categories.entries[i].key;
    for (size_t s = 0; s < series_count; s++)
        series[s] =
            (struct chart_series){.label = result_series_name(results, s),
                                  .colour = (enum canvas_colour)(CANVAS_SERIES + (int)s),
                                  .y = values.means[s],
                                  .low = values.lows[s],
                                  .high = values.highs[s],
                                  .count = values.categories.count};
    if (values.any)
        chart_svg(&(struct chart){.kind = CHART_BARS,
                                  .title = title_of(results, FIGURES[figure].title, group),
                                  .x_label = results->axis_key < 0
                                                 ? NULL
                                                 : results->keys[results->axis_key].name,
                                  .y_label = FIGURES[figure].unit,
                                  .categories = names,
                                  .category_count = values.categories.count,
                                  .series = series,
                                  .series_count = series_count},
                  html);
    map_done(&values.categories);
}

/* The charts of a group stand together. */
static void add_all_figures(struct results *results, struct str *html)
{
    for (size_t g = 0; g < results->groups.count && g < GROUPS_MOST; g++)
        for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
            if (has_figure(results, FIGURES[i].figure))
                add_figure(results, i, results->groups.entries[g].key, html);
}

/* ---- CDF -------------------------------------------------------------------------- */

/* All VALID runs of a cell in one histogram, where there is none those that ended well; of an
 * open loop from the intended time. NULL when there is none. */
static struct hist *latency_of(const json_t *cell)
{
    struct hist *whole = NULL;
    const json_t *runs = json_object_get(cell, "runs");
    const char *of_cell = json_string_value(json_object_get(cell, "verdict"));
    bool valid = of_cell && strcmp(of_cell, "VALID") == 0;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        const char *word =
            json_string_value(json_object_get(run, valid ? "verdict" : "status"));
        const json_t *histograms = json_object_get(run, "histograms");
        const char *text = json_string_value(json_object_get(histograms, "e2e"));
        if (!text)
            text = json_string_value(json_object_get(histograms, "latency"));
        CLEANUP(hist_free_ptr) struct hist *part = NULL;
        if (!word || strcmp(word, valid ? "VALID" : "ok") != 0 || !text ||
            hist_decode(text, &part, NULL) != 0)
            continue;
        if (!whole)
            whole = hist_new();
        hist_merge(whole, part);
    }
    return whole;
}

/* Group, axis and category: "resnet18 batch 16". */
static const char *place_of(struct results *results, const json_t *cell)
{
    const char *group = result_group(results, cell);
    const char *category = result_category(results, cell);
    if (results->axis_key < 0)
        return category;
    return arena_printf(&results->arena, "%s%s%s %s", group, *group ? " " : "",
                        results->keys[results->axis_key].name, category);
}

/* Of the cells in one place ("": all), a line for each. */
static void add_cdf(struct results *results, const char *place, struct str *html)
{
    struct chart_series series[CANVAS_SERIES_COUNT];
    CLEANUP(str_done) struct str title = STR_EMPTY;
    size_t count = 0;
    size_t cells = json_array_size(results->cells);
    assert(place);
    for (size_t i = 0; i < cells && count < CANVAS_SERIES_COUNT; i++) {
        const json_t *cell = json_array_get(results->cells, i);
        CLEANUP(hist_free_ptr) struct hist *latency = NULL;
        int s = result_series(results, cell);
        if (*place && strcmp(place_of(results, cell), place) != 0)
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
        int colour = *place ? s : (int)count;
        series[count++] =
            (struct chart_series){.label = *place ? result_series_name(results, (size_t)s)
                                                  : result_name(results, cell),
                                  .colour = (enum canvas_colour)(CANVAS_SERIES + colour),
                                  .x = x,
                                  .y = y,
                                  .count = CDF_POINTS};
    }
    if (count == 0)
        return;
    str_addf(&title, "Latency, cumulative%s%s", *place ? ": " : "", place);
    if (!*place && count < cells)
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
        const char *place = place_of(results, json_array_get(results->cells, i));
        if (seen.count == CDF_CHARTS_MOST || map_find(&seen, place) >= 0)
            continue;
        map_put(&seen, place, NULL);
        add_cdf(results, place, html);
    }
    map_done(&seen);
}

/* ---- tables ----------------------------------------------------------------------- */

/* Four significant digits, but whole numbers whole. */
static void add_rounded(double value, int digits, struct str *text)
{
    if (fabs(value) >= pow(10, digits) - 0.5)
        str_addf(text, "%.0f", value);
    else
        str_addf(text, "%.*g", digits, value);
}

static void add_interval(const json_t *cell, const char *figure, struct str *html)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    double mean = figure_of(cell, figure, "mean");
    double low = figure_of(cell, figure, "low");
    double high = figure_of(cell, figure, "high");
    if (!isnan(mean))
        add_rounded(mean, 4, &text);
    if (!isnan(mean) && !isnan(low)) {
        str_add(&text, " ± ");
        add_rounded((high - low) / 2, 2, &text);
    }
    html_cell(html, text.bytes);
}

/* Why runs are not VALID, each reason once. */
static void find_reasons(const json_t *run, struct map *reasons)
{
    const json_t *list = json_object_get(run, "verdict_reasons");
    const char *status = json_string_value(json_object_get(run, "status"));
    const char *reason = json_string_value(json_object_get(run, "reason"));
    if (status && strcmp(status, "ok") != 0)
        map_put(reasons, reason ? reason : status, NULL);
    for (size_t k = 0; k < json_array_size(list); k++) {
        const char *why = json_string_value(json_array_get(list, k));
        if (why)
            map_put(reasons, why, NULL);
    }
}

/* "VALID", "VALID, 2 of 3 runs: unsteady", "INVALID: unsteady"; whether it is VALID. */
static bool verdict_of(const json_t *cell, struct str *words)
{
    struct map reasons = {0};
    const json_t *runs = json_object_get(cell, "runs");
    size_t valid = 0, count = json_array_size(runs);
    for (size_t i = 0; i < count; i++) {
        const json_t *run = json_array_get(runs, i);
        const char *verdict = json_string_value(json_object_get(run, "verdict"));
        valid += verdict && strcmp(verdict, "VALID") == 0;
        find_reasons(run, &reasons);
    }
    str_add(words, valid > 0 ? "VALID" : "INVALID");
    if (valid > 0 && valid < count)
        str_addf(words, ", %zu of %zu runs", valid, count);
    for (size_t i = 0; i < reasons.count; i++)
        str_addf(words, "%s%s", i > 0 ? ", " : ": ", reasons.entries[i].key);
    map_done(&reasons);
    return valid > 0;
}

static void add_cells(struct results *results, struct str *html)
{
    static const char *const HEADERS[] = {"cell",   "runs",   "requests/s", "p50 ms",
                                          "p95 ms", "p99 ms", "verdict",    NULL};
    html_table_begin(html, HEADERS);
    for (size_t i = 0; i < json_array_size(results->cells); i++) {
        const json_t *cell = json_array_get(results->cells, i);
        CLEANUP(str_done) struct str verdict = STR_EMPTY;
        bool valid = verdict_of(cell, &verdict);
        html_row_begin(html, valid ? NULL : "invalid");
        html_cell(html, result_name(results, cell));
        html_cell_number(html, (double)json_array_size(json_object_get(cell, "runs")));
        add_interval(cell, "throughput_rps", html);
        add_interval(cell, "latency_ms_p50", html);
        add_interval(cell, "latency_ms_p95", html);
        add_interval(cell, "latency_ms_p99", html);
        html_cell_wide(html, verdict.bytes);
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
        html_cell_wide(html, result_value_text(&results->arena, value));
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
        html_add_paragraph(html, "question", question);
    answer_add(root, html);
    html_figures_begin(html);
    add_all_figures(&results, html);
    add_cdfs(&results, html);
    html_figures_end(html);
    add_cells(&results, html);
    add_provenance(&results, root, html);
    results_done(&results);
    return 0;
}

const struct report_section report_results = {
    .name = "results", .schema_prefix = "tranche.result/", .add = add};
