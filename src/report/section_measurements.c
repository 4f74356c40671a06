/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements: for each model, MIGPerf's figures (throughput, latency and memory by slice
 * and batch) and every row, those that failed with their reason.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "draw/chart.h"
#include "format/measurement.h"
#include "report/html.h"
#include "report/report.h"

enum { SERIES_MAX = CANVAS_SERIES_COUNT };

/* The rows of one model on one board, for one task. */
struct group {
    const struct measurement_set *set;
    const char *model;
    const struct mig_board *board;
    enum task task;
    VEC(const struct measurement *) rows; /* in file order */
    VEC(int) profiles;                    /* that occur, as the board lists them */
    VEC(int) batches; /* that occur with the series' process count, rising */
    int procs;        /* of the figures: the least */
};

static void group_done(struct group *group)
{
    vec_done(&group->rows);
    vec_done(&group->profiles);
    vec_done(&group->batches);
}

static bool belongs(const struct group *group, const struct measurement *row)
{
    return strcmp(row->model, group->model) == 0 && row->board == group->board &&
           row->task == group->task;
}

static void insert_sorted(int *values, size_t count)
{
    for (size_t i = count - 1; i > 0 && values[i - 1] > values[i]; i--) {
        int value = values[i];
        values[i] = values[i - 1];
        values[i - 1] = value;
    }
}

static bool contains(const int *values, size_t count, int value)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] == value)
            return true;
    return false;
}

static void group_fill(struct group *group)
{
    group->procs = 0;
    for (size_t i = 0; i < group->set->rows.count; i++) {
        const struct measurement *row = &group->set->rows.data[i];
        if (!belongs(group, row))
            continue;
        vec_add(&group->rows, row);
        if (group->procs == 0 || row->procs < group->procs)
            group->procs = row->procs;
        if (!contains(group->profiles.data, group->profiles.count, row->profile)) {
            vec_add(&group->profiles, row->profile);
            insert_sorted(group->profiles.data, group->profiles.count);
        }
    }
    for (size_t i = 0; i < group->rows.count; i++) {
        const struct measurement *row = group->rows.data[i];
        if (row->procs != group->procs ||
            contains(group->batches.data, group->batches.count, row->batch))
            continue;
        vec_add(&group->batches, row->batch);
        insert_sorted(group->batches.data, group->batches.count);
    }
}

static const struct measurement *find_row(const struct group *group, int profile, int batch)
{
    for (size_t i = 0; i < group->rows.count; i++) {
        const struct measurement *row = group->rows.data[i];
        if (row->profile == profile && row->batch == batch && row->procs == group->procs &&
            row->status == STATUS_OK)
            return row;
    }
    return NULL;
}

/* What a figure shows of a row. */
struct quantity {
    const char *title, *unit;
    double (*of)(const struct measurement *row);
    bool by_batch; /* lines over the batch instead of bars over slices */
};

static double throughput_of(const struct measurement *row)
{
    return row->throughput_rps;
}

static double memory_of(const struct measurement *row)
{
    return row->memory_mib;
}

static double power_of(const struct measurement *row)
{
    return row->power_w;
}

/* The highest percentile measured that is not above p99, else whatever there is. */
static double latency_of(const struct measurement *row)
{
    for (int column = LATENCY_P99; column >= 0; column--)
        if (!isnan(row->latency_ms[column]))
            return row->latency_ms[column];
    return row->latency_ms[LATENCY_P999];
}

static const struct quantity QUANTITIES[] = {
    {"Throughput by slice", "requests/s", throughput_of, false},
    {"Latency of a batch by batch size (p99 where measured)", "ms", latency_of, true},
    {"Memory by slice", "MiB", memory_of, false},
    {"Power by slice", "W", power_of, false},
};

static bool any_value(const struct group *group, const struct quantity *quantity)
{
    for (size_t i = 0; i < group->rows.count; i++)
        if (group->rows.data[i]->status == STATUS_OK &&
            !isnan(quantity->of(group->rows.data[i])))
            return true;
    return false;
}

static double value_at(const struct group *group, const struct quantity *quantity, int profile,
                       int batch)
{
    const struct measurement *row = find_row(group, profile, batch);
    return row ? quantity->of(row) : NAN;
}

