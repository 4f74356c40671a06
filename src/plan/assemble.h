/* SPDX-License-Identifier: Apache-2.0
 *
 * From labelled slots to a plan: starts by exact placement, names and nodes of the GPUs,
 * fixed and reserved instances put back, services spread over GPUs or nodes as asked, and
 * the figures of the document. Shared by all solvers.
 */
#ifndef TRANCHE_PLAN_ASSEMBLE_H
#define TRANCHE_PLAN_ASSEMBLE_H

#include "plan/solver.h"

struct assemble_options {
    const char *algorithm;
    uint64_t seed;
    const char *fleet_text; /* for options.fleet; NULL: written from the problem */
};

/* *ret_plan is made whole (plan_done() it). Status is PLAN_OPTIMAL when the cost equals
 * the solution's bound (rounded up where all prices are whole), PLAN_FEASIBLE otherwise,
 * PLAN_INFEASIBLE when the solution is not feasible or a service has no usable slot.
 * E_NO when labels cannot be spread as the services ask. */
int assemble_plan(const struct problem *problem, const struct solution *solution,
                  const struct assemble_options *options, struct plan *ret_plan,
                  struct error *err);

#endif
