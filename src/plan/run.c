/* SPDX-License-Identifier: Apache-2.0
 *
 * The pipeline, and what happens when the fleet is too small: the services are admitted in
 * order of priority, each if the fleet still holds all admitted before it.
 */
#include "plan/run.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "plan/change.h"
#include "verify/verify.h"

struct plan_request plan_request_default(const struct service_set *services,
                                         const struct measurement_set *rows)
{
    return (struct plan_request){
        .services = services,
        .rows = rows,
        .max_moves = -1,
        .settings =
            {.seed = 1, .budget_s = INFINITY, .threads = 1, .rounds = -1, .iterations = -1},
    };
}

static bool priorities_differ(const struct service_set *services)
{
    for (size_t i = 1; i < services->services.count; i++)
        if (services->services.data[i].priority != services->services.data[0].priority)
            return true;
    return false;
}

struct order_entry {
    int service, priority;
    double rate_rps;
};

static int compare_order(const void *a, const void *b)
{
    const struct order_entry *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return x->service - y->service;
}

/* Services from the most to the least urgent, in the file's order among equals. */
static struct order_entry *order_services(const struct problem *problem)
{
    struct order_entry *order = xcalloc((size_t)problem->service_count + 1, sizeof *order);
    for (int i = 0; i < problem->service_count; i++)
        order[i] = (struct order_entry){
            .service = i, .priority = problem->services->services.data[i].priority};
    qsort(order, (size_t)problem->service_count, sizeof *order, compare_order);
    return order;
}

static int solve(const struct plan_request *request, const struct solver *solver,
                 const struct problem *problem, struct solution *ret_solution,
                 struct error *err)
{
    solution_done(ret_solution);
    *ret_solution = (struct solution){.bound_cost = NAN};
    return solver->solve(problem, &request->settings, ret_solution, err);
}

/* Whether the first `count` of the order, without those rejected so far, fit. */
static int try_first(const struct plan_request *request, const struct solver *solver,
                     struct problem *problem, const struct order_entry *order, int count,
                     const bool *rejected, struct solution *solution, struct error *err)
{
    for (int i = 0; i < problem->service_count; i++)
        problem->dropped[order[i].service] = i >= count || rejected[order[i].service];
    return solve(request, solver, problem, solution, err);
}

/* Admits by priority. What fits is closed downwards, so the longest prefix that fits is
 * found by halving; then the service behind it is rejected and the search goes on. */
static int admit(const struct plan_request *request, const struct solver *solver,
                 struct problem *problem, struct solution *solution, struct error *err)
{
    struct order_entry *order = order_services(problem);
    bool *rejected = xcalloc((size_t)problem->service_count + 1, sizeof *rejected);
    int fits = 0, rc = 0;
    while (rc == 0 && fits < problem->service_count) {
        int low = fits, high = problem->service_count + 1; /* low fits, high does not */
        while (rc == 0 && high - low > 1) {
            int middle = low + (high - low) / 2;
            rc = try_first(request, solver, problem, order, middle, rejected, solution, err);
            if (solution->feasible)
                low = middle;
            else
                high = middle;
        }
        if (low < problem->service_count)
            rejected[order[low].service] = true;
        fits = low < problem->service_count ? low + 1 : low;
    }
    if (rc == 0)
        rc = try_first(request, solver, problem, order, problem->service_count, rejected,
                       solution, err);
    for (int i = 0; rc == 0 && i < problem->service_count; i++)
        if (problem->dropped[i])
            vec_add(
                &problem->infeasible,
                ((struct plan_infeasible){.service = problem->services->services.data[i].name,
                                          .reason = "stock",
                                          .nearest_latency_ms = NAN}));
    free(order);
    free(rejected);
    return rc;
}

static int check_plan(const struct plan_request *request, const struct plan *plan,
                      struct error *err)
{
    struct violations violations;
    size_t count = plan_verify(plan, request->services, request->rows, &violations);
    int rc = 0;
    if (count > 0)
        rc = error_set(err, E_NO,
                       "the plan of algorithm %s failed its own verification (%zu violations); "
                       "the first: %s %s: %s",
                       plan->algorithm, count, violations.list.data[0].rule,
                       violations.list.data[0].place, violations.list.data[0].text);
    violations_done(&violations);
    return rc;
}

static int finish(const struct plan_request *request, const struct solver *solver,
                  const struct problem *problem, struct solution *solution,
                  struct plan *ret_plan, struct error *err)
{
    struct plan plan;
    if (solution->feasible)
        change_match(problem, solution);
    int rc = assemble_plan(problem, solution,
                           &(struct assemble_options){.algorithm = solver->name,
                                                      .seed = request->settings.seed,
                                                      .fleet_text = request->fleet_text},
                           &plan, err);
    if (rc < 0)
        return rc;
    if (request->from && plan.status != PLAN_INFEASIBLE) {
        plan.extra = json_object();
        json_object_set_new(plan.extra, "changes", change_to_json(request->from, &plan));
    }
    if (plan.status != PLAN_INFEASIBLE)
        rc = check_plan(request, &plan, err);
    if (rc < 0)
        plan_done(&plan);
    else
        *ret_plan = plan;
    return rc;
}

static int run(const struct plan_request *request, const struct solver *solver,
               struct problem *problem, struct solution *solution, struct plan *ret_plan,
               struct error *err)
{
    int rc = 0;
    solution->bound_cost = NAN;
    if (problem->infeasible.count == 0)
        rc = solve(request, solver, problem, solution, err);
    if (rc < 0)
        return rc;
    if (problem->infeasible.count == 0 && !solution->feasible) {
        rc = admit(request, solver, problem, solution, err);
        if (rc < 0)
            return rc;
        /* Without priorities nobody said what may be left out. */
        if (!priorities_differ(request->services))
            solution->feasible = false;
    }
    if (!solution->feasible)
        for (int i = 0; i < problem->service_count; i++)
            problem->dropped[i] = false;
    return finish(request, solver, problem, solution, ret_plan, err);
}

int plan_run(const struct plan_request *request, struct plan *ret_plan, struct error *err)
{
    const struct solver *solver =
        solver_find(request->algorithm ? request->algorithm : "exact");
    if (!solver)
        return error_set(err, E_USAGE, "algorithm \"%s\" is not known", request->algorithm);
    struct problem problem;
    struct solution solution = {0};
    int rc = problem_init(&problem, request->services, request->rows,
                          &(struct problem_options){.rules = request->rules,
                                                    .from = request->from,
                                                    .max_moves = request->max_moves,
                                                    .move_price = request->move_price},
                          err);
    if (rc < 0)
        return rc;
    rc = run(request, solver, &problem, &solution, ret_plan, err);
    solution_done(&solution);
    problem_done(&problem);
    return rc;
}
