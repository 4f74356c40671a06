/* SPDX-License-Identifier: Apache-2.0
 *
 * The result document. See result_document.h.
 */
#include "load/result_document.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/stats.h"
#include "base/vec.h"

enum { COMMAND_LINE_MAX = 64 << 10 };
#define CONFIDENCE 0.95

static const struct {
    const char *ending;
    double percent;
} percentiles[] = {{"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p999", 99.9}};

/* The words of this process, as the kernel keeps them. */
static json_t *command_line(void)
{
    json_t *words = json_array();
    CLEANUP(close_file) FILE *file = fopen("/proc/self/cmdline", "re");
    CLEANUP(free_ptr) char *bytes = xcalloc(COMMAND_LINE_MAX, 1);
    size_t length = file ? fread(bytes, 1, COMMAND_LINE_MAX - 1, file) : 0;
    for (size_t at = 0; at < length; at += strlen(bytes + at) + 1) {
        json_t *word = json_string(bytes + at); /* NULL when it is no UTF-8 */
        json_array_append_new(words, word ? word : json_string("?"));
    }
    return words;
}

static void add_cpu_model(json_t *host)
{
    CLEANUP(close_file) FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        json_object_set_new(host, "cpu", json_string(colon + 1 + (colon[1] == ' ')));
        return;
    }
}

static json_t *describe_host(void)
{
    struct utsname name;
    json_t *host = json_object();
    if (uname(&name) == 0) {
        json_object_set_new(host, "name", json_string(name.nodename));
        json_object_set_new(host, "kernel", json_string(name.release));
        json_object_set_new(host, "machine", json_string(name.machine));
    }
    json_object_set_new(host, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    add_cpu_model(host);
    return host;
}

json_t *result_document_new(const char *kind, const char *version, uint64_t seed)
{
    char started[21];
    clock_wall_text(started);
    json_t *document = json_object(), *provenance = json_object();
    json_object_set_new(document, "schema", json_string(RESULT_SCHEMA));
    json_object_set_new(document, "kind", json_string(kind));
    json_object_set_new(provenance, "tranche", json_string(version));
    json_object_set_new(provenance, "started", json_string(started));
    json_object_set_new(provenance, "command", command_line());
    json_object_set_new(provenance, "host", describe_host());
    json_object_set_new(provenance, "seed", json_integer((json_int_t)seed));
    json_object_set_new(document, "provenance", provenance);
    json_object_set_new(document, "cells", json_array());
    return document;
}

json_t *result_run_new(struct verdict verdict, const char *status, const char *reason)
{
    CLEANUP(str_done) struct str words = STR_EMPTY;
    json_t *run = json_object(), *reasons = json_array();
    verdict_words(verdict, "\n", &words);
    for (char *rest = words.bytes, *word; words.length && (word = strsep(&rest, "\n"));)
        json_array_append_new(reasons, json_string(word));
    json_object_set_new(run, "status", json_string(status));
    if (reason && *reason)
        json_object_set_new(run, "reason", json_string(reason));
    bool valid = verdict_is_valid(verdict) && strcmp(status, "ok") == 0;
    json_object_set_new(run, "verdict", json_string(valid ? "VALID" : "INVALID"));
    json_object_set_new(run, "verdict_reasons", reasons);
    json_object_set_new(run, "figures", json_object());
    return run;
}

void result_run_add_number(json_t *run, const char *name, double value)
{
    json_t *figures = json_object_get(run, "figures");
    assert(json_is_object(figures));
    if (isfinite(value))
        json_object_set_new(figures, name, json_real(value));
}

void result_run_add_count(json_t *run, const char *name, uint64_t value)
{
    json_t *counts = json_object_get(run, "counts");
    if (!counts) {
        counts = json_object();
        json_object_set_new(run, "counts", counts);
    }
    json_object_set_new(counts, name, json_integer((json_int_t)value));
}

static void add_time(json_t *run, const char *name, const char *ending, double time_ns)
{
    CLEANUP(free_ptr) char *whole = xasprintf("%s_ms_%s", name, ending);
    result_run_add_number(run, whole, time_ns / 1e6);
}

void result_run_add_times(json_t *run, const char *name, const struct hist *times)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (!times || hist_count(times) == 0)
        return;
    add_time(run, name, "mean", hist_mean_ns(times));
    for (size_t i = 0; i < sizeof percentiles / sizeof *percentiles; i++)
        add_time(run, name, percentiles[i].ending,
                 (double)hist_percentile_ns(times, percentiles[i].percent));
    add_time(run, name, "max", (double)hist_max_ns(times));
    json_t *histograms = json_object_get(run, "histograms");
    if (!histograms) {
        histograms = json_object();
        json_object_set_new(run, "histograms", histograms);
    }
    hist_encode(times, &text);
    json_object_set_new(histograms, name, json_string(text.bytes));
}

