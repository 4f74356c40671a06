/* SPDX-License-Identifier: Apache-2.0
 *
 * The model server: one model on one instance behind the KServe v2 REST protocol, on
 * libmicrohttpd.
 *
 *     GET  /v2, /v2/health/live, /v2/health/ready
 *     GET  /v2/models/M[/versions/1][/ready]       metadata, readiness
 *     GET  /v2/models/M[/versions/1]/config, /stats    as Triton has them
 *     POST /v2/models/M[/versions/1]/infer         JSON or binary tensors
 *     GET  /metrics                                Prometheus text, under Triton's names
 *
 * One thread does all of HTTP; a request in the queue holds its connection suspended.
 * Everything a client can make grow is bounded: connections, idle time, header and body
 * size, bytes of bodies in flight, rows in the queue. Too much at once is 503 with
 * Retry-After, too large 413, malformed 400.
 */
#ifndef TRANCHE_SERVE_SERVER_H
#define TRANCHE_SERVE_SERVER_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/session.h"
#include "serve/batcher.h"

struct server;

struct server_options {
    const char *address; /* "127.0.0.1" */
    uint16_t port;       /* 0: any free one */
    const char *model;   /* name under /v2/models/ */
    size_t body_bytes_max;
    size_t bodies_bytes_max; /* of all requests together */
    unsigned connections_max;
    unsigned idle_timeout_s; /* a connection on which nothing moves is closed */
    struct batcher_options batcher;
};

/* Listens and answers at once. The session must outlive the server; its strings and those
 * of options too. E_IO when the address cannot be listened on, E_UNSUPPORTED for a model
 * with more than KSERVE_TENSORS_MAX tensors. */
int server_start(struct session *session, const struct server_options *options,
                 struct server **ret_server, struct error *err);
/* The port that it listens on: the one asked for, or the one that port 0 got. */
uint16_t server_port(const struct server *server);
/* As batcher_set_max_wait(). */
void server_set_max_wait(struct server *server, double max_wait_ms);
/* Not ready from now on, refuses new inference (503), answers what it accepted, then
 * returns. */
void server_drain(struct server *server);
/* server_drain(), then closes. NULL is fine. */
void server_free(struct server *server);
CLEANUP_DEFINE_FREE(server)

#endif
