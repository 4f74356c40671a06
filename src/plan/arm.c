/* SPDX-License-Identifier: Apache-2.0
 *
 * The problem in the papers' terms, and plans under construction.
 */
#include "plan/arm.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/spread.h"

const struct paper_parameters paper_parameters_default = {
#define PAPER_PARAMETER_DEFAULT(context, field, option, value, low, high, help)                \
    .field = (value),
    PAPER_PARAMETERS_FOR(PAPER_PARAMETER_DEFAULT, )
#undef PAPER_PARAMETER_DEFAULT
};

/* A need counts as met from here on; tighter than the contract's 1e-9. */
static const double MET = 1e-10;

int arm_slices(const struct arm *arm, int slot)
{
    assert(slot >= 0 && slot < arm->slot_count);
    const struct problem_slot *kind = &arm->problem->slots[slot];
    int slices = kind->board->profiles[kind->profile].compute_slices;
    return slices > 0 ? slices : 1;
}

static int larger_slot(const struct arm *arm, int a, int b)
{
    int by_slices = arm_slices(arm, b) - arm_slices(arm, a);
    return by_slices ? by_slices : a - b;
}

/* Prices of 0 (GPUs that are paid for anyway) become small, so that they come first. */
static double price_floor(const struct problem *problem)
{
    double least = DBL_MAX;
    for (size_t k = 0; k < problem->kinds.count; k++) {
        double price = problem->kinds.data[k].price;
        if (price > 0 && price < least)
            least = price;
    }
    assert(least > 0);
    return least < DBL_MAX ? least * 1e-3 : 1;
}

static void add_pattern(struct arm *arm, int kind, const int *counts, double floor)
{
    assert(floor > 0 && kind >= 0);
    double price = arm->problem->kinds.data[kind].price;
    struct arm_pattern pattern = {.kind = kind, .price = price > floor ? price : floor};
    for (int s = 0; s < arm->slot_count; s++) {
        if (counts[s] == 0)
            continue;
        assert(pattern.slot_count < MIG_INSTANCES_MAX);
        int at = pattern.slot_count++;
        for (; at > 0 && larger_slot(arm, pattern.slots[at - 1], s) > 0; at--) {
            pattern.slots[at] = pattern.slots[at - 1];
            pattern.counts[at] = pattern.counts[at - 1];
        }
        pattern.slots[at] = s;
        pattern.counts[at] = counts[s];
    }
    vec_add(&arm->patterns, pattern);
}

static void fill_needs(struct arm *arm)
{
    const struct problem *problem = arm->problem;
    for (int i = 0; i < arm->service_count; i++) {
        double need = problem->demand_rps[i], most = 0;
        for (int s = 0; s < arm->slot_count; s++) {
            const struct problem_option *option = problem_option(problem, i, s);
            if (option->row >= 0 && option->rate_rps > most)
                most = option->rate_rps;
        }
        /* Without its largest instance a spread service must still have its rate. */
        if (need > 0 && problem->services->services.data[i].spread != SPREAD_NONE)
            need += most;
        arm->need_rps[i] = problem->dropped[i] || need < 0 ? 0 : need;
        assert(isfinite(arm->need_rps[i]));
        for (int s = 0; s < arm->slot_count && arm->need_rps[i] > 0; s++)
            if (problem_option(problem, i, s)->row >= 0)
                arm->share[i * arm->slot_count + s] =
                    problem_option(problem, i, s)->rate_rps / arm->need_rps[i];
        for (size_t p = 0; p < arm->patterns.count; p++) {
            const struct arm_pattern *pattern = &arm->patterns.data[p];
            double sum = 0;
            for (int k = 0; k < pattern->slot_count; k++)
                sum += pattern->counts[k] * arm_share(arm, i, pattern->slots[k]);
            if (sum > arm->gpu_share[i])
                arm->gpu_share[i] = sum;
        }
    }
}

