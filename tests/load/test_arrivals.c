/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrival times: rates, distribution, order, traces.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/stats.h"
#include "load/arrivals.h"

static struct arrivals *start(const struct arrivals_options *options)
{
    struct arrivals *arrivals = NULL;
    struct error err = {0};
    if (arrivals_new(options, &arrivals, &err) < 0)
        fail_msg("%s", err.text);
    return arrivals;
}

/* How many fall before `until_ns`; checks that times never fall. */
static size_t count_before(struct arrivals *arrivals, int64_t until_ns)
{
    size_t count = 0;
    int64_t time_ns, last_ns = 0;
    while (arrivals_next(arrivals, &time_ns) && time_ns < until_ns) {
        assert_true(time_ns >= last_ns);
        last_ns = time_ns;
        count++;
    }
    return count;
}

static void test_constant(void **state)
{
    (void)state;
    CLEANUP(arrivals_free_ptr)
    struct arrivals *arrivals =
        start(&(struct arrivals_options){.kind = ARRIVAL_CONSTANT, .rate_rps = 3});
    int64_t time_ns;
    for (int i = 0; i < 3000; i++)
        assert_true(arrivals_next(arrivals, &time_ns));
    assert_int_equal(time_ns, (int64_t)(2999 * (1e9 / 3))); /* no drift */
}

/* Every kind keeps its mean rate: 5 deviations of a Poisson count. */
static void test_mean_rates(void **state)
{
    (void)state;
    static const struct arrivals_options cases[] = {
        {.kind = ARRIVAL_CONSTANT, .rate_rps = 1000},
        {.kind = ARRIVAL_POISSON, .rate_rps = 1000, .seed = 3},
        {.kind = ARRIVAL_BURSTS, .rate_rps = 1000, .burst = 10, .seed = 4},
        {.kind = ARRIVAL_RAMP,
         .rate_rps = 500,
         .end_rate_rps = 1500,
         .duration_ns = (int64_t)100e9,
         .seed = 5},
        {.kind = ARRIVAL_RAMP,
         .rate_rps = 1500,
         .end_rate_rps = 500,
         .duration_ns = (int64_t)100e9,
         .seed = 6},
        {.kind = ARRIVAL_RAMP,
         .rate_rps = 1000,
         .end_rate_rps = 1000,
         .duration_ns = (int64_t)50e9,
         .seed = 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(arrivals_free_ptr) struct arrivals *arrivals = start(&cases[i]);
        double count = (double)count_before(arrivals, (int64_t)100e9);
        double burst = cases[i].burst > 1 ? cases[i].burst : 1;
        if (fabs(count - 1e5) > 5 * sqrt(1e5 * burst))
            fail_msg("case %zu: %g arrivals, expected about 100000", i, count);
    }
}

/* Exponential gaps: their deviation equals their mean. */
static void test_poisson_gaps(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    CLEANUP(arrivals_free_ptr)
    struct arrivals *arrivals =
        start(&(struct arrivals_options){.kind = ARRIVAL_POISSON, .rate_rps = 100, .seed = 9});
    CLEANUP(free_ptr) double *gaps = xcalloc(COUNT, sizeof *gaps);
    int64_t time_ns, last_ns = 0;
    for (int i = 0; i < COUNT; i++) {
        arrivals_next(arrivals, &time_ns);
        gaps[i] = (double)(time_ns - last_ns);
        last_ns = time_ns;
    }
    double ratio = sqrt(stats_variance(gaps, COUNT)) / stats_mean(gaps, COUNT);
    assert_true(fabs(ratio - 1) < 0.04);
    assert_true(fabs(stats_median(gaps, COUNT) / (log(2) * 1e7) - 1) < 0.05);
}

static void test_bursts_come_together(void **state)
{
    (void)state;
    CLEANUP(arrivals_free_ptr)
    struct arrivals *arrivals = start(&(struct arrivals_options){
        .kind = ARRIVAL_BURSTS, .rate_rps = 100, .burst = 4, .seed = 1});
    int64_t times[8];
    for (int i = 0; i < 8; i++)
        arrivals_next(arrivals, &times[i]);
    for (int i = 0; i < 8; i++)
        assert_true(times[i] == times[i / 4 * 4]);
    assert_true(times[4] > times[0]);
}

/* The first half of a ramp has its share: rates 0 … 2r would give a quarter. */
static void test_ramp_rises(void **state)
{
    (void)state;
    CLEANUP(arrivals_free_ptr)
    struct arrivals *arrivals = start(&(struct arrivals_options){.kind = ARRIVAL_RAMP,
                                                                 .rate_rps = 100,
                                                                 .end_rate_rps = 900,
                                                                 .duration_ns = (int64_t)100e9,
                                                                 .seed = 2});
    double first_half = (double)count_before(arrivals, (int64_t)50e9);
    assert_true(fabs(first_half - 15000) < 5 * sqrt(15000.0));
}

static void test_same_seed_same_times(void **state)
{
    (void)state;
    struct arrivals_options options = {.kind = ARRIVAL_POISSON, .rate_rps = 10, .seed = 11};
    CLEANUP(arrivals_free_ptr) struct arrivals *a = start(&options), *b = start(&options);
    for (int i = 0; i < 100; i++) {
        int64_t x, y;
        arrivals_next(a, &x);
        arrivals_next(b, &y);
        assert_int_equal(x, y);
    }
    arrivals_free(b);
    b = NULL;
}

/* Writes text to a file of its own and reads it as a trace. */
static int read_trace(const char *text, struct arrivals **ret_arrivals, struct error *err)
{
    char path[] = "/tmp/tranche-trace-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int failure = arrivals_new(&(struct arrivals_options){.kind = ARRIVAL_TRACE, .trace = path},
                               ret_arrivals, err);
    unlink(path);
    return failure;
}

