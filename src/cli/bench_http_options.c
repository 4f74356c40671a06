/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of load over HTTP. See bench_http_options.h.
 */
#include "cli/bench_http_options.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "cli/bench_options.h"
#include "load/result_document.h"

static enum http_api find_api(const char *name)
{
    for (int i = 0; i < HTTP_API_COUNT; i++)
        if (strcmp(http_api_name((enum http_api)i), name) == 0)
            return (enum http_api)i;
    return HTTP_API_PLAIN; /* the option table lets no other through */
}

static int64_t nanoseconds(double seconds)
{
    return (int64_t)llround(seconds * 1e9);
}

int bench_http_settings(const struct bench_http *how, struct arguments urls, struct str *body,
                        struct http_run_options *ret_run, struct error *err)
{
    int failure = how->body_file ? file_read(how->body_file, FILE_SIZE_LIMIT, body, err) : 0;
    if (failure)
        return failure;
    *ret_run = (struct http_run_options){
        .urls = urls.items,
        .url_count = urls.count,
        .request = {.api = find_api(how->api),
                    .model = how->model,
                    .headers = how->headers.items,
                    .header_count = how->headers.count,
                    .method = how->method,
                    .body = how->body_file ? body->bytes : NULL,
                    .body_length = body->length,
                    .batch = (int)how->batch,
                    .shapes = how->shapes,
                    .binary = how->binary,
                    .prompt = how->prompt,
                    .tokens_max = (int)how->tokens_max,
                    .seed = (uint64_t)how->seed},
        .server_metrics = how->server_metrics.items,
        .server_metrics_count = how->server_metrics.count,
        .connections_max = (size_t)how->connections,
        .warmup_ns = nanoseconds(how->warmup_s),
        .duration_ns = nanoseconds(how->duration_s),
        .timeout_ns = nanoseconds(how->timeout_s),
        .failures_max = how->failures_max,
        .requests_min = (uint64_t)how->requests_min,
        .seed = (uint64_t)how->seed,
        .stop = bench_interrupts(),
    };
    return 0;
}

static void add_counts(const struct http_run_result *result, json_t *run)
{
    const struct open_loop_result *load = &result->load;
    result_run_add_count(run, "scheduled", load->scheduled);
    result_run_add_count(run, "completed", load->completed);
    result_run_add_count(run, "failed", load->failed);
    result_run_add_count(run, "timed_out", load->timed_out);
    result_run_add_count(run, "dropped", load->dropped);
    result_run_add_count(run, "in_flight_peak", load->in_flight_peak);
    result_run_add_count(run, "connections", result->connections);
    result_run_add_count(run, "repeated", result->repeated);
    result_run_add_count(run, "body_bytes", result->body_bytes);
    for (int i = 0; i < HTTP_FAILURE_COUNT; i++) {
        CLEANUP(free_ptr)
        char *name = xasprintf("failed_%s", http_failure_name((enum http_failure)i));
        result_run_add_count(run, name, result->failures[i]);
    }
}

/* What the server says of its part, and what is left of the time from sending. */
static void add_server(const struct http_run_result *result, json_t *run)
{
    const struct server_phases *server = &result->server;
    if (*server->reason)
        json_object_set_new(run, "server_phases_unknown", json_string(server->reason));
    if (server->requests == 0)
        return;
    result_run_add_count(run, "server_requests", server->requests);
    result_run_add_number(run, "server_total_ms_mean", server->total_ms);
    for (int i = 0; i < REQUEST_PHASE_COUNT; i++) {
        CLEANUP(free_ptr)
        char *name = xasprintf("server_%s_ms_mean", request_phase_name((enum request_phase)i));
        result_run_add_number(run, name, server->phase_ms[i]);
    }
    result_run_add_number(run, "server_rest_ms_mean", server_phases_rest_ms(server));
    result_run_add_number(run, "outside_server_ms_mean", http_run_outside_ms(result));
}

json_t *bench_http_run_json(const struct http_run_result *result)
{
    const struct open_loop_result *load = &result->load;
    json_t *run = result_run_new(result->verdict, "ok", "");
    double seconds = (double)load->window_ns / 1e9;
    result_run_add_number(run, "throughput_rps", load->completed_rps);
    result_run_add_number(run, "offered_rps", load->offered_rps);
    result_run_add_number(run, "duration_s", seconds);
    result_run_add_number(run, "client_cpu_share", result->client_cpu_share);
    result_run_add_times(run, "latency", load->latency);
    result_run_add_times(run, "service", load->service);
    result_run_add_times(run, "send_lag", load->send_lag);
    if (result->first_token) {
        result_run_add_number(run, "tokens_per_s", (double)result->tokens / seconds);
        result_run_add_count(run, "tokens", result->tokens);
        result_run_add_times(run, "first_token", result->first_token);
        result_run_add_times(run, "token_gap", result->token_gap);
        result_run_add_times(run, "per_token", result->per_token);
    }
    add_server(result, run);
    add_counts(result, run);
    if (*result->first_failure)
        json_object_set_new(run, "first_failure", json_string(result->first_failure));
    return run;
}
