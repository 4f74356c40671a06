/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of a collection, kept up to date by a watch, and what changes among them. A list
 * is compared with what is known, so changes that no stream has told of are made up: deletions
 * too, and an object that was deleted and made again under its name (its UID is another one)
 * is a deletion and an addition. metadata.managedFields, often the larger half of an object, is
 * not kept: objects are never written back whole. Every object has apiVersion and kind.
 */
#ifndef TRANCHE_KUBE_CACHE_H
#define TRANCHE_KUBE_CACHE_H

#include "kube/watch.h"

struct kube_cache;

/* key: "namespace/name" or "name". before is NULL for an addition, after for a deletion; both
 * are borrowed. Objects of one resourceVersion are the same object: nothing is called. The
 * cache already is as after the change. */
struct kube_cache_handler {
    void (*changed)(void *context, const char *key, const json_t *before, const json_t *after);
    void (*synced)(void *context); /* a list was completed and compared; optional */
    void *context;
};

/* A cache that begins to list in the next turn of the client's loop. The handler is copied; its
 * context must outlive the cache. Never NULL. */
struct kube_cache *kube_cache_new(const struct kube_watch_options *options,
                                  const struct kube_cache_handler *handler);
/* Ends the watch and drops the objects; NULL is fine. Not from its handler. */
void kube_cache_free(struct kube_cache *cache);
CLEANUP_DEFINE_FREE(kube_cache)

/* The object under key, or NULL; borrowed until the next turn of the loop. */
const json_t *kube_cache_get(const struct kube_cache *cache, const char *key);
/* How many objects it holds. */
size_t kube_cache_count(const struct kube_cache *cache);
/* The next object from *position (0 to begin with), or NULL at the end; in the order in which
 * they were first seen. Not across turns of the loop. */
const json_t *kube_cache_next(const struct kube_cache *cache, size_t *position);
/* For synced and fresh: see watch.h. Borrowed. */
struct kube_watch *kube_cache_watch(const struct kube_cache *cache);

/* "namespace/name" or "name" of an object; owned by the caller. */
char *kube_object_key(const json_t *object);

#endif
