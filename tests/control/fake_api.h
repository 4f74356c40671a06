/* SPDX-License-Identifier: Apache-2.0
 *
 * An API server in memory, behind the transport seam: objects with UIDs and resourceVersions,
 * lists, watches that tell of every change, creation, merge patches and applies (as merge
 * patches), deletion with preconditions. Each process has a transport of its own onto one
 * store; time is the test's. A hook may refuse or lose any request, before or after it is
 * carried out.
 */
#ifndef TRANCHE_TESTS_CONTROL_FAKE_API_H
#define TRANCHE_TESTS_CONTROL_FAKE_API_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/vec.h"
#include "kube/api.h"

#define MS      INT64_C(1000000)
#define SECONDS (1000 * MS)

/* What becomes of a request. */
struct api_fault {
    bool lose_request; /* never carried out, no answer */
    bool lose_answer;  /* carried out, no answer */
    int status;        /* not carried out: this status */
    int64_t retry_after_ns;
    int64_t delay_ns;
};

struct api_process;

struct api_store {
    struct fake_clock clock;
    json_t *objects; /* path → object */
    long version;
    long next_uid;
    bool down;              /* no process gets an answer, streams break */
    int64_t watch_delay_ns; /* from when a stream begins to have events */
    const char *missing[2]; /* paths with these in them are not served */
    size_t writes;          /* carried out, Leases and Events aside */
    VEC(char *) log;        /* "METHOD path" of those */
    VEC(struct api_process *) processes;
    void (*fault)(void *context, const struct kube_request *request, struct api_fault *fault);
    void *context;
};

struct api_exchange {
    uint64_t id;
    struct kube_receiver receiver;
    int status;
    struct str body;
    int64_t due_ns, retry_after_ns;
    /* of a watch: */
    bool stream, opened;
    int64_t told_ns; /* when its oldest event came */
    char *collection, *selector;
};

struct api_process {
    struct api_store *store;
    struct kube_transport transport;
    VEC(struct api_exchange) exchanges;
    uint64_t last_id;
};

static void api_dump(struct str *text, const json_t *json)
{
    char *dumped = json_dumps(json, JSON_COMPACT);
    str_add(text, dumped);
    free(dumped);
}

/* The value of a query parameter, decoded where it matters here; NULL: absent. */
static char *api_query(const char *path, const char *key)
{
    CLEANUP(free_ptr) char *wanted = xasprintf("%s=", key);
    const char *query = strchr(path, '?');
    while (query) {
        query++;
        if (strncmp(query, wanted, strlen(wanted)) == 0) {
            const char *value = query + strlen(wanted);
            struct str text = STR_EMPTY;
            for (; *value && *value != '&'; value++) {
                unsigned code;
                if (*value == '%' && sscanf(value + 1, "%2x", &code) == 1) {
                    str_add_char(&text, (char)code);
                    value += 2;
                } else {
                    str_add_char(&text, *value);
                }
            }
            return str_take(&text);
        }
        query = strchr(query, '&');
    }
    return NULL;
}

static bool api_selects(const char *selector, const json_t *object)
{
    if (!selector)
        return true;
    const char *equals = strchr(selector, '=');
    CLEANUP(free_ptr) char *key = xstrndup(selector, (size_t)(equals - selector));
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const char *value = json_string_value(json_object_get(labels, key));
    return value && strcmp(value, equals + 1) == 0;
}

/* "/api/v1/namespaces/shop/pods/a" is in "/api/v1/pods" and "/api/v1/namespaces/shop/pods". */
static bool api_is_in(const char *object_path, const char *collection)
{
    CLEANUP(free_ptr) char *whole = xstrdup(object_path);
    char *slash = strrchr(whole, '/');
    *slash = '\0';
    if (strcmp(whole, collection) == 0)
        return true;
    char *namespaces = strstr(whole, "/namespaces/");
    if (!namespaces)
        return false;
    char *rest = strchr(namespaces + strlen("/namespaces/"), '/');
    if (!rest)
        return false;
    memmove(namespaces, rest, strlen(rest) + 1);
    return strcmp(whole, collection) == 0;
}

