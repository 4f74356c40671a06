/* SPDX-License-Identifier: Apache-2.0
 *
 * Which GPU of the earlier plan each GPU of a solution continues, and what the document
 * says of it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "plan/change.h"
#include "plan/pin.h"

/* Whether the items that stay, beside what is taken, leave room for the others. */
static bool can_place(const struct problem *problem, const struct solution_gpu *gpu)
{
    assert(gpu->count >= 0 && gpu->count <= MIG_INSTANCES_MAX);
    const struct problem_kind *kind = &problem->kinds.data[gpu->kind];
    struct mig_layout existing = kind->taken, request = {0}, placed;
    for (int i = 0; i < gpu->count; i++) {
        struct mig_instance instance = {
            .profile = (int8_t)problem->slots[gpu->items[i].slot].profile,
            .start = (int8_t)(gpu->items[i].stay ? gpu->items[i].stay - 1 : MIG_START_ANY)};
        if (!gpu->items[i].stay)
            request.instances[request.count++] = instance;
        else if (mig_layout_can_add(kind->board, &existing, instance))
            mig_layout_add(kind->board, &existing, instance);
        else
            return false;
    }
    return mig_layout_place(kind->board, &request, &existing, &placed, NULL) == 0;
}

/* Lets items stay where the earlier GPU has the same service on the same slot kind, as far
 * as the rest can still be placed; returns how many stay. */
static int stay_items(const struct problem *problem, const struct old_plan *old, int old_gpu,
                      struct solution_gpu *gpu)
{
    assert(old_gpu >= 0 && old_gpu < old->gpu_count);
    int stay = 0;
    for (int o = old->first[old_gpu]; o < old->first[old_gpu + 1]; o++) {
        const struct old_instance *instance = &old->instances[o];
        bool taken = false;
        for (int i = 0; i < gpu->count; i++)
            taken |= gpu->items[i].stay == instance->start + 1;
        for (int i = 0; !taken && i < gpu->count; i++) {
            struct solution_item *item = &gpu->items[i];
            if (item->stay || item->slot != instance->slot ||
                item->service != instance->service)
                continue;
            item->stay = instance->start + 1;
            if (can_place(problem, gpu))
                break;
            item->stay = 0;
        }
    }
    for (int i = 0; i < gpu->count; i++)
        stay += gpu->items[i].stay != 0;
    assert(stay <= gpu->count);
    return stay;
}

struct pair {
    int gpu, old_gpu, stay;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->stay != y->stay)
        return y->stay - x->stay;
    return x->gpu != y->gpu ? x->gpu - y->gpu : x->old_gpu - y->old_gpu;
}

/* The most that could stay: common labels, whatever their places. */
static int common_labels(const struct old_plan *old, int old_gpu,
                         const struct solution_gpu *gpu)
{
    assert(old_gpu >= 0 && old_gpu < old->gpu_count);
    bool used[MIG_INSTANCES_MAX] = {false};
    int common = 0;
    for (int o = old->first[old_gpu]; o < old->first[old_gpu + 1]; o++) {
        for (int i = 0; i < gpu->count; i++) {
            if (used[i] || gpu->items[i].slot != old->instances[o].slot ||
                gpu->items[i].service != old->instances[o].service)
                continue;
            used[i] = true;
            common++;
            break;
        }
    }
    assert(common <= gpu->count);
    return common;
}

static bool may_continue(const struct problem *problem, const struct old_plan *old, int old_gpu,
                         const struct solution_gpu *gpu)
{
    assert(gpu->kind >= 0 && (size_t)gpu->kind < problem->kinds.count);
    return old->kind[old_gpu] == gpu->kind && !problem->kinds.data[gpu->kind].gpu;
}

static void match_pairs(const struct problem *problem, const struct old_plan *old, bool *used,
                        struct solution *solution)
{
    VEC(struct pair) pairs = {0};
    for (size_t g = 0; g < solution->gpus.count; g++) {
        const struct solution_gpu *gpu = &solution->gpus.data[g];
        for (int o = 0; !gpu->reuse && o < old->gpu_count; o++) {
            if (used[o] || !may_continue(problem, old, o, gpu))
                continue;
            int common = common_labels(old, o, gpu);
            if (common > 0)
                vec_add(&pairs, ((struct pair){(int)g, o, common}));
        }
    }
    /* Greedy, the pairs that share most first: exact matching would gain little, as what stays
     * is decided by stay_items(), not by common labels alone. */
    if (pairs.count > 0)
        qsort(pairs.data, pairs.count, sizeof *pairs.data, compare_pairs);
    for (size_t p = 0; p < pairs.count; p++) {
        struct solution_gpu *gpu = &solution->gpus.data[pairs.data[p].gpu];
        if (gpu->reuse || used[pairs.data[p].old_gpu])
            continue;
        struct solution_gpu trial = *gpu;
        if (stay_items(problem, old, pairs.data[p].old_gpu, &trial) == 0)
            continue;
        trial.reuse = pairs.data[p].old_gpu + 1;
        used[pairs.data[p].old_gpu] = true;
        *gpu = trial;
    }
    vec_done(&pairs);
}

