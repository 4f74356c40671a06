/* SPDX-License-Identifier: Apache-2.0
 *
 * Steady state. See steady.h.
 */
#include "load/steady.h"

#include <assert.h>
#include <math.h>

#include "base/stats.h"

const struct steady_rule steady_rule_standard = {.trend = 0.15, .spread = 0.3};

struct part {
    double work;           /* pieces done, in parts of pieces */
    double latency_ns_sum; /* of those that ended here */
    double ended;
};

/* Adds one piece to the parts that it overlaps. */
static void add_work(struct part *parts, const struct steady_work *piece, int64_t start_ns,
                     double part_ns)
{
    double from = (double)(piece->start_ns - start_ns) / part_ns;
    double to = (double)(piece->end_ns - start_ns) / part_ns;
    assert(part_ns > 0);
    for (int i = 0; i < STEADY_PARTS; i++) {
        double low = fmax(from, i), high = fmin(to, i + 1);
        if (to > from && high > low)
            parts[i].work += (high - low) / (to - from);
    }
    int last = (int)floor(to);
    if (last >= 0 && last < STEADY_PARTS) {
        parts[last].ended += 1;
        parts[last].latency_ns_sum += (double)(piece->end_ns - piece->start_ns);
    }
}

/* Rise of a fitted line over the window ÷ mean; 0 where there is no mean. */
static double trend_of(const double *x, const double *y, size_t count)
{
    double mean = stats_mean(y, count);
    assert(count <= STEADY_PARTS);
    if (count < 2 || mean <= 0)
        return 0;
    return stats_fit_line(x, y, count).slope * STEADY_PARTS / mean;
}

static double spread_of(const double *y)
{
    double mean = stats_mean(y, STEADY_PARTS), worst = 0;
    assert(y);
    for (int i = 0; i < STEADY_PARTS && mean > 0; i++)
        worst = fmax(worst, fabs(y[i] - mean) / mean);
    return worst;
}

struct steady_state steady_check(const struct steady_work *work, size_t count, int64_t start_ns,
                                 int64_t end_ns, struct steady_rule rule)
{
    struct part parts[STEADY_PARTS] = {0};
    double x[STEADY_PARTS], throughput[STEADY_PARTS];
    double latency_x[STEADY_PARTS], latency[STEADY_PARTS];
    size_t latency_count = 0;
    struct steady_state state = {.steady = true};
    assert(end_ns > start_ns);
    if (count < 2 * STEADY_PARTS)
        return state;
    for (size_t i = 0; i < count; i++)
        add_work(parts, &work[i], start_ns, (double)(end_ns - start_ns) / STEADY_PARTS);
    for (int i = 0; i < STEADY_PARTS; i++) {
        x[i] = i;
        throughput[i] = parts[i].work;
        if (parts[i].ended == 0)
            continue;
        latency_x[latency_count] = i;
        latency[latency_count++] = parts[i].latency_ns_sum / parts[i].ended;
    }
    state.trend_throughput = trend_of(x, throughput, STEADY_PARTS);
    state.trend_latency = trend_of(latency_x, latency, latency_count);
    state.spread_throughput = spread_of(throughput);
    state.steady = fabs(state.trend_throughput) <= rule.trend &&
                   fabs(state.trend_latency) <= rule.trend &&
                   state.spread_throughput <= rule.spread;
    return state;
}
