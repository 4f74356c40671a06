/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's process: caches of what it reads (sources.h), a queue of pools, and for each
 * pool one round at a time:
 *
 *     snapshot of the caches → reconcile in a thread (rounds.h) → effects, in order (execute.h)
 *
 * A change of any object brings its pool into the queue; rounds of a pool begin at least
 * `round_gap_ns` apart. A round waits for the caches to have seen what the one before wrote,
 * for a moment at most. Results are thrown away when leadership ended meanwhile, or when our
 * own objects changed (three times in a row at most: every effect is tied to what it was
 * decided on, so an old decision costs an answer of 409 and no more).
 *
 * Of several replicas the one that holds the Lease acts; the others keep their caches warm. A
 * process that loses the Lease ends. Without an election the epoch is the one last in the
 * Lease.
 *
 * All happens in the loop's thread, from its callbacks.
 */
#ifndef TRANCHE_CONTROL_CONTROLLER_H
#define TRANCHE_CONTROL_CONTROLLER_H

#include "control/execute.h"
#include "control/rounds.h"
#include "kube/lease.h"

struct controller_options {
    struct kube_client *client; /* borrowed, with its loop */
    struct kube_events *events; /* borrowed; NULL: none */
    round_function *reconcile;  /* controller_reconcile, but in tests */
    const char *pool;           /* this one alone; NULL: all */
    const char *identity;       /* of this process, no other's */
    const char *lease_namespace, *lease_name;
    int64_t lease_duration_ns; /* whole seconds; 0: 15 s */
    int64_t round_gap_ns;      /* 0: 200 ms */
    int64_t discovery_ns;      /* 0: 15 s */
    int64_t once_sync_ns;      /* with `once`: the longest wait for the cluster; 0: 60 s */
    struct reconcile_options reconcile_options; /* less the pool */
    unsigned threads;                           /* rounds at once; 0: in the calling thread */
    unsigned window;                            /* of execute.h */
    uint64_t seed;
    int64_t (*wall_s)(void); /* seconds since 1970; NULL: time() */
    bool elect;              /* lead only while holding the Lease */
    bool once;               /* a round for each pool, then end */
    /* Carries nothing out, but tells what it would do. NULL: acts. */
    void (*show)(void *context, const char *pool, const struct effects *effects);
    void *context;
};

struct controller;

/* E_IO when there are no descriptors. Texts are borrowed as long as it lives. */
int controller_new(const struct controller_options *options, struct controller **ret_controller,
                   struct error *err);
/* Waits for rounds that still compute; NULL is fine. */
void controller_free(struct controller *controller);
CLEANUP_DEFINE_FREE(controller)

/* Begins no effect any more, finishes those under way, then ends. From a callback too. */
void controller_stop(struct controller *controller);
/* It has ended: turning the loop is of no further use. */
bool controller_is_over(const struct controller *controller);
/* Gives the Lease up if it is held. 0; E_NO when leadership was lost; with `once` what failed,
 * E_NOT_FOUND when there is no such pool, E_TIMEOUT when the cluster did not answer. Not from a
 * callback. */
int controller_end(struct controller *controller, struct error *err);
/* Waits so long for rounds that still compute; false when one goes on. */
bool controller_wait(struct controller *controller, int64_t wait_ns);

/* Whether it has an epoch under which it may act. */
bool controller_leads(const struct controller *controller);
/* For http_endpoints.h; context is the controller. */
void controller_metrics_page(void *context, struct str *text);
/* For /readyz: the caches are whole, and were fresh not long ago. Appends why not. */
bool controller_is_ready(void *context, struct str *why);

/* world_build(), reconcile_pool(). */
round_function controller_reconcile;

#endif
