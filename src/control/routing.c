/* SPDX-License-Identifier: Apache-2.0 */
#include "control/routing.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "control/json_covers.h"
#include "control/kinds.h"
#include "control/object.h"
#include "control/pool_view.h"
#include "control/reconcile.h"
#include "kube/api.h"

#define SLICE_MANAGER_LABEL "endpointslice.kubernetes.io/managed-by"
#define SLICE_SERVICE_LABEL "kubernetes.io/service-name"
#define SLICE_MANAGER       "tranche.dev"
#define APPLY_REASON        "routing"

enum { ENDPOINTS_MAX = 100, WEIGHT_MAX = 1000000 };

void routing_class(double rate_rps, char ret_class[ROUTING_CLASS_SIZE])
{
    assert(isfinite(rate_rps));
    CLEANUP(str_done) struct str text = STR_EMPTY;

    str_add_number(&text, rate_rps);
    text_hash(text.bytes, ROUTING_CLASS_SIZE - 1, ret_class);
}

bool routing_is_weighted(const struct world *world, const struct gpu_service *service)
{
    return world->sources.has_gateway && *service->gateway;
}

bool routing_names(const json_t *route, const char *backend)
{
    size_t r, b;
    const json_t *rule, *one;

    json_array_foreach(json_at(route, "spec", "rules", NULL), r, rule)
    {
        json_array_foreach(json_object_get(rule, "backendRefs"), b, one)
        {
            if (strcmp(json_text(one, "name"), backend) == 0)
                return true;
        }
    }
    return false;
}

const char *routing_slice_service(const json_t *slice)
{
    return object_label(slice, SLICE_SERVICE_LABEL);
}

/* ---- what is there ---------------------------------------------------------------- */

/* Objects by "namespace/name"; those that nobody asked for are deleted at the end. */
struct there {
    const struct kube_kind *kind;
    const struct world_list *list;
    struct map names;
    bool *wanted;
};

/* Positions in a list of objects. */
struct positions {
    VEC(size_t) items;
};

struct router {
    struct world *world;
    const struct gpu_pool *pool;
    struct effects *effects;
    struct there services, slices, routes;
    struct map pods;      /* "namespace/name" of the service → struct service_pods */
    unsigned chain;       /* of the service that is being routed */
    struct map slices_of; /* "namespace/name" of the Service → struct positions in slices */
    struct map with_pods; /* services that have any pod */
    bool only_keeps;      /* it goes: nothing new is made for it */
};

struct pod_list {
    VEC(const struct world_pod *) items;
};

struct service_pods {
    struct pod_list ready;
    struct pod_list coming; /* not ready: their Services are there before them */
};

static void there_init(struct there *there, const struct kube_kind *kind,
                       const struct world_list *list)
{
    CLEANUP(str_done) struct str key = STR_EMPTY;

    *there = (struct there){
        .kind = kind, .list = list, .wanted = xcalloc(list->count + 1, sizeof(bool))};
    for (size_t i = 0; i < list->count; i++) {
        str_clear(&key);
        str_addf(&key, "%s/%s", kube_metadata(list->items[i], "namespace"),
                 kube_metadata(list->items[i], "name"));
        map_put(&there->names, key.bytes, NULL);
    }
}

static void there_done(struct there *there)
{
    map_done(&there->names);
    free(there->wanted);
}

/* Applies an object that is not there, or not as it should be. */
static void want(struct router *router, struct there *there, json_t *object)
{
    CLEANUP(free_ptr)
    char *key =
        xasprintf("%s/%s", kube_metadata(object, "namespace"), kube_metadata(object, "name"));
    ptrdiff_t at = map_find(&there->names, key);

    if (at >= 0)
        there->wanted[at] = true;
    if (at >= 0 && json_covers(there->list->items[at], object)) {
        json_decref(object);
        return;
    }
    if (at < 0 && router->only_keeps) {
        json_decref(object);
        return;
    }
    struct effect *effect = effect_apply(router->effects, there->kind, object);
    effect->reason = APPLY_REASON;
    effect->chain = router->chain;
    effect->yields = at < 0;
}

