/* SPDX-License-Identifier: Apache-2.0
 *
 * MIG-serving's fast algorithm as a procedure that other algorithms call.
 */
#ifndef TRANCHE_PLAN_GREEDY_H
#define TRANCHE_PLAN_GREEDY_H

#include "plan/arm.h"

/* Appends GPUs to the plan until the state is complete; when the budget is spent, the rest
 * by quick_fill(). False when stock ran out. `plan` must be the state's, or empty: then what
 * leads to the state is not in it and its GPUs are not filled up. */
bool greedy_fill(const struct arm *arm, struct arm_state *state, struct arm_plan *plan);

/* The searches work on at most this many GPUs; what a larger plan has beyond that is the
 * greedy algorithm's first choices, made while every service still misses many GPUs. */
enum { SEARCH_GPUS_MAX = 2000 };

#endif
