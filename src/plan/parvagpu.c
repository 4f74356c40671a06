/* SPDX-License-Identifier: Apache-2.0
 *
 * ParvaGPU's segment allocation (SC'24, arXiv 2409.14447). Per service: the segment (slice,
 * batch, processes) with the highest throughput per compute slice, floor(demand /
 * throughput) of them, and the smallest slice that covers the rest. Placement: segments by
 * size, the largest first, each on the first GPU with room. Then GPUs with few busy slices are
 * taken apart where small segments (one or two slices) in holes of other GPUs give their
 * services the same. Which rows may serve is the latency rule's say (theirs is `half`).
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/arm.h"

/* So many GPUs in a row that could not be taken apart: there are no holes left to speak of. */
enum { FAILURES_MAX = 64 };

struct segments {
    VEC(struct solution_item) items;
};

/* The slot with the most throughput per compute slice and price; -1: none. */
static int best_segment(const struct arm *arm, int service)
{
    assert(service >= 0 && service < arm->service_count);
    int best = -1;
    double best_value = 0;
    for (int s = 0; s < arm->slot_count; s++) {
        double value = arm_share(arm, service, s) / arm_slices(arm, s);
        if (value > best_value) {
            best_value = value;
            best = s;
        }
    }
    return best;
}

/* The smallest slot that gives at least `share`; -1: none does. */
static int covering_segment(const struct arm *arm, int service, double share)
{
    assert(share > 0);
    int best = -1;
    for (int s = 0; s < arm->slot_count; s++)
        if (arm_share(arm, service, s) >= share &&
            (best < 0 || arm_slices(arm, s) < arm_slices(arm, best) ||
             (arm_slices(arm, s) == arm_slices(arm, best) &&
              arm_share(arm, service, s) > arm_share(arm, service, best))))
            best = s;
    return best;
}

static void configure_service(const struct arm *arm, int service, struct segments *segments)
{
    assert(arm->need_rps[service] > 0);
    int slot = best_segment(arm, service);
    double share = slot < 0 ? 0 : arm_share(arm, service, slot), given = 0;
    if (share <= 0)
        return;
    long count = (long)floor(1 / share * (1 + 1e-12));
    for (long i = 0; i < count; i++)
        vec_add(&segments->items, ((struct solution_item){.slot = slot, .service = service}));
    given = (double)count * share;
    if (given >= 1 - 1e-10)
        return;
    int last = covering_segment(arm, service, 1 - given);
    vec_add(&segments->items,
            ((struct solution_item){.slot = last < 0 ? slot : last, .service = service}));
}

/* By size, the largest first; the order of the services among equals. */
static void sort_segments(const struct arm *arm, struct segments *segments)
{
    struct segments sorted = {0};
    int largest = 0;
    for (int s = 0; s < arm->slot_count; s++)
        largest = arm_slices(arm, s) > largest ? arm_slices(arm, s) : largest;
    for (int size = largest; size > 0; size--)
        for (size_t i = 0; i < segments->items.count; i++)
            if (arm_slices(arm, segments->items.data[i].slot) == size)
                vec_add(&sorted.items, segments->items.data[i]);
    assert(sorted.items.count == segments->items.count);
    vec_done(&segments->items);
    *segments = sorted;
}

static int busy_slices(const struct arm *arm, const struct solution_gpu *gpu)
{
    int sum = 0;
    for (int k = 0; k < gpu->count; k++)
        sum += arm_slices(arm, gpu->items[k].slot);
    return sum;
}

static void copy_plan(struct arm_plan *to, const struct arm_plan *from)
{
    assert(to != from);
    vec_clear(&to->gpus);
    memset(to->open, 0, sizeof to->open);
    for (size_t g = 0; g < from->gpus.count; g++)
        vec_add(&to->gpus, from->gpus.data[g]);
}

