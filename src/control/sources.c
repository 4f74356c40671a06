/* SPDX-License-Identifier: Apache-2.0
 *
 * One table of the kinds. An optional API is looked for by a list of one object; says_absent()
 * tells which answers mean that it is not served.
 */
#include "control/sources.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "control/actuator_internal.h"
#include "control/kinds.h"

#define SECOND_NS    INT64_C(1000000000)
#define DISCOVERY_NS (15 * SECOND_NS)

#define OURS LABEL_MANAGED_BY "=tranche"

/* Looks in a row that must say so before an API is taken for absent, where one is too few. */
enum { LOOKS_IN_DOUBT = 3 };

enum api { API_ALWAYS, API_DRA, API_GATEWAY, API_COUNT };

static const struct source_row {
    const struct kube_kind *kind;
    const char *selector;
    enum api api;
    size_t offset; /* of the list in struct world_sources */
} source_table[] = {
    {&KIND_GPU_POOL, NULL, API_ALWAYS, offsetof(struct world_sources, pools)},
    {&KIND_GPU_SERVICE, NULL, API_ALWAYS, offsetof(struct world_sources, services)},
    {&KIND_PERF_PROFILE, NULL, API_ALWAYS, offsetof(struct world_sources, profiles)},
    {&KIND_PARTITION_PLAN, NULL, API_ALWAYS, offsetof(struct world_sources, plans)},
    {&KIND_TRANSITION, NULL, API_ALWAYS, offsetof(struct world_sources, transitions)},
    {&KIND_NODE_GPU_STATE, NULL, API_ALWAYS, offsetof(struct world_sources, node_states)},
    {&KUBE_NODE, NULL, API_ALWAYS, offsetof(struct world_sources, nodes)},
    {&KUBE_POD, OURS, API_ALWAYS, offsetof(struct world_sources, pods)},
    {&KIND_SERVICE, OURS, API_ALWAYS, offsetof(struct world_sources, kube_services)},
    {&KIND_ENDPOINT_SLICE, OURS, API_ALWAYS, offsetof(struct world_sources, endpoint_slices)},
    {&KIND_HTTP_ROUTE, OURS, API_GATEWAY, offsetof(struct world_sources, routes)},
    {&KIND_RESOURCE_CLAIM, NULL, API_DRA, offsetof(struct world_sources, claims)},
    {&KIND_RESOURCE_SLICE, NULL, API_DRA, offsetof(struct world_sources, resource_slices)},
};
enum { SOURCES = sizeof source_table / sizeof *source_table };

/* The kind by which an API is looked for. */
static const struct kube_kind *const api_table[API_COUNT] = {
    [API_DRA] = &KIND_RESOURCE_SLICE,
    [API_GATEWAY] = &KIND_HTTP_ROUTE,
};

struct source {
    struct sources *all;
    const struct source_row *row;
    struct kube_cache *cache; /* NULL: not served */
};

struct probe {
    struct sources *all;
    enum api api;
    uint64_t call;
    unsigned denials; /* looks in a row that said no */
    bool known, served;
};

struct sources {
    struct sources_options options;
    struct source items[SOURCES];
    struct probe probes[API_COUNT];
    struct kube_timer timer;
};

static const char *spec_pool(const json_t *object)
{
    const char *pool =
        json_string_value(json_object_get(json_object_get(object, "spec"), "pool"));

    return pool ? pool : "default";
}

static const char *label_pool(const json_t *object)
{
    return json_string_value(json_object_get(
        json_object_get(json_object_get(object, "metadata"), "labels"), LABEL_POOL));
}

/* The pool an object belongs to; NULL: perhaps to all. */
static const char *pool_of(const struct kube_kind *kind, const json_t *object)
{
    if (kind == &KIND_GPU_POOL)
        return kube_metadata(object, "name");
    if (kind == &KIND_GPU_SERVICE || kind == &KIND_PARTITION_PLAN || kind == &KIND_TRANSITION)
        return spec_pool(object);
    if (kind == &KUBE_POD || kind == &KIND_SERVICE || kind == &KIND_ENDPOINT_SLICE ||
        kind == &KIND_HTTP_ROUTE || kind == &KIND_RESOURCE_CLAIM)
        return label_pool(object);
    return NULL;
}

static bool same_json(const json_t *a, const json_t *b)
{
    return (!a && !b) || (a && b && json_equal(a, b));
}

/* A kubelet writes its node every few minutes, only to say that all is as before; with a
 * thousand nodes that would be a round every moment. */
