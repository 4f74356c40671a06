/* SPDX-License-Identifier: Apache-2.0
 *
 * Poisson windows: from the mode outwards by the recurrence, so nothing underflows that
 * matters and one lgamma() is the only expensive call.
 */
#include "plan/queue_poisson.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

/* Up to this mean the recurrence starts from P(0) = exp(-mean). */
static const double DIRECT_MAX = 20;

/* Values below this are left out. */
static const double NEGLIGIBLE = 1e-15;

/* No window reaches further from its mean than this: there each value is below NEGLIGIBLE
 * (Chernoff: P(|X - a| > d) <= 2 exp(-d^2 / (2 (a + d/3)))). */
static double window_reach(double mean)
{
    return 26 + 8.5 * sqrt(mean);
}

void poisson_set(struct poisson *poisson, double mean)
{
    poisson_set_upto(poisson, mean, INT_MAX);
}

/* P(count) at the mean, count being near it or below. */
static double start_value(double mean, int count)
{
    int sign = 1;
    return exp(count * log(mean) - mean - lgamma_r(count + 1.0, &sign));
}

void poisson_set_upto(struct poisson *poisson, double mean, int most)
{
    assert(mean >= 0 && isfinite(mean) && most >= 0);
    double reach = window_reach(mean);
    int low = mean > reach ? (int)(mean - reach) : 0;
    int high = (int)(mean + reach) + 1, mode = (int)mean;
    if (high > most)
        high = most > low ? most : low;
    mode = mode < high ? mode : high;
    int count = high - low + 1;
    assert(count <= POISSON_WINDOW_MAX);
    if (count > poisson->capacity) {
        poisson->values = xrealloc(poisson->values, (size_t)count * 2, sizeof(double));
        poisson->capacity = count * 2;
    }
    double *values = poisson->values;
    double value = mean > DIRECT_MAX ? start_value(mean, mode) : exp(-mean);
    if (mean <= DIRECT_MAX)
        mode = 0;
    double inverse = mean > 0 ? 1 / mean : 0;
    values[mode - low] = value;
    int k = mode;
    double next = k + 1, v = value;
    for (; k < high && (v > NEGLIGIBLE || k < mean); k++, next += 1)
        values[k + 1 - low] = v *= mean / next;
    poisson->high = k;
    k = mode;
    v = value;
    for (double number = k; k > low && v > NEGLIGIBLE; k--, number -= 1)
        values[k - 1 - low] = v *= number * inverse;
    poisson->mean = mean;
    poisson->low = k;
    poisson->base = low;
}

void poisson_done(struct poisson *poisson)
{
    free(poisson->values);
    *poisson = (struct poisson){0};
}

double poisson_at_least(const struct poisson *poisson, int count)
{
    if (count <= poisson->low)
        return 1;
    double sum = 0;
    if (count > poisson->mean) {
        for (int k = poisson->high; k >= count; k--)
            sum += poisson->values[k - poisson->base];
        return sum;
    }
    for (int k = poisson->low; k < count && k <= poisson->high; k++)
        sum += poisson->values[k - poisson->base];
    return sum < 1 ? 1 - sum : 0;
}

double poisson_mean_capped(const struct poisson *poisson, int cap)
{
    if (cap <= 0)
        return 0;
    double below = 0;
    for (int k = poisson->low; k < cap && k <= poisson->high; k++)
        below += k * poisson->values[k - poisson->base];
    return below + cap * poisson_at_least(poisson, cap);
}
