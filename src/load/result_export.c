/* SPDX-License-Identifier: Apache-2.0
 *
 * Result documents in other forms. See result_export.h.
 */
#include "load/result_export.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/csv.h"

static double number_at(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The mean of a figure over the cell's valid runs; NAN: none. */
static double mean(const json_t *cell, const char *figure)
{
    return number_at(json_object_get(json_object_get(cell, "summary"), figure), "mean");
}

static const char *text_at(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static int integer_at(const json_t *object, const char *name, int otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? (int)json_integer_value(value) : otherwise;
}

/* The first run that is not VALID, else the first; NULL when there is none. */
static const json_t *telling_run(const json_t *cell)
{
    size_t index;
    const json_t *run, *runs = json_object_get(cell, "runs");
    json_array_foreach(runs, index, run)
    {
        if (strcmp(text_at(run, "verdict"), "VALID") != 0)
            return run;
    }
    return json_array_get(runs, 0);
}

/* Measurements. */

static bool is_plannable(const json_t *key)
{
    static const char *const modes[] = {"alone", "mps", "time-slicing"};
    if (strcmp(text_at(key, "load"), "closed") != 0)
        return false;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(text_at(key, "mode"), modes[i]) == 0)
            return true;
    return false;
}

static enum measurement_status find_status(const char *word)
{
    for (int i = 0; i < MEASUREMENT_STATUS_COUNT; i++)
        if (strcmp(word, measurement_status_name((enum measurement_status)i)) == 0)
            return (enum measurement_status)i;
    return STATUS_ERROR;
}

static const char *model_name(const json_t *key, struct arena *arena)
{
    int sequence = integer_at(key, "sequence", 0);
    return sequence ? arena_printf(arena, "%s-seq%d", text_at(key, "model"), sequence)
                    : arena_strdup(arena, text_at(key, "model"));
}

static void fill_figures(const json_t *cell, struct measurement *row, struct arena *arena)
{
    const json_t *run = telling_run(cell);
    row->status = find_status(text_at(run, "status"));
    row->reason = arena_strdup(arena, text_at(run, "reason"));
    row->throughput_rps = mean(cell, "throughput_rps");
    row->memory_mib = mean(cell, "memory_mib");
    row->power_w = mean(cell, "power_w");
    for (int i = 0; i < LATENCY_COLUMN_COUNT; i++)
        row->latency_ms[i] = mean(cell, latency_column_name((enum latency_column)i));
    if (row->throughput_rps > 0) { /* some repetition ended well */
        row->status = STATUS_OK;
        row->reason = "";
        return;
    }
    row->throughput_rps = 0;
    if (row->status == STATUS_OK) {
        row->status = STATUS_ERROR;
        row->reason = "INVALID";
    }
}

/* The one extra column: whether figures should be believed. */
static void add_verdict(const json_t *cell, struct measurement *row, struct arena *arena)
{
    const char **extra = arena_alloc(arena, 1, sizeof *extra);
    extra[0] = arena_strdup(arena, text_at(cell, "verdict"));
    row->extra = extra;
}

static int add_measurement(const json_t *cell, struct measurement_set *set, struct error *err)
{
    const json_t *key = json_object_get(cell, "key");
    struct measurement row = {.batch = integer_at(key, "batch", 1),
                              .procs = integer_at(key, "procs", 1)};
    int failure = mig_board_get(text_at(key, "board"), &row.board, err);
    if (!failure)
        failure = mig_profile_get(row.board, text_at(key, "slice"), &row.profile, err);
    if (failure)
        return failure;
    row.model = model_name(key, &set->arena);
    row.task = strcmp(text_at(key, "task"), "training") == 0 ? TASK_TRAINING : TASK_INFERENCE;
    row.device = arena_strdup(&set->arena, text_at(key, "device"));
    fill_figures(cell, &row, &set->arena);
    add_verdict(cell, &row, &set->arena);
    for (size_t i = 0; i < set->rows.count; i++)
        if (measurement_same_key(&set->rows.data[i], &row))
            return 0; /* another mode of the same cell: the first counts */
    vec_add(&set->rows, row);
    return 0;
}

int result_export_measurements(const json_t *document, struct measurement_set *ret_set,
                               struct error *err)
{
    size_t index;
    const json_t *cell;
    int failure = 0;
    *ret_set = (struct measurement_set){0};
    vec_add(&ret_set->extra_columns, "verdict");
    if (strcmp(text_at(document, "kind"), "experiment") != 0)
        return error_set(err, E_INPUT, "kind is \"%s\", expected \"experiment\"",
                         text_at(document, "kind"));
    json_array_foreach(json_object_get(document, "cells"), index, cell)
    {
        if (!failure && is_plannable(json_object_get(cell, "key")))
            failure = add_measurement(cell, ret_set, err);
    }
    return failure;
}

/* MIGPerf. */

static void add_number(struct str *text, double value)
{
    str_add_char(text, ',');
    if (isfinite(value))
        str_add_number(text, value);
}

void result_export_migperf(const json_t *document, struct str *text)
{
    size_t index;
    const json_t *cell;
    str_add(text, "model_name,batch_size,seq_length,latency,latency_p95,latency_p99,throughput,"
                  "mig_profile,fb_used_mean,mode,procs,task\n");
    json_array_foreach(json_object_get(document, "cells"), index, cell)
    {
        const json_t *key = json_object_get(cell, "key");
        csv_add_field(text, text_at(key, "model"));
        str_addf(text, ",%d,", integer_at(key, "batch", 1));
        if (integer_at(key, "sequence", 0))
            str_addf(text, "%d", integer_at(key, "sequence", 0));
        add_number(text, mean(cell, "latency_ms_mean"));
        add_number(text, mean(cell, "latency_ms_p95"));
        add_number(text, mean(cell, "latency_ms_p99"));
        add_number(text, mean(cell, "throughput_rps"));
        str_addf(text, ",%s", text_at(key, "slice"));
        add_number(text, mean(cell, "memory_mib"));
        str_addf(text, ",%s,%d,%s\n", text_at(key, "mode"), integer_at(key, "procs", 1),
                 text_at(key, "task"));
    }
}

/* MLPerf's form. */

static void add_latency_line(const json_t *cell, const char *title, const char *figure,
                             struct str *text)
{
    double latency_ms = mean(cell, figure);
    if (isfinite(latency_ms))
        str_addf(text, "%-32s: %.0f\n", title, latency_ms * 1e6);
}

static void add_summary(const json_t *cell, struct str *text)
{
    static const char RULE[] = "================================================\n";
    const json_t *key = json_object_get(cell, "key"), *run = telling_run(cell);
    CLEANUP(str_done) struct str name = STR_EMPTY;
    bool closed = strcmp(text_at(key, "load"), "closed") == 0;
    double throughput = mean(cell, "throughput_rps");
    str_addf(&name, "%s_%s_%s_b%d", text_at(key, "model"), text_at(key, "board"),
             text_at(key, "slice"), integer_at(key, "batch", 1));
    str_addf(text, "%sMLPerf Results Summary\n%sSUT name : %s\nScenario : %s\n", RULE, RULE,
             name.bytes, closed ? "SingleStream" : "Server");
    str_add(text, "Mode     : PerformanceOnly\n");
    if (isfinite(throughput))
        str_addf(text, "%s : %.6g\n",
                 closed ? "Samples per second" : "Completed samples per second", throughput);
    str_addf(text, "Result is : %s\n", text_at(run, "verdict"));
    size_t index;
    const json_t *reason;
    json_array_foreach(json_object_get(run, "verdict_reasons"), index, reason)
        str_addf(text, "  * %s\n", json_string_value(reason));
    str_addf(text, "%sAdditional Stats\n%s", RULE, RULE);
    add_latency_line(cell, "Max latency (ns)", "latency_ms_max", text);
    add_latency_line(cell, "Mean latency (ns)", "latency_ms_mean", text);
    add_latency_line(cell, "50.00 percentile latency (ns)", "latency_ms_p50", text);
    add_latency_line(cell, "90.00 percentile latency (ns)", "latency_ms_p90", text);
    add_latency_line(cell, "95.00 percentile latency (ns)", "latency_ms_p95", text);
    add_latency_line(cell, "99.00 percentile latency (ns)", "latency_ms_p99", text);
    add_latency_line(cell, "99.90 percentile latency (ns)", "latency_ms_p999", text);
    str_addf(text, "%sTest Parameters Used\n%ssamples_per_query : %d\nload : %s\nmode : %s\n\n",
             RULE, RULE, integer_at(key, "batch", 1), text_at(key, "load"),
             text_at(key, "mode"));
}

void result_export_mlperf(const json_t *document, struct str *text)
{
    size_t index;
    const json_t *cell;
    json_array_foreach(json_object_get(document, "cells"), index, cell) add_summary(cell, text);
}

/* Prometheus. */

static const struct {
    const char *figure, *metric, *help;
    double scale;
} metrics[] = {
    {"throughput_rps", "tranche_bench_throughput_rps", "Samples a second.", 1},
    {"latency_ms_mean", "tranche_bench_latency_mean_seconds", "Mean time of a batch.", 1e-3},
    {"latency_ms_p99", "tranche_bench_latency_p99_seconds",
     "99th percentile of a batch's time.", 1e-3},
    {"memory_mib", "tranche_bench_memory_bytes", "Peak memory.", 1 << 20},
};

static void add_label_value(struct str *text, const json_t *value)
{
    CLEANUP(str_done) struct str plain = STR_EMPTY;
    if (json_is_string(value))
        str_add(&plain, json_string_value(value));
    else if (json_is_number(value))
        str_add_number(&plain, json_number_value(value));
    for (const char *at = plain.bytes; *at; at++) {
        if (*at == '\\' || *at == '"')
            str_add_char(text, '\\');
        if (*at == '\n')
            str_add(text, "\\n");
        else
            str_add_char(text, *at);
    }
}

static void add_labels(struct str *text, const json_t *key)
{
    const char *name, *before = "";
    const json_t *value;
    str_add_char(text, '{');
    json_object_foreach((json_t *)key, name, value)
    {
        /* dcgm-exporter's name for the slice, so that dashboards join. */
        str_addf(text, "%s%s=\"", before, strcmp(name, "slice") == 0 ? "GPU_I_PROFILE" : name);
        add_label_value(text, value);
        str_add_char(text, '"');
        before = ",";
    }
    str_add_char(text, '}');
}

void result_export_prometheus(const json_t *document, struct str *text)
{
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        size_t index;
        const json_t *cell;
        str_addf(text, "# HELP %s %s\n# TYPE %s gauge\n", metrics[i].metric, metrics[i].help,
                 metrics[i].metric);
        json_array_foreach(json_object_get(document, "cells"), index, cell)
        {
            double value = mean(cell, metrics[i].figure);
            if (!isfinite(value))
                continue;
            str_add(text, metrics[i].metric);
            add_labels(text, json_object_get(cell, "key"));
            str_add_char(text, ' ');
            str_add_number(text, value * metrics[i].scale);
            str_add_char(text, '\n');
        }
    }
}

void result_export_lines(const json_t *document, struct str *text)
{
    size_t index, number;
    const json_t *cell, *run;
    json_array_foreach(json_object_get(document, "cells"), index, cell)
    {
        json_array_foreach(json_object_get(cell, "runs"), number, run)
        {
            CLEANUP(json_decref_ptr)
            json_t *line = json_pack(
                "{s:O, s:I, s:O, s:O, s:O}", "key", json_object_get(cell, "key"), "repetition",
                (json_int_t)number, "status", json_object_get(run, "status"), "verdict",
                json_object_get(run, "verdict"), "figures", json_object_get(run, "figures"));
            json_write_line(line, text);
            str_add_char(text, '\n');
        }
    }
}
