/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench http`: load against servers over HTTP.
 */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/bench_http_options.h"
#include "cli/bench_options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "load/result_document.h"

enum { BODY_MAX = 256 << 20 };

struct http_command_options {
    struct bench_http how;
    const char *arrivals;
    long long concurrency, repeat;
    const char *output, *samples;
    bool json;
};

static const struct option_spec options[] = {
    OPTION_TEXT('r', "arrivals", struct http_command_options, arrivals, "KIND:RATE", NULL,
                "open loop: constant:RATE, poisson:RATE, burst:RATE,SIZE, ramp:FROM..TO or "
                "trace:FILE (default: closed loop)"),
    OPTION_INT('c', "concurrency", struct http_command_options, concurrency, "N", "1", 1,
               100000, "requests in flight in the closed loop"),
    OPTION_INT('n', "repeat", struct http_command_options, repeat, "N", "1", 1, 1000,
               "repetitions, for confidence intervals"),
    OPTION_TEXT('o', "output", struct http_command_options, output, "FILE", NULL,
                "write the result document (JSON) to FILE"),
    OPTION_TEXT(0, "samples", struct http_command_options, samples, "FILE", NULL,
                "write every answered request to FILE, one line of JSON each"),
    OPTION_FLAG(0, "json", struct http_command_options, json,
                "print the result document instead of a table"),
    BENCH_HTTP_OPTIONS,
};

static json_t *make_key(const struct http_command_options *given,
                        const struct http_run_options *run)
{
    CLEANUP(str_done) struct str urls = STR_EMPTY;
    json_t *key = json_object();
    for (size_t i = 0; i < run->url_count; i++)
        str_addf(&urls, "%s%s", i ? " " : "", run->urls[i]);
    json_object_set_new(key, "api", json_string(given->how.api));
    json_object_set_new(key, "url", json_string(urls.bytes));
    if (given->how.model)
        json_object_set_new(key, "model", json_string(given->how.model));
    json_object_set_new(key, "batch", json_integer(given->how.batch));
    if (given->arrivals)
        json_object_set_new(key, "arrivals", json_string(given->arrivals));
    else
        json_object_set_new(key, "concurrency", json_integer(given->concurrency));
    return key;
}

static void add_time_row(struct table *table, const char *name, const struct hist *times)
{
    static const double percents[] = {50, 90, 95, 99, 99.9};
    if (!times || hist_count(times) == 0)
        return;
    table_add(table, name);
    table_add_number(table, hist_mean_ns(times) / 1e6, 3);
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++)
        table_add_number(table, (double)hist_percentile_ns(times, percents[i]) / 1e6, 3);
    table_add_number(table, (double)hist_max_ns(times) / 1e6, 3);
}

static void add_table(const struct http_run_result *result, struct str *text)
{
    static const struct table_column columns[] = {
        {"milliseconds", TABLE_ALIGN_LEFT}, {"mean", TABLE_ALIGN_RIGHT},
        {"p50", TABLE_ALIGN_RIGHT},         {"p90", TABLE_ALIGN_RIGHT},
        {"p95", TABLE_ALIGN_RIGHT},         {"p99", TABLE_ALIGN_RIGHT},
        {"p99.9", TABLE_ALIGN_RIGHT},       {"max", TABLE_ALIGN_RIGHT},
    };
    CLEANUP(table_free_ptr)
    struct table *table = table_new(columns, sizeof columns / sizeof *columns);
    add_time_row(table, "latency", result->load.latency);
    add_time_row(table, "from sending", result->load.service);
    add_time_row(table, "send lag", result->load.send_lag);
    add_time_row(table, "first token", result->first_token);
    add_time_row(table, "between tokens", result->token_gap);
    add_time_row(table, "per token", result->per_token);
    table_write(table, text);
}

/* "server: queue 1.2 ms, compute 3.4 ms of 4.7 ms; outside it 0.3 ms" */
static void add_server(const struct http_run_result *result, struct str *text)
{
    const struct server_phases *server = &result->server;
    double outside_ms = http_run_outside_ms(result);
    const char *before = "";
    if (server->requests == 0)
        return;
    str_addf(text,
             "server's own means over %llu requests: ", (unsigned long long)server->requests);
    for (int i = 0; i < REQUEST_PHASE_COUNT; i++) {
        if (isnan(server->phase_ms[i]))
            continue;
        str_addf(text, "%s%s %.3g ms", before, request_phase_name((enum request_phase)i),
                 server->phase_ms[i]);
        before = ", ";
    }
    if (!isnan(server_phases_rest_ms(server)))
        str_addf(text, "%srest %.3g ms", before, server_phases_rest_ms(server));
    if (!isnan(server->total_ms))
        str_addf(text, "; %.3g ms in all", server->total_ms);
    if (!isnan(outside_ms))
        str_addf(text, "; %.3g ms outside it", outside_ms);
    str_add_char(text, '\n');
}

static void add_text(const struct http_run_result *result, struct str *text)
{
    const struct open_loop_result *load = &result->load;
    double seconds = (double)load->window_ns / 1e9;
    str_addf(text, "%.1f requests/s answered, %.1f offered, over %.3g s\n", load->completed_rps,
             load->offered_rps, seconds);
    if (result->first_token)
        str_addf(text, "%.1f tokens/s\n", (double)result->tokens / seconds);
    add_table(result, text);
    add_server(result, text);
    str_addf(text,
             "requests: %llu ok, %llu failed, %llu timed out, %llu dropped; at most %zu in "
             "flight\n",
             (unsigned long long)load->completed, (unsigned long long)load->failed,
             (unsigned long long)load->timed_out, (unsigned long long)load->dropped,
             load->in_flight_peak);
    str_addf(text, "client: %llu connections, %.0f %% of a core\n",
             (unsigned long long)result->connections, 100 * result->client_cpu_share);
    if (*result->first_failure)
        str_addf(text, "first failure: %s\n", result->first_failure);
    str_add(text, verdict_is_valid(result->verdict) ? "VALID" : "INVALID");
    verdict_explain(result->verdict, text);
    str_add_char(text, '\n');
}

struct http_session {
    const struct http_command_options *given;
    struct http_run_options run;
    struct http_runner *runner;
    json_t *document;
    struct str text, samples;
    int runs;
    bool all_valid;
};

/* Times in ns of CLOCK_MONOTONIC; intended is when the request was due (closed loop: sent). */
static void add_samples(const struct open_loop_result *load, int run, struct str *text)
{
    for (size_t i = 0; i < load->samples.count; i++)
        str_addf(text, "{\"run\":%d,\"intended_ns\":%lld,\"end_ns\":%lld}\n", run,
                 (long long)load->samples.data[i].intended_ns,
                 (long long)load->samples.data[i].end_ns);
}

static int run_once(struct http_session *session, struct error *err)
{
    CLEANUP(http_run_result_done) struct http_run_result result = {0};
    int failure = http_runner_run(session->runner, &session->run, &result, err);
    if (failure && (failure != -E_INTERRUPTED || result.load.completed == 0))
        return failure;
    session->all_valid &= verdict_is_valid(result.verdict);
    result_document_add(session->document, make_key(session->given, &session->run),
                        bench_http_run_json(&result));
    add_text(&result, &session->text);
    if (session->given->samples)
        add_samples(&result.load, session->runs, &session->samples);
    session->runs++;
    return failure;
}

static int write_results(struct http_session *session, struct error *err)
{
    CLEANUP(str_done) struct str json = STR_EMPTY;
    const struct http_command_options *given = session->given;
    result_document_finish(session->document);
    json_write_pretty(session->document, &json);
    int failure = given->output ? output_write(given->output, &json, err) : 0;
    if (!failure && given->samples)
        failure =
            file_write(given->samples, session->samples.bytes, session->samples.length, err);
    if (!failure && (!given->output || strcmp(given->output, "-") != 0))
        failure = output_write(NULL, given->json ? &json : &session->text, err);
    return failure;
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct http_command_options *given = raw;
    CLEANUP(str_done) struct str body = STR_EMPTY;
    struct http_session session = {
        .given = given, .text = STR_EMPTY, .samples = STR_EMPTY, .all_valid = true};
    int failure = bench_http_settings(&given->how, arguments, &body, &session.run, err);
    if (failure)
        return failure;
    session.run.arrivals = given->arrivals;
    session.run.concurrency = (size_t)given->concurrency;
    failure = http_runner_new(&session.run, &session.runner, err);
    session.document = result_document_new("http", TRANCHE_VERSION, (uint64_t)given->how.seed);
    for (long long i = 0; !failure && i < given->repeat; i++) {
        session.run.seed = (uint64_t)(given->how.seed + i);
        failure = run_once(&session, err);
    }
    if (!failure || (failure == -E_INTERRUPTED && session.text.length > 0)) {
        int written = write_results(&session, err);
        failure = written ? written : failure;
    }
    if (!failure && !session.all_valid)
        failure = error_set(err, E_NO, "the measurement is INVALID");
    http_runner_free(session.runner);
    json_decref(session.document);
    str_done(&session.text);
    str_done(&session.samples);
    return failure;
}

const struct command cmd_bench_http = {
    .name = "http",
    .summary = "load against servers over HTTP",
    .positionals = "URL…",
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .description =
        "Sends requests to each URL in turn and says what came back: answers a second, "
        "latency, send lag, failures, and for streamed tokens the times to the first and "
        "between them. With --arrivals requests are sent when they are due, whether or not "
        "earlier ones have been answered, and latency counts from the intended time; without, "
        "--concurrency requests are in flight at any time.\n\n"
        "Interfaces: plain HTTP; kserve, the KServe v2 protocol (Triton, MLServer, OpenVINO "
        "Model Server, `tranche serve`) with inputs made up from the model's metadata; "
        "openai, streamed completions. Failed, late and dropped requests are counted and "
        "kept out of percentiles.\n\n"
        "Exit status 1 and INVALID with every reason when the figures should not be "
        "believed: too many failures, too few answers, the target fell behind the rate, or "
        "the client itself was late.",
    .examples =
        "tranche bench http http://127.0.0.1:8080/ --concurrency 64 --duration 5\n"
        "tranche bench http --api kserve --model resnet --batch 4 -r poisson:200 "
        "http://127.0.0.1:8000\n"
        "tranche bench http --api openai --model qwen -r constant:2 http://127.0.0.1:8001",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct http_command_options),
    .run = run,
};