static bool is_there(const struct there *there, const struct gpu_service *service,
                     const char *name)
{
    CLEANUP(free_ptr) char *key = xasprintf("%s/%s", service->meta.namespace, name);

    return map_find(&there->names, key) >= 0;
}

/* "namespace/name" of the GpuService that an object is for; owned by the caller. */
static char *service_of(const json_t *object)
{
    return xasprintf("%s/%s", kube_metadata(object, "namespace"),
                     object_label(object, LABEL_SERVICE));
}

/* The GpuService is there, and cannot be read: its routing stays as it is. */
static bool is_unreadable(const struct router *router, const json_t *object)
{
    CLEANUP(free_ptr) char *service = service_of(object);

    return world_is_unreadable(router->world, service);
}

/* The chain of the GpuService that an object is for. */
static unsigned chain_of(const struct router *router, const json_t *object)
{
    CLEANUP(free_ptr) char *service = service_of(object);

    return (unsigned)(world_find_service(router->world, service) + 1);
}

static void delete_unwanted(struct router *router, struct there *there)
{
    for (size_t i = 0; i < there->names.count; i++) {
        const json_t *object = there->list->items[i];
        bool ours = strcmp(object_label(object, LABEL_POOL), router->pool->meta.name) == 0 &&
                    strcmp(object_label(object, LABEL_MANAGED_BY), "tranche") == 0;
        if (!ours || there->wanted[i] || *kube_metadata(object, "deletionTimestamp") ||
            is_unreadable(router, object))
            continue;
        struct effect *effect = effect_delete(router->effects, there->kind, object, true);
        effect->reason = APPLY_REASON;
        effect->chain = chain_of(router, object);
    }
}

/* ---- objects ---------------------------------------------------------------------- */

static json_t *metadata_of(const struct router *router, const struct gpu_service *service,
                           const char *name, const char *class)
{
    json_t *labels = json_pack("{s:s, s:s, s:s}", LABEL_MANAGED_BY, "tranche", LABEL_POOL,
                               router->pool->meta.name, LABEL_SERVICE, service->meta.name);

    if (*class)
        json_object_set_new(labels, LABEL_CLASS, json_string(class));
    return json_pack("{s:s, s:s, s:o, s:[{s:s, s:s, s:s, s:s, s:b}]}", "name", name,
                     "namespace", service->meta.namespace, "labels", labels, "ownerReferences",
                     "apiVersion", CONTROL_GROUP "/" CONTROL_VERSION, "kind", "GpuService",
                     "name", service->meta.name, "uid", service->meta.uid, "controller", true);
}

static json_t *service_object(const struct router *router, const struct gpu_service *service,
                              const char *name, const char *class)
{
    return json_pack("{s:s, s:s, s:o, s:{s:[{s:s, s:s, s:i, s:i}]}}", "apiVersion", "v1",
                     "kind", "Service", "metadata", metadata_of(router, service, name, class),
                     "spec", "ports", "name", "http", "protocol", "TCP", "port", service->port,
                     "targetPort", service->port);
}

static json_t *endpoint_of(const struct world_pod *pod)
{
    return json_pack("{s:[s], s:{s:b, s:b, s:b}, s:s, s:{s:s, s:s, s:s, s:s}}", "addresses",
                     pod->ip, "conditions", "ready", true, "serving", true, "terminating",
                     false, "nodeName", pod->node, "targetRef", "kind", "Pod", "namespace",
                     pod->meta.namespace, "name", pod->meta.name, "uid", pod->meta.uid);
}

/* How many slices hold so many pods, when each pod's follows from a hash of its name. */
static size_t slices_for(size_t pods)
{
    size_t slices = 1;

    while (pods > ENDPOINTS_MAX && slices * (ENDPOINTS_MAX / 2) < pods)
        slices *= 2;
    assert(slices >= 1);
    return slices;
}

/* Those that are there stay until a fourth more pods would do with fewer, so that a service
 * around a limit does not change its slices again and again. */
static size_t slices_beside(size_t pods, size_t there)
{
    assert(pods > 0);
    size_t with_more = slices_for(pods + pods / 4);

    return there >= with_more ? with_more : slices_for(pods);
}

