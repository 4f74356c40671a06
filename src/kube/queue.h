/* SPDX-License-Identifier: Apache-2.0
 *
 * What has to be reconciled: keys, each at most once. A key that is added while it is worked
 * on comes again when that is done, never at the same time. Failures come back after
 * min(base × 2^(n−1), most), with up to half of it taken off at random; n counts the failures
 * of that key since it was last forgotten. The defaults are those of client-go's item backoff
 * (5 ms, 1000 s).
 */
#ifndef TRANCHE_KUBE_QUEUE_H
#define TRANCHE_KUBE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct kube_queue;

struct kube_queue_options {
    int64_t base_ns; /* 0: 5 ms */
    int64_t most_ns; /* 0: 1000 s */
    uint64_t seed;   /* of the jitter */
};

/* An empty queue; never NULL. */
struct kube_queue *kube_queue_new(const struct kube_queue_options *options);
/* NULL is fine; keys are dropped. */
void kube_queue_free(struct kube_queue *queue);
CLEANUP_DEFINE_FREE(kube_queue)

/* The key is ready now. */
void kube_queue_add(struct kube_queue *queue, const char *key);
/* The key is ready at that time, or earlier if it is waiting for an earlier one. */
void kube_queue_add_at(struct kube_queue *queue, const char *key, int64_t at_ns);
/* The next key in the order of being added, or NULL; valid until kube_queue_done(). */
const char *kube_queue_take(struct kube_queue *queue, int64_t now_ns);
/* Ends the work on a key that was taken: all is well, its failures are forgotten. */
void kube_queue_done(struct kube_queue *queue, const char *key);
/* Ends the work on a key that was taken: it failed and comes again. Returns when. */
int64_t kube_queue_retry(struct kube_queue *queue, const char *key, int64_t now_ns);

/* When the next key will be ready: 0 if one is, INT64_MAX if none waits. */
int64_t kube_queue_next_ns(const struct kube_queue *queue);
/* Keys that are ready, waiting or worked on. */
size_t kube_queue_count(const struct kube_queue *queue);

#endif
