/* SPDX-License-Identifier: Apache-2.0
 *
 * Open-loop load on the null engine and a fake clock, where the right figures are known:
 * the M/D/1 queue, a stall, overload, the cap, timeouts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "load/engine_null.h"
#include "load/open_loop.h"

#define SECOND ((int64_t)1000000000)
#define MS     ((int64_t)1000000)

static struct fake_clock fake;

static void run(const char *schedule, int64_t duration_ns, struct null_engine_options null,
                struct open_loop_options options, struct open_loop_result *result)
{
    struct load_target target;
    struct arrivals arrivals;
    struct error err;
    fake_clock_init(&fake, 5 * SECOND);
    null.clock = &fake.source;
    null.servers = null.servers ? null.servers : 1;
    assert_int_equal(arrivals_parse(schedule, duration_ns, 11, &arrivals, &err), 0);
    options.arrivals = &arrivals;
    options.timeout_ns = options.timeout_ns ? options.timeout_ns : 1000 * SECOND;
    options.in_flight_max = options.in_flight_max ? options.in_flight_max : 1000000;
    null_engine_open(&null, &target);
    if (open_loop_run(&target, &options, result, &err))
        fail_msg("%s", err.text);
    null_engine_close(&target);
    arrivals_done(&arrivals);
}

/* Mean wait of an M/D/1 queue: ρ D / (2 (1 − ρ)) (Pollaczek and Khinchine). */
static void waits_are_those_of_md1(void **state)
{
    (void)state;
    static const double loads[] = {0.3, 0.6, 0.8};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        struct open_loop_result result;
        char schedule[40];
        double rho = loads[i], want_ns = rho * 1e6 / (2 * (1 - rho));
        snprintf(schedule, sizeof schedule, "poisson:%g", rho * 1000);
        run(schedule, 400 * SECOND, (struct null_engine_options){.service_ns = MS},
            (struct open_loop_options){.warmup_ns = SECOND}, &result);
        double got_ns = hist_mean_ns(result.queue);
        print_message("load %.1f: mean wait %.4f ms, M/D/1 %.4f ms\n", rho, got_ns / 1e6,
                      want_ns / 1e6);
        assert_true(fabs(got_ns / want_ns - 1) < 0.05);
        assert_true(fabs(hist_mean_ns(result.latency) - got_ns - 1e6) < 2e3);
        assert_true(hist_max_ns(result.send_lag) <= 1); /* the histogram's least */
        assert_int_equal(result.completed, result.scheduled);
        assert_true(fabs(result.completed_rps / (rho * 1000) - 1) < 0.02);
        open_loop_result_done(&result);
    }
}

/* A target that stalls 200 ms is late for all that should have been sent meanwhile. */
static void a_stall_is_seen(void **state)
{
    (void)state;
    struct open_loop_result result;
    run("constant:1000", 10 * SECOND,
        (struct null_engine_options){
            .service_ns = MS / 2, .stall_at_ns = 10 * SECOND, .stall_ns = 200 * MS},
        (struct open_loop_options){0}, &result);
    assert_int_equal(result.completed, 10000);
    /* 400 requests (200 in the stall, as many until the queue is empty) are late: 4 %. */
    assert_int_equal(hist_percentile_ns(result.latency, 50) / MS, 0);
    assert_true(hist_percentile_ns(result.latency, 99) > 140 * MS);
    assert_true(hist_max_ns(result.latency) >= 200 * MS);
    open_loop_result_done(&result);
}

static void overload_is_said(void **state)
{
    (void)state;
    struct open_loop_result result;
    /* Twice what the target can do: the cap fills, the rest is dropped and counted. */
    run("constant:2000", 10 * SECOND, (struct null_engine_options){.service_ns = MS},
        (struct open_loop_options){.in_flight_max = 100}, &result);
    assert_int_equal(result.scheduled, 20000);
    assert_int_equal(result.completed + result.dropped, 20000);
    assert_true(result.dropped > 9000);
    assert_int_equal(result.in_flight_peak, 100);
    assert_true(fabs(result.completed_rps - 1000) < 5);
    assert_true(hist_max_ns(result.latency) < 102 * MS);
    open_loop_result_done(&result);
    /* Without a cap they wait, until their time is over. */
    run("constant:2000", 10 * SECOND, (struct null_engine_options){.service_ns = MS},
        (struct open_loop_options){.timeout_ns = SECOND}, &result);
    assert_int_equal(result.dropped, 0);
    assert_true(result.timed_out > 7000);
    assert_int_equal(result.completed + result.timed_out, 20000);
    assert_true(hist_max_ns(result.latency) <= SECOND + MS);
    open_loop_result_done(&result);
    /* An engine that refuses counts as dropped too. */
    run("constant:2000", SECOND,
        (struct null_engine_options){.service_ns = MS, .queue_max = 10},
        (struct open_loop_options){0}, &result);
    assert_true(result.dropped > 900);
    open_loop_result_done(&result);
}