static size_t slice_of(const struct world_pod *pod, size_t slices)
{
    assert(slices >= 1);
    char hash[9];

    if (slices == 1)
        return 0;
    text_hash(pod->meta.name, 8, hash);
    return strtoul(hash, NULL, 16) % slices;
}

/* A slice of a Service as the caches show it. */
struct seen_slice {
    size_t number;
    struct map pods; /* names */
};

/* The slices of one Service. A pod moves to another one by being added there first: where it is
 * now, it stays until the other is seen to have it. */
struct slicing {
    const struct gpu_service *service;
    const char *name; /* of the Service */
    const char *class;
    const struct pod_list *pods;
    bool is_ipv6;
    size_t slices; /* that there shall be */
    size_t *own;   /* by pods: the one it shall be in */
    VEC(struct seen_slice) seen;
};

static char *slice_name(const struct slicing *slicing, size_t number)
{
    return xasprintf("%s-%s%zu", slicing->name, slicing->is_ipv6 ? "v6-" : "", number);
}

/* The number in a name that slice_name() made for this Service and family. */
static bool slice_number(const struct slicing *slicing, const char *name, size_t *ret_number)
{
    CLEANUP(free_ptr)
    char *prefix = xasprintf("%s-%s", slicing->name, slicing->is_ipv6 ? "v6-" : "");
    long long number = 0;

    if (strncmp(name, prefix, strlen(prefix)) != 0 ||
        !text_to_int(name + strlen(prefix), 0, INT32_MAX, &number))
        return false;
    *ret_number = (size_t)number;
    return true;
}

static void see_slice(struct slicing *slicing, const json_t *object)
{
    struct seen_slice seen = {0};
    size_t index;
    json_t *endpoint;

    if (!slice_number(slicing, kube_metadata(object, "name"), &seen.number))
        return;
    json_array_foreach(json_object_get(object, "endpoints"), index, endpoint)
    {
        const char *pod = json_string_value(json_at(endpoint, "targetRef", "name", NULL));
        if (pod)
            map_put(&seen.pods, pod, NULL);
    }
    vec_add(&slicing->seen, seen);
}

static bool is_seen_in(const struct slicing *slicing, size_t number,
                       const struct world_pod *pod)
{
    for (size_t i = 0; i < slicing->seen.count; i++)
        if (slicing->seen.data[i].number == number)
            return map_find(&slicing->seen.data[i].pods, pod->meta.name) >= 0;
    return false;
}

/* Whether the pod has yet to be seen in its own slice, and is in this one until then. */
static bool is_kept_in(const struct slicing *slicing, size_t number, size_t index)
{
    assert(index < slicing->pods->items.count);
    const struct world_pod *pod = slicing->pods->items.data[index];
    size_t own = slicing->own[index];

    return own != number && is_seen_in(slicing, number, pod) && !is_seen_in(slicing, own, pod);
}

/* How many new ones a slice may get beside those that it keeps for others. */
static size_t count_places(const struct slicing *slicing, size_t number)
{
    size_t kept = 0, there = 0;

    for (size_t i = 0; i < slicing->pods->items.count; i++) {
        bool keeps = is_kept_in(slicing, number, i);
        kept += keeps;
        there += keeps || (slicing->own[i] == number &&
                           is_seen_in(slicing, number, slicing->pods->items.data[i]));
    }
    if (kept == 0)
        return SIZE_MAX;
    return there < ENDPOINTS_MAX ? ENDPOINTS_MAX - there : 0;
}

static json_t *endpoints_in(const struct slicing *slicing, size_t number)
{
    json_t *endpoints = json_array();
    size_t places = count_places(slicing, number);

    for (size_t i = 0; i < slicing->pods->items.count; i++) {
        const struct world_pod *pod = slicing->pods->items.data[i];
        bool is_new = slicing->own[i] == number && !is_seen_in(slicing, number, pod);
        if (!is_kept_in(slicing, number, i) &&
            (slicing->own[i] != number || (is_new && places == 0)))
            continue;
        assert(places > 0 || !is_new);
        places -= is_new;
        json_array_append_new(endpoints, endpoint_of(pod));
    }
    return endpoints;
}