/* Series are batches over slices, or slices over batches. */
static void add_figure(const struct group *group, const struct quantity *quantity,
                       struct str *html)
{
    struct arena arena = {0};
    size_t series_count = quantity->by_batch ? group->profiles.count : group->batches.count;
    size_t point_count = quantity->by_batch ? group->batches.count : group->profiles.count;
    if (series_count > SERIES_MAX)
        series_count = SERIES_MAX;
    struct chart_series *series = arena_alloc(&arena, series_count, sizeof *series);
    const char **names = arena_alloc(&arena, point_count, sizeof *names);
    for (size_t s = 0; s < series_count; s++) {
        double *x = arena_alloc(&arena, point_count, sizeof *x);
        double *y = arena_alloc(&arena, point_count, sizeof *y);
        for (size_t i = 0; i < point_count; i++) {
            int profile = group->profiles.data[quantity->by_batch ? s : i];
            int batch = group->batches.data[quantity->by_batch ? i : s];
            x[i] = batch;
            y[i] = value_at(group, quantity, profile, batch);
            names[i] = group->board->profiles[profile].name;
        }
        series[s] = (struct chart_series){
            .label = quantity->by_batch
                         ? group->board->profiles[group->profiles.data[s]].name
                         : arena_printf(&arena, "batch %d", group->batches.data[s]),
            .colour = (enum canvas_colour)(CANVAS_SERIES + (int)s),
            .x = x,
            .y = y,
            .count = point_count};
    }
    chart_svg(&(struct chart){.kind = quantity->by_batch ? CHART_LINES : CHART_BARS,
                              .title = quantity->title,
                              .x_label = quantity->by_batch ? "batch" : NULL,
                              .y_label = quantity->unit,
                              .categories = names,
                              .category_count = quantity->by_batch ? 0 : point_count,
                              .series = series,
                              .series_count = series_count},
              html);
    arena_done(&arena);
}

static void add_rows(const struct group *group, struct str *html)
{
    static const char *const HEADERS[] = {
        "slice",  "batch",  "processes", "requests/s", "mean ms", "p50 ms", "p90 ms",
        "p95 ms", "p99 ms", "p99.9 ms",  "memory MiB", "device",  "status", NULL};
    html_table_begin(html, HEADERS);
    for (size_t i = 0; i < group->rows.count; i++) {
        const struct measurement *row = group->rows.data[i];
        bool ok = row->status == STATUS_OK;
        html_row_begin(html, ok ? NULL : "bad");
        html_cell(html, group->board->profiles[row->profile].name);
        html_cell_number(html, row->batch);
        html_cell_number(html, row->procs);
        html_cell_number(html, ok ? row->throughput_rps : NAN);
        for (int column = 0; column < LATENCY_COLUMN_COUNT; column++)
            html_cell_number(html, row->latency_ms[column]);
        html_cell_number(html, row->memory_mib);
        html_cell(html, row->device);
        CLEANUP(str_done) struct str status = STR_EMPTY;
        str_add(&status, measurement_status_name(row->status));
        if (row->reason[0])
            str_addf(&status, ": %s", row->reason);
        html_cell(html, status.bytes);
        html_row_end(html);
    }
    html_table_end(html);
}

static void add_group(struct group *group, struct str *html)
{
    CLEANUP(str_done) struct str heading = STR_EMPTY;
    group_fill(group);
    assert(group->rows.count > 0);
    str_addf(&heading, "%s on %s (%s)", group->model, group->board->slug,
             task_name(group->task));
    html_add_heading(html, 3, heading.bytes);
    html_figures_begin(html);
    for (size_t i = 0; i < sizeof QUANTITIES / sizeof *QUANTITIES; i++)
        if (any_value(group, &QUANTITIES[i]))
            add_figure(group, &QUANTITIES[i], html);
    html_figures_end(html);
    add_rows(group, html);
}

static int add(const char *path, const struct str *bytes, struct str *html, struct error *err)
{
    CLEANUP(measurement_set_done) struct measurement_set set = {0};
    int failed = measurement_set_parse(path, bytes->bytes, bytes->length, &set, err);
    if (failed)
        return failed;
    CLEANUP(str_done) struct str heading = STR_EMPTY;
    str_addf(&heading, "Measurements %s", path);
    html_add_heading(html, 2, heading.bytes);
    for (size_t i = 0; i < set.rows.count; i++) {
        const struct measurement *row = &set.rows.data[i];
        struct group group = {
            .set = &set, .model = row->model, .board = row->board, .task = row->task};
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = belongs(&group, &set.rows.data[k]);
        if (!seen)
            add_group(&group, html);
        group_done(&group);
    }
    return 0;
}

const struct report_section report_measurements = {.name = "measurements", .add = add};
