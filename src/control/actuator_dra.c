/* SPDX-License-Identifier: Apache-2.0
 *
 * The actuator over NVIDIA's DRA driver with dynamic MIG (resource.k8s.io/v1). The driver
 * publishes every legal placement of every GPU as a device of its own:
 *
 *     name        gpu-MINOR-mig-PROFILE-PROFILEID-START
 *     attributes  type "mig", parentUUID, profile "1g.5gb"
 *
 * An instance is one ResourceClaim. Its driver makes the GPU instance when a pod with the claim
 * comes to the node, and destroys it after the pod; so an instance is ready for a pod as soon
 * as its claim is there.
 *
 * Without exactPlacement the claim asks by CEL for a GPU and a profile, and where on the GPU is
 * up to the scheduler. With it the pod is gated; the claim's allocation is written here, with
 * the pod as its user, then the gate is lifted (dra_tend()).
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "control/actuator_dra.h"
#include "control/actuator_internal.h"
#include "kube/api.h"

#define MIG_CLASS        "mig.nvidia.com"
#define CLAIM_IN_POD     "tranche-gpu"
#define REQUEST_NAME     "gpu"
#define NOTE_EXACT       "tranche.dev/exact-placement"
#define GATE             "tranche.dev/allocation"
#define CLAIM_PROTECTION "resource.kubernetes.io/delete-protection"

/* --- devices --- */

/* Calls visit for each partition that the driver publishes on a node. */
static void walk_partitions(const struct world *world, const char *node,
                            void (*visit)(void *context, const json_t *device,
                                          const struct dra_device *read),
                            void *context)
{
    size_t count;
    const struct dra_slice *slices = dra_slices_of(world->dra_index, node, &count);

    for (size_t i = 0; i < count; i++) {
        const json_t *pool = json_object_get(slices[i].spec, "pool"), *device;
        size_t j;
        json_array_foreach(json_object_get(slices[i].spec, "devices"), j, device)
        {
            struct dra_device read = {.pool = json_text(pool, "name")};
            if (device_is_partition(device) &&
                dra_device_read(json_text(device, "name"), &read))
                visit(context, device, &read);
        }
    }
}

/* --- which board a GPU is --- */

/* Boards of one memory size have the same profiles: the compute capability tells an A100 from
 * an H100, the multiprocessors an SXM board from a PCIe one. */
struct device_traits {
    const char *profile;
    int cc_major, cc_minor; /* 0: not told */
    long long sm;           /* 0: not told */
};

static struct device_traits traits_of(const json_t *device)
{
    struct device_traits traits = {.profile = device_attribute(device, "profile")};
    const json_t *sm = json_object_get(json_object_get(device, "capacity"), "multiprocessors");

    const char *at = device_attribute(device, "cudaComputeCapability");
    long long major, minor;

    if (text_take_int(&at, 1000, &major) && *at++ == '.' && text_take_int(&at, 1000, &minor)) {
        traits.cc_major = (int)major;
        traits.cc_minor = (int)minor;
    }
    (void)text_to_int(json_text(sm, "value"), 1, 10000, &traits.sm);
    return traits;
}

/* 0: the board has no such partition; 2: it has, with as many multiprocessors; 1: with others,
 * which vary with the driver. */
static int board_fits(const struct mig_board *board, const struct dra_device *device,
                      const struct device_traits *traits)
{
    if (traits->cc_major &&
        (board->cc_major != traits->cc_major || board->cc_minor != traits->cc_minor))
        return 0;
    for (int i = 0; i < board->profile_count; i++)
        if (board->profiles[i].profile_id == device->profile_id &&
            !strcmp(board->profiles[i].name, traits->profile) && device->start < 32 &&
            (board->profiles[i].starts >> device->start & 1))
            return board->profiles[i].sm == traits->sm ? 2 : 1;
    return 0;
}

/* A GPU being put together from its partitions. */
struct dra_gpu {
    const char *uuid;
    int minor;
    /* Bit i: all devices so far are of mig_board_at(i), and with its multiprocessors. */
    uint64_t boards, exact;
};
struct dra_gpus {
    VEC(struct dra_gpu) items;
};

