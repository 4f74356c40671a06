/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as rows. See result_row.h and docs/spec/measuring.md for the columns.
 */
#include "load/result_row.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/stats.h"

/* Our columns after the contract's, in order. */
enum row_column {
    COLUMN_SAMPLES,
    COLUMN_CPU_SHARE,
    COLUMN_CPU_QUOTA,
    COLUMN_CPU_PER_STEP,
    COLUMN_CPU_FULL_SLICE,
    COLUMN_PERIOD_MS,
    COLUMN_THROTTLED_SHARE,
    COLUMN_HOW,
    COLUMN_RUNTIME,
    COLUMN_SEED,
    COLUMN_VERDICT,
    COLUMN_REASONS,
    COLUMN_REPETITIONS,
    COLUMN_LOW,
    COLUMN_HIGH,
    ROW_COLUMN_COUNT
};

static const char *const column_names[ROW_COLUMN_COUNT] = {
    [COLUMN_SAMPLES] = "steps",
    [COLUMN_CPU_SHARE] = "cpu_share",
    [COLUMN_CPU_QUOTA] = "cpu_quota",
    [COLUMN_CPU_PER_STEP] = "cpu_ms_per_step",
    [COLUMN_CPU_FULL_SLICE] = "cpu_full_slice",
    [COLUMN_PERIOD_MS] = "period_ms",
    [COLUMN_THROTTLED_SHARE] = "throttled_share",
    [COLUMN_HOW] = "how",
    [COLUMN_RUNTIME] = "runtime",
    [COLUMN_SEED] = "seed",
    [COLUMN_VERDICT] = "verdict",
    [COLUMN_REASONS] = "verdict_reasons",
    [COLUMN_REPETITIONS] = "repetitions",
    [COLUMN_LOW] = "throughput_rps_low",
    [COLUMN_HIGH] = "throughput_rps_high",
};

static const double percentiles[LATENCY_COLUMN_COUNT] = {
    [LATENCY_P50] = 50, [LATENCY_P90] = 90,    [LATENCY_P95] = 95,
    [LATENCY_P99] = 99, [LATENCY_P999] = 99.9,
};

/* The position of a column of the set, added when it is not there. */
static size_t find_column(struct measurement_set *set, const char *name)
{
    assert(name);
    for (size_t i = 0; i < set->extra_columns.count; i++)
        if (strcmp(set->extra_columns.data[i], name) == 0)
            return i;
    size_t count = set->extra_columns.count;
    vec_add(&set->extra_columns, name);
    /* Rows that are there already get an empty field. */
    for (size_t r = 0; r < set->rows.count; r++) {
        const char **extra = arena_alloc(&set->arena, count + 1, sizeof *extra);
        for (size_t i = 0; i < count; i++)
            extra[i] = set->rows.data[r].extra ? set->rows.data[r].extra[i] : "";
        extra[count] = "";
        set->rows.data[r].extra = extra;
    }
    return count;
}

/* A place for the row: that of its key, or a new one. */
static struct measurement *place_row(struct measurement_set *set, const struct measurement *row)
{
    assert(row->board);
    for (size_t i = 0; i < set->rows.count; i++)
        if (measurement_same_key(&set->rows.data[i], row))
            return &set->rows.data[i];
    return vec_push(&set->rows);
}

/* A number with four significant digits: more would be noise. */
static double rounded(double value)
{
    char text[32];
    assert(isfinite(value));
    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}

static const char *number_text(struct measurement_set *set, double value)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (!isfinite(value))
        return "";
    str_add_number(&text, rounded(value));
    return arena_strdup(&set->arena, text.bytes);
}

