/* SPDX-License-Identifier: Apache-2.0
 *
 * The baselines of the MIG-serving paper (section 7): every GPU whole (A100-7/7), every GPU
 * in its smallest slices (A100-7x1/7), every GPU 4-2-1 with one service on it (A100-MIX).
 *
 * On boards other than the paper's, whole is the largest slice, ones the smallest, mix the
 * pattern with the most different slices. A service that cannot use a baseline's slice
 * gets, under `ones`, the next larger one that it can; under the others the plan is
 * infeasible, as the baseline has nothing to offer it.
 */
#include <assert.h>
#include <math.h>

#include "plan/arm.h"

/* What one GPU of a pattern gives a service alone, as utility. */
static double pattern_share(const struct arm *arm, const struct arm_pattern *pattern,
                            int service)
{
    double sum = 0;
    for (int k = 0; k < pattern->slot_count; k++)
        sum += pattern->counts[k] * arm_share(arm, service, pattern->slots[k]);
    assert(sum >= 0);
    return sum;
}

static int pattern_size(const struct arm_pattern *pattern)
{
    int size = 0;
    for (int k = 0; k < pattern->slot_count; k++)
        size += pattern->counts[k];
    assert(size > 0 && size <= MIG_INSTANCES_MAX);
    return size;
}

/* Whether a pattern is the baseline's on its kind of GPU, given the best one so far. */
typedef bool (*preference)(const struct arm *arm, const struct arm_pattern *a,
                           const struct arm_pattern *b);

static bool prefers_whole(const struct arm *arm, const struct arm_pattern *a,
                          const struct arm_pattern *b)
{
    if (pattern_size(a) != pattern_size(b))
        return pattern_size(a) < pattern_size(b);
    return arm_slices(arm, a->slots[0]) > arm_slices(arm, b->slots[0]);
}

static bool prefers_mix(const struct arm *arm, const struct arm_pattern *a,
                        const struct arm_pattern *b)
{
    if (a->slot_count != b->slot_count)
        return a->slot_count > b->slot_count;
    if (pattern_size(a) != pattern_size(b))
        return pattern_size(a) < pattern_size(b);
    return arm_slices(arm, a->slots[0]) > arm_slices(arm, b->slots[0]);
}

/* The baseline's pattern on a kind; NULL: the kind has none. */
static const struct arm_pattern *find_pattern(const struct arm *arm, int kind,
                                              preference prefers)
{
    assert(kind >= 0 && (size_t)kind < arm->problem->kinds.count);
    const struct arm_pattern *best = NULL;
    for (size_t p = 0; p < arm->patterns.count; p++) {
        const struct arm_pattern *pattern = &arm->patterns.data[p];
        if (pattern->kind == kind && (!best || prefers(arm, pattern, best)))
            best = pattern;
    }
    return best;
}

/* The pattern in stock that serves one service at the least price. */
static const struct arm_pattern *cheapest_pattern(const struct arm *arm,
                                                  const struct arm_state *state, int service,
                                                  preference prefers)
{
    assert(service >= 0 && service < arm->service_count && prefers);
    const struct arm_pattern *best = NULL;
    double best_value = 0;
    for (size_t k = 0; k < arm->problem->kinds.count; k++) {
        if (!arm_has_stock(arm, state, (int)k))
            continue;
        const struct arm_pattern *pattern = find_pattern(arm, (int)k, prefers);
        double value = pattern ? pattern_share(arm, pattern, service) / pattern->price : 0;
        if (value > best_value) {
            best_value = value;
            best = pattern;
        }
    }
    return best;
}

static struct solution_gpu whole_gpu(const struct arm *arm, const struct arm_pattern *pattern,
                                     int service)
{
    struct solution_gpu gpu = {.kind = pattern->kind};
    for (int k = 0; k < pattern->slot_count; k++)
        for (int i = 0; i < pattern->counts[k]; i++)
            if (arm_share(arm, service, pattern->slots[k]) > 0)
                gpu.items[gpu.count++] =
                    (struct solution_item){.slot = pattern->slots[k], .service = service};
    assert(gpu.count <= MIG_INSTANCES_MAX);
    return gpu;
}

/* GPUs of one pattern, each for one service, until every need is met or stock is out. */
static void fill_alone(const struct arm *arm, preference prefers, struct arm_plan *plan)
{
    struct arm_state state;
    arm_state_init(&state, arm);
    for (int i = 0; i < arm->service_count; i++)
        while (arm_missing(&state, i) > 0) {
            const struct arm_pattern *pattern = cheapest_pattern(arm, &state, i, prefers);
            if (!pattern)
                break;
            struct solution_gpu gpu = whole_gpu(arm, pattern, i);
            arm_apply(arm, &state, &gpu);
            vec_add(&plan->gpus, gpu);
        }
    arm_state_done(&state);
}