static bool node_matters(const json_t *before, const json_t *after)
{
    static const char *const metadata_fields[] = {"labels", "annotations", "deletionTimestamp"};
    const json_t *was = json_object_get(before, "metadata");
    const json_t *is = json_object_get(after, "metadata");
    const char *was_ready = json_text(object_condition(before, "Ready"), "status");
    const char *is_ready = json_text(object_condition(after, "Ready"), "status");

    if (!before || !after || strcmp(was_ready, is_ready) != 0)
        return true;
    for (size_t i = 0; i < sizeof metadata_fields / sizeof *metadata_fields; i++)
        if (!same_json(json_object_get(was, metadata_fields[i]),
                       json_object_get(is, metadata_fields[i])))
            return true;
    return !same_json(json_object_get(before, "spec"), json_object_get(after, "spec"));
}

/* Claims of others count by the devices that they hold. */
static bool claim_matters(const json_t *before, const json_t *after)
{
    const json_t *was = json_object_get(json_object_get(before, "status"), "allocation");
    const json_t *is = json_object_get(json_object_get(after, "status"), "allocation");
    bool ours = label_pool(before) || label_pool(after);

    return ours || !same_json(was, is);
}

/* Which nodes a pool has follows from what the others select, and which of them are there. */
static bool pool_matters_to_others(const json_t *before, const json_t *after)
{
    return !before || !after ||
           !same_json(json_object_get(json_object_get(before, "spec"), "nodeSelector"),
                      json_object_get(json_object_get(after, "spec"), "nodeSelector"));
}

static void on_changed(void *context, const char *key, const json_t *before,
                       const json_t *after)
{
    const struct source *source = context;
    const struct sources_options *options = &source->all->options;
    const struct kube_kind *kind = source->row->kind;

    (void)key;
    if (options->seen)
        options->seen(options->context, kind, before, after);
    if (kind == &KUBE_NODE && !node_matters(before, after))
        return;
    if (kind == &KIND_RESOURCE_CLAIM && !claim_matters(before, after))
        return;
    if (kind == &KIND_GPU_POOL && pool_matters_to_others(before, after))
        options->changed(options->context, NULL);
    const char *was = before ? pool_of(kind, before) : NULL;
    const char *is = after ? pool_of(kind, after) : NULL;
    if (is || !was)
        options->changed(options->context, is);
    if (was && (!is || strcmp(was, is) != 0))
        options->changed(options->context, was);
}

static void on_synced(void *context)
{
    const struct source *source = context;

    source->all->options.changed(source->all->options.context, NULL);
}

static void start_cache(struct source *source)
{
    size_t index = (size_t)(source - source->all->items);
    const struct kube_watch_options options = {
        .client = source->all->options.client,
        .target = {.kind = source->row->kind},
        .label_selector = source->row->selector,
        .seed = source->all->options.seed + index,
        .backoff_ns_most = 5 * SECOND_NS,
    };

    source->cache = kube_cache_new(&options, &(struct kube_cache_handler){.changed = on_changed,
                                                                          .synced = on_synced,
                                                                          .context = source});
}

/* Starts, or ends, what depends on an API. */
static void follow_api(struct sources *sources, enum api api, bool served)
{
    for (size_t i = 0; i < SOURCES; i++) {
        struct source *source = &sources->items[i];
        if (source->row->api != api)
            continue;
        if (served && !source->cache) {
            start_cache(source);
        } else if (!served && source->cache) {
            kube_cache_free(source->cache);
            source->cache = NULL;
        }
    }
    sources->options.changed(sources->options.context, NULL);
}

/* Whether an answer means that an API is not served. At the start one 404 says so, and 403 in
 * a row: that is how an installation without Gateway API says that it wants none. Once an API
 * was served, a wrong no would free its caches, and what is decided without them takes the
 * traffic from live routes: then it takes 404 in a row, and a 403 (a role that is being
 * changed, an authorizer that is away) says nothing. A 401 is about our token, not the API. */
static bool says_absent(struct probe *probe, int status)
{
    bool was_served = probe->known && probe->served;
    bool no = status == 404 || (status == 403 && !was_served);

    probe->denials = no ? probe->denials + 1 : 0;
    return probe->denials >= LOOKS_IN_DOUBT || (status == 404 && !probe->known);
}

