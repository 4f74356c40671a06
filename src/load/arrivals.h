/* SPDX-License-Identifier: Apache-2.0
 *
 * When requests of an open-loop run are due: a stream of times from the start of the run,
 * fixed before anything is sent, so that a slow answer never delays the next request.
 */
#ifndef TRANCHE_LOAD_ARRIVALS_H
#define TRANCHE_LOAD_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

enum arrival_kind {
    ARRIVAL_CONSTANT, /* evenly spaced */
    ARRIVAL_POISSON,  /* exponential gaps */
    ARRIVAL_BURSTS,   /* `burst` requests at once, the bursts a Poisson stream */
    ARRIVAL_RAMP,     /* Poisson with a rate that goes from rate_rps to end_rate_rps */
    ARRIVAL_TRACE,    /* times from a file */
    ARRIVAL_KIND_COUNT
};

struct arrivals_options {
    enum arrival_kind kind;
    double rate_rps; /* mean rate of requests, bursts included; > 0 but for a trace */
    double end_rate_rps;
    int64_t duration_ns; /* of the ramp, after which its end rate stays */
    int burst;           /* at least 1 */
    uint64_t seed;
    /* A CSV whose first column (or the one named time_s or TIMESTAMP) has seconds, or dates
     * with times of day; sorted. The first one is the start. */
    const char *trace;
};

struct arrivals;

/* E_INPUT for a trace that is not one, E_IO when it cannot be read, E_USAGE for a rate that
 * is not above 0. */
int arrivals_new(const struct arrivals_options *options, struct arrivals **ret_arrivals,
                 struct error *err);
void arrivals_free(struct arrivals *arrivals); /* NULL is fine */
CLEANUP_DEFINE_FREE(arrivals)

/* The next time, in ns from the start and never falling; false when a trace has ended (the
 * other kinds never do). */
bool arrivals_next(struct arrivals *arrivals, int64_t *ret_time_ns);

const char *arrival_kind_name(enum arrival_kind kind); /* "poisson" … */

#endif
