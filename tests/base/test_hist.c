/* SPDX-License-Identifier: Apache-2.0
 *
 * The histogram against the sorted list of what was recorded.
 */
#include "base/hist.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define HOUR_NS INT64_C(3600000000000)
enum { RECORDS = 20000 };

static void assert_near(double value, double expected, double relative)
{
    if (fabs(value - expected) > relative * fabs(expected))
        fail_msg("%.17g, expected %.17g", value, expected);
}

static int compare_values(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Latencies of a long tail from nanoseconds to minutes, sorted. */
static int64_t *draw_sorted(uint64_t seed, double median_ns, double sigma)
{
    struct rng rng = rng_seed(seed);
    int64_t *values = calloc(RECORDS, sizeof *values);
    for (int i = 0; i < RECORDS; i++)
        values[i] = (int64_t)fmin(rng_lognormal(&rng, log(median_ns), sigma) + 1, 3.6e12);
    qsort(values, RECORDS, sizeof *values, compare_values);
    return values;
}

static struct hist *record_all(const int64_t *values, size_t count)
{
    struct hist *hist = hist_new();
    for (size_t i = 0; i < count; i++)
        hist_record(hist, values[i]);
    return hist;
}

static void test_empty(void **state)
{
    (void)state;
    CLEANUP(hist_free_ptr) struct hist *hist = hist_new();
    hist_record_many(hist, 5, 0);
    assert_int_equal(hist_count(hist), 0);
    assert_int_equal(hist_min_ns(hist), 0);
    assert_int_equal(hist_max_ns(hist), 0);
    assert_int_equal(hist_percentile_ns(hist, 99), 0);
    assert_true(hist_mean_ns(hist) == 0 && hist_stddev_ns(hist) == 0);
    assert_true(hist_share_within(hist, 5) == 1);
    hist_free(NULL);
}

/* The 0.1 % of the header at every edge of every bucket size. */
static void test_error_bound(void **state)
{
    (void)state;
    struct rng rng = rng_seed(1);
    CLEANUP(hist_free_ptr) struct hist *hist = hist_new();
    for (int64_t power = 1; power <= HOUR_NS; power *= 2) {
        for (int i = -2; i < 200; i++) {
            int64_t value =
                i < 3 ? power + i : power + (int64_t)rng_below(&rng, (uint64_t)power);
            if (value < 1 || value > HOUR_NS)
                continue;
            hist_reset(hist);
            hist_record(hist, value);
            assert_int_equal(hist_percentile_ns(hist, 50), value); /* the largest is exact */
            hist_record(hist, HOUR_NS);
            int64_t back = hist_percentile_ns(hist, 50);
            assert_true(back >= value && (double)(back - value) <= 0.001 * (double)value);
            assert_true(value >= 2048 || back == value);
            hist_reset(hist);
            hist_record_many(hist, value, 3);
            assert_near(hist_mean_ns(hist), (double)value, 0.0005);
        }
    }
}

static void test_percentiles(void **state)
{
    (void)state;
    static const double percents[] = {0.001, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100};
    static const struct {
        double median_ns, sigma;
    } shapes[] = {{50, 1}, {2e6, 0.3}, {8e6, 1.5}, {1e9, 3}};
    for (size_t shape = 0; shape < 4; shape++) {
        CLEANUP(free_ptr)
        int64_t *sorted = draw_sorted(shape, shapes[shape].median_ns, shapes[shape].sigma);
        CLEANUP(hist_free_ptr) struct hist *hist = record_all(sorted, RECORDS);
        assert_int_equal(hist_min_ns(hist), sorted[0]);
        assert_int_equal(hist_max_ns(hist), sorted[RECORDS - 1]);
        for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
            /* Thousandths of a percent are whole: the rank without rounding. */
            int64_t scaled = llround(percents[i] * 1000) * RECORDS;
            int64_t exact = sorted[(scaled + 99999) / 100000 - 1];
            int64_t read = hist_percentile_ns(hist, percents[i]);
            assert_true(read >= exact);
            assert_near((double)read, (double)exact, 0.001);
        }
    }
}

static void test_moments(void **state)
{
    (void)state;
    CLEANUP(free_ptr) int64_t *values = draw_sorted(9, 4e6, 0.8);
    CLEANUP(hist_free_ptr) struct hist *hist = record_all(values, RECORDS);
    double mean = 0, square = 0;
    for (int i = 0; i < RECORDS; i++)
        mean += (double)values[i] / RECORDS;
    for (int i = 0; i < RECORDS; i++)
        square += ((double)values[i] - mean) * ((double)values[i] - mean) / RECORDS;
    assert_near(hist_mean_ns(hist), mean, 0.0005);
    assert_near(hist_stddev_ns(hist), sqrt(square), 0.001);
}

