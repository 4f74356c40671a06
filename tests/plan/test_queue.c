/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue rule against closed forms of queueing theory and against an event-by-event
 * simulation of the contract's words.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "queue_oracle.h"

static const int one[] = {1};

static void assert_near(double actual, double expected, double relative)
{
    if (!(fabs(actual - expected) <= relative * fabs(expected)))
        fail_msg("%.9g is not within %g of %.9g", actual, relative, expected);
}

static struct queue_server single(int procs, const double *latency_ms)
{
    return (struct queue_server){procs, 1, 1, one, latency_ms};
}

/* Pollaczek-Khinchine for a constant time. */
static void test_mean_of_single_server(void **state)
{
    (void)state;
    CLEANUP(queue_model_free_ptr) struct queue_model *model = queue_model_new();
    double latency = 10;
    struct queue_server server = single(1, &latency);
    struct queue_objective mean = {.percentile = 0, .latency_ms = 100};
    for (double load = 0.05; load < 1; load += 0.05) {
        double expected = latency + load * latency / (2 * (1 - load));
        assert_near(queue_latency_ms(model, &server, &mean, load * 100), expected, 1e-3);
    }
}

/* Erlang's formula (1909): P(wait <= x) = (1-a) sum_k (a (k - x/D))^k e^(-a (k - x/D)) / k!,
 * k = 0 … floor(x / D), a the load. */
static double erlang_within(double load, double x)
{
    double sum = 0, factorial = 1;
    for (int k = 0; k <= (int)x; k++) {
        double y = load * (k - x);
        factorial *= k ? k : 1;
        sum += pow(y, k) * exp(-y) / factorial;
    }
    return (1 - load) * sum;
}

static void test_share_of_single_server(void **state)
{
    (void)state;
    CLEANUP(queue_model_free_ptr) struct queue_model *model = queue_model_new();
    double latency = 10;
    struct queue_server server = single(1, &latency);
    for (double load = 0.1; load < 0.95; load += 0.1)
        for (double x = 0; x < 6; x += 0.37)
            assert_near(queue_share_within(model, &server, 25, latency * (1 + x), load * 100),
                        erlang_within(load, x), 1e-7);
}

/* Crommelin's chain N' = max(N - c, 0) + Poisson(rate D) by plain iteration: the mean wait
 * of M/D/c in units of D. */
static double crommelin_wait(int procs, double load)
{
    enum { STATES = 400 };
    static double law[STATES], next[STATES];
    double arrivals = load * procs;
    memset(law, 0, sizeof law);
    law[0] = 1;
    for (int step = 0; step < 2000; step++) {
        memset(next, 0, sizeof next);
        for (int n = 0; n < STATES; n++) {
            int left = n > procs ? n - procs : 0;
            double chance = exp(-arrivals);
            for (int k = 0; left + k < STATES && law[n] > 1e-18; k++) {
                next[left + k] += law[n] * chance;
                chance *= arrivals / (k + 1);
            }
        }
        memcpy(law, next, sizeof law);
    }
    double waiting = 0;
    for (int n = procs; n < STATES; n++)
        waiting += (n - procs) * law[n];
    return waiting / arrivals;
}

static void test_several_processes(void **state)
{
    (void)state;
    CLEANUP(queue_model_free_ptr) struct queue_model *model = queue_model_new();
    static const int procs[] = {1, 2, 3, 7};
    double latency = 1;
    for (int i = 0; i < 4; i++)
        for (double load = 0.3; load < 0.95; load += 0.3) {
            struct queue_server server = single(procs[i], &latency);
            struct queue_objective mean = {.percentile = 0, .latency_ms = 1};
            double time = queue_latency_ms(model, &server, &mean, load * procs[i] * 1000);
            assert_near(time, 1 + crommelin_wait(procs[i], load), 1e-3);
        }
}

/* Figures at a rate against the oracle; prints the seed of a case that differs. */
static void check_against_oracle(int procs_max, uint64_t seed, double tolerance)
{
    CLEANUP(queue_model_free_ptr) struct queue_model *model = queue_model_new();
    struct rng rng = rng_seed(seed);
    for (int i = 0; i < 25; i++) {
        struct oracle_case made;
        oracle_case_make(&made, &rng, procs_max);
        double rate = queue_saturation_rps(&made.server) * rng_uniform(&rng, 0.2, 0.8);
        struct queue_objective mean = made.objective;
        mean.percentile = 0;
        struct oracle_result oracle =
            oracle_run(&made.server, &made.objective, rate, 400000, seed + (uint64_t)i);
        double late = 1 - queue_share_within(model, &made.server, made.objective.max_wait_ms,
                                             made.objective.latency_ms, rate);
        double mean_ms = queue_latency_ms(model, &made.server, &mean, rate);
        if (fabs(late - oracle.late) > tolerance * (0.02 + oracle.late) ||
            fabs(mean_ms - oracle.mean_ms) > tolerance * oracle.mean_ms)
            fail_msg("seed %ju case %d (procs %d batch %d): late %.5f, oracle %.5f; mean %.4f, "
                     "oracle %.4f",
                     (uintmax_t)seed, i, made.server.procs, made.server.batch_max, late,
                     oracle.late, mean_ms, oracle.mean_ms);
    }
}

static void test_oracle_one_process(void **state)
{
    (void)state;
    check_against_oracle(1, 41, 0.05);
}

static void test_oracle_many_processes(void **state)
{
    (void)state;
    check_against_oracle(6, 42, 0.05);
}

