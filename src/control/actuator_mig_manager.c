/* SPDX-License-Identifier: Apache-2.0
 *
 * The actuator over the GPU Operator's mig-manager. A node's layout is a config of mig-parted's
 * format v1 in a ConfigMap that mig-manager reads; the node's label nvidia.com/mig.config names
 * it, and nvidia.com/mig.config.state tells how far it is. On a GPU whose layout differs,
 * mig-manager clears every instance, hence needs_whole_gpu. It tells neither UUIDs nor starts:
 * a GPU is named NODE/INDEX, its layout kept in an annotation of the Node, and a pod gets one
 * instance of the profile on the node by the device plugin (strategy mixed), not a certain one.
 *
 * mig-manager does its work when the label's value changes, so a config that failed is tried
 * again under its other name, HASH-again, after a while.
 *
 * Boards are known by the label nvidia.com/gpu.product of feature discovery. The ConfigMap is
 * named by the GpuPool's annotation tranche.dev/mig-config-map: NAMESPACE/NAME.
 */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "control/actuator_internal.h"

#define NOTE_MIG_LAYOUT        "tranche.dev/mig-layout" /* of a Node: {"0": "3g.20gb@0 …"} */
#define NOTE_MIG_CONFIG_MAP    "tranche.dev/mig-config-map"
#define MIG_CONFIG_MAP_DEFAULT "gpu-operator/tranche-mig-parted-config"
#define LABEL_GPU_PRODUCT      "nvidia.com/gpu.product"
#define LABEL_GPU_COUNT        "nvidia.com/gpu.count"
#define NOTE_MIG_TRIED         "tranche.dev/mig-tried" /* of a Node: seconds since 1970 */
#define CONFIG_PREFIX          "tranche-"
#define CONFIG_AGAIN           "-again"

enum { NODE_GPUS_MAX = 64, RETRY_SECONDS = 60, CONFIG_NAME_SIZE = 32 };

static const struct kube_kind KIND_CONFIG_MAP = {"", "v1", "configmaps", "ConfigMap", true};

enum manager_state { MANAGER_IDLE, MANAGER_WORKING, MANAGER_FAILED };

/* --- what a node is --- */

/* Feature discovery writes names with dashes for blanks, and a suffix for shared or
 * partitioned GPUs. Each board by what its product names begin with. */
static const struct {
    const char *product, *slug;
} products[] = {
    {"NVIDIA-A100-SXM4-40GB", "a100-40gb"},
    {"NVIDIA-A100-PCIE-40GB", "a100-40gb"},
    {"A100-SXM4-40GB", "a100-40gb"},
    {"NVIDIA-A100-SXM4-80GB", "a100-80gb"},
    {"NVIDIA-A100-80GB-PCIe", "a100-80gb"},
    {"NVIDIA-A30", "a30-24gb"},
    {"NVIDIA-H100-80GB-HBM3", "h100-80gb-sxm5"},
    {"NVIDIA-H100-PCIe", "h100-80gb-pcie"},
    {"NVIDIA-H100-NVL", "h100-94gb"},
    {"NVIDIA-H200-NVL", "h200-141gb"},
    {"NVIDIA-H200", "h200-141gb"},
};

static const struct mig_board *board_of_product(const char *product)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        if (text_starts_with(product, products[i].product) && mig_board_find(products[i].slug))
            return mig_board_find(products[i].slug);
    return mig_board_find(product);
}

static int gpu_count_of(const json_t *node)
{
    long long count = 0;

    return text_to_int(object_label(node, LABEL_GPU_COUNT), 0, NODE_GPUS_MAX, &count)
               ? (int)count
               : 0;
}

static enum manager_state state_of(const json_t *node)
{
    const char *state = object_label(node, LABEL_MIG_CONFIG_STATE);

    if (!strcmp(state, "failed"))
        return MANAGER_FAILED;
    return !strcmp(state, "pending") || !strcmp(state, "rebooting") ? MANAGER_WORKING
                                                                    : MANAGER_IDLE;
}

/* The layouts that we wrote down for a node; owned; empty when there are none. */
static json_t *layouts_of(const json_t *node)
{
    json_t *layouts = json_loads(object_note(node, NOTE_MIG_LAYOUT), 0, NULL);

    if (json_is_object(layouts))
        return layouts;
    json_decref(layouts);
    return json_object();
}

static void read_layout(const json_t *layouts, int index, const struct mig_board *board,
                        struct mig_layout *ret)
{
    char key[16];

