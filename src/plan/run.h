/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning from inputs to a verified document: problem, solver, assembly, check. What the
 * command line, the autopilot and the controller call.
 */
#ifndef TRANCHE_PLAN_RUN_H
#define TRANCHE_PLAN_RUN_H

#include "plan/assemble.h"

struct plan_request {
    const struct service_set *services;
    const struct measurement_set *rows;
    const char *algorithm; /* NULL: exact */
    enum plan_rules rules;
    const struct plan *from; /* NULL: none */
    int max_moves;           /* -1: no limit */
    double move_price;
    const char *fleet_text; /* for the document; NULL: written from the fleet */
    bool all_or_nothing;    /* priorities apart: too small a fleet is infeasible, found at once,
                               and plan->infeasible names nobody for it */
    struct solver_settings settings;
};

/* Settings with the defaults: seed 1, no budget, one thread. */
struct plan_request plan_request_default(const struct service_set *services,
                                         const struct measurement_set *rows);

/* Plans. 0 with a plan of any status, PLAN_INFEASIBLE included; every other plan has passed
 * plan_verify(). When the fleet is too small and priorities differ, services of the lowest
 * priorities are left out until the rest fits, and are listed in plan->infeasible with
 * reason "stock". E_USAGE for an unknown algorithm, E_INPUT for inputs that contradict each
 * other. */
int plan_run(const struct plan_request *request, struct plan *ret_plan, struct error *err);

#endif
