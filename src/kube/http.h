/* SPDX-License-Identifier: Apache-2.0
 *
 * The real transport: libcurl's multi interface. Over TLS all exchanges share one HTTP/2
 * connection where the server has it; TLS verification, client certificates and tokens come
 * from kube_auth. A 401 makes the token file be read again and the exchange be sent again,
 * once, if the token is another one.
 */
#ifndef TRANCHE_KUBE_HTTP_H
#define TRANCHE_KUBE_HTTP_H

#include "base/clock.h"
#include "kube/auth.h"
#include "kube/transport.h"

struct kube_http;

struct kube_http_options {
    struct kube_auth *auth;           /* borrowed; its token is refreshed here */
    const struct clock_source *clock; /* borrowed; NULL: the real one */
    size_t body_limit;                /* bytes of an answer; 0: 256 MiB */
    const char *user_agent;           /* NULL: "tranche" */
};

/* NULL and *err when libcurl cannot start (E_IO), or the token file cannot be read (E_IO,
 * E_INPUT). */
struct kube_http *kube_http_new(const struct kube_http_options *options, struct error *err);
/* Ends all exchanges; their receivers hear nothing. */
void kube_http_free(struct kube_http *http);
CLEANUP_DEFINE_FREE(kube_http)

/* Borrowed, as long as http lives. */
const struct kube_transport *kube_http_transport(struct kube_http *http);

/* Makes wait() return early; the one function that other threads may call. */
void kube_http_wake(struct kube_http *http);

#endif
