/* SPDX-License-Identifier: Apache-2.0
 *
 * What the controller knows of the cluster: a cache for each kind that it reads, and which of
 * the optional APIs are served. Optional ones (resource.k8s.io/v1, Gateway API's HTTPRoute) are
 * looked for at the start and every `discovery_ns` from then on, so a definition that is
 * installed later is found, and one that is taken away is missed after a few looks; our own
 * kinds are waited for.
 */
#ifndef TRANCHE_CONTROL_SOURCES_H
#define TRANCHE_CONTROL_SOURCES_H

#include "control/world.h"
#include "kube/cache.h"

struct sources_options {
    struct kube_client *client; /* borrowed */
    int64_t discovery_ns;       /* 0: 15 s */
    uint64_t seed;
    /* Something changed that may matter to this pool; NULL: to every pool. */
    void (*changed)(void *context, const char *pool);
    /* Every change of an object: what a write led to has been seen. after: NULL deletion. */
    void (*seen)(void *context, const struct kube_kind *kind, const json_t *before,
                 const json_t *after);
    void *context;
};

struct sources;

/* Begins to look in the next turn of the client's loop; never NULL. */
struct sources *sources_new(const struct sources_options *options);
/* Ends all watches; NULL is fine. */
void sources_free(struct sources *sources);
CLEANUP_DEFINE_FREE(sources)

/* Discovery is over and every cache completed a list: a world can be built. */
bool sources_are_synced(const struct sources *sources);
/* All caches are fresh (kube/watch.h). */
bool sources_are_fresh(const struct sources *sources);
/* Why not yet synced, or not fresh, for logs: "GpuService (all): HTTP status 404 …"; "" when it
 * is. Borrowed. */
const char *sources_trouble(const struct sources *sources);

/* Whether the server does not know kinds of ours, as their definitions are not installed;
 * appends them, "GpuPool, GpuService". False too until each of ours was asked for. */
bool sources_lack_kinds(const struct sources *sources, struct str *kinds);

/* Every pool that exists. */
void sources_each_pool(const struct sources *sources,
                       void (*each)(void *context, const char *pool), void *context);

/* The highest epoch that a leader left in a Transition or NodeGpuState, or that an agent has
 * seen; -1: none. Higher than SOURCES_EPOCH_MAX is no epoch: leaderships do not get that far,
 * and leaseTransitions has 32 bits. Once synced: what the caches had last. */
#define SOURCES_EPOCH_MAX (1LL << 30)
/* Asked at each take-over of the Lease (kube_lease_options). */
long long sources_highest_epoch(const struct sources *sources);

/* The objects of one moment; the references are its own, so it may be read by another thread
 * while the caches go on. */
struct snapshot {
    struct world_sources world; /* epoch and times are the caller's to fill in */
    VEC(json_t *) references;
    VEC(const json_t **) lists;
};
/* Only when synced. */
void snapshot_take(const struct sources *sources, struct snapshot *ret_snapshot);
/* Drops references and lists; a zeroed one is fine. */
void snapshot_done(struct snapshot *snapshot);

/* One line for each cache, for /metrics: the kind, its objects, what its watch lived through.
 */
struct source_figures {
    const char *kind;
    size_t objects;
    struct kube_watch_counts counts;
    bool synced, fresh;
};
/* How many kinds are known, optional ones that are not served included. */
size_t sources_count(const struct sources *sources);
/* False for an optional kind that is not served. */
bool sources_figures(const struct sources *sources, size_t index,
                     struct source_figures *ret_figures);

#endif
