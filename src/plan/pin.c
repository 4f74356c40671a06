/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/pin.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "plan/patterns.h"

/* ---- the earlier plan against the present fleet ---- */

/* The kind to which a GPU belongs: a partly taken one by its id, else the free GPUs of the
 * part that lists it, else of the first part with its board. -1: gone. */
static int find_kind(const struct problem *problem, const struct plan_gpu *gpu, bool *ambiguous)
{
    assert(ambiguous);
    int by_board = -1, same_board = 0;
    for (size_t k = 0; k < problem->kinds.count; k++) {
        const struct problem_kind *kind = &problem->kinds.data[k];
        if (kind->board != gpu->board)
            continue;
        if (kind->gpu && strcmp(kind->gpu->id, gpu->id) == 0)
            return (int)k;
        if (kind->gpu)
            continue;
        const struct fleet_part *part = &problem->parts.data[kind->part];
        for (size_t g = 0; g < part->gpus.count; g++)
            if (strcmp(part->gpus.data[g].id, gpu->id) == 0)
                return (int)k;
        same_board++;
        if (by_board < 0)
            by_board = (int)k;
    }
    *ambiguous |= same_board > 1;
    return by_board;
}

static bool is_fixed(const struct problem_kind *kind, const struct plan_instance *instance)
{
    for (int i = 0; i < kind->taken.count; i++)
        if (kind->taken.instances[i].start == instance->start)
            return true;
    return false;
}

static int find_service(const struct map *names, const struct problem *problem,
                        const char *name)
{
    int index = (int)map_find(names, name);
    return index >= 0 && !problem->dropped[index] ? index : -1;
}

/* The instances of one GPU that could stay, as far as they are legal beside what is fixed
 * there and under the rules. */
static void add_instances(struct old_plan *old, const struct problem *problem,
                          const struct map *names, int g)
{
    assert(old->kind[g] >= 0);
    const struct plan_gpu *gpu = &problem->from->gpus.data[g];
    const struct problem_kind *kind = &problem->kinds.data[old->kind[g]];
    struct mig_layout layout = kind->taken;
    bool four = false, three = false;
    for (size_t i = 0; i < gpu->instances.count; i++) {
        const struct plan_instance *instance = &gpu->instances.data[i];
        struct mig_instance placed = {(int8_t)instance->profile, (int8_t)instance->start};
        int slices = gpu->board->profiles[instance->profile].compute_slices;
        int slot = problem_find_slot(problem, gpu->board, instance->profile);
        int service = instance->service < 0
                          ? -1
                          : find_service(names, problem,
                                         problem->from->services.data[instance->service].name);
        bool usable =
            slot >= 0 && service >= 0 && problem_option(problem, service, slot)->row >= 0;
        bool is_in = usable && !is_fixed(kind, instance) &&
                     mig_layout_can_add(gpu->board, &layout, placed);
        if (problem->rules == RULES_PAPER && ((slices == 4 && three) || (slices == 3 && four)))
            is_in = false;
        old->outside +=
            !is_in && (usable || (instance->service >= 0 && is_fixed(kind, instance)));
        if (!is_in)
            continue;
        four |= slices == 4;
        three |= slices == 3;
        mig_layout_add(gpu->board, &layout, placed);
        old->instances[old->instance_count++] = (struct old_instance){.gpu = g,
                                                                      .instance = (int)i,
                                                                      .kind = old->kind[g],
                                                                      .service = service,
                                                                      .slot = slot,
                                                                      .start = instance->start};
    }
}

void old_plan_init(struct old_plan *old, const struct problem *problem)
{
    assert(problem->from);
    size_t gpus = problem->from->gpus.count;
    struct map names = {0};
    int *left = xcalloc(problem->kinds.count + 1, sizeof *left);
    *old = (struct old_plan){.gpu_count = (int)gpus};
    old->kind = xcalloc(gpus + 1, sizeof *old->kind);
    old->first = xcalloc(gpus + 2, sizeof *old->first);
    old->instances = xcalloc(gpus * MIG_INSTANCES_MAX + 1, sizeof *old->instances);
    for (int i = 0; i < problem->service_count; i++)
        map_put(&names, problem->services->services.data[i].name, NULL);
    for (size_t k = 0; k < problem->kinds.count; k++)
        left[k] = problem->kinds.data[k].stock;
    for (size_t g = 0; g < gpus; g++) {
        int kind = find_kind(problem, &problem->from->gpus.data[g], &old->ambiguous);
        if (kind >= 0 && left[kind] == 0)
            kind = -1; /* more GPUs than the fleet has now */
        if (kind >= 0 && left[kind] > 0)
            left[kind]--;
        old->kind[g] = kind;
        if (kind >= 0)
            add_instances(old, problem, &names, (int)g);
        for (size_t i = 0; kind < 0 && i < problem->from->gpus.data[g].instances.count; i++)
            old->outside += problem->from->gpus.data[g].instances.data[i].service >= 0;
        old->first[g + 1] = old->instance_count;
    }
    free(left);
    map_done(&names);
}

