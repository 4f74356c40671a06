/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine without a target: a queue before servers that take a known time for each
 * request. With a fake clock it is an exact simulation, with the real one it tells what the
 * generator itself costs.
 */
#ifndef TRANCHE_LOAD_ENGINE_NULL_H
#define TRANCHE_LOAD_ENGINE_NULL_H

#include "load/engine.h"

struct null_engine_options {
    int64_t service_ns; /* of each request */
    int servers;        /* requests served at once; at least 1 */
    size_t queue_max;   /* beyond which submit answers E_BUSY; 0: no bound */
    /* A stall: servers begin nothing from stall_at_ns on for stall_ns (0: none), as a pause
     * of a real server would be. Times are of the clock. */
    int64_t stall_at_ns, stall_ns;
    const struct clock_source *clock;
};

/* Fills *ret_target; close with null_engine_close(). */
void null_engine_open(const struct null_engine_options *options,
                      struct load_target *ret_target);
/* Frees the engine. */
void null_engine_close(struct load_target *target);

#endif