/* No percentile has a double of its own: the rank must not slip one up. */
static void test_nearest_rank(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 2000; count += count < 40 ? 1 : 37) {
        CLEANUP(hist_free_ptr) struct hist *hist = hist_new();
        for (int64_t i = 1; i <= count; i++)
            hist_record(hist, i);
        for (int64_t tenths = 1; tenths <= 1000; tenths++) {
            int64_t rank = (tenths * count + 999) / 1000;
            assert_int_equal(hist_percentile_ns(hist, (double)tenths / 10), rank);
        }
    }
}

/* percentile(p) <= limit exactly when share_within(limit) >= p. */
static void test_share_agrees(void **state)
{
    (void)state;
    CLEANUP(free_ptr) int64_t *values = draw_sorted(4, 5e6, 1);
    CLEANUP(hist_free_ptr) struct hist *hist = record_all(values, RECORDS);
    struct rng rng = rng_seed(2);
    for (int i = 0; i < 2000; i++) {
        double percent = 0.1 * (1 + (double)rng_below(&rng, 1000));
        int64_t value = hist_percentile_ns(hist, percent);
        assert_true(hist_share_within(hist, value) * 100 >= percent * (1 - 1e-12));
        assert_true(hist_share_within(hist, value - 1) * 100 < percent);
    }
    assert_true(hist_share_within(hist, values[0] - 1) == 0);
    assert_true(hist_share_within(hist, values[RECORDS - 1]) == 1);
    assert_true(hist_share_within(hist, -1) == 0);
    assert_true(hist_share_within(hist, INT64_MAX) == 1);
}

static void test_limits(void **state)
{
    (void)state;
    CLEANUP(hist_free_ptr) struct hist *hist = hist_new();
    hist_record(hist, 0);
    hist_record(hist, -5);
    assert_int_equal(hist_min_ns(hist), 1);
    hist_record(hist, HOUR_NS);
    assert_int_equal(hist_saturated(hist), 0);
    hist_record(hist, HOUR_NS + 1);
    hist_record_many(hist, INT64_MAX, 4);
    assert_int_equal(hist_saturated(hist), 5);
    assert_int_equal(hist_count(hist), 8);
    assert_int_equal(hist_max_ns(hist), HOUR_NS);
    assert_int_equal(hist_percentile_ns(hist, 100), HOUR_NS);
    hist_reset(hist);
    assert_int_equal(hist_count(hist) + hist_saturated(hist), 0);
    assert_int_equal(hist_max_ns(hist), 0);
}

static void assert_same(const struct hist *a, const struct hist *b)
{
    CLEANUP(str_done) struct str a_text = STR_EMPTY;
    CLEANUP(str_done) struct str b_text = STR_EMPTY;
    hist_encode(a, &a_text);
    hist_encode(b, &b_text);
    assert_string_equal(a_text.bytes, b_text.bytes);
}

static void test_merge(void **state)
{
    (void)state;
    CLEANUP(hist_free_ptr) struct hist *merged = hist_new();
    CLEANUP(hist_free_ptr) struct hist *whole = hist_new();
    CLEANUP(hist_free_ptr) struct hist *none = hist_new();
    struct rng rng = rng_seed(3);
    for (int part = 0; part < 20; part++) {
        CLEANUP(hist_free_ptr) struct hist *one = hist_new();
        for (uint64_t i = rng_below(&rng, 300); i > 0; i--) {
            int64_t value = (int64_t)rng_lognormal(&rng, 14 + part, 4);
            hist_record(one, value);
            hist_record(whole, value);
        }
        hist_merge(merged, one);
        hist_merge(merged, none);
        assert_same(merged, whole);
    }
    assert_true(hist_saturated(whole) > 0);
    assert_true(hist_mean_ns(merged) == hist_mean_ns(whole));
    hist_merge(none, whole);
    assert_same(none, whole);
}

