/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of small samples. Student's t goes through the regularised incomplete beta
 * function (continued fraction DLMF 8.17.22, modified Lentz), its quantile by bisection.
 * Mann-Whitney's exact distribution is the Gaussian binomial coefficient.
 */
#include "base/stats.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"

enum {
    EXACT_COUNT_MAX = 20,       /* values a side of an exact Mann-Whitney test */
    MANY_DEGREES = 10000,       /* from here on Student's t by its normal approximation */
    FRACTION_STEPS_MAX = 10000, /* they grow with the root of df: some hundred are needed */
    BISECTION_STEPS_MAX = 2200, /* a double has at most so many halvings */
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Γ(a + 1/2) / Γ(a), its logarithm: by the asymptotic series from a = 20 on, where the
 * difference of two large logarithms would lose digits. Error below 1e-14. */
static double log_gamma_half_step(double a)
{
    assert(a > 0);
    if (a < 20) {
        int sign;
        return lgamma_r(a + 0.5, &sign) - lgamma_r(a, &sign);
    }
    double inverse = 1 / a, square = inverse * inverse;
    double series =
        1.0 / 8 - square * (1.0 / 192 - square * (1.0 / 640 - square * (17.0 / 14336)));
    return 0.5 * log(a) - inverse * series;
}

/* The continued fraction of the incomplete beta function at x, with x below
 * (a + 1)/(a + b + 2), where it converges fast. */
static double beta_fraction(double a, double b, double x)
{
    assert(a > 0 && b > 0 && x > 0 && x < 1);
    const double tiny = DBL_MIN / DBL_EPSILON;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d, change = 0;
    /* Modified Lentz: c and d are kept off zero by `tiny`, so that no step divides by it;
     * `change` holds both half steps of one m. */
    for (int m = 1; m < FRACTION_STEPS_MAX && fabs(change - 1) > 4 * DBL_EPSILON; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        change = 1;
        for (int half = 0; half < 2; half++) {
            double term = half ? odd : even;
            d = 1 + term * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + term / c;
            c = fabs(c) < tiny ? tiny : c;
            value *= d * c;
            change *= d * c;
        }
    }
    return value;
}

/* G. W. Hill's normalising transformation (CACM algorithm 395, 1970), for many degrees of
 * freedom: there the continued fraction subtracts numbers that are nearly equal. From
 * df = 1e4 on the relative error of common tails is below 1e-11. */
static double t_two_tails_many(double t, double df)
{
    assert(df >= MANY_DEGREES);
    double a = df - 0.5, b = 48 * a * a, square = a * log1p(t * t / df);
    double correction = (((-0.4 * square - 3.3) * square - 24) * square - 85.5) /
                        (0.8 * square * square + 100 + b);
    double z = ((correction + square + 3) / b + 1) * sqrt(square);
    return erfc(z * M_SQRT1_2);
}

/* P(|T| > t) for Student's t with df degrees of freedom: I_x(df/2, 1/2) at
 * x = df/(df + t²) (DLMF 8.17; Abramowitz and Stegun 26.7.1). */
static double t_two_tails(double t, double df)
{
    assert(df > 0 && t >= 0);
    if (isinf(t))
        return 0;
    if (df >= MANY_DEGREES)
        return t_two_tails_many(t, df);
    double a = df / 2, square = t * t;
    double x = 1 / (1 + square / df),
           rest = isinf(square) ? 1 : square / df / (1 + square / df);
    if (rest == 0)
        return 1;
    if (x == 0)
        return 0;
    double log_x = -log1p(square / df);
    double front = exp(log_gamma_half_step(a) - 0.5 * log(M_PI) + a * log_x + 0.5 * log(rest));
    if (x < (a + 1) / (a + 2.5))
        return front * beta_fraction(a, 0.5, x) / a;
    return 1 - front * beta_fraction(0.5, a, rest) / 0.5;
}

/* P(U <= u) under the null hypothesis, without ties. The number of arrangements with
 * U = i is the coefficient of q^i in the Gaussian binomial [a+b choose a]: the product of
 * (1 − q^(b+k)) / (1 − q^k) for k = 1 … a, multiplied out factor by factor. All
 * coefficients are integers below C(40, 20) < 2^53: exact in a double. */
static double mann_whitney_cumulative(size_t a_count, size_t b_count, size_t u)
{
    assert(a_count <= EXACT_COUNT_MAX && b_count <= EXACT_COUNT_MAX);
    double ways[EXACT_COUNT_MAX * EXACT_COUNT_MAX + 1] = {1};
    size_t last = a_count * b_count;
    for (size_t k = 1; k <= a_count; k++) {
        for (size_t i = last + 1; i-- > b_count + k;)
            ways[i] -= ways[i - b_count - k];
        for (size_t i = k; i <= last; i++)
            ways[i] += ways[i - k];
    }
    double below = 0, all = 0;
    for (size_t i = 0; i <= last; i++) {
        all += ways[i];
        below += i <= u ? ways[i] : 0;
    }
    return below / all;
}

/* Two sorted samples walked together. */
struct rank_walk {
    double smaller_u; /* the smaller one of both U; half counts come from ties */
    double tie_sum;   /* sum of t³ − t over groups of t equal values */
};

static struct rank_walk walk_ranks(const double *a, size_t a_count, const double *b,
                                   size_t b_count)
{
    double u = 0, tie_sum = 0; /* u: pairs with a > b */
    size_t i = 0, j = 0;
    while (i < a_count || j < b_count) {
        double value = j >= b_count || (i < a_count && a[i] < b[j]) ? a[i] : b[j];
        size_t i_start = i, j_start = j;
        while (i < a_count && a[i] == value)
            i++;
        while (j < b_count && b[j] == value)
            j++;
        double equal_a = (double)(i - i_start), equal_b = (double)(j - j_start);
        double equal = equal_a + equal_b;
        assert(equal > 0 && "samples hold no nan");
        u += equal_a * ((double)j_start + equal_b / 2);
        tie_sum += equal * equal * equal - equal;
    }
    double other = (double)a_count * (double)b_count - u;
    return (struct rank_walk){.smaller_u = u < other ? u : other, .tie_sum = tie_sum};
}

/* The normal approximation with continuity and tie corrections (Lehmann 1975). */
static double mann_whitney_normal(struct rank_walk walk, double a_count, double b_count)
{
    assert(a_count > 0 && b_count > 0 && walk.tie_sum >= 0);
    double all = a_count + b_count, pairs = a_count * b_count;
    double variance = pairs / 12 * (all + 1 - walk.tie_sum / (all * (all - 1)));
    if (variance <= 0) /* every value the same */
        return 1;
    double distance = pairs / 2 - walk.smaller_u - 0.5;
    return distance <= 0 ? 1 : erfc(distance / sqrt(2 * variance));
}

double stats_mean(const double *values, size_t count)
{
    assert(values || count == 0);
    if (count == 0)
        return 0;
    double sum = 0, rest = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        rest += values[i] - mean; /* what rounding lost of the sum */
    return mean + rest / (double)count;
}

double stats_variance(const double *values, size_t count)
{
    if (count < 2)
        return 0;
    double mean = stats_mean(values, count), sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sum / (double)(count - 1);
}

double stats_median(const double *values, size_t count)
{
    return stats_quantile(values, count, 0.5);
}

/* Hyndman and Fan (1996), type 7. */
double stats_quantile(const double *values, size_t count, double q)
{
    assert(q >= 0 && q <= 1);
    if (count == 0)
        return 0;
    CLEANUP(free_ptr) double *sorted = xmemdup(values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    double position = q * (double)(count - 1);
    size_t below = (size_t)position;
    size_t above = below + 1 < count ? below + 1 : below;
    double share = position - (double)below;
    return sorted[below] + share * (sorted[above] - sorted[below]);
}

double stats_t_quantile(double p, double df)
{
    assert(p > 0 && p < 1 && df > 0);
    if (p == 0.5)
        return 0;
    double tails = 2 * (p < 0.5 ? p : 1 - p);
    double low = 0, high = 1;
    while (high < DBL_MAX / 2 && t_two_tails(high, df) > tails) {
        low = high;
        high *= 2;
    }
    for (int step = 0; step < BISECTION_STEPS_MAX; step++) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            break;
        if (t_two_tails(middle, df) > tails)
            low = middle;
        else
            high = middle;
    }
    return p < 0.5 ? -high : high;
}

struct stats_interval stats_mean_interval(const double *values, size_t count, double confidence)
{
    assert(confidence > 0 && confidence < 1);
    double mean = stats_mean(values, count);
    if (count < 2)
        return (struct stats_interval){.estimate = mean, .low = NAN, .high = NAN};
    double error = sqrt(stats_variance(values, count) / (double)count);
    double half = error * stats_t_quantile(0.5 + confidence / 2, (double)(count - 1));
    return (struct stats_interval){.estimate = mean, .low = mean - half, .high = mean + half};
}

/* B. L. Welch (1947), degrees of freedom by Welch and Satterthwaite. */
double stats_welch_p(const double *a, size_t a_count, const double *b, size_t b_count)
{
    if (a_count < 2 || b_count < 2)
        return NAN;
    double difference = fabs(stats_mean(a, a_count) - stats_mean(b, b_count));
    double a_square = stats_variance(a, a_count) / (double)a_count;
    double b_square = stats_variance(b, b_count) / (double)b_count;
    double square = a_square + b_square;
    if (square == 0) /* two constants: the same or certainly not */
        return difference == 0 ? 1 : 0;
    double a_part = a_square / square, b_part = b_square / square;
    double df =
        1 / (a_part * a_part / (double)(a_count - 1) + b_part * b_part / (double)(b_count - 1));
    return t_two_tails(difference / sqrt(square), df);
}

double stats_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count)
{
    if (a_count == 0 || b_count == 0)
        return NAN;
    CLEANUP(free_ptr) double *a_sorted = xmemdup(a, a_count * sizeof *a);
    CLEANUP(free_ptr) double *b_sorted = xmemdup(b, b_count * sizeof *b);
    qsort(a_sorted, a_count, sizeof *a_sorted, compare_doubles);
    qsort(b_sorted, b_count, sizeof *b_sorted, compare_doubles);
    struct rank_walk walk = walk_ranks(a_sorted, a_count, b_sorted, b_count);
    bool exact = walk.tie_sum == 0 && a_count <= EXACT_COUNT_MAX && b_count <= EXACT_COUNT_MAX;
    if (!exact)
        return mann_whitney_normal(walk, (double)a_count, (double)b_count);
    double p = 2 * mann_whitney_cumulative(a_count, b_count, (size_t)walk.smaller_u);
    return p < 1 ? p : 1;
}

struct stats_line stats_fit_line(const double *x, const double *y, size_t count)
{
    assert((x && y) || count == 0);
    double x_mean = stats_mean(x, count), y_mean = stats_mean(y, count);
    double xx = 0, xy = 0, yy = 0;
    for (size_t i = 0; i < count; i++) {
        xx += (x[i] - x_mean) * (x[i] - x_mean);
        xy += (x[i] - x_mean) * (y[i] - y_mean);
        yy += (y[i] - y_mean) * (y[i] - y_mean);
    }
    double slope = xx > 0 ? xy / xx : 0;
    double explained = xx > 0 && yy > 0 ? xy / xx * (xy / yy) : 0;
    return (struct stats_line){.intercept = y_mean - slope * x_mean,
                               .slope = slope,
                               .r_squared = yy > 0 ? fmin(explained, 1) : 1};
}