void old_plan_done(struct old_plan *old)
{
    free(old->kind);
    free(old->first);
    free(old->instances);
    vec_done(&old->known);
    arena_done(&old->arena);
    *old = (struct old_plan){0};
}

void old_plan_patterns(struct old_plan *old, const struct problem *problem,
                       struct problem_kind *kind)
{
    assert(kind->board);
    for (size_t k = 0; k < old->known.count; k++) {
        const struct problem_kind *known = &old->known.data[k];
        if (known->board != kind->board || !mig_layout_equal(&known->taken, &kind->taken))
            continue;
        kind->patterns = known->patterns;
        kind->pattern_count = known->pattern_count;
        return;
    }
    struct problem shadow = *problem;
    shadow.arena = old->arena;
    patterns_build(&shadow, kind);
    old->arena = shadow.arena;
    vec_add(&old->known, *kind);
}

/* ---- the problem that is left ---- */

/* The base kind with the pinned instances of one GPU taken. */
static struct problem_kind taken_kind(const struct pinned_problem *pinned, int g)
{
    assert(pinned->old->kind[g] >= 0);
    const struct old_plan *old = pinned->old;
    struct problem_kind kind = pinned->base->kinds.data[old->kind[g]];
    for (int i = old->first[g]; i < old->first[g + 1]; i++)
        if (pinned->pinned[i])
            mig_layout_add(kind.board, &kind.taken,
                           (struct mig_instance){
                               (int8_t)pinned->base->slots[old->instances[i].slot].profile,
                               (int8_t)old->instances[i].start});
    kind.stock = 0;
    kind.price = 0;
    return kind;
}

static bool has_pinned(const struct pinned_problem *pinned, int g)
{
    assert(g >= 0 && g < pinned->old->gpu_count);
    for (int i = pinned->old->first[g]; i < pinned->old->first[g + 1]; i++)
        if (pinned->pinned[i])
            return true;
    return false;
}

/* The kind of the rest that is like this one: same base kind, same instances taken. */
static int find_like(const struct pinned_problem *pinned, const struct problem_kind *kind,
                     size_t first)
{
    assert(first <= pinned->problem.kinds.count);
    for (size_t k = first; k < pinned->problem.kinds.count; k++) {
        const struct problem_kind *other = &pinned->problem.kinds.data[k];
        if (other->board == kind->board && other->part == kind->part &&
            other->gpu == kind->gpu && mig_layout_equal(&other->taken, &kind->taken))
            return (int)k;
    }
    return -1;
}

static void take_services(struct pinned_problem *pinned)
{
    const struct problem *base = pinned->base;
    struct problem *rest = &pinned->problem;
    const struct old_plan *old = pinned->old;
    double *here_rps = xcalloc((size_t)base->service_count + 1, sizeof *here_rps);
    for (int g = 0; g < old->gpu_count; g++) {
        for (int i = old->first[g]; i < old->first[g + 1]; i++) {
            int service = old->instances[i].service;
            double rate_rps = problem_option(base, service, old->instances[i].slot)->rate_rps;
            if (!pinned->pinned[i])
                continue;
            rest->demand_rps[service] -= rate_rps;
            rest->fixed_rps[service] += rate_rps;
            rest->instances_min[service]--;
            here_rps[service] += rate_rps;
            if (here_rps[service] > rest->fixed_largest_rps[service])
                rest->fixed_largest_rps[service] = here_rps[service];
        }
        for (int i = old->first[g]; i < old->first[g + 1]; i++)
            here_rps[old->instances[i].service] = 0;
    }
    for (int i = 0; i < base->service_count; i++) {
        double full_rps = base->services->services.data[i].rate_rps;
        bool spread = base->services->services.data[i].spread != SPREAD_NONE;
        if (!spread && rest->demand_rps[i] < full_rps * 1e-12)
            rest->demand_rps[i] = 0;
        if (rest->instances_min[i] < 0)
            rest->instances_min[i] = 0;
    }
    free(here_rps);
}

static void *copy_array(struct arena *arena, const void *from, size_t count, size_t size)
{
    assert(from || count == 0);
    void *copy = arena_alloc(arena, count + 1, size);
    memcpy(copy, from, count * size);
    return copy;
}