static struct dra_gpu boards_of(const struct dra_device *device,
                                const struct device_traits *traits)
{
    struct dra_gpu gpu = {.minor = device->minor};

    assert(mig_board_count() <= 64);
    for (size_t i = 0; i < mig_board_count(); i++) {
        int fits = board_fits(mig_board_at(i), device, traits);
        gpu.boards |= (uint64_t)(fits > 0) << i;
        gpu.exact |= (uint64_t)(fits > 1) << i;
    }
    return gpu;
}

/* A UUID goes into an expression of CEL: nothing but what UUIDs are made of. */
static bool is_plain(const char *text)
{
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789-+.") == strlen(text);
}

static void add_partition(void *context, const json_t *device, const struct dra_device *read)
{
    struct dra_gpus *gpus = context;
    const char *uuid = device_attribute(device, "parentUUID");
    struct device_traits traits = traits_of(device);
    struct dra_gpu gpu = boards_of(read, &traits);

    if (!is_plain(uuid))
        return;
    gpu.uuid = uuid;
    for (size_t i = 0; i < gpus->items.count; i++)
        if (!strcmp(gpus->items.data[i].uuid, uuid)) {
            gpus->items.data[i].boards &= gpu.boards;
            gpus->items.data[i].exact &= gpu.exact;
            return;
        }
    vec_add(&gpus->items, gpu);
}

static int placements_of(const struct mig_board *board)
{
    int count = 0;

    for (int i = 0; i < board->profile_count; i++)
        count += __builtin_popcount(board->profiles[i].starts);
    return count;
}

/* Of the boards that have all published partitions, the one with fewest others. */
static const struct mig_board *best_board(const struct dra_gpu *gpu)
{
    uint64_t boards = gpu->exact ? gpu->exact : gpu->boards;
    const struct mig_board *best = NULL;

    for (size_t i = 0; i < mig_board_count(); i++)
        if ((boards >> i & 1) &&
            (!best || placements_of(mig_board_at(i)) < placements_of(best)))
            best = mig_board_at(i);
    return best;
}

/* --- claims --- */

static bool claim_is_leaving(const json_t *claim)
{
    return json_object_get(json_object_get(claim, "metadata"), "deletionTimestamp") != NULL;
}

/* Whether a claim of somebody else holds the GPU or a part of it. */
static bool is_shared(const struct world *world, const char *node, int minor)
{
    size_t count;
    const struct dra_taken *taken = dra_taken_of(world->dra_index, node, minor, &count);

    for (size_t i = 0; i < count; i++)
        if (!taken[i].is_ours)
            return true;
    return false;
}

/* The claim of a slot; of two the one that stays. */
static const json_t *find_claim(const struct world *world, const struct world_gpu *gpu,
                                int profile, int start)
{
    size_t count;
    const struct dra_claim *claims = dra_claims_of(world->dra_index, gpu->uuid, &count);
    const json_t *found = NULL;

    for (size_t i = 0; i < count; i++)
        if (claims[i].start == start &&
            mig_profile_find(gpu->board, claims[i].slice) == profile &&
            (!found || claim_is_leaving(found)))
            found = claims[i].json;
    return found;
}

/* --- observing --- */

static int compare_by_start(const void *a, const void *b)
{
    const struct world_instance *x = a, *y = b;

    if (x->start != y->start)
        return x->start - y->start;
    return x->profile != y->profile ? x->profile - y->profile
                                    : (int)x->phase - (int)y->phase; /* what stays first */
}

static void observe_claims(struct world *world, struct world_gpu *gpu)
{
    size_t claim_count, count = 0;
    const struct dra_claim *claims = dra_claims_of(world->dra_index, gpu->uuid, &claim_count);
    struct world_instance *list = arena_alloc(&world->arena, claim_count + 1, sizeof *list);

    for (size_t i = 0; i < claim_count; i++) {
        const json_t *metadata = json_object_get(claims[i].json, "metadata");
        int profile = mig_profile_find(gpu->board, claims[i].slice);
        if (profile < 0)
            continue;
        list[count++] = (struct world_instance){
            .profile = profile,
            .start = claims[i].start,
            .phase = claim_is_leaving(claims[i].json) ? INSTANCE_LEAVING : INSTANCE_READY,
            .uuid = "",
            .claim = arena_printf(&world->arena, "%s/%s", json_text(metadata, "namespace"),
                                  json_text(metadata, "name")),
            .message = "",
        };
    }
    qsort(list, count, sizeof *list, compare_by_start);
    gpu->instances.data = list;
    gpu->instances.count = count;
}

