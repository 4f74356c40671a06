/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for tests and demonstrations: no agent, no GPU. A Node says what it would have
 * (annotation tranche.dev/simulated-gpus: a fleet text) and how changes go (annotation
 * tranche.dev/simulation: rules). The actuator writes NodeGpuState's spec as for the agent, and
 * after the time of the rule the status too, as an agent would have.
 *
 *     rules = rule { ";" rule }        the last one that fits counts; default: 1 second
 *     rule  = ("create" | "delete") [SLICE] ["@" START] (SECONDS | "fail" | "hang")
 *
 * When a change began is kept in an annotation of the NodeGpuState, so a controller that
 * starts anew goes on from there.
 */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "control/actuator_internal.h"
#include "mig/fleet.h"

enum { SIM_GPUS_MAX = 64, SIM_SECONDS = 1 };

enum fate { FATE_TAKES, FATE_FAILS, FATE_HANGS };
struct rule_result {
    enum fate fate;
    int seconds;
};

/* --- rules --- */

/* Takes the next word of a rule. */
static bool next_word(const char **at, char ret[64])
{
    size_t length;

    *at += strspn(*at, " \t");
    length = strcspn(*at, " \t;");
    if (!length || length >= 64)
        return false;
    memcpy(ret, *at, length);
    ret[length] = '\0';
    *at += length;
    return true;
}

/* Whether "3g.20gb@4", "3g.20gb" or "@4" means this slot. */
static bool word_fits(const char *word, const char *slice, int start)
{
    const char *at = strchr(word, '@');
    size_t length = at ? (size_t)(at - word) : strlen(word);
    long long number = start;

    if (at && !text_to_int(at + 1, 0, 127, &number))
        return false;
    return number == start &&
           (!length || (strlen(slice) == length && !memcmp(word, slice, length)));
}

static bool rule_outcome(const char *word, struct rule_result *ret)
{
    long long seconds = 0;

    if (!strcmp(word, "fail"))
        *ret = (struct rule_result){.fate = FATE_FAILS};
    else if (!strcmp(word, "hang"))
        *ret = (struct rule_result){.fate = FATE_HANGS};
    else if (text_to_int(word, 0, 86400, &seconds))
        *ret = (struct rule_result){.fate = FATE_TAKES, .seconds = (int)seconds};
    else
        return false;
    return true;
}

static struct rule_result rule_of(const char *rules, const char *verb, const char *slice,
                                  int start)
{
    struct rule_result result = {.fate = FATE_TAKES, .seconds = SIM_SECONDS}, outcome;

    for (const char *at = rules; *at; at += strcspn(at, ";"), at += *at == ';') {
        char word[64];
        bool fits = next_word(&at, word) && !strcmp(word, verb);
        if (!fits || !next_word(&at, word))
            continue;
        if (!rule_outcome(word, &outcome)) {
            fits = word_fits(word, slice, start);
            if (!fits || !next_word(&at, word) || !rule_outcome(word, &outcome))
                continue;
        }
        result = outcome;
    }
    return result;
}

/* --- observing --- */

static const char *simulated_uuid(struct world *world, const char *prefix, const char *key)
{
    char hash[33];

    text_hash(key, 32, hash);
    return arena_printf(&world->arena, "%s-%.8s-%.4s-%.4s-%.4s-%.12s", prefix, hash, hash + 8,
                        hash + 12, hash + 16, hash + 20);
}

/* The GPUs of a node's annotation; 0 when it has none that can be read. */
static size_t node_gpus(struct world *world, size_t node, struct node_gpu ret[SIM_GPUS_MAX])
{
    const struct world_node *at = &world->nodes.data[node];
    struct mig_fleet fleet;
    size_t count = 0;

    if (mig_fleet_parse(object_note(at->json, NOTE_SIMULATED_GPUS), &fleet, NULL))
        return 0;
    for (int i = 0; i < fleet.count; i++)
        for (int j = 0; j < fleet.entries[i].count && count < SIM_GPUS_MAX; j++) {
            char key[300];
            snprintf(key, sizeof key, "%.250s/%zu", at->name, count);
            ret[count++] = (struct node_gpu){
                .uuid = simulated_uuid(world, "GPU", key),
                .board = fleet.entries[i].board,
                .mig_enabled = fleet.entries[i].board->has_mig,
            };
        }
    return count;
}

/* What the rules let fail is said at once: there is no agent to say it later. */
static void mark_failed(struct world *world, size_t node, struct world_gpu *gpu)
{
    const char *rules = object_note(world->nodes.data[node].json, NOTE_SIMULATION);

    for (size_t i = 0; i < gpu->instances.count; i++) {
        struct world_instance *instance = &gpu->instances.data[i];
        const char *slice = gpu->board->profiles[instance->profile].name;
        if (instance->phase == INSTANCE_PENDING &&
            rule_of(rules, "create", slice, instance->start).fate == FATE_FAILS) {
            instance->phase = INSTANCE_FAILED;
            instance->message = "the simulation's rules let it fail";
        }
    }
}

