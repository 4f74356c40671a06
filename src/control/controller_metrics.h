/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's figures in Prometheus' text form. What each metric means is in its HELP
 * line; docs/spec/controller-operation.md lists them.
 */
#ifndef TRANCHE_CONTROL_CONTROLLER_METRICS_H
#define TRANCHE_CONTROL_CONTROLLER_METRICS_H

#include "control/execute.h"
#include "control/reconcile.h"
#include "control/sources.h"

enum { METRIC_BUCKETS = 11 };

enum round_end { ROUND_SETTLED, ROUND_ACTED, ROUND_FAILED, ROUND_DISCARDED, ROUND_END_COUNT };

/* Counters since the start, kept by the controller. */
struct controller_counters {
    unsigned long rounds[ROUND_END_COUNT];
    unsigned long round_buckets[METRIC_BUCKETS + 1]; /* of round times; the last: above all */
    double round_seconds;
    unsigned long effects[EFFECT_KIND_COUNT]; /* carried out */
    unsigned long executions[EXECUTE_END_COUNT];
};

/* Counts a round that took took_ns. */
void controller_counters_round(struct controller_counters *counters, enum round_end end,
                               int64_t took_ns);

struct pool_metrics {
    const char *name;
    const struct reconcile_figures *figures;
};

struct controller_metrics {
    const struct controller_counters *counters;
    const struct kube_client *client;
    const struct sources *sources;
    struct kube_event_counts events;
    const struct pool_metrics *pools;
    size_t pool_count;
    size_t queue_depth;
    bool leader;
    long long epoch;
    double resident_bytes;
};

/* Appends the page. */
void controller_metrics_write(const struct controller_metrics *metrics, struct str *text);

#endif