static void test_traces(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t second_ns; /* of the second time; -1: refused */
        const char *says;
    } cases[] = {
        {"time_s\n5\n5.25\n6\n", 250000000, ""},
        {"tokens,time_s\n9,1\n9,3\n", 2000000000, ""},
        {"TIMESTAMP,n\n2023-11-16 18:17:03.5,1\n2023-11-16T18:17:04.75,2\n", 1250000000, ""},
        {"time_s\n2\n1\n", -1, ":3:1: "},
        {"time_s\nsoon\n", -1, "\"soon\""},
        {"time_s\n0\n2e6\n", -1, "shorter"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(arrivals_free_ptr) struct arrivals *arrivals = NULL;
        struct error err = {0};
        int64_t first, second;
        int failure = read_trace(cases[i].text, &arrivals, &err);
        if (cases[i].second_ns < 0) {
            assert_int_equal(failure, -E_INPUT);
            assert_non_null(strstr(err.text, cases[i].says));
            continue;
        }
        if (failure)
            fail_msg("%s", err.text);
        assert_true(arrivals_next(arrivals, &first) && arrivals_next(arrivals, &second));
        assert_int_equal(first, 0);
        assert_int_equal(second, cases[i].second_ns);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    struct arrivals *arrivals = NULL;
    struct error err = {0};
    assert_int_equal(
        arrivals_new(&(struct arrivals_options){.kind = ARRIVAL_POISSON}, &arrivals, &err),
        -E_USAGE);
    assert_int_equal(
        arrivals_new(&(struct arrivals_options){.kind = ARRIVAL_TRACE, .trace = "/nonexistent"},
                     &arrivals, &err),
        -E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),     cmocka_unit_test(test_mean_rates),
        cmocka_unit_test(test_poisson_gaps), cmocka_unit_test(test_bursts_come_together),
        cmocka_unit_test(test_ramp_rises),   cmocka_unit_test(test_same_seed_same_times),
        cmocka_unit_test(test_traces),       cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
