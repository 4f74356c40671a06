/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool at one moment, indexed: its GPUs by UUID, the pods on each, and what each service has
 * of capacity. Made from the world and what the actuator observes; shared by the parts of a
 * round.
 *
 * Capacity of a pod: its promised rate while it is ready, listed as ready by an EndpointSlice
 * of ours and, with a gateway, named by its route, and not draining.
 */
#ifndef TRANCHE_CONTROL_POOL_VIEW_H
#define TRANCHE_CONTROL_POOL_VIEW_H

#include "control/actuator.h"

struct view_gpu {
    VEC(size_t) pods; /* positions in world->pods, deleted ones included */
};

struct view_service {
    const char *name; /* "namespace/name" */
    int service;      /* position in world->services, -1: there is none in this pool any more */
    bool is_unreadable; /* it is there, but its spec cannot be read */
    double ready_rps;   /* capacity now */
    double here_rps; /* … of pods on GPUs that are observed: what floors are counted from */
    double existing_rps; /* of all its pods on GPUs that are there, ready or not */
    int pods, pods_ready;
};

struct pool_view {
    struct world *world;
    const struct gpu_pool *pool;
    const struct actuator_gpus *gpus;
    struct map uuids;                  /* positions in gpus */
    VEC(struct view_gpu) on;           /* one a GPU */
    struct map names;                  /* positions in services */
    VEC(struct view_service) services; /* of the pool, and those that pods name */
};

/* Indexes world and GPUs, which are borrowed and must not change while the view lives. */
void pool_view_init(struct pool_view *view, struct world *world, const struct gpu_pool *pool,
                    const struct actuator_gpus *gpus);
/* Frees the indexes. */
void pool_view_done(struct pool_view *view);

/* The actuator of a pool: the world's, where it names one. */
const struct actuator_ops *pool_actuator(const struct world *world,
                                         const struct gpu_pool *pool);

/* Position of a GPU in view->gpus by UUID, or -1. */
int pool_view_gpu(const struct pool_view *view, const char *uuid);
/* Position in view->services by "namespace/name", or -1. */
int pool_view_service(const struct pool_view *view, const char *name);
/* The instance in a slot of a GPU as observed, or NULL. */
const struct world_instance *pool_view_instance(const struct pool_view *view, int gpu,
                                                int profile, int start);
struct view_slot {
    int gpu, profile, start;
    const char *service; /* the one that is looked for first, "" any */
};
/* A pod in the slot: of the service before others, one that stays before one that is being
 * deleted; else NULL. */
const struct world_pod *pool_view_pod(const struct pool_view *view,
                                      const struct view_slot *slot);
/* Whether the pod was made for the pool. */
bool pool_view_is_own(const struct pool_view *view, const struct world_pod *pod);
/* Whether a pod of the pool counts as capacity; see above. */
bool pod_is_serving(const struct world_pod *pod);

/* A GPU may be planned for: its node is there, may be scheduled to, and has no other owner. */
bool pool_view_is_usable(const struct pool_view *view, int gpu);

/* Whether a Transition is over: complete, or closed before it was. */
bool transition_is_closed(const struct transition_object *object);
/* The Transition of the pool that is carried out: the one begun first, else the oldest; NULL:
 * none is open. */
struct transition_object *pool_open_transition(struct world *world,
                                               const struct gpu_pool *pool);

#endif
