/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_cluster.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "control/json_covers.h"
#include "control/kinds.h"
#include "control/resources.h"
#include "kube/api.h"
#include "mig/layout.h"

static const struct kube_kind *const kinds[FAKE_KIND_COUNT] = {
    [FAKE_SERVICES] = &KIND_GPU_SERVICE,
    [FAKE_PROFILES] = &KIND_PERF_PROFILE,
    [FAKE_POOLS] = &KIND_GPU_POOL,
    [FAKE_PLANS] = &KIND_PARTITION_PLAN,
    [FAKE_TRANSITIONS] = &KIND_TRANSITION,
    [FAKE_NODE_STATES] = &KIND_NODE_GPU_STATE,
    [FAKE_NODES] = &KUBE_NODE,
    [FAKE_PODS] = &KUBE_POD,
    [FAKE_KUBE_SERVICES] = &KIND_SERVICE,
    [FAKE_SLICES] = &KIND_ENDPOINT_SLICE,
    [FAKE_ROUTES] = &KIND_HTTP_ROUTE,
};

static enum fake_kind index_of(const struct kube_kind *kind)
{
    for (int i = 0; i < FAKE_KIND_COUNT; i++)
        if (kinds[i] == kind)
            return (enum fake_kind)i;
    assert(!"a kind of the fake cluster");
    return FAKE_KIND_COUNT;
}

/* ---- objects ---------------------------------------------------------------------- */

static ptrdiff_t find(const struct fake_cluster *cluster, enum fake_kind kind,
                      const char *namespace, const char *name)
{
    const struct fake_list *list = &cluster->lists[kind];

    for (size_t i = 0; i < list->items.count; i++)
        if (strcmp(kube_metadata(list->items.data[i], "name"), name) == 0 &&
            strcmp(kube_metadata(list->items.data[i], "namespace"), namespace) == 0)
            return (ptrdiff_t)i;
    return -1;
}

static void set_version(struct fake_cluster *cluster, json_t *object)
{
    char text[32];

    snprintf(text, sizeof text, "%lld", ++cluster->version);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                        json_string(text));
}

static void drop(struct fake_cluster *cluster, enum fake_kind kind, size_t at)
{
    struct fake_list *list = &cluster->lists[kind];

    json_decref(list->items.data[at]);
    for (size_t i = at; i + 1 < list->items.count; i++)
        list->items.data[i] = list->items.data[i + 1];
    list->items.count--;
    cluster->version++;
}

/* Puts a changed copy in the object's place, unless nothing has changed. */
static void replace(struct fake_cluster *cluster, enum fake_kind kind, size_t at,
                    json_t *changed)
{
    json_t **there = &cluster->lists[kind].items.data[at];

    if (json_equal(*there, changed)) {
        json_decref(changed);
        return;
    }
    if (!json_equal(json_object_get(*there, "spec"), json_object_get(changed, "spec"))) {
        json_t *metadata = json_object_get(changed, "metadata");
        assert(kind != FAKE_PLANS && kind != FAKE_TRANSITIONS);
        json_object_set_new(
            metadata, "generation",
            json_integer(json_integer_value(json_object_get(metadata, "generation")) + 1));
    }
    set_version(cluster, changed);
    json_decref(*there);
    *there = changed;
    const json_t *metadata = json_object_get(changed, "metadata");
    if (json_object_get(metadata, "deletionTimestamp") && kind != FAKE_PODS &&
        json_array_size(json_object_get(metadata, "finalizers")) == 0)
        drop(cluster, kind, at);
}

static void add(struct fake_cluster *cluster, enum fake_kind kind, const json_t *body)
{
    json_t *object = json_deep_copy(body), *metadata = json_object_get(object, "metadata");
    char uid[32], now[21];

    snprintf(uid, sizeof uid, "uid-%lld", ++cluster->uid);
    clock_utc_text(cluster->now_s, now);
    json_object_set_new(metadata, "uid", json_string(uid));
    json_object_set_new(metadata, "creationTimestamp", json_string(now));
    json_object_set_new(metadata, "generation", json_integer(1));
    set_version(cluster, object);
    vec_add(&cluster->lists[kind].items, object);
}

