/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs over HTTP. See http_run.h.
 */
#include "load/http_run.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "load/closed_loop.h"

enum { REACH_TIMEOUT_MS = 5000 };
/* The generator is late when the 99th percentile of its lag is over both. */
#define LAG_NS         ((int64_t)1000000)
#define LAG_OF_LATENCY 0.1
#define BEHIND         0.95 /* completed ÷ offered below which the target fell behind */

struct http_runner {
    struct http_address *addresses;
    struct http_payload *payloads;     /* one an address */
    struct str *requests, *statistics; /* bytes; an address, "": none */
    const char **pages;                /* of statistics that there are */
    size_t count, page_count;
};

void http_runner_free(struct http_runner *runner)
{
    if (!runner)
        return;
    for (size_t i = 0; i < runner->count; i++) {
        str_done(&runner->requests[i]);
        str_done(&runner->statistics[i]);
    }
    free(runner->requests);
    free(runner->statistics);
    free(runner->pages);
    free(runner->addresses);
    free(runner->payloads);
    free(runner);
}

int http_runner_new(const struct http_run_options *options, struct http_runner **ret_runner,
                    struct error *err)
{
    CLEANUP(http_runner_free_ptr) struct http_runner *runner = xcalloc(1, sizeof *runner);
    assert(options->url_count > 0);
    runner->addresses = xcalloc(options->url_count, sizeof *runner->addresses);
    runner->payloads = xcalloc(options->url_count, sizeof *runner->payloads);
    runner->requests = xcalloc(options->url_count, sizeof *runner->requests);
    runner->statistics = xcalloc(options->url_count, sizeof *runner->statistics);
    runner->pages = xcalloc(options->url_count, sizeof *runner->pages);
    for (size_t i = 0; i < options->url_count; i++) {
        struct http_url url;
        runner->requests[i] = runner->statistics[i] = STR_EMPTY;
        runner->count = i + 1;
        int failure = http_url_parse(options->urls[i], &url, err);
        if (!failure)
            failure = http_url_reach(&url, REACH_TIMEOUT_MS, &runner->addresses[i], err);
        if (!failure)
            failure = http_request_make(&url, &options->request, &runner->requests[i], err);
        if (!failure && options->request.api == HTTP_API_KSERVE)
            failure =
                http_kserve_statistics(&url, &options->request, &runner->statistics[i], err);
        if (failure)
            return failure;
        runner->payloads[i] =
            (struct http_payload){runner->requests[i].bytes, runner->requests[i].length};
        if (runner->statistics[i].length > 0)
            runner->pages[runner->page_count++] = runner->statistics[i].bytes;
    }
    *ret_runner = STEAL(runner);
    return 0;
}

