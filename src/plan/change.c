/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeping instances means solving what is left beside them (pin.h), which takes
 * milliseconds, so sets of instances to keep are tried one after the other. GPUs of the
 * earlier plan are put in the order of what they still are worth to the services, the
 * longest run of them that can stay whole is found by halving, and then GPUs and single
 * instances are added as long as the cost allows. A program (keep_model.h) proves how many
 * can stay at most; where there are few enough, branch and cut on it finds what trying did
 * not, and what it leaves open of a dozen instances is settled by trying all sets.
 */
#include "plan/change.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "plan/exact.h"
#include "plan/keep_model.h"
#include "plan/keep_stages.h"
#include "plan/pin.h"
#include "plan/spread.h"

enum {
    ALL_SETS_MAX = 12, /* instances up to which all sets are tried */
    SOLVES_MAX = 500,  /* problems solved for one cost; fewer when they are large */
    SOLVES_LEAST = 40,
    SOLVES_WORK = 200000,       /* divided by services and GPUs */
    PROGRAM_INSTANCES_MAX = 64, /* up to which the program is searched … */
    PROGRAM_NODES = 2000,       /* … with so many nodes at a time */
    PROGRAM_SEARCHES = 3,
    STAGE_NODES = 200,    /* of a search for covers; fewer when the program is large … */
    STAGE_WORK = 140000,  /* … : divided by its columns … */
    STAGE_COLUMNS = 2500, /* … of which there may be so many */
    PRICED_COSTS = 8,     /* costs tried under a price of moves … */
    LIMITED_COSTS = 6     /* … and halvings under a limit of them */
};

struct changer {
    const struct problem *problem;
    const struct solver_settings *settings;
    struct old_plan old;
    double cost_max;
    int solves, solves_max;
    int64_t deadline_ns; /* INT64_MAX: none */
    bool late;
    bool weighing; /* many costs are tried: the search in stages waits for the one chosen */
    bool *keep;    /* the best set for this cost */
    int kept;      /* instances in it; -1: none found */
    int bound;     /* proved: no more can stay at this cost */
    bool *trial;
    struct solution best;
    int *order; /* GPUs of the earlier plan, most worth keeping first */
};

static void changer_done(struct changer *changer)
{
    old_plan_done(&changer->old);
    solution_done(&changer->best);
    free(changer->keep);
    free(changer->trial);
    free(changer->order);
}

static double seconds_left(const struct changer *changer)
{
    if (changer->deadline_ns == INT64_MAX)
        return INFINITY;
    return (double)(changer->deadline_ns - clock_now_ns(changer->settings->clock)) / 1e9;
}

static bool is_late(struct changer *changer)
{
    changer->late |= seconds_left(changer) <= 0;
    return changer->late;
}

static int count_kept(const struct changer *changer, const bool *keep)
{
    int kept = 0;
    for (int i = 0; i < changer->old.instance_count; i++)
        kept += keep[i];
    return kept;
}

/* Whether the trial set can be kept at the cost; if so, and it keeps more, it is the best. */
static bool try_set(struct changer *changer)
{
    struct pinned_problem pinned;
    CLEANUP(solution_done) struct solution rest = {0};
    if (is_late(changer))
        return false;
    changer->solves++;
    pinned_problem_init(&pinned, changer->problem, &changer->old, changer->trial);
    bool reached = pinned.problem.base_cost <= changer->cost_max * (1 + 1e-9) + 1e-9 &&
                   exact_reach(&pinned.problem, changer->settings, changer->cost_max, &rest);
    int kept = count_kept(changer, changer->trial);
    if (reached && kept > changer->kept) {
        solution_done(&changer->best);
        changer->best = (struct solution){0};
        pinned_problem_expand(&pinned, &rest, &changer->best);
        memcpy(changer->keep, changer->trial,
               (size_t)changer->old.instance_count * sizeof *changer->keep);
        changer->kept = kept;
    }
    pinned_problem_done(&pinned);
    return reached;
}

/* All sets that leave out `left` instances from `first` on; true when one can be kept. */
static bool try_without(struct changer *changer, int first, int left)
{
    if (left == 0)
        return try_set(changer);
    for (int i = first; i + left <= changer->old.instance_count && !changer->late; i++) {
        changer->trial[i] = false;
        bool reached = try_without(changer, i + 1, left - 1);
        changer->trial[i] = true;
        if (reached)
            return true;
    }
    return false;
}

