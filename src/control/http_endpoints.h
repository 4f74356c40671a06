/* SPDX-License-Identifier: Apache-2.0
 *
 * What a cluster asks a program over HTTP: /metrics (Prometheus text), /healthz (the loop
 * turns) and /readyz. Served from the program's own loop, on libmicrohttpd; only GET and HEAD,
 * few connections, short idle times.
 */
#ifndef TRANCHE_CONTROL_HTTP_ENDPOINTS_H
#define TRANCHE_CONTROL_HTTP_ENDPOINTS_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "kube/loop.h"

struct http_endpoints_options {
    struct kube_loop *loop; /* borrowed; outlives the endpoints */
    /* "127.0.0.1:9090", "[::1]:0", "fd00::5:9090"; port 0: any free one; [::] is every address,
     * of IPv4 too. */
    const char *listen;
    void (*metrics)(void *context, struct str *text);
    /* Appends why not, when it is not ready. */
    bool (*ready)(void *context, struct str *why);
    void *context;
};

struct http_endpoints;

/* E_USAGE for an address that is none, E_IO when it cannot be listened on. */
int http_endpoints_start(const struct http_endpoints_options *options,
                         struct http_endpoints **ret_endpoints, struct error *err);
/* The port that it listens on: the one asked for, or the one that port 0 got. */
uint16_t http_endpoints_port(const struct http_endpoints *endpoints);
/* NULL is fine. */
void http_endpoints_free(struct http_endpoints *endpoints);
CLEANUP_DEFINE_FREE(http_endpoints)

#endif
