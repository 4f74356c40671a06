/* SPDX-License-Identifier: Apache-2.0
 *
 * A series is found by a hash of what makes its events the same: object, reason, action. Its
 * Event's name has that hash and a number of its own, so a new series never meets an old one.
 */
#include "kube/event.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/vec.h"
#include "kube/table.h"

#define SECOND_NS INT64_C(1000000000)
#define PATCH_NS  (10 * SECOND_NS)
#define SERIES_NS (360 * SECOND_NS)

enum { NOTE_BYTES = 1024, NAME_BYTES = 200 };

struct series {
    struct kube_events *events;
    char *key;
    char *namespace, *name;
    long count;
    bool created, changed; /* changed: count is not on the server yet */
    int64_t last_ns;       /* the last event */
    int64_t sent_ns;       /* the last call */
    uint64_t call;
};

struct kube_events {
    struct kube_event_options options;
    char *controller, *instance;
    struct kube_loop *loop;
    struct kube_table series;
    struct kube_timer timer;
    struct kube_event_counts counts;
};

static void series_free(struct series *series)
{
    if (!series)
        return;
    if (series->call)
        kube_client_cancel(series->events->options.client, series->call);
    free(series->key);
    free(series->namespace);
    free(series->name);
    free(series);
}

/* What makes events the same. */
static char *key_of(const struct kube_event *event)
{
    char digest[72];
    CLEANUP(free_ptr)
    char *text = xasprintf(
        "%s\n%s\n%s\n%s\n%s\n%d", event->kind->kind, kube_metadata(event->object, "namespace"),
        kube_metadata(event->object, "name"), event->reason, event->action, event->warning);
    CLEANUP(free_ptr)
    char *whole = xasprintf("%s\n%s", text, kube_metadata(event->object, "uid"));

    file_sha256(whole, strlen(whole), digest);
    return xstrndup(digest + strlen("sha256:"), 16);
}

/* Bytes of text that fit into limit without cutting a UTF-8 character. */
static size_t fitting(const char *text, size_t limit)
{
    size_t length = strlen(text);

    if (length <= limit)
        return length;
    while (limit > 0 && ((unsigned char)text[limit] & 0xc0) == 0x80)
        limit--;
    return limit;
}

static json_t *regarding(const struct kube_event *event)
{
    static const char *const fields[] = {"name", "namespace", "uid", "resourceVersion"};
    CLEANUP(free_ptr) char *api_version = kube_api_version(event->kind);
    json_t *json =
        json_pack("{s:s, s:s}", "apiVersion", api_version, "kind", event->kind->kind);

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (*kube_metadata(event->object, fields[i]))
            json_object_set_new(json, fields[i],
                                json_string(kube_metadata(event->object, fields[i])));
    return json;
}

static json_t *body_of(const struct series *series, const struct kube_event *event)
{
    char now[28];
    CLEANUP(free_ptr) char *note = xstrndup(event->note, fitting(event->note, NOTE_BYTES));

    clock_wall_text_micro(now);
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}",
                     "apiVersion", "events.k8s.io/v1", "kind", "Event", "metadata", "name",
                     series->name, "namespace", series->namespace, "eventTime", now,
                     "reportingController", series->events->controller, "reportingInstance",
                     series->events->instance, "action", event->action, "reason", event->reason,
                     "note", note, "type", event->warning ? "Warning" : "Normal", "regarding",
                     regarding(event));
}

static void plan_flush(struct kube_events *events)
{
    if (!events->timer.loop)
        kube_timer_set(&events->timer, events->loop, kube_loop_now_ns(events->loop) + PATCH_NS);
}

static void on_sent(void *context, const struct kube_answer *answer)
{
    struct series *series = context;
    struct kube_events *events = series->events;

    series->call = 0;
    if (answer->error.code != E_NONE) {
        events->counts.failed++;
        /* The Event was not made, or is gone: the next event begins a new series. */
        if (!series->created || answer->error.code == E_NOT_FOUND) {
            kube_table_remove(&events->series, series->key);
            series_free(series);
        }
        return;
    }
    if (series->created)
        events->counts.patched++;
    else
        events->counts.created++;
    series->created = true;
}