static void test_encode_decode(void **state)
{
    (void)state;
    CLEANUP(hist_free_ptr) struct hist *hist = hist_new();
    CLEANUP(str_done) struct str text = STR_EMPTY;
    hist_encode(hist, &text);
    assert_string_equal(text.bytes, "tranche.hist/1 0 0 0 0");
    str_clear(&text);
    hist_record_many(hist, 7, 3);
    hist_record(hist, 5000000);
    hist_record(hist, 2 * HOUR_NS);
    hist_encode(hist, &text);
    assert_string_equal(text.bytes, "tranche.hist/1 5 7 3600000000000 1 7:3 13508:1 33420:1");
    struct error err = {0};
    CLEANUP(hist_free_ptr) struct hist *back = NULL;
    assert_int_equal(hist_decode(text.bytes, &back, &err), 0);
    assert_same(back, hist);
    for (size_t length = 0; length < text.length; length++) {
        CLEANUP(free_ptr) char *part = strndup(text.bytes, length);
        CLEANUP(hist_free_ptr) struct hist *none = NULL;
        if (hist_decode(part, &none, &err) != -E_INPUT)
            fail_msg("taken: \"%s\"", part);
        assert_null(none);
    }
}

static void test_decode_random(void **state)
{
    (void)state;
    struct rng rng = rng_seed(8);
    for (int round = 0; round < 50; round++) {
        CLEANUP(hist_free_ptr) struct hist *hist = hist_new();
        for (uint64_t i = rng_below(&rng, 100); i > 0; i--)
            hist_record_many(hist, (int64_t)rng_lognormal(&rng, 15, 5), rng_below(&rng, 1000));
        CLEANUP(str_done) struct str text = STR_EMPTY;
        hist_encode(hist, &text);
        CLEANUP(hist_free_ptr) struct hist *back = NULL;
        struct error err = {0};
        assert_int_equal(hist_decode(text.bytes, &back, &err), 0);
        assert_same(back, hist);
        assert_int_equal(hist_percentile_ns(back, 99), hist_percentile_ns(hist, 99));
    }
}

static void test_decode_bad(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "tranche.hist/1",
        "tranche.hist/2 0 0 0 0",
        "tranche.hist/10 0 0 0 0",
        "tranche.hist/1 0 0 0 0 ",
        "tranche.hist/1 0 0 0 1",
        "tranche.hist/1 0 0 0 0 7:1",
        "tranche.hist/1 1 7 7 0 7:1 ",
        "tranche.hist/1 1 7 7 0 7:1\n",
        "tranche.hist/1  1 7 7 0 7:1",
        "tranche.hist/1 2 7 7 0 7:1",     /* fewer records than said */
        "tranche.hist/1 1 7 7 0 7:2",     /* more */
        "tranche.hist/1 1 7 7 0 7:0 7:1", /* an empty bucket */
        "tranche.hist/1 2 7 7 0 7:1 7:1", /* a bucket twice */
        "tranche.hist/1 2 7 8 0 8:1 7:1", /* falling */
        "tranche.hist/1 2 8 7 0 7:1 8:1", /* smallest above largest */
        "tranche.hist/1 2 6 8 0 7:1 8:1", /* range not that of the buckets */
        "tranche.hist/1 2 7 9 0 7:1 8:1",
        "tranche.hist/1 1 0 0 0 0:1", /* no value is 0 */
        "tranche.hist/1 1 7 7 1 7:1", /* saturated below an hour */
        "tranche.hist/1 1 3600000000000 3600000000000 2 33420:1",
        "tranche.hist/1 1 3600000000001 3600000000001 0 33420:1",
        "tranche.hist/1 1 7 7 0 33421:1",
        "tranche.hist/1 1 7 7 0 99999999999999999999:1",
        "tranche.hist/1 18446744073709551616 7 7 0 7:18446744073709551616",
        "tranche.hist/1 -1 7 7 0 7:-1",
        "tranche.hist/1 1 7 7 0 7:+1",
        "tranche.hist/1 1 7 7 0 7=1",
        "tranche.hist/1 1 7 7 0 7",
        "tranche.hist/1 1 7 7 0 x",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {0};
        struct hist *hist = NULL;
        if (hist_decode(bad[i], &hist, &err) != -E_INPUT)
            fail_msg("taken: \"%s\"", bad[i]);
        assert_null(hist);
        assert_int_equal(err.code, E_INPUT);
    }
    struct hist *largest = NULL;
    assert_int_equal(hist_decode("tranche.hist/1 18446744073709551615 7 7 0 "
                                 "7:18446744073709551615",
                                 &largest, NULL),
                     0);
    hist_free(largest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),         cmocka_unit_test(test_error_bound),
        cmocka_unit_test(test_percentiles),   cmocka_unit_test(test_moments),
        cmocka_unit_test(test_nearest_rank),  cmocka_unit_test(test_share_agrees),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_encode_decode), cmocka_unit_test(test_decode_random),
        cmocka_unit_test(test_decode_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