static void fill_figures(struct measurement *row, const struct measure_result *result)
{
    assert(row->model);
    row->throughput_rps = 0;
    row->memory_mib = row->power_w = NAN;
    for (int i = 0; i < LATENCY_COLUMN_COUNT; i++)
        row->latency_ms[i] = NAN;
    if (result->memory_peak_bytes > 0)
        row->memory_mib = rounded((double)result->memory_peak_bytes / (1 << 20));
    /* On a GPU its own memory is what counts; power is the whole board's. */
    if (!isnan(result->gpu.memory_mib))
        row->memory_mib = rounded(result->gpu.memory_mib);
    if (!isnan(result->gpu.power_w))
        row->power_w = rounded(result->gpu.power_w);
    if (result->status != STATUS_OK)
        return;
    row->throughput_rps = rounded(result->throughput_rps);
    row->latency_ms[LATENCY_MEAN] = rounded(hist_mean_ns(result->latency) / 1e6);
    for (int i = LATENCY_P50; i < LATENCY_COLUMN_COUNT; i++)
        row->latency_ms[i] =
            rounded((double)hist_percentile_ns(result->latency, percentiles[i]) / 1e6);
}

/* The text of each of our columns, in the set's arena. */
static void fill_columns(struct measurement_set *set, const struct measure_settings *settings,
                         const struct measure_result *result, const char **texts)
{
    bool cpu = settings->device == DEVICE_CPU_SLICE;
    bool ok = result->status == STATUS_OK;
    texts[COLUMN_SAMPLES] =
        arena_printf(&set->arena, "%llu", (unsigned long long)hist_count(result->latency));
    texts[COLUMN_CPU_SHARE] = ok ? number_text(set, result->cpu_cores) : "";
    texts[COLUMN_CPU_QUOTA] = cpu ? number_text(set, result->cpu_quota_cores) : "";
    texts[COLUMN_CPU_PER_STEP] = ok ? number_text(set, result->cpu_ns_per_step / 1e6) : "";
    texts[COLUMN_CPU_FULL_SLICE] = cpu ? number_text(set, settings->cpu_full_slice) : "";
    texts[COLUMN_PERIOD_MS] = cpu ? number_text(set, (double)settings->period_ns / 1e6) : "";
    texts[COLUMN_THROTTLED_SHARE] = ok && cpu ? number_text(set, result->throttled_share) : "";
    texts[COLUMN_HOW] = arena_strdup(&set->arena, result->how.bytes);
    texts[COLUMN_RUNTIME] =
        arena_printf(&set->arena, "%s%s%s", result->ready.framework,
                     *result->ready.version ? " " : "", result->ready.version);
    texts[COLUMN_SEED] = arena_printf(&set->arena, "%llu", (unsigned long long)settings->seed);
}

/* The verdict, and the 95 % interval of the mean throughput over repetitions. */
static void fill_verdict(struct measurement_set *set, const struct measure_result *result,
                         const char **texts)
{
    CLEANUP(str_done) struct str reasons = STR_EMPTY;
    bool ok = result->status == STATUS_OK;
    size_t count = result->repetitions_rps.count;
    struct stats_interval interval =
        stats_mean_interval(result->repetitions_rps.data, count, 0.95);
    assert(texts);
    verdict_words(result->verdict, ";", &reasons);
    texts[COLUMN_VERDICT] = !ok ? "" : verdict_is_valid(result->verdict) ? "VALID" : "INVALID";
    texts[COLUMN_REASONS] = ok ? arena_strdup(&set->arena, reasons.bytes) : "";
    texts[COLUMN_REPETITIONS] = ok ? arena_printf(&set->arena, "%zu", count) : "";
    texts[COLUMN_LOW] = ok && count > 1 ? number_text(set, interval.low) : "";
    texts[COLUMN_HIGH] = ok && count > 1 ? number_text(set, interval.high) : "";
}

/* Sets one more column of a row. */
static void set_column(struct measurement_set *set, struct measurement *row, const char *name,
                       const char *text)
{
    size_t position = find_column(set, name);
    const char **extra = arena_alloc(&set->arena, set->extra_columns.count, sizeof *extra);
    for (size_t i = 0; i < set->extra_columns.count; i++)
        extra[i] = row->extra[i];
    extra[position] = text;
    row->extra = extra;
}

