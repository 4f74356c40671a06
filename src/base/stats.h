/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of small samples: what a result needs to carry an interval, and a
 * comparison needs to carry a verdict. Samples are plain arrays; none is modified.
 */
#ifndef TRANCHE_BASE_STATS_H
#define TRANCHE_BASE_STATS_H

#include <stddef.h>

struct stats_interval {
    double estimate, low, high;
};

double stats_mean(const double *values, size_t count);     /* 0 when empty */
double stats_variance(const double *values, size_t count); /* n − 1; 0 below two */
double stats_median(const double *values, size_t count);   /* 0 when empty */
/* Quantile q of 0 to 1 as R's type 7 interpolates it; 0 when empty. */
double stats_quantile(const double *values, size_t count, double q);
/* Quantile of Student's t with df degrees of freedom, 0 < p < 1. */
double stats_t_quantile(double p, double df);
/* Student's t confidence interval of the mean at `confidence` (0.95). One value: low =
 * high = NAN. */
struct stats_interval stats_mean_interval(const double *values, size_t count,
                                          double confidence);
/* Welch's t test, two-sided p value; NAN when either side has fewer than two values. Two
 * constant sides: 1 when equal, else 0. */
double stats_welch_p(const double *a, size_t a_count, const double *b, size_t b_count);
/* Mann-Whitney U, two-sided p value: exact without ties up to 20 values a side, else the
 * normal approximation with tie correction; NAN when a side is empty. */
double stats_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count);
/* Least squares y = intercept + slope × x with the coefficient of determination. Without
 * variation in x the slope is 0; without variation in y r_squared is 1. */
struct stats_line {
    double intercept, slope, r_squared;
};
/* x and y have `count` values each; an empty sample gives the line y = 0. */
struct stats_line stats_fit_line(const double *x, const double *y, size_t count);

#endif