/* Another that changes layouts beside the driver: the driver would tear them down. */
static const char *dra_conflict(const struct world *world, size_t node)
{
    const struct world_node *at = &world->nodes.data[node];
    const struct node_gpu_state *state = node_state_of(world, at->name);

    if (*object_label(at->json, LABEL_MIG_CONFIG))
        return "label " LABEL_MIG_CONFIG ": mig-manager drives its MIG state";
    if (state && state->desired.count && !state->driver_conflict)
        return "a NodeGpuState asks the node agent for layouts";
    return NULL;
}

static void observe_dra_node(struct world *world, size_t node, struct actuator_gpus *ret,
                             size_t capacity)
{
    struct dra_gpus gpus = {0};
    const char *name = world->nodes.data[node].name;

    walk_partitions(world, name, add_partition, &gpus);
    const char *conflict = gpus.items.count ? dra_conflict(world, node) : NULL;
    world->nodes.data[node].conflict = conflict ? conflict : "";
    for (size_t i = 0; !conflict && i < gpus.items.count; i++) {
        const struct dra_gpu *found = &gpus.items.data[i];
        const struct mig_board *board = best_board(found);
        bool shared = is_shared(world, name, found->minor);
        if (!board || ret->gpus.count == capacity)
            continue;
        struct world_gpu *gpu = &ret->gpus.data[ret->gpus.count];
        *gpu = (struct world_gpu){
            .uuid = found->uuid,
            .node = node,
            .board = board,
            .actuator_id = arena_printf(&world->arena, "%d", found->minor),
            .lost = !world->nodes.data[node].ready,
            .shared = shared,
        };
        observe_claims(world, gpu);
        if (shared)
            world->nodes.data[node].doubt = arena_printf(
                &world->arena, "a claim of somebody else holds %s or a part of it", gpu->uuid);
        /* Somebody else's; but what we have on it is to be moved away in good order. */
        ret->gpus.count += !shared || gpu->instances.count > 0;
    }
    vec_done(&gpus.items);
}

static void dra_observe(struct world *world, const struct gpu_pool *pool,
                        struct actuator_gpus *ret_gpus)
{
    const struct world_list *slices = &world->sources.resource_slices;
    size_t capacity = 0;

    (void)dra_index_of(world);
    /* At most one GPU a published device. */
    for (size_t i = 0; i < slices->count; i++)
        capacity += json_array_size(
            json_object_get(json_object_get(slices->items[i], "spec"), "devices"));
    observe_begin(world, ret_gpus, capacity);
    for (size_t i = 0; i < world->nodes.count; i++)
        if (world_in_pool(world, pool, i))
            observe_dra_node(world, i, ret_gpus, capacity);
    observe_distinct(world, ret_gpus);
}

/* --- changing --- */

/* The partition of a slot as the driver publishes it. */
struct dra_find {
    const char *uuid;
    int profile_id, start;
    struct dra_device device; /* name NULL: not found */
    const char *profile;
};

static void find_partition(void *context, const json_t *device, const struct dra_device *read)
{
    struct dra_find *find = context;

    if (read->profile_id != find->profile_id || read->start != find->start ||
        strcmp(device_attribute(device, "parentUUID"), find->uuid) != 0)
        return;
    find->device = *read;
    find->profile = device_attribute(device, "profile");
}

static struct dra_find partition_of(const struct world *world, const struct world_gpu *gpu,
                                    int profile, int start)
{
    struct dra_find find = {.uuid = gpu->uuid,
                            .profile_id = gpu->board->profiles[profile].profile_id,
                            .start = start};

    walk_partitions(world, world->nodes.data[gpu->node].name, find_partition, &find);
    return find;
}

/* "namespace/name" of the service that a slot is for: a claim lives in its pod's namespace.
 * From the transition's own start, else (it may come in a later one) from the plan. */