void result_run_add_gpu(json_t *run, const struct gpu_figures *gpu)
{
    CLEANUP(str_done) struct str words = STR_EMPTY;
    const struct {
        const char *name;
        double value;
    } figures[] = {
        {"gpu_memory_mib", gpu->memory_mib},
        {"gpu_activity", gpu->activity},
        {"power_w", gpu->power_w},
        {"power_idle_w", gpu->power_idle_w},
        {"energy_j", gpu->energy_j},
        {"energy_above_idle_j", gpu->energy_above_idle_j},
        {"energy_slice_estimate_j", gpu->energy_slice_estimate_j},
        {"energy_window_s", gpu->window_s},
        {"sm_clock_mhz", gpu->sm_clock_mhz},
        {"sm_clock_mhz_min", gpu->sm_clock_mhz_min},
        {"memory_clock_mhz", gpu->memory_clock_mhz},
        {"temperature_c_max", gpu->temperature_c_max},
    };
    if (*gpu->reason)
        json_object_set_new(run, "gpu_unknown", json_string(gpu->reason));
    if (gpu->samples == 0)
        return;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        result_run_add_number(run, figures[i].name, figures[i].value);
    metric_clock_reasons(gpu->clock_reasons, &words);
    json_object_set_new(run, "clock_event_reasons", json_string(words.bytes));
    if (gpu->slice_rule)
        json_object_set_new(run, "energy_slice_rule", json_string(gpu->slice_rule));
    result_run_add_count(run, "gpu_samples", (uint64_t)gpu->samples);
}

/* One text for keys that are equal, whatever the order of their members; free() it. 1 and 1.0
 * differ, as they do for json_equal(). */
static char *key_identity(const json_t *key)
{
    char *text = json_dumps(key, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
    return text ? text : xstrdup("");
}

json_t *result_index_find(const struct result_index *index, const json_t *key)
{
    CLEANUP(free_ptr) char *identity = key_identity(key);
    return map_get(&index->places, identity);
}

void result_index_init(struct result_index *index, const json_t *document)
{
    const json_t *cells = json_object_get(document, "cells");
    *index = (struct result_index){0};
    for (size_t i = 0; i < json_array_size(cells); i++) {
        json_t *cell = json_array_get(cells, i);
        CLEANUP(free_ptr) char *identity = key_identity(json_object_get(cell, "key"));
        if (map_find(&index->places, identity) < 0) /* of two that are equal the first counts */
            map_put(&index->places, identity, cell);
    }
}

void result_index_done(struct result_index *index)
{
    map_done(&index->places);
}

void result_index_add(struct result_index *index, json_t *document, json_t *key, json_t *run)
{
    CLEANUP(free_ptr) char *identity = key_identity(key);
    json_t *cell = map_get(&index->places, identity);
    assert(json_is_object(key));
    if (!cell) {
        cell = json_object();
        json_object_set(cell, "key", key);
        json_object_set_new(cell, "runs", json_array());
        json_array_append_new(json_object_get(document, "cells"), cell);
        map_put(&index->places, identity, cell);
    }
    json_decref(key);
    json_array_append_new(json_object_get(cell, "runs"), run);
}

void result_document_add(json_t *document, json_t *key, json_t *run)
{
    struct result_index index;
    result_index_init(&index, document);
    result_index_add(&index, document, key, run);
    result_index_done(&index);
}

static bool run_is_valid(const json_t *run)
{
    const char *verdict = json_string_value(json_object_get(run, "verdict"));
    return verdict && strcmp(verdict, "VALID") == 0;
}

/* Runs that count: the valid ones, or where there is none those that ended well. */
static bool counts(const json_t *run, bool any_valid)
{
    const char *status = json_string_value(json_object_get(run, "status"));
    return any_valid ? run_is_valid(run) : status && strcmp(status, "ok") == 0;
}

static bool has_valid(const json_t *runs)
{
    size_t index;
    const json_t *run;
    json_array_foreach(runs, index, run)
    {
        if (run_is_valid(run))
            return true;
    }
    return false;
}

static json_t *summarize(const json_t *runs, const char *figure)
{
    VEC(double) values = {0};
    bool any_valid = has_valid(runs);
    size_t index;
    const json_t *run;
    json_array_foreach(runs, index, run)
    {
        const json_t *value = json_object_get(json_object_get(run, "figures"), figure);
        if (counts(run, any_valid) && json_is_number(value))
            vec_add(&values, json_number_value(value));
    }
    json_t *summary = json_object();
    struct stats_interval interval = stats_mean_interval(values.data, values.count, CONFIDENCE);
    json_object_set_new(summary, "count", json_integer((json_int_t)values.count));
    json_object_set_new(summary, "mean", json_real(stats_mean(values.data, values.count)));
    if (isfinite(interval.low) && isfinite(interval.high)) {
        json_object_set_new(summary, "low", json_real(interval.low));
        json_object_set_new(summary, "high", json_real(interval.high));
    }
    vec_done(&values);
    return summary;
}

void result_document_finish(json_t *document)
{
    size_t index, r;
    json_t *cell, *run;
    json_array_foreach(json_object_get(document, "cells"), index, cell)
    {
        json_t *summary = json_object();
        const json_t *runs = json_object_get(cell, "runs");
        bool any_valid = has_valid(runs);
        json_array_foreach(runs, r, run)
        {
            const char *name;
            json_t *value;
            json_object_foreach(json_object_get(run, "figures"), name, value)
            {
                if (counts(run, any_valid) && !json_object_get(summary, name))
                    json_object_set_new(summary, name, summarize(runs, name));
            }
        }
        json_object_set_new(cell, "summary", summary);
        json_object_set_new(cell, "verdict", json_string(any_valid ? "VALID" : "INVALID"));
    }
}

void result_key_text(const json_t *key, struct str *text)
{
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)key, name, value)
    {
        str_addf(text, "%s%s=", text->length ? " " : "", name);
        if (json_is_string(value))
            str_add(text, json_string_value(value));
        else if (json_is_number(value))
            str_add_number(text, json_number_value(value));
    }
}

