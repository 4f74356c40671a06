/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics against closed forms, numerical integration, brute force and published
 * examples (R's sleep and t.test/wilcox.test documentation).
 */
#include "base/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void assert_near(double value, double expected, double relative)
{
    if (!(fabs(value - expected) <= relative * fmax(fabs(expected), 1e-300)))
        fail_msg("%.17g, expected %.17g", value, expected);
}

/* Student (1908): extra hours of sleep under two drugs. */
static const double sleep_1[] = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
static const double sleep_2[] = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

static void test_mean_variance(void **state)
{
    (void)state;
    static const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    assert_near(stats_mean(values, 8), 5, 0);
    assert_near(stats_variance(values, 8), 32.0 / 7, 1e-15);
    assert_true(stats_mean(NULL, 0) == 0);
    assert_true(stats_variance(values, 1) == 0);
    /* A large offset does not eat the variance. */
    static const double offset[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
    assert_near(stats_mean(offset, 4), 1e9 + 10, 0);
    assert_near(stats_variance(offset, 4), 30, 1e-14);
}

static void test_quantiles(void **state)
{
    (void)state;
    static const double values[] = {40, 10, 30, 20};
    static const double expected[][2] = {{0, 10},      {0.1, 13}, {0.25, 17.5}, {0.5, 25},
                                         {0.75, 32.5}, {0.9, 37}, {1, 40}};
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_near(stats_quantile(values, 4, expected[i][0]), expected[i][1], 1e-15);
    assert_near(stats_median(values, 3), 30, 0);
    assert_near(stats_median(values, 4), 25, 0);
    assert_near(stats_quantile(values, 1, 0.99), 40, 0);
    assert_true(stats_median(NULL, 0) == 0);
    assert_true(values[0] == 40); /* not sorted in place */
}

/* Closed forms exist for one, two and four degrees of freedom (Shaw 2006). */
static double t_quantile_closed(double p, int df)
{
    double alpha = 4 * p * (1 - p);
    if (df == 1)
        return tan(M_PI * (p - 0.5));
    if (df == 2)
        return 2 * (p - 0.5) * sqrt(2 / alpha);
    double q = cos(acos(sqrt(alpha)) / 3) / sqrt(alpha);
    return (p < 0.5 ? -2 : 2) * sqrt(q - 1);
}

static void test_t_quantile_closed_forms(void **state)
{
    (void)state;
    static const int dfs[] = {1, 2, 4};
    for (size_t i = 0; i < COUNT(dfs); i++) {
        for (double p = 0.001; p < 0.9995; p += 0.001)
            if (fabs(p - 0.5) > 1e-4)
                assert_near(stats_t_quantile(p, dfs[i]), t_quantile_closed(p, dfs[i]), 1e-10);
        assert_true(stats_t_quantile(0.5, dfs[i]) == 0);
    }
    /* Far tails, where the closed forms are exact asymptotically. */
    assert_near(stats_t_quantile(1e-10, 1), -1e10 / M_PI, 1e-9);
    assert_near(stats_t_quantile(1e-12, 2), -1 / sqrt(2e-12), 1e-9);
}

/* The t table that every textbook has. */
static void test_t_quantile_table(void **state)
{
    (void)state;
    static const double table[][3] = {
        {0.975, 1, 12.706204736174698}, {0.975, 2, 4.302652729749464},
        {0.975, 3, 3.182446305283710},  {0.975, 5, 2.570581835636314},
        {0.975, 9, 2.262157162798205},  {0.975, 10, 2.228138851986275},
        {0.975, 30, 2.042272456301238}, {0.975, 100, 1.983971518523552},
        {0.995, 9, 3.249835541592127},  {0.9, 3, 1.637744353696210},
        {0.95, 20, 1.724718242920788},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_near(stats_t_quantile(table[i][0], table[i][1]), table[i][2], 1e-12);
        assert_near(stats_t_quantile(1 - table[i][0], table[i][1]), -table[i][2], 1e-12);
    }
    /* Many degrees of freedom: Fisher's expansion about the normal quantile. */
    const double z = 1.959963984540054, z3 = z * z * z, z5 = z3 * z * z;
    for (double df = 1e4; df < 1e10; df *= 10) {
        double expected = z + (z3 + z) / (4 * df) + (5 * z5 + 16 * z3 + 3 * z) / (96 * df * df);
        assert_near(stats_t_quantile(0.975, df), expected, 1e-10);
    }
}

/* Where the method changes, at ten thousand degrees of freedom, the quantile does not. */
static void test_t_quantile_joins(void **state)
{
    (void)state;
    static const double ps[] = {0.6, 0.75, 0.9, 0.975, 0.995, 0.9999, 1 - 1e-8};
    for (size_t i = 0; i < COUNT(ps); i++)
        assert_near(stats_t_quantile(ps[i], 1e4), stats_t_quantile(ps[i], nextafter(1e4, 0)),
                    1e-11);
}

/* P(|T| > t) by Simpson's rule over the density. */
static double t_tails_integrated(double t, double df)
{
    enum { STEPS = 20000 };
    double constant = exp(lgamma((df + 1) / 2) - lgamma(df / 2)) / sqrt(df * M_PI), sum = 0,
           step = t / STEPS;
    for (int i = 0; i <= STEPS; i++) {
        double x = i * step, weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;
        sum += weight * pow(1 + x * x / df, -(df + 1) / 2);
    }
    return 1 - 2 * constant * sum * step / 3;
}

static void test_welch_integrated(void **state)
{
    (void)state;
    struct rng rng = rng_seed(1);
    for (int round = 0; round < 50; round++) {
        double a[12], b[9];
        for (size_t i = 0; i < COUNT(a); i++)
            a[i] = rng_normal(&rng, 10, 1);
        for (size_t i = 0; i < COUNT(b); i++)
            b[i] = rng_normal(&rng, 10 + 0.05 * round, 3);
        double va = stats_variance(a, 12) / 12, vb = stats_variance(b, 9) / 9;
        double t = fabs(stats_mean(a, 12) - stats_mean(b, 9)) / sqrt(va + vb);
        double df = (va + vb) * (va + vb) / (va * va / 11 + vb * vb / 8);
        double expected = t_tails_integrated(t, df);
        assert_true(fabs(stats_welch_p(a, 12, b, 9) - expected) < 1e-10);
    }
}

static void test_welch(void **state)
{
    (void)state;
    double p = stats_welch_p(sleep_1, 10, sleep_2, 10); /* R: t = -1.8608, df = 17.776 */
    assert_near(p, 0.07939, 1e-4);
    assert_true(stats_welch_p(sleep_2, 10, sleep_1, 10) == p);
    assert_true(isnan(stats_welch_p(sleep_1, 1, sleep_2, 10)));
    assert_true(isnan(stats_welch_p(sleep_1, 10, sleep_2, 0)));
    static const double fives[] = {5, 5, 5}, sixes[] = {6, 6, 6};
    assert_true(stats_welch_p(fives, 3, fives, 3) == 1);
    assert_true(stats_welch_p(fives, 3, sixes, 3) == 0);
    static const double one_apart[] = {5, 6, 7};
    assert_near(stats_welch_p(one_apart, 3, sixes, 3), 1, 0); /* equal means */
}

static void test_mean_interval(void **state)
{
    (void)state;
    struct stats_interval interval = stats_mean_interval(sleep_1, 10, 0.95);
    double half = 2.262157162798205 * 1.789010 / sqrt(10);
    assert_near(interval.estimate, 0.75, 1e-14);
    assert_near(interval.low, 0.75 - half, 1e-6);
    assert_near(interval.high, 0.75 + half, 1e-6);
    struct stats_interval wider = stats_mean_interval(sleep_1, 10, 0.99);
    assert_true(wider.low < interval.low && wider.high > interval.high);
    interval = stats_mean_interval(sleep_1, 1, 0.95);
    assert_true(interval.estimate == 0.7 && isnan(interval.low) && isnan(interval.high));
}

/* Of 95 % intervals, 95 % hold the mean (4.5 standard errors allowed). */
static void test_interval_coverage(void **state)
{
    (void)state;
    enum { ROUNDS = 2000 };
    struct rng rng = rng_seed(5);
    int holds = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double values[6];
        for (size_t i = 0; i < COUNT(values); i++)
            values[i] = rng_normal(&rng, 3, 2);
        struct stats_interval interval = stats_mean_interval(values, 6, 0.95);
        holds += interval.low <= 3 && 3 <= interval.high;
    }
    assert_true(fabs(holds - 0.95 * ROUNDS) < 4.5 * sqrt(0.95 * 0.05 * ROUNDS));
}

static double pairs_above(const double *a, size_t a_count, const double *b, size_t b_count)
{
    double u = 0;
    for (size_t i = 0; i < a_count; i++)
        for (size_t j = 0; j < b_count; j++)
            u += a[i] > b[j] ? 1 : a[i] == b[j] ? 0.5 : 0;
    return u;
}

/* The two-sided p value by going through every choice of who belongs to a. */
static double mann_whitney_brute_force(const double *all, size_t a_count, size_t b_count)
{
    size_t count = a_count + b_count;
    double mean = (double)(a_count * b_count) / 2;
    double observed = fabs(pairs_above(all, a_count, all + a_count, b_count) - mean);
    double extreme = 0, total = 0;
    for (unsigned chosen = 0; chosen < 1U << count; chosen++) {
        if ((size_t)__builtin_popcount(chosen) != a_count)
            continue;
        double a[16], b[16];
        size_t a_used = 0, b_used = 0;
        for (size_t i = 0; i < count; i++)
            *(chosen >> i & 1 ? &a[a_used++] : &b[b_used++]) = all[i];
        total++;
        extreme += fabs(pairs_above(a, a_used, b, b_used) - mean) >= observed - 1e-9;
    }
    return extreme / total;
}

static void test_mann_whitney_brute_force(void **state)
{
    (void)state;
    struct rng rng = rng_seed(6);
    for (size_t a_count = 1; a_count <= 6; a_count++) {
        for (size_t b_count = 1; b_count <= 6; b_count++) {
            double all[12];
            for (size_t i = 0; i < a_count + b_count; i++)
                all[i] = rng_unit(&rng) + (i < a_count ? 0.3 : 0);
            double expected = mann_whitney_brute_force(all, a_count, b_count);
            double p = stats_mann_whitney_p(all, a_count, all + a_count, b_count);
            assert_near(p, expected, 1e-13);
        }
    }
}

static void test_mann_whitney_published(void **state)
{
    (void)state;
    /* R, wilcox.test: permeability of the placenta, one-sided exact p = 0.1272. */
    static const double at_term[] = {0.80, 0.83, 1.89, 1.04, 1.45,
                                     1.38, 1.91, 1.64, 0.73, 1.46};
    static const double early[] = {1.15, 0.88, 0.90, 0.74, 1.21};
    assert_near(stats_mann_whitney_p(at_term, 10, early, 5), 2 * 0.1272, 3e-4);
    /* R, sleep, with ties: W = 25.5, p = 0.06933. */
    assert_near(stats_mann_whitney_p(sleep_1, 10, sleep_2, 10), 0.06933, 1e-4);
    assert_near(stats_mann_whitney_p(sleep_2, 10, sleep_1, 10), 0.06933, 1e-4);
}

static void test_mann_whitney_edges(void **state)
{
    (void)state;
    static const double same[] = {3, 3, 3, 3};
    assert_true(stats_mann_whitney_p(same, 4, same, 4) == 1);
    assert_true(isnan(stats_mann_whitney_p(same, 0, same, 4)));
    assert_true(isnan(stats_mann_whitney_p(same, 4, same, 0)));
    double low[21], high[21];
    for (int i = 0; i < 21; i++) {
        low[i] = i;
        high[i] = 100 + i;
    }
    /* Complete separation: 2 / C(40, 20) exactly. */
    assert_near(stats_mann_whitney_p(low, 20, high, 20), 2 / 137846528820.0, 1e-12);
    /* One more a side takes the approximation; both agree in order of magnitude. */
    double p = stats_mann_whitney_p(low, 21, high, 21);
    assert_true(p > 1e-9 && p < 1e-7);
}

/* Exact and approximate p agree where both are trustworthy. */
static void test_mann_whitney_continuous(void **state)
{
    (void)state;
    struct rng rng = rng_seed(9);
    for (int round = 0; round < 200; round++) {
        double a[20], b[21];
        for (int i = 0; i < 20; i++)
            a[i] = rng_unit(&rng) + 0.2;
        for (int i = 0; i < 21; i++)
            b[i] = rng_unit(&rng);
        double exact = stats_mann_whitney_p(a, 20, b, 20);
        b[20] = b[19]; /* a tie: the approximation */
        double near = stats_mann_whitney_p(a, 20, b, 20 + 1);
        assert_true(fabs(exact - near) < 0.2);
        b[19] = nextafter(b[18], 2);
        double untied = stats_mann_whitney_p(a, 20, b, 20);
        b[19] = b[18];
        double tied = stats_mann_whitney_p(a, 20, b, 20);
        assert_true(fabs(untied - tied) < 0.01);
    }
}

static void test_fit_line(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4}, y[] = {6, 5, 7, 10}, flat[] = {2, 2, 2, 2};
    struct stats_line line = stats_fit_line(x, y, 4);
    assert_near(line.slope, 1.4, 1e-14);
    assert_near(line.intercept, 3.5, 1e-14);
    assert_near(line.r_squared, 0.7, 1e-14);
    line = stats_fit_line(x, flat, 4);
    assert_true(line.slope == 0 && line.intercept == 2 && line.r_squared == 1);
    line = stats_fit_line(flat, y, 4);
    assert_true(line.slope == 0 && line.intercept == 7 && line.r_squared == 0);
    line = stats_fit_line(x, x, 4);
    assert_true(line.slope == 1 && line.intercept == 0 && line.r_squared == 1);
    line = stats_fit_line(x, y, 0);
    assert_true(line.slope == 0 && line.intercept == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_variance),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_t_quantile_closed_forms),
        cmocka_unit_test(test_t_quantile_table),
        cmocka_unit_test(test_t_quantile_joins),
        cmocka_unit_test(test_welch_integrated),
        cmocka_unit_test(test_welch),
        cmocka_unit_test(test_mean_interval),
        cmocka_unit_test(test_interval_coverage),
        cmocka_unit_test(test_mann_whitney_brute_force),
        cmocka_unit_test(test_mann_whitney_published),
        cmocka_unit_test(test_mann_whitney_edges),
        cmocka_unit_test(test_mann_whitney_continuous),
        cmocka_unit_test(test_fit_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