static void on_probed(void *context, const struct kube_answer *answer)
{
    struct probe *probe = context;
    bool served = answer->error.code == E_NONE;
    bool absent = says_absent(probe, answer->status);

    assert(!served || !absent);
    probe->call = 0;
    if (!served && !absent)
        return; /* the next look tells */
    bool news = !probe->known || probe->served != served;
    probe->known = true;
    probe->served = served;
    if (news)
        follow_api(probe->all, probe->api, served);
}

static void on_discovery(void *context)
{
    struct sources *sources = context;
    struct kube_loop *loop = kube_client_loop(sources->options.client);
    bool all_known = true;

    for (enum api api = API_ALWAYS + 1; api < API_COUNT; api++) {
        struct probe *probe = &sources->probes[api];
        all_known = all_known && probe->known;
        if (probe->call)
            continue;
        const struct kube_call call = {
            .verb = KUBE_LIST, .target = {.kind = api_table[api]}, .limit = 1, .attempts = 1};
        probe->call = kube_client_start(sources->options.client, &call, on_probed, probe);
    }
    kube_timer_set(&sources->timer, loop,
                   kube_loop_now_ns(loop) +
                       (all_known ? sources->options.discovery_ns : SECOND_NS));
}

struct sources *sources_new(const struct sources_options *options)
{
    struct sources *sources = xcalloc(1, sizeof *sources);
    struct kube_loop *loop = kube_client_loop(options->client);

    assert(options->changed);
    sources->options = *options;
    if (!sources->options.discovery_ns)
        sources->options.discovery_ns = DISCOVERY_NS;
    for (size_t i = 0; i < SOURCES; i++) {
        sources->items[i] = (struct source){.all = sources, .row = &source_table[i]};
        if (source_table[i].api == API_ALWAYS)
            start_cache(&sources->items[i]);
    }
    for (int api = 0; api < API_COUNT; api++)
        sources->probes[api] = (struct probe){.all = sources, .api = (enum api)api};
    sources->timer = (struct kube_timer){.fire = on_discovery, .context = sources};
    kube_timer_set(&sources->timer, loop, kube_loop_now_ns(loop));
    return sources;
}

void sources_free(struct sources *sources)
{
    if (!sources)
        return;
    kube_timer_stop(&sources->timer);
    for (int api = 0; api < API_COUNT; api++)
        if (sources->probes[api].call)
            kube_client_cancel(sources->options.client, sources->probes[api].call);
    for (size_t i = 0; i < SOURCES; i++)
        kube_cache_free(sources->items[i].cache);
    free(sources);
}

/* Whether every API is known, and every cache that is to be there satisfies `is`. */
static bool all_caches(const struct sources *sources,
                       bool (*is)(const struct kube_watch *watch))
{
    for (int api = API_ALWAYS + 1; api < API_COUNT; api++)
        if (!sources->probes[api].known)
            return false;
    for (size_t i = 0; i < SOURCES; i++) {
        const struct kube_cache *cache = sources->items[i].cache;
        if (cache && !is(kube_cache_watch(cache)))
            return false;
    }
    return true;
}

bool sources_are_synced(const struct sources *sources)
{
    return all_caches(sources, kube_watch_is_synced);
}

bool sources_are_fresh(const struct sources *sources)
{
    return all_caches(sources, kube_watch_is_fresh);
}

bool sources_lack_kinds(const struct sources *sources, struct str *kinds)
{
    bool lack = false;

    for (size_t i = 0; i < SOURCES; i++) {
        const struct kube_kind *kind = source_table[i].kind;
        const struct kube_cache *cache = sources->items[i].cache;
        if (!cache || strcmp(kind->group, CONTROL_GROUP) != 0)
            continue;
        const struct kube_watch *watch = kube_cache_watch(cache);
        enum error_code code = kube_watch_error(watch)->code;
        if (code == E_NONE && !kube_watch_is_synced(watch))
            return false;
        if (code == E_NOT_FOUND)
            str_addf(kinds, "%s%s", lack ? ", " : "", kind->kind);
        lack = lack || code == E_NOT_FOUND;
    }
    return lack;
}

/* What is wrong with the first cache that does not satisfy `is`. */
static const char *trouble(const struct sources *sources,
                           bool (*is)(const struct kube_watch *watch))
{
    for (size_t i = 0; i < SOURCES; i++) {
        const struct kube_cache *cache = sources->items[i].cache;
        if (!cache || is(kube_cache_watch(cache)))
            continue;
        const struct error *error = kube_watch_error(kube_cache_watch(cache));
        return error->code != E_NONE ? error->text : source_table[i].kind->plural;
    }
    return all_caches(sources, is) ? "" : "discovery";
}

