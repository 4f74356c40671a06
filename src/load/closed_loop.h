/* SPDX-License-Identifier: Apache-2.0
 *
 * Closed-loop load: a fixed number of requests in flight, each followed by the next as soon
 * as it has been answered. It finds the highest throughput; its latency says nothing of
 * what users see at a given rate (that is open_loop.h).
 */
#ifndef TRANCHE_LOAD_CLOSED_LOOP_H
#define TRANCHE_LOAD_CLOSED_LOOP_H

#include "load/open_loop.h"

struct closed_loop_options {
    size_t concurrency;
    int64_t warmup_ns, duration_ns;    /* the duration without the warm-up */
    const volatile sig_atomic_t *stop; /* Ctrl-C; NULL: none */
};

/* Fills *ret_result (open_loop_result_done() it in any case); requests count when they were
 * sent and answered within the window, and are never dropped or late. E_INTERRUPTED on
 * Ctrl-C, with what was measured so far; E_IO when a thousand in a row have failed; else
 * the engine's error. */
int closed_loop_run(const struct load_target *target, const struct closed_loop_options *options,
                    struct open_loop_result *ret_result, struct error *err);

#endif
