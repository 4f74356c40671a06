/* SPDX-License-Identifier: Apache-2.0
 *
 * The compact aggregate model as a mixed-integer program (planning notes, 3.1): integer x
 * (instances of a slot kind a service has) and y (GPUs that take a pattern). Used to close
 * small or stubborn problems after the decomposition, and by the bench.
 */
#ifndef TRANCHE_PLAN_COMPACT_H
#define TRANCHE_PLAN_COMPACT_H

#include "plan/aggregate.h"
#include "plan/milp.h"

struct compact_options {
    double cost_min;   /* a proved lower bound of the cost, as a row; 0: none */
    bool relax_spread; /* leave the spread rows out */
};

/* Columns: first x by service and slot kind (0 where unusable), then y by pattern. */
void compact_build(const struct problem *problem, const struct pattern_list *patterns,
                   const struct compact_options *options, struct milp *ret_milp);
/* Rounds a solution's values into an aggregate (of which it makes no check). */
void compact_read(const struct problem *problem, const struct pattern_list *patterns,
                  const double *values, struct aggregate *aggregate);

#endif
