/* SPDX-License-Identifier: Apache-2.0
 *
 * Instances that a Transition has to make, and what lies in their place that it does not know.
 * Pure.
 */
#ifndef TRANCHE_CONTROL_TRANSITION_OBSTRUCTION_H
#define TRANCHE_CONTROL_TRANSITION_OBSTRUCTION_H

#include <stdbool.h>

#include "control/actuator.h"
#include "transition/plan.h"

struct obstruction_query {
    const struct transition *transition;
    const bool *done; /* by action */
    const int *gpus;  /* by the transition's GPU: its position in `observed`, -1: gone */
    const struct actuator_gpus *observed;
};

/* Whether an instance that is not made yet has no place beside those that stay: one of them is
 * another program's, or another pool's before, and was not there when the order was made. */
bool transition_is_obstructed(const struct obstruction_query *query);

#endif
