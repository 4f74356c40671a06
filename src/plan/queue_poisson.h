/* SPDX-License-Identifier: Apache-2.0
 *
 * Poisson probabilities as windows: only the values that matter in double precision.
 */
#ifndef TRANCHE_PLAN_QUEUE_POISSON_H
#define TRANCHE_PLAN_QUEUE_POISSON_H

enum { POISSON_WINDOW_MAX = 16384 };

/* P(low) … P(high) of one mean; outside they are 0 (each below 1e-15). Owns its values. */
struct poisson {
    double mean;
    int low, high;
    int base; /* values[0] is P(base), base <= low */
    double *values;
    int capacity;
};

/* Computes the window of this mean (>= 0), reusing memory. */
void poisson_set(struct poisson *poisson, double mean);
/* The same without the values above `most`, which is cheaper. poisson_at_least() and
 * poisson_mean_capped() then hold up to counts of the mean only. */
void poisson_set_upto(struct poisson *poisson, double mean, int most);
void poisson_done(struct poisson *poisson);
/* P(count); 0 outside the window. */
static inline double poisson_at(const struct poisson *poisson, int count)
{
    return count < poisson->low || count > poisson->high
               ? 0
               : poisson->values[count - poisson->base];
}
/* P(at least count), summed from the smaller side. */
double poisson_at_least(const struct poisson *poisson, int count);
/* E[min(cap, count)], of this window's mean. */
double poisson_mean_capped(const struct poisson *poisson, int cap);

#endif
