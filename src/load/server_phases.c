/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers' own statistics. See server_phases.h.
 */
#include "load/server_phases.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

enum { SERIES_NAME_MAX = 128 };

static const char *const phase_names[REQUEST_PHASE_COUNT] = {
    [REQUEST_QUEUE] = "queue",
    [REQUEST_INPUT] = "input",
    [REQUEST_COMPUTE] = "compute",
    [REQUEST_OUTPUT] = "output",
};

const char *request_phase_name(enum request_phase phase)
{
    assert(phase < REQUEST_PHASE_COUNT);
    return phase_names[phase];
}

/* Triton's statistics extension. */

static double sum_of(const json_t *stats, const char *name, const char *member)
{
    return json_number_value(json_object_get(json_object_get(stats, name), member));
}

static void add_model(const json_t *model, struct server_sums *sums)
{
    static const char *const members[REQUEST_PHASE_COUNT] = {
        [REQUEST_QUEUE] = "queue",
        [REQUEST_INPUT] = "compute_input",
        [REQUEST_COMPUTE] = "compute_infer",
        [REQUEST_OUTPUT] = "compute_output",
    };
    const json_t *stats = json_object_get(model, "inference_stats");
    sums->requests += sum_of(stats, "success", "count");
    sums->total_ns += sum_of(stats, "success", "ns");
    sums->has_total = true;
    for (int i = 0; i < REQUEST_PHASE_COUNT; i++) {
        sums->phase_ns[i] += sum_of(stats, members[i], "ns");
        sums->has_phase[i] |= json_object_get(stats, members[i]) != NULL;
    }
}

static int add_triton(const char *page, size_t length, struct server_sums *sums,
                      struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    int failure = json_parse("statistics", page, length, &root, err);
    if (failure)
        return failure;
    const json_t *models = json_object_get(root, "model_stats");
    if (json_array_size(models) == 0)
        return error_set(err, E_UNSUPPORTED,
                         "statistics without model_stats, expected Triton's form");
    for (size_t i = 0; i < json_array_size(models); i++)
        add_model(json_array_get(models, i), sums);
    return 0;
}

/* Prometheus. */

enum sum_kind { SUM_REQUESTS, SUM_TOTAL, SUM_PHASE /* + enum request_phase */ };

/* The series that add up to what we ask, by the servers' documentation; those of Triton and
 * MLServer were seen at work, OpenVINO's and vLLM's were not run. */
static const struct series {
    const char *name;
    int kind;
    double ns; /* of one unit; 1 for counts */
} known_series[] = {
    {"nv_inference_request_success", SUM_REQUESTS, 1},
    {"nv_inference_request_duration_us", SUM_TOTAL, 1e3},
    {"nv_inference_queue_duration_us", SUM_PHASE + REQUEST_QUEUE, 1e3},
    {"nv_inference_compute_input_duration_us", SUM_PHASE + REQUEST_INPUT, 1e3},
    {"nv_inference_compute_infer_duration_us", SUM_PHASE + REQUEST_COMPUTE, 1e3},
    {"nv_inference_compute_output_duration_us", SUM_PHASE + REQUEST_OUTPUT, 1e3},
    {"model_infer_request_duration_count", SUM_REQUESTS, 1},
    {"model_infer_request_duration_sum", SUM_TOTAL, 1e9},
    {"ovms_requests_success", SUM_REQUESTS, 1},
    {"ovms_request_time_us_sum", SUM_TOTAL, 1e3},
    {"ovms_wait_for_infer_req_time_us_sum", SUM_PHASE + REQUEST_QUEUE, 1e3},
    {"ovms_inference_time_us_sum", SUM_PHASE + REQUEST_COMPUTE, 1e3},
    {"vllm:e2e_request_latency_seconds_count", SUM_REQUESTS, 1},
    {"vllm:e2e_request_latency_seconds_sum", SUM_TOTAL, 1e9},
    {"vllm:request_queue_time_seconds_sum", SUM_PHASE + REQUEST_QUEUE, 1e9},
    {"vllm:request_inference_time_seconds_sum", SUM_PHASE + REQUEST_COMPUTE, 1e9},
};

static const struct series *find_series(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof known_series / sizeof *known_series; i++)
        if (strlen(known_series[i].name) == length &&
            memcmp(known_series[i].name, name, length) == 0)
            return &known_series[i];
    return NULL;
}

