/* SPDX-License-Identifier: Apache-2.0
 *
 * MIG-serving's two-phase optimizer (arXiv 2109.11067, section 5.3). Phase 1: the fast
 * algorithm. Phase 2: a genetic algorithm over deployments, whose genes are configurations.
 * Crossover works on one parent: erase random configurations, refill by the slow algorithm.
 * Mutation swaps the services of random pairs of instances of one size; it changes neither
 * validity nor cost, but what later crossovers find. Parents compete with their children, so
 * the best only gets better; it stops after ga-patience rounds without a better one.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/greedy.h"
#include "plan/mcts.h"

enum { ROUNDS_MAX = 1000 };

struct member {
    struct arm_plan plan;
    double cost;
    long born;      /* order of birth: the tie break */
    double surplus; /* sum over services of what is given beyond the need, in GPUs */
};

struct breeding {
    const struct arm *arm;
    const struct solver_settings *settings;
    struct rollout_pools pools;
    struct arm_plan bulk; /* GPUs of a very large plan that are not bred */
    struct arm_state state;
    struct member *members; /* 2 x population; the first `count` are alive, best first */
    int population, count;
    long births;
};

/* The state of the bulk and a plan together. */
static void set_state(struct breeding *breeding, const struct arm_plan *plan)
{
    arm_plan_state(breeding->arm, &breeding->bulk, &breeding->state);
    for (size_t g = 0; g < plan->gpus.count; g++)
        arm_apply(breeding->arm, &breeding->state, &plan->gpus.data[g]);
}

/* Among plans of one cost the one that wastes more capacity is nearer to losing a GPU. */
static void rate_member(struct breeding *breeding, struct member *member)
{
    const struct arm *arm = breeding->arm;
    set_state(breeding, &member->plan);
    member->cost = arm_plan_cost(arm, &member->plan);
    assert(member->cost >= 0);
    member->surplus = 0;
    member->born = breeding->births++;
    for (int i = 0; i < arm->service_count; i++)
        if (arm->need_rps[i] > 0 && arm->gpu_share[i] > 0)
            member->surplus += (breeding->state.completion[i] - 1) / arm->gpu_share[i];
}

static bool is_fitter(const struct member *a, const struct member *b)
{
    if (fabs(a->cost - b->cost) > 1e-9 * fabs(b->cost))
        return a->cost < b->cost;
    return a->surplus > b->surplus;
}

static void copy_plan(struct arm_plan *to, const struct arm_plan *from)
{
    vec_clear(&to->gpus);
    for (size_t g = 0; g < from->gpus.count; g++)
        vec_add(&to->gpus, from->gpus.data[g]);
}

/* Erases random GPUs and refills; false when the refill ran out of stock. */
static bool cross_over(struct breeding *breeding, struct rng *rng, struct arm_plan *plan)
{
    const struct paper_parameters *parameters = breeding->arm->parameters;
    size_t erase = (size_t)ceil(parameters->ga_erase * (double)plan->gpus.count);
    if (erase < 2)
        erase = 2;
    if (erase > (size_t)parameters->ga_erase_most)
        erase = (size_t)parameters->ga_erase_most;
    for (; erase > 0 && plan->gpus.count > 0; erase--) {
        size_t at = rng_below(rng, plan->gpus.count);
        /* The order of GPUs means nothing: the last takes the place of the erased one. */
        plan->gpus.data[at] = plan->gpus.data[--plan->gpus.count];
    }
    set_state(breeding, plan);
    return mcts_fill(breeding->arm, &breeding->pools, &breeding->state, rng,
                     breeding->settings->iterations, plan);
}

static size_t count_instances(const struct arm_plan *plan)
{
    size_t count = 0;
    for (size_t g = 0; g < plan->gpus.count; g++)
        count += (size_t)plan->gpus.data[g].count;
    return count;
}

static struct solution_item *draw_instance(struct rng *rng, struct arm_plan *plan)
{
    assert(plan->gpus.count > 0);
    for (int tries = 0; tries < 64; tries++) {
        struct solution_gpu *gpu = &plan->gpus.data[rng_below(rng, plan->gpus.count)];
        if (gpu->count > 0)
            return &gpu->items[rng_below(rng, (uint64_t)gpu->count)];
    }
    return NULL;
}

static void mutate(struct breeding *breeding, struct rng *rng, struct arm_plan *plan)
{
    double share = breeding->arm->parameters->ga_swaps;
    assert(share >= 0 && share <= 1);
    size_t pairs = (size_t)(share * (double)count_instances(plan));
    for (; pairs > 0 && plan->gpus.count > 0; pairs--) {
        struct solution_item *a = draw_instance(rng, plan), *b = draw_instance(rng, plan);
        if (!a || !b || a->slot != b->slot)
            continue;
        int kept = a->service;
        a->service = b->service;
        b->service = kept;
    }
}

static int compare_members(const void *a, const void *b)
{
    if (is_fitter(a, b))
        return -1;
    if (is_fitter(b, a))
        return 1;
    return ((const struct member *)a)->born < ((const struct member *)b)->born ? -1 : 1;
}

