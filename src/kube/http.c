/* SPDX-License-Identifier: Apache-2.0
 *
 * libcurl forbids to add or remove handles from inside its callbacks, and receivers run in
 * one: start() and cancel() only mark, and wait() does. Dead peers are found three ways: the
 * exchange's own time limit (for a stream, silence), TCP keepalive, and TCP_USER_TIMEOUT.
 */
#include "kube/http.h"

#include <assert.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "base/str.h"
#include "base/vec.h"
#include "kube/loop.h"

enum { BODY_LIMIT = 256 << 20, STREAMS_MAX = 100, CONNECT_TIMEOUT_MS = 10000 };
enum { PEER_TIMEOUT_MS = 60000, KEEPALIVE_S = 30, WAIT_MS_MAX = 60000 };

#define SECOND_NS      INT64_C(1000000000)
#define MILLISECOND_NS INT64_C(1000000)

enum exchange_state { EXCHANGE_NEW, EXCHANGE_RUNNING, EXCHANGE_CANCELLED };

struct exchange {
    struct kube_http *http;
    uint64_t id;
    enum exchange_state state;
    char *method, *path, *content_type, *body;
    size_t body_length, body_sent;
    bool stream;
    int64_t timeout_ns;
    struct kube_receiver receiver;
    CURL *easy;
    struct curl_slist *headers;
    char curl_text[CURL_ERROR_SIZE];
    int64_t retry_after_ns;
    struct str answer;
    bool too_large, stopped, tried_new_token;
};

struct kube_http {
    struct kube_transport transport;
    struct kube_auth *auth;
    const struct clock_source *clock;
    char *user_agent, *base_url;
    struct curl_slist *connect_to;
    size_t body_limit;
    CURLM *multi;
    VEC(struct exchange *) exchanges;
    uint64_t last_id;
};

/* Whether bytes of this exchange go to its receiver: what comes with an error status is text
 * to be read whole. */
static bool is_streaming(const struct exchange *exchange)
{
    long status = 0;

    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    return exchange->stream && status / 100 == 2;
}

/* Not CURLOPT_POSTFIELDS: libcurl would send those a second time, unasked, when a connection
 * that was used before ends without an answer. What cannot be rewound it cannot send again, so
 * that a change that may have been carried out is known to be one. */
static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t left = exchange->body_length - exchange->body_sent;
    size_t length = size * count < left ? size * count : left;

    memcpy(bytes, exchange->body + exchange->body_sent, length);
    exchange->body_sent += length;
    return length;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t length = size * count;

    if (exchange->state == EXCHANGE_CANCELLED)
        return CURL_WRITEFUNC_ERROR;
    if (is_streaming(exchange)) {
        exchange->stopped =
            !exchange->receiver.bytes(exchange->receiver.context, bytes, length);
        return exchange->stopped ? CURL_WRITEFUNC_ERROR : length;
    }
    if (length > exchange->http->body_limit - exchange->answer.length) {
        exchange->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    str_add_bytes(&exchange->answer, bytes, length);
    return length;
}

/* Seconds only; the date form is left to the caller's own backoff. */
static void read_retry_after(struct exchange *exchange, const char *line, size_t length)
{
    static const char name[] = "retry-after:";
    size_t skip = sizeof name - 1;

    if (length <= skip || strncasecmp(line, name, skip) != 0)
        return;
    CLEANUP(free_ptr) char *value = xstrndup(line + skip, length - skip);
    char *text = value + strspn(value, " \t");
    text[strcspn(text, " \t\r\n")] = '\0';
    long long seconds = 0;
    if (text_to_int(text, 0, 86400, &seconds))
        exchange->retry_after_ns = seconds * SECOND_NS;
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t length = size * count;

    if (exchange->state == EXCHANGE_CANCELLED)
        return CURL_WRITEFUNC_ERROR;
    read_retry_after(exchange, line, length);
    bool last = length > 0 && (line[0] == '\r' || line[0] == '\n');
    if (last && is_streaming(exchange) && exchange->receiver.opened)
        exchange->receiver.opened(exchange->receiver.context);
    return length;
}

static int on_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    unsigned timeout_ms = PEER_TIMEOUT_MS;

    (void)context;
    (void)purpose;
    /* Best effort: not on a unix socket. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    return CURL_SOCKOPT_OK;
}

static void set_blob(CURL *easy, CURLoption option, const char *pem)
{
    struct curl_blob blob = {.data = (void *)(uintptr_t)pem,
                             .len = pem ? strlen(pem) : 0,
                             .flags = CURL_BLOB_NOCOPY};
    if (pem)
        curl_easy_setopt(easy, option, &blob);
}

/* Where the server is, and the URL to ask for. With tls_server_name the certificate is
 * checked against that: it becomes the URL's host, and libcurl is told to connect to the
 * real one. */
