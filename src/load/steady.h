/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a measurement had settled. The window is cut into parts of equal length; it is
 * steady when
 *
 *   1. a straight line through the parts' throughput rises or falls by at most `trend` of
 *      their mean over the window, and so does one through their mean latency; and
 *   2. no part's throughput is further than `spread` of the mean from it.
 *
 * Work counts in the parts in proportion to the time it spent in each, so that a part
 * never gains or loses a whole batch by where its edge falls. (The slope is fio's steady-
 * state criterion, the spread perf_analyzer's.)
 */
#ifndef TRANCHE_LOAD_STEADY_H
#define TRANCHE_LOAD_STEADY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { STEADY_PARTS = 5 };

struct steady_rule {
    double trend, spread; /* relative: 0.1, 0.25 */
};

/* A piece of work: from start to end. */
struct steady_work {
    int64_t start_ns, end_ns;
};

struct steady_state {
    bool steady;
    double trend_throughput, trend_latency; /* change over the window ÷ mean */
    double spread_throughput;               /* largest distance from the mean ÷ mean */
};

/* The verdict over [start_ns, end_ns). Fewer than 2 × STEADY_PARTS pieces of work say
 * nothing: steady, with figures of 0. */
struct steady_state steady_check(const struct steady_work *work, size_t count, int64_t start_ns,
                                 int64_t end_ns, struct steady_rule rule);
extern const struct steady_rule steady_rule_standard;

#endif