static void observe_node(struct world *world, size_t node, struct actuator_gpus *ret)
{
    static const struct node_gpu_state none = {.message = ""};
    struct node_gpu gpus[SIM_GPUS_MAX];
    size_t count = node_gpus(world, node, gpus);
    const struct node_gpu_state *state = node_state_of(world, world->nodes.data[node].name);

    for (size_t i = 0; i < count; i++) {
        const struct node_gpu *found =
            state ? node_gpu_find(state->found.data, state->found.count, gpus[i].uuid) : NULL;
        struct world_gpu *gpu = &ret->gpus.data[ret->gpus.count++];
        if (found && found->board)
            gpus[i].instances = found->instances;
        observe_gpu(world, state ? state : &none, &gpus[i], gpu);
        gpu->node = node;
        gpu->lost = !world->nodes.data[node].ready;
        mark_failed(world, node, gpu);
    }
}

static void sim_observe(struct world *world, const struct gpu_pool *pool,
                        struct actuator_gpus *ret_gpus)
{
    size_t capacity = 0;
    struct node_gpu unused[SIM_GPUS_MAX];

    for (size_t i = 0; i < world->nodes.count; i++)
        capacity += world_in_pool(world, pool, i) ? node_gpus(world, i, unused) : 0;
    observe_begin(world, ret_gpus, capacity);
    for (size_t i = 0; i < world->nodes.count; i++)
        if (world_in_pool(world, pool, i))
            observe_node(world, i, ret_gpus);
    assert(ret_gpus->gpus.count == capacity);
}

/* --- changing --- */

/* One node's change under way. */
struct sim_node {
    struct world *world;
    struct desired desired;
    json_t *since;      /* "uuid slice@start": when it began, seconds since 1970; owned */
    bool since_changed; /* … by this round */
    struct node_gpu *found;
    size_t found_count;
    bool found_changed;
    int64_t due_s; /* of the next one to end */
};

static void read_since(struct sim_node *node)
{
    const struct node_gpu_state *state = node->desired.state;

    node->since =
        state ? json_loads(object_note(state->meta.json, NOTE_SIMULATED_SINCE), 0, NULL) : NULL;
    if (!json_is_object(node->since)) {
        json_decref(node->since);
        node->since = json_object();
    }
}

/* What there is now, as a copy with room for all that is desired. */
static void copy_found(struct sim_node *node)
{
    struct node_gpu gpus[SIM_GPUS_MAX];
    const struct node_gpu_state *state = node->desired.state;

    node->found_count = node_gpus(node->world, node->desired.node, gpus);
    node->found = arena_alloc(&node->world->arena, node->found_count + 1, sizeof *node->found);
    for (size_t i = 0; i < node->found_count; i++) {
        struct node_gpu *desired =
            node_gpu_find(node->desired.gpus, node->desired.count, gpus[i].uuid);
        const struct node_gpu *old =
            state ? node_gpu_find(state->found.data, state->found.count, gpus[i].uuid) : NULL;
        size_t had = old ? old->instances.count : 0;
        size_t room = had + (desired ? desired->instances.count : 0) + 1;
        node->found[i] = gpus[i];
        node->found[i].instances.data =
            arena_alloc(&node->world->arena, room, sizeof *gpus[i].instances.data);
        node->found[i].instances.count = had;
        for (size_t j = 0; j < had; j++)
            node->found[i].instances.data[j] = old->instances.data[j];
    }
}

/* Whether a change that is wanted is over by now; notes when it began. */
static bool is_over(struct sim_node *node, const char *verb, const struct node_gpu *gpu,
                    int profile, int start)
{
    const char *slice = gpu->board->profiles[profile].name;
    const char *rules =
        object_note(node->world->nodes.data[node->desired.node].json, NOTE_SIMULATION);
    struct rule_result rule = rule_of(rules, verb, slice, start);
    const char *key =
        arena_printf(&node->world->arena, "%s %s %s@%d", verb, gpu->uuid, slice, start);
    json_t *began = json_object_get(node->since, key);

    if (rule.fate != FATE_TAKES)
        return false;
    if (!began) {
        began = json_integer(node->world->sources.now_s);
        json_object_set_new(node->since, key, began);
        node->since_changed = true;
    }
    int64_t due_s = json_integer_value(began) + rule.seconds;
    if (due_s > node->world->sources.now_s) {
        node->due_s = due_s < node->due_s ? due_s : node->due_s;
        return false;
    }
    json_object_del(node->since, key);
    node->since_changed = true;
    return true;
}

