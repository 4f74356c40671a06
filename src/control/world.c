/* SPDX-License-Identifier: Apache-2.0
 *
 * The world read from the caches' objects, kind by kind.
 */
#include "control/world.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "control/actuator.h"
#include "control/json_covers.h"
#include "control/kinds.h"
#include "control/object.h"
#include "control/pool_nodes.h"
#include "control/resource_fields.h"
#include "control/routing.h"
#include "control/timestamp.h"
#include "kube/api.h"

enum { SLICE_MAX_BYTES = 32 };

static void add_fault(struct world *world, const struct kube_kind *kind, const json_t *object,
                      const struct error *err)
{
    struct world_fault fault = {
        .kind = kind, .object = object, .text = arena_strdup(&world->arena, err->text)};

    vec_add(&world->faults, fault);
}

/* Reads a list of one of our kinds; what cannot be read is a fault. */
#define READ_ALL(world, from, kind, values, read)                                              \
    for (size_t i = 0; i < (from).count; i++) {                                                \
        struct error err = {0};                                                                \
        __typeof__(*(values)->data) value = {0};                                               \
        if (read((from).items[i], &(world)->arena, &value, &err) == 0)                         \
            vec_add(values, value);                                                            \
        else                                                                                   \
            add_fault(world, kind, (from).items[i], &err);                                     \
    }

static void read_own(struct world *world)
{
    const struct world_sources *sources = &world->sources;

    READ_ALL(world, sources->services, &KIND_GPU_SERVICE, &world->services, gpu_service_read)
    READ_ALL(world, sources->profiles, &KIND_PERF_PROFILE, &world->profiles, perf_profile_read)
    READ_ALL(world, sources->pools, &KIND_GPU_POOL, &world->pools, gpu_pool_read)
    READ_ALL(world, sources->plans, &KIND_PARTITION_PLAN, &world->plans, partition_plan_read)
    READ_ALL(world, sources->transitions, &KIND_TRANSITION, &world->transitions,
             transition_object_read)
    READ_ALL(world, sources->node_states, &KIND_NODE_GPU_STATE, &world->node_states,
             node_gpu_state_read)
}

static void index_services(struct world *world)
{
    for (size_t i = 0; i < world->services.count; i++) {
        const struct object_meta *meta = &world->services.data[i].meta;
        char *key = arena_printf(&world->arena, "%s/%s", meta->namespace, meta->name);
        map_put(&world->service_names, key, NULL);
    }
    assert(world->service_names.count == world->services.count);
}

static bool has_taint(const json_t *node, const char *key)
{
    const json_t *taints = json_at(node, "spec", "taints", NULL);
    size_t index;
    json_t *taint;

    json_array_foreach((json_t *)taints, index, taint)
    {
        if (strcmp(json_text(taint, "key"), key) == 0)
            return true;
    }
    return false;
}

static void read_nodes(struct world *world)
{
    const struct world_list *list = &world->sources.nodes;

    for (size_t i = 0; i < list->count; i++) {
        const json_t *json = list->items[i];
        struct world_node node = {
            .name = json_text(json_object_get(json, "metadata"), "name"),
            .ready = condition_is_true(json, "Ready"),
            .cordoned = json_is_true(json_at(json, "spec", "unschedulable", NULL)),
            .out_of_service = has_taint(json, "node.kubernetes.io/out-of-service"),
            .conflict = "",
            .json = json};
        if (map_find(&world->node_names, node.name) >= 0)
            continue;
        map_put(&world->node_names, node.name, NULL);
        vec_add(&world->nodes, node);
    }
}

/* ---- pods ------------------------------------------------------------------------- */

/* The reference of a pod to the GpuService that its label names, or NULL. */
static const json_t *owner_of(const json_t *json, const char *service)
{
    const json_t *owners = json_at(json, "metadata", "ownerReferences", NULL);
    size_t index;
    json_t *owner;

    json_array_foreach((json_t *)owners, index, owner)
    {
        if (strcmp(json_text(owner, "kind"), KIND_GPU_SERVICE.kind) == 0 &&
            strncmp(json_text(owner, "apiVersion"), CONTROL_GROUP "/",
                    strlen(CONTROL_GROUP "/")) == 0 &&
            strcmp(json_text(owner, "name"), service) == 0)
            return owner;
    }
    return NULL;
}