static void slicing_init(struct slicing *slicing, const struct router *router)
{
    size_t count = slicing->pods->items.count;
    CLEANUP(free_ptr)
    char *key = xasprintf("%s/%s", slicing->service->meta.namespace, slicing->name);
    const struct positions *there = map_get(&router->slices_of, key);

    slicing->is_ipv6 = count > 0 && strchr(slicing->pods->items.data[0]->ip, ':');
    for (size_t i = 0; count > 0 && there && i < there->items.count; i++)
        see_slice(slicing, router->slices.list->items[there->items.data[i]]);
    /* Without pods there is no slice: its address family could not be changed later. */
    slicing->slices = count > 0 ? slices_beside(count, slicing->seen.count) : 0;
    slicing->own = xcalloc(count + 1, sizeof *slicing->own);
    for (size_t i = 0; i < count; i++)
        slicing->own[i] = slice_of(slicing->pods->items.data[i], slicing->slices);
}

static void slicing_done(struct slicing *slicing)
{
    for (size_t i = 0; i < slicing->seen.count; i++)
        map_done(&slicing->seen.data[i].pods);
    vec_done(&slicing->seen);
    free(slicing->own);
}

static void want_slice(struct router *router, const struct slicing *slicing, size_t number)
{
    json_t *endpoints = endpoints_in(slicing, number);

    if (number >= slicing->slices && json_array_size(endpoints) == 0) {
        json_decref(endpoints); /* all its pods have moved */
        return;
    }
    CLEANUP(free_ptr) char *name = slice_name(slicing, number);
    json_t *metadata = metadata_of(router, slicing->service, name, slicing->class);
    json_t *labels = json_object_get(metadata, "labels");
    json_object_set_new(labels, SLICE_MANAGER_LABEL, json_string(SLICE_MANAGER));
    json_object_set_new(labels, SLICE_SERVICE_LABEL, json_string(slicing->name));
    want(router, &router->slices,
         json_pack("{s:s, s:s, s:o, s:s, s:o, s:[{s:s, s:s, s:i}]}", "apiVersion",
                   "discovery.k8s.io/v1", "kind", "EndpointSlice", "metadata", metadata,
                   "addressType", slicing->is_ipv6 ? "IPv6" : "IPv4", "endpoints", endpoints,
                   "ports", "name", "http", "protocol", "TCP", "port", slicing->service->port));
}

/* Service and slices of one name for these pods. */
static void route_pods(struct router *router, const struct gpu_service *service,
                       const char *name, const struct pod_list *pods)
{
    const char *class =
        strcmp(name, service->meta.name) == 0 ? "" : name + strlen(service->meta.name) + 1;
    CLEANUP(slicing_done)
    struct slicing slicing = {.service = service, .name = name, .class = class, .pods = pods};

    want(router, &router->services, service_object(router, service, name, class));
    /* Slices name their Service: none before it is seen to be ours. */
    if (!is_there(&router->services, service, name))
        return;
    slicing_init(&slicing, router);
    for (size_t s = 0; s < slicing.slices; s++)
        want_slice(router, &slicing, s);
    for (size_t i = 0; i < slicing.seen.count; i++)
        if (slicing.seen.data[i].number >= slicing.slices)
            want_slice(router, &slicing, slicing.seen.data[i].number);
}

/* ---- with a gateway --------------------------------------------------------------- */

struct class
{
    char name[ROUTING_CLASS_SIZE];
    double rate_rps; /* of its pods that are ready */
    struct pod_list pods;
    bool is_named; /* by the route */
};

struct classes {
    VEC(struct class) items;
};

static void classes_done(struct classes *classes)
{
    for (size_t i = 0; i < classes->items.count; i++)
        vec_done(&classes->items.data[i].pods.items);
    vec_done(&classes->items);
}

static struct class *class_of(struct classes *classes, double rate_rps)
{
    char name[ROUTING_CLASS_SIZE];

    routing_class(rate_rps, name);
    for (size_t i = 0; i < classes->items.count; i++)
        if (strcmp(classes->items.data[i].name, name) == 0)
            return &classes->items.data[i];
    struct class *class = vec_push(&classes->items);
    memcpy(class->name, name, sizeof name);
    return class;
}