static void end_deletions(struct sim_node *node, struct node_gpu *gpu,
                          const struct node_gpu *desired)
{
    size_t kept = 0;

    for (size_t i = 0; i < gpu->instances.count; i++) {
        struct node_instance instance = gpu->instances.data[i];
        if (!node_instance_find(desired, instance.profile, instance.start) &&
            is_over(node, "delete", gpu, instance.profile, instance.start))
            node->found_changed = true;
        else
            gpu->instances.data[kept++] = instance;
    }
    gpu->instances.count = kept;
}

static void end_creations(struct sim_node *node, struct node_gpu *gpu,
                          const struct node_gpu *desired)
{
    for (size_t i = 0; i < desired->instances.count; i++) {
        struct node_instance wanted = desired->instances.data[i];
        if (node_instance_find(gpu, wanted.profile, wanted.start) ||
            !is_over(node, "create", gpu, wanted.profile, wanted.start))
            continue;
        const char *key =
            arena_printf(&node->world->arena, "%s/%d/%d/%lld", gpu->uuid, wanted.profile,
                         wanted.start, (long long)node->world->sources.now_s);
        wanted.uuid = simulated_uuid(node->world, "MIG", key);
        wanted.ready = true;
        gpu->instances.data[gpu->instances.count++] = wanted;
        node->found_changed = true;
    }
}

static void write_node(struct sim_node *node, struct effects *effects)
{
    json_t *body = desired_to_json(node->world, &node->desired);
    CLEANUP(free_ptr) char *since = json_dumps(node->since, JSON_COMPACT);
    json_t *metadata = json_child(body, "metadata");

    json_object_set_new(json_child(metadata, "annotations"), NOTE_SIMULATED_SINCE,
                        json_string(since));
    struct effect *effect = effect_apply(effects, &KIND_NODE_GPU_STATE, body);
    effect->manager = MANAGER_CONTROLLER;
    effect->destructive = node->desired.takes;
    effect->reason = "SimulatedLayout";
}

static void write_status(struct sim_node *node, struct effects *effects)
{
    json_t *body =
        json_pack("{s:s, s:s, s:{s:s}, s:{s:I, s:o}}", "apiVersion",
                  CONTROL_GROUP "/" CONTROL_VERSION, "kind", "NodeGpuState", "metadata", "name",
                  node->world->nodes.data[node->desired.node].name, "status", "observedEpoch",
                  (json_int_t)node->world->sources.epoch, "gpus",
                  node_found_to_json(node->found, node->found_count));
    struct effect *effect = effect_apply(effects, &KIND_NODE_GPU_STATE, body);
    effect->subresource = "status";
    effect->manager = MANAGER_AGENT;
    effect->reason = "SimulatedStatus";
}

static void change_node(struct world *world, struct desired *desired, struct effects *effects)
{
    struct sim_node node = {.world = world, .desired = *desired, .due_s = INT64_MAX};

    read_since(&node);
    copy_found(&node);
    for (size_t i = 0; i < node.found_count; i++) {
        const struct node_gpu *wanted =
            node_gpu_find(desired->gpus, desired->count, node.found[i].uuid);
        if (!wanted)
            continue;
        end_deletions(&node, &node.found[i], wanted);
        end_creations(&node, &node.found[i], wanted);
    }
    if (desired->changed || node.since_changed)
        write_node(&node, effects);
    if (node.found_changed)
        write_status(&node, effects);
    if (node.due_s != INT64_MAX)
        effects_again_at(effects, world->sources.now_ns + (node.due_s - world->sources.now_s) *
                                                              INT64_C(1000000000));
    json_decref(node.since);
}

static void sim_change(struct world *world, const struct gpu_pool *pool,
                       const struct actuator_slot *creates, size_t create_count,
                       const struct actuator_slot *deletes, size_t delete_count,
                       struct effects *effects)
{
    const struct actuator_slots slots = {creates, deletes, create_count, delete_count};
    struct desired desired;

    (void)pool;
    for (size_t node = 0; node < world->nodes.count; node++)
        if (desired_make(world, node, &slots, &desired) &&
            (!desired.state || desired.state->epoch <= world->sources.epoch))
            change_node(world, &desired, effects);
}

static void sim_bind(const struct world *world, const struct world_gpu *gpu,
                     const struct world_instance *instance, json_t *pod)
{
    (void)instance;
    pod_pin(pod, world->nodes.data[gpu->node].name);
}

const struct actuator_ops ACTUATOR_OPS_SIM = {
    .name = "sim",
    .observe = sim_observe,
    .change = sim_change,
    .bind = sim_bind,
};
