/* SPDX-License-Identifier: Apache-2.0
 *
 * The exact planner: a bound by slot prices and integral covers (dual.h), a whole plan at
 * the rounded-up bound by balancing (balance.h), and branch and cut on the compact model
 * (compact.h) for what is small enough and still open. docs/spec/planning.md has the proofs.
 *
 * Limits are counts of steps and nodes, never times, unless a budget is given.
 */
#include <assert.h>
#include <math.h>

#include "plan/exact.h"

#include "plan/aggregate.h"
#include "plan/balance.h"
#include "plan/change.h"
#include "plan/compact.h"
#include "plan/dual.h"
#include "plan/pin.h"
#include "plan/seats.h"
#include "plan/spread.h"

enum {
    ROUNDS_MAX = 200,
    BALANCE_TRIES = 5,
    REACH_TRIES = 2,
    SPREAD_ROUNDS = 40,
    COMPACT_COLUMNS_MAX = 600,
    COMPACT_NODES_SMALL = 20000, /* up to COMPACT_COLUMNS_SMALL columns */
    COMPACT_COLUMNS_SMALL = 120,
    COMPACT_NODES_LARGE = 100,
};

struct exact {
    const struct problem *problem;
    const struct solver_settings *settings;
    struct pattern_list patterns;
    struct cover *covers;
    struct dual dual;
    struct cover_pool pool;
    struct aggregate best, trial;
    bool has_best;
    double best_cost; /* of patterns, without base_cost */
    double bound;     /* proved, without base_cost */
    double quantum;   /* costs are whole multiples of it; 0: unknown */
    const char *how;
    int64_t deadline_ns; /* INT64_MAX: none */
    bool out_of_time;
    bool hasty;    /* time is up, but some plan is owed */
    bool spread;   /* some service asks for it */
    bool unspread; /* a plan was found that could not be spread */
};

static void exact_done(struct exact *exact)
{
    for (int i = 0; exact->covers && i < exact->problem->service_count; i++)
        cover_done(&exact->covers[i]);
    free(exact->covers);
    dual_done(&exact->dual);
    cover_pool_done(&exact->pool);
    aggregate_done(&exact->best);
    aggregate_done(&exact->trial);
    pattern_list_done(&exact->patterns);
}

static bool is_late(void *context)
{
    struct exact *exact = context;
    if (exact->deadline_ns == INT64_MAX)
        return false;
    if (clock_now_ns(exact->settings->clock) >= exact->deadline_ns)
        exact->out_of_time = true;
    return exact->out_of_time;
}

static double seconds_left(const struct exact *exact)
{
    if (exact->deadline_ns == INT64_MAX)
        return INFINITY;
    return (double)(exact->deadline_ns - clock_now_ns(exact->settings->clock)) / 1e9;
}

/* The largest of 1, 1/2, 1/4, 1/5 … of which all prices are whole multiples, times their
 * common divisor; 0 when there is none. Any plan costs a multiple of it. */
static double find_quantum(const struct problem *problem)
{
    static const int scales[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 50, 100, 1000};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        long long divisor = 0;
        bool whole = true;
        for (size_t k = 0; whole && k < problem->kinds.count; k++) {
            double scaled = problem->kinds.data[k].price * scales[i];
            whole = fabs(scaled - round(scaled)) < 1e-9 && scaled < 1e12;
            for (long long a = (long long)round(scaled); a > 0;) {
                long long rest = divisor % a;
                divisor = a;
                a = rest;
            }
        }
        if (whole && divisor > 0)
            return (double)divisor / scales[i];
    }
    return 0;
}

/* The least cost at or above a bound that any plan can have. */
static double round_up(const struct exact *exact, double bound)
{
    assert(exact->quantum >= 0 && !isnan(bound));
    if (exact->quantum == 0)
        return bound;
    double slack = 1e-7 * fmax(1, bound / exact->quantum) * 1e-2;
    return ceil(bound / exact->quantum - fmax(slack, 1e-7)) * exact->quantum;
}

static bool is_closed(const struct exact *exact)
{
    return exact->has_best &&
           exact->best_cost <= round_up(exact, exact->bound) + 1e-9 * fmax(1, exact->best_cost);
}

/* Whether the labels of an aggregate can be spread as services ask. If not, the services
 * that cannot are held to need as much more as one GPU or node had of them. */