    snprintf(key, sizeof key, "%d", index);
    *ret = (struct mig_layout){0};
    if (mig_layout_parse(board, json_text(layouts, key), ret, NULL))
        *ret = (struct mig_layout){0};
}

/* The config's name: a hash of what it says, so equal nodes share one. */
static void config_name(const json_t *layouts, const struct mig_board *board,
                        char ret[CONFIG_NAME_SIZE])
{
    CLEANUP(free_ptr) char *text = json_dumps(layouts, JSON_COMPACT | JSON_SORT_KEYS);
    CLEANUP(str_done) struct str key = STR_EMPTY;
    char hash[13];

    str_addf(&key, "%s %s", board->slug, text);
    text_hash(key.bytes, 12, hash);
    snprintf(ret, CONFIG_NAME_SIZE, CONFIG_PREFIX "%s", hash);
}

/* The other name of the same config. */
static void config_name_again(char name[CONFIG_NAME_SIZE])
{
    size_t length = strlen(name);

    assert(length + sizeof CONFIG_AGAIN <= CONFIG_NAME_SIZE);
    memcpy(name + length, CONFIG_AGAIN, sizeof CONFIG_AGAIN);
}

/* Whether the node's label names a config, by either name. */
static bool is_labelled(const json_t *node, const char *name)
{
    const char *label = object_label(node, LABEL_MIG_CONFIG);
    size_t length = strlen(name);

    return !strncmp(label, name, length) &&
           (!label[length] || !strcmp(label + length, CONFIG_AGAIN));
}

/* --- observing --- */

static void observe_index(struct world *world, size_t node, int index, const json_t *layouts,
                          const struct mig_board *board, struct world_gpu *gpu)
{
    const json_t *json = world->nodes.data[node].json;
    enum manager_state state = state_of(json);
    struct mig_layout layout;
    char name[CONFIG_NAME_SIZE];

    read_layout(layouts, index, board, &layout);
    config_name(layouts, board, name);
    /* Until mig-manager has taken up the label, its state is that of the config before. */
    bool ours = is_labelled(json, name) && *object_label(json, LABEL_MIG_CONFIG_STATE);
    *gpu = (struct world_gpu){
        .uuid = arena_printf(&world->arena, "%s/%d", world->nodes.data[node].name, index),
        .board = board,
        .actuator_id = arena_printf(&world->arena, "%d", index),
        .node = node,
        .lost = !world->nodes.data[node].ready,
    };
    gpu->instances.data =
        arena_alloc(&world->arena, MIG_INSTANCES_MAX, sizeof *gpu->instances.data);
    for (int i = 0; i < layout.count; i++)
        gpu->instances.data[gpu->instances.count++] = (struct world_instance){
            .profile = layout.instances[i].profile,
            .start = layout.instances[i].start,
            .phase = !ours || state == MANAGER_WORKING ? INSTANCE_PENDING
                     : state == MANAGER_FAILED         ? INSTANCE_FAILED
                                                       : INSTANCE_READY,
            .uuid = "",
            .claim = "",
            .message = ours && state == MANAGER_FAILED
                           ? "mig-manager failed: see its log on the node"
                           : "",
        };
}

static void manager_observe(struct world *world, const struct gpu_pool *pool,
                            struct actuator_gpus *ret_gpus)
{
    size_t capacity = 0;

    for (size_t i = 0; i < world->nodes.count; i++)
        capacity += (size_t)gpu_count_of(world->nodes.data[i].json);
    observe_begin(world, ret_gpus, capacity);
    for (size_t i = 0; i < world->nodes.count; i++) {
        const json_t *json = world->nodes.data[i].json;
        const struct mig_board *board = board_of_product(object_label(json, LABEL_GPU_PRODUCT));
        const char *config = object_label(json, LABEL_MIG_CONFIG);
        if (!board || !world_in_pool(world, pool, i))
            continue;
        /* A config that somebody else chose is theirs, but for what says "nothing". */
        bool foreign = *config && !text_starts_with(config, CONFIG_PREFIX) &&
                       strcmp(config, "all-disabled") != 0 &&
                       strcmp(config, "all-enabled") != 0;
        world->nodes.data[i].conflict =
            foreign ? "label " LABEL_MIG_CONFIG " names a config of somebody else" : "";
        CLEANUP(json_decref_ptr) json_t *layouts = layouts_of(json);
        for (int j = 0; !foreign && j < gpu_count_of(json); j++)
            observe_index(world, i, j, layouts, board,
                          &ret_gpus->gpus.data[ret_gpus->gpus.count++]);
    }
    assert(ret_gpus->gpus.count <= capacity);
}