/* RFC 7386, lists replaced. */
static void merge(json_t *object, const json_t *patch)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)patch, key, value)
    {
        json_t *there = json_object_get(object, key);
        if (json_is_null(value))
            json_object_del(object, key);
        else if (json_is_object(value) && json_is_object(there))
            merge(there, value);
        else
            json_object_set_new(object, key, json_deep_copy(value));
    }
}

static void mark_deleted(struct fake_cluster *cluster, enum fake_kind kind, size_t at)
{
    const json_t *object = cluster->lists[kind].items.data[at];
    const json_t *finalizers = json_at(object, "metadata", "finalizers", NULL);
    json_t *changed;
    char now[21];

    if (kind != FAKE_PODS && json_array_size(finalizers) == 0) {
        drop(cluster, kind, at);
        return;
    }
    if (*kube_metadata(object, "deletionTimestamp"))
        return;
    clock_utc_text(cluster->now_s, now);
    changed = json_deep_copy(object);
    json_object_set_new(json_object_get(changed, "metadata"), "deletionTimestamp",
                        json_string(now));
    replace(cluster, kind, at, changed);
}

void fake_cluster_append(struct fake_cluster *cluster, const struct kube_kind *kind,
                         json_t *object)
{
    add(cluster, index_of(kind), object);
    json_decref(object);
}

void fake_cluster_put(struct fake_cluster *cluster, const struct kube_kind *kind,
                      json_t *object)
{
    enum fake_kind index = index_of(kind);
    ptrdiff_t at =
        find(cluster, index, kube_metadata(object, "namespace"), kube_metadata(object, "name"));

    if (at < 0) {
        add(cluster, index, object);
    } else {
        json_t *changed = json_deep_copy(cluster->lists[index].items.data[at]);
        json_object_set(changed, "spec", json_object_get(object, "spec"));
        replace(cluster, index, (size_t)at, changed);
    }
    json_decref(object);
}

void fake_cluster_drop(struct fake_cluster *cluster, const struct kube_kind *kind,
                       const char *namespace, const char *name)
{
    ptrdiff_t at = find(cluster, index_of(kind), namespace, name);

    if (at >= 0)
        drop(cluster, index_of(kind), (size_t)at);
}

void fake_cluster_delete(struct fake_cluster *cluster, const struct kube_kind *kind,
                         const char *namespace, const char *name)
{
    ptrdiff_t at = find(cluster, index_of(kind), namespace, name);

    if (at >= 0)
        mark_deleted(cluster, index_of(kind), (size_t)at);
}

const json_t *fake_cluster_get(const struct fake_cluster *cluster, const struct kube_kind *kind,
                               const char *namespace, const char *name)
{
    ptrdiff_t at = find(cluster, index_of(kind), namespace, name);

    return at < 0 ? NULL : cluster->lists[index_of(kind)].items.data[at];
}

/* ---- effects ---------------------------------------------------------------------- */

static int refuse(struct fake_cluster *cluster, struct error *err, enum error_code code,
                  const struct effect *effect, const char *why)
{
    cluster->refused++;
    return error_set(err, code, "%s %s: %s", effect->object_kind->kind, effect->name, why);
}

static const char *hash_of(const json_t *object)
{
    const char *hash =
        json_string_value(json_at(object, "metadata", "annotations", NOTE_HASH, NULL));

    return hash ? hash : "";
}

static const char *label_of(const json_t *object, const char *label)
{
    const char *text = json_string_value(json_at(object, "metadata", "labels", label, NULL));

    return text ? text : "";
}

/* What admission says of a new object. */
static int admit(struct fake_cluster *cluster, const struct effect *effect, struct error *err)
{
    if (cluster->terminating && effect->namespace &&
        strcmp(effect->namespace, cluster->terminating) == 0)
        return refuse(cluster, err, E_USAGE, effect, "its namespace is being terminated");
    if (cluster->refused_pods && effect->object_kind == &KUBE_POD &&
        strcmp(label_of(effect->body, LABEL_SERVICE), cluster->refused_pods) == 0)
        return refuse(cluster, err, E_USAGE, effect, "exceeded quota");
    return 0;
}

static int ensure(struct fake_cluster *cluster, const struct effect *effect, ptrdiff_t at,
                  struct error *err)
{
    enum fake_kind kind = index_of(effect->object_kind);

