/* SPDX-License-Identifier: Apache-2.0
 *
 * libmicrohttpd without a thread: its epoll descriptor is one of the loop's, and a timer lets
 * it close what has been idle for too long.
 */
#include "control/http_endpoints.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { CONNECTIONS_MAX = 32, IDLE_SECONDS = 15, MEMORY_BYTES = 32768 };

struct http_endpoints {
    struct http_endpoints_options options;
    struct MHD_Daemon *daemon;
    int descriptor;
    struct kube_timer timer;
};

static void answer_metrics(const struct http_endpoints *endpoints, struct str *text,
                           unsigned *status)
{
    (void)status;
    endpoints->options.metrics(endpoints->options.context, text);
}

static void answer_health(const struct http_endpoints *endpoints, struct str *text,
                          unsigned *status)
{
    (void)endpoints;
    (void)status;
    str_add(text, "ok\n");
}

static void answer_ready(const struct http_endpoints *endpoints, struct str *text,
                         unsigned *status)
{
    if (endpoints->options.ready(endpoints->options.context, text)) {
        str_clear(text);
        str_add(text, "ok\n");
        return;
    }
    *status = MHD_HTTP_SERVICE_UNAVAILABLE;
    str_add_char(text, '\n');
}

static const struct page {
    const char *path, *type;
    void (*answer)(const struct http_endpoints *endpoints, struct str *text, unsigned *status);
} page_table[] = {
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", answer_metrics},
    {"/healthz", "text/plain; charset=utf-8", answer_health},
    {"/readyz", "text/plain; charset=utf-8", answer_ready},
};

static const struct page *find_page(const char *path)
{
    for (size_t i = 0; i < sizeof page_table / sizeof *page_table; i++)
        if (strcmp(page_table[i].path, path) == 0)
            return &page_table[i];
    return NULL;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *bytes, size_t *size, void **request)
{
    const struct http_endpoints *endpoints = context;
    const struct page *page = find_page(path);
    unsigned status = MHD_HTTP_OK;
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)version;
    (void)bytes;
    (void)request;
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (*size > 0) /* nobody reads what is sent here */
        return MHD_NO;
    if (!page)
        status = MHD_HTTP_NOT_FOUND;
    else if (!reads)
        status = MHD_HTTP_METHOD_NOT_ALLOWED;
    else
        page->answer(endpoints, &text, &status);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(text.length, text.bytes, MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            page ? page->type : "text/plain");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static void on_ready(void *context)
{
    struct http_endpoints *endpoints = context;

    MHD_run(endpoints->daemon);
}

static void on_timer(void *context)
{
    struct http_endpoints *endpoints = context;

    MHD_run(endpoints->daemon);
    kube_timer_set(&endpoints->timer, endpoints->options.loop,
                   kube_loop_now_ns(endpoints->options.loop) + INT64_C(1000000000));
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* The port is what follows the last colon, so an IPv6 address may do without brackets, as the
 * field status.podIP of a pod has it. */
static int read_address(const char *text, union address *ret, struct error *err)
{
    const char *colon = strrchr(text, ':');
    long long port;
    char host[64];
    bool bracketed = *text == '[' && colon > text && colon[-1] == ']';
    size_t length = colon ? (size_t)(colon - text) - (bracketed ? 2 : 0) : 0;

    memset(ret, 0, sizeof *ret);
    if (!colon || length >= sizeof host || !text_to_int(colon + 1, 0, 65535, &port))
        return error_set(err, E_USAGE, "'%s': expected ADDRESS:PORT like 127.0.0.1:9090", text);
    snprintf(host, sizeof host, "%.*s", (int)length, text + bracketed);
    if (!bracketed && inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t)port);
        return 0;
    }
    if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons((uint16_t)port);
        return 0;
    }
    return error_set(err, E_USAGE,
                     "'%s': expected a number as address, like 127.0.0.1:9090 or [::1]:9090",
                     text);
}

static bool is_every_address(const union address *address)
{
    return address->any.sa_family == AF_INET6 &&
           memcmp(&address->v6.sin6_addr, &in6addr_any, sizeof in6addr_any) == 0;
}

/* NULL with errno. */
static struct MHD_Daemon *listen_on(struct http_endpoints *endpoints,
                                    const union address *address)
{
    unsigned flags = MHD_USE_EPOLL;

    if (is_every_address(address))
        flags |= MHD_USE_DUAL_STACK;
    else if (address->any.sa_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    errno = 0;
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, endpoints, MHD_OPTION_SOCK_ADDR,
                            &address->any, MHD_OPTION_CONNECTION_LIMIT,
                            (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)MEMORY_BYTES, MHD_OPTION_END);
}

/* Every address is every one that the machine has: without IPv6 in the kernel, those of IPv4.
 */
static struct MHD_Daemon *listen_anyhow(struct http_endpoints *endpoints,
                                        const union address *address)
{
    struct MHD_Daemon *daemon = listen_on(endpoints, address);

    if (daemon || errno != EAFNOSUPPORT || !is_every_address(address))
        return daemon;
    const union address v4 = {.v4 = {.sin_family = AF_INET, .sin_port = address->v6.sin6_port}};
    return listen_on(endpoints, &v4);
}

int http_endpoints_start(const struct http_endpoints_options *options,
                         struct http_endpoints **ret_endpoints, struct error *err)
{
    union address address;
    int rc = read_address(options->listen, &address, err);

    assert(options->loop && options->metrics && options->ready);
    if (rc < 0)
        return rc;
    struct http_endpoints *endpoints = xcalloc(1, sizeof *endpoints);
    endpoints->options = *options;
    endpoints->daemon = listen_anyhow(endpoints, &address);
    if (!endpoints->daemon) {
        free(endpoints);
        return error_set_errno(err, E_IO, "cannot listen on %s", options->listen);
    }
    endpoints->descriptor =
        MHD_get_daemon_info(endpoints->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    kube_loop_add_descriptor(options->loop,
                             &(struct kube_descriptor){.fd = endpoints->descriptor,
                                                       .events = POLLIN,
                                                       .ready = on_ready,
                                                       .context = endpoints});
    endpoints->timer = (struct kube_timer){.fire = on_timer, .context = endpoints};
    on_timer(endpoints);
    *ret_endpoints = endpoints;
    return 0;
}

uint16_t http_endpoints_port(const struct http_endpoints *endpoints)
{
    return MHD_get_daemon_info(endpoints->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

void http_endpoints_free(struct http_endpoints *endpoints)
{
    if (!endpoints)
        return;
    kube_timer_stop(&endpoints->timer);
    kube_loop_remove_descriptor(endpoints->options.loop, endpoints->descriptor);
    MHD_stop_daemon(endpoints->daemon);
    free(endpoints);
}
