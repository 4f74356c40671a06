/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools by type, and playouts over them.
 */
#include "plan/rollout.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { POOL_MAX = 64, POOLS_MAX = 1 << 16, TYPE_TEXT = CANDIDATE_SERVICES_MAX * 4 + 1 };

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

/* What a service misses, in coarse steps: of its last GPU in mcts-levels steps, beyond that
 * by powers of two. 0: nothing. */
static int find_level(const struct arm *arm, double missing, int service)
{
    int levels = (int)arm->parameters->mcts_levels;
    double gpus = missing / arm->gpu_share[service];
    assert(arm->gpu_share[service] > 0);
    if (missing <= 0)
        return 0;
    return gpus < 1 ? 1 + (int)(gpus * levels) : 1 + levels + ilogb(gpus);
}

struct needy {
    int service, level;
};

/* The services on the highest levels, the highest first, in index order among equals. */
static int find_neediest(const struct arm *arm, const struct arm_state *state,
                         struct needy ret_needy[CANDIDATE_SERVICES_MAX])
{
    int count = 0, most = (int)arm->parameters->mcts_services;
    assert(most >= 1 && most <= CANDIDATE_SERVICES_MAX);
    for (int i = 0; i < arm->service_count; i++) {
        double missing = arm_missing(state, i);
        int level = missing > 0 ? find_level(arm, missing, i) : 0;
        if (level == 0 || (count == most && level <= ret_needy[count - 1].level))
            continue;
        int at = count < most ? count++ : count - 1;
        for (; at > 0 && ret_needy[at - 1].level < level; at--)
            ret_needy[at] = ret_needy[at - 1];
        ret_needy[at] = (struct needy){i, level};
    }
    return count;
}

/* The type as text: four letters for each service and level. */
static void write_type(const struct needy *needy, int count, char text[TYPE_TEXT])
{
    assert(count >= 0 && count <= CANDIDATE_SERVICES_MAX);
    char *at = text;
    for (int m = 0; m < count; m++) {
        /* 18 bits: of more services some share a type and thus a pool, which is_useful() allows
         * for. */
        unsigned service = (unsigned)needy[m].service;
        *at++ = (char)('0' + (service & 63));
        *at++ = (char)('0' + (service >> 6 & 63));
        *at++ = (char)('0' + (service >> 12 & 63));
        *at++ = (char)('0' + (needy[m].level & 63));
    }
    *at = '\0';
}

/* The configurations of a pool: the best labellings by its services, and the last-mile one. */
static struct rollout_pool *make_pool(const struct arm *arm, const struct arm_state *state,
                                      const struct needy *needy, int count)
{
    assert(count >= 1 && count <= CANDIDATE_SERVICES_MAX);
    struct candidate found[POOL_MAX + 1];
    int services[CANDIDATE_SERVICES_MAX] = {0};
    for (int m = 0; m < count; m++)
        services[m] = needy[m].service;
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
    assert(most >= 0 && most <= POOL_MAX + 1);
    struct rollout_pool *pool = xcalloc(1, sizeof *pool + (size_t)most * sizeof *pool->gpus);
    pool->count = most;
    for (int i = 0; i < most; i++)
        pool->gpus[i] = found[i].gpu;
    return pool;
}

static const struct rollout_pool *find_pool(const struct arm *arm, struct rollout_pools *pools,
                                            const struct arm_state *state)
{
    struct needy needy[CANDIDATE_SERVICES_MAX];
    char text[TYPE_TEXT];
    int count = find_neediest(arm, state, needy);
    assert(count > 0);
    write_type(needy, count, text);
    ptrdiff_t at = map_find(&pools->types, text);
    if (at >= 0)
        return pools->pools.data[at];
    if (pools->pools.count >= POOLS_MAX)
        rollout_pools_done(pools); /* begin anew: memory stays bounded */
    vec_add(&pools->pools, make_pool(arm, state, needy, count));
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
    assert(pool->count <= POOL_MAX + 1);
    *ret_gpu = mix.gpu;
    return mix.score > 0;
}

double rollout_play(const struct arm *arm, struct rollout_pools *pools, struct rng *rng,
                    struct arm_state *state, double most, struct arm_plan *plan)
{
    assert(pools && rng && plan);
    double cost = 0;
    while (!arm_is_complete(arm, state)) {
        struct solution_gpu gpu;
        if (cost > most || arm_is_late(arm) || !pick(arm, pools, rng, state, &gpu))
            return INFINITY;
        assert(gpu.count > 0);
        arm_apply(arm, state, &gpu);
        vec_add(&plan->gpus, gpu);
        cost += arm->problem->kinds.data[gpu.kind].price;
    }
    return cost <= most ? cost : INFINITY;
}