/* Means of the phases that the workload times. */
static void set_phases(struct measurement_set *set, struct measurement *row,
                       const struct measure_result *result)
{
    for (int i = 0; i < WORKLOAD_PHASE_COUNT; i++) {
        const struct hist *times = result->phases.times[i];
        if (!times || hist_count(times) == 0 || result->status != STATUS_OK)
            continue;
        const char *phase = workload_phase_name((enum workload_phase)i);
        set_column(set, row, arena_printf(&set->arena, "%s_ms_mean", phase),
                   number_text(set, hist_mean_ns(times) / 1e6));
    }
}

/* Adds the row and returns it, valid until the next is added. */
static struct measurement *add_row(struct measurement_set *set, const struct measure_cell *cell,
                                   const struct measure_settings *settings,
                                   const struct measure_result *result)
{
    struct measurement row = {.model = arena_strdup(&set->arena, cell->name),
                              .board = cell->board,
                              .profile = cell->profile,
                              .task = cell->task,
                              .status = result->status,
                              .batch = cell->batch,
                              .procs = cell->procs,
                              .device = measure_device_name(settings->device),
                              .reason = arena_strdup(&set->arena, result->reason)};
    const char *texts[ROW_COLUMN_COUNT];
    size_t positions[ROW_COLUMN_COUNT];
    fill_figures(&row, result);
    fill_columns(set, settings, result, texts);
    fill_verdict(set, result, texts);
    for (int i = 0; i < ROW_COLUMN_COUNT; i++)
        positions[i] = find_column(set, column_names[i]);
    const char **extra = arena_alloc(&set->arena, set->extra_columns.count, sizeof *extra);
    for (size_t i = 0; i < set->extra_columns.count; i++)
        extra[i] = "";
    for (int i = 0; i < ROW_COLUMN_COUNT; i++)
        extra[positions[i]] = texts[i];
    row.extra = extra;
    struct measurement *place = place_row(set, &row);
    *place = row;
    set_phases(set, place, result);
    return place;
}

void result_row_add(struct measurement_set *set, const struct measure_cell *cell,
                    const struct measure_settings *settings,
                    const struct measure_result *result)
{
    add_row(set, cell, settings, result);
}

static const char *count_text(struct measurement_set *set, uint64_t count)
{
    return arena_printf(&set->arena, "%llu", (unsigned long long)count);
}

void result_row_add_open(struct measurement_set *set, const struct measure_cell *cell,
                         const struct measure_settings *settings,
                         const struct measure_result *result, const char *schedule,
                         const struct open_loop_result *open)
{
    static const struct {
        const char *name;
        double percent;
    } latencies[] = {{"e2e_ms_p50", 50},
                     {"e2e_ms_p90", 90},
                     {"e2e_ms_p95", 95},
                     {"e2e_ms_p99", 99},
                     {"e2e_ms_p999", 99.9}};
    struct measurement *row = add_row(set, cell, settings, result);
    set_column(set, row, "arrivals", arena_strdup(&set->arena, schedule));
    if (result->status != STATUS_OK)
        return;
    set_column(set, row, "offered_rps", number_text(set, open->offered_rps * cell->batch));
    for (size_t i = 0; i < sizeof latencies / sizeof *latencies; i++)
        set_column(
            set, row, latencies[i].name,
            number_text(set,
                        (double)hist_percentile_ns(open->latency, latencies[i].percent) / 1e6));
    set_column(set, row, "queue_ms_p99",
               number_text(set, (double)hist_percentile_ns(open->queue, 99) / 1e6));
    set_column(set, row, "send_lag_ms_p99",
               number_text(set, (double)hist_percentile_ns(open->send_lag, 99) / 1e6));
    set_column(set, row, "in_flight_peak", count_text(set, open->in_flight_peak));
    set_column(set, row, "scheduled", count_text(set, open->scheduled));
    set_column(set, row, "dropped", count_text(set, open->dropped));
    set_column(set, row, "timed_out", count_text(set, open->timed_out));
    set_column(set, row, "failed", count_text(set, open->failed));
}
