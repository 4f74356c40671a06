/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading figures off the stationary law. One process: every batch has a first request,
 * an arrival t ms into some batch's time S that finds j b others waiting; its own batch
 * can start S - t + j S_b later. The figure per start is the integral of the batch's worth
 * (queue_value.h) over those arrivals, divided by the requests per start. Batches of one
 * on c processes: Franx (2001).
 */
#include "plan/queue_measure.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { BREAKS_MAX = QUEUE_GROUPS_MAX + 8, BATCHES_MAX = 200000 };

/* First requests rarer than this, per start, are left out. */
static const double NEGLIGIBLE = 1e-10;

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where the worth jumps or bends as a function of busy time, within low … high, ends
 * included, sorted. */
static int find_breaks(const struct queue_value *value, double low, double high,
                       double ret_breaks[BREAKS_MAX])
{
    assert(low <= high);
    const struct queue_case *system = value->system;
    int count = 0;
    ret_breaks[count++] = low;
    ret_breaks[count++] = high;
    if (system->wait_ms > low && system->wait_ms < high)
        ret_breaks[count++] = system->wait_ms;
    for (int g = 0; value->measure == QUEUE_LATE && g < system->group_count; g++) {
        double jump = value->limit_ms - system->groups[g].total_ms;
        if (jump > low && jump < high)
            ret_breaks[count++] = jump;
    }
    assert(count <= BREAKS_MAX);
    qsort(ret_breaks, (size_t)count, sizeof *ret_breaks, compare_doubles);
    return count;
}

/* Over first requests with j b others before them: how many there are per start, and the
 * worth of their batches. */
struct sums {
    double often, worth;
};

/* Those of one source whose busy time lies in low … high. */
static struct sums integrate(struct queue_chain *chain, struct queue_value *value,
                             const struct queue_source *source, int j, const double range[2])
{
    assert(j >= 0 && range[0] <= range[1]);
    const struct queue_case *system = &chain->system;
    double end = source->service_ms + j * queue_last_group(system)->service_ms;
    double step = 1.5 * sqrt(system->batch) / system->rate; /* deviations of a filling */
    double breaks[BREAKS_MAX];
    struct sums sums = {0, 0};
    int count = find_breaks(value, range[0], range[1], breaks);
    for (int i = 0; i + 1 < count; i++) {
        double width = breaks[i + 1] - breaks[i];
        int panels = width < 40 * step ? (int)(width / step) + 1 : 40;
        double half = width / panels / 2;
        for (int node = 0; node < panels * QUEUE_NODES; node++) {
            int panel = node / QUEUE_NODES;
            double r = breaks[i] + half * (2 * panel + 1 + queue_node_at[node % QUEUE_NODES]);
            double often = half * queue_node_weight[node % QUEUE_NODES] *
                           queue_chain_arrivals(chain, source, end - r, j * system->batch);
            sums.often += often;
            if (often > NEGLIGIBLE / 1000)
                sums.worth += often * queue_value_of_batch(value, r);
        }
    }
    return sums;
}

/* All first requests of one source, j = 0, 1, …; the geometric rest in closed form. */
static double sum_source(struct queue_chain *chain, struct queue_value *value,
                         const struct queue_source *source)
{
    assert(source->service_ms > 0);
    const struct queue_case *system = &chain->system;
    double full = queue_last_group(system)->service_ms, zero = queue_value_zero(value);
    double linear = queue_value_linear(value), sum = 0;
    double shrink = pow(chain->ratio, system->batch), slope = queue_value_slope(value) * full;
    double first = zero > source->service_ms ? floor((zero - source->service_ms) / full) : 0;
    if (first > BATCHES_MAX)
        return 0; /* nobody waits so long below saturation */
    int start = (int)first;
    for (int j = start; j - start <= BATCHES_MAX; j++) {
        double range[2] = {j * full, j * full + source->service_ms};
        if (range[1] <= zero)
            continue;
        if (range[0] < zero)
            range[0] = zero;
        struct sums sums = integrate(chain, value, source, j, range);
        sum += sums.worth;
        bool past_mode = (j - 1) * system->batch > system->rate * source->service_ms;
        if (past_mode && sums.often < NEGLIGIBLE && sums.often * slope < NEGLIGIBLE * sum)
            return sum;
        if (j * full < linear || (j - 1) * system->batch < chain->top + chain->full.high)
            continue;
        /* from here on each j counts shrink times the one before, its worth slope more */
        return sum + sums.worth * shrink / (1 - shrink) +
               sums.often * slope * shrink / ((1 - shrink) * (1 - shrink));
    }
    return sum;
}

static double measure_batches(struct queue_chain *chain, struct queue_value *value)
{
    assert(chain->requests_per_start > 0);
    const struct queue_case *system = &chain->system;
    double sum = 0, idle = queue_value_of_batch(value, 0);
    for (int g = 0; g < system->group_count; g++) {
        struct queue_source source = {system->groups[g].service_ms, chain->mass[g], NULL};
        if (g == system->group_count - 1)
            source.law = chain->law;
        if (source.mass < NEGLIGIBLE && !source.law)
            continue;
        sum += sum_source(chain, value, &source);
        sum += source.mass * exp(-system->rate * source.service_ms) * idle;
    }
    return sum / chain->requests_per_start;
}

/* P(at least `count` wait) of the chain of c processes. */
static double waiting_at_least(const struct queue_chain *chain, int count)
{
    assert(chain->system.batch == 1);
    int n = count + chain->unit;
    if (count <= 0)
        return 1;
    if (n > chain->top)
        return queue_chain_at(chain, chain->law, n) / (1 - chain->ratio);
    double sum = chain->law[chain->top] * chain->ratio / (1 - chain->ratio);
    for (int i = chain->top; i >= n; i--)
        sum += chain->law[i];
    return sum;
}

/* Franx: P(wait > x) = P(waiting + Poisson(rate (k D - x)) >= k c), k = floor(x / D) + 1. */
static double late_processes(struct queue_chain *chain, double limit_ms)
{
    assert(chain->system.batch == 1);
    double service = chain->system.groups[0].service_ms, wait = limit_ms - service;
    if (wait < 0)
        return 1;
    double k = floor(wait / service) + 1;
    poisson_set(&chain->scratch, chain->system.rate * (k * service - wait));
    if (k * chain->unit > 1e9)
        return 0;
    double sum = 0;
    for (int i = chain->scratch.low; i <= chain->scratch.high; i++)
        sum +=
            poisson_at(&chain->scratch, i) * waiting_at_least(chain, (int)k * chain->unit - i);
    return sum;
}

static double mean_processes(const struct queue_chain *chain)
{
    assert(chain->system.batch == 1);
    double ratio = chain->ratio, top = chain->law[chain->top], waiting = 0;
    for (int n = chain->unit + 1; n <= chain->top; n++)
        waiting += (n - chain->unit) * chain->law[n];
    waiting += top * ratio / (1 - ratio) * (chain->top - chain->unit + 1 / (1 - ratio));
    return chain->system.groups[0].service_ms + waiting / chain->system.rate;
}

double queue_measure(struct queue_chain *chain, struct queue_value *value,
                     enum queue_measure measure, double limit_ms)
{
    const struct queue_case *system = &chain->system;
    assert(system->rate > 0);
    if (system->batch == 1)
        return measure == QUEUE_LATE ? late_processes(chain, limit_ms) : mean_processes(chain);
    queue_value_set(value, system, measure, limit_ms);
    double figure = measure_batches(chain, value);
    return measure == QUEUE_LATE && figure > 1 ? 1 : figure;
}
