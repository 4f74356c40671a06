/* SPDX-License-Identifier: Apache-2.0
 *
 * When requests are meant to be sent: an open loop's schedule, which does not depend on how
 * fast the target answers. Text forms, rates in requests a second:
 *
 *     constant:RATE        every 1/RATE seconds
 *     poisson:RATE         independent, exponential gaps
 *     burst:RATE,SIZE      SIZE at once, at Poisson times, RATE requests a second on average
 *     ramp:FROM..TO        the rate grows (or falls) linearly over the duration
 *     trace:FILE           offsets in seconds, one a line, not falling
 */
#ifndef TRANCHE_LOAD_ARRIVALS_H
#define TRANCHE_LOAD_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/vec.h"

enum arrival_kind {
    ARRIVAL_CONSTANT,
    ARRIVAL_POISSON,
    ARRIVAL_BURST,
    ARRIVAL_RAMP,
    ARRIVAL_TRACE,
    ARRIVAL_KIND_COUNT
};

struct arrivals {
    enum arrival_kind kind;
    double rate_rps, end_rps; /* end_rps: of a ramp */
    int burst_size;
    VEC(int64_t) trace_ns;
    int64_t duration_ns; /* nothing is scheduled from here on */
    struct rng rng;
    uint64_t made; /* requests so far */
    double at_ns;  /* of the last one (Poisson, bursts) */
    bool ended;
};

/* The part before ':' decides the kind. E_INPUT with the expected form; a trace is read and
 * checked here (E_IO when it cannot be). duration_ns 0: a trace's own length. */
int arrivals_parse(const char *text, int64_t duration_ns, uint64_t seed,
                   struct arrivals *ret_arrivals, struct error *err);
/* Frees a trace. */
void arrivals_done(struct arrivals *arrivals);
/* The next request's offset from the start, never falling; false at the end. */
bool arrivals_next(struct arrivals *arrivals, int64_t *ret_offset_ns);

#endif