/* --- changing --- */

static void set_layout(json_t *layouts, const struct world_gpu *gpu,
                       const struct mig_layout *layout)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    if (!layout->count) {
        json_object_del(layouts, gpu->actuator_id);
        return;
    }
    mig_layout_format(gpu->board, layout, &text);
    json_object_set_new(layouts, gpu->actuator_id, json_string(text.bytes));
}

/* Adds or takes out one instance; whether anything changed. */
static bool edit(json_t *layouts, const struct actuator_slot *slot, bool add)
{
    const struct mig_instance instance = {(int8_t)slot->profile, (int8_t)slot->start};
    struct mig_layout layout = {0};
    const char *text = json_text(layouts, slot->gpu->actuator_id);

    if (*text && mig_layout_parse(slot->gpu->board, text, &layout, NULL))
        layout = (struct mig_layout){0};
    bool has = mig_layout_contains(&layout, instance);
    if (has == add || (add && !mig_layout_can_add(slot->gpu->board, &layout, instance)))
        return false;
    if (add)
        mig_layout_add(slot->gpu->board, &layout, instance);
    for (int i = 0; !add && i < layout.count; i++)
        if (layout.instances[i].profile == instance.profile &&
            layout.instances[i].start == instance.start) {
            mig_layout_remove(&layout, i);
            break;
        }
    set_layout(layouts, slot->gpu, &layout);
    return true;
}

/* "    - devices: [2]" and so on, of mig-parted's config format. */
static void add_config(struct str *text, const char *name, const json_t *layouts,
                       const struct mig_board *board, int gpu_count)
{
    str_addf(text, "  %s:\n", name);
    for (int i = 0; i < gpu_count; i++) {
        struct mig_layout layout;
        read_layout(layouts, i, board, &layout);
        str_addf(text, "    - devices: [%d]\n      mig-enabled: true\n      mig-devices:", i);
        str_add(text, layout.count ? "\n" : " {}\n");
        for (int profile = 0; profile < board->profile_count; profile++) {
            int count = 0;
            for (int j = 0; j < layout.count; j++)
                count += layout.instances[j].profile == profile;
            if (count)
                str_addf(text, "        \"%s\": %d\n", board->profiles[profile].name, count);
        }
    }
}

/* The configs that the nodes name, of whichever pool (they may share the ConfigMap), and the
 * new ones. */
struct config_map {
    struct str text;
    struct map names;
};

static void collect(struct config_map *map, const json_t *layouts,
                    const struct mig_board *board, int gpu_count)
{
    char name[CONFIG_NAME_SIZE];

    config_name(layouts, board, name);
    if (map_find(&map->names, name) >= 0)
        return;
    map_put(&map->names, name, NULL);
    add_config(&map->text, name, layouts, board, gpu_count);
    config_name_again(name);
    add_config(&map->text, name, layouts, board, gpu_count);
}

static void write_config_map(const struct gpu_pool *pool, const struct config_map *map,
                             struct effects *effects)
{
    const char *place = object_note(pool->meta.json, NOTE_MIG_CONFIG_MAP);
    const char *slash = strchr(*place ? place : (place = MIG_CONFIG_MAP_DEFAULT), '/');

    if (!slash)
        return;
    json_t *body = json_pack(
        "{s:s, s:s, s:{s:s#, s:s, s:{s:s}}, s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap",
        "metadata", "namespace", place, (int)(slash - place), "name", slash + 1, "labels",
        LABEL_MANAGED_BY, "tranche", "data", "config.yaml", map->text.bytes);
    struct effect *effect = effect_apply(effects, &KIND_CONFIG_MAP, body);
    effect->manager = MANAGER_CONTROLLER;
    effect->reason = "MigConfig";
}

/* Gives the node its new config. What the state's label says is of the one before: it goes, so
 * that mig-manager's next word is of this one. */
static void write_node(const struct world *world, size_t node, const json_t *layouts,
                       const struct mig_board *board, struct effects *effects)
{
    CLEANUP(free_ptr) char *text = json_dumps(layouts, JSON_COMPACT | JSON_SORT_KEYS);
    const json_t *json = world->nodes.data[node].json;
    char name[CONFIG_NAME_SIZE], tried[24];

    config_name(layouts, board, name);
    if (!strcmp(object_label(json, LABEL_MIG_CONFIG), name))
        config_name_again(name);
    snprintf(tried, sizeof tried, "%lld", (long long)world->sources.now_s);
    json_t *patch = json_pack("{s:{s:{s:s, s:n}, s:{s:s, s:s}}}", "metadata", "labels",
                              LABEL_MIG_CONFIG, name, LABEL_MIG_CONFIG_STATE, "annotations",
                              NOTE_MIG_LAYOUT, text, NOTE_MIG_TRIED, tried);
    struct effect *effect = effect_patch(effects, &KUBE_NODE, json, patch, true);
    effect->destructive = true; /* whole GPUs are cleared */
    effect->reason = "MigConfig";
}

