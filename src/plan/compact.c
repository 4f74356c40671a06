/* SPDX-License-Identifier: Apache-2.0
 *
 * Building the compact model. Cover rows are scaled to a right-hand side of 1, so that
 * rates of any size meet CBC's absolute tolerances alike.
 */
#include "plan/compact.h"

#include <assert.h>
#include <math.h>

static const double COUNT_MAX = 1e9;

static int x_column(const struct problem *problem, int service, int slot)
{
    assert(service >= 0 && service < problem->service_count);
    assert(slot >= 0 && slot < problem->slot_count);
    return service * problem->slot_count + slot;
}

/* More instances of one slot kind than this never help. */
static double count_limit(const struct problem *problem, int service, int slot)
{
    const struct problem_option *option = problem_option(problem, service, slot);
    if (option->row < 0 || problem->dropped[service])
        return 0;
    double spare = problem->services->services.data[service].spread == SPREAD_NONE ? 0 : 1;
    double needed = ceil(problem->demand_rps[service] / option->rate_rps) + spare;
    return fmin(fmax(needed, problem->instances_min[service]), COUNT_MAX);
}

static void add_columns(const struct problem *problem, const struct pattern_list *patterns,
                        struct milp *milp)
{
    assert(milp->objective.count == 0);
    for (int i = 0; i < problem->service_count; i++)
        for (int s = 0; s < problem->slot_count; s++)
            milp_add_column(milp, 0, count_limit(problem, i, s), 0, true);
    for (int p = 0; p < patterns->count; p++) {
        int stock = problem->kinds.data[patterns->kind[p]].stock;
        milp_add_column(milp, 0, stock == PROBLEM_UNLIMITED ? COUNT_MAX : stock,
                        patterns->price[p], true);
    }
}

/* The rate must hold without the largest instance: choose which slot kind m is the largest
 * (w), need r_m more, and use no larger one. */
static void add_spread(const struct problem *problem, int service, int cover_row,
                       struct milp *milp)
{
    assert(problem->demand_rps[service] > 0 && cover_row >= 0);
    double demand_rps = problem->demand_rps[service];
    int *choice = xcalloc((size_t)problem->slot_count + 1, sizeof *choice);
    int one = milp_add_row(milp, 1, 1);
    for (int m = 0; m < problem->slot_count; m++) {
        const struct problem_option *option = problem_option(problem, service, m);
        choice[m] = milp_add_column(milp, 0, option->row < 0 ? 0 : 1, 0, true);
        milp_set(milp, one, choice[m], 1);
        milp_set(milp, cover_row, choice[m], -option->rate_rps / demand_rps);
    }
    for (int s = 0; s < problem->slot_count; s++) {
        double limit = count_limit(problem, service, s);
        if (limit == 0)
            continue;
        int row = milp_add_row(milp, -INFINITY, 0);
        milp_set(milp, row, x_column(problem, service, s), 1);
        for (int m = 0; m < problem->slot_count; m++)
            if (problem_option(problem, service, m)->rate_rps >=
                problem_option(problem, service, s)->rate_rps)
                milp_set(milp, row, choice[m], -limit);
    }
    free(choice);
}

static void add_covers(const struct problem *problem, const struct compact_options *options,
                       struct milp *milp)
{
    for (int i = 0; i < problem->service_count; i++) {
        double demand_rps = problem->demand_rps[i];
        if (problem->dropped[i])
            continue;
        if (problem->instances_min[i] > 1 || (demand_rps <= 0 && problem->instances_min[i])) {
            int row = milp_add_row(milp, problem->instances_min[i], INFINITY);
            for (int s = 0; s < problem->slot_count; s++)
                if (problem_option(problem, i, s)->row >= 0)
                    milp_set(milp, row, x_column(problem, i, s), 1);
        }
        /* Below zero under spread alone, where fixed instances give more than the rate: there
         * is no row for that, so the model is a relaxation, and its bound still holds. */
        if (demand_rps <= 0)
            continue;
        int row = milp_add_row(milp, 1, INFINITY);
        for (int s = 0; s < problem->slot_count; s++)
            milp_set(milp, row, x_column(problem, i, s),
                     problem_option(problem, i, s)->rate_rps / demand_rps);
        if (problem->services->services.data[i].spread != SPREAD_NONE && !options->relax_spread)
            add_spread(problem, i, row, milp);
    }
}

static void add_supply(const struct problem *problem, const struct pattern_list *patterns,
                       struct milp *milp)
{
    int first_y = problem->service_count * problem->slot_count;
    for (int s = 0; s < problem->slot_count; s++) {
        int row = milp_add_row(milp, 0, INFINITY);
        for (int p = 0; p < patterns->count; p++)
            milp_set(milp, row, first_y + p, patterns->slots[p][s]);
        for (int i = 0; i < problem->service_count; i++)
            milp_set(milp, row, x_column(problem, i, s), -1);
    }
    for (size_t k = 0; k < problem->kinds.count; k++) {
        if (problem->kinds.data[k].stock == PROBLEM_UNLIMITED)
            continue;
        int row = milp_add_row(milp, 0, problem->kinds.data[k].stock);
        for (int p = 0; p < patterns->count; p++)
            milp_set(milp, row, first_y + p, patterns->kind[p] == (int)k);
    }
}

void compact_build(const struct problem *problem, const struct pattern_list *patterns,
                   const struct compact_options *options, struct milp *ret_milp)
{
    assert(patterns->slot_count == problem->slot_count);
    *ret_milp = (struct milp){0};
    add_columns(problem, patterns, ret_milp);
    add_covers(problem, options, ret_milp);
    add_supply(problem, patterns, ret_milp);
    assert(ret_milp->column_lower.count == ret_milp->objective.count);
    if (options->cost_min <= 0)
        return;
    /* A row that only repeats the bound, but says it to CBC before it branches. */
    int first_y = problem->service_count * problem->slot_count;
    int row = milp_add_row(ret_milp, options->cost_min, INFINITY);
    for (int p = 0; p < patterns->count; p++)
        milp_set(ret_milp, row, first_y + p, patterns->price[p]);
}

void compact_read(const struct problem *problem, const struct pattern_list *patterns,
                  const double *values, struct aggregate *aggregate)
{
    int cells = problem->service_count * problem->slot_count;
    for (int c = 0; c < cells; c++)
        aggregate->x[c] = (int)lround(values[c]);
    for (int p = 0; p < patterns->count; p++)
        aggregate->y[p] = (int)lround(values[cells + p]);
    assert(patterns->slot_count == problem->slot_count);
}
