/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of reconciling, each in a thread of its own on a snapshot, so that the loop goes on
 * renewing the Lease while a plan is made. The results are handed back in the loop's thread.
 */
#ifndef TRANCHE_CONTROL_ROUNDS_H
#define TRANCHE_CONTROL_ROUNDS_H

#include "control/reconcile.h"
#include "control/sources.h"

/* Called in a round's thread; knows of nothing but its arguments. As reconcile_pool(). */
typedef int round_function(const struct world_sources *sources,
                           const struct reconcile_options *options, struct effects *ret_effects,
                           struct reconcile_figures *ret_figures, struct error *err);

struct round {
    char *pool; /* owned */
    struct snapshot snapshot;
    unsigned long moved; /* the caller's: to see what changed meanwhile */
    struct effects effects;
    struct reconcile_figures figures;
    struct error error; /* E_NONE: it went well */
    int64_t took_ns;
};

struct rounds_options {
    struct kube_loop *loop; /* borrowed */
    round_function *reconcile;
    struct reconcile_options reconcile_options; /* less the pool */
    unsigned threads; /* rounds at once; 0: one, in the calling thread */
    /* In the loop. The round is freed after; its effects may be taken. */
    void (*done)(void *context, struct round *round);
    void *context;
};

struct rounds;

/* E_IO when there is no descriptor for handing back. */
int rounds_new(const struct rounds_options *options, struct rounds **ret_rounds,
               struct error *err);
/* Waits for those under way; done() is not called any more. NULL is fine. */
void rounds_free(struct rounds *rounds);
CLEANUP_DEFINE_FREE(rounds)

/* Whether another round may be started now. */
bool rounds_have_room(const struct rounds *rounds);
/* The snapshot goes over. Only when there is room. */
void rounds_start(struct rounds *rounds, const char *pool, struct snapshot *snapshot,
                  unsigned long moved);
/* Waits at most so long for those under way; whether all have ended. */
bool rounds_wait(struct rounds *rounds, int64_t wait_ns);

#endif