static int64_t thread_cpu_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
           ((int64_t)usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

static int run_open(struct load_target *target, const struct http_run_options *options,
                    struct open_loop_result *ret_result, struct error *err)
{
    struct arrivals arrivals = {0};
    int failure = arrivals_parse(options->arrivals, options->warmup_ns + options->duration_ns,
                                 options->seed, &arrivals, err);
    if (failure)
        return failure;
    failure = open_loop_run(target,
                            &(struct open_loop_options){
                                .arrivals = &arrivals,
                                .warmup_ns = options->warmup_ns,
                                .timeout_ns = options->timeout_ns,
                                .in_flight_max = options->connections_max,
                                .stop = options->stop,
                            },
                            ret_result, err);
    arrivals_done(&arrivals);
    return failure;
}

static int run_closed(struct load_target *target, const struct http_run_options *options,
                      struct open_loop_result *ret_result, struct error *err)
{
    return closed_loop_run(target,
                           &(struct closed_loop_options){
                               .concurrency = options->concurrency,
                               .warmup_ns = options->warmup_ns,
                               .duration_ns = options->duration_ns,
                               .stop = options->stop,
                           },
                           ret_result, err);
}

static struct hist *copy_hist(const struct hist *from)
{
    struct hist *copy = hist_new();
    hist_merge(copy, from);
    return copy;
}

static void take_stats(const struct load_target *target, bool streams,
                       struct http_run_result *result)
{
    const struct http_engine_stats *stats = http_engine_stats(target);
    memcpy(result->failures, stats->failures, sizeof result->failures);
    memcpy(result->first_failure, stats->first_failure, sizeof result->first_failure);
    result->connections = stats->connections;
    result->repeated = stats->repeated;
    result->body_bytes = stats->body_bytes;
    result->tokens = stats->tokens;
    if (!streams)
        return;
    result->first_token = copy_hist(stats->first_token);
    result->token_gap = copy_hist(stats->token_gap);
    result->per_token = copy_hist(stats->per_token);
}

static struct steady_state find_steady(const struct open_loop_result *load, int64_t start_ns)
{
    CLEANUP(free_ptr)
    struct steady_work *work = xcalloc(load->samples.count + 1, sizeof *work);
    for (size_t i = 0; i < load->samples.count; i++)
        work[i] = (struct steady_work){load->samples.data[i].intended_ns,
                                       load->samples.data[i].end_ns};
    return steady_check(work, load->samples.count, start_ns, start_ns + load->window_ns,
                        steady_rule_standard);
}

static void judge(const struct http_run_options *options, struct http_run_result *result)
{
    const struct open_loop_result *load = &result->load;
    struct verdict *verdict = &result->verdict;
    double allowed = options->failures_max * (double)load->scheduled;
    int64_t lag_ns = hist_percentile_ns(load->send_lag, 99);
    int64_t median_ns = hist_percentile_ns(load->latency, 50);
    verdict_add(verdict, REASON_TOO_FEW, load->completed < options->requests_min);
    /* An open loop's throughput moves with its arrivals; there REASON_LOST speaks. */
    verdict_add(verdict, REASON_UNSTEADY, !options->arrivals && !result->steady.steady);
    verdict_add(verdict, REASON_CLIENT,
                lag_ns > LAG_NS && (double)lag_ns > LAG_OF_LATENCY * (double)median_ns);
    verdict_add(verdict, REASON_DROPPED, (double)load->dropped > allowed);
    verdict_add(verdict, REASON_TIMED_OUT, (double)load->timed_out > allowed);
    verdict_add(verdict, REASON_FAILED, (double)load->failed > allowed);
    verdict_add(verdict, REASON_LOST, load->completed_rps < BEHIND * load->offered_rps);
}

/* The pages asked for, else those that the interface has. */
static struct server_pages choose_pages(const struct http_runner *runner,
                                        const struct http_run_options *options)
{
    if (options->server_metrics_count > 0)
        return (struct server_pages){options->server_metrics, options->server_metrics_count,
                                     options->request.model};
    return (struct server_pages){runner->pages, runner->page_count, NULL};
}

int http_runner_run(struct http_runner *runner, const struct http_run_options *options,
                    struct http_run_result *ret_result, struct error *err)
{
    struct load_target target = {0};
    bool streams = options->request.api == HTTP_API_OPENAI;
    struct server_pages pages = choose_pages(runner, options);
    struct server_watch *watch = NULL;
    *ret_result = (struct http_run_result){0};
    int failure = http_engine_open(
        &(struct http_engine_options){
            .addresses = runner->addresses,
            .payloads = runner->payloads,
            .address_count = runner->count,
            .payload_count = 1,
            .connections_max =
                options->arrivals ? options->connections_max : options->concurrency,
            .timeout_ns = options->timeout_ns,
            .streams_tokens = streams,
        },
        &target, err);
    if (failure)
        return failure;
    int64_t start_ns = clock_now_ns(target.clock), cpu_ns = thread_cpu_ns();
    http_engine_count_from(&target, start_ns + options->warmup_ns);
    if (pages.count > 0)
        watch = server_watch_start(&pages, start_ns + options->warmup_ns);
    failure =
        (options->arrivals ? run_open : run_closed)(&target, options, &ret_result->load, err);
    int64_t passed_ns = clock_now_ns(target.clock) - start_ns;
    ret_result->client_cpu_share =
        (double)(thread_cpu_ns() - cpu_ns) / (double)(passed_ns > 0 ? passed_ns : 1);
    if (watch)
        ret_result->server = server_watch_finish(watch);
    take_stats(&target, streams, ret_result);
    if (failure && *ret_result->first_failure && failure != -E_INTERRUPTED)
        error_wrap(err, "%s", ret_result->first_failure);
    if (ret_result->load.latency) {
        ret_result->steady = find_steady(&ret_result->load, start_ns + options->warmup_ns);
        judge(options, ret_result);
    }
    http_engine_close(&target);
    return failure;
}

double http_run_outside_ms(const struct http_run_result *result)
{
    const struct open_loop_result *load = &result->load;
    const struct hist *sent = load->service;
    if (result->server.requests == 0 || !load->latency)
        return NAN;
    if (hist_count(sent) == 0) /* a closed loop sends when it intends to */
        sent = load->latency;
    return hist_mean_ns(sent) / 1e6 - result->server.total_ms;
}

void http_run_result_done(struct http_run_result *result)
{
    open_loop_result_done(&result->load);
    hist_free(result->first_token);
    hist_free(result->token_gap);
    hist_free(result->per_token);
    *result = (struct http_run_result){0};
}