static int compare_classes(const void *a, const void *b)
{
    const struct class *left = a, *right = b;

    return strcmp(left->name, right->name);
}

static json_t *parent_of(const char *gateway)
{
    const char *slash = strchr(gateway, '/');

    if (!slash)
        return json_pack("{s:s, s:s, s:s}", "group", "gateway.networking.k8s.io", "kind",
                         "Gateway", "name", gateway);
    return json_pack("{s:s, s:s, s:s#, s:s}", "group", "gateway.networking.k8s.io", "kind",
                     "Gateway", "namespace", gateway, (int)(slash - gateway), "name",
                     slash + 1);
}

static json_t *backends_of(const struct gpu_service *service, const struct classes *classes)
{
    double total = 0;
    json_t *list = json_array();

    for (size_t i = 0; i < classes->items.count; i++)
        total += classes->items.data[i].is_named ? classes->items.data[i].rate_rps : 0;
    for (size_t i = 0; i < classes->items.count; i++) {
        const struct class *class = &classes->items.data[i];
        if (!class->is_named)
            continue;
        CLEANUP(free_ptr)
        char *name = xasprintf("%s-%s", service->meta.name, class->name);
        double share = total > 0 ? class->rate_rps / total : 1;
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:i, s:I}", "group", "", "kind",
                                              "Service", "name", name, "port", service->port,
                                              "weight",
                                              (json_int_t)fmax(1, round(share * WEIGHT_MAX))));
    }
    return list;
}

/* Whether a slice of the Service is seen to list one of the pods. */
static bool is_listed(const struct router *router, const struct gpu_service *service,
                      const char *name, const struct pod_list *pods)
{
    CLEANUP(slicing_done)
    struct slicing slicing = {.service = service, .name = name, .pods = pods};

    slicing_init(&slicing, router);
    for (size_t i = 0; i < slicing.seen.count; i++)
        for (size_t p = 0; p < pods->items.count; p++)
            if (map_find(&slicing.seen.data[i].pods, pods->items.data[p]->meta.name) >= 0)
                return true;
    return false;
}

static void collect_classes(const struct service_pods *pods, struct classes *classes)
{
    for (size_t i = 0; i < pods->ready.items.count; i++) {
        const struct world_pod *pod = pods->ready.items.data[i];
        struct class *class = class_of(classes, pod->rate_rps);
        class->rate_rps += pod->rate_rps;
        vec_add(&class->pods.items, pod);
    }
    for (size_t i = 0; i < pods->coming.items.count; i++)
        (void)class_of(classes, pods->coming.items.data[i]->rate_rps);
    if (classes->items.count > 0)
        qsort(classes->items.data, classes->items.count, sizeof *classes->items.data,
              compare_classes);
}

/* Services and slices of the classes, and which of these the route names: those that have
 * somebody listed. What it names already stays while a pod is ready, whatever the slices'
 * cache shows. Returns whether all with pods are named. */
static bool route_classes(struct router *router, const struct gpu_service *service,
                          const json_t *route, struct classes *classes)
{
    bool all = true;

    for (size_t i = 0; i < classes->items.count; i++) {
        struct class *class = &classes->items.data[i];
        CLEANUP(free_ptr) char *name = xasprintf("%s-%s", service->meta.name, class->name);
        route_pods(router, service, name, &class->pods);
        if (class->pods.items.count == 0)
            continue;
        class->is_named = (route && routing_names(route, name)) ||
                          is_listed(router, service, name, &class->pods);
        all &= class->is_named;
    }
    return all;
}