/* The smallest slot kind of a board that a service can use; -1: none. */
static int smallest_on(const struct arm *arm, int service, const struct mig_board *board)
{
    assert(service >= 0 && service < arm->service_count);
    int best = -1;
    for (int s = 0; s < arm->slot_count; s++)
        if (arm->problem->slots[s].board == board && arm_share(arm, service, s) > 0 &&
            (best < 0 || arm_slices(arm, s) < arm_slices(arm, best)))
            best = s;
    return best;
}

/* How many of one slot a GPU of the kind holds. */
static int most_on(const struct arm *arm, int kind, int slot)
{
    assert(kind >= 0 && slot >= 0 && slot < arm->slot_count);
    int most = 0;
    for (size_t p = 0; p < arm->patterns.count; p++)
        for (int k = 0; k < arm->patterns.data[p].slot_count; k++)
            if (arm->patterns.data[p].kind == kind && arm->patterns.data[p].slots[k] == slot &&
                arm->patterns.data[p].counts[k] > most)
                most = arm->patterns.data[p].counts[k];
    return most;
}

/* Puts one instance on a GPU that is cut into slots of this kind alone, a new one if none
 * has room; false when stock is out. */
static bool add_uniform(const struct arm *arm, struct arm_plan *plan, struct arm_state *state,
                        struct solution_item item, int kind)
{
    struct solution_gpu *gpu = NULL;
    for (size_t g = plan->gpus.count; g-- > 0 && !gpu;) /* only the last can have room */
        if (plan->gpus.data[g].kind == kind && plan->gpus.data[g].items[0].slot == item.slot)
            gpu = &plan->gpus.data[g];
    if (!gpu || gpu->count >= most_on(arm, kind, item.slot)) {
        if (!arm_has_stock(arm, state, kind))
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

/* The kind whose smallest slices serve the service at the least price now, -1: none;
 * *ret_slot is the slice. */
static int cheapest_uniform(const struct arm *arm, const struct arm_state *state, int service,
                            int *ret_slot)
{
    assert(service >= 0 && service < arm->service_count && ret_slot);
    int best = -1;
    double best_value = 0;
    for (size_t k = 0; k < arm->problem->kinds.count; k++) {
        const struct problem_kind *kind = &arm->problem->kinds.data[k];
        int slot = smallest_on(arm, service, kind->board);
        int room = slot < 0 ? 0 : most_on(arm, (int)k, slot);
        if (room == 0 || !arm_has_stock(arm, state, (int)k))
            continue;
        double price = kind->price > 0 ? kind->price : 1e-3;
        double value = room * arm_share(arm, service, slot) / price;
        if (value > best_value) {
            best_value = value;
            best = (int)k;
            *ret_slot = slot;
        }
    }
    return best;
}

static void fill_ones(const struct arm *arm, struct arm_plan *plan)
{
    struct arm_state state;
    arm_state_init(&state, arm);
    for (int i = 0; i < arm->service_count; i++) {
        int slot = -1, kind = cheapest_uniform(arm, &state, i, &slot);
        while (kind >= 0 && arm_missing(&state, i) > 0) {
            struct solution_item item = {.slot = slot, .service = i};
            if (!add_uniform(arm, plan, &state, item, kind))
                kind = cheapest_uniform(arm, &state, i, &slot);
        }
    }
    arm_state_done(&state);
}

enum baseline { BASELINE_WHOLE, BASELINE_ONES, BASELINE_MIX };

static int solve(const struct problem *problem, const struct solver_settings *settings,
                 enum baseline baseline, struct solution *ret_solution)
{
    struct arm arm;
    struct arm_plan plan = {0};
    arm_init(&arm, problem, settings);
    if (baseline == BASELINE_ONES)
        fill_ones(&arm, &plan);
    else
        fill_alone(&arm, baseline == BASELINE_WHOLE ? prefers_whole : prefers_mix, &plan);
    arm_finish(&arm, &plan, ret_solution);
    vec_done(&plan.gpus);
    arm_done(&arm);
    return 0;
}

static int solve_whole(const struct problem *problem, const struct solver_settings *settings,
                       struct solution *ret_solution, struct error *err)
{
    (void)err;
    return solve(problem, settings, BASELINE_WHOLE, ret_solution);
}

static int solve_ones(const struct problem *problem, const struct solver_settings *settings,
                      struct solution *ret_solution, struct error *err)
{
    (void)err;
    return solve(problem, settings, BASELINE_ONES, ret_solution);
}

static int solve_mix(const struct problem *problem, const struct solver_settings *settings,
                     struct solution *ret_solution, struct error *err)
{
    (void)err;
    return solve(problem, settings, BASELINE_MIX, ret_solution);
}

const struct solver solver_whole = {
    .name = "whole", .summary = "baseline: no partitions (A100-7/7)", .solve = solve_whole};
const struct solver solver_ones = {
    .name = "ones", .summary = "baseline: smallest slices (A100-7x1/7)", .solve = solve_ones};
const struct solver solver_mix = {.name = "mix",
                                  .summary = "baseline: 4-2-1, one service a GPU (A100-MIX)",
                                  .solve = solve_mix};