static const char *service_of_slot(const struct world *world, const struct actuator_slot *slot)
{
    const char *plan = "";

    for (size_t i = 0; i < world->transitions.count; i++) {
        const struct transition_object *object = &world->transitions.data[i];
        const struct transition *transition = &object->transition;
        if (!slot->transition || strcmp(object->meta.name, slot->transition) != 0)
            continue;
        plan = object->to;
        for (size_t j = 0; j < transition->actions.count; j++) {
            const struct transition_action *action = &transition->actions.data[j];
            if (action->kind == ACTION_START && action->profile == slot->profile &&
                action->start == slot->start &&
                !strcmp(transition->gpus.data[action->gpu].id, slot->gpu->uuid))
                return transition->services.data[action->service].name;
        }
    }
    for (size_t i = 0; i < world->plans.count; i++)
        for (size_t j = 0; j < world->plans.data[i].items.count; j++) {
            const struct partition_item *item = &world->plans.data[i].items.data[j];
            if (!strcmp(world->plans.data[i].plan, plan) && item->profile == slot->profile &&
                item->start == slot->start && !strcmp(item->gpu_uuid, slot->gpu->uuid))
                return item->service;
        }
    return "";
}

static json_t *claim_spec(const char *uuid, const char *profile)
{
    CLEANUP(str_done) struct str cel = STR_EMPTY;

    str_addf(&cel,
             "device.attributes['" DRA_DRIVER "'].parentUUID == '%s' && "
             "device.attributes['" DRA_DRIVER "'].profile == '%s'",
             uuid, profile);
    return json_pack("{s:{s:[{s:s, s:{s:s, s:[{s:{s:s}}]}}]}}", "devices", "requests", "name",
                     REQUEST_NAME, "exactly", "deviceClassName", MIG_CLASS, "selectors", "cel",
                     "expression", cel.bytes);
}

static json_t *claim_notes(const struct gpu_pool *pool, const struct actuator_slot *slot,
                           const json_t *spec)
{
    CLEANUP(free_ptr) char *text = json_dumps(spec, JSON_COMPACT);
    char start[16], hash[17];

    snprintf(start, sizeof start, "%d", slot->start);
    text_hash(text, 16, hash);
    json_t *notes = json_pack("{s:s, s:s, s:s, s:s}", NOTE_GPU, slot->gpu->uuid, NOTE_SLICE,
                              slot->gpu->board->profiles[slot->profile].name, NOTE_START, start,
                              NOTE_HASH, hash);
    if (slot->transition)
        json_object_set_new(notes, NOTE_TRANSITION, json_string(slot->transition));
    if (pool->exact_placement)
        json_object_set_new(notes, NOTE_EXACT, json_string("true"));
    return notes;
}

static void create_claim(const struct world *world, const struct gpu_pool *pool,
                         const struct actuator_slot *slot, struct effects *effects)
{
    const char *service = slot->service ? slot->service : service_of_slot(world, slot);
    const char *slash = strchr(service, '/');
    struct dra_find find = partition_of(world, slot->gpu, slot->profile, slot->start);
    char name[64];

    if (!slash || !find.device.name || !is_plain(find.profile))
        return;
    actuator_slot_name(slot, pool->meta.name, name);
    json_t *spec = claim_spec(slot->gpu->uuid, find.profile);
    json_t *metadata =
        json_pack("{s:s, s:s#, s:{s:s, s:s, s:s}, s:o}", "name", name, "namespace", service,
                  (int)(slash - service), "labels", LABEL_MANAGED_BY, "tranche", LABEL_POOL,
                  pool->meta.name, LABEL_SERVICE, slash + 1, "annotations",
                  claim_notes(pool, slot, spec));
    if (pool->exact_placement)
        json_object_set_new(metadata, "finalizers", json_pack("[s]", CLAIM_PROTECTION));
    struct effect *effect =
        effect_ensure(effects, &KIND_RESOURCE_CLAIM,
                      json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "resource.k8s.io/v1",
                                "kind", "ResourceClaim", "metadata", metadata, "spec", spec));
    effect->reason = "InstanceClaim";
}

static void delete_claim(const json_t *claim, struct effects *effects)
{
    struct effect *effect = effect_delete(effects, &KIND_RESOURCE_CLAIM, claim, false);

    effect->destructive = true;
    effect->reason = "InstanceClaim";
}

