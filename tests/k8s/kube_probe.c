/* SPDX-License-Identifier: Apache-2.0
 *
 * src/kube as a process that a test steers: it reads one JSON command a line from standard
 * input and writes what it hears to standard output, one JSON object a line.
 *
 *     kube_probe KUBECONFIG
 *
 *     {"op": "call", "id": 1, "verb": "get", "kind": {...}, "namespace": "default", "name":
 * "a"} → {"id": 1, "status": 200, "error": "E_NONE", "reason": "", "sent": 1, "json": {...}}
 *     {"op": "watch", "kind": {...}, "page": 2}   → {"heard": "added", "key": "a"} ...,
 * "synced"
 *     {"op": "cache", "id": 3}                    → counts, keys, synced, fresh
 *     {"op": "lease", "namespace": ..., "name": ..., "identity": ..., "duration_s": 3, ...}
 *         → {"heard": "started", "epoch": 0}, {"heard": "stopped"}
 *     {"op": "leader", "id": 4}                   → holds, epoch, holder
 *     {"op": "release", "id": 5}
 *     {"op": "event", "kind": {...}, "object": {...}, "reason": ..., "action": ..., "note":
 * ...}
 *     {"op": "events", "id": 6}                   → counts
 *
 * kind: {"group", "version", "plural", "kind", "namespaced"}. It ends at the end of the input.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "kube/cache.h"
#include "kube/event.h"
#include "kube/http.h"
#include "kube/lease.h"

#define SECOND INT64_C(1000000000)

struct probe {
    struct kube_loop *loop;
    struct kube_client *client;
    struct kube_cache *cache;
    struct kube_lease *lease;
    struct kube_events *events;
    struct str input;
    bool ended;
};

static void say(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

static const char *text_of(const json_t *command, const char *field)
{
    return json_string_value(json_object_get(command, field));
}

static long long number_of(const json_t *command, const char *field)
{
    return json_integer_value(json_object_get(command, field));
}

/* Borrows from the command, but for *kind, which the caller keeps. */
static struct kube_target target_of(const json_t *command, struct kube_kind *kind)
{
    const json_t *from = json_object_get(command, "kind");

    *kind = (struct kube_kind){.group = text_of(from, "group"),
                               .version = text_of(from, "version"),
                               .plural = text_of(from, "plural"),
                               .kind = text_of(from, "kind"),
                               .namespaced = json_is_true(json_object_get(from, "namespaced"))};
    return (struct kube_target){.kind = kind,
                                .namespace = text_of(command, "namespace"),
                                .name = text_of(command, "name"),
                                .subresource = text_of(command, "subresource")};
}

/* ---- calls ---- */

static void on_answer(void *context, const struct kube_answer *answer)
{
    json_t *id = context;

    say(json_pack("{s:o, s:i, s:s, s:s, s:s, s:i, s:b, s:f, s:O*}", "id", id, "status",
                  answer->status, "error", error_code_name(answer->error.code), "text",
                  answer->error.text, "reason", answer->reason, "sent", (int)answer->sent,
                  "unknown", answer->unknown, "retry_after_s",
                  (double)answer->retry_after_ns / (double)SECOND, "json", answer->json));
}

static void run_call(struct probe *probe, const json_t *command)
{
    static const char *const verbs[] = {
        [KUBE_GET] = "get",       [KUBE_LIST] = "list",         [KUBE_CREATE] = "create",
        [KUBE_DELETE] = "delete", [KUBE_MERGE_PATCH] = "merge", [KUBE_APPLY] = "apply"};
    struct kube_kind kind;
    struct kube_call call = {
        .target = target_of(command, &kind),
        .body = json_object_get(command, "body"),
        .label_selector = text_of(command, "label_selector"),
        .field_selector = text_of(command, "field_selector"),
        .continue_token = text_of(command, "continue"),
        .limit = (unsigned)number_of(command, "limit"),
        .resource_version = text_of(command, "resource_version"),
        .uid = text_of(command, "uid"),
        .has_grace = json_object_get(command, "grace_s") != NULL,
        .grace_seconds = number_of(command, "grace_s"),
        .field_manager = text_of(command, "field_manager"),
        .force = json_is_true(json_object_get(command, "force")),
        .attempts = (unsigned)number_of(command, "attempts"),
        .timeout_ns = number_of(command, "timeout_s") * SECOND,
    };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i], text_of(command, "verb")) == 0)
            call.verb = (enum kube_verb)i;
    kube_client_start(probe->client, &call, on_answer,
                      json_incref(json_object_get(command, "id")));
}