static void start_call(struct series *series, const struct kube_call *call)
{
    series->sent_ns = kube_loop_now_ns(series->events->loop);
    series->changed = false;
    series->call = kube_client_start(series->events->options.client, call, on_sent, series);
}

static void patch(struct series *series)
{
    char now[28];

    clock_wall_text_micro(now);
    CLEANUP(json_decref_ptr)
    json_t *body = json_pack("{s:{s:I, s:s}}", "series", "count", (json_int_t)series->count,
                             "lastObservedTime", now);
    const struct kube_target target = {&KUBE_EVENT, series->namespace, series->name, NULL};
    start_call(series,
               &(struct kube_call){.verb = KUBE_MERGE_PATCH, .target = target, .body = body});
}

/* Patches what has changed, forgets what is over. */
static void on_flush(void *context)
{
    struct kube_events *events = context;
    int64_t now_ns = kube_loop_now_ns(events->loop);
    VEC(struct series *) over = {0};

    for (size_t i = 0; i < events->series.map.count; i++) {
        struct series *series = events->series.map.entries[i].value;
        if (!series || series->call)
            continue;
        if (series->changed && series->created)
            patch(series);
        else if (now_ns - series->last_ns >= SERIES_NS)
            vec_add(&over, series);
    }
    for (size_t i = 0; i < over.count; i++) {
        kube_table_remove(&events->series, over.data[i]->key);
        series_free(over.data[i]);
    }
    vec_done(&over);
    if (events->series.live > 0)
        plan_flush(events);
}

static void begin_series(struct kube_events *events, const struct kube_event *event, char *key)
{
    struct series *series = xcalloc(1, sizeof *series);
    const char *namespace = kube_metadata(event->object, "namespace");
    const char *name = kube_metadata(event->object, "name");
    struct timespec now;

    /* Names end in the time, as client-go's do: a series after a restart is a new object. */
    clock_gettime(CLOCK_REALTIME, &now);
    *series = (struct series){
        .events = events,
        .key = key,
        .namespace = xstrdup(*namespace ? namespace : "kube-system"),
        .name = xasprintf("%.*s.%s%llx", (int)fitting(name, NAME_BYTES), name, key,
                          now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec),
        .count = 1,
        .last_ns = kube_loop_now_ns(events->loop),
    };
    kube_table_put(&events->series, key, series);
    CLEANUP(json_decref_ptr) json_t *body = body_of(series, event);
    const struct kube_target collection = {&KUBE_EVENT, series->namespace, NULL, NULL};
    start_call(series,
               &(struct kube_call){.verb = KUBE_CREATE, .target = collection, .body = body});
    plan_flush(events);
}

void kube_events_emit(struct kube_events *events, const struct kube_event *event)
{
    CLEANUP(free_ptr) char *key = key_of(event);
    struct series *series = kube_table_get(&events->series, key);

    assert(*event->reason && *event->action && *kube_metadata(event->object, "name"));
    if (series) {
        series->count++;
        series->changed = true;
        series->last_ns = kube_loop_now_ns(events->loop);
    } else if (events->series.live >= KUBE_EVENT_SERIES_MAX) {
        events->counts.dropped++;
    } else {
        begin_series(events, event, STEAL(key));
    }
}

struct kube_events *kube_events_new(const struct kube_event_options *options)
{
    struct kube_events *events = xcalloc(1, sizeof *events);

    assert(*options->controller && *options->instance);
    events->options = *options;
    events->controller = xstrdup(options->controller);
    events->instance = xstrdup(options->instance);
    events->loop = kube_client_loop(options->client);
    events->timer = (struct kube_timer){.fire = on_flush, .context = events};
    return events;
}

void kube_events_free(struct kube_events *events)
{
    if (!events)
        return;
    kube_timer_stop(&events->timer);
    for (size_t i = 0; i < events->series.map.count; i++)
        series_free(events->series.map.entries[i].value);
    kube_table_done(&events->series);
    free(events->controller);
    free(events->instance);
    free(events);
}

struct kube_event_counts kube_events_counts(const struct kube_events *events)
{
    return events->counts;
}
