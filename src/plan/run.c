/* SPDX-License-Identifier: Apache-2.0
 *
 * The pipeline, and what happens when the fleet is too small: the services are admitted in
 * order of priority, each if the fleet still holds all admitted before it.
 */
#include "plan/run.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "plan/change.h"
#include "verify/verify.h"

struct plan_request plan_request_default(const struct service_set *services,
                                         const struct measurement_set *rows)
{
    return (struct plan_request){
        .services = services,
        .rows = rows,
        .max_moves = -1,
        .settings = {.seed = 1, .budget_s = INFINITY, .rounds = -1, .iterations = -1},
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

/* One run: what was asked, and what is being made. */
struct run {
    const struct plan_request *request;
    const struct solver *solver;
    struct problem problem;
    struct solution solution;
    struct order_entry *order; /* of services, when the fleet is too small */
    bool *rejected;            /* by service */
    int64_t deadline_ns;       /* of all solves together; INT64_MAX: none */
};

static void run_done(struct run *run)
{
    free(run->order);
    free(run->rejected);
    solution_done(&run->solution);
    problem_done(&run->problem);
}

/* The least share of a GPU that gives a service one unit of its rate, by compute slices;
 * INFINITY: no slot serves it. */
static double least_share(const struct problem *problem, int service)
{
    double least = INFINITY;
    assert(service >= 0 && service < problem->service_count);
    for (int s = 0; s < problem->slot_count; s++) {
        const struct problem_option *option = problem_option(problem, service, s);
        const struct mig_board *board = problem->slots[s].board;
        int slices = board->profiles[problem->slots[s].profile].compute_slices;
        double share = slices > 0 && board->compute_slices > 0
                           ? (double)slices / board->compute_slices
                           : 1;
        if (option->row >= 0 && option->rate_rps > 0)
            least = fmin(least, share / option->rate_rps);
    }
    return least;
}

/* Whether even GPUs without a hole would be more than a plan may hold. A solver would find
 * out as well, but only after as many steps. */
static bool is_beyond_limit(const struct problem *problem)
{
    double gpus = 0;
    for (int i = 0; i < problem->service_count; i++) {
        double share = least_share(problem, i);
        if (!problem->dropped[i] && isfinite(share))
            gpus += fmax(0, problem->demand_rps[i]) * share;
    }
    assert(gpus >= 0);
    return gpus > PLAN_GPUS_MAX;
}

static int solve(struct run *run, struct error *err)
{
    assert(run->solver);
    solution_done(&run->solution);
    run->solution = (struct solution){.bound_cost = NAN};
    if (is_beyond_limit(&run->problem))
        return 0;
    struct solver_settings settings = run->request->settings;
    if (run->deadline_ns != INT64_MAX)
        settings.budget_s =
            fmax(0, (double)(run->deadline_ns - clock_now_ns(settings.clock)) / 1e9);
    int rc = run->solver->solve(&run->problem, &settings, &run->solution, err);
    if (run->solution.gpus.count > PLAN_GPUS_MAX)
        run->solution.feasible = false;
    if (rc == 0 && run->solution.feasible)
        solution_check(&run->problem, &run->solution);
    return rc;
}

/* Solves with the first `count` of the order alone, without those rejected so far. */
static int solve_first(struct run *run, int count, struct error *err)
{
    assert(count <= run->problem.service_count);
    for (int i = 0; i < run->problem.service_count; i++)
        run->problem.dropped[run->order[i].service] =
            i >= count || run->rejected[run->order[i].service];
    return solve(run, err);
}

/* The longest prefix that fits, of at least `fits` services. What fits is closed downwards,
 * so it is found by halving. */
static int longest_prefix(struct run *run, int *fits, struct error *err)
{
    assert(*fits >= 0 && *fits <= run->problem.service_count);
    int high = run->problem.service_count + 1, rc = 0; /* *fits fits, high does not */
    while (rc == 0 && high - *fits > 1) {
        int middle = *fits + (high - *fits) / 2;
        rc = solve_first(run, middle, err);
        if (run->solution.feasible)
            *fits = middle;
        else
            high = middle;
    }
    return rc;
}

static void list_dropped(struct run *run)
{
    struct problem *problem = &run->problem;
    for (int i = 0; i < problem->service_count; i++)
        if (problem->dropped[i])
            vec_add(
                &problem->infeasible,
                ((struct plan_infeasible){.service = problem->services->services.data[i].name,
                                          .reason = "stock",
                                          .nearest_latency_ms = NAN}));
}

/* Admits by priority: the service behind the longest prefix that fits is rejected, and so
 * on to the end. */
static int admit(struct run *run, struct error *err)
{
    assert(!run->order && !run->rejected);
    int count = run->problem.service_count, fits = 0, rc = 0;
    run->order = order_services(&run->problem);
    run->rejected = xcalloc((size_t)count + 1, sizeof *run->rejected);
    while (rc == 0 && fits < count) {
        rc = longest_prefix(run, &fits, err);
        if (fits < count)
            run->rejected[run->order[fits++].service] = true;
    }
    if (rc == 0)
        rc = solve_first(run, count, err);
    if (rc == 0)
        list_dropped(run);
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

/* How far the plan may be tied to an earlier one; each looser than the one before. */
enum tie { TIE_MATCHED, TIE_KEPT, TIE_NONE, TIE_COUNT };

/* Instances that stay where they are may be in the way of spreading services; then fewer
 * are tied to their place. */
static int assemble_tied(struct run *run, enum tie tie, struct plan *ret_plan,
                         struct error *err)
{
    assert(tie < TIE_COUNT);
    CLEANUP(solution_done) struct solution tied = run->solution;
    memset(&tied.gpus, 0, sizeof tied.gpus);
    for (size_t g = 0; g < run->solution.gpus.count; g++) {
        struct solution_gpu *gpu = vec_push(&tied.gpus);
        *gpu = run->solution.gpus.data[g];
        for (int i = 0; tie == TIE_NONE && i < gpu->count; i++)
            gpu->items[i].stay = 0;
    }
    if (tied.feasible && tie == TIE_MATCHED)
        change_match(&run->problem, &tied);
    return assemble_plan(&run->problem, &tied,
                         &(struct assemble_options){.algorithm = run->solver->name,
                                                    .seed = run->request->settings.seed,
                                                    .fleet_text = run->request->fleet_text},
                         ret_plan, err);
}

static int finish(struct run *run, struct plan *ret_plan, struct error *err)
{
    const struct plan_request *request = run->request;
    struct plan plan;
    int rc = -E_NO;
    for (int tie = TIE_MATCHED; rc == -E_NO && tie < TIE_COUNT; tie++)
        rc = assemble_tied(run, (enum tie)tie, &plan, err);
    if (rc < 0)
        return rc;
    if (request->from && plan.status != PLAN_INFEASIBLE) {
        plan.extra = json_object();
        json_object_set_new(plan.extra, "changes",
                            change_to_json(request->from, &plan, &run->solution));
    }
    if (plan.status != PLAN_INFEASIBLE)
        rc = check_plan(request, &plan, err);
    if (rc < 0)
        plan_done(&plan);
    else
        *ret_plan = plan;
    return rc;
}

static int run_all(struct run *run, struct plan *ret_plan, struct error *err)
{
    assert(!run->order);
    struct problem *problem = &run->problem;
    int rc = problem->infeasible.count == 0 ? solve(run, err) : 0;
    /* Without time to look, nothing is known of the stock. */
    bool is_short = problem->infeasible.count == 0 && !run->solution.feasible &&
                    !run->solution.stopped_by_budget;
    if (rc == 0 && is_short && !run->request->all_or_nothing)
        rc = admit(run, err);
    if (rc < 0)
        return rc;
    /* Without priorities nobody said what may be left out. */
    if (is_short && !priorities_differ(run->request->services))
        run->solution.feasible = false;
    for (int i = 0; !run->solution.feasible && i < problem->service_count; i++)
        problem->dropped[i] = false;
    return finish(run, ret_plan, err);
}

/* The budget is the whole run's: the tables of promises and every solve spend of it. */
static int64_t find_deadline(const struct solver_settings *settings)
{
    assert(!isnan(settings->budget_s));
    if (!settings->clock || !(settings->budget_s < 1e9))
        return INT64_MAX;
    return clock_now_ns(settings->clock) + (int64_t)(settings->budget_s * 1e9);
}

int plan_run(const struct plan_request *request, struct plan *ret_plan, struct error *err)
{
    assert(request && ret_plan && request->services && request->rows);
    CLEANUP(run_done)
    struct run run = {
        .request = request,
        .solver = solver_find(request->algorithm ? request->algorithm : "exact"),
        .solution.bound_cost = NAN,
        .deadline_ns = find_deadline(&request->settings),
    };
    if (!run.solver)
        return error_set(err, E_USAGE, "algorithm \"%s\" is not known", request->algorithm);
    int rc = problem_init(&run.problem, request->services, request->rows,
                          &(struct problem_options){.rules = request->rules,
                                                    .from = request->from,
                                                    .max_moves = request->max_moves,
                                                    .move_price = request->move_price,
                                                    .executor = request->settings.executor},
                          err);
    return rc < 0 ? rc : run_all(&run, ret_plan, err);
}
