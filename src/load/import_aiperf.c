/* SPDX-License-Identifier: Apache-2.0
 *
 * profile_export_aiperf.json of AIPerf (and GenAI-Perf's of the same form): an object with
 * metric → {unit, avg, p50, …}, in some versions under "records".
 */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "load/import_format.h"

static const struct {
    const char *key;
    enum import_number number;
} statistics[] = {
    {"avg", NUMBER_MEAN_MS}, {"p50", NUMBER_P50_MS}, {"p90", NUMBER_P90_MS},
    {"p95", NUMBER_P95_MS},  {"p99", NUMBER_P99_MS},
};

static const struct {
    const char *unit;
    double milliseconds;
} units[] = {
    {"ms", 1},    {"milliseconds", 1},    {"s", 1e3},   {"sec", 1e3},         {"seconds", 1e3},
    {"us", 1e-3}, {"microseconds", 1e-3}, {"ns", 1e-6}, {"nanoseconds", 1e-6}};

/* Figures of language models, kept as columns of their own by their average. */
static const char *const kept[] = {"time_to_first_token",     "inter_token_latency",
                                   "output_token_throughput", "output_sequence_length",
                                   "input_sequence_length",   "request_count"};

static bool aiperf_matches(const struct import_input *input)
{
    size_t at = 0;
    while (at < input->length && strchr(" \t\r\n", input->bytes[at]))
        at++;
    return at < input->length && input->bytes[at] == '{' &&
           memmem(input->bytes, input->length, "request_latency", 15) != NULL;
}

static int read_scale(const struct json_place *place, const json_t *metric, double *ret_scale,
                      struct error *err)
{
    const char *unit = "ms";
    int failure = json_get_text(place, metric, "unit", false, &unit, err);
    if (failure)
        return failure;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].unit) == 0) {
            *ret_scale = units[i].milliseconds;
            return 0;
        }
    }
    return json_error_at(place, err, "unit is \"%s\", expected ms, s, us or ns", unit);
}

static int read_latency(const struct json_place *root_place, const json_t *records,
                        struct import_row *row, struct error *err)
{
    struct json_place place = {root_place->file, root_place, "request_latency", 0};
    const json_t *metric = NULL;
    double scale = 1;
    int failure = json_get_object(root_place, records, "request_latency", true, &metric, err);
    if (!failure)
        failure = read_scale(&place, metric, &scale, err);
    for (size_t i = 0; !failure && i < sizeof statistics / sizeof *statistics; i++) {
        double *number = &row->numbers[statistics[i].number];
        failure =
            json_get_number(&place, metric, statistics[i].key, false, 0, 1e15, number, err);
        *number *= scale;
    }
    return failure;
}

static int read_throughput(const struct json_place *root_place, const json_t *records,
                           struct import_row *row, struct error *err)
{
    struct json_place place = {root_place->file, root_place, "request_throughput", 0};
    const json_t *metric = NULL;
    int failure =
        json_get_object(root_place, records, "request_throughput", true, &metric, err);
    if (!failure)
        failure = json_get_number(&place, metric, "avg", true, 0, 1e15,
                                  &row->numbers[NUMBER_THROUGHPUT], err);
    return failure;
}

static void keep_averages(const json_t *records, struct import_rows *rows,
                          struct import_row *row)
{
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        const json_t *metric = json_object_get(records, kept[i]);
        const json_t *average = json_object_get(metric, "avg");
        const char *unit = json_string_value(json_object_get(metric, "unit"));
        if (!json_is_number(average))
            continue;
        str_add_number(&text, json_number_value(average));
        const char *name = kept[i];
        if (unit && (strcmp(unit, "ms") == 0 || strcmp(unit, "s") == 0))
            name = arena_printf(rows->arena, "%s_%s", kept[i], unit);
        *vec_push(&row->extras) =
            (struct import_extra){name, arena_strdup(rows->arena, text.bytes)};
    }
}

/* The one model that the run's own configuration names; NULL for none or several. */
static const char *find_model(const json_t *root)
{
    const json_t *config = json_object_get(root, "input_config");
    const json_t *endpoint = json_object_get(config, "endpoint");
    const json_t *lists[] = {json_object_get(endpoint, "model_names"),
                             json_object_get(config, "model_names"),
                             json_object_get(config, "model")};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (json_is_string(lists[i]))
            return json_string_value(lists[i]);
        if (json_array_size(lists[i]) == 1)
            return json_string_value(json_array_get(lists[i], 0));
    }
    return NULL;
}

static int aiperf_read(const struct import_input *input, struct import_rows *rows,
                       struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    struct json_place place = {input->name, NULL, NULL, 0};
    int failure = json_parse(input->name, input->bytes, input->length, &root, err);
    if (failure)
        return failure;
    const json_t *records = json_object_get(root, "records");
    if (!json_is_object(records))
        records = root;
    if (!json_is_object(root))
        return json_error_at(&place, err, "not an object, expected %s", import_aiperf.what);
    struct import_row *row = import_rows_add(rows, input->name, 1);
    const char *model = find_model(root);
    if (model)
        row->model = arena_strdup(rows->arena, model);
    failure = read_latency(&place, records, row, err);
    if (!failure)
        failure = read_throughput(&place, records, row, err);
    keep_averages(records, rows, row);
    return failure;
}

const struct import_format import_aiperf = {
    .name = "aiperf",
    .what = "profile_export_aiperf.json of AIPerf, with request_latency and "
            "request_throughput",
    .batch = 1,
    .matches = aiperf_matches,
    .read = aiperf_read,
};