static void servers_share_the_load(void **state)
{
    (void)state;
    struct open_loop_result result;
    run("constant:3900", 10 * SECOND,
        (struct null_engine_options){.service_ns = MS, .servers = 4},
        (struct open_loop_options){0}, &result);
    assert_true(hist_max_ns(result.latency) <= MS + 2000);
    open_loop_result_done(&result);
}

static void warm_up_is_not_counted(void **state)
{
    (void)state;
    struct open_loop_result result;
    run("constant:100", 10 * SECOND, (struct null_engine_options){.service_ns = MS},
        (struct open_loop_options){.warmup_ns = 4 * SECOND}, &result);
    assert_int_equal(result.scheduled, 600);
    assert_int_equal(result.window_ns, 6 * SECOND);
    assert_float_equal(result.offered_rps, 100, 1e-9);
    open_loop_result_done(&result);
}

/* A generator that is behind from its first request on: sending takes twice the time between
 * two requests. Answers are taken all the same, else they would pile up as if in flight. */
static const struct load_target *slow_inner;

static int slow_submit(void *self, uint64_t request, struct error *err)
{
    clock_sleep_until_ns(&fake.source, clock_now_ns(&fake.source) + 2 * MS);
    return slow_inner->engine->submit(self, request, err);
}

static int slow_poll(void *self, int64_t deadline_ns, struct load_completion *completions,
                     size_t capacity, size_t *ret_count, struct error *err)
{
    return slow_inner->engine->poll(self, deadline_ns, completions, capacity, ret_count, err);
}

static void answers_are_taken_while_behind(void **state)
{
    (void)state;
    static const struct load_engine slow = {"slow", slow_submit, slow_poll};
    struct load_target inner, outer;
    struct arrivals arrivals;
    struct open_loop_result result;
    struct error err;
    fake_clock_init(&fake, SECOND);
    null_engine_open(
        &(struct null_engine_options){.service_ns = MS, .servers = 1, .clock = &fake.source},
        &inner);
    slow_inner = &inner;
    outer = (struct load_target){&slow, inner.self, inner.clock};
    assert_int_equal(arrivals_parse("constant:1000", SECOND, 1, &arrivals, &err), 0);
    struct open_loop_options options = {
        .arrivals = &arrivals, .timeout_ns = 100 * SECOND, .in_flight_max = 10};
    assert_int_equal(open_loop_run(&outer, &options, &result, &err), 0);
    assert_int_equal(result.completed, 1000);
    assert_int_equal(result.dropped, 0);
    assert_true(result.in_flight_peak <= 2);
    assert_true(hist_max_ns(result.send_lag) >= 900 * MS);
    open_loop_result_done(&result);
    null_engine_close(&inner);
    arrivals_done(&arrivals);
}

/* With the real clock: what the generator itself adds, as a ratio to the service time. */
static void real_clock(void **state)
{
    (void)state;
    struct null_engine_options null = {.service_ns = MS, .servers = 1, .clock = clock_real()};
    struct load_target target;
    struct arrivals arrivals;
    struct open_loop_result result;
    struct error err;
    assert_int_equal(arrivals_parse("constant:200", SECOND / 2, 1, &arrivals, &err), 0);
    struct open_loop_options options = {
        .arrivals = &arrivals, .timeout_ns = SECOND, .in_flight_max = 100};
    null_engine_open(&null, &target);
    assert_int_equal(open_loop_run(&target, &options, &result, &err), 0);
    assert_int_equal(result.completed, 100);
    assert_true(hist_percentile_ns(result.latency, 50) >= MS * 0.99);
    open_loop_result_done(&result);
    null_engine_close(&target);
    arrivals_done(&arrivals);
}

static void ctrl_c_keeps_what_was_measured(void **state)
{
    (void)state;
    static volatile sig_atomic_t stop = 1;
    struct null_engine_options null = {.service_ns = MS, .servers = 1};
    struct load_target target;
    struct arrivals arrivals;
    struct open_loop_result result;
    struct error err;
    fake_clock_init(&fake, SECOND);
    null.clock = &fake.source;
    assert_int_equal(arrivals_parse("constant:10", 10 * SECOND, 1, &arrivals, &err), 0);
    struct open_loop_options options = {
        .arrivals = &arrivals, .timeout_ns = SECOND, .in_flight_max = 100, .stop = &stop};
    null_engine_open(&null, &target);
    assert_int_equal(open_loop_run(&target, &options, &result, &err), -E_INTERRUPTED);
    assert_true(result.completed <= 1);
    open_loop_result_done(&result);
    null_engine_close(&target);
    arrivals_done(&arrivals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_those_of_md1),
        cmocka_unit_test(a_stall_is_seen),
        cmocka_unit_test(overload_is_said),
        cmocka_unit_test(servers_share_the_load),
        cmocka_unit_test(warm_up_is_not_counted),
        cmocka_unit_test(answers_are_taken_while_behind),
        cmocka_unit_test(real_clock),
        cmocka_unit_test(ctrl_c_keeps_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