static void api_tell(struct api_store *store, const char *path, const char *type,
                     const json_t *object)
{
    for (size_t i = 0; i < store->processes.count; i++) {
        struct api_process *process = store->processes.data[i];
        for (size_t j = 0; j < process->exchanges.count; j++) {
            struct api_exchange *exchange = &process->exchanges.data[j];
            if (!exchange->stream || !api_is_in(path, exchange->collection) ||
                !api_selects(exchange->selector, object))
                continue;
            CLEANUP(json_decref_ptr)
            json_t *event = json_pack("{s:s, s:O}", "type", type, "object", object);
            if (exchange->body.length == 0)
                exchange->told_ns = store->clock.time_ns;
            api_dump(&exchange->body, event);
            str_add_char(&exchange->body, '\n');
        }
    }
}

static void api_stamp(struct api_store *store, json_t *object)
{
    char version[24];
    snprintf(version, sizeof version, "%ld", ++store->version);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                        json_string(version));
}

static bool api_is_counted(const char *path)
{
    return !strstr(path, "/leases") && !strstr(path, "/events");
}

static void api_note(struct api_store *store, const char *method, const char *path)
{
    if (!api_is_counted(path))
        return;
    store->writes++;
    vec_add(&store->log, xasprintf("%s %s", method, path));
}

/* Puts an object there, as a user would; body is taken over. */
static void api_put(struct api_store *store, const char *path, json_t *object)
{
    const json_t *before = json_object_get(store->objects, path);
    json_t *metadata = json_object_get(object, "metadata");
    if (!metadata) {
        metadata = json_object();
        json_object_set_new(object, "metadata", metadata);
    }
    const char *slash = strrchr(path, '/');
    json_object_set_new(metadata, "name", json_string(slash + 1));
    const char *namespaces = strstr(path, "/namespaces/");
    if (namespaces) {
        namespaces += strlen("/namespaces/");
        json_object_set_new(metadata, "namespace",
                            json_stringn(namespaces, strcspn(namespaces, "/")));
    }
    char uid[32];
    snprintf(uid, sizeof uid, "uid-%ld", before ? 0 : ++store->next_uid);
    json_object_set_new(metadata, "uid",
                        before ? json_string(kube_metadata(before, "uid")) : json_string(uid));
    if (!json_object_get(metadata, "generation"))
        json_object_set_new(metadata, "generation", json_integer(1));
    api_stamp(store, object);
    bool is_new = !before;
    json_object_set_new(store->objects, path, object);
    api_tell(store, path, is_new ? "ADDED" : "MODIFIED", object);
}

static void api_remove(struct api_store *store, const char *path)
{
    json_t *object = json_incref(json_object_get(store->objects, path));
    if (!object)
        return;
    json_object_del(store->objects, path);
    json_t *last = json_deep_copy(object);
    api_stamp(store, last);
    api_tell(store, path, "DELETED", last);
    json_decref(last);
    json_decref(object);
}

static void api_refuse(struct api_exchange *exchange, int status, const char *reason)
{
    exchange->status = status;
    str_clear(&exchange->body);
    str_addf(&exchange->body,
             "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":%d,\"reason\":\"%s\"}",
             status, reason);
}

static void api_list(struct api_store *store, const char *path, const char *selector,
                     struct api_exchange *exchange)
{
    CLEANUP(json_decref_ptr) json_t *items = json_array();
    const char *key;
    json_t *object;
    char version[24];
    json_object_foreach(store->objects, key, object)
    {
        if (!api_is_in(key, path) || !api_selects(selector, object))
            continue;
        json_t *item = json_copy(object); /* as a real server: without these two */
        json_object_del(item, "apiVersion");
        json_object_del(item, "kind");
        json_array_append_new(items, item);
    }
    snprintf(version, sizeof version, "%ld", store->version);
    CLEANUP(json_decref_ptr)
    json_t *list = json_pack("{s:s, s:{s:s}, s:O}", "kind", "List", "metadata",
                             "resourceVersion", version, "items", items);
    api_dump(&exchange->body, list);
}