/* Whether any label has the model as its value; a text without labels is of all models. */
static bool is_of_model(const char *labels, size_t length, const char *model)
{
    char wanted[SERIES_NAME_MAX + 4];
    if (!model || length == 0)
        return true;
    int size = snprintf(wanted, sizeof wanted, "=\"%s\"", model);
    return size > 0 && (size_t)size < sizeof wanted &&
           memmem(labels, length, wanted, (size_t)size) != NULL;
}

static void add_value(const struct series *series, double value, struct server_sums *sums)
{
    assert(series->kind < SUM_PHASE + REQUEST_PHASE_COUNT);
    if (series->kind == SUM_REQUESTS) {
        sums->requests += value;
    } else if (series->kind == SUM_TOTAL) {
        sums->total_ns += value * series->ns;
        sums->has_total = true;
    } else {
        sums->phase_ns[series->kind - SUM_PHASE] += value * series->ns;
        sums->has_phase[series->kind - SUM_PHASE] = true;
    }
}

/* The end of {labels}, with braces inside quotes passed over. */
static size_t labels_length(const char *at, size_t length)
{
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (quoted && at[i] == '\\')
            i++;
        else if (at[i] == '"')
            quoted = !quoted;
        else if (at[i] == '}' && !quoted)
            return i + 1;
    }
    return length;
}

/* "name{labels} value [time]"; true for a count of requests. */
static bool add_line(const char *line, size_t length, const char *model,
                     struct server_sums *sums)
{
    size_t name_length = 0, labels = 0;
    while (name_length < length && !strchr("{ \t", line[name_length]))
        name_length++;
    const struct series *series = find_series(line, name_length);
    if (!series)
        return false;
    if (name_length < length && line[name_length] == '{')
        labels = labels_length(line + name_length, length - name_length);
    CLEANUP(str_done) struct str number = STR_EMPTY;
    str_add_bytes(&number, line + name_length + labels, length - name_length - labels);
    double value = strtod(number.bytes, NULL);
    if (isfinite(value) && is_of_model(line + name_length, labels, model))
        add_value(series, value, sums);
    return series->kind == SUM_REQUESTS;
}

static int add_prometheus(const char *page, size_t length, const char *model,
                          struct server_sums *sums, struct error *err)
{
    bool counts_requests = false;
    for (size_t at = 0; at < length;) {
        const char *end = memchr(page + at, '\n', length - at);
        size_t line_length = end ? (size_t)(end - page) - at : length - at;
        if (line_length > 0 && page[at] != '#')
            counts_requests |= add_line(page + at, line_length, model, sums);
        at += line_length + 1;
    }
    if (!counts_requests)
        return error_set(err, E_UNSUPPORTED,
                         "no count of requests in the names of Triton, MLServer, OpenVINO "
                         "Model Server or vLLM");
    return 0;
}

int server_sums_add(const char *page, size_t length, const char *model,
                    struct server_sums *sums, struct error *err)
{
    assert(page && sums);
    size_t blank = 0;
    while (blank < length && strchr(" \t\r\n", page[blank]))
        blank++;
    if (blank < length && page[blank] == '{')
        return add_triton(page, length, sums, err);
    return add_prometheus(page, length, model, sums, err);
}

struct server_phases server_phases_between(const struct server_sums *before,
                                           const struct server_sums *after)
{
    struct server_phases phases = {.total_ms = NAN};
    double requests = after->requests - before->requests;
    for (int i = 0; i < REQUEST_PHASE_COUNT; i++)
        phases.phase_ms[i] = NAN;
    if (!(requests >= 1 && requests < 1e15)) {
        snprintf(phases.reason, sizeof phases.reason,
                 requests < 0 ? "the server began anew" : "the server counted no request");
        return phases;
    }
    phases.requests = (uint64_t)requests;
    if (after->has_total)
        phases.total_ms = (after->total_ns - before->total_ns) / requests / 1e6;
    for (int i = 0; i < REQUEST_PHASE_COUNT; i++)
        if (after->has_phase[i])
            phases.phase_ms[i] = (after->phase_ns[i] - before->phase_ns[i]) / requests / 1e6;
    return phases;
}

double server_phases_rest_ms(const struct server_phases *phases)
{
    double rest_ms = phases->total_ms;
    for (int i = 0; i < REQUEST_PHASE_COUNT; i++)
        rest_ms -= phases->phase_ms[i]; /* NAN stays NAN */
    return rest_ms;
}
