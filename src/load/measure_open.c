/* SPDX-License-Identifier: Apache-2.0
 *
 * Open-loop measurement of a cell. See measure_open.h.
 */
#include "load/measure_open.h"

#include <assert.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "load/engine_workers.h"
#include "load/measure_internal.h"

#define FINISH_TIMEOUT_NS ((int64_t)20 * 1000000000)

/* Send lag that matters: this part of the latency seen, and at least this much. */
static const double LAG_SHARE = 0.1;
enum { LAG_NS_MIN = 1000000, GENERATOR_NICE = -10 };
/* Completed below this part of the offered rate, beyond what a few requests explain. */
static const double BEHIND_SHARE = 0.98;
enum { BEHIND_REQUESTS_MIN = 10 };

struct open_run {
    const struct open_loop_options *options;
    struct open_loop_result *open;
};

struct verdict open_loop_judge(const struct open_loop_result *open)
{
    struct verdict verdict = {0};
    int64_t lag_ns = hist_percentile_ns(open->send_lag, 99);
    double seconds = (double)open->window_ns / 1e9;
    double missing = (open->offered_rps - open->completed_rps) * seconds;
    assert(open->send_lag && open->latency);
    verdict_add(&verdict, REASON_CLIENT,
                lag_ns > LAG_NS_MIN &&
                    (double)lag_ns > LAG_SHARE * (double)hist_percentile_ns(open->latency, 99));
    verdict_add(&verdict, REASON_DROPPED, open->dropped > 0);
    verdict_add(&verdict, REASON_TIMED_OUT, open->timed_out > 0);
    verdict_add(&verdict, REASON_FAILED, open->failed > 0);
    verdict_add(&verdict, REASON_LOST,
                missing > BEHIND_REQUESTS_MIN &&
                    open->completed_rps < BEHIND_SHARE * open->offered_rps);
    return verdict;
}

/* On a busy machine the generator must not wait for its turn. Where that is not allowed,
 * the send lag says what it costs. The children keep their own priority. */
static void raise_priority(bool raised)
{
    setpriority(PRIO_PROCESS, 0, raised ? GENERATOR_NICE : 0);
}

static int send_all(struct run *run, struct error *err)
{
    struct open_run *open_run = run->context;
    struct open_loop_options options = *open_run->options;
    struct load_target target;
    options.stop = run->settings->stop;
    workers_engine_open(&run->children, &target);
    raise_priority(true);
    run_start_window(run);
    run->result->phases.from_ns += options.warmup_ns;
    int failure = open_loop_run(&target, &options, open_run->open, err);
    run_end_window(run);
    raise_priority(false);
    workers_engine_close(&target);
    return failure;
}

static void sum_up(struct run *run)
{
    const struct open_loop_result *open = ((struct open_run *)run->context)->open;
    struct measure_result *result = run->result;
    hist_merge(result->latency, open->service);
    result->throughput_rps = open->completed_rps * run->cell->batch;
    result->window_ns = open->window_ns;
    run_add_up_memory(run);
    /* The closed loop's rules on steadiness and CPU time are not for a loop that waits. */
    result->steady.steady = true;
    result->verdict = measure_judge(run->cell, run->settings, result);
    result->verdict.reasons &= ~(1u << REASON_CPU_SHORT);
    result->verdict.reasons |= open_loop_judge(open).reasons;
    vec_add(&result->repetitions_rps, result->throughput_rps);
}

static int run_body(struct run *run, struct error *err)
{
    struct children *children = &run->children;
    int failure = run_start(run, "--requests", err);
    if (!failure)
        failure = run_pass_barrier(run, err);
    if (!failure && children_failed(children) < 0)
        failure = send_all(run, err);
    int failed = children_failed(children);
    if (failed >= 0 && failure != -E_INTERRUPTED)
        return run_judge_failure(run, &children->list[failed], err);
    if (failure)
        return failure;
    children_finish(children, FINISH_TIMEOUT_NS);
    sum_up(run);
    return 0;
}

int measure_open(const struct measure_cell *cell, const struct measure_settings *settings,
                 const struct open_loop_options *options, struct measure_result *ret_result,
                 struct open_loop_result *ret_open, struct error *err)
{
    CLEANUP(free_ptr) struct run *run = xcalloc(1, sizeof *run);
    struct open_run open_run = {.options = options, .open = ret_open};
    assert(options->in_flight_max > 0);
    *ret_open = (struct open_loop_result){0};
    *run = (struct run){
        .cell = cell, .settings = settings, .result = ret_result, .context = &open_run};
    return run_in_slice(run, run_body, err);
}
