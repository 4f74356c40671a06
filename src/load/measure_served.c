/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring through the model server. See measure_served.h.
 *
 * The server waits for full batches, and as many requests are in flight as fill every
 * process once: each answered request is followed by the next at once, so a batch forms as
 * soon as the one before is answered. The slice stands still only while answers and
 * requests are on their way; that the rows count this as busy errs to the safe side.
 */
#include "load/measure_served.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "engine/model_catalog.h"
#include "load/http_run.h"
#include "load/measure_internal.h"
#include "load/workload_command.h"

#define FINISH_TIMEOUT_NS ((int64_t)20 * 1000000000)
#define LISTEN_NS         ((int64_t)100 * 1000000)
/* The window is this much longer than what its steps are expected to take. */
static const double WINDOW_RESERVE = 1.2;

static int check_cell(const struct measure_cell *cell, const struct measure_settings *settings,
                      struct error *err)
{
    if (cell->task != TASK_INFERENCE || settings->command || model_is_builtin(cell->model))
        return error_set(err, E_USAGE,
                         "%s: measured through the server are ONNX files, for inference",
                         cell->name);
    return 0;
}

static int start_server(struct run *run, struct error *err)
{
    CLEANUP(free_ptr) struct workload_command *command = xcalloc(1, sizeof *command);
    workload_command_fill_server(command, run->cell, run->settings,
                                 run->result->cpu_quota_cores);
    return children_start(&run->children, &command->command, err);
}

/* One closed loop of requests; the first second finds out how long one takes. */
static int send_requests(struct run *run, struct http_runner *runner,
                         struct http_run_options *options, struct http_run_result *ret_result,
                         struct error *err)
{
    const struct measure_settings *settings = run->settings;
    double step_ns = 0;
    while (step_ns <= 0) {
        struct http_run_result first;
        int failure = http_runner_run(runner, options, &first, err);
        if (!failure && first.load.completed > 0)
            step_ns = hist_mean_ns(first.load.latency);
        http_run_result_done(&first);
        if (failure)
            return failure;
        if (step_ns <= 0 && options->duration_ns > settings->silence_timeout_ns)
            return error_set(err, E_TIMEOUT, "no answer within %.4g s",
                             (double)options->duration_ns / 1e9);
        options->duration_ns *= 2;
    }
    double wanted_ns = WINDOW_RESERVE * step_ns * (settings->min_steps + 1);
    options->warmup_ns = (int64_t)step_ns;
    options->duration_ns = (int64_t)fmin(fmax(wanted_ns, (double)settings->duration_ns),
                                         (double)settings->longest_ns);
    run_start_window(run);
    int failure = http_runner_run(runner, options, ret_result, err);
    run_end_window(run);
    return failure;
}

/* Answered requests a second, from the first whole batch to the last answer. */
static double throughput(const struct open_loop_result *load, size_t in_flight)
{
    size_t count = load->samples.count;
    if (count <= in_flight)
        return load->completed_rps;
    int64_t first_ns = load->samples.data[in_flight - 1].end_ns;
    int64_t last_ns = load->samples.data[count - 1].end_ns;
    assert(last_ns >= first_ns);
    return last_ns > first_ns ? (double)(count - in_flight) * 1e9 / (double)(last_ns - first_ns)
                              : load->completed_rps;
}

static void sum_up(struct run *run, const struct http_run_result *http, size_t in_flight)
{
    struct measure_result *result = run->result;
    hist_merge(result->latency, http->load.latency);
    result->throughput_rps = throughput(&http->load, in_flight);
    result->window_ns = http->load.window_ns;
    result->steady = http->steady;
    run_add_up_memory(run);
    str_add(&result->how, "; served over HTTP");
    result->verdict = measure_judge(run->cell, run->settings, result);
    /* The slice waits while requests are on their way. */
    result->verdict.reasons &= ~(1u << REASON_CPU_SHORT);
    verdict_add(&result->verdict, REASON_FAILED, http->load.failed > 0);
    vec_add(&result->repetitions_rps, result->throughput_rps);
}

static int measure_requests(struct run *run, struct error *err)
{
    CLEANUP(http_runner_free_ptr) struct http_runner *runner = NULL;
    CLEANUP(http_run_result_done) struct http_run_result result = {0};
    const struct measure_cell *cell = run->cell;
    const struct measure_settings *settings = run->settings;
    char url[64];
    const char *urls[] = {url};
    size_t in_flight = (size_t)cell->batch * (size_t)cell->procs;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", run->result->ready.port);
    struct http_run_options options = {.urls = urls,
                                       .url_count = 1,
                                       .request = {.api = HTTP_API_KSERVE,
                                                   .model = WORKLOAD_SERVED_NAME,
                                                   .batch = 1,
                                                   .shapes = cell->shapes,
                                                   .binary = true,
                                                   .seed = settings->seed},
                                       .concurrency = in_flight,
                                       .duration_ns = settings->warmup_ns + 1,
                                       .timeout_ns = settings->silence_timeout_ns,
                                       .failures_max = 1,
                                       .seed = settings->seed,
                                       .stop = settings->stop};
    int failure = http_runner_new(&options, &runner, err);
    if (!failure)
        failure = send_requests(run, runner, &options, &result, err);
    if (failure)
        return failure;
    sum_up(run, &result, in_flight);
    return 0;
}

static int run_body(struct run *run, struct error *err)
{
    struct children *children = &run->children;
    int failure = start_server(run, err);
    if (!failure)
        failure = run_pass_barrier(run, err);
    if (!failure && children_failed(children) < 0)
        failure = measure_requests(run, err);
    if (failure && failure != -E_INTERRUPTED) /* the server may have died of it */
        children_listen(children, LISTEN_NS, NULL);
    int failed = children_failed(children);
    if (failed >= 0 && failure != -E_INTERRUPTED)
        return run_judge_failure(run, &children->list[failed], err);
    children_finish(children, FINISH_TIMEOUT_NS);
    return failure;
}

int measure_served(const struct measure_cell *cell, const struct measure_settings *settings,
                   struct measure_result *ret_result, struct error *err)
{
    CLEANUP(free_ptr) struct run *run = xcalloc(1, sizeof *run);
    *run = (struct run){.cell = cell, .settings = settings, .result = ret_result};
    *ret_result = (struct measure_result){.how = STR_EMPTY};
    int failure = check_cell(cell, settings, err);
    return failure ? failure : run_in_slice(run, run_body, err);
}