/* A GpuService that cannot be read, by "namespace/name", or NULL. */
static const json_t *unreadable_service(const struct world *world, const char *service)
{
    for (size_t i = 0; i < world->faults.count; i++) {
        const struct world_fault *fault = &world->faults.data[i];
        const char *namespace = kube_metadata(fault->object, "namespace");
        if (fault->kind == &KIND_GPU_SERVICE && name_is_in_namespace(service, namespace) &&
            strcmp(service + strlen(namespace) + 1, kube_metadata(fault->object, "name")) == 0)
            return fault->object;
    }
    return NULL;
}

/* The UID of a GpuService, readable or not; "" when there is none. */
static const char *service_uid(const struct world *world, const char *service)
{
    int at = world_find_service(world, service);

    return at >= 0 ? world->services.data[at].meta.uid
                   : kube_metadata(unreadable_service(world, service), "uid");
}

/* Whole numbers that we put on pods, and what they may be. */
static const struct {
    const char *note;
    size_t offset;
    int maximum;
} pod_numbers[] = {
    {NOTE_START, offsetof(struct world_pod, start), FIELD_UNITS_MAX},
    {NOTE_BATCH, offsetof(struct world_pod, batch), FIELD_BATCH_MAX},
    {NOTE_PROCS, offsetof(struct world_pod, procs), FIELD_PROCS_MAX},
};

/* Reads the notes that are numbers; names the first that is not what we would have written. */
static const char *read_numbers(const json_t *json, struct world_pod *pod)
{
    const char *rate = object_note(json, NOTE_RATE_RPS);

    for (size_t i = 0; i < sizeof pod_numbers / sizeof *pod_numbers; i++) {
        const char *text = object_note(json, pod_numbers[i].note);
        long long value = 0;
        if (*text && !text_to_int(text, 0, pod_numbers[i].maximum, &value))
            return pod_numbers[i].note;
        memcpy((char *)pod + pod_numbers[i].offset, &(int){(int)value}, sizeof(int));
    }
    if (*rate && (!text_to_double(rate, &pod->rate_rps) || !isfinite(pod->rate_rps) ||
                  pod->rate_rps < 0 || pod->rate_rps > FIELD_RATE_MAX))
        return NOTE_RATE_RPS;
    if (strlen(pod->slice) > SLICE_MAX_BYTES)
        return NOTE_SLICE;
    return strlen(pod->gpu_uuid) > UUID_MAX_BYTES ? NOTE_GPU : NULL;
}

/* Why a pod with our labels is not one that we made, or NULL. */
static const char *find_foreign(struct world *world, const json_t *json, struct world_pod *pod)
{
    const char *name = strchr(pod->service, '/') + 1, *hash = object_note(json, NOTE_HASH),
               *dash = strrchr(pod->meta.name, '-'), *wrong = read_numbers(json, pod);
    const json_t *owner = owner_of(json, name);

    if (!owner)
        return "no GpuService of its label's name owns it";
    if (wrong)
        return arena_printf(&world->arena, "its annotation %s is none of ours", wrong);
    if (*hash && (!dash || strcmp(dash + 1, hash) != 0))
        return "its annotation " NOTE_HASH " is not that of its name";
    return NULL;
}

/* What leads to pods. */
struct paths {
    struct map ready;  /* "namespace/pod": a slice of ours lists it as ready */
    struct map by;     /* "namespace/service/pod": that of a Service does; if any has a route */
    struct map routes; /* HTTPRoutes of ours, by "namespace/service" */
};

static void paths_done(struct paths *paths)
{
    map_done(&paths->ready);
    map_done(&paths->by);
    map_done(&paths->routes);
}

static void collect_routes(const struct world *world, struct map *ret_routes)
{
    const struct world_list *list = &world->sources.routes;
    CLEANUP(str_done) struct str key = STR_EMPTY;

    for (size_t i = 0; i < list->count && world->sources.has_gateway; i++) {
        str_clear(&key);
        str_addf(&key, "%s/%s", kube_metadata(list->items[i], "namespace"),
                 object_label(list->items[i], LABEL_SERVICE));
        map_put(ret_routes, key.bytes, (void *)(uintptr_t)list->items[i]);
    }
}

