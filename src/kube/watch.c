/* SPDX-License-Identifier: Apache-2.0
 *
 * One of three things is under way: a page of a list (call), a stream (exchange), or a wait
 * (timer). Whatever ends one begins the next through the timer, so nothing recurses.
 */
#include "kube/watch.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kube/line.h"

#define SECOND_NS      INT64_C(1000000000)
#define MILLISECOND_NS INT64_C(1000000)

enum {
    PAGE_ITEMS = 500,
    LEAST_SECONDS = 300,
    MARGIN_SECONDS = 30,
    FAILURES_TO_RELIST = 3,
    FAILURES_TO_WARN = 3
};

struct kube_watch {
    struct kube_watch_options options;
    struct kube_watch_sink sink;
    char *namespace, *label_selector, *field_selector, *what;
    struct kube_loop *loop;
    struct rng rng;
    struct kube_timer timer;
    uint64_t call, exchange;
    struct kube_line line;
    char *version;        /* the last resourceVersion seen */
    char *continue_token; /* of the list under way */
    bool synced, relist, open, heard;
    bool expired; /* the stream has said that its resourceVersion is too old */
    int64_t opened_ns;
    unsigned failures; /* in a row */
    struct error error;
    struct kube_watch_counts counts;
};

static void set_text(char **text, const char *value)
{
    char *copy = xstrdup(value);

    free(*text);
    *text = copy;
}

static void go_on_at(struct kube_watch *watch, int64_t delay_ns)
{
    kube_timer_set(&watch->timer, watch->loop, kube_loop_now_ns(watch->loop) + delay_ns);
}

/* Once in a row: whoever looks at stale objects shall find out why. */
static void warn(const struct kube_watch *watch)
{
    const struct kube_kind *kind = watch->options.target.kind;

    if (watch->failures == FAILURES_TO_WARN)
        log_write(LOG_WARN, "a watch keeps failing: what is known is stale",
                  "kind=%s failures=%u error=\"%s\"", kind->kind, watch->failures,
                  watch->error.text);
}

/* Exponential, less up to half. */
static void back_off(struct kube_watch *watch)
{
    int64_t delay_ns = watch->options.backoff_ns;

    for (unsigned i = 0; i < watch->failures && delay_ns < watch->options.backoff_ns_most; i++)
        delay_ns *= 2;
    if (delay_ns > watch->options.backoff_ns_most)
        delay_ns = watch->options.backoff_ns_most;
    delay_ns -= (int64_t)rng_below(&watch->rng, (uint64_t)delay_ns / 2 + 1);
    watch->failures++;
    watch->counts.failures++;
    warn(watch);
    go_on_at(watch, delay_ns);
}

static void all_is_well(struct kube_watch *watch)
{
    if (watch->failures >= FAILURES_TO_WARN)
        log_write(LOG_INFO, "the watch works again", "kind=%s",
                  watch->options.target.kind->kind);
    watch->failures = 0;
    watch->error.code = E_NONE;
}

static void ask_for_page(struct kube_watch *watch);

/* Too old a list token or resourceVersion: start over; at once the first time in a row. */
static void start_over(struct kube_watch *watch)
{
    watch->counts.expired++;
    watch->relist = true;
    if (watch->error.code == E_NONE)
        error_set(&watch->error, E_CONFLICT, "%s: the server has forgotten this version (410)",
                  watch->what);
    set_text(&watch->continue_token, NULL);
    if (watch->failures == 0) {
        watch->failures++;
        go_on_at(watch, 0);
    } else {
        back_off(watch);
    }
}

/* Hands a page to the sink; false when it is no list. */
static bool take_page(struct kube_watch *watch, const json_t *list)
{
    const char *version = kube_metadata(list, "resourceVersion");
    const char *next = kube_metadata(list, "continue");
    const json_t *items = json_object_get(list, "items");
    size_t i;
    json_t *item;

    if (!*version || (!json_is_array(items) && !json_is_null(items)))
        return false;
    json_array_foreach(items, i, item) if (!*kube_metadata(item, "name")) return false;
    watch->counts.pages++;
    if (!watch->continue_token)
        watch->sink.list_begin(watch->sink.context);
    json_array_foreach(items, i, item) watch->sink.listed(watch->sink.context, item);
    set_text(&watch->continue_token, *next ? next : NULL);
    if (!watch->continue_token)
        set_text(&watch->version, version);
    return true;
}

static void on_page(void *context, const struct kube_answer *answer)
{
    struct kube_watch *watch = context;

    watch->call = 0;
    /* The continue token has expired: what came before is of a version that is gone. */
    if (answer->status == 410) {
        start_over(watch);
        return;
    }
    if (answer->error.code == E_NONE && !take_page(watch, answer->json))
        error_set(&watch->error, E_INPUT, "%s: the answer is not a list", watch->what);
    else
        watch->error = answer->error;
    if (watch->error.code != E_NONE) {
        set_text(&watch->continue_token, NULL);
        back_off(watch);
        return;
    }
    if (watch->continue_token) {
        ask_for_page(watch);
        return;
    }
    watch->counts.lists++;
    watch->relist = false;
    watch->synced = true;
    watch->sink.list_end(watch->sink.context);
    go_on_at(watch, 0);
}