/* RFC 7396. */
static void api_merge(json_t *target, const json_t *patch)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)patch, key, value)
    {
        json_t *there = json_object_get(target, key);
        if (json_is_null(value)) {
            json_object_del(target, key);
        } else if (json_is_object(value)) {
            if (!json_is_object(there)) {
                there = json_object();
                json_object_set_new(target, key, there);
            }
            api_merge(there, value);
        } else {
            json_object_set(target, key, value);
        }
    }
}

static void api_patch(struct api_store *store, const char *path, const json_t *patch,
                      bool apply, struct api_exchange *exchange)
{
    const json_t *before = json_object_get(store->objects, path);
    const char *version = kube_metadata(patch, "resourceVersion");
    const char *uid = kube_metadata(patch, "uid");
    if (!before && !apply) {
        api_refuse(exchange, 404, "NotFound");
        return;
    }
    if (before &&
        ((*version && strcmp(version, kube_metadata(before, "resourceVersion")) != 0) ||
         (*uid && strcmp(uid, kube_metadata(before, "uid")) != 0))) {
        api_refuse(exchange, 409, "Conflict");
        return;
    }
    json_t *after = before ? json_deep_copy(before) : json_object();
    api_merge(after, patch);
    if (before && json_equal(before, after)) { /* nothing changes: no new version */
        api_dump(&exchange->body, before);
        json_decref(after);
        return;
    }
    api_note(store, "PATCH", path);
    if (before &&
        !json_equal(json_object_get(before, "spec"), json_object_get(after, "spec"))) {
        json_t *metadata = json_object_get(after, "metadata");
        json_int_t was = json_integer_value(json_object_get(metadata, "generation"));
        json_object_set_new(metadata, "generation", json_integer(was + 1));
    }
    api_put(store, path, after);
    api_dump(&exchange->body, after);
}

static void api_delete(struct api_store *store, const char *path, const json_t *options,
                       struct api_exchange *exchange)
{
    const json_t *object = json_object_get(store->objects, path);
    const json_t *wanted = json_object_get(options, "preconditions");
    const char *uid = json_string_value(json_object_get(wanted, "uid"));
    const char *version = json_string_value(json_object_get(wanted, "resourceVersion"));
    if (!object) {
        api_refuse(exchange, 404, "NotFound");
        return;
    }
    if ((uid && strcmp(uid, kube_metadata(object, "uid")) != 0) ||
        (version && strcmp(version, kube_metadata(object, "resourceVersion")) != 0)) {
        api_refuse(exchange, 409, "Conflict");
        return;
    }
    api_note(store, "DELETE", path);
    str_add(&exchange->body, "{\"kind\":\"Status\",\"status\":\"Success\"}");
    api_remove(store, path);
}

static void api_create(struct api_store *store, const char *path, json_t *object,
                       struct api_exchange *exchange)
{
    CLEANUP(free_ptr) char *whole = xasprintf("%s/%s", path, kube_metadata(object, "name"));
    if (json_object_get(store->objects, whole)) {
        api_refuse(exchange, 409, "AlreadyExists");
        return;
    }
    api_note(store, "POST", whole);
    api_put(store, whole, json_incref(object));
    exchange->status = 201;
    api_dump(&exchange->body, object);
}

