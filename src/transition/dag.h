/* SPDX-License-Identifier: Apache-2.0
 *
 * The default planner: plays the transition in several ways (schedule.h) and keeps the one
 * with the fewest borrowed GPUs, then the least makespan, then the fewest actions.
 */
#ifndef TRANCHE_TRANSITION_DAG_H
#define TRANCHE_TRANSITION_DAG_H

#include "transition/plan.h"

/* Fills the actions of a transition whose GPUs are matched, and its figures. E_NO as
 * transition_plan(). */
int dag_plan(struct transition *transition, const struct transition_options *options,
             struct error *err);

#endif