static void take_gpus(struct pinned_problem *pinned)
{
    const struct problem *base = pinned->base;
    struct problem *rest = &pinned->problem;
    size_t free_kinds = base->kinds.count;
    int *like = xcalloc((size_t)pinned->old->gpu_count + 1, sizeof *like);
    for (int g = 0; g < pinned->old->gpu_count; g++) {
        like[g] = -1;
        if (!has_pinned(pinned, g))
            continue;
        int kind = pinned->old->kind[g];
        assert(kind >= 0);
        struct problem_kind taken = taken_kind(pinned, g);
        rest->base_cost += base->kinds.data[kind].price;
        if (rest->kinds.data[kind].stock > 0)
            rest->kinds.data[kind].stock--;
        like[g] = find_like(pinned, &taken, free_kinds);
        if (like[g] < 0) {
            like[g] = (int)rest->kinds.count;
            old_plan_patterns(pinned->old, rest, &taken);
            vec_add(&rest->kinds, taken);
        }
        rest->kinds.data[like[g]].stock++;
    }
    pinned->first = arena_alloc(&rest->arena, rest->kinds.count + 2, sizeof(int));
    pinned->gpus = arena_alloc(&rest->arena, (size_t)pinned->old->gpu_count + 1, sizeof(int));
    int count = 0;
    for (size_t k = 0; k < rest->kinds.count; k++) {
        for (int g = 0; g < pinned->old->gpu_count; g++)
            if (like[g] == (int)k)
                pinned->gpus[count++] = g;
        pinned->first[k + 1] = count;
    }
    assert(count <= pinned->old->gpu_count);
    free(like);
}

void pinned_problem_init(struct pinned_problem *pinned, const struct problem *base,
                         struct old_plan *old, const bool *keep)
{
    assert(base->from && keep);
    size_t services = (size_t)base->service_count;
    *pinned =
        (struct pinned_problem){.problem = *base, .base = base, .old = old, .pinned = keep};
    struct problem *rest = &pinned->problem;
    rest->arena = (struct arena){0};
    rest->demand_rps = copy_array(&rest->arena, base->demand_rps, services, sizeof(double));
    rest->fixed_rps = copy_array(&rest->arena, base->fixed_rps, services, sizeof(double));
    rest->fixed_largest_rps =
        copy_array(&rest->arena, base->fixed_largest_rps, services, sizeof(double));
    rest->instances_min = copy_array(&rest->arena, base->instances_min, services, sizeof(int));
    memset(&rest->kinds, 0, sizeof rest->kinds);
    for (size_t k = 0; k < base->kinds.count; k++)
        vec_add(&rest->kinds, base->kinds.data[k]);
    rest->pinned = pinned;
    rest->from = NULL;
    take_services(pinned);
    take_gpus(pinned);
}

void pinned_problem_done(struct pinned_problem *pinned)
{
    vec_done(&pinned->problem.kinds);
    arena_done(&pinned->problem.arena);
}

static void put_back(const struct pinned_problem *pinned, int g, struct solution_gpu *gpu)
{
    assert(g >= 0 && g < pinned->old->gpu_count);
    const struct old_plan *old = pinned->old;
    gpu->kind = old->kind[g];
    gpu->reuse = g + 1;
    for (int i = old->first[g]; i < old->first[g + 1]; i++) {
        if (!pinned->pinned[i])
            continue;
        assert(gpu->count < MIG_INSTANCES_MAX);
        gpu->items[gpu->count++] = (struct solution_item){.slot = old->instances[i].slot,
                                                          .service = old->instances[i].service,
                                                          .stay = old->instances[i].start + 1};
    }
}

void pinned_problem_expand(const struct pinned_problem *pinned, const struct solution *rest,
                           struct solution *ret_solution)
{
    assert(rest != ret_solution);
    size_t kinds = pinned->problem.kinds.count, free_kinds = pinned->base->kinds.count;
    int *next = xcalloc(kinds + 1, sizeof *next);
    ret_solution->feasible = rest->feasible;
    ret_solution->bound_cost = rest->bound_cost;
    ret_solution->bound_how = rest->bound_how;
    ret_solution->stopped_by_budget = rest->stopped_by_budget;
    for (size_t k = free_kinds; k < kinds; k++)
        next[k] = pinned->first[k];
    for (size_t g = 0; g < rest->gpus.count; g++) {
        struct solution_gpu gpu = rest->gpus.data[g];
        if (gpu.kind >= (int)free_kinds)
            put_back(pinned, pinned->gpus[next[gpu.kind]++], &gpu);
        vec_add(&ret_solution->gpus, gpu);
    }
    for (size_t k = free_kinds; k < kinds; k++) {
        for (; next[k] < pinned->first[k + 1]; next[k]++) {
            struct solution_gpu gpu = {0};
            put_back(pinned, pinned->gpus[next[k]], &gpu);
            vec_add(&ret_solution->gpus, gpu);
        }
    }
    free(next);
}