    if (at < 0) {
        int rc = admit(cluster, effect, err);
        if (rc < 0)
            return rc;
        add(cluster, kind, effect->body);
        cluster->writes++;
        return 0;
    }
    if (strcmp(hash_of(cluster->lists[kind].items.data[at]), hash_of(effect->body)) != 0)
        return refuse(cluster, err, E_CONFLICT, effect, "is there and is not what is wanted");
    return 0;
}

static int apply(struct fake_cluster *cluster, const struct effect *effect, ptrdiff_t at,
                 struct error *err)
{
    enum fake_kind kind = index_of(effect->object_kind);
    const char *tied = kube_metadata(effect->body, "resourceVersion");

    cluster->writes++;
    if (cluster->refuses_routes && effect->object_kind == &KIND_HTTP_ROUTE)
        return refuse(cluster, err, E_USAGE, effect, "routes may not be written");
    if (at < 0 && *tied)
        return refuse(cluster, err, E_CONFLICT, effect, "is gone");
    if (at < 0) {
        int rc = admit(cluster, effect, err);
        if (rc == 0)
            add(cluster, kind, effect->body);
        return rc;
    }
    const json_t *there = cluster->lists[kind].items.data[at];
    if (*tied && strcmp(tied, kube_metadata(there, "resourceVersion")) != 0)
        return refuse(cluster, err, E_CONFLICT, effect, "has changed");
    json_t *changed = json_deep_copy(there);
    merge(changed, effect->body);
    replace(cluster, kind, (size_t)at, changed);
    return 0;
}

static int check_preconditions(struct fake_cluster *cluster, const struct effect *effect,
                               const json_t *there, struct error *err)
{
    if (effect->uid && strcmp(effect->uid, kube_metadata(there, "uid")) != 0)
        return refuse(cluster, err, E_CONFLICT, effect, "is another one");
    if (effect->resource_version &&
        strcmp(effect->resource_version, kube_metadata(there, "resourceVersion")) != 0)
        return refuse(cluster, err, E_CONFLICT, effect, "has changed");
    return 0;
}

static int patch(struct fake_cluster *cluster, const struct effect *effect, ptrdiff_t at,
                 struct error *err)
{
    enum fake_kind kind = index_of(effect->object_kind);
    bool is_status = effect->subresource && strcmp(effect->subresource, "status") == 0;

    if (at < 0)
        return refuse(cluster, err, E_NOT_FOUND, effect, "is not there");
    const json_t *there = cluster->lists[kind].items.data[at];
    int rc = check_preconditions(cluster, effect, there, err);
    if (rc < 0)
        return rc;
    json_t *changed = json_deep_copy(there), *part = json_copy(effect->body);
    if (is_status)
        assert(json_object_size(part) == 1 && json_object_get(part, "status"));
    else
        json_object_del(part, "status");
    merge(changed, part);
    json_decref(part);
    replace(cluster, kind, (size_t)at, changed);
    cluster->writes++;
    return 0;
}

int fake_cluster_apply(struct fake_cluster *cluster, const struct effect *effect,
                       struct error *err)
{
    if (effect->kind == EFFECT_EVENT)
        return 0;
    enum fake_kind kind = index_of(effect->object_kind);
    ptrdiff_t at =
        find(cluster, kind, effect->namespace ? effect->namespace : "", effect->name);
    switch (effect->kind) {
    case EFFECT_ENSURE:
        return ensure(cluster, effect, at, err);
    case EFFECT_APPLY:
        return apply(cluster, effect, at, err);
    case EFFECT_PATCH:
        return patch(cluster, effect, at, err);
    case EFFECT_DELETE:
        break;
    case EFFECT_EVENT:
    case EFFECT_KIND_COUNT:
        return 0;
    }
    if (at < 0)
        return 0;
    int rc = check_preconditions(cluster, effect, cluster->lists[kind].items.data[at], err);
    if (rc == 0)
        mark_deleted(cluster, kind, (size_t)at);
    cluster->writes += rc == 0;
    return rc;
}

/* ---- nodes ------------------------------------------------------------------------ */

static json_t *node_status(bool up)
{
    return json_pack("{s:[{s:s, s:s}]}", "conditions", "type", "Ready", "status",
                     up ? "True" : "Unknown");
}

static void set_status(struct fake_cluster *cluster, enum fake_kind kind, size_t at,
                       json_t *status)
{
    json_t *changed = json_deep_copy(cluster->lists[kind].items.data[at]);

    json_object_set_new(changed, "status", status);
    replace(cluster, kind, at, changed);
}

