/* SPDX-License-Identifier: Apache-2.0
 *
 * Events (events.k8s.io/v1) about objects, for people who look. Best effort: they are sent
 * beside other work, a failure is counted and no more. Events that say the same of the same
 * object become a series: one Event whose count and last time are patched, at most once in
 * ten seconds. A series ends after six minutes without news.
 */
#ifndef TRANCHE_KUBE_EVENT_H
#define TRANCHE_KUBE_EVENT_H

#include "kube/api.h"

enum { KUBE_EVENT_SERIES_MAX = 1024 }; /* remembered at once; further events are dropped */

struct kube_event_options {
    struct kube_client *client; /* borrowed */
    const char *controller;     /* reportingController: "tranche.dev/controller" */
    const char *instance;       /* reportingInstance: the pod's name */
};

struct kube_event {
    const struct kube_kind *kind;
    const json_t *object; /* what it is about: its metadata are used */
    bool warning;
    const char *reason; /* "StepDone": one word, at most 128 bytes */
    const char *action; /* what was being done: "CreateInstance", at most 128 bytes */
    const char *note;   /* for people; cut at 1024 bytes */
};

struct kube_event_counts {
    unsigned long created, patched, failed, dropped;
};

struct kube_events;

/* Never NULL; controller and instance are copied. */
struct kube_events *kube_events_new(const struct kube_event_options *options);
/* Series that were not told yet are lost; NULL is fine. */
void kube_events_free(struct kube_events *events);
CLEANUP_DEFINE_FREE(kube_events)

/* Returns at once; may be called from a callback of the loop. Events about objects without
 * namespace go to the namespace kube-system, where every
 * API server takes them. */
void kube_events_emit(struct kube_events *events, const struct kube_event *event);
/* What became of events since the start. */
struct kube_event_counts kube_events_counts(const struct kube_events *events);

#endif