void change_match(const struct problem *problem, struct solution *solution)
{
    struct old_plan old;
    if (!problem->from)
        return;
    old_plan_init(&old, problem);
    bool *used = xcalloc((size_t)old.gpu_count + 1, sizeof *used);
    for (size_t g = 0; g < solution->gpus.count; g++) {
        struct solution_gpu *gpu = &solution->gpus.data[g];
        for (int o = 0; !gpu->reuse && o < old.gpu_count; o++)
            if (problem->kinds.data[gpu->kind].gpu && old.kind[o] == gpu->kind)
                gpu->reuse = o + 1; /* the same partly taken GPU */
        if (!gpu->reuse)
            continue;
        assert(gpu->reuse <= old.gpu_count);
        used[gpu->reuse - 1] = true;
        stay_items(problem, &old, gpu->reuse - 1, gpu);
    }
    match_pairs(problem, &old, used, solution);
    for (size_t g = 0; g < solution->gpus.count; g++) {
        struct solution_gpu *gpu = &solution->gpus.data[g];
        for (int o = 0; !gpu->reuse && o < old.gpu_count; o++) {
            if (used[o] || !may_continue(problem, &old, o, gpu))
                continue;
            gpu->reuse = o + 1;
            used[o] = true;
        }
    }
    free(used);
    old_plan_done(&old);
}

static void add_text_key(const struct plan *plan, size_t g, size_t i, struct str *key)
{
    assert(g < plan->gpus.count && i < plan->gpus.data[g].instances.count);
    const struct plan_gpu *gpu = &plan->gpus.data[g];
    const struct plan_instance *instance = &gpu->instances.data[i];
    str_clear(key);
    str_addf(key, "%s\n%d\n%d\n%s", gpu->id, instance->profile, instance->start,
             instance->service < 0 ? "" : plan->services.data[instance->service].name);
}

static void index_instances(const struct plan *plan, struct map *keys)
{
    struct str key = STR_EMPTY;
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++) {
            add_text_key(plan, g, i, &key);
            map_put(keys, key.bytes, NULL);
        }
    str_done(&key);
}

/* The serving instances of `plan` that `other` does not have in the same place. */
static json_t *list_others(const struct plan *plan, const struct map *other)
{
    json_t *list = json_array();
    struct str key = STR_EMPTY;
    for (size_t g = 0; g < plan->gpus.count; g++) {
        const struct plan_gpu *gpu = &plan->gpus.data[g];
        for (size_t i = 0; i < gpu->instances.count; i++) {
            const struct plan_instance *instance = &gpu->instances.data[i];
            add_text_key(plan, g, i, &key);
            if (instance->service < 0 || map_find(other, key.bytes) >= 0)
                continue;
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:i, s:s}", "gpu", gpu->id, "slice",
                                            gpu->board->profiles[instance->profile].name,
                                            "start", instance->start, "service",
                                            plan->services.data[instance->service].name));
        }
    }
    str_done(&key);
    return list;
}

static int count_serving(const struct plan *plan)
{
    int count = 0;
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++)
            count += plan->gpus.data[g].instances.data[i].service >= 0;
    return count;
}

json_t *change_to_json(const struct plan *from, const struct plan *to,
                       const struct solution *solution)
{
    assert(from && to && solution);
    struct map old_keys = {0}, new_keys = {0};
    index_instances(from, &old_keys);
    index_instances(to, &new_keys);
    json_t *left = list_others(from, &new_keys), *created = list_others(to, &old_keys);
    map_done(&old_keys);
    map_done(&new_keys);
    int moved = (int)json_array_size(left);
    int kept = count_serving(from) - moved;
    assert(kept >= 0);
    json_t *changes =
        json_pack("{s:i, s:i, s:i, s:o, s:o}", "kept", kept, "moved", moved, "created",
                  (int)json_array_size(created), "left", left, "new", created);
    if (solution->has_kept_bound)
        json_object_set_new(changes, "kept_bound", json_integer(solution->kept_bound));
    return changes;
}