static void ask_for_page(struct kube_watch *watch)
{
    const struct kube_call call = {
        .verb = KUBE_LIST,
        .target = watch->options.target,
        .label_selector = watch->label_selector,
        .field_selector = watch->field_selector,
        .limit = watch->options.page_items,
        .continue_token = watch->continue_token,
        .attempts = 1,
    };
    watch->call = kube_client_start(watch->options.client, &call, on_page, watch);
}

/* An ERROR event carries a Status. */
static void take_error(struct kube_watch *watch, const json_t *object)
{
    const char *reason = "", *message = "";
    int code = 0;

    (void)kube_status_read(object, &code, &reason, &message);
    watch->expired =
        code == 410 || strcmp(reason, "Expired") == 0 || strcmp(reason, "Gone") == 0;
    error_set(&watch->error, watch->expired ? E_CONFLICT : E_IO,
              "%s: the watch ended with %d %s: %s", watch->what, code, reason, message);
}

/* One event; false ends the stream. Types that are not known are for newer clients. */
static bool take_event(struct kube_watch *watch, const char *type, json_t *object)
{
    static const char *const changes[KUBE_CHANGE_COUNT] = {
        [KUBE_ADDED] = "ADDED", [KUBE_MODIFIED] = "MODIFIED", [KUBE_DELETED] = "DELETED"};
    const char *version = kube_metadata(object, "resourceVersion");
    bool bookmark = strcmp(type, "BOOKMARK") == 0;
    int change = 0;

    while (change < KUBE_CHANGE_COUNT && strcmp(type, changes[change]) != 0)
        change++;
    if (change == KUBE_CHANGE_COUNT && !bookmark)
        return true;
    if (!*version || (!bookmark && !*kube_metadata(object, "name"))) {
        watch->relist = true;
        error_set(&watch->error, E_INPUT, "%s: %s event of an object without name or version",
                  watch->what, type);
        return false;
    }
    watch->counts.bookmarks += bookmark;
    watch->counts.events += !bookmark;
    all_is_well(watch);
    if (!bookmark)
        watch->sink.changed(watch->sink.context, (enum kube_change)change, object);
    set_text(&watch->version, version);
    return true;
}

static bool on_line(void *context, const char *bytes, size_t length)
{
    struct kube_watch *watch = context;
    CLEANUP(json_decref_ptr) json_t *event = NULL;

    watch->heard = true;
    if (json_parse_lenient(watch->what, bytes, length, &event, &watch->error) < 0) {
        watch->relist = true;
        return false;
    }
    const char *type = json_string_value(json_object_get(event, "type"));
    json_t *object = json_object_get(event, "object");
    if (!type || !json_is_object(object)) {
        watch->relist = true;
        error_set(&watch->error, E_INPUT, "%s: expected events with type and object",
                  watch->what);
        return false;
    }
    if (strcmp(type, "ERROR") == 0) {
        take_error(watch, object);
        return false;
    }
    return take_event(watch, type, object);
}

static bool on_bytes(void *context, const char *bytes, size_t length)
{
    struct kube_watch *watch = context;
    enum kube_line_result result = kube_line_feed(&watch->line, bytes, length);

    if (result == KUBE_LINE_TOO_LONG) {
        watch->relist = true;
        error_set(&watch->error, E_INPUT, "%s: an event of more than %d bytes", watch->what,
                  KUBE_LINE_LIMIT);
    }
    return result == KUBE_LINE_MORE;
}

static void on_opened(void *context)
{
    struct kube_watch *watch = context;

    watch->open = true;
    watch->opened_ns = kube_loop_now_ns(watch->loop);
}

/* The stream is over: decide how to go on. */
static void on_stream_done(void *context, const struct kube_response *response)
{
    struct kube_watch *watch = context;
    bool was_open = watch->open;
    int64_t lived_ns = was_open ? kube_loop_now_ns(watch->loop) - watch->opened_ns : 0;

    watch->exchange = 0;
    watch->open = false;
    kube_line_reset(&watch->line);
    if (watch->expired || response->status == 410) {
        start_over(watch);
        return;
    }
    if (response->error.code != E_NONE) {
        watch->error = response->error;
        error_wrap(&watch->error, "watching %s", watch->what);
    } else if (!was_open) {
        error_set(&watch->error, E_IO, "watching %s: HTTP status %d", watch->what,
                  response->status);
    }
    if (was_open && watch->error.code == E_NONE && (watch->heard || lived_ns >= SECOND_NS)) {
        all_is_well(watch);
        go_on_at(watch, 0);
        return;
    }
    if (lived_ns >= SECOND_NS) /* it worked for a while: the first failure of a new row */
        watch->failures = 0;
    if (response->status == 0 || watch->failures + 1 >= FAILURES_TO_RELIST)
        watch->relist = true;
    if (watch->error.code == E_NONE)
        error_set(&watch->error, E_IO, "watching %s: ended at once", watch->what);
    back_off(watch);
}

