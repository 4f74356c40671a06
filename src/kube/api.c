/* SPDX-License-Identifier: Apache-2.0
 *
 * A call is a path and a body made once, and sent until an answer counts.
 */
#include "kube/api.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/vec.h"

#define ATTEMPTS        5
#define TIMEOUT_NS      INT64_C(30000000000)
#define BACKOFF_NS      INT64_C(100000000)
#define BACKOFF_NS_MOST INT64_C(10000000000)

struct pending {
    struct kube_client *client;
    uint64_t id;
    uint64_t exchange; /* under way, or 0 while it waits */
    enum kube_verb verb;
    const char *method, *content_type;
    char *path, *what;
    struct str body;
    bool idempotent;
    unsigned attempts, sent;
    int64_t timeout_ns;
    bool unknown; /* an earlier sending may have been carried out */
    struct kube_timer timer;
    void (*done)(void *context, const struct kube_answer *answer);
    void *context;
};

struct kube_client {
    struct kube_client_options options;
    char *field_manager;
    struct rng rng;
    VEC(struct pending *) pending;
    uint64_t last_id;
    unsigned long answers[KUBE_VERB_COUNT][KUBE_STATUS_COUNT];
};

static const struct {
    const char *method, *content_type;
    bool idempotent;
} verb_table[] = {
    [KUBE_GET] = {"GET", NULL, true},
    [KUBE_LIST] = {"GET", NULL, true},
    [KUBE_CREATE] = {"POST", "application/json", false},
    [KUBE_DELETE] = {"DELETE", "application/json", true},
    [KUBE_MERGE_PATCH] = {"PATCH", "application/merge-patch+json", true},
    [KUBE_APPLY] = {"PATCH", "application/apply-patch+yaml", true},
};

struct kube_client *kube_client_new(const struct kube_client_options *options)
{
    struct kube_client *client = xcalloc(1, sizeof *client);

    assert(options->loop && options->field_manager);
    client->options = *options;
    client->field_manager = xstrdup(options->field_manager);
    client->options.field_manager = client->field_manager;
    if (!client->options.attempts)
        client->options.attempts = ATTEMPTS;
    if (!client->options.timeout_ns)
        client->options.timeout_ns = TIMEOUT_NS;
    if (!client->options.backoff_ns)
        client->options.backoff_ns = BACKOFF_NS;
    if (!client->options.backoff_ns_most)
        client->options.backoff_ns_most = BACKOFF_NS_MOST;
    client->rng = rng_seed(options->seed);
    return client;
}

static void pending_free(struct pending *pending)
{
    const struct kube_transport *transport = kube_loop_transport(pending->client->options.loop);

    if (pending->exchange)
        transport->cancel(transport->self, pending->exchange);
    kube_timer_stop(&pending->timer);
    str_done(&pending->body);
    free(pending->path);
    free(pending->what);
    free(pending);
}

void kube_client_free(struct kube_client *client)
{
    if (!client)
        return;
    for (size_t i = 0; i < client->pending.count; i++)
        pending_free(client->pending.data[i]);
    vec_done(&client->pending);
    free(client->field_manager);
    free(client);
}

unsigned long kube_client_answers(const struct kube_client *client, enum kube_verb verb,
                                  int status)
{
    assert(verb < KUBE_VERB_COUNT && status >= 0 && status < KUBE_STATUS_COUNT);
    return client->answers[verb][status];
}

struct kube_loop *kube_client_loop(const struct kube_client *client)
{
    return client->options.loop;
}

void kube_answer_done(struct kube_answer *answer)
{
    json_decref(answer->json);
    answer->json = NULL;
}

const char *kube_metadata(const json_t *object, const char *field)
{
    return json_text(json_object_get(object, "metadata"), field);
}

bool kube_status_read(const json_t *json, int *ret_code, const char **ret_reason,
                      const char **ret_message)
{
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const char *reason = json_string_value(json_object_get(json, "reason"));
    const char *message = json_string_value(json_object_get(json, "message"));
    json_int_t code = json_integer_value(json_object_get(json, "code"));

    if (!kind || strcmp(kind, "Status") != 0)
        return false;
    *ret_code = code > 0 && code < 1000 ? (int)code : 0;
    *ret_reason = reason ? reason : "";
    *ret_message = message ? message : "";
    return true;
}

static enum error_code code_of_status(int status)
{
    switch (status) {
    case 400:
    case 413:
    case 422:
        return E_INPUT;
    case 401:
    case 403:
        return E_USAGE;
    case 404:
        return E_NOT_FOUND;
    case 405:
    case 415:
        return E_UNSUPPORTED;
    case 409:
    case 410:
        return E_CONFLICT;
    case 429:
        return E_BUSY;
    case 504:
        return E_TIMEOUT;
    default:
        return E_IO;
    }
}

/* Fills in reason, json and error from an answer that came whole. */
static void read_answer(const struct pending *pending, const struct kube_response *response,
                        struct kube_answer *answer)
{
    const char *reason = "", *message = "";
    int code = 0;

