/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers: published vectors, pinned draws of every distribution, and the
 * distributions' shape with fixed seeds. The critical values below are those of
 * p = 0.001; as the seeds are fixed, a test passes always or never.
 */
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWS = 200000 };
/* Kolmogorov-Smirnov: P(D·√n > 1.95) = 0.001. */
#define KS_LIMIT 1.95

/* Upper 0.001 quantile of chi square by Wilson and Hilferty (1931). */
static double chi_square_limit(double df)
{
    double term = 1 - 2 / (9 * df) + 3.0902 * sqrt(2 / (9 * df));
    return df * term * term * term;
}

/* The authors' generator from the state {1, 2, 3, 4}. */
static void test_xoshiro_vector(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        11520u,
        0u,
        1509978240u,
        1215971899390074240u,
        1216172134540287360u,
        607988272756665600u,
        16172922978634559625u,
        8476171486693032832u,
        10595114339597558777u,
        2904607092377533576u,
    };
    struct rng rng = {.state = {1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(rng_next(&rng) == expected[i]);
}

/* splitmix64 from 1234567, which is how the state is seeded. */
static void test_splitmix_vector(void **state)
{
    (void)state;
    static const uint64_t expected[4] = {6457827717110365317u, 3203168211198807973u,
                                         9817491932198370423u, 4593380528125082431u};
    struct rng rng = rng_seed(1234567);
    assert_memory_equal(rng.state, expected, sizeof expected);
}

/* The same numbers on every machine: draws pinned to the last bit. */
static void test_pinned_draws(void **state)
{
    (void)state;
    struct rng rng = rng_seed(42);
    assert_true(rng_unit(&rng) == 0x1.5780b2e0c2ecp-4);
    assert_true(rng_uniform(&rng, -3, 7) == 0x1.9460fe8085588p-1);
    assert_true(rng_exponential(&rng, 2.5) == 0x1.6ca992096557fp+1);
    assert_true(rng_normal(&rng, 10, 3) == 0x1.99d4466eee77ep+3);
    assert_true(rng_lognormal(&rng, 1, 0.5) == 0x1.d31324ff27bb8p+1);
    assert_int_equal(rng_poisson(&rng, 4.5), 5);
    assert_int_equal(rng_poisson(&rng, 1234.5), 1253);
    assert_int_equal(rng_below(&rng, 1000), 801);
}

static void test_streams_differ(void **state)
{
    (void)state;
    enum { SEEDS = 4, STREAMS = 64 };
    uint64_t first[SEEDS * (STREAMS + 1)];
    size_t count = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rng plain = rng_seed(seed);
        first[count++] = rng_next(&plain);
        for (uint64_t index = 0; index < STREAMS; index++) {
            struct rng stream = rng_seed_stream(seed, index);
            struct rng again = rng_seed_stream(seed, index);
            first[count++] = rng_next(&stream);
            assert_true(rng_next(&again) == first[count - 1]);
        }
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(first[i] != first[j]);
}

/* Neighbouring streams are uncorrelated: |r|·√n stays below the normal's 0.001 limit. */
static void test_streams_uncorrelated(void **state)
{
    (void)state;
    for (uint64_t index = 0; index < 8; index++) {
        struct rng a = rng_seed_stream(5, index), b = rng_seed_stream(5, index + 1);
        double sum = 0;
        for (int i = 0; i < DRAWS; i++)
            sum += (rng_unit(&a) - 0.5) * (rng_unit(&b) - 0.5);
        assert_true(fabs(sum * 12) / sqrt(DRAWS) < 3.29);
    }
}

static void check_below(uint64_t seed, uint64_t bound, uint64_t cells)
{
    struct rng rng = rng_seed(seed);
    double *counts = calloc(cells, sizeof *counts);
    uint64_t width = bound / cells;
    for (int i = 0; i < DRAWS; i++) {
        uint64_t value = rng_below(&rng, bound);
        assert_true(value < bound);
        counts[value / width]++;
    }
    double expected = (double)DRAWS / (double)cells, chi = 0;
    for (uint64_t i = 0; i < cells; i++)
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    free(counts);
    assert_true(chi < chi_square_limit((double)cells - 1));
}

/* The last bound is ¾ of the range: a plain remainder would draw the first third twice
 * as often, a plain multiplication would hit every third cell twice as often. */
static void test_below(void **state)
{
    (void)state;
    struct rng rng = rng_seed(1);
    for (int i = 0; i < 100; i++)
        assert_int_equal(rng_below(&rng, 1), 0);
    check_below(1, 2, 2);
    check_below(2, 10, 10);
    check_below(3, 1000, 1000);
    check_below(4, UINT64_C(3) << 62, 3);
    check_below(5, UINT64_C(3) << 62, 96);
}

/* The residues of ¾ of the range: multiplication without rejection draws values that are
 * multiples of three twice as often. */
static void test_below_unbiased(void **state)
{
    (void)state;
    struct rng rng = rng_seed(6);
    double counts[3] = {0};
    for (int i = 0; i < DRAWS; i++)
        counts[rng_below(&rng, UINT64_C(3) << 62) % 3]++;
    double chi = 0;
    for (int i = 0; i < 3; i++)
        chi += pow(counts[i] - DRAWS / 3.0, 2) / (DRAWS / 3.0);
    assert_true(chi < chi_square_limit(2));
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_distribution(double (*draw)(struct rng *), double (*cdf)(double),
                               uint64_t seed)
{
    struct rng rng = rng_seed(seed);
    double *values = calloc(DRAWS, sizeof *values);
    for (int i = 0; i < DRAWS; i++)
        values[i] = draw(&rng);
    qsort(values, DRAWS, sizeof *values, compare_doubles);
    double distance = 0;
    for (int i = 0; i < DRAWS; i++) {
        double p = cdf(values[i]);
        distance = fmax(distance, fmax(p - i / (double)DRAWS, (i + 1) / (double)DRAWS - p));
    }
    free(values);
    if (distance * sqrt(DRAWS) >= KS_LIMIT)
        fail_msg("seed %u: distance %g", (unsigned)seed, distance * sqrt(DRAWS));
}

static double draw_uniform(struct rng *rng)
{
    return rng_uniform(rng, -2, 6);
}

static double cdf_uniform(double x)
{
    return (x + 2) / 8;
}

static double draw_exponential(struct rng *rng)
{
    return rng_exponential(rng, 0.25);
}

static double cdf_exponential(double x)
{
    return -expm1(-x / 0.25);
}

static double draw_normal(struct rng *rng)
{
    return rng_normal(rng, 5, 2);
}

static double cdf_normal(double x)
{
    return 0.5 * erfc(-(x - 5) / (2 * M_SQRT2));
}

static double draw_lognormal(struct rng *rng)
{
    return rng_lognormal(rng, 1, 0.75);
}

static double cdf_lognormal(double x)
{
    return 0.5 * erfc(-(log(x) - 1) / (0.75 * M_SQRT2));
}

static void test_continuous(void **state)
{
    (void)state;
    check_distribution(rng_unit, fabs, 11);
    check_distribution(draw_uniform, cdf_uniform, 12);
    check_distribution(draw_exponential, cdf_exponential, 13);
    check_distribution(draw_normal, cdf_normal, 14);
    check_distribution(draw_lognormal, cdf_lognormal, 15);
}

/* Counts of 0 … cells−1 against their probabilities; cells expected below 8 are pooled. */
static void check_poisson(double mean)
{
    enum { CELLS_MAX = 4000 };
    struct rng rng = rng_seed(17);
    double *counts = calloc(CELLS_MAX, sizeof *counts);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t value = rng_poisson(&rng, mean);
        assert_true(value < CELLS_MAX);
        counts[value]++;
    }
    double chi = 0, cells = 0, pooled = 0, pooled_expected = 0;
    for (int k = 0; k < CELLS_MAX; k++) {
        double expected = DRAWS * exp(k * log(mean) - mean - lgamma(k + 1.0));
        pooled += counts[k];
        pooled_expected += expected;
        if (pooled_expected < 8)
            continue;
        chi += (pooled - pooled_expected) * (pooled - pooled_expected) / pooled_expected;
        cells++;
        pooled = pooled_expected = 0;
    }
    free(counts);
    assert_true(pooled < 40);
    if (cells > 1 && chi >= chi_square_limit(cells - 1))
        fail_msg("mean %g: chi square %g in %g cells", mean, chi, cells);
}

static void test_poisson(void **state)
{
    (void)state;
    static const double means[] = {0.001, 0.5, 3, 9.99, 10, 11.5, 30, 100, 1000};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        check_poisson(means[i]);
    struct rng rng = rng_seed(1);
    assert_int_equal(rng_poisson(&rng, 0), 0);
}

/* Far beyond a table: mean and variance of a large count, both equal to the mean. */
static void test_poisson_huge(void **state)
{
    (void)state;
    const double mean = 1e12;
    struct rng rng = rng_seed(18);
    double sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        double z = ((double)rng_poisson(&rng, mean) - mean) / sqrt(mean);
        sum += z;
        squares += z * z;
    }
    assert_true(fabs(sum / sqrt(DRAWS)) < 3.29);
    assert_true(fabs(squares / DRAWS - 1) * sqrt(DRAWS / 2.0) < 3.29);
}

