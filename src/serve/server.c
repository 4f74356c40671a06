/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP on libmicrohttpd with one polling thread. A request's life:
 *
 *     on_request (headers)   refuse what is too large before its body comes
 *     on_request (body …)    gather into request->body
 *     on_request (end)       answer at once, or parse, submit and suspend the connection
 *     on_complete            a worker wrote the answer: resume the connection
 *     on_request (again)     queue the answer
 *     on_finished            free
 *
 * Only the polling thread touches a connection; a worker writes request->answer, then
 * resumes, and libmicrohttpd orders the two.
 */
#include "serve/server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "serve/kserve.h"
#include "serve/server_metrics.h"
#include "serve/triton.h"

static const char JSON_TYPE[] = "application/json";
static const char BINARY_TYPE[] = "application/octet-stream";
static const char JSON_LENGTH_HEADER[] = "Inference-Header-Content-Length";

enum { CONNECTION_MEMORY_BYTES = 32 << 10, RETRY_AFTER_S = 1 };
enum { POLL_NS = 2000000 };
#define LINGER_NS INT64_C(5000000000)

struct server {
    struct session *session;
    struct server_options options;
    struct batcher *batcher;
    struct MHD_Daemon *daemon;
    struct server_metrics metrics;
    size_t bodies_bytes;      /* of requests now known; polling thread only */
    atomic_bool draining;     /* set by any thread */
    atomic_int open_requests; /* begun and not finished; idle connections have none */
};

struct answer {
    unsigned status;
    const char *type;
    struct str body;
    size_t json_length; /* 0: no binary part */
    bool close;         /* the connection, after this answer */
};

struct request {
    struct server *server;
    struct MHD_Connection *connection;
    struct str body;
    size_t reserved_bytes; /* of server->bodies_bytes */
    int64_t received_ns;
    struct kserve_request infer;
    struct batch_item item;
    struct answer answer;
    bool started, answered;
};

/* ---- answers ---------------------------------------------------------------------- */

