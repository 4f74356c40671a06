/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU is lost in the middle of a transition: what that cost, and the way on to `to`.
 */
#ifndef TRANCHE_TRANSITION_RECOVER_H
#define TRANCHE_TRANSITION_RECOVER_H

#include "transition/plan.h"

/* What losing the GPU took from a service. */
struct unavoidable {
    const char *service;
    double floor_rps; /* of the transition that was under way */
    double lost_rps;  /* ready on the lost GPU */
    double left_rps;  /* ready elsewhere: below the floor it was unavoidable to fall to this */
};

struct recovery {
    struct arena arena;
    VEC(struct unavoidable) unavoidable; /* services that the loss put below their floor */
};

void recovery_done(struct recovery *recovery);

/* The way from the state after `done` without the GPU `lost` (an id here or in from) to `to`,
 * under the floor, or for a service below it, what is left: no less than that again. GPUs
 * that are missing for `to` come as new ones; as many as needed are borrowed. E_NOT_FOUND for
 * an unknown GPU. */
int transition_recover(const struct transition *transition, const bool *done, const char *lost,
                       const struct transition_options *options, struct recovery *ret_recovery,
                       struct transition *ret_transition, struct error *err);

#endif