/* What is promised the oracle keeps, and 5 % more breaks it in most cases. Near saturation
 * a finite run scatters, so one case is held to 1 % less than its promise. */
static void test_promises_hold(void **state)
{
    (void)state;
    CLEANUP(queue_model_free_ptr) struct queue_model *model = queue_model_new();
    struct rng rng = rng_seed(43);
    int cases = 0, broken = 0;
    double late_sum = 0;
    while (cases < 100) {
        struct oracle_case made;
        oracle_case_make(&made, &rng, 4);
        double limit = queue_saturation_rps(&made.server) * 1.02;
        double promise = queue_promise_rps(model, &made.server, &made.objective,
                                           &(struct queue_wanted){.limit_rps = limit});
        if (promise == 0)
            continue;
        uint64_t seed = 1000 + (uint64_t)cases++;
        struct oracle_result kept =
            oracle_run(&made.server, &made.objective, promise * 0.99, 300000, seed);
        struct oracle_result more =
            oracle_run(&made.server, &made.objective, promise * 1.05, 200000, seed);
        if (kept.late > 0.0125)
            fail_msg("case %d: %.5f late at 99 %% of %g rps", cases, kept.late, promise);
        late_sum += kept.late;
        broken += more.late > 0.01;
        /* asked for no less than it, the same; for more, nothing */
        struct queue_wanted wanted = {.limit_rps = limit, .least_rps = promise};
        assert_true(queue_promise_rps(model, &made.server, &made.objective, &wanted) ==
                    promise);
        wanted.least_rps = promise * 1.01;
        assert_true(queue_promise_rps(model, &made.server, &made.objective, &wanted) == 0);
    }
    assert_true(late_sum / cases < 0.01);
    assert_in_range(broken, 95, 100);
}

static void test_edges(void **state)
{
    (void)state;
    CLEANUP(queue_model_free_ptr) struct queue_model *model = queue_model_new();
    static const int batch[] = {1, 8};
    static const double latency[] = {10, 40};
    struct queue_server server = {1, 8, 2, batch, latency};
    struct queue_objective objective = {.percentile = 99, .latency_ms = 100, .max_wait_ms = 25};
    double promise =
        queue_promise_rps(model, &server, &objective, &(struct queue_wanted){.limit_rps = 1e9});
    assert_true(promise > 100 && promise < 200);
    /* remembered, and independent of what was asked between */
    assert_true(queue_promise_rps(model, &server, &objective,
                                  &(struct queue_wanted){.limit_rps = 50}) == 50);
    assert_true(queue_promise_rps(model, &server, &objective,
                                  &(struct queue_wanted){.limit_rps = 1e9}) == promise);
    CLEANUP(queue_model_free_ptr) struct queue_model *other = queue_model_new();
    assert_true(queue_promise_rps(other, &server, &objective,
                                  &(struct queue_wanted){.limit_rps = 1e9}) == promise);
    /* four digits, rounded down: the next one breaks */
    assert_true(queue_latency_ms(model, &server, &objective, promise) <= 100);
    assert_true(queue_latency_ms(model, &server, &objective, promise * 1.001) > 100);
    assert_true(isinf(queue_latency_ms(model, &server, &objective, 200)));
    assert_true(queue_promise_rps(model, &server, &objective,
                                  &(struct queue_wanted){.limit_rps = 0}) == 0);
    objective.latency_ms = 9.9; /* shorter than any batch */
    assert_true(queue_promise_rps(model, &server, &objective,
                                  &(struct queue_wanted){.limit_rps = 1e9}) == 0);
    objective =
        (struct queue_objective){.percentile = 99.9, .latency_ms = 1e7, .max_wait_ms = 1};
    assert_near(
        queue_promise_rps(model, &server, &objective, &(struct queue_wanted){.limit_rps = 1e9}),
        200, 0.001);
}

/* Measured tables that make no sense still give an answer, and soon: batch times that jump by
 * orders of magnitude, waits longer than objectives, objectives of microseconds or hours. */
static void test_absurd_servers(void **state)
{
    (void)state;
    struct rng rng = rng_seed(44);
    for (int i = 0; i < 60; i++) {
        CLEANUP(queue_model_free_ptr) struct queue_model *model = queue_model_new();
        int batch[8], sizes = 1 + (int)rng_below(&rng, 7);
        double latency[8], limit = pow(10, rng_uniform(&rng, -2, 6));
        for (int k = 0; k < sizes; k++) {
            batch[k] = 1 << k;
            latency[k] = pow(10, rng_uniform(&rng, -3, 4));
        }
        struct queue_server server = {1 + (int)rng_below(&rng, 3), batch[sizes - 1], sizes,
                                      batch, latency};
        struct queue_objective objective = {.percentile = rng_below(&rng, 4) ? 99 : 0,
                                            .latency_ms = limit,
                                            .max_wait_ms = limit * rng_uniform(&rng, 0, 3)};
        double most = queue_saturation_rps(&server) * 2;
        double promise = queue_promise_rps(model, &server, &objective,
                                           &(struct queue_wanted){.limit_rps = most});
        assert_true(promise >= 0 && promise <= most);
        if (promise > 0)
            assert_true(queue_latency_ms(model, &server, &objective, promise) <=
                        limit * (1 + 1e-9));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_of_single_server),
        cmocka_unit_test(test_share_of_single_server),
        cmocka_unit_test(test_several_processes),
        cmocka_unit_test(test_oracle_one_process),
        cmocka_unit_test(test_oracle_many_processes),
        cmocka_unit_test(test_promises_hold),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_absurd_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