    answer->status = response->status;
    bool good = response->status / 100 == 2;
    bool is_json = response->length > 0 &&
                   json_parse_lenient(pending->what, response->body, response->length,
                                      &answer->json, good ? &answer->error : NULL) == 0;
    if (good) {
        if (!is_json && answer->error.code == E_NONE)
            error_set(&answer->error, E_INPUT, "%s: the answer is empty", pending->what);
        return;
    }
    if (is_json && kube_status_read(answer->json, &code, &reason, &message))
        snprintf(answer->reason, sizeof answer->reason, "%s", reason);
    error_set(&answer->error, code_of_status(response->status), "%s %s: HTTP status %d%s%s%s%s",
              pending->method, pending->what, response->status, *reason ? " " : "", reason,
              *message ? ": " : "", message);
}

static void finish(struct pending *pending, const struct kube_answer *answer)
{
    struct kube_client *client = pending->client;
    void (*done)(void *, const struct kube_answer *) = pending->done;
    void *context = pending->context;

    for (size_t i = 0; i < client->pending.count; i++)
        if (client->pending.data[i] == pending)
            client->pending.data[i] = client->pending.data[--client->pending.count];
    pending_free(pending);
    done(context, answer);
}

/* When to send again: what the server asks for, or exponential backoff less up to half. */
static int64_t backoff_ns(struct pending *pending, int64_t retry_after_ns)
{
    const struct kube_client_options *options = &pending->client->options;
    int64_t delay_ns = options->backoff_ns;

    for (unsigned i = 1; i < pending->sent && delay_ns < options->backoff_ns_most; i++)
        delay_ns *= 2;
    if (delay_ns > options->backoff_ns_most)
        delay_ns = options->backoff_ns_most;
    delay_ns -= (int64_t)rng_below(&pending->client->rng, (uint64_t)delay_ns / 2 + 1);
    return retry_after_ns > delay_ns ? retry_after_ns : delay_ns;
}

static bool may_send_again(const struct pending *pending, const struct kube_answer *answer)
{
    if (pending->sent >= pending->attempts ||
        answer->retry_after_ns > pending->client->options.backoff_ns_most)
        return false;
    if (answer->status == 429)
        return true;
    return pending->idempotent && answer->error.code != E_NONE &&
           (answer->status == 0 || answer->status / 100 == 2 || answer->status >= 500);
}

static void on_done(void *context, const struct kube_response *response)
{
    struct pending *pending = context;
    struct kube_loop *loop = pending->client->options.loop;
    CLEANUP(kube_answer_done)
    struct kube_answer answer = {.retry_after_ns = response->retry_after_ns};

    pending->exchange = 0;
    answer.sent = pending->sent;
    bool known = response->status > 0 && response->status < KUBE_STATUS_COUNT;
    pending->client->answers[pending->verb][known ? response->status : 0]++;
    if (response->error.code == E_NONE) {
        read_answer(pending, response, &answer);
    } else {
        answer.error = response->error;
        error_wrap(&answer.error, "%s", pending->what);
    }
    /* A server that answers 5xx may have done it all the same; 4xx means it has not. */
    bool unclear = answer.error.code != E_NONE && answer.status / 100 != 4;
    pending->unknown = pending->unknown || unclear;
    if (may_send_again(pending, &answer)) {
        kube_timer_set(&pending->timer, loop,
                       kube_loop_now_ns(loop) + backoff_ns(pending, answer.retry_after_ns));
        return;
    }
    answer.unknown = pending->unknown && answer.error.code != E_NONE;
    finish(pending, &answer);
}

static void send_call(void *context)
{
    struct pending *pending = context;
    const struct kube_transport *transport = kube_loop_transport(pending->client->options.loop);
    const struct kube_request request = {
        .method = pending->method,
        .path = pending->path,
        .content_type = pending->body.length ? pending->content_type : NULL,
        .body = pending->body.bytes,
        .body_length = pending->body.length,
        .timeout_ns = pending->timeout_ns,
    };

    pending->sent++;
    pending->exchange =
        transport->start(transport->self, &request,
                         &(struct kube_receiver){.done = on_done, .context = pending});
}

static void add_number_query(struct str *path, const char *key, unsigned number)
{
    CLEANUP(free_ptr) char *text = xasprintf("%u", number);

    kube_path_add_query(path, key, number ? text : NULL);
}

static char *path_of(const struct kube_client *client, const struct kube_call *call)
{
    struct str path = STR_EMPTY;
    const char *manager = call->field_manager ? call->field_manager : client->field_manager;
    bool writes =
        call->verb == KUBE_CREATE || call->verb == KUBE_MERGE_PATCH || call->verb == KUBE_APPLY;

    kube_path_add(&path, &call->target);
    if (call->verb == KUBE_LIST) {
        kube_path_add_query(&path, "labelSelector", call->label_selector);
        kube_path_add_query(&path, "fieldSelector", call->field_selector);
        kube_path_add_query(&path, "resourceVersion", call->resource_version);
        add_number_query(&path, "limit", call->limit);
        kube_path_add_query(&path, "continue", call->continue_token);
    }
    kube_path_add_query(&path, "fieldManager", writes ? manager : NULL);
    kube_path_add_query(&path, "force",
                        call->verb == KUBE_APPLY && call->force ? "true" : NULL);
    return str_take(&path);
}