void arm_init(struct arm *arm, const struct problem *problem,
              const struct solver_settings *settings)
{
    assert(problem && settings && problem->slot_count <= PROBLEM_SLOTS_MAX);
    size_t services = (size_t)problem->service_count + 1;
    *arm = (struct arm){
        .problem = problem,
        .settings = settings,
        .parameters = settings->parameters ? settings->parameters : &paper_parameters_default,
        .service_count = problem->service_count,
        .slot_count = problem->slot_count,
        .need_rps = xcalloc(services, sizeof(double)),
        .share = xcalloc(services * ((size_t)problem->slot_count + 1), sizeof(double)),
        .gpu_share = xcalloc(services, sizeof(double)),
        .deadline_ns = INT64_MAX,
    };
    if (settings->clock && settings->budget_s < 1e9)
        arm->deadline_ns = clock_now_ns(settings->clock) + (int64_t)(settings->budget_s * 1e9);
    double floor = price_floor(problem);
    for (size_t k = 0; k < problem->kinds.count; k++) {
        const struct problem_kind *kind = &problem->kinds.data[k];
        for (int p = 0; p < kind->pattern_count; p++)
            add_pattern(arm, (int)k, &kind->patterns[p * problem->slot_count], floor);
    }
    fill_needs(arm);
}

void arm_done(struct arm *arm)
{
    free(arm->need_rps);
    free(arm->share);
    free(arm->gpu_share);
    vec_done(&arm->patterns);
}

bool arm_is_late(const struct arm *arm)
{
    assert(arm->deadline_ns == INT64_MAX || arm->settings->clock);
    return arm->deadline_ns != INT64_MAX &&
           clock_now_ns(arm->settings->clock) >= arm->deadline_ns;
}

/* --- states ------------------------------------------------------------------ */

void arm_state_init(struct arm_state *state, const struct arm *arm)
{
    assert(arm->need_rps);
    state->completion = xcalloc((size_t)arm->service_count + 1, sizeof *state->completion);
    state->used = xcalloc(arm->problem->kinds.count + 1, sizeof *state->used);
    for (int i = 0; i < arm->service_count; i++)
        if (arm->need_rps[i] <= 0)
            state->completion[i] = 1;
}

void arm_state_copy(struct arm_state *to, const struct arm_state *from, const struct arm *arm)
{
    assert(to != from && to->completion && to->used);
    memcpy(to->completion, from->completion,
           (size_t)arm->service_count * sizeof *to->completion);
    memcpy(to->used, from->used, arm->problem->kinds.count * sizeof *to->used);
}

void arm_state_done(struct arm_state *state)
{
    free(state->completion);
    free(state->used);
    *state = (struct arm_state){0};
}

void arm_apply(const struct arm *arm, struct arm_state *state, const struct solution_gpu *gpu)
{
    assert(gpu->kind >= 0 && (size_t)gpu->kind < arm->problem->kinds.count);
    assert(gpu->count >= 0 && gpu->count <= MIG_INSTANCES_MAX);
    state->used[gpu->kind]++;
    for (int k = 0; k < gpu->count; k++) {
        int service = gpu->items[k].service;
        state->completion[service] += arm_share(arm, service, gpu->items[k].slot);
    }
}

double arm_missing(const struct arm_state *state, int service)
{
    assert(service >= 0 && state->completion[service] >= 0);
    double missing = 1 - state->completion[service];
    return missing > MET ? missing : 0;
}

/* Whether a finished plan meets the contract's tolerance; rounding may differ a little from
 * the sums made on the way. */
static bool is_met(const struct arm *arm, const struct arm_state *state)
{
    for (int i = 0; i < arm->service_count; i++)
        if (state->completion[i] < 1 - 2 * MET)
            return false;
    return true;
}

bool arm_is_complete(const struct arm *arm, const struct arm_state *state)
{
    for (int i = 0; i < arm->service_count; i++)
        if (arm_missing(state, i) > 0)
            return false;
    return true;
}

bool arm_has_stock(const struct arm *arm, const struct arm_state *state, int kind)
{
    assert(kind >= 0 && (size_t)kind < arm->problem->kinds.count);
    int stock = arm->problem->kinds.data[kind].stock;
    return stock == PROBLEM_UNLIMITED || state->used[kind] < stock;
}

bool arm_is_almost(const struct arm *arm, int service, double missing)
{
    assert(service >= 0 && service < arm->service_count);
    return missing > 0 && missing < arm->parameters->last_mile * arm->gpu_share[service];
}

double arm_worth(const struct arm *arm, int service, double missing, double utility)
{
    assert(missing >= 0 && utility >= 0);
    if (utility > missing && arm_is_almost(arm, service, missing))
        utility = missing;
    return missing * utility;
}