static void answer_error(struct answer *answer, unsigned status, const char *text)
{
    str_clear(&answer->body);
    kserve_error_write(text, &answer->body);
    answer->status = status;
    answer->type = JSON_TYPE;
    answer->json_length = 0;
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct answer *answer)
{
    size_t length = answer->body.length;
    /* An empty text is nobody's to free. */
    struct MHD_Response *response =
        length > 0
            ? MHD_create_response_from_buffer(length, str_take(&answer->body),
                                              MHD_RESPMEM_MUST_FREE)
            : MHD_create_response_from_buffer(0, str_empty_bytes, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    if (answer->type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    if (answer->json_length > 0 && answer->json_length < length) {
        char text[24];
        snprintf(text, sizeof text, "%zu", answer->json_length);
        MHD_add_response_header(response, JSON_LENGTH_HEADER, text);
    }
    if (answer->status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        char text[16];
        snprintf(text, sizeof text, "%d", RETRY_AFTER_S);
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, text);
    }
    if (answer->close)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- inference -------------------------------------------------------------------- */

static void on_complete(struct batch_item *item, int failed, const struct error *err)
{
    struct request *request = item->context;
    struct server *server = request->server;
    server_metrics_completed(&server->metrics, item, request->received_ns, failed != 0);
    if (failed) {
        answer_error(&request->answer, MHD_HTTP_INTERNAL_SERVER_ERROR, err->text);
    } else {
        kserve_response_write(server->session, server->options.model, &request->infer,
                              &request->answer.body, &request->answer.json_length);
        request->answer.status = MHD_HTTP_OK;
        request->answer.type =
            request->answer.json_length < request->answer.body.length ? BINARY_TYPE : JSON_TYPE;
    }
    request->answered = true;
    MHD_resume_connection(request->connection);
}

static int json_length_of(struct request *request, size_t *ret_length, struct error *err)
{
    *ret_length = request->body.length;
    const char *text =
        MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, JSON_LENGTH_HEADER);
    long long value = 0;
    if (!text)
        return 0;
    if (!text_to_int(text, 0, (long long)request->body.length, &value))
        return error_set(err, E_INPUT, "%s: '%s' is not a length within the body",
                         JSON_LENGTH_HEADER, text);
    *ret_length = (size_t)value;
    return 0;
}

/* Parses and queues a whole request, or fills its answer with what is wrong. Returns true
 * when the connection was suspended: on_request() is called again once it is resumed. */
static bool submit(struct request *request)
{
    struct server *server = request->server;
    struct error err = {.code = E_NONE};
    size_t json_length = 0;
    request->received_ns = clock_now_ns(clock_real());
    request->item = (struct batch_item){
        .request = &request->infer, .complete = on_complete, .context = request};
    int failed = json_length_of(request, &json_length, &err);
    if (!failed)
        failed = kserve_request_read(server->session, request->body.bytes, request->body.length,
                                     json_length, &request->infer, &err);
    bool suspended = !failed;
    if (suspended) {
        MHD_suspend_connection(request->connection); /* before a worker may resume it */
        failed = batcher_submit(server->batcher, &request->item, &err);
        if (!failed)
            return true;
    }
    bool busy = err.code == E_BUSY;
    server_metrics_refused(&server->metrics, busy ? REFUSED_BUSY : REFUSED_MALFORMED);
    answer_error(&request->answer, busy ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_BAD_REQUEST,
                 err.text);
    request->answer.close = atomic_load(&server->draining);
    request->answered = true;
    if (suspended)
        MHD_resume_connection(request->connection);
    return suspended;
}

/* ---- routes ----------------------------------------------------------------------- */

enum route {
    ROUTE_NONE,
    ROUTE_SERVER,
    ROUTE_LIVE,
    ROUTE_READY,
    ROUTE_METRICS,
    ROUTE_MODEL,
    ROUTE_MODEL_READY,
    ROUTE_MODEL_CONFIG,
    ROUTE_MODEL_STATS,
    ROUTE_INFER
};

static enum route model_route(const char *rest)
{
    if (text_starts_with(rest, "/versions/1"))
        rest += strlen("/versions/1");
    static const struct {
        const char *rest;
        enum route route;
    } RESTS[] = {{"", ROUTE_MODEL},
                 {"/ready", ROUTE_MODEL_READY},
                 {"/config", ROUTE_MODEL_CONFIG},
                 {"/stats", ROUTE_MODEL_STATS},
                 {"/infer", ROUTE_INFER}};
    for (size_t i = 0; i < sizeof RESTS / sizeof *RESTS; i++)
        if (strcmp(rest, RESTS[i].rest) == 0)
            return RESTS[i].route;
    return ROUTE_NONE;
}

static enum route find_route(const struct server *server, const char *path)
{
    static const struct {
        const char *path;
        enum route route;
    } PATHS[] = {{"/v2", ROUTE_SERVER},
                 {"/v2/", ROUTE_SERVER},
                 {"/v2/health/live", ROUTE_LIVE},
                 {"/v2/health/ready", ROUTE_READY},
                 {"/metrics", ROUTE_METRICS}};
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++)
        if (strcmp(path, PATHS[i].path) == 0)
            return PATHS[i].route;
    static const char PREFIX[] = "/v2/models/";
    size_t model_length = strlen(server->options.model);
    if (!text_starts_with(path, PREFIX) ||
        strncmp(path + strlen(PREFIX), server->options.model, model_length) != 0)
        return ROUTE_NONE;
    const char *rest = path + strlen(PREFIX) + model_length;
    return *rest == '\0' || *rest == '/' ? model_route(rest) : ROUTE_NONE;
}

