/* SPDX-License-Identifier: Apache-2.0
 *
 * Closed-loop load. See closed_loop.h. A request's number is its place among those in
 * flight.
 */
#include "load/closed_loop.h"

#include <assert.h>

#include "base/cleanup.h"
#include "base/memory.h"

enum { COMPLETIONS_AT_ONCE = 256, LOOK_NS = 100000000, FAILURES_IN_A_ROW = 1000 };

struct loop {
    const struct load_target *target;
    struct open_loop_result *result;
    int64_t *sent_ns; /* of each place */
    int64_t window_start_ns, window_end_ns;
    unsigned failures_in_a_row;
};

static int send_next(struct loop *loop, size_t place, struct error *err)
{
    loop->sent_ns[place] = clock_now_ns(loop->target->clock);
    return loop->target->engine->submit(loop->target->self, place, err);
}

static void record(struct loop *loop, const struct load_completion *completion)
{
    struct open_loop_result *result = loop->result;
    int64_t sent_ns = loop->sent_ns[completion->request];
    loop->failures_in_a_row = completion->outcome == LOAD_OK ? 0 : loop->failures_in_a_row + 1;
    if (sent_ns < loop->window_start_ns || completion->end_ns > loop->window_end_ns)
        return;
    result->scheduled++;
    result->sent++;
    if (completion->outcome != LOAD_OK) {
        result->failed++;
        return;
    }
    result->completed++;
    hist_record(result->latency, completion->end_ns - sent_ns);
    *vec_push(&result->samples) = (struct open_loop_sample){sent_ns, completion->end_ns};
}

static int take_completions(struct loop *loop, struct error *err)
{
    struct load_completion completions[COMPLETIONS_AT_ONCE];
    size_t count = 0;
    int64_t now_ns = clock_now_ns(loop->target->clock);
    int64_t look_ns =
        now_ns + LOOK_NS < loop->window_end_ns ? now_ns + LOOK_NS : loop->window_end_ns;
    int failure = loop->target->engine->poll(loop->target->self, look_ns, completions,
                                             COMPLETIONS_AT_ONCE, &count, err);
    for (size_t i = 0; i < count && !failure; i++) {
        record(loop, &completions[i]);
        failure = send_next(loop, (size_t)completions[i].request, err);
    }
    if (!failure && loop->failures_in_a_row >= FAILURES_IN_A_ROW)
        failure = error_set(err, E_IO, "%d requests in a row have failed", FAILURES_IN_A_ROW);
    return failure;
}

int closed_loop_run(const struct load_target *target, const struct closed_loop_options *options,
                    struct open_loop_result *ret_result, struct error *err)
{
    *ret_result = (struct open_loop_result){.latency = hist_new(),
                                            .queue = hist_new(),
                                            .service = hist_new(),
                                            .send_lag = hist_new(),
                                            .in_flight_peak = options->concurrency};
    CLEANUP(free_ptr) int64_t *sent_ns = xcalloc(options->concurrency, sizeof *sent_ns);
    struct loop loop = {.target = target, .result = ret_result, .sent_ns = sent_ns};
    int failure = 0;
    assert(options->concurrency > 0 && options->duration_ns > 0);
    loop.window_start_ns = clock_now_ns(target->clock) + options->warmup_ns;
    loop.window_end_ns = loop.window_start_ns + options->duration_ns;
    for (size_t i = 0; i < options->concurrency && !failure; i++)
        failure = send_next(&loop, i, err);
    while (!failure && clock_now_ns(target->clock) < loop.window_end_ns) {
        failure = take_completions(&loop, err);
        if (!failure && options->stop && *options->stop)
            failure = error_set(err, E_INTERRUPTED, "interrupted");
    }
    ret_result->window_ns = options->duration_ns;
    ret_result->completed_rps =
        (double)ret_result->completed * 1e9 / (double)options->duration_ns;
    ret_result->offered_rps = ret_result->completed_rps;
    return failure;
}