/* Sets of few instances, the largest that may be possible first, down to what was found. */
static void keep_of_few(struct changer *changer)
{
    for (int left = changer->old.instance_count - changer->bound;
         left < changer->old.instance_count - changer->kept; left++) {
        memset(changer->trial, true, (size_t)changer->old.instance_count);
        if (try_without(changer, 0, left))
            return;
    }
}

/* Orders GPUs by what they add to the rates that services still lack, in parts of each
 * service's rate, for their price. */
static void order_gpus(struct changer *changer)
{
    const struct problem *problem = changer->problem;
    const struct old_plan *old = &changer->old;
    double *missing = xcalloc((size_t)problem->service_count + 1, sizeof *missing);
    bool *taken = xcalloc((size_t)old->gpu_count + 1, sizeof *taken);
    for (int i = 0; i < problem->service_count; i++)
        missing[i] = problem->demand_rps[i];
    for (int n = 0; n < old->gpu_count; n++) {
        int best = -1;
        double best_worth = -1;
        for (int g = 0; g < old->gpu_count; g++) {
            double worth = 0;
            if (taken[g])
                continue;
            for (int i = old->first[g]; i < old->first[g + 1]; i++) {
                const struct old_instance *instance = &old->instances[i];
                double rate_rps =
                    problem_option(problem, instance->service, instance->slot)->rate_rps;
                int slices = problem->slots[instance->slot]
                                 .board->profiles[problem->slots[instance->slot].profile]
                                 .compute_slices;
                worth += fmin(rate_rps, fmax(missing[instance->service], 0)) / rate_rps *
                         (slices > 0 ? slices : 1);
            }
            if (worth > best_worth) {
                best_worth = worth;
                best = g;
            }
        }
        taken[best] = true;
        changer->order[n] = best;
        for (int i = old->first[best]; i < old->first[best + 1]; i++)
            missing[old->instances[i].service] -=
                problem_option(problem, old->instances[i].service, old->instances[i].slot)
                    ->rate_rps;
    }
    free(missing);
    free(taken);
}

static void set_gpu(struct changer *changer, int gpu, bool keep)
{
    for (int i = changer->old.first[gpu]; i < changer->old.first[gpu + 1]; i++)
        changer->trial[i] = keep;
}

/* The longest run of GPUs in order that can stay whole. */
static void keep_run(struct changer *changer)
{
    int low = -1, high = changer->old.gpu_count + 1;
    while (high - low > 1) {
        /* Everything first, then nothing, then halves. */
        int middle = high > changer->old.gpu_count ? changer->old.gpu_count
                     : low < 0                     ? 0
                                                   : low + (high - low) / 2;
        for (int n = 0; n < changer->old.gpu_count; n++)
            set_gpu(changer, changer->order[n], n < middle);
        if (try_set(changer))
            low = middle;
        else
            high = middle;
        if (high == 0)
            return;
    }
}

/* Keeps units first … last − 1 of the order as well, or what halves of them can be kept. A
 * unit is a GPU or, with `single`, an instance. */
static void keep_units(struct changer *changer, const int *units, int count, bool single)
{
    size_t size = (size_t)changer->old.instance_count * sizeof *changer->trial;
    int before = changer->kept;
    if (count == 0 || changer->solves >= changer->solves_max || changer->kept >= changer->bound)
        return;
    memcpy(changer->trial, changer->keep, size);
    for (int u = 0; u < count; u++) {
        if (single)
            changer->trial[units[u]] = true;
        else
            set_gpu(changer, units[u], true);
    }
    if (memcmp(changer->trial, changer->keep, size) == 0 || try_set(changer) || count == 1)
        return;
    assert(changer->kept == before);
    keep_units(changer, units, count / 2, single);
    keep_units(changer, units + count / 2, count - count / 2, single);
}

/* Adds whole GPUs, then single instances, as long as the cost allows. */
static void keep_more(struct changer *changer)
{
    const struct old_plan *old = &changer->old;
    VEC(int) instances = {0};
    keep_units(changer, changer->order, old->gpu_count, false);
    for (int n = 0; n < old->gpu_count; n++)
        for (int i = old->first[changer->order[n]]; i < old->first[changer->order[n] + 1]; i++)
            vec_add(&instances, i);
    keep_units(changer, instances.data, (int)instances.count, true);
    vec_done(&instances);
}

/* Whole solutions of the program that keep more than what was found by trying. */
static void keep_by_program(struct changer *changer, struct keep_model *model)
{
    for (int n = 0; n < PROGRAM_SEARCHES && changer->kept >= 0 &&
                    changer->kept < changer->bound && !is_late(changer);
         n++) {
        struct keep_search search = {
            .kept = changer->kept, .nodes = PROGRAM_NODES, .seconds = seconds_left(changer)};
        if (!keep_model_search(model, &search, changer->trial, &changer->bound) ||
            !try_set(changer) || changer->kept <= search.kept)
            return;
    }
}

