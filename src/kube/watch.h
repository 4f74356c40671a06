/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows a collection: a list in pages, then a watch from the list's resourceVersion.
 *
 *     the stream ends in order      watch again from the last resourceVersion (of an object or
 *                                   a bookmark), at once
 *     it breaks, or is silent       the same after a backoff
 *     410, as a status or as an     list anew without a resourceVersion
 *     ERROR event inside a 200
 *     no connection at all, an      list anew after a backoff: what is known may be of another
 *     unreadable or too long line,  age of the server
 *     three failures in a row
 *
 * A resourceVersion is an opaque text. Bookmarks are used when they come and never needed.
 */
#ifndef TRANCHE_KUBE_WATCH_H
#define TRANCHE_KUBE_WATCH_H

#include "kube/api.h"

enum kube_change { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED, KUBE_CHANGE_COUNT };

/* Hears the collection. A list is list_begin, any number of listed, list_end; list_begin may
 * come again before list_end when a list has to start over. No hook may free the watch. */
struct kube_watch_sink {
    void (*list_begin)(void *context);
    void (*listed)(void *context, json_t *object);
    void (*list_end)(void *context);
    void (*changed)(void *context, enum kube_change change, json_t *object);
    void *context;
};

struct kube_watch_options {
    struct kube_client *client; /* borrowed */
    struct kube_target target;  /* a collection: without name; texts are copied */
    const char *label_selector, *field_selector;
    unsigned page_items;     /* of a list; 0: 500 */
    unsigned least_seconds;  /* of a watch; its length is random, 0: 300 */
    unsigned most_seconds;   /* 0: twice the least */
    int64_t silence_ns;      /* after which a stream is dead; 0: its length and 30 s */
    int64_t backoff_ns;      /* after the first failure; 0: 800 ms; doubles */
    int64_t backoff_ns_most; /* 0: 30 s */
    uint64_t seed;           /* of lengths and jitter */
};

/* What a watch has lived through, for metrics and tests. */
struct kube_watch_counts {
    unsigned long lists, pages, streams, events, bookmarks, expired, failures;
};

struct kube_watch;

/* Begins in the next turn of the client's loop. */
struct kube_watch *kube_watch_new(const struct kube_watch_options *options,
                                  const struct kube_watch_sink *sink);
/* Ends it: the sink hears nothing more; NULL is fine. */
void kube_watch_free(struct kube_watch *watch);
CLEANUP_DEFINE_FREE(kube_watch)

/* A list was completed, at some time. */
bool kube_watch_is_synced(const struct kube_watch *watch);
/* A list was completed since the connection was last lost, and the stream that follows it is
 * open: only now may anything destructive be decided on what the sink has heard. */
bool kube_watch_is_fresh(const struct kube_watch *watch);
/* Counts since it began. */
struct kube_watch_counts kube_watch_counts(const struct kube_watch *watch);
/* The last failure; E_NONE when there was none since the last list or event. Borrowed. */
const struct error *kube_watch_error(const struct kube_watch *watch);

#endif
