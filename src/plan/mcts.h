/* SPDX-License-Identifier: Apache-2.0
 *
 * MIG-serving's slow algorithm as a procedure: what the genetic algorithm's crossover calls.
 */
#ifndef TRANCHE_PLAN_MCTS_H
#define TRANCHE_PLAN_MCTS_H

#include "base/rng.h"
#include "plan/arm.h"
#include "plan/rollout.h"

/* Appends to the plan the cheapest GPUs found that complete the state (which is left as it
 * was); false when none were found within stock. `iterations` playouts before each step;
 * <= 0: a number that keeps the whole search bounded. The pools are shared between calls. */
bool mcts_fill(const struct arm *arm, struct rollout_pools *pools,
               const struct arm_state *state, struct rng *rng, long iterations,
               struct arm_plan *plan);

#endif
