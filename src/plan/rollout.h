/* SPDX-License-Identifier: Apache-2.0
 *
 * The replacement of classic playouts in MIG-serving's tree search: memoised pools of good
 * configurations for each rough type of completion vector. A playout maps the state to its
 * type and takes a random member of that pool, until the state is complete.
 *
 * The type, which the paper leaves open: the services that miss the most GPUs
 * (mcts-services of them) and how many each misses, coarsely: by powers of two, the last
 * GPU in mcts-levels steps.
 */
#ifndef TRANCHE_PLAN_ROLLOUT_H
#define TRANCHE_PLAN_ROLLOUT_H

#include "base/map.h"
#include "base/rng.h"
#include "plan/arm.h"
#include "plan/candidates.h"

struct rollout_pool;
struct rollout_pools {
    struct map types; /* type text, at the index of its pool */
    VEC(struct rollout_pool *) pools;
};
/* Frees all pools; they may be filled again. */
void rollout_pools_done(struct rollout_pools *pools);

/* Plays from the state, which becomes complete, appending to the plan. Returns the cost of
 * what was added; INFINITY when stock ran out or the cost would pass `most`. */
double rollout_play(const struct arm *arm, struct rollout_pools *pools, struct rng *rng,
                    struct arm_state *state, double most, struct arm_plan *plan);

#endif