static void api_serve(struct api_store *store, const struct kube_request *request,
                      struct api_exchange *exchange)
{
    CLEANUP(free_ptr) char *path = xstrndup(request->path, strcspn(request->path, "?"));
    CLEANUP(free_ptr) char *selector = api_query(request->path, "labelSelector");
    CLEANUP(json_decref_ptr)
    json_t *body =
        request->body_length ? json_loadb(request->body, request->body_length, 0, NULL) : NULL;
    if (text_ends_with(path, "/status"))
        path[strlen(path) - strlen("/status")] = '\0';
    if ((store->missing[0] && strstr(path, store->missing[0])) ||
        (store->missing[1] && strstr(path, store->missing[1]))) {
        api_refuse(exchange, 404, "NotFound");
    } else if (strcmp(request->method, "POST") == 0) {
        api_create(store, path, body, exchange);
    } else if (strcmp(request->method, "PATCH") == 0) {
        api_patch(store, path, body, strstr(request->content_type, "apply") != NULL, exchange);
    } else if (strcmp(request->method, "DELETE") == 0) {
        api_delete(store, path, body, exchange);
    } else if (json_object_get(store->objects, path)) {
        api_dump(&exchange->body, json_object_get(store->objects, path));
    } else {
        const char *last = strrchr(path, '/') + 1;
        static const char plurals[] = " pods nodes services endpointslices httproutes leases "
                                      "resourceclaims resourceslices gpupools gpuservices "
                                      "perfprofiles partitionplans transitions nodegpustates ";
        CLEANUP(free_ptr) char *word = xasprintf(" %s ", last);
        if (strstr(plurals, word))
            api_list(store, path, selector, exchange);
        else
            api_refuse(exchange, 404, "NotFound");
    }
}

static void api_open_stream(const struct kube_request *request, struct api_exchange *exchange)
{
    exchange->stream = true;
    exchange->collection = xstrndup(request->path, strcspn(request->path, "?"));
    exchange->selector = api_query(request->path, "labelSelector");
}

static uint64_t api_start(void *self, const struct kube_request *request,
                          const struct kube_receiver *receiver)
{
    struct api_process *process = self;
    struct api_store *store = process->store;
    struct api_fault fault = {0};
    struct api_exchange exchange = {.id = ++process->last_id,
                                    .receiver = *receiver,
                                    .status = 200,
                                    .body = STR_EMPTY,
                                    .retry_after_ns = -1};
    if (getenv("TRANCHE_TEST_LOG"))
        print_message("# %8.3f %s %s %s\n", (double)store->clock.time_ns / 1e9, request->method,
                      request->path, request->body_length ? request->body : "");
    if (store->fault)
        store->fault(store->context, request, &fault);
    exchange.due_ns = store->clock.time_ns + fault.delay_ns;
    if (store->down || fault.lose_request) {
        exchange.status = 0;
    } else if (fault.status) {
        api_refuse(&exchange, fault.status, "Fault");
        exchange.retry_after_ns = fault.retry_after_ns ? fault.retry_after_ns : -1;
    } else if (request->stream) {
        api_open_stream(request, &exchange);
    } else {
        api_serve(store, request, &exchange);
    }
    if (fault.lose_answer)
        exchange.status = 0;
    vec_add(&process->exchanges, exchange);
    return exchange.id;
}

static void api_exchange_done(struct api_exchange *exchange)
{
    str_done(&exchange->body);
    free(exchange->collection);
    free(exchange->selector);
}

static bool api_take(struct api_process *process, uint64_t id, struct api_exchange *ret)
{
    for (size_t i = 0; i < process->exchanges.count; i++)
        if (process->exchanges.data[i].id == id) {
            *ret = process->exchanges.data[i];
            memmove(&process->exchanges.data[i], &process->exchanges.data[i + 1],
                    (--process->exchanges.count - i) * sizeof *ret);
            return true;
        }
    return false;
}

static void api_cancel(void *self, uint64_t id)
{
    struct api_exchange exchange;
    if (api_take(self, id, &exchange))
        api_exchange_done(&exchange);
}

