/* SPDX-License-Identifier: Apache-2.0
 *
 * A cluster in memory for tests of the controller's decisions: an API server's rules for
 * objects (resourceVersion, UID, generation, preconditions, merge patch, apply, finalizers,
 * immutable specs), and stand-ins for scheduler, kubelet, garbage collector and node agent that
 * work when fake_cluster_tick() is called. Every change makes a new JSON value, so a snapshot
 * stays as it was taken.
 */
#ifndef TRANCHE_TESTS_CONTROL_FAKE_CLUSTER_H
#define TRANCHE_TESTS_CONTROL_FAKE_CLUSTER_H

#include "base/rng.h"
#include "control/effect.h"
#include "control/world.h"

enum fake_kind {
    FAKE_SERVICES,
    FAKE_PROFILES,
    FAKE_POOLS,
    FAKE_PLANS,
    FAKE_TRANSITIONS,
    FAKE_NODE_STATES,
    FAKE_NODES,
    FAKE_PODS,
    FAKE_KUBE_SERVICES,
    FAKE_SLICES,
    FAKE_ROUTES,
    FAKE_KIND_COUNT
};

struct fake_list {
    VEC(json_t *) items;
};

/* What the caches of a controller show. */
struct fake_snapshot {
    struct fake_list lists[FAKE_KIND_COUNT];
};

struct fake_gpu {
    char uuid[64];
    int node;
    const struct mig_board *board;
};

struct fake_node {
    char name[32];
    bool up;
};

struct fake_cluster {
    struct fake_list lists[FAKE_KIND_COUNT];
    long long version, uid;
    int64_t now_s;
    struct rng rng;
    VEC(struct fake_node) nodes;
    VEC(struct fake_gpu) gpus;
    /* Behaviour, as probabilities of one tick. */
    double slow;              /* a pod, an instance, a deletion does not come on */
    double crash;             /* a ready pod ends */
    double stuck;             /* a pod that is being deleted stays */
    const char *terminating;  /* a namespace that is being deleted: nothing is created in it */
    const char *refused_pods; /* pods of this GpuService are refused, as by a quota */
    bool refuses_routes;      /* HTTPRoutes may not be written */
    bool strangers;           /* there are pods of others: they may share an instance */
    bool spec_is_broken;      /* a NodeGpuState asks for what no GPU can hold */
    unsigned long writes, refused, crashes;
};

void fake_cluster_init(struct fake_cluster *cluster, uint64_t seed);
void fake_cluster_done(struct fake_cluster *cluster);

/* Adds a node with GPUs, and its NodeGpuState. */
void fake_cluster_add_node(struct fake_cluster *cluster, const struct mig_board *board,
                           int gpus);
/* The GPU falls off the bus: its agent reports it no more; its pods stay. */
void fake_cluster_hide_gpu(struct fake_cluster *cluster, const char *uuid);
/* Somebody makes an instance on a GPU: its agent reports it. */
void fake_cluster_plant_instance(struct fake_cluster *cluster, const char *uuid,
                                 const char *slice, int start);
/* A node stops answering, or comes back. */
void fake_cluster_set_node(struct fake_cluster *cluster, size_t node, bool up);

/* What kubectl does: creates or replaces the spec (object is a reference that goes over). */
void fake_cluster_put(struct fake_cluster *cluster, const struct kube_kind *kind,
                      json_t *object);
/* Adds an object that is known not to be there yet, status included; the reference goes over.
 */
void fake_cluster_append(struct fake_cluster *cluster, const struct kube_kind *kind,
                         json_t *object);
/* At once, finalizers or not. */
void fake_cluster_drop(struct fake_cluster *cluster, const struct kube_kind *kind,
                       const char *namespace, const char *name);
void fake_cluster_delete(struct fake_cluster *cluster, const struct kube_kind *kind,
                         const char *namespace, const char *name);
const json_t *fake_cluster_get(const struct fake_cluster *cluster, const struct kube_kind *kind,
                               const char *namespace, const char *name);

/* Carries out one effect: 0, E_CONFLICT, E_NOT_FOUND, E_INPUT, E_USAGE (forbidden). */
int fake_cluster_apply(struct fake_cluster *cluster, const struct effect *effect,
                       struct error *err);
/* Time goes on by some seconds; kubelet, agents and garbage collector act once. */
void fake_cluster_tick(struct fake_cluster *cluster, int seconds);

void fake_snapshot_take(const struct fake_cluster *cluster, struct fake_snapshot *ret_snapshot);
/* The lists of kinds chosen by the bits of mask become those of another snapshot. */
void fake_snapshot_mix(struct fake_snapshot *snapshot, const struct fake_snapshot *other,
                       unsigned mask);
void fake_snapshot_done(struct fake_snapshot *snapshot);
/* Borrows the snapshot. */
void fake_snapshot_sources(const struct fake_snapshot *snapshot,
                           const struct fake_cluster *cluster, struct world_sources *ret);

/* Violations of what must hold whatever the controller does: a text that the caller frees, or
 * NULL: two pods on an instance, an illegal layout. */
char *fake_cluster_check(const struct fake_cluster *cluster);
/* A route with a backend that lists nobody: a text that the caller frees, or NULL. */
char *fake_cluster_check_routes(const struct fake_cluster *cluster);
/* The capacity of a service as clients have it: ready pods on nodes that are up, listed; by
 * its route where there is one. */
double fake_cluster_capacity(const struct fake_cluster *cluster, const char *namespace,
                             const char *name);

#endif
