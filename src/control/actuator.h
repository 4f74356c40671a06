/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam between a transition and what makes instances on nodes: the node agent (agent),
 * NVIDIA's DRA driver (dra), the GPU Operator's mig-manager (mig_manager), and a timed stand-in
 * (sim). All hooks are pure: they read the world and append effects; each says "make it so",
 * and may be called in every round until it is so.
 */
#ifndef TRANCHE_CONTROL_ACTUATOR_H
#define TRANCHE_CONTROL_ACTUATOR_H

#include "control/effect.h"
#include "control/world.h"

struct actuator_gpus {
    VEC(struct world_gpu) gpus;
};

struct actuator_slot {
    const struct world_gpu *gpu;
    int profile, start;
    const char *transition; /* name of the Transition that asks */
    const char *service;    /* "namespace/name" whose pod is to come; NULL: not told */
};

struct actuator_ops {
    const char *name; /* "agent" */
    /* The GPUs of a pool's nodes and their instances as observed, no UUID twice; lists in the
     * world's arena. Sets the node's conflict where another owner drives it, and leaves its
     * GPUs out. */
    void (*observe)(struct world *world, const struct gpu_pool *pool,
                    struct actuator_gpus *ret_gpus);
    /* Makes instances be there, or gone: one call for all slots of a round, so that a node is
     * written once. In observe() INSTANCE_READY or INSTANCE_FAILED ends a creation; a deletion
     * is over when observe() does not list the instance any more. */
    void (*change)(struct world *world, const struct gpu_pool *pool,
                   const struct actuator_slot *creates, size_t create_count,
                   const struct actuator_slot *deletes, size_t delete_count,
                   struct effects *effects);
    /* Binds a pod (whole object, to be completed) to an instance: node, devices, claims, gates.
     */
    void (*bind)(const struct world *world, const struct world_gpu *gpu,
                 const struct world_instance *instance, json_t *pod);
    /* What bound pods still need, in every round (dra: allocations, gates); NULL: nothing. */
    void (*tend)(struct world *world, const struct actuator_gpus *gpus,
                 struct effects *effects);
    bool needs_whole_gpu; /* mig-manager: changes only GPUs without any instance in use */
};

extern const struct actuator_ops ACTUATOR_OPS_AGENT, ACTUATOR_OPS_DRA, ACTUATOR_OPS_MIG_MANAGER,
    ACTUATOR_OPS_SIM;

/* By the pool's field; ACTUATOR_AUTO: dra where the world has dynamic MIG, else agent. */
const struct actuator_ops *actuator_of(const struct world *world, const struct gpu_pool *pool);

/* The MIG UUID's or slot's deterministic name: "POOLHASH-gpu-slice-start", a DNS label of at
 * most 63 characters, the same for the same slot and transition. */
void actuator_slot_name(const struct actuator_slot *slot, const char *prefix,
                        char ret_name[64]);

#endif
