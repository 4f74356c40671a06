/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam between load generation and what is loaded: requests go in without waiting,
 * completions come out. Engines: null (made-up service times, engine_null.h), workers in
 * slices (engine_workers.h), servers over HTTP.
 *
 * The generator owns time: an engine tells it when a request's service began and ended on
 * the clock it was opened with. An engine is used by one thread.
 */
#ifndef TRANCHE_LOAD_ENGINE_H
#define TRANCHE_LOAD_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

enum load_outcome { LOAD_OK, LOAD_FAILED /* the target refused or broke it */ };

struct load_completion {
    uint64_t request;
    enum load_outcome outcome;
    int64_t start_ns; /* of its service; 0: the engine cannot tell */
    int64_t end_ns;
};

struct load_engine {
    const char *name;
    /* Sends request number `request` now and returns at once. E_BUSY: cannot take it (counted
     * as dropped); any other error ends the run. */
    int (*submit)(void *self, uint64_t request, struct error *err);
    /* Waits until something completed or the clock is at deadline_ns, and takes at most
     * `capacity` completions. *ret_count 0: nothing by then. An error ends the run. */
    int (*poll)(void *self, int64_t deadline_ns, struct load_completion *ret_completions,
                size_t capacity, size_t *ret_count, struct error *err);
};

/* An engine that was opened. */
struct load_target {
    const struct load_engine *engine;
    void *self;
    const struct clock_source *clock;
};

#endif