static bool can_spread(struct exact *exact, const struct aggregate *aggregate)
{
    const struct problem *problem = exact->problem;
    if (!exact->spread)
        return true;
    struct arena arena = {0};
    CLEANUP(solution_done) struct solution solution = {0}, whole = {0};
    double *largest_rps = xcalloc((size_t)problem->service_count + 1, sizeof *largest_rps);
    aggregate_label(aggregate, problem, &exact->patterns, &solution);
    if (problem->pinned)
        pinned_problem_expand(problem->pinned, &solution, &whole);
    const struct problem *base = problem->pinned ? problem->pinned->base : problem;
    struct solution *checked = problem->pinned ? &whole : &solution;
    solution_add_untouched(base, checked);
    const struct seat *seats = seats_assign(base, checked, &arena);
    bool can = spread_try(base, seats, checked, largest_rps);
    for (int i = 0; i < problem->service_count; i++) {
        double full_rps = problem->services->services.data[i].rate_rps;
        struct cover *cover = &exact->covers[i];
        if (largest_rps[i] > 0)
            cover->margin = fmax(cover->margin * 1.02, largest_rps[i] / full_rps);
    }
    exact->unspread |= !can;
    free(largest_rps);
    arena_done(&arena);
    return can;
}

/* Takes a plan as the incumbent when it is valid and better. */
static bool offer(struct exact *exact, const struct aggregate *aggregate)
{
    double cost = aggregate_cost(aggregate, &exact->patterns);
    assert(cost >= exact->bound - 1e-6 * fmax(1, cost));
    if (exact->has_best && cost >= exact->best_cost - 1e-9)
        return false;
    if (!aggregate_holds(aggregate, exact->problem, &exact->patterns) ||
        !can_spread(exact, aggregate))
        return false;
    aggregate_copy(&exact->best, aggregate, exact->problem, &exact->patterns);
    exact->has_best = true;
    exact->best_cost = cost;
    return true;
}

static bool try_cost(struct exact *exact, double cost_max, int tries)
{
    assert(tries >= 1);
    struct balance_options options = {
        .cost_max = cost_max + 1e-9 * fmax(1, cost_max),
        .seed = exact->settings->seed,
        .tries = tries,
        .stop = exact->hasty ? NULL : is_late,
        .context = exact,
    };
    return balance_search(exact->problem, &exact->patterns, &exact->dual, &exact->pool,
                          &options, &exact->trial) &&
           offer(exact, &exact->trial);
}

/* The step in which costs are tried: the quantum, or a part of the bound. */
static double cost_step(const struct exact *exact)
{
    double step = fmax(exact->quantum, exact->bound * 1e-4);
    assert(step >= 0);
    return exact->quantum > 0 ? ceil(step / exact->quantum - 1e-9) * exact->quantum : step;
}

/* From the rounded-up bound upwards in growing steps until a plan is found, then down
 * again by halving between what failed and what was found. */
static void find_plan(struct exact *exact)
{
    double least = round_up(exact, exact->bound), step = cost_step(exact), failed = -1;
    double dearest = 0;
    for (size_t k = 0; k < exact->problem->kinds.count; k++)
        dearest = fmax(dearest, exact->problem->kinds.data[k].price);
    double last = 2 * least + 64 * dearest;
    for (double above = 0; least + above <= last && (exact->hasty || !exact->out_of_time);
         above = above == 0 ? step : 2 * above) {
        if (try_cost(exact, least + above, above == 0 ? BALANCE_TRIES : 1) || exact->unspread)
            break;
        failed = above;
    }
    while (exact->has_best && failed >= 0 && !exact->out_of_time &&
           exact->best_cost - least - failed > 1.5 * step) {
        double middle = (failed + exact->best_cost - least) / 2;
        if (exact->quantum > 0)
            middle = floor(middle / exact->quantum + 1e-9) * exact->quantum;
        if (middle <= failed)
            break;
        if (!try_cost(exact, least + middle, BALANCE_TRIES))
            failed = middle;
    }
}

/* Covers at the bound's prices for services whose need has grown. */
static void renew_covers(struct exact *exact)
{
    const struct problem *problem = exact->problem;
    double dearest = 0, price;
    for (int i = 0; i < problem->service_count; i++)
        cover_cheapest(&exact->covers[i], exact->dual.slot_price,
                       &exact->dual.start[i * problem->slot_count], &price);
    for (int s = 0; s < problem->slot_count; s++)
        dearest = fmax(dearest, exact->dual.slot_price[s]);
    cover_pool_done(&exact->pool);
    cover_pool_init(&exact->pool, problem, exact->covers, exact->dual.slot_price, dearest);
}

/* Slots that suffice may still not let a service be spread. Then it is made to need more,
 * step by step, until it can be; last, as much as two GPUs or nodes with all of it. */
