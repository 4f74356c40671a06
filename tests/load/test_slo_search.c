/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for the highest rate: against exact targets, and against a server with constant
 * service time (M/D/1), whose waiting times are known.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "load/engine_null.h"
#include "load/slo_search.h"

#define MS 1000000

static struct slo_options standard_options(void)
{
    return (struct slo_options){
        .objective = {99, 5 * MS},
        .first_rps = 10,
        .least_rps = 0.1,
        .highest_rps = 1e5,
        .tolerance = 0.01,
        .confirmations = 2,
        .runs_max = 100,
    };
}

/* A target that meets the objective up to a rate, but for one run. */
struct exact {
    double rate_rps;
    int unlucky_run; /* -1: none */
};

static int measure_exact(void *context, double rate_rps, int run, double *ret_share,
                         struct error *err)
{
    const struct exact *exact = context;
    (void)err;
    *ret_share = rate_rps <= exact->rate_rps && run != exact->unlucky_run ? 1 : 0.5;
    return 0;
}

static void test_exact_targets(void **state)
{
    (void)state;
    static const double rates[] = {0.7, 9.99, 10, 10.01, 123, 4567, 99999};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct slo_options options = standard_options();
        struct exact exact = {rates[i], -1};
        struct slo_result result;
        assert_int_equal(slo_search(&options, measure_exact, &exact, &result, NULL), 0);
        assert_true(result.confirmed);
        if (result.rate_rps > rates[i] || result.rate_rps < rates[i] / 1.0101)
            fail_msg("%g found for %g", result.rate_rps, rates[i]);
        slo_result_done(&result);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    struct slo_options options = standard_options();
    struct exact exact = {0.01, -1};
    struct slo_result result;
    assert_int_equal(slo_search(&options, measure_exact, &exact, &result, NULL), 0);
    assert_true(result.rate_rps == 0 && !result.confirmed);
    slo_result_done(&result);
    exact.rate_rps = 1e9;
    assert_int_equal(slo_search(&options, measure_exact, &exact, &result, NULL), 0);
    assert_true(result.rate_rps == options.highest_rps && result.at_highest &&
                result.confirmed);
    slo_result_done(&result);
    options.runs_max = 5;
    assert_int_equal(slo_search(&options, measure_exact, &exact, &result, NULL), 0);
    assert_int_equal(result.probes.count, 5);
    assert_false(result.confirmed);
    slo_result_done(&result);
}

/* A confirmation that fails sends the search below the rate, where it ends again. */
static void test_failed_confirmation(void **state)
{
    (void)state;
    struct slo_options options = standard_options();
    struct exact exact = {1000, -1};
    struct slo_result result;
    slo_search(&options, measure_exact, &exact, &result, NULL);
    double lucky_rps = result.rate_rps;
    exact.unlucky_run = (int)result.probes.count - 1;
    slo_result_done(&result);
    slo_search(&options, measure_exact, &exact, &result, NULL);
    assert_true(result.rate_rps < lucky_rps && result.rate_rps > 0.95 * lucky_rps);
    assert_true(result.confirmed);
    slo_result_done(&result);
}

/* P(waiting time of M/D/1 <= t) (Erlang 1909, Crommelin 1932), services of length d. */
static double waiting_within(double rate, double d, double t)
{
    double sum = 0;
    for (int k = 0; k * d <= t; k++) {
        double x = rate * (k * d - t); /* at most 0 */
        sum += exp(-x) * (k == 0 ? 1 : pow(x, k) / tgamma(k + 1));
    }
    return (1 - rate * d) * sum;
}

/* The rate at which the share `p` of requests is answered within `limit`. */
static double analytic_rate(double d, double limit, double p)
{
    double low = 0, high = 1 / d;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        *(waiting_within(middle, d, limit - d) >= p ? &low : &high) = middle;
    }
    return low;
}

struct queue_target {
    int64_t service_ns, duration_ns;
};

static int measure_queue(void *context, double rate_rps, int run, double *ret_share,
                         struct error *err)
{
    const struct queue_target *queue = context;
    struct fake_clock clock;
    struct load_target target;
    struct arrivals arrivals = {0};
    struct open_loop_result load;
    char text[64];
    fake_clock_init(&clock, 1000);
    null_engine_open(&(struct null_engine_options){.service_ns = queue->service_ns,
                                                   .servers = 1,
                                                   .clock = &clock.source},
                     &target);
    snprintf(text, sizeof text, "poisson:%.9g", rate_rps);
    int failure = arrivals_parse(text, queue->duration_ns, (uint64_t)run + 1, &arrivals, err);
    if (!failure)
        failure = open_loop_run(&target,
                                &(struct open_loop_options){.arrivals = &arrivals,
                                                            .warmup_ns = (int64_t)1000 * MS,
                                                            .timeout_ns = (int64_t)60000 * MS,
                                                            .in_flight_max = 100000},
                                &load, err);
    if (!failure) {
        *ret_share = slo_share_within(&load, (struct slo_objective){99, 5 * MS});
        open_loop_result_done(&load);
    }
    arrivals_done(&arrivals);
    null_engine_close(&target);
    return failure;
}

static void test_constant_service_time(void **state)
{
    (void)state;
    struct slo_options options = standard_options();
    struct queue_target queue = {MS, (int64_t)200000 * MS};
    struct slo_result result;
    struct error err;
    if (slo_search(&options, measure_queue, &queue, &result, &err) < 0)
        fail_msg("%s", err.text);
    double expected = analytic_rate(1e-3, 5e-3, 0.99);
    print_message("found %g, analytic %g\n", result.rate_rps, expected);
    assert_true(result.confirmed);
    assert_true(expected > 500 && expected < 900);
    assert_true(fabs(result.rate_rps / expected - 1) < 0.03);
    slo_result_done(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_targets),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_failed_confirmation),
        cmocka_unit_test(test_constant_service_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