/* --- plans ------------------------------------------------------------------- */

double arm_plan_cost(const struct arm *arm, const struct arm_plan *plan)
{
    double cost = 0;
    for (size_t g = 0; g < plan->gpus.count; g++)
        cost += arm->problem->kinds.data[plan->gpus.data[g].kind].price;
    assert(cost >= 0);
    return cost;
}

void arm_plan_state(const struct arm *arm, const struct arm_plan *plan, struct arm_state *state)
{
    assert(state->completion && state->used);
    for (int i = 0; i < arm->service_count; i++)
        state->completion[i] = arm->need_rps[i] > 0 ? 0 : 1;
    memset(state->used, 0, arm->problem->kinds.count * sizeof *state->used);
    for (size_t g = 0; g < plan->gpus.count; g++)
        arm_apply(arm, state, &plan->gpus.data[g]);
}

/* Whether a slot fits on a GPU beside its instances; full GPUs are told by their slices. */
static bool has_room(const struct arm *arm, const struct solution_gpu *gpu, int slot)
{
    assert(gpu->kind >= 0 && gpu->count >= 0);
    int slices = arm_slices(arm, slot), most = arm->problem->slots[slot].board->compute_slices;
    for (int k = 0; k < gpu->count; k++)
        slices += arm_slices(arm, gpu->items[k].slot);
    if (gpu->count >= MIG_INSTANCES_MAX || slices > (most > 0 ? most : 1))
        return false;
    /* A multiset fits when one maximal pattern contains it (problem.h). */
    for (size_t p = 0; p < arm->patterns.count; p++) {
        const struct arm_pattern *pattern = &arm->patterns.data[p];
        int room[PROBLEM_SLOTS_MAX] = {0};
        if (pattern->kind != gpu->kind)
            continue;
        for (int k = 0; k < pattern->slot_count; k++)
            room[pattern->slots[k]] = pattern->counts[k];
        bool fits = --room[slot] >= 0;
        for (int k = 0; k < gpu->count && fits; k++)
            fits = --room[gpu->items[k].slot] >= 0;
        if (fits)
            return true;
    }
    return false;
}

/* The cheapest kind in stock whose GPUs hold the slot; -1: none. */
static int find_kind(const struct arm *arm, const struct arm_state *state, int slot)
{
    int best = -1;
    for (size_t k = 0; k < arm->problem->kinds.count; k++) {
        struct solution_gpu empty = {.kind = (int)k};
        if (arm->problem->kinds.data[k].board != arm->problem->slots[slot].board ||
            !arm_has_stock(arm, state, (int)k) || !has_room(arm, &empty, slot))
            continue;
        if (best < 0 ||
            arm->problem->kinds.data[k].price < arm->problem->kinds.data[best].price)
            best = (int)k;
    }
    return best;
}

bool arm_plan_add(const struct arm *arm, struct arm_plan *plan, struct arm_state *state,
                  struct solution_item item)
{
    const struct mig_board *board = arm->problem->slots[item.slot].board;
    struct solution_gpu *gpu = NULL;
    assert(problem_option(arm->problem, item.service, item.slot)->row >= 0);
    /* GPUs are only filled, never emptied, so what had no room for this slot kind has none
     * now. */
    size_t first = plan->open[item.slot];
    for (size_t g = first < plan->gpus.count ? first : plan->gpus.count;
         g < plan->gpus.count && !gpu; g++) {
        plan->open[item.slot] = g;
        if (arm->problem->kinds.data[plan->gpus.data[g].kind].board == board &&
            has_room(arm, &plan->gpus.data[g], item.slot))
            gpu = &plan->gpus.data[g];
    }
    if (!gpu) {
        int kind = find_kind(arm, state, item.slot);
        if (kind < 0)
            return false;
        gpu = vec_push(&plan->gpus);
        gpu->kind = kind;
        state->used[kind]++;
    }
    assert(gpu->count < MIG_INSTANCES_MAX);
    gpu->items[gpu->count++] = item;
    state->completion[item.service] += arm_share(arm, item.service, item.slot);
    return true;
}