/* The small segments (at most two slices) of a service, the most efficient first. */
static int small_segments(const struct arm *arm, int service, int ret_slots[])
{
    assert(service >= 0 && service < arm->service_count);
    int count = 0;
    for (int s = 0; s < arm->slot_count; s++) {
        double value = arm_share(arm, service, s) / arm_slices(arm, s);
        if (value <= 0 || arm_slices(arm, s) > 2)
            continue;
        int at = count++;
        for (; at > 0 &&
               arm_share(arm, service, ret_slots[at - 1]) / arm_slices(arm, ret_slots[at - 1]) <
                   value;
             at--)
            ret_slots[at] = ret_slots[at - 1];
        ret_slots[at] = s;
    }
    return count;
}

/* Gives a service what it misses by small segments in the plan's holes, without a new GPU. */
static bool fill_holes(const struct arm *arm, struct arm_plan *plan, struct arm_state *state,
                       int service)
{
    int slots[PROBLEM_SLOTS_MAX], count = small_segments(arm, service, slots);
    while (arm_missing(state, service) > 0) {
        size_t gpus = plan->gpus.count;
        bool placed = false;
        for (int i = 0; i < count && !placed; i++) {
            struct solution_item item = {.slot = slots[i], .service = service};
            placed = arm_plan_add(arm, plan, state, item) && plan->gpus.count == gpus;
            if (plan->gpus.count > gpus) { /* it went to a new GPU: take it back */
                plan->gpus.count = gpus;
                arm_plan_state(arm, plan, state);
            }
        }
        if (!placed)
            return false;
    }
    return true;
}

/* Takes a lightly used GPU out if its services fit elsewhere; else nothing changes. */
static bool take_apart(const struct arm *arm, struct arm_plan *plan, size_t index,
                       struct arm_state *state)
{
    assert(index < plan->gpus.count);
    struct arm_plan kept = {0};
    struct solution_gpu gpu = plan->gpus.data[index];
    bool fits = true;
    copy_plan(&kept, plan);
    memmove(&plan->gpus.data[index], &plan->gpus.data[index + 1],
            (plan->gpus.count - index - 1) * sizeof gpu);
    plan->gpus.count--;
    memset(plan->open, 0, sizeof plan->open);
    arm_plan_state(arm, plan, state);
    for (int k = 0; k < gpu.count && fits; k++)
        fits = fill_holes(arm, plan, state, gpu.items[k].service);
    if (!fits) {
        copy_plan(plan, &kept);
        arm_plan_state(arm, plan, state);
    }
    vec_done(&kept.gpus);
    return fits;
}

static void optimise_allocation(const struct arm *arm, struct arm_plan *plan,
                                struct arm_state *state)
{
    for (size_t g = plan->gpus.count; g-- > 0 && !arm_is_late(arm);) {
        if (g < plan->gpus.count &&
            busy_slices(arm, &plan->gpus.data[g]) <= (int)arm->parameters->parvagpu_light)
            take_apart(arm, plan, g, state);
    }
}

static int parvagpu_solve(const struct problem *problem, const struct solver_settings *settings,
                          struct solution *ret_solution, struct error *err)
{
    struct arm arm;
    struct arm_state state;
    struct arm_plan plan = {0};
    struct segments segments = {0};
    bool placed = true;
    (void)err;
    arm_init(&arm, problem, settings);
    arm_state_init(&state, &arm);
    for (int i = 0; i < arm.service_count; i++)
        if (arm.need_rps[i] > 0)
            configure_service(&arm, i, &segments);
    sort_segments(&arm, &segments);
    for (size_t i = 0; i < segments.items.count && placed; i++)
        placed = arm_plan_add(&arm, &plan, &state, segments.items.data[i]);
    if (placed)
        optimise_allocation(&arm, &plan, &state);
    ret_solution->stopped_by_budget = arm_is_late(&arm);
    arm_finish(&arm, &plan, ret_solution);
    vec_done(&segments.items);
    vec_done(&plan.gpus);
    arm_state_done(&state);
    arm_done(&arm);
    return 0;
}

const struct solver solver_parvagpu = {
    .name = "parvagpu",
    .summary = "ParvaGPU's segments: best slice per service, placed by size, holes filled",
    .solve = parvagpu_solve,
};
