/* SPDX-License-Identifier: Apache-2.0
 *
 * Every list has a number; what bears an older one when the list ends is gone.
 */
#include "kube/cache.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/vec.h"
#include "kube/table.h"

struct entry {
    char *key;
    json_t *object;
    uint64_t list; /* the last list or stream that showed it */
};

struct kube_cache {
    struct kube_watch *watch;
    struct kube_cache_handler handler;
    const struct kube_kind *kind;
    struct kube_table entries;
    uint64_t list;
};

char *kube_object_key(const json_t *object)
{
    const char *namespace = kube_metadata(object, "namespace");
    const char *name = kube_metadata(object, "name");

    return *namespace ? xasprintf("%s/%s", namespace, name) : xstrdup(name);
}

static void entry_free(struct entry *entry)
{
    if (!entry)
        return;
    json_decref(entry->object);
    free(entry->key);
    free(entry);
}

static void tell(struct kube_cache *cache, const char *key, const json_t *before,
                 const json_t *after)
{
    cache->handler.changed(cache->handler.context, key, before, after);
}

/* Takes an entry out, then tells. */
static void drop(struct kube_cache *cache, struct entry *entry)
{
    kube_table_remove(&cache->entries, entry->key);
    tell(cache, entry->key, entry->object, NULL);
    entry_free(entry);
}

static bool same(const json_t *a, const json_t *b, const char *field)
{
    return strcmp(kube_metadata(a, field), kube_metadata(b, field)) == 0;
}

static void put(struct kube_cache *cache, json_t *object)
{
    CLEANUP(free_ptr) char *key = kube_object_key(object);
    struct entry *entry = kube_table_get(&cache->entries, key);

    if (entry && !same(entry->object, object, "uid")) {
        drop(cache, entry);
        entry = NULL;
    }
    if (!entry) {
        entry = xcalloc(1, sizeof *entry);
        entry->key = xstrdup(key);
        kube_table_put(&cache->entries, key, entry);
    }
    entry->list = cache->list;
    json_object_del(json_object_get(object, "metadata"), "managedFields");
    json_t *before = entry->object;
    if (before && same(before, object, "resourceVersion"))
        return;
    entry->object = json_incref(object);
    tell(cache, key, before, object);
    json_decref(before);
}

static void on_list_begin(void *context)
{
    struct kube_cache *cache = context;

    cache->list++;
}

/* The API server leaves apiVersion and kind out of a list's items, not out of events. */
static void on_listed(void *context, json_t *object)
{
    struct kube_cache *cache = context;

    if (!json_object_get(object, "kind")) {
        CLEANUP(free_ptr) char *version = kube_api_version(cache->kind);
        json_object_set_new(object, "apiVersion", json_string(version));
        json_object_set_new(object, "kind", json_string(cache->kind->kind));
    }
    put(cache, object);
}

static void on_list_end(void *context)
{
    struct kube_cache *cache = context;
    VEC(struct entry *) gone = {0};

    for (size_t i = 0; i < cache->entries.map.count; i++) {
        struct entry *entry = cache->entries.map.entries[i].value;
        if (entry && entry->list != cache->list)
            vec_add(&gone, entry);
    }
    for (size_t i = 0; i < gone.count; i++)
        drop(cache, gone.data[i]);
    vec_done(&gone);
    if (cache->handler.synced)
        cache->handler.synced(cache->handler.context);
}

static void on_changed(void *context, enum kube_change change, json_t *object)
{
    struct kube_cache *cache = context;

    if (change != KUBE_DELETED) {
        put(cache, object);
        return;
    }
    CLEANUP(free_ptr) char *key = kube_object_key(object);
    struct entry *entry = kube_table_get(&cache->entries, key);
    if (entry)
        drop(cache, entry);
}

struct kube_cache *kube_cache_new(const struct kube_watch_options *options,
                                  const struct kube_cache_handler *handler)
{
    struct kube_cache *cache = xcalloc(1, sizeof *cache);

    assert(handler->changed);
    cache->handler = *handler;
    cache->kind = options->target.kind;
    cache->watch =
        kube_watch_new(options, &(struct kube_watch_sink){.list_begin = on_list_begin,
                                                          .listed = on_listed,
                                                          .list_end = on_list_end,
                                                          .changed = on_changed,
                                                          .context = cache});
    return cache;
}

void kube_cache_free(struct kube_cache *cache)
{
    if (!cache)
        return;
    kube_watch_free(cache->watch);
    for (size_t i = 0; i < cache->entries.map.count; i++)
        entry_free(cache->entries.map.entries[i].value);
    kube_table_done(&cache->entries);
    free(cache);
}

const json_t *kube_cache_get(const struct kube_cache *cache, const char *key)
{
    const struct entry *entry = kube_table_get(&cache->entries, key);

    return entry ? entry->object : NULL;
}

size_t kube_cache_count(const struct kube_cache *cache)
{
    return cache->entries.live;
}

const json_t *kube_cache_next(const struct kube_cache *cache, size_t *position)
{
    while (*position < cache->entries.map.count) {
        const struct entry *entry = cache->entries.map.entries[(*position)++].value;
        if (entry)
            return entry->object;
    }
    return NULL;
}

struct kube_watch *kube_cache_watch(const struct kube_cache *cache)
{
    return cache->watch;
}