/* The module's own logarithm and exponential against the C library's. */
static void test_functions_accurate(void **state)
{
    (void)state;
    struct rng rng = rng_seed(19);
    for (int i = 0; i < DRAWS; i++) {
        struct rng copy = rng;
        double expected = -log(1 - rng_unit(&copy));
        assert_true(fabs(rng_exponential(&rng, 1) - expected) <= 4e-16 * expected);
        copy = rng;
        expected = exp(rng_normal(&copy, 0, 50));
        assert_true(fabs(rng_lognormal(&rng, 0, 50) - expected) <= 6e-16 * expected);
    }
}

static void test_extremes(void **state)
{
    (void)state;
    struct rng rng = rng_seed(20);
    assert_true(rng_uniform(&rng, 3, 3) == 3);
    assert_true(rng_exponential(&rng, 0) == 0);
    assert_true(rng_normal(&rng, 8, 0) == 8);
    assert_true(rng_lognormal(&rng, 0, 0) == 1);
    assert_true(isinf(rng_lognormal(&rng, 1000, 0)));
    assert_true(rng_lognormal(&rng, -1000, 0) == 0);
    double low = 1, high = nextafter(1, 2);
    for (int i = 0; i < 100; i++)
        assert_true(rng_uniform(&rng, low, high) == low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xoshiro_vector),
        cmocka_unit_test(test_splitmix_vector),
        cmocka_unit_test(test_pinned_draws),
        cmocka_unit_test(test_streams_differ),
        cmocka_unit_test(test_streams_uncorrelated),
        cmocka_unit_test(test_below),
        cmocka_unit_test(test_below_unbiased),
        cmocka_unit_test(test_continuous),
        cmocka_unit_test(test_poisson),
        cmocka_unit_test(test_poisson_huge),
        cmocka_unit_test(test_functions_accurate),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
