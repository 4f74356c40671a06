/* SPDX-License-Identifier: Apache-2.0
 *
 * What the change-aware planner needs of the exact one.
 */
#ifndef TRANCHE_PLAN_EXACT_H
#define TRANCHE_PLAN_EXACT_H

#include "plan/solver.h"

/* Looks for a plan of at most this cost (base_cost included), without proof that there is
 * none when it finds none. True and *ret_solution filled when one was found. */
bool exact_reach(const struct problem *problem, const struct solver_settings *settings,
                 double cost_max, struct solution *ret_solution);

/* The whole exact planner without regard to an earlier plan: *ret_solution, empty before, gets
 * the plan and the proved bound. 0 always: without a plan feasible is false. */
int exact_solve_free(const struct problem *problem, const struct solver_settings *settings,
                     struct solution *ret_solution, struct error *err);

#endif