void fake_cluster_add_node(struct fake_cluster *cluster, const struct mig_board *board,
                           int gpus)
{
    struct fake_node *node = vec_push(&cluster->nodes);
    int number = (int)cluster->nodes.count;
    json_t *found = json_array();

    node->up = true;
    snprintf(node->name, sizeof node->name, "node-%d", number);
    for (int g = 0; g < gpus; g++) {
        struct fake_gpu *gpu = vec_push(&cluster->gpus);
        *gpu = (struct fake_gpu){.node = number - 1, .board = board};
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%04d-%d", number, g);
        json_array_append_new(found,
                              json_pack("{s:s, s:s, s:b, s:[]}", "uuid", gpu->uuid, "board",
                                        board->slug, "migEnabled", true, "instances"));
    }
    json_t *object = json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", "v1", "kind", "Node",
                               "metadata", "name", node->name, "status", node_status(true));
    add(cluster, FAKE_NODES, object);
    json_decref(object);
    object = json_pack("{s:s, s:s, s:{s:s}, s:{s:i, s:[]}, s:{s:i, s:o}}", "apiVersion",
                       "tranche.dev/v1alpha1", "kind", "NodeGpuState", "metadata", "name",
                       node->name, "spec", "epoch", 0, "gpus", "status", "observedEpoch", 0,
                       "gpus", found);
    add(cluster, FAKE_NODE_STATES, object);
    json_decref(object);
}

void fake_cluster_set_node(struct fake_cluster *cluster, size_t node, bool up)
{
    assert(node < cluster->nodes.count);
    cluster->nodes.data[node].up = up;
    set_status(cluster, FAKE_NODES,
               (size_t)find(cluster, FAKE_NODES, "", cluster->nodes.data[node].name),
               node_status(up));
}

void fake_cluster_hide_gpu(struct fake_cluster *cluster, const char *uuid)
{
    for (size_t i = 0; i < cluster->lists[FAKE_NODE_STATES].items.count; i++) {
        json_t *status = json_deep_copy(
            json_object_get(cluster->lists[FAKE_NODE_STATES].items.data[i], "status"));
        json_t *gpus = json_object_get(status, "gpus");
        for (size_t g = json_array_size(gpus); g-- > 0;) {
            const json_t *one = json_object_get(json_array_get(gpus, g), "uuid");
            if (strcmp(json_string_value(one), uuid) == 0)
                json_array_remove(gpus, g);
        }
        set_status(cluster, FAKE_NODE_STATES, i, status);
    }
}

void fake_cluster_plant_instance(struct fake_cluster *cluster, const char *uuid,
                                 const char *slice, int start)
{
    for (size_t i = 0; i < cluster->lists[FAKE_NODE_STATES].items.count; i++) {
        json_t *status = json_deep_copy(
            json_object_get(cluster->lists[FAKE_NODE_STATES].items.data[i], "status"));
        json_t *gpus = json_object_get(status, "gpus");
        for (size_t g = 0; g < json_array_size(gpus); g++) {
            json_t *gpu = json_array_get(gpus, g);
            if (strcmp(json_string_value(json_object_get(gpu, "uuid")), uuid) == 0)
                json_array_append_new(json_object_get(gpu, "instances"),
                                      json_pack("{s:s, s:i, s:s, s:b}", "slice", slice, "start",
                                                start, "uuid", "MIG-planted", "ready", 1));
        }
        set_status(cluster, FAKE_NODE_STATES, i, status);
    }
}

static const struct fake_gpu *gpu_of(const struct fake_cluster *cluster, const char *uuid)
{
    for (size_t g = 0; g < cluster->gpus.count; g++)
        if (strcmp(cluster->gpus.data[g].uuid, uuid) == 0)
            return &cluster->gpus.data[g];
    return NULL;
}

static const char *note_of(const json_t *object, const char *note)
{
    const char *text =
        json_string_value(json_at(object, "metadata", "annotations", note, NULL));

    return text ? text : "";
}

/* ---- the node agent --------------------------------------------------------------- */

static bool chance(struct fake_cluster *cluster, double probability)
{
    return probability > 0 && rng_unit(&cluster->rng) < probability;
}

