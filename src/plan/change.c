/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeping instances means solving what is left beside them (pin.h), which takes
 * milliseconds, so sets of instances to keep are tried one after the other. With a dozen
 * instances all sets are tried, the largest first. Otherwise GPUs of the earlier plan are
 * put in the order of what they still are worth to the services, the longest run of them
 * that can stay whole is found by halving, and then GPUs and single instances are added as
 * long as the cost allows.
 */
#include "plan/change.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "plan/exact.h"
#include "plan/pin.h"

enum {
    ALL_SETS_MAX = 12, /* instances up to which all sets are tried */
    SOLVES_MAX = 500,  /* problems solved for one cost */
    COSTS_MAX = 24     /* costs tried under a limit or price of moves */
};

struct changer {
    const struct problem *problem;
    const struct solver_settings *settings;
    struct old_plan old;
    double cost_max;
    int solves;
    bool *keep; /* the best set for this cost */
    int kept;   /* instances in it; -1: none found */
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
    for (int i = first; i + left <= changer->old.instance_count; i++) {
        changer->trial[i] = false;
        bool reached = try_without(changer, i + 1, left - 1);
        changer->trial[i] = true;
        if (reached)
            return true;
    }
    return false;
}

static void keep_of_few(struct changer *changer)
{
    for (int left = 0; left <= changer->old.instance_count; left++) {
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

/* Adds whole GPUs, then single instances, as long as the cost allows. */
static void keep_more(struct changer *changer)
{
    const struct old_plan *old = &changer->old;
    for (int pass = 0; pass < 2; pass++) {
        for (int n = 0; n < old->gpu_count && changer->solves < SOLVES_MAX; n++) {
            int gpu = changer->order[n];
            for (int i = old->first[gpu]; i < old->first[gpu + 1]; i++) {
                memcpy(changer->trial, changer->keep, (size_t)old->instance_count);
                if (changer->trial[i] || changer->solves >= SOLVES_MAX)
                    continue;
                if (pass == 0)
                    set_gpu(changer, gpu, true);
                changer->trial[i] = true;
                try_set(changer);
                if (pass == 0)
                    break;
            }
        }
    }
}

/* The most instances that can stay at this cost; -1 when nothing was found. */
static int keep_at_cost(struct changer *changer, double cost_max)
{
    changer->cost_max = cost_max;
    changer->kept = -1;
    changer->solves = 0;
    if (changer->old.instance_count <= ALL_SETS_MAX) {
        keep_of_few(changer);
        return changer->kept;
    }
    keep_run(changer);
    if (changer->kept >= 0 && changer->kept < changer->old.instance_count)
        keep_more(changer);
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

/* Costs between the least and the one that moves nothing; the first within max_moves, or
 * the one that is best with the price of its moves. */
static void weigh_moves(struct changer *changer, double least, struct solution *solution)
{
    const struct problem *problem = changer->problem;
    double all = cost_of_all(changer), step, best_total = INFINITY, best_cost = NAN;
    if (!isfinite(all))
        all = least * 2 + 1;
    step = fmax((all - least) / COSTS_MAX, 0);
    for (int n = 0; n <= COSTS_MAX; n++) {
        double cost = least + n * step;
        int kept = keep_at_cost(changer, cost);
        int moves = changer->old.instance_count - kept;
        if (kept < 0 || (problem->max_moves >= 0 && moves > problem->max_moves))
            continue;
        double total = solution_cost(problem, &changer->best) + problem->move_price * moves;
        if (total < best_total - 1e-9) {
            best_total = total;
            best_cost = cost;
        }
        if (problem->move_price == 0 || moves == 0 || step == 0)
            break;
    }
    if (isnan(best_cost)) {
        solution->feasible = false; /* not even all in place is within stock */
        return;
    }
    keep_at_cost(changer, best_cost);
    take_best(changer, solution);
}

int change_keep(const struct problem *problem, const struct solver_settings *settings,
                struct solution *solution, struct error *err)
{
    CLEANUP(changer_done) struct changer changer = {.problem = problem, .settings = settings};
    (void)err;
    old_plan_init(&changer.old, problem);
    if (changer.old.instance_count == 0)
        return 0;
    changer.keep = xcalloc((size_t)changer.old.instance_count, sizeof *changer.keep);
    changer.trial = xcalloc((size_t)changer.old.instance_count, sizeof *changer.trial);
    changer.order = xcalloc((size_t)changer.old.gpu_count + 1, sizeof *changer.order);
    order_gpus(&changer);
    double least = solution_cost(problem, solution);
    int kept = keep_at_cost(&changer, least);
    int moves = changer.old.instance_count - kept;
    bool limited = problem->max_moves >= 0 && moves > problem->max_moves;
    if (limited || (problem->move_price > 0 && moves > 0))
        weigh_moves(&changer, least, solution);
    else if (kept >= 0)
        take_best(&changer, solution);
    return 0;
}