static void answer_get(struct server *server, enum route route, struct answer *answer)
{
    bool ready = !atomic_load(&server->draining);
    answer->status = MHD_HTTP_OK;
    answer->type = JSON_TYPE;
    if (route == ROUTE_SERVER) {
        str_add(&answer->body, "{\"name\":\"tranche\",\"version\":\"" TRANCHE_VERSION
                               "\",\"extensions\":[\"binary_tensor_data\",\"model_"
                               "configuration\",\"statistics\"]}");
    } else if (route == ROUTE_MODEL) {
        kserve_model_metadata(server->session, server->options.model, &answer->body);
    } else if (route == ROUTE_MODEL_CONFIG) {
        struct batcher_options batching = batcher_options_now(server->batcher);
        triton_config_write(server->session, server->options.model, &batching, &answer->body);
    } else if (route == ROUTE_MODEL_STATS) {
        struct batcher_stats stats = batcher_stats(server->batcher);
        triton_stats_write(&server->metrics, &stats, server->options.model, &answer->body);
    } else if (route == ROUTE_METRICS) {
        struct batcher_stats stats = batcher_stats(server->batcher);
        server_metrics_write(&server->metrics, &stats, server->options.model, &answer->body);
        answer->type = "text/plain; version=0.0.4";
    } else if (route == ROUTE_LIVE || ready) {
        answer->type = NULL;
    } else {
        answer_error(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is draining");
    }
}

/* Fills the answer of everything that needs no body; false for inference. */
static bool answer_at_once(struct request *request, const char *path, const char *method)
{
    struct server *server = request->server;
    enum route route = find_route(server, path);
    bool get =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    bool post = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    if (route == ROUTE_NONE)
        answer_error(&request->answer, MHD_HTTP_NOT_FOUND, "nothing is served under this path");
    else if (route == ROUTE_INFER ? !post : !get)
        answer_error(&request->answer, MHD_HTTP_METHOD_NOT_ALLOWED,
                     route == ROUTE_INFER ? "infer takes POST" : "this path takes GET");
    else if (route == ROUTE_INFER)
        return false;
    else
        answer_get(server, route, &request->answer);
    return true;
}

/* ---- libmicrohttpd's callbacks ---------------------------------------------------- */

/* Whether the body that the headers announce may come; reserves its bytes. */
static bool admit_body(struct request *request)
{
    struct server *server = request->server;
    const char *length =
        MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Content-Length");
    long long bytes =
        (long long)server->options.body_bytes_max; /* chunked: the most it may be */
    bool known = !length || text_to_int(length, 0, INT64_MAX, &bytes);
    request->answer.close = true; /* the body that comes is not read */
    if (!known || (size_t)bytes > server->options.body_bytes_max) {
        server_metrics_refused(&server->metrics, REFUSED_TOO_LARGE);
        answer_error(&request->answer, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
    } else if (server->bodies_bytes + (size_t)bytes > server->options.bodies_bytes_max) {
        server_metrics_refused(&server->metrics, REFUSED_BUSY);
        answer_error(&request->answer, MHD_HTTP_SERVICE_UNAVAILABLE,
                     "too many requests are being read");
    } else if (atomic_load(&server->draining)) {
        server_metrics_refused(&server->metrics, REFUSED_BUSY);
        answer_error(&request->answer, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is draining");
    } else {
        request->answer.close = false;
        request->reserved_bytes = (size_t)bytes;
        server->bodies_bytes += (size_t)bytes;
        return true;
    }
    return false;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *bytes, size_t *length, void **state)
{
    (void)context, (void)version;
    struct request *request = *state;
    if (!request)
        return MHD_NO;
    if (!request->started) {
        request->started = true;
        request->connection = connection;
        if (answer_at_once(request, path, method))
            request->answered = true;
        else if (!admit_body(request))
            return send_answer(connection, &request->answer);
        return MHD_YES;
    }
    if (*length > 0) {
        if (request->reserved_bytes >= request->body.length + *length)
            str_add_bytes(&request->body, bytes, *length);
        else if (!request->answered) { /* chunked and longer than allowed */
            server_metrics_refused(&request->server->metrics, REFUSED_TOO_LARGE);
            answer_error(&request->answer, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
            request->answer.close = request->answered = true;
        }
        *length = 0;
        return MHD_YES;
    }
    if (!request->answered && submit(request))
        return MHD_YES;
    return send_answer(connection, &request->answer);
}

static void *on_uri(void *context, const char *uri, struct MHD_Connection *connection)
{
    (void)uri, (void)connection;
    struct request *request = xcalloc(1, sizeof *request);
    request->server = context;
    atomic_fetch_add(&request->server->open_requests, 1);
    request->body = request->answer.body = STR_EMPTY;
    request->infer.id = "";
    return request;
}

static void on_finished(void *context, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode code)
{
    (void)context, (void)connection, (void)code;
    struct request *request = *state;
    if (!request)
        return;
    request->server->bodies_bytes -= request->reserved_bytes;
    atomic_fetch_sub(&request->server->open_requests, 1);
    kserve_request_done(&request->infer);
    str_done(&request->body);
    str_done(&request->answer.body);
    free(request);
    *state = NULL;
}

/* ---- life of the server ----------------------------------------------------------- */

static int start_daemon(struct server *server, struct error *err)
{
    const struct server_options *options = &server->options;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options->port)};
    if (inet_pton(AF_INET, options->address, &address.sin_addr) != 1)
        return error_set(err, E_USAGE, "address '%s': expected an IPv4 address like 127.0.0.1",
                         options->address);
    errno = 0;
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, options->port, NULL, NULL,
        on_request, server, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_URI_LOG_CALLBACK, on_uri,
        server, MHD_OPTION_NOTIFY_COMPLETED, on_finished, NULL, MHD_OPTION_CONNECTION_LIMIT,
        options->connections_max, MHD_OPTION_CONNECTION_TIMEOUT, options->idle_timeout_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_END);
    if (!server->daemon)
        return error_set_errno(err, E_IO, "cannot listen on %s:%u", options->address,
                               options->port);
    return 0;
}

int server_start(struct session *session, const struct server_options *options,
                 struct server **ret_server, struct error *err)
{
    if (session_input_count(session) > KSERVE_TENSORS_MAX ||
        session_output_count(session) > KSERVE_TENSORS_MAX || session_input_count(session) == 0)
        return error_set(err, E_UNSUPPORTED,
                         "model '%s' has %zu inputs and %zu outputs; served "
                         "are models with 1 to %d of each",
                         options->model, session_input_count(session),
                         session_output_count(session), KSERVE_TENSORS_MAX);
    CLEANUP(server_free_ptr) struct server *server = xcalloc(1, sizeof *server);
    server->session = session;
    server->options = *options;
    server_metrics_init(&server->metrics);
    server->batcher = batcher_new(session, &options->batcher);
    int failed = start_daemon(server, err);
    if (failed)
        return failed;
    *ret_server = STEAL(server);
    return 0;
}

uint16_t server_port(const struct server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    assert(info);
    return info->port;
}

void server_set_max_wait(struct server *server, double max_wait_ms)
{
    batcher_set_max_wait(server->batcher, max_wait_ms);
}

void server_drain(struct server *server)
{
    atomic_store(&server->draining, true);
    batcher_drain(server->batcher);
}

void server_free(struct server *server)
{
    if (!server)
        return;
    if (server->daemon) {
        server_drain(server);
        /* Stopping closes connections at once, so what is answered must be sent before; a
         * client that does not read must not hold the end up. */
        int64_t deadline_ns = clock_now_ns(clock_real()) + LINGER_NS;
        while (atomic_load(&server->open_requests) > 0 &&
               clock_now_ns(clock_real()) < deadline_ns)
            clock_sleep_until_ns(clock_real(), clock_now_ns(clock_real()) + POLL_NS);
        MHD_stop_daemon(server->daemon);
    }
    batcher_free(server->batcher);
    server_metrics_done(&server->metrics);
    free(server);
}
