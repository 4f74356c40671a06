/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools by type, and playouts over them.
 */
#include "plan/rollout.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOL_MAX = 64, POOLS_MAX = 1 << 16, TYPE_TEXT = CANDIDATE_SERVICES_MAX * 16 };

struct rollout_pool {
    int count;
    struct solution_gpu gpus[];
};

void rollout_pools_done(struct rollout_pools *pools)
{
    for (size_t i = 0; i < pools->pools.count; i++)
        free(pools->pools.data[i]);
    vec_done(&pools->pools);
    map_done(&pools->types);
    *pools = (struct rollout_pools){0};
}

/* The services that miss the most GPUs, the most first. */
static int find_neediest(const struct arm *arm, const struct arm_state *state,
                         int ret_services[CANDIDATE_SERVICES_MAX])
{
    double gpus[CANDIDATE_SERVICES_MAX];
    int count = 0, most = (int)arm->parameters->mcts_services;
    for (int i = 0; i < arm->service_count; i++) {
        double missing = arm_missing(state, i);
        if (missing <= 0)
            continue;
        double need = arm->gpu_share[i] > 0 ? missing / arm->gpu_share[i] : INFINITY;
        if (count == most && need <= gpus[count - 1])
            continue;
        int at = count < most ? count++ : count - 1;
        for (; at > 0 && gpus[at - 1] < need; at--) {
            gpus[at] = gpus[at - 1];
            ret_services[at] = ret_services[at - 1];
        }
        gpus[at] = need;
        ret_services[at] = i;
    }
    return count;
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The text of a type; the services are put in rising order. */
static void write_type(const struct arm *arm, const struct arm_state *state, int *services,
                       int count, char text[TYPE_TEXT])
{
    int levels = (int)arm->parameters->mcts_levels, used = 0;
    qsort(services, (size_t)count, sizeof *services, compare_ints);
    for (int m = 0; m < count; m++) {
        double gpus = arm_missing(state, services[m]) / arm->gpu_share[services[m]];
        int level = gpus >= 1 ? levels : (int)(gpus * levels);
        used += snprintf(text + used, (size_t)(TYPE_TEXT - used), "%x.%x ",
                         (unsigned)services[m], (unsigned)level);
    }
    assert(used < TYPE_TEXT);
}

/* The configurations of a pool: the best labellings by its services, and the last-mile one. */
static struct rollout_pool *make_pool(const struct arm *arm, const struct arm_state *state,
                                      const int *services, int count)
{
    struct candidate found[POOL_MAX + 1];
    int most = (int)arm->parameters->mcts_children;
    most =
        candidates_top(arm, state, services, count, found, most < POOL_MAX ? most : POOL_MAX);
    for (int m = 0; m < count; m++)
        if (arm_is_almost(arm, services[m], arm_missing(state, services[m]))) {
            struct candidate mix = candidates_mix(arm, state, MIG_INSTANCES_MAX);
            if (mix.score > 0)
                found[most++] = mix;
            break;
        }
    struct rollout_pool *pool = xcalloc(1, sizeof *pool + (size_t)most * sizeof *pool->gpus);
    pool->count = most;
    for (int i = 0; i < most; i++)
        pool->gpus[i] = found[i].gpu;
    return pool;
}

static const struct rollout_pool *find_pool(const struct arm *arm, struct rollout_pools *pools,
                                            const struct arm_state *state)
{
    int services[CANDIDATE_SERVICES_MAX];
    char text[TYPE_TEXT];
    int count = find_neediest(arm, state, services);
    assert(count > 0);
    write_type(arm, state, services, count, text);
    ptrdiff_t at = map_find(&pools->types, text);
    if (at >= 0)
        return pools->pools.data[at];
    if (pools->pools.count >= POOLS_MAX)
        rollout_pools_done(pools); /* begin anew: memory stays bounded */
    vec_add(&pools->pools, make_pool(arm, state, services, count));
    map_put(&pools->types, text, pools);
    return pools->pools.data[pools->pools.count - 1];
}

/* Whether a remembered GPU can still be had and gives something that is missing: a pool
 * made for one state may be met again in another of its type. */
static bool is_useful(const struct arm *arm, const struct arm_state *state,
                      const struct solution_gpu *gpu)
{
    if (!arm_has_stock(arm, state, gpu->kind))
        return false;
    for (int k = 0; k < gpu->count; k++)
        if (arm_missing(state, gpu->items[k].service) > 0)
            return true;
    return false;
}

/* A random useful member of the state's pool, or the best configuration there is now. */
static bool pick(const struct arm *arm, struct rollout_pools *pools, struct rng *rng,
                 const struct arm_state *state, struct solution_gpu *ret_gpu)
{
    const struct rollout_pool *pool = find_pool(arm, pools, state);
    int useful[POOL_MAX + 1], count = 0;
    for (int i = 0; i < pool->count; i++)
        if (is_useful(arm, state, &pool->gpus[i]))
            useful[count++] = i;
    if (count > 0) {
        *ret_gpu = pool->gpus[useful[rng_below(rng, (uint64_t)count)]];
        return true;
    }
    struct candidate mix = candidates_mix(arm, state, MIG_INSTANCES_MAX);
    *ret_gpu = mix.gpu;
    return mix.score > 0;
}

double rollout_play(const struct arm *arm, struct rollout_pools *pools, struct rng *rng,
                    struct arm_state *state, double most, struct arm_plan *plan)
{
    double cost = 0;
    while (!arm_is_complete(arm, state)) {
        struct solution_gpu gpu;
        if (cost > most || !pick(arm, pools, rng, state, &gpu))
            return INFINITY;
        arm_apply(arm, state, &gpu);
        vec_add(&plan->gpus, gpu);
        cost += arm->problem->kinds.data[gpu.kind].price;
    }
    return cost <= most ? cost : INFINITY;
}