static bool has_pod(const struct fake_cluster *cluster, const char *uuid, const char *slice,
                    json_int_t start)
{
    const struct fake_list *pods = &cluster->lists[FAKE_PODS];
    char text[32];

    snprintf(text, sizeof text, "%lld", (long long)start);
    for (size_t i = 0; i < pods->items.count; i++)
        if (strcmp(note_of(pods->items.data[i], NOTE_GPU), uuid) == 0 &&
            strcmp(note_of(pods->items.data[i], NOTE_SLICE), slice) == 0 &&
            strcmp(note_of(pods->items.data[i], NOTE_START), text) == 0)
            return true;
    return false;
}

static bool is_listed(const json_t *instances, const json_t *instance)
{
    CLEANUP(json_decref_ptr)
    json_t *key = json_pack("{s:O, s:O}", "slice", json_object_get(instance, "slice"), "start",
                            json_object_get(instance, "start"));

    for (size_t i = 0; i < json_array_size(instances); i++)
        if (json_covers(json_array_get(instances, i), key))
            return true;
    return false;
}

static const json_t *wanted_instances(const json_t *spec, const char *uuid)
{
    const json_t *gpus = json_object_get(spec, "gpus");

    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *gpu = json_array_get(gpus, i);
        if (strcmp(json_string_value(json_object_get(gpu, "uuid")), uuid) == 0)
            return json_object_get(gpu, "instances");
    }
    return NULL;
}

static bool layout_of(const struct mig_board *board, const json_t *instances,
                      struct mig_layout *ret_layout)
{
    *ret_layout = (struct mig_layout){0};
    for (size_t i = 0; i < json_array_size(instances); i++) {
        const json_t *one = json_array_get(instances, i);
        struct mig_instance instance = {
            (int8_t)mig_profile_find(board, json_string_value(json_object_get(one, "slice"))),
            (int8_t)json_integer_value(json_object_get(one, "start"))};
        if (!mig_layout_can_add(board, ret_layout, instance))
            return false;
        mig_layout_add(board, ret_layout, instance);
    }
    return true;
}

/* One GPU on the way to what is wanted: what has a pod on it is in use and stays. */
static void drive_gpu(struct fake_cluster *cluster, json_t *found, const json_t *wanted)
{
    const char *uuid = json_string_value(json_object_get(found, "uuid"));
    json_t *instances = json_object_get(found, "instances");

    for (size_t i = json_array_size(instances); i-- > 0;) {
        const json_t *one = json_array_get(instances, i);
        if (is_listed(wanted, one) || chance(cluster, cluster->slow))
            continue;
        if (!has_pod(cluster, uuid, json_string_value(json_object_get(one, "slice")),
                     json_integer_value(json_object_get(one, "start"))))
            json_array_remove(instances, i);
    }
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        json_t *one = json_deep_copy(json_array_get(wanted, i)), *more = json_copy(instances);
        struct mig_layout layout;
        char id[64];
        snprintf(id, sizeof id, "MIG-%lld", ++cluster->uid);
        json_object_set_new(one, "uuid", json_string(id));
        json_object_set_new(one, "ready", json_true());
        json_array_append(more, one);
        if (!is_listed(instances, one) && !chance(cluster, cluster->slow) &&
            layout_of(gpu_of(cluster, uuid)->board, more, &layout))
            json_array_append(instances, one);
        json_decref(one);
        json_decref(more);
    }
}

static void drive_agent(struct fake_cluster *cluster, size_t at)
{
    const json_t *state = cluster->lists[FAKE_NODE_STATES].items.data[at];
    const json_t *spec = json_object_get(state, "spec");
    json_t *status = json_deep_copy(json_object_get(state, "status"));
    json_int_t epoch = json_integer_value(json_object_get(spec, "epoch")),
               seen = json_integer_value(json_object_get(status, "observedEpoch"));
    ptrdiff_t node = -1;

    for (size_t n = 0; n < cluster->nodes.count; n++)
        if (strcmp(cluster->nodes.data[n].name, kube_metadata(state, "name")) == 0)
            node = (ptrdiff_t)n;
    json_t *gpus = json_object_get(status, "gpus");
    for (size_t g = 0; epoch >= seen && g < json_array_size(gpus); g++) {
        json_t *gpu = json_array_get(gpus, g);
        const json_t *wanted =
            wanted_instances(spec, json_string_value(json_object_get(gpu, "uuid")));
        if (wanted)
            drive_gpu(cluster, gpu, wanted);
    }
    json_object_set_new(status, "observedEpoch", json_integer(epoch > seen ? epoch : seen));
    json_object_set(status, "observedGeneration",
                    json_at(state, "metadata", "generation", NULL)
                        ? (json_t *)json_at(state, "metadata", "generation", NULL)
                        : json_null());
    if (node >= 0 && cluster->nodes.data[node].up)
        set_status(cluster, FAKE_NODE_STATES, at, status);
    else
        json_decref(status);
}