/* One round: a child of each member, then the fittest of all. */
static void breed(struct breeding *breeding, long round)
{
    int children = 0;
    assert(breeding->count >= 1 && breeding->count <= breeding->population);
    for (int i = 0; i < breeding->population && !arm_is_late(breeding->arm); i++) {
        const struct member *parent = &breeding->members[i % breeding->count];
        assert(breeding->count + children <= 2 * breeding->population);
        struct member *child = &breeding->members[breeding->count + children];
        struct rng rng = rng_seed_stream(breeding->settings->seed,
                                         (uint64_t)(round * breeding->population + i));
        copy_plan(&child->plan, &parent->plan);
        if (!cross_over(breeding, &rng, &child->plan))
            continue;
        mutate(breeding, &rng, &child->plan);
        rate_member(breeding, child);
        children++;
    }
    breeding->count += children;
    qsort(breeding->members, (size_t)breeding->count, sizeof *breeding->members,
          compare_members);
    if (breeding->count > breeding->population)
        breeding->count = breeding->population;
}

static void evolve(struct breeding *breeding)
{
    assert(breeding->count >= 1);
    long rounds = breeding->settings->rounds >= 0 ? breeding->settings->rounds : ROUNDS_MAX;
    long idle = 0;
    for (long round = 0; round < rounds && idle < breeding->arm->parameters->ga_patience &&
                         !arm_is_late(breeding->arm);
         round++) {
        double before = breeding->members[0].cost;
        breed(breeding, round);
        idle = breeding->members[0].cost < before * (1 - 1e-9) ? 0 : idle + 1;
    }
}

/* Moves all but the last SEARCH_GPUS_MAX GPUs of greedy's plan to the bulk. */
static void split_bulk(struct breeding *breeding, struct arm_plan *plan)
{
    size_t count = plan->gpus.count;
    size_t bulk = count > SEARCH_GPUS_MAX ? count - SEARCH_GPUS_MAX : 0;
    for (size_t g = 0; g < bulk; g++)
        vec_add(&breeding->bulk.gpus, plan->gpus.data[g]);
    for (size_t g = bulk; g < count; g++)
        plan->gpus.data[g - bulk] = plan->gpus.data[g];
    plan->gpus.count = count - bulk;
    assert(plan->gpus.count <= SEARCH_GPUS_MAX);
}

/* Both phases; *first gets phase 1's plan. */
static void run_phases(const struct arm *arm, struct arm_plan *first, struct arm_plan *plan)
{
    assert(arm->parameters->ga_population >= 1);
    struct breeding breeding = {.arm = arm,
                                .settings = arm->settings,
                                .population = (int)arm->parameters->ga_population,
                                .count = 1};
    breeding.members = xcalloc((size_t)breeding.population * 2 + 1, sizeof(struct member));
    arm_state_init(&breeding.state, arm);
    bool filled = greedy_fill(arm, &breeding.state, &breeding.members[0].plan);
    copy_plan(first, &breeding.members[0].plan);
    split_bulk(&breeding, &breeding.members[0].plan);
    rate_member(&breeding, &breeding.members[0]);
    if (filled)
        evolve(&breeding);
    copy_plan(plan, &breeding.bulk);
    for (size_t g = 0; g < breeding.members[0].plan.gpus.count; g++)
        vec_add(&plan->gpus, breeding.members[0].plan.gpus.data[g]);
    vec_done(&breeding.bulk.gpus);
    for (int i = 0; i <= breeding.population * 2; i++)
        vec_done(&breeding.members[i].plan.gpus);
    free(breeding.members);
    arm_state_done(&breeding.state);
    rollout_pools_done(&breeding.pools);
}

/* Whether what was finished first is the better solution. Finishing adds instances that
 * min_instances and spread ask for, more to one plan than to another. */
static bool is_better(const struct problem *problem, const struct solution *a,
                      const struct solution *b)
{
    if (a->feasible != b->feasible)
        return a->feasible;
    return solution_cost(problem, a) < solution_cost(problem, b);
}

static int ga_solve(const struct problem *problem, const struct solver_settings *settings,
                    struct solution *ret_solution, struct error *err)
{
    struct arm arm;
    struct arm_plan first = {0}, plan = {0};
    struct solution greedy = {0}, bred = {0};
    (void)err;
    arm_init(&arm, problem, settings);
    run_phases(&arm, &first, &plan);
    arm_finish(&arm, &first, &greedy);
    arm_finish(&arm, &plan, &bred);
    bool first_wins = is_better(problem, &greedy, &bred);
    *ret_solution = first_wins ? greedy : bred;
    solution_done(first_wins ? &bred : &greedy);
    ret_solution->stopped_by_budget = arm_is_late(&arm);
    vec_done(&first.gpus);
    vec_done(&plan.gpus);
    arm_done(&arm);
    return 0;
}

const struct solver solver_ga = {
    .name = "ga",
    .summary = "MIG-serving's two phases: greedy, then a genetic algorithm that calls mcts",
    .solve = ga_solve,
};