/* Instances by service and slot kind of the best plan. */
static void count_best(const struct changer *changer, int *x)
{
    int slots = changer->problem->slot_count;
    memset(x, 0, (size_t)(changer->problem->service_count * slots) * sizeof *x);
    for (size_t g = 0; g < changer->best.gpus.count; g++) {
        const struct solution_gpu *gpu = &changer->best.gpus.data[g];
        for (int i = 0; i < gpu->count; i++)
            x[gpu->items[i].service * slots + gpu->items[i].slot]++;
    }
}

/* Covers first, whole GPUs for them after: anywhere, then beside the old GPUs, then as long
 * as that finds something around the best plan. */
static void keep_in_stages(struct changer *changer, const struct keep_model *model)
{
    static const struct keep_stage stages[] = {
        {.with_gpus = false}, {.with_gpus = true}, {.with_gpus = true, .distance = 1}};
    size_t cells =
        (size_t)changer->problem->service_count * (size_t)changer->problem->slot_count;
    int *x = xcalloc(cells + 1, sizeof *x), *around = xcalloc(cells + 1, sizeof *around);
    for (size_t n = 0; n < sizeof stages / sizeof *stages;) {
        struct keep_stage stage = stages[n];
        int before = changer->kept;
        if (before < 0 || before >= changer->bound || is_late(changer))
            break;
        int columns = keep_stage_columns(model, &stage);
        if (columns > STAGE_COLUMNS)
            break;
        int nodes = STAGE_WORK / columns;
        struct keep_search search = {.kept = before,
                                     .nodes = nodes < STAGE_NODES ? nodes : STAGE_NODES,
                                     .seconds = seconds_left(changer)};
        if (stage.distance > 0) {
            count_best(changer, around);
            stage.around = around;
        }
        bool found = keep_stage_covers(model, &search, &stage, x, &changer->bound);
        if (found && keep_stage_gpus(model, &search, x, changer->trial))
            try_set(changer);
        if (!found && n == 0) /* too hard: harder still with GPUs */
            n++;
        n += !stage.around || changer->kept == before;
    }
    free(x);
    free(around);
}

/* The most instances that can stay at this cost; -1 when nothing was found. */
static int keep_at_cost(struct changer *changer, double cost_max)
{
    CLEANUP(keep_model_done) struct keep_model model;
    bool modelled = keep_model_init(&model, changer->problem, &changer->old, cost_max);
    changer->bound = modelled ? keep_model_bound(&model) : changer->old.instance_count;
    changer->cost_max = cost_max;
    changer->kept = -1;
    changer->solves = 0;
    keep_run(changer);
    if (changer->kept >= 0)
        keep_more(changer);
    bool searched = modelled && !spread_is_asked(changer->problem);
    if (searched && !changer->weighing)
        keep_in_stages(changer, &model);
    if (searched && changer->old.instance_count <= PROGRAM_INSTANCES_MAX)
        keep_by_program(changer, &model);
    if (changer->old.instance_count <= ALL_SETS_MAX)
        keep_of_few(changer);
    return changer->kept;
}

/* The least cost at which every instance stays; INFINITY when stock is too small. */
static double cost_of_all(struct changer *changer)
{
    struct pinned_problem pinned;
    CLEANUP(solution_done) struct solution rest = {.bound_cost = NAN};
    struct error err;
    memset(changer->trial, true, (size_t)changer->old.instance_count);
    pinned_problem_init(&pinned, changer->problem, &changer->old, changer->trial);
    int rc = exact_solve_free(&pinned.problem, changer->settings, &rest, &err);
    double cost = rc == 0 && rest.feasible ? solution_cost(&pinned.problem, &rest) : INFINITY;
    pinned_problem_done(&pinned);
    return cost;
}

static void take_best(struct changer *changer, struct solution *solution)
{
    struct solution best = changer->best;
    best.bound_cost = solution->bound_cost;
    best.bound_how = solution->bound_how;
    best.feasible = true;
    changer->best = *solution; /* freed with the changer */
    *solution = best;
}

static int moves_at_cost(struct changer *changer, double cost)
{
    return changer->old.instance_count - keep_at_cost(changer, cost);
}