/* ---- kubelet, scheduler, garbage collector ----------------------------------------- */

static const struct fake_node *node_of_pod(const struct fake_cluster *cluster,
                                           const json_t *pod)
{
    const struct fake_gpu *gpu = gpu_of(cluster, note_of(pod, NOTE_GPU));

    return gpu ? &cluster->nodes.data[gpu->node] : NULL;
}

static bool is_ready(const json_t *pod)
{
    return condition_is_true(pod, "Ready");
}

static void set_pod(struct fake_cluster *cluster, size_t at, const char *phase, bool ready)
{
    json_t *changed = json_deep_copy(cluster->lists[FAKE_PODS].items.data[at]);
    const struct fake_node *node = node_of_pod(cluster, changed);
    json_t *spec = json_object_get(changed, "spec");
    char ip[32];

    snprintf(ip, sizeof ip, "10.0.%d.%d", (int)(at / 250), (int)(at % 250));
    if (!json_object_get(spec, "nodeName"))
        json_object_set_new(spec, "nodeName", json_string(node->name));
    json_object_set_new(changed, "status",
                        json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "phase", phase, "podIP", ip,
                                  "conditions", "type", "Ready", "status",
                                  ready ? "True" : "False"));
    replace(cluster, FAKE_PODS, at, changed);
}

/* Returns whether the pod is gone. */
static bool drive_pod(struct fake_cluster *cluster, size_t at)
{
    const json_t *pod = cluster->lists[FAKE_PODS].items.data[at];
    const struct fake_node *node = node_of_pod(cluster, pod);
    const char *phase = json_string_value(json_at(pod, "status", "phase", NULL));

    if (!node || !node->up)
        return false;
    if (*kube_metadata(pod, "deletionTimestamp")) {
        if (chance(cluster, cluster->stuck) || chance(cluster, cluster->slow)) {
            if (is_ready(pod))
                set_pod(cluster, at, "Running", false);
            return false;
        }
        drop(cluster, FAKE_PODS, at);
        return true;
    }
    if (is_ready(pod) && chance(cluster, cluster->crash)) {
        set_pod(cluster, at, "Failed", false);
        cluster->crashes++;
    } else if (!is_ready(pod) && !(phase && strcmp(phase, "Failed") == 0) &&
               !chance(cluster, cluster->slow)) {
        set_pod(cluster, at, "Running", true);
    }
    return false;
}

/* Pods whose GpuService is gone. */
static void collect_garbage(struct fake_cluster *cluster, size_t at)
{
    const json_t *pod = cluster->lists[FAKE_PODS].items.data[at];
    const json_t *owner = json_array_get(json_at(pod, "metadata", "ownerReferences", NULL), 0);
    const char *uid = json_string_value(json_object_get(owner, "uid"));

    if (!uid)
        return;
    for (size_t i = 0; i < cluster->lists[FAKE_SERVICES].items.count; i++)
        if (strcmp(kube_metadata(cluster->lists[FAKE_SERVICES].items.data[i], "uid"), uid) == 0)
            return;
    mark_deleted(cluster, FAKE_PODS, at);
}

void fake_cluster_tick(struct fake_cluster *cluster, int seconds)
{
    cluster->now_s += seconds;
    for (size_t i = cluster->lists[FAKE_PODS].items.count; i-- > 0;)
        if (!drive_pod(cluster, i))
            collect_garbage(cluster, i);
    for (size_t i = 0; i < cluster->lists[FAKE_NODE_STATES].items.count; i++)
        drive_agent(cluster, i);
}

/* ---- the whole -------------------------------------------------------------------- */

void fake_cluster_init(struct fake_cluster *cluster, uint64_t seed)
{
    *cluster = (struct fake_cluster){.now_s = 1800000000, .rng = rng_seed(seed)};
}

