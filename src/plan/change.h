/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans that change an earlier plan (problem->from) as little as possible: at the least
 * cost, the most of its instances stay where they are; or, with problem->max_moves or
 * move_price, the least cost within so many moves or at that price for each.
 */
#ifndef TRANCHE_PLAN_CHANGE_H
#define TRANCHE_PLAN_CHANGE_H

#include "plan/solver.h"

/* Replaces *solution, made without regard to problem->from, by one that keeps what it can, with
 * kept_bound where it is proved. Not feasible after when max_moves cannot be held. 0 always. */
int change_keep(const struct problem *problem, const struct solver_settings *settings,
                struct solution *solution, struct error *err);

/* Lets GPUs of the solution continue GPUs of problem->from: those that have most in common
 * first; what is in common stays in place. Does nothing without an earlier plan. */
void change_match(const struct problem *problem, struct solution *solution);

/* What the plan keeps of an earlier one, as the document's member "changes": {"kept",
 * "kept_bound", "moved", "created", "left": [{gpu, slice, start, service}], "new": […]}, the
 * second where the solution has it. New reference. */
json_t *change_to_json(const struct plan *from, const struct plan *to,
                       const struct solution *solution);

#endif