/* The least cost within max_moves, by halving; NAN when even all in place is too dear. */
static double limit_moves(struct changer *changer, double least, double all)
{
    double low = least, high = all;
    for (int n = 0; n < LIMITED_COSTS && changer->problem->max_moves > 0; n++) {
        double middle = (low + high) / 2;
        if (moves_at_cost(changer, middle) <= changer->problem->max_moves)
            high = solution_cost(changer->problem, &changer->best);
        else
            low = middle;
        if (high - low < 1e-6 * high)
            break;
    }
    return high;
}

/* The cost that is best with the price of its moves. */
static double price_moves(struct changer *changer, double least, double all)
{
    double best_total = INFINITY, best_cost = all;
    int limit = changer->problem->max_moves;
    for (int n = 0; n <= PRICED_COSTS; n++) {
        double cost = least + (all - least) * n / PRICED_COSTS;
        int moves = moves_at_cost(changer, cost);
        if (limit >= 0 && moves > limit)
            continue;
        double total = solution_cost(changer->problem, &changer->best) +
                       changer->problem->move_price * moves;
        if (total >= best_total - 1e-9)
            continue;
        best_total = total;
        best_cost = cost;
    }
    return best_cost;
}

/* A plan that costs more than the least and moves less. */
static void weigh_moves(struct changer *changer, double least, struct solution *solution)
{
    const struct problem *problem = changer->problem;
    double all = cost_of_all(changer);
    if (!isfinite(all)) { /* some must move: the least cost is all there is to offer */
        int moves = moves_at_cost(changer, least);
        solution->feasible = problem->max_moves < 0 || moves <= problem->max_moves;
        if (solution->feasible && changer->kept >= 0)
            take_best(changer, solution);
        return;
    }
    changer->weighing = true;
    double cost = problem->move_price > 0 ? price_moves(changer, least, all)
                                          : limit_moves(changer, least, all);
    changer->weighing = false;
    if (keep_at_cost(changer, cost) >= 0)
        take_best(changer, solution);
    else
        solution->feasible = false;
}

/* Takes the best plan at the least cost, after the search in stages if that has waited. */
static void keep_fully(struct changer *changer, double least, struct solution *solution)
{
    CLEANUP(keep_model_done) struct keep_model model = {.problem = changer->problem};
    if (changer->weighing && changer->kept < changer->bound &&
        !spread_is_asked(changer->problem) &&
        keep_model_init(&model, changer->problem, &changer->old, least)) {
        keep_model_bound(&model); /* for the rows that it adds */
        keep_in_stages(changer, &model);
    }
    take_best(changer, solution);
}

int change_keep(const struct problem *problem, const struct solver_settings *settings,
                struct solution *solution, struct error *err)
{
    CLEANUP(changer_done) struct changer changer = {.problem = problem, .settings = settings};
    (void)err;
    old_plan_init(&changer.old, problem);
    solution->has_kept_bound = !changer.old.ambiguous;
    solution->kept_bound = changer.old.outside;
    if (changer.old.instance_count == 0)
        return 0;
    changer.deadline_ns = INT64_MAX;
    if (isfinite(settings->budget_s))
        changer.deadline_ns =
            clock_now_ns(settings->clock) + (int64_t)(fmin(settings->budget_s, 1e9) * 1e9);
    changer.keep = xcalloc((size_t)changer.old.instance_count, sizeof *changer.keep);
    changer.trial = xcalloc((size_t)changer.old.instance_count, sizeof *changer.trial);
    changer.order = xcalloc((size_t)changer.old.gpu_count + 1, sizeof *changer.order);
    changer.solves_max = SOLVES_WORK / (problem->service_count + changer.old.gpu_count);
    if (changer.solves_max > SOLVES_MAX)
        changer.solves_max = SOLVES_MAX;
    if (changer.solves_max < SOLVES_LEAST)
        changer.solves_max = SOLVES_LEAST;
    order_gpus(&changer);
    double least = solution_cost(problem, solution);
    changer.weighing = problem->max_moves >= 0 || problem->move_price > 0;
    int kept = keep_at_cost(&changer, least);
    int moves = changer.old.instance_count - kept;
    bool limited = problem->max_moves >= 0 && moves > problem->max_moves;
    if (limited || (problem->move_price > 0 && moves > 0))
        weigh_moves(&changer, least, solution);
    else if (kept >= 0)
        keep_fully(&changer, least, solution);
    solution->has_kept_bound = !changer.old.ambiguous;
    solution->kept_bound = changer.old.outside + changer.bound;
    solution->stopped_by_budget |= changer.late;
    return 0;
}