static char *watch_path(struct kube_watch *watch, unsigned seconds)
{
    struct str path = STR_EMPTY;
    CLEANUP(free_ptr) char *length = xasprintf("%u", seconds);

    kube_path_add(&path, &watch->options.target);
    kube_path_add_query(&path, "watch", "true");
    kube_path_add_query(&path, "allowWatchBookmarks", "true");
    kube_path_add_query(&path, "timeoutSeconds", length);
    kube_path_add_query(&path, "resourceVersion", watch->version);
    kube_path_add_query(&path, "labelSelector", watch->label_selector);
    kube_path_add_query(&path, "fieldSelector", watch->field_selector);
    return str_take(&path);
}

static void open_stream(struct kube_watch *watch)
{
    const struct kube_transport *transport = kube_loop_transport(watch->loop);
    unsigned span = watch->options.most_seconds - watch->options.least_seconds;
    unsigned seconds =
        watch->options.least_seconds + (unsigned)rng_below(&watch->rng, span + 1);
    CLEANUP(free_ptr) char *path = watch_path(watch, seconds);
    const struct kube_request request = {
        .method = "GET",
        .path = path,
        .stream = true,
        .timeout_ns = watch->options.silence_ns ? watch->options.silence_ns
                                                : (seconds + MARGIN_SECONDS) * SECOND_NS,
    };
    watch->heard = false;
    watch->expired = false;
    watch->error.code = E_NONE;
    watch->counts.streams++;
    watch->exchange = transport->start(
        transport->self, &request,
        &(struct kube_receiver){
            .opened = on_opened, .bytes = on_bytes, .done = on_stream_done, .context = watch});
}

static void on_timer(void *context)
{
    struct kube_watch *watch = context;

    assert(!watch->call && !watch->exchange);
    if (watch->relist || !watch->version) {
        set_text(&watch->continue_token, NULL);
        ask_for_page(watch);
    } else {
        open_stream(watch);
    }
}

static void set_defaults(struct kube_watch_options *options)
{
    if (!options->page_items)
        options->page_items = PAGE_ITEMS;
    if (!options->least_seconds)
        options->least_seconds = LEAST_SECONDS;
    if (!options->most_seconds)
        options->most_seconds = 2 * options->least_seconds;
    if (!options->backoff_ns)
        options->backoff_ns = 800 * MILLISECOND_NS;
    if (!options->backoff_ns_most)
        options->backoff_ns_most = 30 * SECOND_NS;
    assert(options->most_seconds >= options->least_seconds);
}

struct kube_watch *kube_watch_new(const struct kube_watch_options *options,
                                  const struct kube_watch_sink *sink)
{
    struct kube_watch *watch = xcalloc(1, sizeof *watch);

    assert(sink->list_begin && sink->listed && sink->list_end && sink->changed);
    assert(!options->target.name && !options->target.subresource);
    watch->options = *options;
    set_defaults(&watch->options);
    watch->sink = *sink;
    watch->namespace = xstrdup(options->target.namespace);
    watch->options.target.namespace = watch->namespace;
    watch->label_selector = xstrdup(options->label_selector);
    watch->field_selector = xstrdup(options->field_selector);
    watch->what = kube_target_text(&watch->options.target);
    watch->loop = kube_client_loop(options->client);
    watch->rng = rng_seed(options->seed);
    watch->timer = (struct kube_timer){.fire = on_timer, .context = watch};
    watch->line = (struct kube_line){
        .partial = STR_EMPTY, .limit = KUBE_LINE_LIMIT, .line = on_line, .context = watch};
    go_on_at(watch, 0);
    return watch;
}

/* Ends what is under way. */
static void stop(struct kube_watch *watch)
{
    const struct kube_transport *transport = kube_loop_transport(watch->loop);

    kube_timer_stop(&watch->timer);
    if (watch->call)
        kube_client_cancel(watch->options.client, watch->call);
    if (watch->exchange)
        transport->cancel(transport->self, watch->exchange);
    watch->call = watch->exchange = 0;
    watch->open = false;
    kube_line_reset(&watch->line);
}

void kube_watch_free(struct kube_watch *watch)
{
    if (!watch)
        return;
    stop(watch);
    free(watch->namespace);
    free(watch->label_selector);
    free(watch->field_selector);
    free(watch->what);
    free(watch->version);
    free(watch->continue_token);
    free(watch);
}

bool kube_watch_is_synced(const struct kube_watch *watch)
{
    return watch->synced;
}

bool kube_watch_is_fresh(const struct kube_watch *watch)
{
    return watch->synced && !watch->relist && watch->open;
}

struct kube_watch_counts kube_watch_counts(const struct kube_watch *watch)
{
    return watch->counts;
}

const struct error *kube_watch_error(const struct kube_watch *watch)
{
    return &watch->error;
}