const char *sources_trouble(const struct sources *sources)
{
    return sources_are_synced(sources) ? trouble(sources, kube_watch_is_fresh)
                                       : trouble(sources, kube_watch_is_synced);
}

void sources_each_pool(const struct sources *sources,
                       void (*each)(void *context, const char *pool), void *context)
{
    const struct kube_cache *pools = sources->items[0].cache;
    size_t position = 0;
    const json_t *object;

    assert(source_table[0].kind == &KIND_GPU_POOL);
    while ((object = kube_cache_next(pools, &position)))
        each(context, kube_metadata(object, "name"));
}

/* The highest epoch that a field of a kind's objects has. */
static long long highest_of(const struct sources *sources, const struct kube_kind *kind,
                            const char *part, const char *field)
{
    long long highest = -1;

    for (size_t i = 0; i < SOURCES; i++) {
        size_t position = 0;
        const json_t *object;
        if (source_table[i].kind != kind)
            continue;
        while ((object = kube_cache_next(sources->items[i].cache, &position))) {
            const json_t *value = json_object_get(json_object_get(object, part), field);
            long long epoch = json_is_integer(value) ? json_integer_value(value) : -1;
            if (epoch > highest && epoch <= SOURCES_EPOCH_MAX)
                highest = epoch;
        }
    }
    return highest;
}

long long sources_highest_epoch(const struct sources *sources)
{
    static const struct {
        const struct kube_kind *kind;
        const char *part, *field;
    } fields[] = {{&KIND_TRANSITION, "status", "epoch"},
                  {&KIND_NODE_GPU_STATE, "spec", "epoch"},
                  {&KIND_NODE_GPU_STATE, "status", "observedEpoch"}};
    long long highest = -1;

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        long long epoch = highest_of(sources, fields[i].kind, fields[i].part, fields[i].field);
        highest = epoch > highest ? epoch : highest;
    }
    return highest;
}

static struct world_list take_list(struct snapshot *snapshot, const struct kube_cache *cache)
{
    size_t count = cache ? kube_cache_count(cache) : 0, position = 0, n = 0;
    const json_t **items = xcalloc(count ? count : 1, sizeof *items);
    const json_t *object;

    vec_add(&snapshot->lists, items);
    while (cache && (object = kube_cache_next(cache, &position))) {
        assert(n < count);
        items[n++] = object;
        vec_add(&snapshot->references, json_incref((json_t *)object));
    }
    return (struct world_list){.items = items, .count = n};
}

void snapshot_take(const struct sources *sources, struct snapshot *ret_snapshot)
{
    struct world_sources *world = &ret_snapshot->world;

    assert(sources_are_synced(sources));
    *ret_snapshot = (struct snapshot){0};
    for (size_t i = 0; i < SOURCES; i++) {
        struct world_list *list = (void *)((char *)world + source_table[i].offset);
        *list = take_list(ret_snapshot, sources->items[i].cache);
    }
    world->has_dra = sources->probes[API_DRA].served;
    world->has_gateway = sources->probes[API_GATEWAY].served;
    for (size_t i = 0; i < world->resource_slices.count && !world->has_dynamic_mig; i++)
        world->has_dynamic_mig = slice_offers_partitions(world->resource_slices.items[i]);
    world->fresh = sources_are_fresh(sources);
}

void snapshot_done(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->references.count; i++)
        json_decref(snapshot->references.data[i]);
    for (size_t i = 0; i < snapshot->lists.count; i++)
        free(snapshot->lists.data[i]);
    vec_done(&snapshot->references);
    vec_done(&snapshot->lists);
}

size_t sources_count(const struct sources *sources)
{
    (void)sources;
    return SOURCES;
}

bool sources_figures(const struct sources *sources, size_t index,
                     struct source_figures *ret_figures)
{
    assert(index < SOURCES);
    const struct kube_cache *cache = sources->items[index].cache;
    if (!cache)
        return false;
    const struct kube_watch *watch = kube_cache_watch(cache);
    *ret_figures = (struct source_figures){.kind = source_table[index].kind->kind,
                                           .objects = kube_cache_count(cache),
                                           .counts = kube_watch_counts(watch),
                                           .synced = kube_watch_is_synced(watch),
                                           .fresh = kube_watch_is_fresh(watch)};
    return true;
}
