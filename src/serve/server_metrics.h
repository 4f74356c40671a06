/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters of a model server and their Prometheus text. The names are Triton's where
 * Triton has one, so that existing dashboards and autoscalers read them.
 */
#ifndef TRANCHE_SERVE_SERVER_METRICS_H
#define TRANCHE_SERVE_SERVER_METRICS_H

#include <pthread.h>
#include <stdint.h>

#include "base/str.h"
#include "serve/batcher.h"

enum { SERVER_METRICS_BUCKETS = 16 };

enum server_refusal { REFUSED_MALFORMED, REFUSED_BUSY, REFUSED_TOO_LARGE, REFUSED_COUNT };

/* Where a request's time goes, in this order. */
enum server_phase { PHASE_QUEUE, PHASE_INPUT, PHASE_COMPUTE, PHASE_OUTPUT, SERVER_PHASE_COUNT };

struct server_metrics {
    pthread_mutex_t lock;
    uint64_t succeeded, failed;
    uint64_t refused[REFUSED_COUNT];
    /* Sums over succeeded requests; the phases of a request are those of batch_item. */
    uint64_t request_ns, phase_ns[SERVER_PHASE_COUNT];
    uint64_t latency_buckets[SERVER_METRICS_BUCKETS + 1];
};

/* All counters at 0. */
void server_metrics_init(struct server_metrics *metrics);
/* Destroys the lock. */
void server_metrics_done(struct server_metrics *metrics);
/* Counts a request that never came to the batcher; safe from any thread. */
void server_metrics_refused(struct server_metrics *metrics, enum server_refusal why);
/* After an item is complete; received_ns is when the whole request had arrived. */
void server_metrics_completed(struct server_metrics *metrics, const struct batch_item *item,
                              int64_t received_ns, bool failed);
/* Appends the page in Prometheus's text form, figures of the batcher included. */
void server_metrics_write(struct server_metrics *metrics, const struct batcher_stats *batcher,
                          const char *model, struct str *text);

#endif