static void find_spread_plan(struct exact *exact)
{
    for (int round = 0; round < SPREAD_ROUNDS && !exact->out_of_time; round++) {
        exact->unspread = false;
        find_plan(exact);
        if (is_closed(exact))
            return;
        bool last = round == SPREAD_ROUNDS - 2 || !exact->unspread;
        for (int i = 0; last && i < exact->problem->service_count; i++)
            if (exact->covers[i].spread)
                exact->covers[i].margin = fmax(exact->covers[i].margin, 1);
        if (!exact->unspread)
            round = SPREAD_ROUNDS - 2 > round ? SPREAD_ROUNDS - 2 : round;
        renew_covers(exact);
    }
}

/* Branch and cut on the compact model for what is left open. */
static void close_gap(struct exact *exact)
{
    struct milp milp;
    struct milp_result result;
    int columns =
        exact->problem->service_count * exact->problem->slot_count + exact->patterns.count;
    bool must = !exact->has_best;
    if (columns > COMPACT_COLUMNS_MAX && !must)
        return;
    compact_build(exact->problem, &exact->patterns,
                  &(struct compact_options){.cost_min = exact->bound * (1 - 1e-9)}, &milp);
    double tick = exact->quantum > 0 ? exact->quantum / 2 : exact->best_cost * 1e-9;
    milp_solve(
        &milp,
        &(struct milp_limits){.cutoff = exact->has_best ? exact->best_cost - tick : INFINITY,
                              .seconds = fmax(seconds_left(exact), 0.001),
                              .nodes = columns <= COMPACT_COLUMNS_SMALL ? COMPACT_NODES_SMALL
                                                                        : COMPACT_NODES_LARGE},
        &result);
    milp_done(&milp);
    if (result.values) {
        compact_read(exact->problem, &exact->patterns, result.values, &exact->trial);
        offer(exact, &exact->trial);
    }
    if ((result.status == MILP_OPTIMAL || result.status == MILP_INFEASIBLE) &&
        exact->has_best) {
        double proved = result.status == MILP_OPTIMAL ? result.objective : exact->best_cost;
        exact->bound = fmax(exact->bound, fmin(proved, exact->best_cost));
        exact->how = "slot prices with integral covers, then branch and cut on the aggregate "
                     "model (CBC)";
    }
    free(result.values);
    is_late(exact);
}

/* A certificate that stock is too small; false also when there is none. */
static bool is_short_of_stock(struct exact *exact)
{
    bool limited = false;
    for (size_t k = 0; k < exact->problem->kinds.count; k++)
        limited |= exact->problem->kinds.data[k].stock != PROBLEM_UNLIMITED;
    for (int i = 0; i < exact->problem->service_count; i++)
        if (!cover_possible(&exact->covers[i]))
            return true;
    if (!limited)
        return false;
    struct dual dual = {0};
    dual_solve(
        exact->problem, &exact->patterns, exact->covers,
        &(struct dual_options){.feasibility = true, .gap = 1e-7, .rounds_max = ROUNDS_MAX},
        &dual);
    bool is_short = dual.bound > 1e-7;
    dual_done(&dual);
    return is_short;
}

static void prepare(struct exact *exact)
{
    assert(!exact->covers);
    const struct problem *problem = exact->problem;
    pattern_list_init(&exact->patterns, problem);
    aggregate_init(&exact->best, problem, &exact->patterns);
    aggregate_init(&exact->trial, problem, &exact->patterns);
    exact->covers = xcalloc((size_t)problem->service_count + 1, sizeof *exact->covers);
    for (int i = 0; i < problem->service_count; i++)
        cover_init(&exact->covers[i], problem, i);
    exact->spread = spread_is_asked(problem);
    exact->quantum = find_quantum(problem);
    exact->how = "slot prices with integral covers (column generation)";
    exact->deadline_ns = INT64_MAX;
    if (isfinite(exact->settings->budget_s))
        exact->deadline_ns = clock_now_ns(exact->settings->clock) +
                             (int64_t)(fmin(exact->settings->budget_s, 1e9) * 1e9);
}

static void raise_bound(struct exact *exact)
{
    assert(exact->covers);
    double scale = exact->quantum > 0 ? exact->quantum : 1;
    dual_solve(
        exact->problem, &exact->patterns, exact->covers,
        &(struct dual_options){
            .gap = 1e-5 * scale, .rounds_max = ROUNDS_MAX, .stop = is_late, .context = exact},
        &exact->dual);
    exact->bound = fmax(0, exact->dual.bound);
    double dearest = 0;
    for (int s = 0; s < exact->problem->slot_count; s++)
        dearest = fmax(dearest, exact->dual.slot_price[s]);
    cover_pool_init(&exact->pool, exact->problem, exact->covers, exact->dual.slot_price,
                    dearest);
}