static void find_server(struct kube_http *http)
{
    const char *server = http->auth->server;
    const char *host = strstr(server, "://");

    if (!http->auth->tls_server_name || !host) {
        http->base_url = xstrdup(server);
        return;
    }
    host += 3;
    const char *end = host + strcspn(host, "/");
    const char *port = memrchr(host, ':', (size_t)(end - host));
    if (!port || memchr(port, ']', (size_t)(end - port)))
        port = end;
    CLEANUP(free_ptr)
    char *target = xasprintf("::%.*s%s", (int)(end - host), host, port == end ? ":443" : "");
    http->connect_to = curl_slist_append(NULL, target);
    http->base_url =
        xasprintf("%.*s%s%s", (int)(host - server), server, http->auth->tls_server_name, port);
}

static void set_identity(struct exchange *exchange)
{
    const struct kube_auth *auth = exchange->http->auth;
    CURL *easy = exchange->easy;

    set_blob(easy, CURLOPT_CAINFO_BLOB, auth->ca_pem);
    set_blob(easy, CURLOPT_SSLCERT_BLOB, auth->certificate_pem);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, auth->key_pem);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, auth->insecure ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, auth->insecure ? 0L : 2L);
    if (exchange->http->connect_to)
        curl_easy_setopt(easy, CURLOPT_CONNECT_TO, exchange->http->connect_to);
    if (auth->unix_socket)
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, auth->unix_socket);
    if (auth->proxy_url)
        curl_easy_setopt(easy, CURLOPT_PROXY, auth->proxy_url);
    if (auth->token) {
        CLEANUP(free_ptr) char *bearer = xasprintf("Authorization: Bearer %s", auth->token);
        exchange->headers = curl_slist_append(exchange->headers, bearer);
        explicit_bzero(bearer, strlen(bearer));
    } else if (auth->username && auth->password) {
        curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
        curl_easy_setopt(easy, CURLOPT_USERNAME, auth->username);
        curl_easy_setopt(easy, CURLOPT_PASSWORD, auth->password);
    }
}

static void set_limits(struct exchange *exchange)
{
    CURL *easy = exchange->easy;
    int64_t timeout_ns = exchange->timeout_ns;

    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S / 3);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    if (exchange->stream) {
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                         (long)((timeout_ns + SECOND_NS - 1) / SECOND_NS));
    } else {
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                         (long)((timeout_ns + MILLISECOND_NS - 1) / MILLISECOND_NS));
    }
}

static void set_request(struct exchange *exchange)
{
    const struct kube_http *http = exchange->http;
    CURL *easy = exchange->easy;
    CLEANUP(free_ptr) char *url = xasprintf("%s%s", http->base_url, exchange->path);

    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https,http");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    /* Rather a stream of the connection that is being made than a connection of its own. */
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, http->user_agent);
    /* A compressed watch would come in blocks, its events late. */
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, exchange->stream ? NULL : "");
    if (exchange->body) {
        CLEANUP(free_ptr) char *type = xasprintf("Content-Type: %s", exchange->content_type);
        exchange->headers = curl_slist_append(exchange->headers, type);
        /* Else curl waits for "100 Continue" before a large body. */
        exchange->headers = curl_slist_append(exchange->headers, "Expect:");
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->body_length);
    }
    /* PUT, PATCH and DELETE send a body as POST does, under their own name. */
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, exchange->method);
    exchange->headers = curl_slist_append(exchange->headers, "Accept: application/json");
}