static void route_by_weight(struct router *router, const struct gpu_service *service,
                            const struct service_pods *pods)
{
    assert(routing_is_weighted(router->world, service));
    CLEANUP(classes_done) struct classes classes = {0};
    CLEANUP(free_ptr)
    char *key = xasprintf("%s/%s", service->meta.namespace, service->meta.name);
    ptrdiff_t at = map_find(&router->routes.names, key);
    const json_t *route = at >= 0 ? router->routes.list->items[at] : NULL;

    collect_classes(pods, &classes);
    bool all = route_classes(router, service, route, &classes);
    /* Until there is a route, the Service leads to all pods: the first one does so too. */
    if (!route && (!all || pods->ready.items.count == 0))
        return;
    want(router, &router->routes,
         json_pack("{s:s, s:s, s:o, s:{s:[o], s:[{s:o}]}}", "apiVersion",
                   "gateway.networking.k8s.io/v1", "kind", "HTTPRoute", "metadata",
                   metadata_of(router, service, service->meta.name, ""), "spec", "parentRefs",
                   parent_of(service->gateway), "rules", "backendRefs",
                   backends_of(service, &classes)));
}

/* ---- the whole -------------------------------------------------------------------- */

static void collect_pods(struct router *router)
{
    for (size_t i = 0; i < router->world->pods.count; i++) {
        const struct world_pod *pod = &router->world->pods.data[i];
        map_put(&router->with_pods, pod->service, NULL);
        if (pod->ended || pod->meta.deleting || pod->draining_since_s > 0)
            continue;
        struct service_pods *pods = map_get(&router->pods, pod->service);
        if (!pods) {
            pods = xcalloc(1, sizeof *pods);
            map_put(&router->pods, pod->service, pods);
        }
        if (pod->ready && *pod->ip)
            vec_add(&pods->ready.items, pod);
        else if (pod->rate_rps > 0)
            vec_add(&pods->coming.items, pod);
    }
}

static void index_slices(struct router *router)
{
    CLEANUP(str_done) struct str key = STR_EMPTY;

    for (size_t i = 0; i < router->slices.list->count; i++) {
        const json_t *slice = router->slices.list->items[i];
        str_clear(&key);
        str_addf(&key, "%s/%s", kube_metadata(slice, "namespace"),
                 routing_slice_service(slice));
        struct positions *positions = map_get(&router->slices_of, key.bytes);
        if (!positions) {
            positions = xcalloc(1, sizeof *positions);
            map_put(&router->slices_of, key.bytes, positions);
        }
        vec_add(&positions->items, i);
    }
}

static void router_done(struct router *router)
{
    for (size_t i = 0; i < router->pods.count; i++) {
        struct service_pods *pods = router->pods.entries[i].value;
        vec_done(&pods->ready.items);
        vec_done(&pods->coming.items);
        free(pods);
    }
    map_done(&router->pods);
    map_done(&router->with_pods);
    for (size_t i = 0; i < router->slices_of.count; i++) {
        struct positions *positions = router->slices_of.entries[i].value;
        vec_done(&positions->items);
        free(positions);
    }
    map_done(&router->slices_of);
    there_done(&router->services);
    there_done(&router->slices);
    there_done(&router->routes);
}

void reconcile_routing(struct world *world, const struct gpu_pool *pool,
                       struct effects *effects)
{
    static const struct service_pods none;
    CLEANUP(router_done)
    struct router router = {.world = world, .pool = pool, .effects = effects};

    there_init(&router.services, &KIND_SERVICE, &world->sources.kube_services);
    there_init(&router.slices, &KIND_ENDPOINT_SLICE, &world->sources.endpoint_slices);
    there_init(&router.routes, &KIND_HTTP_ROUTE, &world->sources.routes);
    collect_pods(&router);
    index_slices(&router);
    for (size_t s = 0; s < world->services.count; s++) {
        const struct gpu_service *service = &world->services.data[s];
        const char *name = world->service_names.entries[s].key;
        if (strcmp(service->pool, pool->meta.name) != 0 ||
            (service->meta.deleting && map_find(&router.with_pods, name) < 0))
            continue;
        const struct service_pods *pods = map_get(&router.pods, name);

        pods = pods ? pods : &none;
        router.chain = (unsigned)s + 1;
        router.only_keeps = service->meta.deleting; /* its namespace may be going with it */
        route_pods(&router, service, service->meta.name, &pods->ready);
        if (routing_is_weighted(world, service))
            route_by_weight(&router, service, pods);
    }
    delete_unwanted(&router, &router.routes);
    delete_unwanted(&router, &router.slices);
    delete_unwanted(&router, &router.services);
}