static void list_done(struct fake_list *list)
{
    for (size_t i = 0; i < list->items.count; i++)
        json_decref(list->items.data[i]);
    vec_done(&list->items);
}

void fake_cluster_done(struct fake_cluster *cluster)
{
    for (int k = 0; k < FAKE_KIND_COUNT; k++)
        list_done(&cluster->lists[k]);
    vec_done(&cluster->nodes);
    vec_done(&cluster->gpus);
}

static void copy_list(struct fake_list *to, const struct fake_list *from)
{
    list_done(to);
    for (size_t i = 0; i < from->items.count; i++)
        vec_add(&to->items, json_incref(from->items.data[i]));
}

void fake_snapshot_take(const struct fake_cluster *cluster, struct fake_snapshot *ret_snapshot)
{
    *ret_snapshot = (struct fake_snapshot){0};
    for (int k = 0; k < FAKE_KIND_COUNT; k++)
        copy_list(&ret_snapshot->lists[k], &cluster->lists[k]);
}

void fake_snapshot_mix(struct fake_snapshot *snapshot, const struct fake_snapshot *other,
                       unsigned mask)
{
    for (int k = 0; k < FAKE_KIND_COUNT; k++)
        if (mask >> k & 1)
            copy_list(&snapshot->lists[k], &other->lists[k]);
}

void fake_snapshot_done(struct fake_snapshot *snapshot)
{
    for (int k = 0; k < FAKE_KIND_COUNT; k++)
        list_done(&snapshot->lists[k]);
}

static struct world_list world_list_of(const struct fake_list *list)
{
    return (struct world_list){(const json_t *const *)list->items.data, list->items.count};
}

void fake_snapshot_sources(const struct fake_snapshot *snapshot,
                           const struct fake_cluster *cluster, struct world_sources *ret)
{
    const struct fake_list *lists = snapshot->lists;

    *ret = (struct world_sources){
        .services = world_list_of(&lists[FAKE_SERVICES]),
        .profiles = world_list_of(&lists[FAKE_PROFILES]),
        .pools = world_list_of(&lists[FAKE_POOLS]),
        .plans = world_list_of(&lists[FAKE_PLANS]),
        .transitions = world_list_of(&lists[FAKE_TRANSITIONS]),
        .node_states = world_list_of(&lists[FAKE_NODE_STATES]),
        .nodes = world_list_of(&lists[FAKE_NODES]),
        .pods = world_list_of(&lists[FAKE_PODS]),
        .kube_services = world_list_of(&lists[FAKE_KUBE_SERVICES]),
        .endpoint_slices = world_list_of(&lists[FAKE_SLICES]),
        .routes = world_list_of(&lists[FAKE_ROUTES]),
        .has_gateway = true,
        .fresh = true,
        .epoch = 1,
        .now_s = cluster->now_s,
        .now_ns = cluster->now_s * 1000000000,
    };
}

/* The first GPU of a NodeGpuState's spec or status whose layout is illegal, or NULL. */
static const char *illegal_gpu(const struct fake_cluster *cluster, const json_t *part)
{
    const json_t *gpus = json_object_get(part, "gpus");

    for (size_t g = 0; g < json_array_size(gpus); g++) {
        const json_t *gpu = json_array_get(gpus, g);
        const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
        struct mig_layout layout;
        if (!layout_of(gpu_of(cluster, uuid)->board, json_object_get(gpu, "instances"),
                       &layout))
            return uuid;
    }
    return NULL;
}

char *fake_cluster_check(const struct fake_cluster *cluster)
{
    CLEANUP(map_done) struct map slots = {0};
    const struct fake_list *pods = &cluster->lists[FAKE_PODS];

    for (size_t i = 0; i < pods->items.count; i++) {
        const json_t *pod = pods->items.data[i];
        CLEANUP(free_ptr)
        char *slot = xasprintf("%s %s@%s", note_of(pod, NOTE_GPU), note_of(pod, NOTE_SLICE),
                               note_of(pod, NOTE_START));
        if (map_find(&slots, slot) >= 0 && !cluster->strangers)
            return xasprintf("two pods on %s", slot);
        map_put(&slots, slot, NULL);
    }
    for (size_t i = 0; i < cluster->lists[FAKE_NODE_STATES].items.count; i++) {
        const json_t *state = cluster->lists[FAKE_NODE_STATES].items.data[i];
        const char *uuid = illegal_gpu(cluster, json_object_get(state, "status"));
        if (uuid)
            return xasprintf("the layout of %s is illegal", uuid);
        uuid = cluster->spec_is_broken ? NULL
                                       : illegal_gpu(cluster, json_object_get(state, "spec"));
        if (uuid)
            return xasprintf("an illegal layout is asked of %s", uuid);
    }
    return NULL;
}

