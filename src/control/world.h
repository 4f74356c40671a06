/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster as the reconcile functions see it: a value made of the objects in the caches,
 * at one moment. Pure; built anew for every round.
 */
#ifndef TRANCHE_CONTROL_WORLD_H
#define TRANCHE_CONTROL_WORLD_H

#include "base/map.h"
#include "control/resources.h"
#include "kube/path.h"

struct actuator_ops;
struct dra_index;

/* Objects of one kind, borrowed. */
struct world_list {
    const json_t *const *items;
    size_t count;
};

/* Every list is whole (its cache is synced). */
struct world_sources {
    struct world_list services, profiles, pools, plans, transitions, node_states; /* ours */
    struct world_list nodes, pods; /* pods: those with LABEL_MANAGED_BY=tranche alone */
    struct world_list kube_services, endpoint_slices, routes; /* labelled likewise */
    struct world_list claims,                                 /* of everybody */
        resource_slices;  /* empty where resource.k8s.io/v1 is not served */
    bool has_dra;         /* resource.k8s.io/v1 is served */
    bool has_dynamic_mig; /* … and a driver gpu.nvidia.com offers partitions as devices */
    bool has_gateway;     /* gateway.networking.k8s.io/v1 HTTPRoute is installed */
    bool fresh;      /* every cache is fresh (kube/watch.h): destructive effects are allowed */
    long long epoch; /* of our leadership */
    int64_t now_ns;  /* monotonic */
    int64_t now_s;   /* since 1970 */
    /* {effect_key(): why}: what the server refused for what it is, not long ago; NULL: nothing.
     */
    const json_t *refusals;
    const struct actuator_ops *actuator; /* in place of the pool's; NULL: the pool's */
};

enum instance_phase {
    INSTANCE_PENDING, /* wanted, not there yet */
    INSTANCE_READY,   /* there: a pod may be bound to it */
    INSTANCE_LEAVING, /* not wanted any more, still there */
    INSTANCE_FAILED
};

/* An instance of a GPU, as the actuator observes it. */
struct world_instance {
    int profile, start;
    enum instance_phase phase;
    const char *uuid;    /* MIG UUID, "" unknown */
    const char *claim;   /* dra: "namespace/name" of its ResourceClaim, "" none */
    const char *message; /* INSTANCE_FAILED */
};

struct world_gpu {
    const char *uuid;
    size_t node;
    const struct mig_board *board;
    const char *actuator_id; /* dra: minor number as in device names; else "" */
    bool lost;               /* its node is not Ready: instances still take their place */
    bool shared;             /* somebody else holds a part of it: nothing new is put there */
    VEC(struct world_instance) instances; /* by start */
};

struct world_node {
    const char *name;
    bool ready, cordoned, out_of_service;
    const char *conflict; /* another owner drives its MIG state; "" none: not used then */
    const char *doubt;    /* why one of its GPUs is left out; NULL: none is */
    const json_t *json;
};

struct world_pod {
    struct object_meta meta;
    const char *service; /* "namespace/name" */
    const char *gpu_uuid;
    const char *node; /* spec.nodeName, "" not bound */
    const char *ip;
    const char *transition;    /* that made it */
    const char *slice;         /* name of its profile, as written on it */
    const char *template_hash; /* of the pod template that it was made from, "" unknown */
    int profile, start;        /* profile -1: its GPU is not observed; see world_place_pods() */
    int batch, procs;
    double rate_rps;          /* 0 when its GpuService is gone */
    bool ready;               /* condition Ready, not deleting, node Ready */
    bool ended;               /* phase Failed or Succeeded: it never becomes ready again */
    int64_t draining_since_s; /* 0: not draining */
    bool in_endpoints;        /* an EndpointSlice of ours lists it as ready */
    bool is_routed; /* … and requests reach it: with a gateway, its HTTPRoute names its class */
};

/* An object that cannot be read: left out, to be marked Stalled; or a pod (KUBE_POD) that has
 * our labels and is not ours: left out, its pool says so. */
struct world_fault {
    const struct kube_kind *kind;
    const json_t *object;
    const char *text;
};

struct world {
    struct arena arena;
    struct world_sources sources;
    VEC(struct gpu_service) services;
    VEC(struct perf_profile) profiles;
    VEC(struct gpu_pool) pools;
    VEC(struct partition_plan) plans;
    VEC(struct transition_object) transitions;
    VEC(struct node_gpu_state) node_states;
    VEC(struct world_node) nodes;
    VEC(struct world_pod) pods;
    VEC(struct world_fault) faults;
    struct map service_names, node_names; /* positions in services and nodes */
    const struct dra_index *dra_index;    /* actuator_dra.h; NULL until it is asked for */
};

struct actuator_gpus;

/* Never fails: what cannot be read is a fault. Sources are borrowed. */
void world_build(const struct world_sources *sources, struct world *ret_world);
/* Frees lists and texts; what borrowed from them is gone with it. */
void world_done(struct world *world);

/* Gives each pod the profile that its slice is on the board of its GPU. */
void world_place_pods(struct world *world, const struct actuator_gpus *gpus);

/* Index, or -1. service: "namespace/name". */
int world_find_service(const struct world *world, const char *service);
/* Index of a node by name, or -1. */
int world_find_node(const struct world *world, const char *name);
/* Whether there is a GpuService of this name whose spec cannot be read. */
bool world_is_unreadable(const struct world *world, const char *service);
/* Why the server refused an effect ("ensure", "patch") on an object not long ago, or NULL. */
const char *world_refusal(const struct world *world, const char *what,
                          const struct kube_kind *kind, const char *namespace,
                          const char *name);
/* Whether a node belongs to the pool: no two pools have a node, whatever they select. */
bool world_in_pool(const struct world *world, const struct gpu_pool *pool, size_t node);
/* The pool that has a node that this one selects too (its name), or NULL. */
const char *world_other_pool(const struct world *world, const struct gpu_pool *pool,
                             size_t node);

#endif