/* ---- the cache ---- */

static void on_changed(void *context, const char *key, const json_t *before,
                       const json_t *after)
{
    (void)context;
    const char *what = !before ? "added" : after ? "modified" : "deleted";

    say(json_pack("{s:s, s:s, s:s}", "heard", what, "key", key, "version",
                  kube_metadata(after ? after : before, "resourceVersion")));
}

static void on_synced(void *context)
{
    (void)context;
    say(json_pack("{s:s}", "heard", "synced"));
}

static void run_watch(struct probe *probe, const json_t *command)
{
    struct kube_kind *kind = xcalloc(1, sizeof *kind); /* for as long as the process */
    json_incref((json_t *)command);                    /* so are the texts in it */
    const struct kube_watch_options options = {
        .client = probe->client,
        .target = target_of(command, kind),
        .label_selector = text_of(command, "label_selector"),
        .page_items = (unsigned)number_of(command, "page"),
        .least_seconds = (unsigned)number_of(command, "least_s"),
        .most_seconds = (unsigned)number_of(command, "most_s"),
        .backoff_ns = number_of(command, "backoff_ms") * SECOND / 1000,
        .seed = (uint64_t)getpid(),
    };
    probe->cache = kube_cache_new(
        &options, &(struct kube_cache_handler){.changed = on_changed, .synced = on_synced});
}

static void run_cache(struct probe *probe, const json_t *command)
{
    const struct kube_watch *watch = kube_cache_watch(probe->cache);
    struct kube_watch_counts counts = kube_watch_counts(watch);
    json_t *objects = json_object();
    const json_t *object;
    size_t position = 0;

    while ((object = kube_cache_next(probe->cache, &position))) {
        CLEANUP(free_ptr) char *key = kube_object_key(object);
        json_object_set(objects, key, (json_t *)object);
    }
    say(json_pack("{s:O, s:b, s:b, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "id",
                  json_object_get(command, "id"), "synced", kube_watch_is_synced(watch),
                  "fresh", kube_watch_is_fresh(watch), "objects", objects, "lists",
                  (json_int_t)counts.lists, "pages", (json_int_t)counts.pages, "streams",
                  (json_int_t)counts.streams, "events", (json_int_t)counts.events, "bookmarks",
                  (json_int_t)counts.bookmarks, "expired", (json_int_t)counts.expired,
                  "failures", (json_int_t)counts.failures));
}

/* ---- the lease ---- */

static void on_started(void *context, long long epoch)
{
    (void)context;
    say(json_pack("{s:s, s:I}", "heard", "started", "epoch", (json_int_t)epoch));
}

static void on_stopped(void *context)
{
    (void)context;
    say(json_pack("{s:s}", "heard", "stopped"));
}

static void run_lease(struct probe *probe, const json_t *command)
{
    json_incref((json_t *)command); /* its texts are used for as long as the process */
    probe->lease = kube_lease_new(&(struct kube_lease_options){
        .client = probe->client,
        .namespace = text_of(command, "namespace"),
        .name = text_of(command, "name"),
        .identity = text_of(command, "identity"),
        .duration_ns = number_of(command, "duration_s") * SECOND,
        .renew_deadline_ns = number_of(command, "deadline_s") * SECOND,
        .retry_ns = number_of(command, "retry_ms") * SECOND / 1000,
        .started = on_started,
        .stopped = on_stopped,
    });
}

static void run_leader(struct probe *probe, const json_t *command)
{
    say(json_pack("{s:O, s:b, s:I, s:s}", "id", json_object_get(command, "id"), "holds",
                  kube_lease_holds(probe->lease), "epoch",
                  (json_int_t)kube_lease_epoch(probe->lease), "holder",
                  kube_lease_holder(probe->lease)));
}

static void run_release(struct probe *probe, const json_t *command)
{
    struct error err = {0};

    kube_lease_release(probe->lease, &err);
    say(json_pack("{s:O, s:s}", "id", json_object_get(command, "id"), "error",
                  error_code_name(err.code)));
}

