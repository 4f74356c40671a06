/* SPDX-License-Identifier: Apache-2.0
 *
 * Open-loop load: requests are sent when the schedule says, whether or not earlier ones
 * have been answered, and latency counts from the intended send time, so that a target
 * that stalls is seen to be late for all that should have been sent meanwhile (no
 * coordinated omission).
 *
 * Only requests that succeeded are in the histograms. Dropped ones (over the cap on requests
 * in flight, or refused), timed-out ones and errors are counted beside. Requests meant for
 * the warm-up are sent but not counted.
 */
#ifndef TRANCHE_LOAD_OPEN_LOOP_H
#define TRANCHE_LOAD_OPEN_LOOP_H

#include <signal.h>

#include "base/hist.h"
#include "base/vec.h"
#include "load/arrivals.h"
#include "load/engine.h"

struct open_loop_options {
    struct arrivals *arrivals;
    int64_t warmup_ns;    /* of the schedule */
    int64_t timeout_ns;   /* from the intended time; later answers count as timed out */
    size_t in_flight_max; /* cap: what would exceed it is dropped, and said */
    const volatile sig_atomic_t *stop; /* Ctrl-C; NULL: none */
};

struct open_loop_sample {
    int64_t intended_ns, end_ns;
};

struct open_loop_result {
    struct hist *latency;  /* intended send time to end */
    struct hist *queue;    /* intended send time to start of service, where known */
    struct hist *service;  /* start of service to end, where known */
    struct hist *send_lag; /* intended to actual send time: the generator's own delay */
    uint64_t scheduled, sent, completed, dropped, timed_out, failed;
    size_t in_flight_peak;
    int64_t window_ns;    /* from the end of the warm-up to the end of the schedule */
    double offered_rps;   /* scheduled ÷ window */
    double completed_rps; /* ended within the window ÷ window */
    VEC(struct open_loop_sample) samples; /* completed, in order of completion */
};

/* Fills *ret_result (open_loop_result_done() it in any case). E_INTERRUPTED on Ctrl-C, with
 * what was measured so far; else the engine's error. */
int open_loop_run(const struct load_target *target, const struct open_loop_options *options,
                  struct open_loop_result *ret_result, struct error *err);
/* Frees histograms and samples; a zeroed one is fine. */
void open_loop_result_done(struct open_loop_result *result);

#endif
