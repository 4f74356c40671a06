/* SPDX-License-Identifier: Apache-2.0
 *
 * Dynamic batching over one model, as the queue rule of the contract states it: a batch
 * starts when a process is free and either `batch_max` rows wait or the oldest request
 * has waited `max_wait_ms`. Requests wait in one bounded queue, first come first served;
 * those whose shapes differ (but for the rows) are never put into one batch.
 *
 * Threads: batcher_submit() may be called from any; `complete` runs on a worker thread.
 */
#ifndef TRANCHE_SERVE_BATCHER_H
#define TRANCHE_SERVE_BATCHER_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/session.h"
#include "serve/kserve.h"

struct batcher;

struct batcher_options {
    int batch_max;      /* rows; 1: no batching */
    int procs;          /* batches that run at once */
    double max_wait_ms; /* longest that a request waits for its batch to fill */
    int queue_rows_max; /* rows that may wait; beyond, a request is refused */
};

struct batch_item {
    struct kserve_request *request; /* outputs are filled into its arena */
    /* Called once, on a worker thread. failed is 0 or a negative code with its error. */
    void (*complete)(struct batch_item *item, int failed, const struct error *err);
    void *context;
    /* Filled here, CLOCK_MONOTONIC: queued; its batch begins; the batch's inputs are joined and
     * bound; the model has run; the item's outputs are copied. */
    int64_t submitted_ns, started_ns, bound_ns, computed_ns, finished_ns;
    int batch_rows;          /* of the batch it ran in */
    struct batch_item *next; /* private */
};

struct batcher_stats {
    uint64_t batches, rows;
    int queued_rows, running;
};

/* Starts the worker threads. The session must outlive the batcher. Models whose inputs or
 * outputs do not all begin with an open size are run one request at a time. */
struct batcher *batcher_new(struct session *session, const struct batcher_options *options);
/* Drains, then ends the threads. NULL is fine. */
void batcher_free(struct batcher *batcher);
CLEANUP_DEFINE_FREE(batcher)

/* Queues an item, which stays the caller's until `complete`. E_BUSY when the queue is full
 * or draining; E_INPUT when it has more rows than a batch may have. */
int batcher_submit(struct batcher *batcher, struct batch_item *item, struct error *err);
/* Refuses what comes from now on, and returns when all that was accepted is complete. */
void batcher_drain(struct batcher *batcher);
/* From now on requests wait at most this long for their batch to fill, those that wait
 * already too; safe from any thread. */
void batcher_set_max_wait(struct batcher *batcher, double max_wait_ms);
/* The options in force. */
struct batcher_options batcher_options_now(struct batcher *batcher);
/* What has been done so far; safe from any thread. */
struct batcher_stats batcher_stats(struct batcher *batcher);

#endif