/* ---- events ---- */

static void run_event(struct probe *probe, const json_t *command)
{
    struct kube_kind kind;

    target_of(command, &kind);
    kube_events_emit(
        probe->events,
        &(struct kube_event){.kind = &kind,
                             .object = json_object_get(command, "object"),
                             .warning = json_is_true(json_object_get(command, "warning")),
                             .reason = text_of(command, "reason"),
                             .action = text_of(command, "action"),
                             .note = text_of(command, "note")});
}

static void run_events(struct probe *probe, const json_t *command)
{
    struct kube_event_counts counts = kube_events_counts(probe->events);

    say(json_pack("{s:O, s:I, s:I, s:I, s:I}", "id", json_object_get(command, "id"), "created",
                  (json_int_t)counts.created, "patched", (json_int_t)counts.patched, "failed",
                  (json_int_t)counts.failed, "dropped", (json_int_t)counts.dropped));
}

/* ---- input ---- */

static const struct {
    const char *op;
    void (*run)(struct probe *probe, const json_t *command);
} operations[] = {{"call", run_call},   {"watch", run_watch},   {"cache", run_cache},
                  {"lease", run_lease}, {"leader", run_leader}, {"release", run_release},
                  {"event", run_event}, {"events", run_events}};

static void run_line(struct probe *probe, const char *line)
{
    json_error_t wrong;
    json_t *command = json_loads(line, 0, &wrong);

    if (!command || !text_of(command, "op")) {
        fprintf(stderr, "kube_probe: no command: %s\n", line);
        exit(3);
    }
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (strcmp(operations[i].op, text_of(command, "op")) == 0)
            operations[i].run(probe, command);
    json_decref(command);
}

static void on_input(void *context)
{
    struct probe *probe = context;
    char bytes[65536];
    ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);

    if (length > 0)
        str_add_bytes(&probe->input, bytes, (size_t)length);
    else if (length == 0 || (errno != EAGAIN && errno != EINTR))
        probe->ended = true;
}

/* Outside the loop's callbacks: some commands turn the loop themselves. */
static void run_input(struct probe *probe)
{
    CLEANUP(free_ptr) char *text = str_take(&probe->input);
    char *line = text, *end;

    while (line && (end = strchr(line, '\n'))) {
        *end = '\0';
        run_line(probe, line);
        line = end + 1;
    }
    if (line)
        str_add(&probe->input, line);
}

int main(int argc, char **argv)
{
    struct error err = {0};
    CLEANUP(kube_auth_free_ptr) struct kube_auth *auth = NULL;

    if (argc != 2) {
        fprintf(stderr, "usage: kube_probe KUBECONFIG\n");
        return 2;
    }
    if (kube_auth_from_file(argv[1], NULL, &auth, &err) < 0) {
        fprintf(stderr, "kube_probe: %s\n", err.text);
        return error_exit_status(err.code);
    }
    CLEANUP(kube_http_free_ptr)
    struct kube_http *http = kube_http_new(&(struct kube_http_options){.auth = auth}, &err);
    struct probe probe = {.input = STR_EMPTY};
    if (http)
        probe.loop = kube_loop_new(kube_http_transport(http), clock_real());
    if (!probe.loop) {
        fprintf(stderr, "kube_probe: %s\n", err.text);
        return 4;
    }
    probe.client = kube_client_new(&(struct kube_client_options){
        .loop = probe.loop, .field_manager = "kube-probe", .seed = (uint64_t)getpid()});
    probe.events = kube_events_new(&(struct kube_event_options){
        .client = probe.client, .controller = "tranche.dev/probe", .instance = "probe-0"});
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    kube_loop_add_descriptor(probe.loop,
                             &(struct kube_descriptor){STDIN_FILENO, POLLIN, on_input, &probe});
    int status = 0;
    while (status == 0 && !probe.ended) {
        status = kube_loop_turn(probe.loop, SECOND, &err);
        run_input(&probe);
    }
    kube_events_free(probe.events);
    kube_lease_free(probe.lease);
    kube_cache_free(probe.cache);
    kube_client_free(probe.client);
    kube_loop_free(probe.loop);
    str_done(&probe.input);
    return status == 0 ? 0 : 4;
}
