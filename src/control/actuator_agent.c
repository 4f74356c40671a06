/* SPDX-License-Identifier: Apache-2.0
 *
 * The actuator over our own node agent: it writes what each GPU of a node shall hold into
 * NodeGpuState's spec, and reads what it holds out of the status; see agent.h for the other
 * side. An apply is tied to the version that was read, so of two writers one is refused.
 */
#include <assert.h>
#include <string.h>

#include "control/actuator_internal.h"

static const char *conflict_of(const struct world *world, size_t node,
                               const struct node_gpu_state *state)
{
    const char *owner = mig_owner_of(world, node);

    if (!owner && state->driver_conflict)
        owner = state->message && *state->message ? state->message
                                                  : "its agent reports another owner";
    return owner;
}

static void agent_observe(struct world *world, const struct gpu_pool *pool,
                          struct actuator_gpus *ret_gpus)
{
    size_t capacity = 0;

    for (size_t i = 0; i < world->node_states.count; i++)
        capacity += world->node_states.data[i].found.count;
    observe_begin(world, ret_gpus, capacity);
    for (size_t i = 0; i < world->node_states.count; i++) {
        const struct node_gpu_state *state = &world->node_states.data[i];
        int node = world_find_node(world, state->meta.name);
        if (node < 0 || !world_in_pool(world, pool, (size_t)node))
            continue;
        const char *conflict = conflict_of(world, (size_t)node, state);
        world->nodes.data[node].conflict = conflict ? conflict : "";
        for (size_t j = 0; !conflict && j < state->found.count; j++) {
            if (!state->found.data[j].board)
                continue;
            struct world_gpu *gpu = &ret_gpus->gpus.data[ret_gpus->gpus.count++];
            observe_gpu(world, state, &state->found.data[j], gpu);
            gpu->node = (size_t)node;
            gpu->lost = !world->nodes.data[node].ready;
        }
    }
    assert(ret_gpus->gpus.count <= capacity);
    observe_distinct(world, ret_gpus);
}

static void agent_change(struct world *world, const struct gpu_pool *pool,
                         const struct actuator_slot *creates, size_t create_count,
                         const struct actuator_slot *deletes, size_t delete_count,
                         struct effects *effects)
{
    const struct actuator_slots slots = {creates, deletes, create_count, delete_count};
    struct desired desired;

    (void)pool;
    for (size_t node = 0; node < world->nodes.count; node++) {
        if (!desired_make(world, node, &slots, &desired) || !desired.changed || !desired.state)
            continue;
        /* A leader of a later term has been here: this one is over. */
        if (desired.state->epoch > world->sources.epoch)
            continue;
        struct effect *effect =
            effect_apply(effects, &KIND_NODE_GPU_STATE, desired_to_json(world, &desired));
        effect->manager = MANAGER_CONTROLLER;
        effect->destructive = desired.takes;
        effect->reason = "NodeLayout";
    }
}

static void agent_bind(const struct world *world, const struct world_gpu *gpu,
                       const struct world_instance *instance, json_t *pod)
{
    const char *uuid = *instance->uuid ? instance->uuid : gpu->uuid;
    char name[64];
    CLEANUP(str_done) struct str device = STR_EMPTY;

    pod_pin(pod, world->nodes.data[gpu->node].name);
    str_addf(&device, "nvidia.com/gpu=%s", uuid);
    json_object_set_new(json_child(json_child(pod, "metadata"), "annotations"), NOTE_CDI,
                        json_string(device.bytes));
    pod_set_variable(pod, VISIBLE_DEVICES, uuid);
    resource_name(RESOURCE_PREFIX, &gpu->board->profiles[instance->profile], name);
    pod_add_resource(pod, name);
}

const struct actuator_ops ACTUATOR_OPS_AGENT = {
    .name = "agent",
    .observe = agent_observe,
    .change = agent_change,
    .bind = agent_bind,
};