static void collect_endpoints(const struct world *world, struct paths *paths)
{
    const struct world_list *list = &world->sources.endpoint_slices;
    CLEANUP(str_done) struct str key = STR_EMPTY;

    for (size_t i = 0; i < list->count; i++) {
        const json_t *endpoints = json_object_get(list->items[i], "endpoints");
        size_t index;
        json_t *endpoint;
        json_array_foreach((json_t *)endpoints, index, endpoint)
        {
            if (json_is_false(json_at(endpoint, "conditions", "ready", NULL)))
                continue;
            str_clear(&key);
            str_addf(&key, "%s/%s", kube_metadata(list->items[i], "namespace"),
                     json_text(json_object_get(endpoint, "targetRef"), "name"));
            map_put(&paths->ready, key.bytes, NULL);
            if (paths->routes.count == 0)
                continue;
            str_clear(&key);
            str_addf(&key, "%s/%s/%s", kube_metadata(list->items[i], "namespace"),
                     routing_slice_service(list->items[i]),
                     json_text(json_object_get(endpoint, "targetRef"), "name"));
            map_put(&paths->by, key.bytes, NULL);
        }
    }
}

/* Before its route is there, a service is reached by its Service alone. */
static bool is_routed(struct world *world, const struct paths *paths,
                      const struct world_pod *pod)
{
    int service = world_find_service(world, pod->service);
    const json_t *route = map_get(&paths->routes, pod->service);
    char class[ROUTING_CLASS_SIZE];

    if (!route || service < 0 || !routing_is_weighted(world, &world->services.data[service]))
        return true;
    routing_class(pod->rate_rps, class);
    const char *backend =
        arena_printf(&world->arena, "%s-%s", strchr(pod->service, '/') + 1, class);
    return routing_names(route, backend) &&
           map_find(&paths->by, arena_printf(&world->arena, "%s/%s/%s", pod->meta.namespace,
                                             backend, pod->meta.name)) >= 0;
}

static int64_t draining_since(const json_t *pod)
{
    const char *text = object_note(pod, NOTE_DRAINING_SINCE);
    int64_t seconds = 0;

    if (!*text)
        return 0;
    return timestamp_parse(text, &seconds) && seconds > 0 ? seconds : 1;
}

/* Of an earlier GpuService of that name, or of one that is gone: the garbage collector's. It
 * takes its place until then, and gives nothing. */
static bool is_orphan(const struct world *world, const json_t *json,
                      const struct world_pod *pod)
{
    const json_t *owner = owner_of(json, strchr(pod->service, '/') + 1);

    return strcmp(json_text(owner, "uid"), service_uid(world, pod->service)) != 0;
}

static void read_pod(struct world *world, const json_t *json, const struct paths *paths)
{
    struct world_pod read = {0}, *pod = &read;
    const json_t *status = json_object_get(json, "status");
    const char *phase = json_text(status, "phase");

    object_meta_read(json, &pod->meta);
    pod->service = arena_printf(&world->arena, "%s/%s", pod->meta.namespace,
                                object_label(json, LABEL_SERVICE));
    pod->gpu_uuid = object_note(json, NOTE_GPU);
    pod->node = json_text(json_object_get(json, "spec"), "nodeName");
    pod->ip = json_text(status, "podIP");
    pod->transition = object_note(json, NOTE_TRANSITION);
    pod->slice = object_note(json, NOTE_SLICE);
    pod->template_hash = object_note(json, NOTE_TEMPLATE);
    pod->profile = -1;
    const char *foreign = find_foreign(world, json, pod);
    if (foreign) {
        struct error err = {0};
        error_set(&err, E_INPUT, "%s", foreign);
        add_fault(world, &KUBE_POD, json, &err);
        return;
    }
    int node = world_find_node(world, pod->node);
    pod->ready = node >= 0 && world->nodes.data[node].ready && !pod->meta.deleting &&
                 condition_is_true(json, "Ready");
    pod->ended = strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0;
    pod->draining_since_s = draining_since(json);
    const char *key = arena_printf(&world->arena, "%s/%s", pod->meta.namespace, pod->meta.name);
    pod->in_endpoints = map_find(&paths->ready, key) >= 0;
    pod->is_routed = pod->in_endpoints && is_routed(world, paths, pod);
    if (is_orphan(world, json, pod)) {
        pod->ready = false;
        pod->rate_rps = 0;
    }
    vec_add(&world->pods, read);
}

