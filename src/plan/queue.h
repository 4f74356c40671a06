/* SPDX-License-Identifier: Apache-2.0
 *
 * The `queue` latency rule: what rate one instance may promise when requests arrive as a
 * Poisson stream, wait for their batch to fill and queue for a process.
 *
 * The system: p processes; a batch starts when a process is free and either b requests
 * wait or the oldest has waited max_wait_ms; it takes the oldest min(waiting, b); a batch
 * of k lasts the latency at the smallest measured batch >= k, a constant. A request's time
 * ends with its batch.
 *
 * How: one process, or batches of one on any number of processes, by an exact embedded
 * Markov chain; several processes with larger batches by one fixed, seedless sequence of
 * arrivals replayed at every rate. docs/spec/latency-rules.md has the derivation and the
 * measured accuracy. Times in ms, rates in requests per second.
 */
#ifndef TRANCHE_PLAN_QUEUE_H
#define TRANCHE_PLAN_QUEUE_H

#include <stdbool.h>

#include "base/cleanup.h"

enum { QUEUE_BATCH_LIMIT = 4096, QUEUE_PROCS_LIMIT = 64 };

/* One instance as the rule sees it. */
struct queue_server {
    int procs;                /* p, 1 … QUEUE_PROCS_LIMIT */
    int batch_max;            /* b, 1 … QUEUE_BATCH_LIMIT */
    int size_count;           /* measured batches, at least one of them >= batch_max */
    const int *batch;         /* strictly rising */
    const double *latency_ms; /* of each, > 0 */
};

struct queue_objective {
    double percentile;  /* 50 … 99.9, or 0 for the mean (MEASUREMENT_PERCENTILE_MEAN) */
    double latency_ms;  /* > 0 */
    double max_wait_ms; /* >= 0 */
};

/* Working memory and remembered answers. One per thread; answers never depend on what was
 * asked before. */
struct queue_model;
/* An empty model; never NULL; queue_model_free() it. */
struct queue_model *queue_model_new(void);
void queue_model_free(struct queue_model *model); /* NULL is fine */
CLEANUP_DEFINE_FREE(queue_model)

struct queue_wanted {
    double limit_rps; /* measured throughput x derate: no promise is above it */
    double least_rps; /* promises below this are of no use and may come back as 0 */
};

/* The contract's promise: the highest rate at which the end-to-end percentile (or mean)
 * stays <= the objective, rounded down to four significant digits, and never above the
 * limit (returned as it is when the queue allows it). 0 when no rate meets the objective.
 * Remembered by value of all arguments. */
double queue_promise_rps(struct queue_model *model, const struct queue_server *server,
                         const struct queue_objective *objective,
                         const struct queue_wanted *wanted);

/* The predicted end-to-end percentile (or mean) at a rate, rounded up to four significant
 * digits, but not past the objective where that is kept. INFINITY at or above the rate that
 * the processes can sustain. */
double queue_latency_ms(struct queue_model *model, const struct queue_server *server,
                        const struct queue_objective *objective, double rate_rps);

/* The predicted share of requests within limit_ms at a rate, 0 … 1. */
double queue_share_within(struct queue_model *model, const struct queue_server *server,
                          double max_wait_ms, double limit_ms, double rate_rps);

/* Batches per second x batch that p processes sustain: the rate above which the queue
 * grows without bound. */
double queue_saturation_rps(const struct queue_server *server);

#endif
