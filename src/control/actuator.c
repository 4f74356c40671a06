/* SPDX-License-Identifier: Apache-2.0
 *
 * What the actuators share; see actuator.h and actuator_internal.h.
 */
#include "control/actuator.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "control/actuator_internal.h"
#include "mig/layout.h"

const struct actuator_ops *actuator_of(const struct world *world, const struct gpu_pool *pool)
{
    static const struct actuator_ops *const ops[ACTUATOR_KIND_COUNT] = {
        [ACTUATOR_AGENT] = &ACTUATOR_OPS_AGENT,
        [ACTUATOR_DRA] = &ACTUATOR_OPS_DRA,
        [ACTUATOR_MIG_MANAGER] = &ACTUATOR_OPS_MIG_MANAGER,
        [ACTUATOR_SIM] = &ACTUATOR_OPS_SIM,
    };
    enum actuator_kind kind = pool->actuator;

    assert(kind < ACTUATOR_KIND_COUNT);
    if (kind == ACTUATOR_AUTO)
        kind = world->sources.has_dra && world->sources.has_dynamic_mig ? ACTUATOR_DRA
                                                                        : ACTUATOR_AGENT;
    return ops[kind];
}

/* --- names --- */

/* Letters and digits of a name, others as dashes, at most `limit` of them. */
static void add_label_part(char *name, size_t *length, const char *part, size_t limit)
{
    for (size_t i = 0; part[i] && i < limit; i++)
        name[(*length)++] =
            isalnum((unsigned char)part[i]) ? (char)tolower((unsigned char)part[i]) : '-';
}

void actuator_slot_name(const struct actuator_slot *slot, const char *prefix, char ret_name[64])
{
    enum { PREFIX_MOST = 20, GPU_MOST = 8, SLICE_MOST = 14, HASH_DIGITS = 10 };
    const char *slice = slot->gpu->board->profiles[slot->profile].name;
    const char *uuid = slot->gpu->uuid;
    char key[512], hash[HASH_DIGITS + 1], start[16];
    size_t length = 0;

    snprintf(key, sizeof key, "%s/%s/%s/%d/%s", prefix, uuid, slice, slot->start,
             slot->transition ? slot->transition : "");
    text_hash(key, HASH_DIGITS, hash);
    snprintf(start, sizeof start, "-%d-", slot->start);
    uuid += text_starts_with(uuid, "GPU-") ? 4 : 0;
    add_label_part(ret_name, &length, prefix, PREFIX_MOST);
    add_label_part(ret_name, &length, "-", 1);
    add_label_part(ret_name, &length, uuid, GPU_MOST);
    add_label_part(ret_name, &length, "-", 1);
    add_label_part(ret_name, &length, slice, SLICE_MOST);
    add_label_part(ret_name, &length, start, sizeof start);
    add_label_part(ret_name, &length, hash, HASH_DIGITS);
    ret_name[length] = '\0';
    /* A label begins with a letter or digit. */
    if (ret_name[0] == '-')
        ret_name[0] = 'i';
    assert(length < 64);
}

/* --- other owners --- */

static bool slice_has_partitions(const json_t *slice, const char *node)
{
    const json_t *spec = json_object_get(slice, "spec"), *device;
    size_t i;

    if (strcmp(json_text(spec, "driver"), DRA_DRIVER) != 0 ||
        strcmp(json_text(spec, "nodeName"), node) != 0)
        return false;
    json_array_foreach(json_object_get(spec, "devices"), i, device)
    {
        if (device_is_partition(device))
            return true;
    }
    return false;
}

const char *mig_owner_of(const struct world *world, size_t node)
{
    const struct world_node *at = &world->nodes.data[node];
    const struct world_list *slices = &world->sources.resource_slices;

    if (*object_label(at->json, LABEL_MIG_CONFIG))
        return "label " LABEL_MIG_CONFIG ": mig-manager drives its MIG state";
    for (size_t i = 0; i < slices->count; i++)
        if (slice_has_partitions(slices->items[i], at->name))
            return "driver " DRA_DRIVER " publishes its partitions (DynamicMIG)";
    return NULL;
}