/* The schema. */

static int check_run(const struct json_place *place, const json_t *run, struct error *err)
{
    const char *status, *verdict;
    const json_t *figures = NULL, *reasons = NULL;
    struct json_place figures_place = {place->file, place, "figures", 0};
    if (!json_is_object(run))
        return json_error_at(place, err, "not an object, expected a run");
    int failure = json_get_text(place, run, "status", true, &status, err);
    if (!failure)
        failure = json_get_text(place, run, "verdict", true, &verdict, err);
    if (!failure)
        failure = json_get_list(place, run, "verdict_reasons", true, &reasons, err);
    if (!failure)
        failure = json_get_object(place, run, "figures", true, &figures, err);
    if (failure)
        return failure;
    if (strcmp(verdict, "VALID") != 0 && strcmp(verdict, "INVALID") != 0)
        return json_error_at(place, err, "verdict is \"%s\", expected VALID or INVALID",
                             verdict);
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)figures, name, value)
    {
        double number = 0;
        failure =
            json_get_number(&figures_place, figures, name, true, -1e300, 1e300, &number, err);
        if (failure)
            return failure;
    }
    return 0;
}

static int check_cell(const struct json_place *place, const json_t *cell, struct error *err)
{
    const json_t *key = NULL, *runs = NULL;
    struct json_place runs_place = {place->file, place, "runs", 0};
    if (!json_is_object(cell))
        return json_error_at(place, err, "not an object, expected a cell");
    int failure = json_get_object(place, cell, "key", true, &key, err);
    if (!failure)
        failure = json_get_list(place, cell, "runs", true, &runs, err);
    for (size_t i = 0; !failure && i < json_array_size(runs); i++) {
        struct json_place run_place = {place->file, &runs_place, NULL, i};
        failure = check_run(&run_place, json_array_get(runs, i), err);
    }
    return failure;
}

int result_document_check(const char *name, const json_t *document, struct error *err)
{
    struct json_place place = {name, NULL, NULL, 0};
    struct json_place cells_place = {name, &place, "cells", 0};
    const char *text;
    const json_t *provenance = NULL, *cells = NULL;
    if (!json_is_object(document))
        return json_error_at(&place, err, "not an object, expected a result document");
    int failure = json_get_text(&place, document, "schema", true, &text, err);
    if (!failure && strcmp(text, RESULT_SCHEMA) != 0)
        failure = json_error_at(&place, err, "schema is \"%s\", expected \"%s\"", text,
                                RESULT_SCHEMA);
    if (!failure)
        failure = json_get_text(&place, document, "kind", true, &text, err);
    if (!failure)
        failure = json_get_object(&place, document, "provenance", true, &provenance, err);
    if (!failure)
        failure = json_get_list(&place, document, "cells", true, &cells, err);
    for (size_t i = 0; !failure && i < json_array_size(cells); i++) {
        struct json_place cell_place = {name, &cells_place, NULL, i};
        failure = check_cell(&cell_place, json_array_get(cells, i), err);
    }
    return failure;
}
