/* SPDX-License-Identifier: Apache-2.0
 *
 * What the actuators share: pinning a pod to a node, finding
 * who else drives a node's MIG state, and desired layouts in NodeGpuState. Pure.
 */
#ifndef TRANCHE_CONTROL_ACTUATOR_INTERNAL_H
#define TRANCHE_CONTROL_ACTUATOR_INTERNAL_H

#include "control/actuator.h"
#include "control/kinds.h"
#include "control/object.h"

#define LABEL_MIG_CONFIG_STATE    "nvidia.com/mig.config.state"
#define RESOURCE_PREFIX           "tranche.dev/mig-"
#define NOTE_CDI                  "cdi.k8s.io/tranche_gpu"
#define VISIBLE_DEVICES           "NVIDIA_VISIBLE_DEVICES"
#define NOTE_SIMULATED_GPUS       "tranche.dev/simulated-gpus"
#define NOTE_SIMULATION           "tranche.dev/simulation"
#define NOTE_SIMULATED_SINCE      "tranche.dev/simulated-since"
#define CONDITION_SYNCED          "Synced"
#define CONDITION_DRIVER_CONFLICT "DriverConflict"

/* Lets a pod run on this node alone, whatever else it asks for. */
void pod_pin(json_t *pod, const char *node);
/* Sets an environment variable of every container. */
void pod_set_variable(json_t *pod, const char *name, const char *value);
/* Adds one of an extended resource to the first container's limits. */
void pod_add_resource(json_t *pod, const char *name);
/* "PREFIXmig-1g.5gb.me": a profile in a resource's name, where no plus may stand. */
void resource_name(const char *prefix, const struct mig_profile *profile, char ret_name[64]);

/* Whether another program (mig-manager, a DRA driver that publishes partitions) drives the
 * MIG state of a node: its words, or NULL. */
const char *mig_owner_of(const struct world *world, size_t node);
/* Whether a ResourceSlice's device is a partition of a GPU. */
bool device_is_partition(const json_t *device);
/* Whether a ResourceSlice is of NVIDIA's driver and offers partitions that are made on demand:
 * its devices then draw on counters that they share. */
bool slice_offers_partitions(const json_t *slice);
/* The text, or version, of a device's attribute; "" when it has none. */
const char *device_attribute(const json_t *device, const char *name);

/* NodeGpuState of a node, or NULL. */
struct node_gpu_state *node_state_of(const struct world *world, const char *node);

/* The desired layouts of one node, being changed: a copy in the world's arena. */
struct desired {
    size_t node;
    const struct node_gpu_state *state; /* NULL: there is no object yet */
    struct node_gpu *gpus;
    size_t count;
    bool changed, takes; /* takes: something is to go */
};
struct actuator_slots {
    const struct actuator_slot *creates, *deletes;
    size_t create_count, delete_count;
};
/* What the node's object desires, with the slots of this node added and taken out. A GPU that
 * is named for the first time begins with what was found on it, so that nothing foreign goes
 * unasked; one that the node has no more is left out. False: no slot is of this node. */
bool desired_make(struct world *world, size_t node, const struct actuator_slots *slots,
                  struct desired *ret);
/* The object with spec alone, tied to the version it was read at; a new reference. */
json_t *desired_to_json(const struct world *world, const struct desired *desired);
/* A GPU of NodeGpuState as the world sees it: found and desired instances together. */
void observe_gpu(struct world *world, const struct node_gpu_state *state,
                 const struct node_gpu *found, struct world_gpu *ret);
/* Room for this many GPUs in the world's arena. */
void observe_begin(struct world *world, struct actuator_gpus *gpus, size_t capacity);
/* Leaves one of GPUs that two nodes tell of (a server that was given a new name, a card that
 * was moved), that of a node that is Ready if there is one; the other node's `doubt` says so.
 */
void observe_distinct(struct world *world, struct actuator_gpus *gpus);

#endif