/* --- NodeGpuState --- */

struct node_gpu_state *node_state_of(const struct world *world, const char *node)
{
    for (size_t i = 0; i < world->node_states.count; i++)
        if (!strcmp(world->node_states.data[i].meta.name, node))
            return &world->node_states.data[i];
    return NULL;
}

static int compare_world_instances(const void *a, const void *b)
{
    const struct world_instance *x = a, *y = b;
    return x->start != y->start ? x->start - y->start : x->profile - y->profile;
}

void observe_begin(struct world *world, struct actuator_gpus *gpus, size_t capacity)
{
    *gpus = (struct actuator_gpus){0};
    gpus->gpus.data = arena_alloc(&world->arena, capacity + 1, sizeof *gpus->gpus.data);
}

void observe_distinct(struct world *world, struct actuator_gpus *gpus)
{
    CLEANUP(map_done) struct map uuids = {0};
    size_t kept = 0;

    for (size_t i = 0; i < gpus->gpus.count; i++) {
        struct world_gpu *gpu = &gpus->gpus.data[i];
        ptrdiff_t at = map_find(&uuids, gpu->uuid);
        if (at < 0) {
            map_put(&uuids, gpu->uuid, NULL);
            gpus->gpus.data[kept++] = *gpu;
            continue;
        }
        /* A UUID that two nodes tell of: the one where the GPU is not lost has it. */
        struct world_gpu *first = &gpus->gpus.data[at];
        struct world_gpu left_out = *gpu;
        if (first->lost && !gpu->lost) {
            left_out = *first;
            *first = *gpu;
        }
        world->nodes.data[left_out.node].doubt =
            arena_printf(&world->arena, "%s is told of by node %s too: left out here",
                         left_out.uuid, world->nodes.data[first->node].name);
    }
    assert(kept == uuids.count);
    gpus->gpus.count = kept;
}

/* Whether the agent says, of the spec as it is now, that it failed on this GPU. */
static bool gpu_failed(const struct node_gpu_state *state, const struct node_gpu *found)
{
    const json_t *synced = object_condition(state->meta.json, CONDITION_SYNCED);
    const char *reason = json_text(synced, "reason");

    return state->observed_generation == state->meta.generation && found->message &&
           *found->message && !strcmp(json_text(synced, "status"), "False") &&
           (!strcmp(reason, "Failed") || !strcmp(reason, "InvalidSpec"));
}

void observe_gpu(struct world *world, const struct node_gpu_state *state,
                 const struct node_gpu *found, struct world_gpu *ret)
{
    const struct node_gpu *desired =
        node_gpu_find(state->desired.data, state->desired.count, found->uuid);
    size_t wanted = desired ? desired->instances.count : 0;
    bool failed = gpu_failed(state, found);
    struct world_instance *list =
        arena_alloc(&world->arena, found->instances.count + wanted + 1, sizeof *list);
    size_t count = 0;

    assert(found->board);
    for (size_t i = 0; i < found->instances.count; i++) {
        const struct node_instance *instance = &found->instances.data[i];
        bool leaving =
            desired && !node_instance_find(desired, instance->profile, instance->start);
        list[count++] = (struct world_instance){
            .profile = instance->profile,
            .start = instance->start,
            .phase = leaving           ? INSTANCE_LEAVING
                     : instance->ready ? INSTANCE_READY
                                       : INSTANCE_PENDING,
            .uuid = instance->uuid ? instance->uuid : "",
            .claim = "",
            .message = "",
        };
    }
    for (size_t i = 0; i < wanted; i++) {
        const struct node_instance *instance = &desired->instances.data[i];
        if (node_instance_find(found, instance->profile, instance->start))
            continue;
        list[count++] = (struct world_instance){
            .profile = instance->profile,
            .start = instance->start,
            .phase = failed ? INSTANCE_FAILED : INSTANCE_PENDING,
            .uuid = "",
            .claim = "",
            .message = failed ? found->message : "",
        };
    }
    qsort(list, count, sizeof *list, compare_world_instances);
    *ret = (struct world_gpu){.uuid = found->uuid, .board = found->board, .actuator_id = ""};
    ret->instances.data = list;
    ret->instances.count = count;
}

