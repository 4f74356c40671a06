/* SPDX-License-Identifier: Apache-2.0
 *
 * The exact planner. First cut: the compact aggregate model solved to a proved optimum.
 */
#include <math.h>

#include "plan/aggregate.h"
#include "plan/compact.h"
#include "plan/solver.h"

static int exact_solve(const struct problem *problem, const struct solver_settings *settings,
                       struct solution *ret_solution, struct error *err)
{
    struct pattern_list patterns;
    struct milp milp;
    struct milp_result result;
    struct aggregate aggregate;
    (void)err;
    pattern_list_init(&patterns, problem);
    aggregate_init(&aggregate, problem, &patterns);
    compact_build(problem, &patterns, &(struct compact_options){0}, &milp);
    milp_solve(&milp,
               &(struct milp_limits){
                   .cutoff = INFINITY, .seconds = settings->budget_s, .nodes = 100000},
               &result);
    ret_solution->bound_cost = problem->base_cost + result.bound;
    ret_solution->bound_how = "branch and cut on the aggregate model (CBC)";
    ret_solution->stopped_by_budget = isfinite(settings->budget_s) &&
                                      result.status != MILP_OPTIMAL &&
                                      result.status != MILP_INFEASIBLE;
    if (result.values) {
        ret_solution->feasible = true;
        compact_read(problem, &patterns, result.values, &aggregate);
        aggregate_label(&aggregate, problem, &patterns, ret_solution);
    }
    free(result.values);
    milp_done(&milp);
    aggregate_done(&aggregate);
    pattern_list_done(&patterns);
    return 0;
}

const struct solver solver_exact = {
    .name = "exact",
    .summary = "proved optimal: covers at slot prices, column generation, integer rounding",
    .solve = exact_solve,
};
