/* SPDX-License-Identifier: Apache-2.0
 *
 * An actuator by JSON, for tests: reads one object from standard input and prints one.
 *
 *     {"pool": {…}, "nodes": […], "nodeStates": […], "claims": […], "slices": […],
 *      "pods": […], "transitions": […], "plans": […], "epoch": 3, "now": 1000,
 *      "creates": [{"gpu", "slice", "start", "transition"}], "deletes": […], "bind": {…pod…}}
 *     → {"actuator", "gpus": [{"uuid", "board", "node", "instances": […]}], "conflicts": {…},
 *        "doubts": {…}, "effects": […], "pod": {…}}
 *
 * "bind" goes to the first instance that is observed. With "step": true the effects are those
 * of a step of the first Transition in place of "creates" and "deletes"; "fresh": false is a
 * view that may be old.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "control/actuator_internal.h"
#include "control/reconcile.h"

static const char *const phase_names[] = {"pending", "ready", "leaving", "failed"};
static const char *const effect_names[] = {"ensure", "apply", "patch", "delete", "event"};

static struct world_list list_of(const json_t *root, const char *key, struct arena *arena)
{
    const json_t *items = json_object_get(root, key);
    size_t count = json_array_size(items);
    const json_t **list = arena_alloc(arena, count + 1, sizeof *list);

    for (size_t i = 0; i < count; i++)
        list[i] = json_array_get(items, i);
    return (struct world_list){list, count};
}

static json_t *instance_json(const struct world_gpu *gpu, const struct world_instance *instance)
{
    return json_pack("{s:s, s:i, s:s, s:s, s:s, s:s}", "slice",
                     gpu->board->profiles[instance->profile].name, "start", instance->start,
                     "phase", phase_names[instance->phase], "uuid", instance->uuid, "claim",
                     instance->claim, "message", instance->message);
}

static json_t *gpus_json(const struct world *world, const struct actuator_gpus *gpus)
{
    json_t *list = json_array();

    for (size_t i = 0; i < gpus->gpus.count; i++) {
        const struct world_gpu *gpu = &gpus->gpus.data[i];
        json_t *instances = json_array();
        for (size_t j = 0; j < gpu->instances.count; j++)
            json_array_append_new(instances, instance_json(gpu, &gpu->instances.data[j]));
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:o}", "uuid",
                                              gpu->uuid, "board", gpu->board->slug, "node",
                                              world->nodes.data[gpu->node].name, "id",
                                              gpu->actuator_id, "lost", gpu->lost, "shared",
                                              gpu->shared, "instances", instances));
    }
    return list;
}

static json_t *effects_json(const struct effects *effects)
{
    json_t *list = json_array();

    for (size_t i = 0; i < effects->items.count; i++) {
        const struct effect *effect = &effects->items.data[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s*, s:s*, s:s*, s:s*, s:s*, s:s, s:b, s:O?}", "do",
                            effect_names[effect->kind], "kind", effect->object_kind->kind,
                            "namespace", effect->namespace, "name", effect->name, "subresource",
                            effect->subresource, "resourceVersion", effect->resource_version,
                            "manager", effect->manager, "reason", effect->reason, "destructive",
                            effect->destructive, "body", effect->body));
    }
    return list;
}

/* Slots of GPUs that are observed; others are an error of the test. */
static struct actuator_slot *slots_of(const json_t *root, const char *key,
                                      const struct actuator_gpus *gpus, struct arena *arena,
                                      size_t *ret_count)
{
    const json_t *items = json_object_get(root, key), *item;
    struct actuator_slot *slots = arena_alloc(arena, json_array_size(items) + 1, sizeof *slots);
    size_t index;

    *ret_count = 0;
    json_array_foreach(items, index, item)
    {
        struct actuator_slot *slot = &slots[(*ret_count)++];
        for (size_t i = 0; i < gpus->gpus.count; i++)
            if (!strcmp(gpus->gpus.data[i].uuid, json_text(item, "gpu")))
                slot->gpu = &gpus->gpus.data[i];
        if (!slot->gpu) {
            fprintf(stderr, "%s[%zu]: no GPU %s\n", key, index, json_text(item, "gpu"));
            exit(1);
        }
        slot->profile = mig_profile_find(slot->gpu->board, json_text(item, "slice"));
        slot->start = (int)json_integer_value(json_object_get(item, "start"));
        slot->transition = json_text(item, "transition");
        slot->service = json_string_value(json_object_get(item, "service"));
        assert(slot->profile >= 0);
    }
    return slots;
}

