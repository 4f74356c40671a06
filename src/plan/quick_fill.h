/* SPDX-License-Identifier: Apache-2.0
 *
 * The cheapest way to complete a plan: for when the budget is spent. Its time is about
 * proportional to the number of instances, whatever the number of services.
 */
#ifndef TRANCHE_PLAN_QUICK_FILL_H
#define TRANCHE_PLAN_QUICK_FILL_H

#include "plan/arm.h"

/* Adds instances to the plan until every need is met: those of the slot with the most
 * utility per compute slice, then the smallest slot that covers the rest; the largest
 * first, each on the first GPU with room. False when stock ran out. `state` must be the
 * plan's. */
bool quick_fill(const struct arm *arm, struct arm_state *state, struct arm_plan *plan);

#endif
