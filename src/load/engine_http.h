/* SPDX-License-Identifier: Apache-2.0
 *
 * The load engine for servers over HTTP/1.1: one thread, epoll, keep-alive connections that
 * are opened as requests in flight need them. A request is bytes made beforehand
 * (http_request.h); an answer counts as good when it is complete and its status is 2xx.
 *
 * A request on a connection that the server closed while it was idle, before any byte of an
 * answer, is sent once more on a fresh one (RFC 9112, 9.3.1). Nothing is pipelined.
 */
#ifndef TRANCHE_LOAD_ENGINE_HTTP_H
#define TRANCHE_LOAD_ENGINE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hist.h"
#include "load/engine.h"
#include "load/http_url.h"

/* One request, header and body, ready to be sent. */
struct http_payload {
    const char *bytes;
    size_t length;
};

struct http_engine_options {
    const struct http_address *addresses; /* requests go to them in turn */
    /* payload_count of them for the first address, then for the next …; those of an address
     * are used in turn. */
    const struct http_payload *payloads;
    size_t address_count, payload_count;
    size_t connections_max; /* of all addresses together; beyond it submit is E_BUSY */
    int64_t timeout_ns;     /* from sending to the end of the answer */
    bool streams_tokens;    /* answers are token_stream.h's */
};

enum http_failure {
    HTTP_FAILURE_CONNECT,  /* refused, unreachable */
    HTTP_FAILURE_RESET,    /* the connection ended before the answer did */
    HTTP_FAILURE_STATUS,   /* not 2xx */
    HTTP_FAILURE_PROTOCOL, /* not HTTP/1.x, or a broken stream */
    HTTP_FAILURE_TIMEOUT,
    HTTP_FAILURE_COUNT
};

struct http_engine_stats {
    uint64_t failures[HTTP_FAILURE_COUNT];
    uint64_t connections, repeated; /* opened; requests sent once more */
    uint64_t body_bytes;            /* of good answers */
    char first_failure[256];        /* in words; "" */
    /* Of streams of tokens, requests sent from count_from on: */
    struct hist *first_token; /* from sending to the first text */
    struct hist *token_gap;   /* between texts */
    struct hist *per_token;   /* (last − first text) ÷ (tokens − 1) of each answer */
    uint64_t tokens;
};

/* Strings and arrays of options must outlive the engine. E_IO when there are not enough
 * descriptors for connections_max. */
int http_engine_open(const struct http_engine_options *options, struct load_target *ret_target,
                     struct error *err);
/* Closes all connections, frees the engine and its histograms; a target that was never opened
 * is fine. */
void http_engine_close(struct load_target *target);
/* Requests sent before this time (CLOCK_MONOTONIC) are left out of stats. A request that was
 * due in the warm-up but sent after it is in stats, though the load's own counts, which go by
 * the intended time, leave it out. */
void http_engine_count_from(struct load_target *target, int64_t time_ns);
/* Valid until the engine is closed. */
const struct http_engine_stats *http_engine_stats(const struct load_target *target);
/* "connect", "reset", "status", "protocol", "timeout". */
const char *http_failure_name(enum http_failure failure);

#endif