static int compare_pods(const void *a, const void *b)
{
    const struct world_pod *left = a, *right = b;
    int order = strcmp(left->meta.namespace, right->meta.namespace);

    return order ? order : strcmp(left->meta.name, right->meta.name);
}

static void read_pods(struct world *world)
{
    CLEANUP(paths_done) struct paths paths = {0};
    const struct world_list *list = &world->sources.pods;

    collect_routes(world, &paths.routes);
    collect_endpoints(world, &paths);
    for (size_t i = 0; i < list->count; i++)
        read_pod(world, list->items[i], &paths);
    if (world->pods.count > 0)
        qsort(world->pods.data, world->pods.count, sizeof *world->pods.data, compare_pods);
}

void world_place_pods(struct world *world, const struct actuator_gpus *gpus)
{
    CLEANUP(map_done) struct map uuids = {0};

    for (size_t g = 0; g < gpus->gpus.count; g++)
        map_put(&uuids, gpus->gpus.data[g].uuid, &gpus->gpus.data[g]);
    for (size_t i = 0; i < world->pods.count; i++) {
        struct world_pod *pod = &world->pods.data[i];
        const struct world_gpu *gpu = map_get(&uuids, pod->gpu_uuid);
        pod->profile = gpu ? mig_profile_find(gpu->board, pod->slice) : -1;
    }
}

/* ---- the whole -------------------------------------------------------------------- */

void world_build(const struct world_sources *sources, struct world *ret_world)
{
    *ret_world = (struct world){.sources = *sources};
    read_own(ret_world);
    index_services(ret_world);
    read_nodes(ret_world);
    read_pods(ret_world);
}

void world_done(struct world *world)
{
    for (size_t i = 0; i < world->transitions.count; i++)
        transition_done(&world->transitions.data[i].transition);
    vec_done(&world->services);
    vec_done(&world->profiles);
    vec_done(&world->pools);
    vec_done(&world->plans);
    vec_done(&world->transitions);
    vec_done(&world->node_states);
    vec_done(&world->nodes);
    vec_done(&world->pods);
    vec_done(&world->faults);
    map_done(&world->service_names);
    map_done(&world->node_names);
    arena_done(&world->arena);
}

int world_find_service(const struct world *world, const char *service)
{
    return (int)map_find(&world->service_names, service);
}

int world_find_node(const struct world *world, const char *name)
{
    return (int)map_find(&world->node_names, name);
}

bool world_is_unreadable(const struct world *world, const char *service)
{
    return unreadable_service(world, service);
}

const char *world_refusal(const struct world *world, const char *what,
                          const struct kube_kind *kind, const char *namespace, const char *name)
{
    assert(*name);
    if (!world->sources.refusals)
        return NULL;
    CLEANUP(free_ptr) char *key = effect_key(what, kind, namespace, name);
    return json_string_value(json_object_get(world->sources.refusals, key));
}

/* The name of the pool that has a node that this one selects, NULL when it does not. */
static const char *owner_of_selected(const struct world *world, const struct gpu_pool *pool,
                                     size_t node)
{
    const struct world_list *pools = &world->sources.pools;

    assert(node < world->nodes.count);
    if (!pool_selects(pool->meta.json, world->nodes.data[node].json))
        return NULL;
    const json_t *owner =
        pool_of_node(pools->items, pools->count, world->nodes.data[node].json);
    return owner ? kube_metadata(owner, "name") : pool->meta.name;
}

bool world_in_pool(const struct world *world, const struct gpu_pool *pool, size_t node)
{
    const char *owner = owner_of_selected(world, pool, node);

    return owner && strcmp(owner, pool->meta.name) == 0;
}

const char *world_other_pool(const struct world *world, const struct gpu_pool *pool,
                             size_t node)
{
    const char *owner = owner_of_selected(world, pool, node);

    return owner && strcmp(owner, pool->meta.name) != 0 ? owner : NULL;
}