/* --- desired layouts --- */

static size_t slots_of_node(const struct actuator_slot *slots, size_t count, size_t node)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += slots[i].gpu->node == node;
    return found;
}

/* A copy with room for `more` further instances. */
static struct node_gpu copy_gpu(struct world *world, const struct node_gpu *from, size_t more)
{
    struct node_gpu copy = *from;
    size_t count = from->instances.count;

    copy.instances.data =
        arena_alloc(&world->arena, count + more + 1, sizeof *copy.instances.data);
    for (size_t i = 0; i < count; i++)
        copy.instances.data[i] = from->instances.data[i];
    copy.instances.capacity = 0; /* of the arena: not to be grown */
    return copy;
}

/* The GPU of a slot among the desired ones, added with what is there now. */
static struct node_gpu *desired_gpu(struct world *world, struct desired *desired,
                                    const struct world_gpu *gpu, size_t more)
{
    struct node_gpu *at = node_gpu_find(desired->gpus, desired->count, gpu->uuid);
    struct node_gpu fresh = {.uuid = gpu->uuid, .board = gpu->board, .mig_enabled = true};

    if (at)
        return at;
    fresh = copy_gpu(world, &fresh, gpu->instances.count + more);
    for (size_t i = 0; i < gpu->instances.count; i++)
        fresh.instances.data[fresh.instances.count++] =
            (struct node_instance){.profile = gpu->instances.data[i].profile,
                                   .start = gpu->instances.data[i].start,
                                   .uuid = ""};
    desired->gpus[desired->count] = fresh;
    desired->changed = true;
    return &desired->gpus[desired->count++];
}

static int compare_node_instances(const void *a, const void *b)
{
    const struct node_instance *x = a, *y = b;
    return x->start != y->start ? x->start - y->start : x->profile - y->profile;
}

/* Whether an instance fits beside those that are desired. What does not would have the whole
 * object refused; whoever asks for it learns from the world what is in its place. */
static bool fits(const struct node_gpu *gpu, const struct mig_board *board, int profile,
                 int start)
{
    struct mig_layout layout = {0};

    for (size_t i = 0; i < gpu->instances.count; i++) {
        struct mig_instance there = {(int8_t)gpu->instances.data[i].profile,
                                     (int8_t)gpu->instances.data[i].start};
        if (mig_layout_can_add(board, &layout, there))
            mig_layout_add(board, &layout, there);
    }
    return mig_layout_can_add(board, &layout,
                              (struct mig_instance){(int8_t)profile, (int8_t)start});
}

static void desired_add(struct world *world, struct desired *desired,
                        const struct actuator_slot *slot, size_t more)
{
    struct node_gpu *gpu = desired_gpu(world, desired, slot->gpu, more);

    if (node_instance_find(gpu, slot->profile, slot->start) ||
        !fits(gpu, slot->gpu->board, slot->profile, slot->start))
        return;
    gpu->instances.data[gpu->instances.count++] =
        (struct node_instance){.profile = slot->profile, .start = slot->start, .uuid = ""};
    qsort(gpu->instances.data, gpu->instances.count, sizeof *gpu->instances.data,
          compare_node_instances);
    desired->changed = true;
}

static void desired_take(struct world *world, struct desired *desired,
                         const struct actuator_slot *slot, size_t more)
{
    struct node_gpu *gpu = desired_gpu(world, desired, slot->gpu, more);
    struct node_instance *at = node_instance_find(gpu, slot->profile, slot->start);

    desired->takes = true;
    if (!at)
        return;
    size_t index = (size_t)(at - gpu->instances.data);
    gpu->instances.count--;
    for (size_t i = index; i < gpu->instances.count; i++)
        gpu->instances.data[i] = gpu->instances.data[i + 1];
    desired->changed = true;
}

/* A GPU that the agent has looked for and not found: replaced, or off the bus. It would be
 * refused for ever; should it come back, it is named again by the first slot on it. */
