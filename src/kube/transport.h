/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam between the client and the wire: HTTP exchanges that run at the same time in one
 * thread. The real one is http.h (libcurl); tests script another. Knows nothing of Kubernetes
 * but that some answers are streams.
 */
#ifndef TRANCHE_KUBE_TRANSPORT_H
#define TRANCHE_KUBE_TRANSPORT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kube_request {
    const char *method;       /* "GET", … */
    const char *path;         /* with its query, escaped: "/api/v1/pods?limit=500" */
    const char *content_type; /* of the body; NULL without one */
    const char *body;
    size_t body_length;
    bool stream;        /* bytes of a 2xx answer are handed over as they come */
    int64_t timeout_ns; /* of the exchange; of a stream, the longest silence */
};

/* What became of an exchange. */
struct kube_response {
    int status;             /* of HTTP; 0 when no answer came */
    int64_t retry_after_ns; /* what the header Retry-After asks for, or -1 */
    const char *body;       /* terminated; empty for a stream with a 2xx status */
    size_t length;
    struct error error; /* E_NONE when the answer came whole, whatever its status */
};

struct kube_receiver {
    /* A stream's 2xx headers came. Optional. */
    void (*opened)(void *context);
    /* Bytes of a stream. False ends the exchange: done() follows. */
    bool (*bytes)(void *context, const char *bytes, size_t length);
    /* The end, once, unless the exchange was cancelled. */
    void (*done)(void *context, const struct kube_response *response);
    void *context;
};

/* No hook may be NULL. start() and cancel() may be called from a receiver, wait() may not. */
struct kube_transport {
    /* Begins an exchange; the request is copied. The receiver is called from wait() only.
     * Returns the exchange's number, never 0. */
    uint64_t (*start)(void *self, const struct kube_request *request,
                      const struct kube_receiver *receiver);
    /* The receiver hears no more. A number that is over is ignored. */
    void (*cancel)(void *self, uint64_t exchange);
    /* Moves exchanges on, for at most wait_ns; returns early when something happened or one
     * of the descriptors is ready (revents is filled in). E_IO when waiting is impossible. */
    int (*wait)(void *self, int64_t wait_ns, struct pollfd *descriptors, size_t count,
                struct error *err);
    void *self;
};

#endif
