/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench slo`: the highest rate of requests at which a latency objective holds.
 */
#include <math.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/bench_http_options.h"
#include "cli/bench_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "load/result_document.h"
#include "load/slo_search.h"

struct slo_command_options {
    struct bench_http how;
    double latency_ms, percentile, first_rps, least_rps, highest_rps, tolerance;
    long long confirmations, runs_max;
    const char *kind, *output;
    bool json;
};

static const struct option_spec options[] = {
    OPTION_NUMBER('l', "latency-ms", struct slo_command_options, latency_ms, "MS", "100", 0.001,
                  3.6e6, "the objective"),
    OPTION_NUMBER('p', "percentile", struct slo_command_options, percentile, "P", "99", 1,
                  99.99, "of the latency from the intended send time"),
    OPTION_CHOICE('r', "arrivals", struct slo_command_options, kind, "poisson|constant",
                  "poisson", "how requests are spaced"),
    OPTION_NUMBER(0, "first-rate", struct slo_command_options, first_rps, "RPS", "10", 0.001,
                  1e6, "where the search begins"),
    OPTION_NUMBER(0, "least-rate", struct slo_command_options, least_rps, "RPS", "0.1", 0.001,
                  1e6, "below which it gives up"),
    OPTION_NUMBER(0, "highest-rate", struct slo_command_options, highest_rps, "RPS", "100000",
                  0.001, 1e6, "above which it does not look"),
    OPTION_NUMBER(0, "tolerance", struct slo_command_options, tolerance, "SHARE", "0.02", 0.001,
                  0.5, "how near the rate is found"),
    OPTION_INT(0, "confirmations", struct slo_command_options, confirmations, "N", "2", 0, 100,
               "runs that the rate found must pass again"),
    OPTION_INT(0, "max-runs", struct slo_command_options, runs_max, "N", "40", 1, 10000,
               "runs of all together"),
    OPTION_TEXT('o', "output", struct slo_command_options, output, "FILE", NULL,
                "write the result document (JSON) to FILE"),
    OPTION_FLAG(0, "json", struct slo_command_options, json,
                "print the result document instead of a table"),
    BENCH_HTTP_OPTIONS,
};

struct slo_session {
    const struct slo_command_options *given;
    struct http_run_options run;
    struct http_runner *runner;
    json_t *document;
    struct slo_objective objective;
    struct progress progress;
};

static int measure(void *context, double rate_rps, int run, double *ret_share_within,
                   struct error *err)
{
    struct slo_session *session = context;
    CLEANUP(http_run_result_done) struct http_run_result result = {0};
    char arrivals[64];
    snprintf(arrivals, sizeof arrivals, "%s:%.6g", session->given->kind, rate_rps);
    progress_show(&session->progress, "run %d: %.6g requests/s", run + 1, rate_rps);
    session->run.arrivals = arrivals;
    session->run.seed = (uint64_t)(session->given->how.seed + run);
    int failure = http_runner_run(session->runner, &session->run, &result, err);
    if (failure)
        return failure;
    *ret_share_within = slo_share_within(&result.load, session->objective);
    json_t *json = bench_http_run_json(&result);
    result_run_add_number(json, "share_within", *ret_share_within);
    result_document_add(
        session->document,
        json_pack("{s:s, s:s}", "url", session->run.urls[0], "arrivals", arrivals), json);
    return 0;
}

static void add_answer(const struct slo_session *session, const struct slo_result *result)
{
    json_object_set_new(session->document, "slo",
                        json_pack("{s:f, s:f, s:f, s:b, s:b}", "rate_rps", result->rate_rps,
                                  "percentile", session->objective.percentile, "latency_ms",
                                  (double)session->objective.limit_ns / 1e6, "confirmed",
                                  result->confirmed, "at_highest", result->at_highest));
}

static void add_text(const struct slo_session *session, const struct slo_result *result,
                     struct str *text)
{
    static const struct table_column columns[] = {{"run", TABLE_ALIGN_RIGHT},
                                                  {"requests/s", TABLE_ALIGN_RIGHT},
                                                  {"within, %", TABLE_ALIGN_RIGHT},
                                                  {"objective", TABLE_ALIGN_LEFT}};
    CLEANUP(table_free_ptr) struct table *table = table_new(columns, 4);
    for (size_t i = 0; i < result->probes.count; i++) {
        const struct slo_probe *probe = &result->probes.data[i];
        table_addf(table, "%zu", i + 1);
        table_addf(table, "%.6g", probe->rate_rps);
        table_add_number(table, probe->share_within * 100, 2);
        table_addf(table, "%s%s", probe->meets ? "met" : "missed",
                   probe->confirms ? ", repeated" : "");
    }
    table_write(table, text);
    double latency_ms = (double)session->objective.limit_ns / 1e6;
    if (result->rate_rps == 0)
        str_addf(text, "p%g of at most %g ms is not met at %g requests/s\n",
                 session->objective.percentile, latency_ms, session->given->least_rps);
    else
        str_addf(text, "%s%.6g requests/s with p%g of at most %g ms%s\n",
                 result->at_highest ? "at least " : "", result->rate_rps,
                 session->objective.percentile, latency_ms,
                 result->confirmed ? ", confirmed" : ", NOT confirmed (--max-runs)");
}

static int write_results(struct slo_session *session, const struct slo_result *result,
                         struct error *err)
{
    CLEANUP(str_done) struct str json = STR_EMPTY;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    add_answer(session, result);
    add_text(session, result, &text);
    result_document_finish(session->document);
    json_write_pretty(session->document, &json);
    int failure = session->given->output ? output_write(session->given->output, &json, err) : 0;
    if (!failure)
        failure = output_write(NULL, session->given->json ? &json : &text, err);
    return failure;
}

static int search(struct slo_session *session, struct error *err)
{
    CLEANUP(slo_result_done) struct slo_result result = {0};
    const struct slo_command_options *given = session->given;
    struct slo_options search = {.objective = session->objective,
                                 .first_rps = given->first_rps,
                                 .least_rps = given->least_rps,
                                 .highest_rps = fmax(given->highest_rps, given->first_rps),
                                 .tolerance = given->tolerance,
                                 .confirmations = (int)given->confirmations,
                                 .runs_max = (int)given->runs_max};
    int failure = slo_search(&search, measure, session, &result, err);
    progress_done(&session->progress);
    if (failure && failure != -E_INTERRUPTED)
        return failure;
    int written = write_results(session, &result, err);
    if (written || failure)
        return written ? written : failure;
    if (result.rate_rps == 0 || !result.confirmed)
        return error_set(err, E_NO, "no rate was found that holds");
    return 0;
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct slo_command_options *given = raw;
    CLEANUP(str_done) struct str body = STR_EMPTY;
    struct slo_session session = {
        .given = given,
        .objective = {given->percentile, (int64_t)llround(given->latency_ms * 1e6)}};
    if (given->least_rps > given->first_rps)
        return error_set(err, E_USAGE, "--least-rate is above --first-rate");
    int failure = bench_http_settings(&given->how, arguments, &body, &session.run, err);
    if (!failure)
        failure = http_runner_new(&session.run, &session.runner, err);
    if (failure)
        return failure;
    session.document = result_document_new("slo", TRANCHE_VERSION, (uint64_t)given->how.seed);
    failure = search(&session, err);
    http_runner_free(session.runner);
    json_decref(session.document);
    return failure;
}

const struct command cmd_bench_slo = {
    .name = "slo",
    .summary = "the highest rate that keeps a latency objective",
    .positionals = "URL…",
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .description =
        "Loads servers over HTTP at one rate after the other, doubled and halved until one "
        "keeps the objective and one does not, then bisected, and measures the rate found "
        "again. Latency counts from the intended send time; a request that failed, timed out "
        "or was dropped counts as one over the limit.\n\n"
        "Several URLs, one an instance of a layout, share the rate: the answer is that of "
        "the whole layout. Exit status 1 when no rate holds.",
    .examples =
        "tranche bench slo --latency-ms 50 --api kserve -m resnet http://127.0.0.1:8000\n"
        "tranche bench slo -l 100 -p 95 --duration 30 --first-rate 200 "
        "http://127.0.0.1:8000/ http://127.0.0.1:8001/",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct slo_command_options),
    .run = run,
};