static bool is_gone(const struct node_gpu_state *state, const char *uuid)
{
    return state->observed_generation == state->meta.generation && state->found.count &&
           !node_gpu_find(state->found.data, state->found.count, uuid);
}

/* Of desired instances that overlap, those that were found stay, then the first; such a layout
 * is refused as a whole, whoever wrote it. Returns whether one was dropped. */
static bool drop_overlaps(const struct node_gpu_state *state, struct node_gpu *gpu)
{
    const struct node_gpu *found =
        node_gpu_find(state->found.data, state->found.count, gpu->uuid);
    struct node_gpu kept = {0};
    size_t count = gpu->instances.count;

    if (!gpu->board)
        return false;
    kept.instances.data = xcalloc(count + 1, sizeof *kept.instances.data);
    for (int there = 1; there >= 0; there--)
        for (size_t i = 0; i < count; i++) {
            const struct node_instance *one = &gpu->instances.data[i];
            bool is_found = found && node_instance_find(found, one->profile, one->start);
            if (is_found == there && fits(&kept, gpu->board, one->profile, one->start))
                kept.instances.data[kept.instances.count++] = *one;
        }
    bool dropped = kept.instances.count < count;
    if (dropped) {
        memcpy(gpu->instances.data, kept.instances.data,
               kept.instances.count * sizeof *kept.instances.data);
        gpu->instances.count = kept.instances.count;
        qsort(gpu->instances.data, gpu->instances.count, sizeof *gpu->instances.data,
              compare_node_instances);
    }
    free(kept.instances.data);
    return dropped;
}

bool desired_make(struct world *world, size_t node, const struct actuator_slots *slots,
                  struct desired *ret)
{
    size_t more = slots_of_node(slots->creates, slots->create_count, node) +
                  slots_of_node(slots->deletes, slots->delete_count, node);
    const struct node_gpu_state *state = node_state_of(world, world->nodes.data[node].name);
    size_t had = state ? state->desired.count : 0;

    if (!more)
        return false;
    *ret = (struct desired){.node = node, .state = state};
    ret->gpus = arena_alloc(&world->arena, had + more, sizeof *ret->gpus);
    for (size_t i = 0; i < had; i++) {
        if (is_gone(state, state->desired.data[i].uuid)) {
            ret->changed = true;
            continue;
        }
        ret->gpus[ret->count] = copy_gpu(world, &state->desired.data[i], more);
        ret->changed |= drop_overlaps(state, &ret->gpus[ret->count++]);
    }
    for (size_t i = 0; i < slots->delete_count; i++)
        if (slots->deletes[i].gpu->node == node)
            desired_take(world, ret, &slots->deletes[i], more);
    for (size_t i = 0; i < slots->create_count; i++)
        if (slots->creates[i].gpu->node == node)
            desired_add(world, ret, &slots->creates[i], more);
    ret->changed = ret->changed || !state || state->epoch != world->sources.epoch;
    return true;
}

/* The Node owns what speaks of it: when it goes, so does its NodeGpuState. */
static void own_by_node(const struct world_node *node, json_t *metadata)
{
    const char *uid = json_text(json_object_get(node->json, "metadata"), "uid");

    if (*uid)
        json_object_set_new(metadata, "ownerReferences",
                            json_pack("[{s:s, s:s, s:s, s:s}]", "apiVersion", "v1", "kind",
                                      "Node", "name", node->name, "uid", uid));
}

json_t *desired_to_json(const struct world *world, const struct desired *desired)
{
    json_t *metadata = json_pack("{s:s}", "name", world->nodes.data[desired->node].name);

    if (desired->state)
        json_object_set_new(metadata, "resourceVersion",
                            json_string(desired->state->meta.resource_version));
    own_by_node(&world->nodes.data[desired->node], metadata);
    return json_pack("{s:s, s:s, s:o, s:{s:I, s:o}}", "apiVersion",
                     CONTROL_GROUP "/" CONTROL_VERSION, "kind", "NodeGpuState", "metadata",
                     metadata, "spec", "epoch", (json_int_t)world->sources.epoch, "gpus",
                     node_desired_to_json(desired->gpus, desired->count));
}