/* The smallest slot kind that a service can use, by slices then by promise; -1: none. */
static int smallest_slot(const struct arm *arm, int service)
{
    assert(service >= 0 && service < arm->service_count);
    int best = -1;
    for (int s = 0; s < arm->slot_count; s++) {
        const struct problem_option *option = problem_option(arm->problem, service, s);
        if (option->row >= 0 && (best < 0 || arm_slices(arm, s) < arm_slices(arm, best)))
            best = s;
    }
    return best;
}

/* Instances that min_instances asks for beyond what the rates needed. */
static bool add_minimum(const struct arm *arm, struct arm_plan *plan, struct arm_state *state)
{
    int *count = xcalloc((size_t)arm->service_count + 1, sizeof *count);
    bool done = true;
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (int k = 0; k < plan->gpus.data[g].count; k++)
            count[plan->gpus.data[g].items[k].service]++;
    for (int i = 0; i < arm->service_count && done; i++) {
        int least = arm->problem->dropped[i] ? 0 : arm->problem->instances_min[i];
        int slot = smallest_slot(arm, i);
        for (int k = count[i]; k < least && done; k++)
            done =
                slot >= 0 && arm_plan_add(arm, plan, state,
                                          (struct solution_item){.slot = slot, .service = i});
    }
    free(count);
    return done;
}

/* The slot kind that gives a service most; -1: none. */
static int largest_share(const struct arm *arm, int service)
{
    assert(service >= 0 && service < arm->service_count);
    int best = -1;
    for (int s = 0; s < arm->slot_count; s++)
        if (arm_share(arm, service, s) > 0 &&
            (best < 0 || arm_share(arm, service, s) > arm_share(arm, service, best)))
            best = s;
    return best;
}

/* One more instance of the service, on a GPU of its own. */
static bool add_apart(const struct arm *arm, struct arm_plan *plan, struct arm_state *state,
                      int service)
{
    assert(service >= 0 && service < arm->service_count);
    int slot = largest_share(arm, service), kind = slot < 0 ? -1 : find_kind(arm, state, slot);
    if (kind < 0)
        return false;
    struct solution_gpu gpu = {.kind = kind, .count = 1};
    gpu.items[0] = (struct solution_item){.slot = slot, .service = service};
    arm_apply(arm, state, &gpu);
    vec_add(&plan->gpus, gpu);
    return true;
}

/* Whether the plan can be labelled so that its services survive what they must; those that
 * cannot have ret_largest_rps > 0. */
static bool can_spread(const struct arm *arm, const struct arm_plan *plan,
                       double *ret_largest_rps)
{
    assert(ret_largest_rps);
    CLEANUP(arena_done) struct arena arena = {0};
    struct solution trial = {0};
    for (size_t g = 0; g < plan->gpus.count; g++)
        vec_add(&trial.gpus, plan->gpus.data[g]);
    const struct seat *seats = seats_assign(arm->problem, &trial, &arena);
    bool can = spread_try(arm->problem, seats, &trial, ret_largest_rps);
    solution_done(&trial);
    return can;
}

/* The papers know no spreading: their plans get further instances until it succeeds. */
static bool add_spread(const struct arm *arm, struct arm_plan *plan, struct arm_state *state)
{
    enum { TRIES = 64 };
    double *largest_rps = xcalloc((size_t)arm->service_count + 1, sizeof *largest_rps);
    bool can = !spread_is_asked(arm->problem), stock = true;
    for (int i = 0; i < TRIES && !can && stock; i++) {
        can = can_spread(arm, plan, largest_rps);
        for (int s = 0; s < arm->service_count && !can && stock; s++)
            if (largest_rps[s] > 0)
                stock = add_apart(arm, plan, state, s);
    }
    free(largest_rps);
    return can;
}

void arm_finish(const struct arm *arm, struct arm_plan *plan, struct solution *solution)
{
    assert(solution->gpus.count == 0);
    struct arm_state state;
    arm_state_init(&state, arm);
    arm_plan_state(arm, plan, &state);
    solution->feasible =
        is_met(arm, &state) && add_minimum(arm, plan, &state) && add_spread(arm, plan, &state);
    solution->bound_cost = NAN;
    for (size_t g = 0; g < plan->gpus.count; g++)
        if (plan->gpus.data[g].count > 0)
            vec_add(&solution->gpus, plan->gpus.data[g]);
    arm_state_done(&state);
    if (solution->feasible)
        solution_check(arm->problem, solution);
}
