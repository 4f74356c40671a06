/* SPDX-License-Identifier: Apache-2.0
 *
 * A transition played with action times that vary, actions that fail, GPUs that are lost, and
 * requests that flow meanwhile. One run of one seed; verification is what covers all orders.
 */
#ifndef TRANCHE_TRANSITION_SIMULATE_H
#define TRANCHE_TRANSITION_SIMULATE_H

#include "transition/recover.h"

struct simulate_options {
    const struct action_times *times; /* NULL: the document's seconds */
    uint64_t seed;
    bool jitter;          /* heavy-tailed times instead of the table's */
    double fail;          /* probability that an action fails, 0 … 0.9 */
    double lost_share;    /* of failures: the GPU is lost instead of the action repeated */
    double load;          /* requests that arrive, as a share of the floor */
    const char *lose_gpu; /* this GPU is lost for sure, NULL: none … */
    double lose_at_seconds;
};

struct simulated_service {
    const char *name;
    double floor_rps;
    double minimum_rps;   /* least ready capacity seen */
    double below_seconds; /* time below the floor */
    uint64_t requests;
    uint64_t late; /* waited longer than the service's own latency */
};

struct simulated_loss {
    const char *gpu;
    double at_seconds;
    struct recovery recovery;
};

struct simulation {
    struct arena arena;
    double makespan_seconds;
    double extra_gpu_seconds; /* borrowed GPUs, from the first action on each to the last */
    int actions[ACTION_KIND_COUNT]; /* finished */
    int failures;                   /* actions that failed and were repeated */
    VEC(struct simulated_service) services;
    VEC(struct simulated_loss) losses;
    bool replanned;
    struct transition last; /* with replanned: the last way on */
};

void simulation_done(struct simulation *simulation);
/* E_NO when there is no way on after a lost GPU. The transition must be verified. */
int transition_simulate(const struct transition *transition,
                        const struct simulate_options *options,
                        struct simulation *ret_simulation, struct error *err);

#endif
