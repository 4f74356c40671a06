/* SPDX-License-Identifier: Apache-2.0
 *
 * A server to be loaded, on libmicrohttpd, one thread that serves one request after the
 * other:
 *
 *     /            "ok" at once            /chunked   a body in chunks, of unknown length
 *     /close       ends the connection     /status/N  answers with that status
 *     /service     after a constant service time, spent by the one thread
 *     /tokens      eight chat completion events, 2 ms apart, and [DONE]
 *     /v2/models/m[/infer]                 metadata; checks the request
 *     /v2/models/m/stats                   Triton's statistics: SERVER_PHASES_MS a request
 *
 * At the first request from stall_at_ns on it does nothing for stall_ns, once.
 */
#ifndef TRANCHE_TESTS_LOAD_HTTP_SERVER_H
#define TRANCHE_TESTS_LOAD_HTTP_SERVER_H

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum { TOKENS = 8, TOKEN_GAP_NS = 10000000 };

struct http_server {
    struct MHD_Daemon *daemon;
    unsigned port;
    int64_t service_ns;
    _Atomic int64_t stall_at_ns, stall_ns, stall_began_ns;
    atomic_ulong requests, infers;
    _Atomic int64_t busy_ns; /* spent in /service */
    char body[4096];         /* of the last POST */
    size_t body_length;
};

static const char SERVER_METADATA[] =
    "{\"name\":\"m\",\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,3]},"
    "{\"name\":\"ids\",\"datatype\":\"INT64\",\"shape\":[-1,2]}],\"outputs\":[]}";

static enum MHD_Result server_answer(struct MHD_Connection *connection, unsigned status,
                                     const char *text, bool close)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (close)
        MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static ssize_t server_add_chunk(void *context, uint64_t position, char *buffer, size_t size)
{
    (void)context;
    if (position >= 10000)
        return MHD_CONTENT_READER_END_OF_STREAM;
    size_t length = size < 777 ? size : 777;
    memset(buffer, 'x', length);
    return (ssize_t)length;
}

static ssize_t server_add_token(void *context, uint64_t position, char *buffer, size_t size)
{
    int *sent = context;
    const struct timespec gap = {0, TOKEN_GAP_NS};
    (void)position;
    if (*sent > TOKENS)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (*sent > 0)
        nanosleep(&gap, NULL);
    return (*sent)++ == TOKENS
               ? snprintf(buffer, size,
                          "data: {\"choices\":[],\"usage\":{\"completion_tokens\":"
                          "%d}}\n\ndata: [DONE]\n\n",
                          TOKENS)
               : snprintf(buffer, size,
                          "data: {\"choices\":[{\"delta\":{\"content\":\"t\"}}]}\r\n\r\n");
}

static enum MHD_Result server_stream(struct MHD_Connection *connection,
                                     MHD_ContentReaderCallback reader, void *context)
{
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, 4096, reader, context, context ? free : NULL);
    enum MHD_Result result = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return result;
}

static void server_spend(struct http_server *server)
{
    int64_t start_ns = clock_now_ns(clock_real());
    clock_sleep_until_ns(clock_real(), start_ns + server->service_ns);
    server->busy_ns += clock_now_ns(clock_real()) - start_ns;
}

static void server_stall(struct http_server *server)
{
    int64_t at_ns = server->stall_at_ns;
    int64_t now_ns = clock_now_ns(clock_real());
    if (at_ns == 0 || now_ns < at_ns)
        return;
    server->stall_at_ns = 0;
    server->stall_began_ns = now_ns;
    clock_sleep_until_ns(clock_real(), now_ns + server->stall_ns);
}

/* Of each request: in all, queue, input, compute, output. */
static const int SERVER_PHASES_MS[] = {20, 1, 2, 3, 4};

static enum MHD_Result server_say_statistics(struct http_server *server,
                                             struct MHD_Connection *connection)
{
    static const char *const names[] = {"success", "queue", "compute_input", "compute_infer",
                                        "compute_output"};
    char text[1024];
    unsigned long count = server->infers;
    int length = snprintf(text, sizeof text, "{\"model_stats\":[{\"inference_stats\":{");
    for (int i = 0; i < 5; i++)
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "%s\"%s\":{\"count\":%lu,\"ns\":%lu}", i ? "," : "", names[i], count,
                           count * (unsigned long)SERVER_PHASES_MS[i] * 1000000);
    snprintf(text + length, sizeof text - (size_t)length, "}}]}");
    return server_answer(connection, 200, text, false);
}

static enum MHD_Result server_route(struct http_server *server,
                                    struct MHD_Connection *connection, const char *url)
{
    server->requests++;
    server_stall(server);
    if (strcmp(url, "/chunked") == 0)
        return server_stream(connection, server_add_chunk, NULL);
    if (strcmp(url, "/tokens") == 0)
        return server_stream(connection, server_add_token, calloc(1, sizeof(int)));
    if (strncmp(url, "/status/", 8) == 0)
        return server_answer(connection, (unsigned)atoi(url + 8), "status", false);
    if (strcmp(url, "/v2/models/m") == 0)
        return server_answer(connection, 200, SERVER_METADATA, false);
    if (strcmp(url, "/v2/models/m/stats") == 0)
        return server_say_statistics(server, connection);
    if (strcmp(url, "/v2/models/m/infer") == 0)
        server->infers++;
    if (strcmp(url, "/v2/models/other") == 0)
        return server_answer(connection, 404, "none", false);
    if (strcmp(url, "/service") == 0)
        server_spend(server);
    return server_answer(connection, 200, "ok", strcmp(url, "/close") == 0);
}

static enum MHD_Result server_handle(void *context, struct MHD_Connection *connection,
                                     const char *url, const char *method, const char *version,
                                     const char *data, size_t *data_size, void **state)
{
    struct http_server *server = context;
    static int begun;
    (void)version;
    if (!*state) { /* the headers alone */
        *state = &begun;
        if (strcmp(method, "POST") == 0)
            server->body_length = 0;
        return MHD_YES;
    }
    if (*data_size > 0) {
        size_t room = sizeof server->body - server->body_length;
        size_t length = *data_size < room ? *data_size : room;
        memcpy(server->body + server->body_length, data, length);
        server->body_length += length;
        *data_size = 0;
        return MHD_YES;
    }
    return server_route(server, connection, url);
}

/* Listens on 127.0.0.1 at a free port. */
static bool http_server_start(struct http_server *server, unsigned port)
{
    server->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO,
                                      (uint16_t)port, NULL, NULL, server_handle, server,
                                      MHD_OPTION_CONNECTION_LIMIT, 4000u, MHD_OPTION_END);
    if (!server->daemon)
        return false;
    server->port = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    return true;
}

static void http_server_stop(struct http_server *server)
{
    MHD_stop_daemon(server->daemon);
}

#endif