static void dra_change(struct world *world, const struct gpu_pool *pool,
                       const struct actuator_slot *creates, size_t create_count,
                       const struct actuator_slot *deletes, size_t delete_count,
                       struct effects *effects)
{
    for (size_t i = 0; i < delete_count; i++) {
        const json_t *claim =
            find_claim(world, deletes[i].gpu, deletes[i].profile, deletes[i].start);
        if (claim && !claim_is_leaving(claim))
            delete_claim(claim, effects);
    }
    for (size_t i = 0; i < create_count; i++) {
        const json_t *claim =
            find_claim(world, creates[i].gpu, creates[i].profile, creates[i].start);
        if (!claim)
            create_claim(world, pool, &creates[i], effects);
        /* A pod finds a claim in its own namespace alone. Of the tenant before, in its
         * namespace: it goes, and is made anew. */
        else if (creates[i].service && !claim_is_leaving(claim) &&
                 !name_is_in_namespace(creates[i].service, kube_metadata(claim, "namespace")))
            delete_claim(claim, effects);
    }
}

/* --- pods --- */

static void dra_bind(const struct world *world, const struct world_gpu *gpu,
                     const struct world_instance *instance, json_t *pod)
{
    const char *slash = strchr(instance->claim, '/');
    json_t *spec = json_child(pod, "spec");
    json_t *container = json_array_get(json_child_list(spec, "containers"), 0);
    const json_t *claim = find_claim(world, gpu, instance->profile, instance->start);

    assert(slash);
    pod_pin(pod, world->nodes.data[gpu->node].name);
    json_array_append_new(
        json_child_list(spec, "resourceClaims"),
        json_pack("{s:s, s:s}", "name", CLAIM_IN_POD, "resourceClaimName", slash + 1));
    if (json_is_object(container))
        json_array_append_new(json_child_list(json_child(container, "resources"), "claims"),
                              json_pack("{s:s}", "name", CLAIM_IN_POD));
    if (*object_note(claim, NOTE_EXACT))
        json_array_append_new(json_child_list(spec, "schedulingGates"),
                              json_pack("{s:s}", "name", GATE));
}

static bool pod_is_gated(const json_t *pod)
{
    const json_t *gates = json_object_get(json_object_get(pod, "spec"), "schedulingGates");
    const json_t *gate;
    size_t i;

    json_array_foreach(gates, i, gate)
    {
        if (!strcmp(json_text(gate, "name"), GATE))
            return true;
    }
    return false;
}

static uint32_t span_of(const struct mig_board *board, const struct dra_device *device)
{
    for (int i = 0; i < board->profile_count; i++)
        if (board->profiles[i].profile_id == device->profile_id)
            return mig_instance_span(board,
                                     (struct mig_instance){(int8_t)i, (int8_t)device->start});
    return UINT32_MAX;
}

/* The next device that is allocated to another claim and shares a part of the GPU with the
 * wanted one; *at is where to go on. NULL: there is none. */
static const struct dra_taken *next_overlap(const struct world *world,
                                            const struct world_gpu *gpu, const json_t *claim,
                                            const struct dra_device *wanted, size_t *at)
{
    size_t count;
    const struct dra_taken *taken =
        dra_taken_of(world->dra_index, wanted->pool, wanted->minor, &count);

    for (; *at < count; ++*at)
        if (taken[*at].claim != claim &&
            (taken[*at].is_whole ||
             (span_of(gpu->board, &taken[*at].device) & span_of(gpu->board, wanted))))
            return &taken[(*at)++];
    return NULL;
}

/* Nobody checks a written allocation against others: an overlap waits until the other went. */
static bool overlaps(const struct world *world, const struct world_gpu *gpu,
                     const json_t *claim, const struct dra_device *wanted)
{
    size_t at = 0;

    return next_overlap(world, gpu, claim, wanted, &at) != NULL;
}

/* Whether of two claims with one place the other keeps it: somebody else's always does, of ours
 * the older one, then the first by namespace and name. */
static bool keeps_place(const struct dra_taken *other, const json_t *claim)
{
    static const char *const keys[] = {"creationTimestamp", "namespace", "name"};
    int order = 0;

    for (size_t i = 0; i < sizeof keys / sizeof *keys && order == 0; i++)
        order = strcmp(kube_metadata(other->claim, keys[i]), kube_metadata(claim, keys[i]));
    return !other->is_ours || order < 0;
}

/* The claim to which ours has to leave its place, or NULL. Claims come in the order in which
 * they were written: whoever sees our allocation sees all that was written before it. */
static const json_t *find_winner(const struct world *world, const struct world_gpu *gpu,
                                 const json_t *claim, const struct dra_device *device)
{
    const struct dra_taken *other;
    size_t at = 0;

    while ((other = next_overlap(world, gpu, claim, device, &at)))
        if (keeps_place(other, claim))
            return other->claim;
    return NULL;
}

