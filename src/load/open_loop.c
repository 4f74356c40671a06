/* SPDX-License-Identifier: Apache-2.0
 *
 * Open-loop load. See open_loop.h. One thread: it sends what is due, else waits for
 * completions until the next request is due.
 */
#include "load/open_loop.h"

#include <assert.h>

#include "base/memory.h"

enum { COMPLETIONS_AT_ONCE = 256, LOOK_NS = 100000000 };

enum request_state { REQUEST_OPEN, REQUEST_CLOSED };

struct request {
    int64_t intended_ns;
    enum request_state state;
};

struct loop {
    const struct load_target *target;
    const struct open_loop_options *options;
    struct open_loop_result *result;
    VEC(struct request) requests; /* by number */
    size_t oldest;                /* all before it are closed */
    size_t in_flight;
    int64_t start_ns, window_start_ns, window_end_ns;
};

static bool is_counted(const struct loop *loop, const struct request *request)
{
    return request->intended_ns >= loop->window_start_ns;
}

static int64_t at_least_zero(int64_t ns)
{
    return ns > 0 ? ns : 0; /* a sleep may end early by a little */
}

static void close_request(struct loop *loop, struct request *request)
{
    assert(request->state == REQUEST_OPEN && loop->in_flight > 0);
    request->state = REQUEST_CLOSED;
    loop->in_flight--;
}

static void record(struct loop *loop, const struct request *request,
                   const struct load_completion *completion)
{
    struct open_loop_result *result = loop->result;
    assert(request->state == REQUEST_CLOSED);
    result->completed++;
    hist_record(result->latency, at_least_zero(completion->end_ns - request->intended_ns));
    if (completion->start_ns > 0) {
        hist_record(result->queue, at_least_zero(completion->start_ns - request->intended_ns));
        hist_record(result->service, at_least_zero(completion->end_ns - completion->start_ns));
    }
    *vec_push(&result->samples) =
        (struct open_loop_sample){request->intended_ns, completion->end_ns};
}

static void take_completion(struct loop *loop, const struct load_completion *completion)
{
    assert(completion->request < loop->requests.count);
    struct request *request = &loop->requests.data[completion->request];
    if (request->state == REQUEST_CLOSED)
        return; /* it had timed out */
    close_request(loop, request);
    if (!is_counted(loop, request))
        return;
    if (completion->outcome != LOAD_OK)
        loop->result->failed++;
    else if (completion->end_ns - request->intended_ns > loop->options->timeout_ns)
        loop->result->timed_out++;
    else
        record(loop, request, completion);
}

/* Closes what has waited too long, from the oldest on. */
static void expire(struct loop *loop, int64_t now_ns)
{
    assert(loop->oldest <= loop->requests.count);
    while (loop->oldest < loop->requests.count) {
        struct request *request = &loop->requests.data[loop->oldest];
        if (request->state == REQUEST_OPEN) {
            if (now_ns - request->intended_ns <= loop->options->timeout_ns)
                return;
            close_request(loop, request);
            loop->result->timed_out += is_counted(loop, request);
        }
        loop->oldest++;
    }
}

static int wait_until(struct loop *loop, int64_t deadline_ns, struct error *err)
{
    struct load_completion completions[COMPLETIONS_AT_ONCE];
    size_t count = 0;
    int failure = loop->target->engine->poll(loop->target->self, deadline_ns, completions,
                                             COMPLETIONS_AT_ONCE, &count, err);
    for (size_t i = 0; i < count; i++)
        take_completion(loop, &completions[i]);
    return failure;
}