/* DeleteOptions; preconditions are what keeps a name's new owner alive. */
static void add_delete_options(struct str *body, const struct kube_call *call)
{
    static const char *const policies[] = {
        [KUBE_BACKGROUND] = "Background",
        [KUBE_FOREGROUND] = "Foreground",
        [KUBE_ORPHAN] = "Orphan",
    };
    CLEANUP(json_decref_ptr)
    json_t *options = json_pack("{s:s, s:s}", "kind", "DeleteOptions", "apiVersion", "v1");
    json_t *preconditions = json_object();

    if (call->uid)
        json_object_set_new(preconditions, "uid", json_string(call->uid));
    if (call->resource_version)
        json_object_set_new(preconditions, "resourceVersion",
                            json_string(call->resource_version));
    if (json_object_size(preconditions))
        json_object_set(options, "preconditions", preconditions);
    json_decref(preconditions);
    if (call->has_grace)
        json_object_set_new(options, "gracePeriodSeconds", json_integer(call->grace_seconds));
    if (call->propagation != KUBE_PROPAGATE_DEFAULT)
        json_object_set_new(options, "propagationPolicy",
                            json_string(policies[call->propagation]));
    json_write_line(options, body);
}

static void check_call(const struct kube_call *call)
{
    bool collection = call->verb == KUBE_LIST || call->verb == KUBE_CREATE;
    bool has_body =
        call->verb == KUBE_CREATE || call->verb == KUBE_MERGE_PATCH || call->verb == KUBE_APPLY;

    assert(call->target.kind);
    assert(has_body == (call->body != NULL));
    assert(call->target.name || collection);
    assert(!call->target.name || call->verb != KUBE_LIST);
    (void)collection;
    (void)has_body;
}

uint64_t kube_client_start(struct kube_client *client, const struct kube_call *call,
                           void (*done)(void *context, const struct kube_answer *answer),
                           void *context)
{
    struct pending *pending = xcalloc(1, sizeof *pending);
    /* A patch of one version, sent again after its answer was lost, would meet its own
     * conflict. */
    bool tied = call->verb == KUBE_MERGE_PATCH && *kube_metadata(call->body, "resourceVersion");

    check_call(call);
    *pending = (struct pending){
        .client = client,
        .id = ++client->last_id,
        .verb = call->verb,
        .method = verb_table[call->verb].method,
        .content_type = verb_table[call->verb].content_type,
        .path = path_of(client, call),
        .what = kube_target_text(&call->target),
        .body = STR_EMPTY,
        .idempotent = verb_table[call->verb].idempotent && !tied,
        .attempts = call->attempts ? call->attempts : client->options.attempts,
        .timeout_ns = call->timeout_ns ? call->timeout_ns : client->options.timeout_ns,
        .timer = {.fire = send_call, .context = pending},
        .done = done,
        .context = context,
    };
    if (call->verb == KUBE_DELETE)
        add_delete_options(&pending->body, call);
    else if (call->body)
        json_write_line(call->body, &pending->body);
    vec_add(&client->pending, pending);
    uint64_t id = pending->id;
    send_call(pending);
    return id;
}

void kube_client_cancel(struct kube_client *client, uint64_t call)
{
    for (size_t i = 0; i < client->pending.count; i++) {
        struct pending *pending = client->pending.data[i];
        if (pending->id != call)
            continue;
        client->pending.data[i] = client->pending.data[--client->pending.count];
        pending_free(pending);
        return;
    }
}

struct wait {
    struct kube_answer *answer;
    bool over;
};

static void on_call_done(void *context, const struct kube_answer *answer)
{
    struct wait *wait = context;

    *wait->answer = *answer;
    json_incref(wait->answer->json);
    wait->over = true;
}

int kube_client_call(struct kube_client *client, const struct kube_call *call,
                     struct kube_answer *ret_answer, struct error *err)
{
    CLEANUP(kube_answer_done) struct kube_answer local = {0};
    struct wait wait = {.answer = ret_answer ? ret_answer : &local};
    uint64_t id = kube_client_start(client, call, on_call_done, &wait);

    *wait.answer = (struct kube_answer){.retry_after_ns = -1};
    while (!wait.over) {
        int rc = kube_loop_turn(client->options.loop, TIMEOUT_NS, &wait.answer->error);
        if (rc < 0 && !wait.over) {
            kube_client_cancel(client, id);
            wait.answer->unknown = true;
            break;
        }
    }
    if (wait.answer->error.code == E_NONE)
        return 0;
    return error_set(err, wait.answer->error.code, "%s", wait.answer->error.text);
}
