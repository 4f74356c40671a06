/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of solvers, and what all solutions have in common.
 */
#include "plan/solver.h"

#include <assert.h>
#include <string.h>

#include "plan/aggregate.h"

static const struct solver *const solvers[] = {
    &solver_exact,       &solver_greedy, &solver_mcts, &solver_ga,  &solver_parvagpu,
    &solver_jormungandr, &solver_whole,  &solver_ones, &solver_mix, NULL};

const struct solver *const *solver_list(void)
{
    return solvers;
}

const struct solver *solver_find(const char *name)
{
    assert(name);
    for (size_t i = 0; solvers[i]; i++)
        if (strcmp(solvers[i]->name, name) == 0)
            return solvers[i];
    return NULL;
}

void solution_done(struct solution *solution)
{
    vec_done(&solution->gpus);
}

void solution_add_untouched(const struct problem *problem, struct solution *solution)
{
    bool *touched = xcalloc(problem->kinds.count + 1, sizeof *touched);
    for (size_t g = 0; g < solution->gpus.count; g++)
        touched[solution->gpus.data[g].kind] = true;
    for (size_t k = 0; k < problem->kinds.count; k++)
        if (problem->kinds.data[k].gpu && !touched[k])
            vec_add(&solution->gpus, ((struct solution_gpu){.kind = (int)k}));
    free(touched);
}

double solution_cost(const struct problem *problem, const struct solution *solution)
{
    double cost = problem->base_cost;
    for (size_t g = 0; g < solution->gpus.count; g++)
        cost += problem->kinds.data[solution->gpus.data[g].kind].price;
    assert(cost >= 0);
    return cost;
}

static bool fits_pattern(const struct problem *problem, const struct solution_gpu *gpu)
{
    assert(gpu->kind >= 0 && (size_t)gpu->kind < problem->kinds.count);
    assert(gpu->count >= 0 && gpu->count <= MIG_INSTANCES_MAX);
    const struct problem_kind *kind = &problem->kinds.data[gpu->kind];
    for (int p = 0; p < kind->pattern_count; p++) {
        int room[PROBLEM_SLOTS_MAX];
        bool fits = true;
        memcpy(room, &kind->patterns[p * problem->slot_count],
               (size_t)problem->slot_count * sizeof *room);
        for (int i = 0; i < gpu->count; i++)
            fits &= --room[gpu->items[i].slot] >= 0;
        if (fits)
            return true;
    }
    return false;
}

void solution_check(const struct problem *problem, const struct solution *solution)
{
    size_t slots = (size_t)problem->slot_count;
    int *x = xcalloc((size_t)problem->service_count * slots + 1, sizeof *x);
    int *used = xcalloc(problem->kinds.count + 1, sizeof *used);
    for (size_t g = 0; g < solution->gpus.count; g++) {
        const struct solution_gpu *gpu = &solution->gpus.data[g];
        assert(fits_pattern(problem, gpu));
        used[gpu->kind]++;
        for (int i = 0; i < gpu->count; i++)
            x[(size_t)gpu->items[i].service * slots + (size_t)gpu->items[i].slot]++;
    }
    for (size_t k = 0; k < problem->kinds.count; k++)
        assert(problem->kinds.data[k].stock == PROBLEM_UNLIMITED ||
               used[k] <= problem->kinds.data[k].stock);
    for (int i = 0; i < problem->service_count; i++)
        assert(aggregate_covers(problem, i, &x[(size_t)i * slots]) ||
               problem->services->services.data[i].spread != SPREAD_NONE);
    free(x);
    free(used);
}