/* Whether even the bound is beyond the GPUs of any fleet. */
static bool needs_too_many(const struct exact *exact)
{
    double cheapest = INFINITY;
    for (size_t k = 0; k < exact->problem->kinds.count; k++)
        if (exact->problem->kinds.data[k].price > 0)
            cheapest = fmin(cheapest, exact->problem->kinds.data[k].price);
    double dearest = 0, gpus = 0;
    for (size_t k = 0; k < exact->problem->kinds.count; k++)
        dearest = fmax(dearest, exact->problem->kinds.data[k].price);
    for (int p = 0; p < exact->patterns.count; p++)
        gpus += exact->dual.pattern_weight[p];
    return exact->bound / fmax(dearest, cheapest) > PLAN_GPUS_MAX || gpus > 2.0 * PLAN_GPUS_MAX;
}

/* The bound as it is stated: raised to the next sum that prices can make, unless that is
 * the next whole number anyway, which readers of the document do themselves. */
static double stated_bound(struct exact *exact)
{
    assert(!isnan(exact->bound));
    double raised = round_up(exact, exact->bound);
    if (exact->quantum == 1 || exact->quantum == 0 || raised <= exact->bound)
        return exact->bound;
    return exact->has_best ? fmin(raised, exact->best_cost) : raised;
}

int exact_solve_free(const struct problem *problem, const struct solver_settings *settings,
                     struct solution *ret_solution, struct error *err)
{
    assert(ret_solution->gpus.count == 0);
    CLEANUP(exact_done) struct exact exact = {.problem = problem, .settings = settings};
    (void)err;
    prepare(&exact);
    ret_solution->bound_how = exact.how;
    ret_solution->bound_cost = problem->base_cost;
    if (problem->service_count == 0) {
        ret_solution->feasible = true;
        return 0;
    }
    if (is_short_of_stock(&exact))
        return 0;
    raise_bound(&exact);
    if (needs_too_many(&exact))
        return 0;
    if (exact.spread)
        find_spread_plan(&exact);
    else
        find_plan(&exact);
    /* Any plan is better than none when time has run out. */
    if (!exact.has_best && exact.out_of_time) {
        exact.hasty = true;
        find_plan(&exact);
    }
    if (!is_closed(&exact) && !exact.out_of_time)
        close_gap(&exact);
    ret_solution->bound_cost = problem->base_cost + stated_bound(&exact);
    ret_solution->bound_how = exact.how;
    ret_solution->stopped_by_budget = exact.out_of_time;
    ret_solution->feasible = exact.has_best;
    if (exact.has_best)
        aggregate_label(&exact.best, problem, &exact.patterns, ret_solution);
    return 0;
}

bool exact_reach(const struct problem *problem, const struct solver_settings *settings,
                 double cost_max, struct solution *ret_solution)
{
    assert(ret_solution->gpus.count == 0 && !isnan(cost_max));
    CLEANUP(exact_done) struct exact exact = {.problem = problem, .settings = settings};
    prepare(&exact);
    for (int i = 0; i < problem->service_count; i++)
        if (!cover_possible(&exact.covers[i]))
            return false;
    raise_bound(&exact);
    double room = cost_max - problem->base_cost;
    if (exact.bound > room + 1e-7 * fmax(1, fabs(room)))
        return false;
    for (int round = 0; round < (exact.spread ? SPREAD_ROUNDS : 1); round++) {
        exact.unspread = false;
        if (try_cost(&exact, room, REACH_TRIES) || !exact.unspread)
            break;
        renew_covers(&exact);
    }
    ret_solution->feasible = exact.has_best;
    if (exact.has_best)
        aggregate_label(&exact.best, problem, &exact.patterns, ret_solution);
    return exact.has_best;
}

static int exact_solve(const struct problem *problem, const struct solver_settings *settings,
                       struct solution *ret_solution, struct error *err)
{
    assert(settings->clock || !isfinite(settings->budget_s));
    bool limited = isfinite(settings->budget_s);
    int64_t start_ns = limited ? clock_now_ns(settings->clock) : 0;
    int rc = exact_solve_free(problem, settings, ret_solution, err);
    if (rc < 0 || !ret_solution->feasible || !problem->from || ret_solution->stopped_by_budget)
        return rc;
    struct solver_settings left = *settings;
    if (limited)
        left.budget_s -= (double)(clock_now_ns(settings->clock) - start_ns) / 1e9;
    return change_keep(problem, &left, ret_solution, err);
}

const struct solver solver_exact = {
    .name = "exact",
    .summary = "proved optimal: covers at slot prices, column generation, integer rounding",
    .solve = exact_solve,
};