static int send_one(struct loop *loop, int64_t intended_ns, struct error *err)
{
    struct open_loop_result *result = loop->result;
    struct request request = {.intended_ns = intended_ns, .state = REQUEST_CLOSED};
    bool counted = is_counted(loop, &request);
    uint64_t number = loop->requests.count;
    assert(intended_ns >= loop->start_ns);
    result->scheduled += counted;
    vec_add(&loop->requests, request);
    /* Dropped and counted, not held back: a late send would hide how long it had to wait
     * (coordinated omission). */
    if (loop->in_flight >= loop->options->in_flight_max) {
        result->dropped += counted;
        return 0;
    }
    int64_t now_ns = clock_now_ns(loop->target->clock);
    int failure = loop->target->engine->submit(loop->target->self, number, err);
    if (failure == -E_BUSY) {
        result->dropped += counted;
        return 0;
    }
    if (failure)
        return failure;
    loop->requests.data[number].state = REQUEST_OPEN;
    loop->in_flight++;
    if (loop->in_flight > result->in_flight_peak)
        result->in_flight_peak = loop->in_flight;
    if (counted) {
        result->sent++;
        hist_record(result->send_lag, at_least_zero(now_ns - intended_ns));
    }
    return 0;
}

static int check_stop(const struct loop *loop, struct error *err)
{
    if (loop->options->stop && *loop->options->stop)
        return error_set(err, E_INTERRUPTED, "interrupted");
    return 0;
}

/* Waits for the time of the next request, taking completions meanwhile. Behind schedule it
 * takes those that are there and waits for none: they would seem late, and neither timeouts
 * nor Ctrl-C would be seen. */
static int wait_for_turn(struct loop *loop, int64_t intended_ns, struct error *err)
{
    int64_t now_ns = clock_now_ns(loop->target->clock);
    int failure;
    do {
        int64_t look_ns = now_ns + LOOK_NS < intended_ns ? now_ns + LOOK_NS : intended_ns;
        expire(loop, now_ns);
        failure = wait_until(loop, look_ns, err);
        if (!failure)
            failure = check_stop(loop, err);
        now_ns = clock_now_ns(loop->target->clock);
    } while (!failure && now_ns < intended_ns);
    return failure;
}

/* The requests still open get until their time is over. */
static int drain(struct loop *loop, struct error *err)
{
    int failure = 0;
    while (!failure && loop->in_flight > 0) {
        int64_t now_ns = clock_now_ns(loop->target->clock);
        expire(loop, now_ns);
        if (loop->in_flight > 0)
            failure = wait_until(loop, now_ns + LOOK_NS, err);
        if (!failure)
            failure = check_stop(loop, err);
    }
    return failure;
}

static void sum_up(struct loop *loop)
{
    struct open_loop_result *result = loop->result;
    uint64_t ended = 0;
    assert(loop->window_end_ns >= loop->start_ns);
    for (size_t i = 0; i < result->samples.count; i++)
        ended += result->samples.data[i].end_ns <= loop->window_end_ns;
    result->window_ns = loop->window_end_ns - loop->window_start_ns;
    if (result->window_ns <= 0)
        return;
    result->offered_rps = (double)result->scheduled * 1e9 / (double)result->window_ns;
    result->completed_rps = (double)ended * 1e9 / (double)result->window_ns;
}

int open_loop_run(const struct load_target *target, const struct open_loop_options *options,
                  struct open_loop_result *ret_result, struct error *err)
{
    *ret_result = (struct open_loop_result){.latency = hist_new(),
                                            .queue = hist_new(),
                                            .service = hist_new(),
                                            .send_lag = hist_new()};
    struct loop loop = {.target = target,
                        .options = options,
                        .result = ret_result,
                        .start_ns = clock_now_ns(target->clock)};
    int64_t offset_ns;
    int failure = 0;
    assert(options->timeout_ns > 0 && options->in_flight_max > 0);
    loop.window_start_ns = loop.start_ns + options->warmup_ns;
    loop.window_end_ns = loop.start_ns + options->arrivals->duration_ns;
    while (!failure && arrivals_next(options->arrivals, &offset_ns)) {
        /* By the schedule alone, whatever has come back until then. */
        failure = wait_for_turn(&loop, loop.start_ns + offset_ns, err);
        if (!failure)
            failure = send_one(&loop, loop.start_ns + offset_ns, err);
    }
    if (!failure)
        failure = drain(&loop, err);
    sum_up(&loop);
    vec_done(&loop.requests);
    return failure;
}

void open_loop_result_done(struct open_loop_result *result)
{
    hist_free(result->latency);
    hist_free(result->queue);
    hist_free(result->service);
    hist_free(result->send_lag);
    vec_done(&result->samples);
    *result = (struct open_loop_result){0};
}