static void allocate(const struct world *world, const struct world_gpu *gpu,
                     const struct world_pod *pod, const json_t *claim, struct effects *effects)
{
    struct dra_find find = partition_of(world, gpu, pod->profile, pod->start);

    if (!find.device.name || !world->sources.fresh || overlaps(world, gpu, claim, &find.device))
        return;
    json_t *allocation = json_pack(
        "{s:{s:[{s:s, s:s, s:s, s:s}]}, s:{s:[{s:[{s:s, s:s, s:[s]}]}]}}", "devices", "results",
        "request", REQUEST_NAME, "driver", DRA_DRIVER, "pool", find.device.pool, "device",
        find.device.name, "nodeSelector", "nodeSelectorTerms", "matchFields", "key",
        "metadata.name", "operator", "In", "values", world->nodes.data[gpu->node].name);
    json_t *patch = json_pack("{s:{s:o, s:[{s:s, s:s, s:s}]}}", "status", "allocation",
                              allocation, "reservedFor", "resource", "pods", "name",
                              pod->meta.name, "uid", pod->meta.uid);
    struct effect *effect = effect_patch(effects, &KIND_RESOURCE_CLAIM, claim, patch, true);
    effect->subresource = "status";
    effect->destructive = true; /* it takes the place from others: not on an old view */
    effect->reason = "Allocation";
}

/* The scheduler, or somebody else, was faster by a moment. The pod is behind its gate still, so
 * nothing was made at that place for it. */
static void release(const struct world_pod *pod, const json_t *claim, const json_t *winner,
                    struct effects *effects)
{
    struct effect *effect =
        effect_patch(effects, &KIND_RESOURCE_CLAIM, claim,
                     json_pack("{s:{s:n, s:n}}", "status", "allocation", "reservedFor"), true);

    effect->subresource = "status";
    effect->destructive = true;
    effect->reason = "AllocationLost";
    effect_event(effects, &KUBE_POD, pod->meta.json, true, "AllocationLost",
                 "ResourceClaim %s/%s was given its place on the GPU at the same moment: it "
                 "waits for another",
                 kube_metadata(winner, "namespace"), kube_metadata(winner, "name"));
}

static void lift_gate(const struct world_pod *pod, struct effects *effects)
{
    const json_t *gates = json_object_get(json_object_get(pod->meta.json, "spec"),
                                          "schedulingGates"),
                 *gate;
    json_t *others = json_array();
    size_t i;

    json_array_foreach(gates, i, gate)
    {
        if (strcmp(json_text(gate, "name"), GATE) != 0)
            json_array_append(others, (json_t *)(uintptr_t)gate);
    }
    struct effect *effect =
        effect_patch(effects, &KUBE_POD, pod->meta.json,
                     json_pack("{s:{s:o}}", "spec", "schedulingGates", others), true);
    effect->reason = "Allocated";
}

static void dra_tend(struct world *world, const struct actuator_gpus *gpus,
                     struct effects *effects)
{
    for (size_t i = 0; i < world->pods.count; i++) {
        const struct world_pod *pod = &world->pods.data[i];
        const json_t *claim = NULL;
        struct dra_device device;
        size_t at = 0;
        if (pod->meta.deleting || pod->profile < 0 || !pod_is_gated(pod->meta.json))
            continue;
        for (; at < gpus->gpus.count && !claim; at++)
            if (!strcmp(gpus->gpus.data[at].uuid, pod->gpu_uuid))
                claim = find_claim(world, &gpus->gpus.data[at], pod->profile, pod->start);
        if (!claim || claim_is_leaving(claim) || !*object_note(claim, NOTE_EXACT))
            continue;
        const struct world_gpu *gpu = &gpus->gpus.data[at - 1];
        bool is_allocated = dra_claim_device(claim, &device);
        const json_t *winner = is_allocated ? find_winner(world, gpu, claim, &device) : NULL;
        if (winner)
            release(pod, claim, winner, effects);
        else if (is_allocated)
            lift_gate(pod, effects);
        else
            allocate(world, gpu, pod, claim, effects);
    }
}

const struct actuator_ops ACTUATOR_OPS_DRA = {
    .name = "dra",
    .observe = dra_observe,
    .change = dra_change,
    .bind = dra_bind,
    .tend = dra_tend,
};
