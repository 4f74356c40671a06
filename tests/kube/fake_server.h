/* SPDX-License-Identifier: Apache-2.0
 *
 * A scripted API server on libmicrohttpd: the n-th request gets the n-th step of the script.
 * A step has a status, a body that is sent in chunks of a given size, and faults: cut off after
 * so many bytes, or silent after them until the server ends. Requests are kept for the test to
 * look at. What comes after the script gets 404.
 */
#ifndef TRANCHE_TESTS_KUBE_FAKE_SERVER_H
#define TRANCHE_TESTS_KUBE_FAKE_SERVER_H

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"

enum { SERVER_REQUESTS = 64 };

enum server_fault { SERVER_WHOLE, SERVER_CUT, SERVER_STALL, SERVER_HANG_UP };

struct server_step {
    unsigned status; /* 0 is 200 */
    const char *body;
    const char *retry_after;
    const char *token; /* the Authorization that is wanted: else 401 */
    size_t chunk;      /* bytes a chunk; 0: all in one, with Content-Length */
    enum server_fault fault;
    size_t fault_at; /* bytes sent before it */
};

struct server_request {
    char *method, *uri, *body, *content_type, *authorization;
    char *probe; /* X-Probe: what a proxy in between says of the client's connection */
};

struct fake_server {
    struct MHD_Daemon *daemon;
    char address[64]; /* "http://127.0.0.1:PORT" */
    const struct server_step *steps;
    size_t step_count;
    pthread_mutex_t lock;
    pthread_cond_t ending_changed;
    bool ending;
    size_t request_count;
    struct server_request requests[SERVER_REQUESTS];
};

/* A request that is being received. */
struct server_receiving {
    char *uri;
    struct str body;
    bool begun;
};

/* A body that is being sent. */
struct server_sending {
    struct fake_server *server;
    struct server_step step;
    size_t length;
};

static void *server_on_uri(void *context, const char *uri, struct MHD_Connection *connection)
{
    (void)context;
    (void)connection;
    struct server_receiving *receiving = xcalloc(1, sizeof *receiving);
    *receiving = (struct server_receiving){.uri = xstrdup(uri), .body = STR_EMPTY};
    return receiving;
}

static void server_on_end(void *context, struct MHD_Connection *connection, void **request,
                          enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)connection;
    (void)code;
    struct server_receiving *receiving = *request;
    if (!receiving)
        return;
    str_done(&receiving->body);
    free(receiving->uri);
    free(receiving);
    *request = NULL;
}

static ssize_t server_send(void *context, uint64_t position, char *buffer, size_t size)
{
    struct server_sending *sending = context;
    struct fake_server *server = sending->server;
    size_t end = sending->length;

    if (sending->step.fault != SERVER_WHOLE && sending->step.fault_at < end)
        end = sending->step.fault_at;
    if (position < end) {
        size_t length = end - position < size ? end - position : size;
        length = length < sending->step.chunk ? length : sending->step.chunk;
        memcpy(buffer, sending->step.body + position, length);
        return (ssize_t)length;
    }
    if (sending->step.fault == SERVER_CUT)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    pthread_mutex_lock(&server->lock);
    while (sending->step.fault == SERVER_STALL && !server->ending)
        pthread_cond_wait(&server->ending_changed, &server->lock);
    pthread_mutex_unlock(&server->lock);
    return MHD_CONTENT_READER_END_OF_STREAM;
}

static struct MHD_Response *server_response(struct fake_server *server,
                                            const struct server_step *step)
{
    const char *body = step->body ? step->body : "{}";
    struct server_sending *sending = NULL;

    if (step->chunk == 0)
        return MHD_create_response_from_buffer(strlen(body), (void *)(uintptr_t)body,
                                               MHD_RESPMEM_PERSISTENT);
    sending = xcalloc(1, sizeof *sending);
    *sending = (struct server_sending){.server = server, .step = *step, .length = strlen(body)};
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, server_send, sending,
                                             free);
}

static char *server_header(struct MHD_Connection *connection, const char *name)
{
    return xstrdup(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name));
}

/* Notes the request and finds its step. */
static struct server_step server_note(struct fake_server *server,
                                      struct MHD_Connection *connection, const char *method,
                                      const struct server_receiving *receiving)
{
    struct server_step step = {.status = 404,
                               .body =
                                   "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\","
                                   "\"message\":\"the script is over\"}"};
    pthread_mutex_lock(&server->lock);
    size_t n = server->request_count;
    if (n < SERVER_REQUESTS) {
        server->requests[n] = (struct server_request){
            .method = xstrdup(method),
            .uri = xstrdup(receiving->uri),
            .body = xstrdup(receiving->body.bytes),
            .content_type = server_header(connection, "Content-Type"),
            .authorization = server_header(connection, "Authorization"),
            .probe = server_header(connection, "X-Probe"),
        };
        server->request_count++;
    }
    if (n < server->step_count)
        step = server->steps[n];
    if (step.token && (!server->requests[n].authorization ||
                       strcmp(step.token, server->requests[n].authorization) != 0))
        step =
            (struct server_step){.status = 401, .body = "{\"kind\":\"Status\",\"code\":401}"};
    pthread_mutex_unlock(&server->lock);
    return step;
}

static enum MHD_Result server_on_request(void *context, struct MHD_Connection *connection,
                                         const char *url, const char *method,
                                         const char *version, const char *bytes, size_t *size,
                                         void **request)
{
    struct server_receiving *receiving = *request;

    (void)url;
    (void)version;
    if (!receiving->begun) {
        receiving->begun = true;
        return MHD_YES;
    }
    if (*size > 0) {
        str_add_bytes(&receiving->body, bytes, *size);
        *size = 0;
        return MHD_YES;
    }
    struct server_step step = server_note(context, connection, method, receiving);
    if (step.fault == SERVER_HANG_UP) /* the request is taken, no byte of an answer comes */
        return MHD_NO;
    struct MHD_Response *response = server_response(context, &step);
    MHD_add_response_header(response, "Content-Type", "application/json");
    if (step.retry_after)
        MHD_add_response_header(response, "Retry-After", step.retry_after);
    enum MHD_Result result =
        MHD_queue_response(connection, step.status ? step.status : 200, response);
    MHD_destroy_response(response);
    return result;
}

static void server_start(struct fake_server *server, const struct server_step *steps,
                         size_t count)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memset(server, 0, sizeof *server);
    server->steps = steps;
    server->step_count = count;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->ending_changed, NULL);
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, NULL,
        NULL, server_on_request, server, MHD_OPTION_SOCK_ADDR, &address,
        MHD_OPTION_URI_LOG_CALLBACK, server_on_uri, NULL, MHD_OPTION_NOTIFY_COMPLETED,
        server_on_end, NULL, MHD_OPTION_END);
    assert_non_null(server->daemon);
    snprintf(server->address, sizeof server->address, "http://127.0.0.1:%u",
             (unsigned)MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
}

static void server_stop(struct fake_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->ending = true;
    pthread_cond_broadcast(&server->ending_changed);
    pthread_mutex_unlock(&server->lock);
    MHD_stop_daemon(server->daemon);
    for (size_t i = 0; i < server->request_count; i++) {
        struct server_request *request = &server->requests[i];
        free(request->method);
        free(request->uri);
        free(request->body);
        free(request->content_type);
        free(request->authorization);
        free(request->probe);
    }
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->ending_changed);
}

/* How many requests came so far. */
__attribute__((unused)) static size_t server_requests(struct fake_server *server)
{
    pthread_mutex_lock(&server->lock);
    size_t count = server->request_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

#endif