/* Whether slices of a Service list the pod, or any pod when it is NULL; service NULL: of any.
 */
static bool is_in_endpoints(const struct fake_cluster *cluster, const char *namespace,
                            const char *service, const json_t *pod)
{
    const struct fake_list *slices = &cluster->lists[FAKE_SLICES];

    for (size_t i = 0; i < slices->items.count; i++) {
        const json_t *slice = slices->items.data[i];
        const json_t *endpoints = json_object_get(slice, "endpoints");
        const char *of = json_string_value(
            json_at(slice, "metadata", "labels", "kubernetes.io/service-name", NULL));
        if (strcmp(kube_metadata(slice, "namespace"), namespace) != 0 ||
            (service && strcmp(service, of) != 0))
            continue;
        if (!pod && json_array_size(endpoints) > 0)
            return true;
        for (size_t e = 0; e < json_array_size(endpoints); e++) {
            const char *uid = json_string_value(
                json_at(json_array_get(endpoints, e), "targetRef", "uid", NULL));
            if (pod && uid && strcmp(uid, kube_metadata(pod, "uid")) == 0)
                return true;
        }
    }
    return false;
}

static const json_t *backends_of(const json_t *route)
{
    return json_object_get(json_array_get(json_at(route, "spec", "rules", NULL), 0),
                           "backendRefs");
}

/* Whether requests reach the pod by the service's route; without one, by its Service. */
static bool is_reached(const struct fake_cluster *cluster, const char *namespace,
                       const char *service, const json_t *pod)
{
    const json_t *route = fake_cluster_get(cluster, &KIND_HTTP_ROUTE, namespace, service);
    const json_t *backends = backends_of(route);

    if (!route)
        return is_in_endpoints(cluster, namespace, service, pod);
    for (size_t b = 0; b < json_array_size(backends); b++)
        if (is_in_endpoints(
                cluster, namespace,
                json_string_value(json_object_get(json_array_get(backends, b), "name")), pod))
            return true;
    return false;
}

char *fake_cluster_check_routes(const struct fake_cluster *cluster)
{
    const struct fake_list *routes = &cluster->lists[FAKE_ROUTES];

    for (size_t i = 0; i < routes->items.count; i++) {
        const json_t *route = routes->items.data[i], *backends = backends_of(route);
        const char *namespace = kube_metadata(route, "namespace");
        for (size_t b = 0; b < json_array_size(backends); b++) {
            const char *name =
                json_string_value(json_object_get(json_array_get(backends, b), "name"));
            if (!fake_cluster_get(cluster, &KIND_SERVICE, namespace, name) ||
                !is_in_endpoints(cluster, namespace, name, NULL))
                return xasprintf("route %s leads to %s, where nobody is listed",
                                 kube_metadata(route, "name"), name);
        }
    }
    return NULL;
}

double fake_cluster_capacity(const struct fake_cluster *cluster, const char *namespace,
                             const char *name)
{
    const struct fake_list *pods = &cluster->lists[FAKE_PODS];
    double sum = 0;

    for (size_t i = 0; i < pods->items.count; i++) {
        const json_t *pod = pods->items.data[i];
        const char *service =
            json_string_value(json_at(pod, "metadata", "labels", LABEL_SERVICE, NULL));
        const struct fake_node *node = node_of_pod(cluster, pod);
        double rate = 0;
        if (strcmp(kube_metadata(pod, "namespace"), namespace) != 0 || !service ||
            strcmp(service, name) != 0 || !node || !node->up)
            continue;
        if (!is_ready(pod) || *kube_metadata(pod, "deletionTimestamp") ||
            !is_reached(cluster, namespace, name, pod))
            continue;
        if (text_to_double(note_of(pod, NOTE_RATE_RPS), &rate))
            sum += rate;
    }
    return sum;
}