static bool edit_node(size_t node, const struct actuator_slots *slots, json_t *layouts,
                      const struct mig_board **ret_board)
{
    bool changed = false;

    for (size_t i = 0; i < slots->delete_count; i++)
        if (slots->deletes[i].gpu->node == node) {
            changed = edit(layouts, &slots->deletes[i], false) || changed;
            *ret_board = slots->deletes[i].gpu->board;
        }
    for (size_t i = 0; i < slots->create_count; i++)
        if (slots->creates[i].gpu->node == node) {
            changed = edit(layouts, &slots->creates[i], true) || changed;
            *ret_board = slots->creates[i].gpu->board;
        }
    return changed;
}

/* Whether mig-manager failed on what is wanted still, and it is time to have it try again. */
static bool may_retry(const struct world *world, size_t node,
                      const struct actuator_slots *slots, struct effects *effects)
{
    const json_t *json = world->nodes.data[node].json;
    long long tried_s = 0;
    bool wanted = false;

    for (size_t i = 0; i < slots->create_count; i++)
        wanted = wanted || slots->creates[i].gpu->node == node;
    if (!wanted || state_of(json) != MANAGER_FAILED)
        return false;
    (void)text_to_int(object_note(json, NOTE_MIG_TRIED), 0, INT64_MAX / 2, &tried_s);
    int64_t wait_s = tried_s + RETRY_SECONDS - world->sources.now_s;
    if (wait_s > 0 && wait_s <= RETRY_SECONDS) {
        effects_again_at(effects, world->sources.now_ns + wait_s * INT64_C(1000000000));
        return false;
    }
    return true;
}

static void manager_change(struct world *world, const struct gpu_pool *pool,
                           const struct actuator_slot *creates, size_t create_count,
                           const struct actuator_slot *deletes, size_t delete_count,
                           struct effects *effects)
{
    const struct actuator_slots slots = {creates, deletes, create_count, delete_count};
    CLEANUP(json_decref_ptr) json_t *changed = json_object(); /* node index: layouts */
    struct config_map map = {.text = STR_EMPTY};

    str_add(&map.text, "version: v1\nmig-configs:\n");
    for (size_t i = 0; i < world->nodes.count; i++) {
        const json_t *json = world->nodes.data[i].json;
        const struct mig_board *board = board_of_product(object_label(json, LABEL_GPU_PRODUCT));
        CLEANUP(json_decref_ptr) json_t *layouts = layouts_of(json);
        if (!board)
            continue;
        if (text_starts_with(object_label(json, LABEL_MIG_CONFIG), CONFIG_PREFIX))
            collect(&map, layouts, board, gpu_count_of(json));
        if (!world_in_pool(world, pool, i) || state_of(json) == MANAGER_WORKING)
            continue;
        if (!edit_node(i, &slots, layouts, &board) && !may_retry(world, i, &slots, effects))
            continue;
        collect(&map, layouts, board, gpu_count_of(json));
        json_object_set(changed, world->nodes.data[i].name, layouts);
    }
    if (json_object_size(changed))
        write_config_map(pool, &map, effects);
    for (size_t i = 0; i < world->nodes.count; i++) {
        const json_t *layouts = json_object_get(changed, world->nodes.data[i].name);
        if (layouts)
            write_node(
                world, i, layouts,
                board_of_product(object_label(world->nodes.data[i].json, LABEL_GPU_PRODUCT)),
                effects);
    }
    str_done(&map.text);
    map_done(&map.names);
}

static void manager_bind(const struct world *world, const struct world_gpu *gpu,
                         const struct world_instance *instance, json_t *pod)
{
    char name[64];

    pod_pin(pod, world->nodes.data[gpu->node].name);
    resource_name("nvidia.com/mig-", &gpu->board->profiles[instance->profile], name);
    pod_add_resource(pod, name);
}

const struct actuator_ops ACTUATOR_OPS_MIG_MANAGER = {
    .name = "mig-manager",
    .observe = manager_observe,
    .change = manager_change,
    .bind = manager_bind,
    .needs_whole_gpu = true,
};