static json_t *bound_pod(const struct world *world, const struct actuator_ops *ops,
                         const struct actuator_gpus *gpus, const json_t *template)
{
    json_t *pod = json_deep_copy(template);

    for (size_t i = 0; pod && i < gpus->gpus.count; i++)
        if (gpus->gpus.data[i].instances.count) {
            ops->bind(world, &gpus->gpus.data[i], &gpus->gpus.data[i].instances.data[0], pod);
            return pod;
        }
    json_decref(pod);
    return json_null();
}

static json_t *conflicts_json(const struct world *world)
{
    json_t *conflicts = json_object();

    for (size_t i = 0; i < world->nodes.count; i++)
        if (world->nodes.data[i].conflict && *world->nodes.data[i].conflict)
            json_object_set_new(conflicts, world->nodes.data[i].name,
                                json_string(world->nodes.data[i].conflict));
    return conflicts;
}

static json_t *doubts_json(const struct world *world)
{
    json_t *doubts = json_object();

    for (size_t i = 0; i < world->nodes.count; i++)
        if (world->nodes.data[i].doubt)
            json_object_set_new(doubts, world->nodes.data[i].name,
                                json_string(world->nodes.data[i].doubt));
    return doubts;
}

static void answer(struct world *world, const json_t *root)
{
    struct effects effects;
    struct actuator_gpus gpus;
    size_t create_count, delete_count;

    if (world->pools.count != 1) {
        fprintf(stderr, "the pool cannot be read\n");
        exit(1);
    }
    const struct gpu_pool *pool = &world->pools.data[0];
    const struct actuator_ops *ops = actuator_of(world, pool);
    for (size_t i = 0; i < world->faults.count; i++)
        fprintf(stderr, "%s\n", world->faults.data[i].text);
    if (world->faults.count)
        exit(1);
    effects_init(&effects);
    ops->observe(world, pool, &gpus);
    world_place_pods(world, &gpus);
    struct actuator_slot *creates =
        slots_of(root, "creates", &gpus, &world->arena, &create_count);
    struct actuator_slot *deletes =
        slots_of(root, "deletes", &gpus, &world->arena, &delete_count);
    if (json_is_true(json_object_get(root, "step")))
        reconcile_transition(world, pool, &gpus, &world->transitions.data[0], &effects);
    else
        ops->change(world, pool, creates, create_count, deletes, delete_count, &effects);
    if (ops->tend)
        ops->tend(world, &gpus, &effects);
    json_t *out = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "actuator", ops->name, "gpus",
                            gpus_json(world, &gpus), "conflicts", conflicts_json(world),
                            "doubts", doubts_json(world), "effects", effects_json(&effects),
                            "pod", bound_pod(world, ops, &gpus, json_object_get(root, "bind")));
    json_dumpf(out, stdout, JSON_INDENT(1));
    json_decref(out);
    effects_done(&effects);
}

int main(void)
{
    json_error_t why;
    CLEANUP(json_decref_ptr) json_t *root = json_loadf(stdin, 0, &why);
    struct arena arena = {0};
    struct world world;

    if (!root) {
        fprintf(stderr, "line %d: %s\n", why.line, why.text);
        return 1;
    }
    const json_t *pool = json_object_get(root, "pool");
    const struct world_sources sources = {
        .pools = {&pool, 1},
        .nodes = list_of(root, "nodes", &arena),
        .node_states = list_of(root, "nodeStates", &arena),
        .claims = list_of(root, "claims", &arena),
        .resource_slices = list_of(root, "slices", &arena),
        .pods = list_of(root, "pods", &arena),
        .transitions = list_of(root, "transitions", &arena),
        .plans = list_of(root, "plans", &arena),
        .services = list_of(root, "services", &arena),
        .has_dra = json_object_get(root, "slices") != NULL,
        .has_dynamic_mig = json_array_size(json_object_get(root, "slices")) > 0,
        .fresh = !json_is_false(json_object_get(root, "fresh")),
        .epoch = json_integer_value(json_object_get(root, "epoch")),
        .now_s = json_integer_value(json_object_get(root, "now")),
    };
    world_build(&sources, &world);
    answer(&world, root);
    world_done(&world);
    arena_done(&arena);
    return 0;
}
