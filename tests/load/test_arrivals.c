/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules: the rates they keep, and the forms they take.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "load/arrivals.h"

#define SECOND ((int64_t)1000000000)

static struct arrivals parse(const char *text, int64_t duration_ns)
{
    struct arrivals arrivals;
    struct error err;
    if (arrivals_parse(text, duration_ns, 7, &arrivals, &err))
        fail_msg("%s: %s", text, err.text);
    return arrivals;
}

/* How many before each of two times; checks that offsets never fall. */
static void count(const char *text, int64_t duration_ns, int64_t half_ns, double *ret_half,
                  double *ret_all)
{
    CLEANUP(arrivals_done) struct arrivals arrivals = parse(text, duration_ns);
    int64_t at_ns, last_ns = 0;
    *ret_half = *ret_all = 0;
    while (arrivals_next(&arrivals, &at_ns)) {
        assert_true(at_ns >= last_ns && at_ns < duration_ns);
        last_ns = at_ns;
        *ret_all += 1;
        *ret_half += at_ns < half_ns;
    }
    int64_t again;
    assert_false(arrivals_next(&arrivals, &again));
}

static void rates_are_kept(void **state)
{
    (void)state;
    double half, all;
    count("constant:100", 10 * SECOND, 5 * SECOND, &half, &all);
    assert_float_equal(all, 1000, 0);
    assert_float_equal(half, 500, 0);
    count("poisson:1000", 100 * SECOND, 50 * SECOND, &half, &all);
    assert_true(fabs(all - 1e5) < 5 * sqrt(1e5)); /* five standard deviations */
    assert_true(fabs(half - 5e4) < 5 * sqrt(5e4));
    count("burst:1000,10", 100 * SECOND, 50 * SECOND, &half, &all);
    assert_true(fabs(all - 1e5) < 5 * 10 * sqrt(1e4));
    count("ramp:100..300", 10 * SECOND, 5 * SECOND, &half, &all);
    assert_float_equal(all, 2000, 1); /* 10 s × mean of 200 */
    assert_float_equal(half, 750, 1); /* 5 s × mean of 150 */
    count("ramp:300..100", 10 * SECOND, 5 * SECOND, &half, &all);
    assert_float_equal(all, 2000, 1);
    assert_float_equal(half, 1250, 1);
    count("ramp:100..100", 10 * SECOND, 5 * SECOND, &half, &all);
    assert_float_equal(all, 1000, 1);
}

static void poisson_gaps_are_exponential(void **state)
{
    (void)state;
    CLEANUP(arrivals_done) struct arrivals arrivals = parse("poisson:1000", 1000 * SECOND);
    double sum = 0, squares = 0, n = 0;
    int64_t at_ns, last_ns = 0;
    while (n < 100000 && arrivals_next(&arrivals, &at_ns)) {
        double gap = (double)(at_ns - last_ns) / 1e9;
        last_ns = at_ns;
        sum += gap;
        squares += gap * gap;
        n++;
    }
    double mean = sum / n, variance = squares / n - mean * mean;
    assert_true(fabs(mean * 1000 - 1) < 0.02);
    assert_true(fabs(variance * 1e6 - 1) < 0.05); /* variance = mean² */
}

static void bursts_come_together(void **state)
{
    (void)state;
    CLEANUP(arrivals_done) struct arrivals arrivals = parse("burst:100,5", 10 * SECOND);
    int64_t first_ns, at_ns;
    while (arrivals_next(&arrivals, &first_ns))
        for (int i = 1; i < 5; i++) {
            assert_true(arrivals_next(&arrivals, &at_ns));
            assert_int_equal(at_ns, first_ns);
        }
}

static void same_seed_same_schedule(void **state)
{
    (void)state;
    CLEANUP(arrivals_done) struct arrivals a = parse("poisson:10", 10 * SECOND);
    CLEANUP(arrivals_done) struct arrivals b = parse("poisson:10", 10 * SECOND);
    int64_t x, y;
    while (arrivals_next(&a, &x)) {
        assert_true(arrivals_next(&b, &y));
        assert_int_equal(x, y);
    }
}

static void traces_are_read(void **state)
{
    (void)state;
    char path[] = "/tmp/tranche-trace-XXXXXX", text[80];
    struct arrivals arrivals;
    struct error err;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(file_write(path, "# s\n0\r\n0.5\n0.5\n2", 17, NULL), 0);
    snprintf(text, sizeof text, "trace:%s", path);
    arrivals = parse(text, 0);
    int64_t want[] = {0, SECOND / 2, SECOND / 2, 2 * SECOND}, at_ns;
    for (int i = 0; i < 4; i++) {
        assert_true(arrivals_next(&arrivals, &at_ns));
        assert_int_equal(at_ns, want[i]);
    }
    assert_false(arrivals_next(&arrivals, &at_ns));
    arrivals_done(&arrivals);
    static const char *const bad[] = {"1\n0.5\n", "x\n", "-1\n", "nan\n", "1e400\n", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(file_write(path, bad[i], strlen(bad[i]), NULL), 0);
        assert_int_equal(arrivals_parse(text, 0, 1, &arrivals, &err), -E_INPUT);
        assert_non_null(strstr(err.text, path));
    }
    unlink(path);
    assert_int_equal(arrivals_parse(text, 0, 1, &arrivals, &err), -E_IO);
}

static void wrong_forms(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "100",
                                      "poison:1",
                                      "constant:",
                                      "constant:0",
                                      "constant:-1",
                                      "poisson:nan",
                                      "burst:100",
                                      "burst:100,0",
                                      "ramp:1",
                                      "ramp:1..",
                                      "poisson:1e9",
                                      "ramp:..5",
                                      "constant:1x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arrivals arrivals;
        struct error err;
        if (arrivals_parse(bad[i], SECOND, 1, &arrivals, &err) != -E_INPUT)
            fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(err.text, "poisson:RATE"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_kept),       cmocka_unit_test(poisson_gaps_are_exponential),
        cmocka_unit_test(bursts_come_together), cmocka_unit_test(same_seed_same_schedule),
        cmocka_unit_test(traces_are_read),      cmocka_unit_test(wrong_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
