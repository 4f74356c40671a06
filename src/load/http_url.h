/* SPDX-License-Identifier: Apache-2.0
 *
 * "http://HOST[:PORT][/PATH][?QUERY]" and the address behind it.
 */
#ifndef TRANCHE_LOAD_HTTP_URL_H
#define TRANCHE_LOAD_HTTP_URL_H

#include <sys/socket.h>

#include "base/error.h"

enum { HTTP_URL_MAX = 4096 };

struct http_url {
    char host[256];          /* without brackets */
    char port[8];            /* "80" */
    char authority[280];     /* as in the URL: what the Host header says */
    char path[HTTP_URL_MAX]; /* with its query; at least "/" */
};

/* E_USAGE for anything else, https included (put a TLS proxy on this machine before it). */
int http_url_parse(const char *text, struct http_url *ret_url, struct error *err);

struct http_address {
    struct sockaddr_storage address;
    socklen_t length;
};
/* Resolves and connects once. E_MISSING when the name is not known or nobody listens. */
int http_url_reach(const struct http_url *url, int timeout_ms, struct http_address *ret_address,
                   struct error *err);

#endif
