/* SPDX-License-Identifier: Apache-2.0
 *
 * What requests saw, by service, out of HAProxy's request log: a ring in its memory, read
 * over its socket at every look (one line a request: "request pool3 SERVER 200 17", the last
 * in milliseconds from the first byte received to the last sent). Counts are exact unless
 * nobody looks for as long as the ring takes to fill (some 50,000 requests); percentiles are
 * over the last window, of at most TRAFFIC_SAMPLES requests.
 */
#ifndef TRANCHE_RUNTIME_TRAFFIC_H
#define TRANCHE_RUNTIME_TRAFFIC_H

#include <stdint.h>

#include "base/str.h"
#include "runtime/router.h"

enum { TRAFFIC_SAMPLES = 8192 };
#define TRAFFIC_WINDOW_NS INT64_C(10000000000)

struct traffic_sample {
    int64_t time_ns;
    float latency_ms;
    bool answered; /* with 2xx */
};

struct traffic_backend {
    struct traffic_sample *ring; /* TRAFFIC_SAMPLES; NULL until the first request */
    uint64_t count;              /* ever */
    uint64_t failed;             /* 5xx, or no answer */
    uint64_t late;               /* answered, but after the objective */
    double objective_ms;         /* NAN: none */
};

struct traffic {
    char *path;       /* HAProxy's socket; NULL: not opened */
    int fd;           /* connection to it; -1: none */
    struct str lines; /* read, up to a line that is not whole */
    struct traffic_backend backends[ROUTER_BACKENDS];
};

struct traffic_summary {
    uint64_t window_requests;
    double rate_rps;                                       /* over the window */
    double latency_ms_p50, latency_ms_p90, latency_ms_p99; /* NAN: no requests */
    double attainment; /* share of the window's answered within the objective; NAN: none */
};

/* Nothing is read yet, and no backend has an objective. */
void traffic_init(struct traffic *traffic);
/* Closes the connection and frees the samples. */
void traffic_done(struct traffic *traffic);
/* Reads from now on what the HAProxy of this state folder logs. */
void traffic_open(struct traffic *traffic, const char *folder);
/* Reads all that has been logged since; connects first, or again, where need be. */
void traffic_receive(struct traffic *traffic, int64_t now_ns);
/* One line of the log; others are passed over. */
void traffic_note(struct traffic *traffic, const char *line, int64_t now_ns);
/* Figures of the last TRAFFIC_WINDOW_NS before now_ns, of at most TRAFFIC_SAMPLES requests. */
void traffic_summarise(const struct traffic *traffic, int backend, int64_t now_ns,
                       struct traffic_summary *ret_summary);
/* A backend that now serves another service starts from nothing. */
void traffic_reset(struct traffic *traffic, int backend, double objective_ms);

#endif