/* Makes the easy handle and gives it to the multi handle. */
static void launch(struct exchange *exchange)
{
    struct kube_http *http = exchange->http;

    exchange->easy = curl_easy_init();
    assert(exchange->easy && "libcurl is out of memory");
    exchange->retry_after_ns = -1;
    exchange->curl_text[0] = '\0';
    exchange->body_sent = 0;
    set_request(exchange);
    set_identity(exchange);
    set_limits(exchange);
    curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers);
    curl_easy_setopt(exchange->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(exchange->easy, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(exchange->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(exchange->easy, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(exchange->easy, CURLOPT_ERRORBUFFER, exchange->curl_text);
    curl_easy_setopt(exchange->easy, CURLOPT_PRIVATE, exchange);
    curl_multi_add_handle(http->multi, exchange->easy);
    exchange->state = EXCHANGE_RUNNING;
}

/* Takes the exchange off the wire; it may be launched again. */
static void land(struct exchange *exchange)
{
    if (exchange->easy) {
        curl_multi_remove_handle(exchange->http->multi, exchange->easy);
        curl_easy_cleanup(exchange->easy);
    }
    exchange->easy = NULL;
    curl_slist_free_all(exchange->headers);
    exchange->headers = NULL;
    str_clear(&exchange->answer);
}

static void exchange_free(struct exchange *exchange)
{
    land(exchange);
    str_done(&exchange->answer);
    free(exchange->method);
    free(exchange->path);
    free(exchange->content_type);
    free(exchange->body);
    free(exchange);
}

static void forget(struct kube_http *http, struct exchange *exchange)
{
    for (size_t i = 0; i < http->exchanges.count; i++)
        if (http->exchanges.data[i] == exchange)
            http->exchanges.data[i] = http->exchanges.data[--http->exchanges.count];
    exchange_free(exchange);
}

/* The error of an exchange that libcurl ended with `code`. */
static void explain(const struct exchange *exchange, CURLcode code, struct error *ret)
{
    const char *why = exchange->curl_text[0] ? exchange->curl_text : curl_easy_strerror(code);
    enum error_code kind = code == CURLE_OPERATION_TIMEDOUT ? E_TIMEOUT : E_IO;

    if (code == CURLE_OK || exchange->stopped)
        return;
    if (code == CURLE_SEND_FAIL_REWIND)
        why = "the connection ended before an answer came";
    if (exchange->too_large)
        error_set(ret, E_INPUT, "%s %s: the answer is larger than %zu bytes", exchange->method,
                  exchange->path, exchange->http->body_limit);
    else
        error_set(ret, kind, "%s %s: %s", exchange->method, exchange->path, why);
}

/* Whether a 401 may be cured by a token that was put into the file meanwhile. */
static bool has_new_token(struct exchange *exchange, long status)
{
    struct kube_http *http = exchange->http;
    bool changed = false;

    if (status != 401 || exchange->tried_new_token)
        return false;
    exchange->tried_new_token = true;
    return kube_auth_refresh(http->auth, clock_now_ns(http->clock), true, &changed, NULL) ==
               0 &&
           changed;
}

static void finish(struct exchange *exchange, CURLcode code)
{
    struct kube_response response = {.retry_after_ns = exchange->retry_after_ns};
    struct kube_receiver receiver = exchange->receiver;
    long status = 0;

    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    if (exchange->state == EXCHANGE_CANCELLED)
        return;
    if (code == CURLE_OK && has_new_token(exchange, status)) {
        land(exchange);
        launch(exchange);
        return;
    }
    explain(exchange, code, &response.error);
    response.status = (int)status;
    CLEANUP(str_done) struct str answer = exchange->answer;
    exchange->answer = STR_EMPTY;
    response.body = answer.bytes;
    response.length = answer.length;
    forget(exchange->http, exchange);
    receiver.done(receiver.context, &response);
}

/* Ends what libcurl is done with; returns whether there was anything. */
static bool collect(struct kube_http *http)
{
    bool any = false;
    int left = 0;

    for (CURLMsg *message; (message = curl_multi_info_read(http->multi, &left));) {
        struct exchange *exchange = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
        finish(exchange, code);
        any = true;
    }
    return any;
}

/* Does what start() and cancel() asked for. */
static void settle(struct kube_http *http)
{
    for (size_t i = http->exchanges.count; i-- > 0;)
        if (http->exchanges.data[i]->state == EXCHANGE_CANCELLED)
            forget(http, http->exchanges.data[i]);
    for (size_t i = 0; i < http->exchanges.count; i++)
        if (http->exchanges.data[i]->state == EXCHANGE_NEW)
            launch(http->exchanges.data[i]);
}

static uint64_t http_start(void *self, const struct kube_request *request,
                           const struct kube_receiver *receiver)
{
    struct kube_http *http = self;
    struct exchange *exchange = xcalloc(1, sizeof *exchange);

    assert(request->path[0] == '/' && request->timeout_ns > 0 && receiver->done);
    assert(!request->stream || receiver->bytes);
    *exchange = (struct exchange){
        .http = http,
        .id = ++http->last_id,
        .method = xstrdup(request->method),
        .path = xstrdup(request->path),
        .content_type = xstrdup(request->content_type),
        .body = request->content_type ? xstrndup(request->body, request->body_length) : NULL,
        .body_length = request->body_length,
        .stream = request->stream,
        .timeout_ns = request->timeout_ns,
        .receiver = *receiver,
        .answer = STR_EMPTY,
    };
    vec_add(&http->exchanges, exchange);
    /* An unreadable token file is not an error yet: the old token may still do. */
    (void)kube_auth_refresh(http->auth, clock_now_ns(http->clock), false, NULL, NULL);
    return exchange->id;
}

static void http_cancel(void *self, uint64_t id)
{
    struct kube_http *http = self;

    for (size_t i = 0; i < http->exchanges.count; i++)
        if (http->exchanges.data[i]->id == id)
            http->exchanges.data[i]->state = EXCHANGE_CANCELLED;
}

static bool all_settled(const struct kube_http *http)
{
    for (size_t i = 0; i < http->exchanges.count; i++)
        if (http->exchanges.data[i]->state != EXCHANGE_RUNNING)
            return false;
    return true;
}

static int perform(struct kube_http *http, struct error *err)
{
    int running = 0;
    CURLMcode code = curl_multi_perform(http->multi, &running);

    if (code != CURLM_OK)
        return error_set(err, E_IO, "HTTP transport: %s", curl_multi_strerror(code));
    return 0;
}

/* curl_multi_poll() with poll()'s structures: the bits have other values. */
static int poll_with(struct kube_http *http, int wait_ms, struct pollfd *descriptors,
                     size_t count, struct error *err)
{
    struct curl_waitfd extra[KUBE_LOOP_DESCRIPTORS_MAX] = {{0}};

    assert(count <= KUBE_LOOP_DESCRIPTORS_MAX);
    for (size_t i = 0; i < count; i++) {
        extra[i].fd = descriptors[i].fd;
        extra[i].events = (short)((descriptors[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
                                  (descriptors[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0));
    }
    CURLMcode code = curl_multi_poll(http->multi, extra, (unsigned)count, wait_ms, NULL);
    if (code != CURLM_OK)
        return error_set(err, E_IO, "HTTP transport: %s", curl_multi_strerror(code));
    for (size_t i = 0; i < count; i++)
        descriptors[i].revents = (short)((extra[i].revents & CURL_WAIT_POLLIN ? POLLIN : 0) |
                                         (extra[i].revents & CURL_WAIT_POLLOUT ? POLLOUT : 0));
    return 0;
}

static int http_wait(void *self, int64_t wait_ns, struct pollfd *descriptors, size_t count,
                     struct error *err)
{
    struct kube_http *http = self;
    int64_t wait_ms = (wait_ns + MILLISECOND_NS - 1) / MILLISECOND_NS;

    settle(http);
    int rc = perform(http, err);
    if (rc < 0)
        return rc;
    if (collect(http) || !all_settled(http))
        wait_ms = 0;
    wait_ms = wait_ms < WAIT_MS_MAX ? wait_ms : WAIT_MS_MAX;
    rc = poll_with(http, (int)wait_ms, descriptors, count, err);
    if (rc == 0)
        rc = perform(http, err);
    if (rc < 0)
        return rc;
    (void)collect(http);
    return 0;
}

struct kube_http *kube_http_new(const struct kube_http_options *options, struct error *err)
{
    CLEANUP(kube_http_free_ptr) struct kube_http *http = xcalloc(1, sizeof *http);

    http->auth = options->auth;
    http->clock = options->clock ? options->clock : clock_real();
    http->body_limit = options->body_limit ? options->body_limit : BODY_LIMIT;
    http->user_agent = xstrdup(options->user_agent ? options->user_agent : "tranche");
    http->transport = (struct kube_transport){
        .start = http_start, .cancel = http_cancel, .wait = http_wait, .self = http};
    if (kube_auth_refresh(http->auth, clock_now_ns(http->clock), true, NULL, err) < 0)
        return NULL;
    find_server(http);
    http->multi = curl_multi_init();
    if (!http->multi) {
        error_set(err, E_IO, "HTTP transport: libcurl cannot start");
        return NULL;
    }
    curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(http->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)STREAMS_MAX);
    return STEAL(http);
}

void kube_http_free(struct kube_http *http)
{
    if (!http)
        return;
    for (size_t i = 0; i < http->exchanges.count; i++)
        exchange_free(http->exchanges.data[i]);
    vec_done(&http->exchanges);
    if (http->multi)
        curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->connect_to);
    free(http->user_agent);
    free(http->base_url);
    free(http);
}

const struct kube_transport *kube_http_transport(struct kube_http *http)
{
    return &http->transport;
}

void kube_http_wake(struct kube_http *http)
{
    curl_multi_wakeup(http->multi);
}