static void api_finish(struct api_exchange *exchange, bool broken)
{
    struct kube_response response = {.status = exchange->status,
                                     .retry_after_ns = exchange->retry_after_ns,
                                     .body = exchange->stream ? "" : exchange->body.bytes,
                                     .length = exchange->stream ? 0 : exchange->body.length};
    if (broken || exchange->status == 0)
        error_set(&response.error, E_IO, "connection lost");
    exchange->receiver.done(exchange->receiver.context, &response);
    api_exchange_done(exchange);
}

/* Hands over what a stream has to say; its receiver may cancel it. */
static void api_move_stream(struct api_process *process, uint64_t id)
{
    for (size_t i = 0; i < process->exchanges.count; i++) {
        struct api_exchange *exchange = &process->exchanges.data[i];
        if (exchange->id != id)
            continue;
        int64_t tell_ns = exchange->told_ns + process->store->watch_delay_ns;
        if (exchange->opened && process->store->clock.time_ns < tell_ns)
            return;
        struct kube_receiver receiver = exchange->receiver;
        bool opens = !exchange->opened;
        struct str body = exchange->body;
        exchange->opened = true;
        exchange->body = STR_EMPTY;
        if (opens && receiver.opened)
            receiver.opened(receiver.context);
        if (body.length)
            receiver.bytes(receiver.context, body.bytes, body.length);
        str_done(&body);
        return;
    }
}

static int api_wait(void *self, int64_t wait_ns, struct pollfd *descriptors, size_t count,
                    struct error *err)
{
    struct api_process *process = self;
    struct api_store *store = process->store;
    VEC(uint64_t) ids = {0};
    (void)wait_ns;
    (void)err;
    for (size_t i = 0; i < process->exchanges.count; i++)
        vec_add(&ids, process->exchanges.data[i].id);
    for (size_t i = 0; i < ids.count; i++) {
        struct api_exchange *exchange = NULL, taken;
        for (size_t j = 0; j < process->exchanges.count; j++)
            if (process->exchanges.data[j].id == ids.data[i])
                exchange = &process->exchanges.data[j];
        if (!exchange || exchange->due_ns > store->clock.time_ns)
            continue;
        if (exchange->stream && !store->down) {
            api_move_stream(process, ids.data[i]);
        } else if (api_take(process, ids.data[i], &taken)) {
            api_finish(&taken, taken.stream);
        }
    }
    vec_done(&ids);
    /* Rounds in threads are not used with this transport: descriptors are not polled. */
    for (size_t i = 0; i < count; i++)
        descriptors[i].revents = 0;
    return 0;
}

static inline void api_process_init(struct api_process *process, struct api_store *store)
{
    *process = (struct api_process){.store = store,
                                    .transport = {api_start, api_cancel, api_wait, process}};
    vec_add(&store->processes, process);
}

static inline void api_process_done(struct api_process *process)
{
    struct api_store *store = process->store;
    for (size_t i = 0; i < store->processes.count; i++)
        if (store->processes.data[i] == process)
            store->processes.data[i] = store->processes.data[--store->processes.count];
    for (size_t i = 0; i < process->exchanges.count; i++)
        api_exchange_done(&process->exchanges.data[i]);
    vec_done(&process->exchanges);
}

static inline void api_store_init(struct api_store *store)
{
    *store = (struct api_store){.objects = json_object(), .version = 1};
    fake_clock_init(&store->clock, 1000 * SECONDS);
}

static inline void api_store_done(struct api_store *store)
{
    json_decref(store->objects);
    for (size_t i = 0; i < store->log.count; i++)
        free(store->log.data[i]);
    vec_done(&store->log);
    vec_done(&store->processes);
}

/* How many objects a collection has. */
__attribute__((unused)) static size_t api_count(const struct api_store *store,
                                                const char *collection)
{
    size_t count = 0;
    const char *key;
    json_t *object;
    json_object_foreach(store->objects, key, object)
    {
        count += api_is_in(key, collection);
    }
    return count;
}

#endif
