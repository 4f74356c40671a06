/* SPDX-License-Identifier: Apache-2.0
 *
 * The start is the rounded fractional plan: patterns rounded down, as far as cost and stock
 * go, and the covers that weigh most. combine.c then looks for the changes that end the
 * shortage; when it finds none, other covers that cost next to nothing more are drawn and
 * it looks again. Seeded: the same input gives the same plan.
 */
#include "plan/balance.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "plan/balance_state.h"

enum { EXPANSIONS = 1500 };
static const double COST_EPSILON = 1e-9;

static void balance_done(struct balance *balance)
{
    free(balance->x);
    free(balance->y);
    free(balance->spare);
    free(balance->weight);
    free(balance->stock_left);
}

bool balance_is_whole(const struct balance *balance)
{
    for (int s = 0; s < balance->slots; s++)
        if (balance->spare[s] < 0)
            return false;
    return true;
}

void balance_exchange(struct balance *balance, int service, const int *more, const int *less)
{
    assert(service >= 0 && service < balance->problem->service_count);
    for (int s = 0; s < balance->slots; s++) {
        balance->x[service * balance->slots + s] += more[s] - less[s];
        balance->spare[s] -= more[s] - less[s];
        assert(balance->x[service * balance->slots + s] >= 0);
    }
}

static void start_patterns(struct balance *balance, double cost_max)
{
    const struct problem *problem = balance->problem;
    balance->money_left = cost_max;
    for (size_t k = 0; k < problem->kinds.count; k++)
        balance->stock_left[k] = problem->kinds.data[k].stock == PROBLEM_UNLIMITED
                                     ? INT32_MAX
                                     : problem->kinds.data[k].stock;
    for (int p = 0; p < balance->patterns->count; p++) {
        double whole = floor(balance->dual->pattern_weight[p] + 1e-6);
        double price = balance->patterns->price[p];
        long *stock = &balance->stock_left[balance->patterns->kind[p]];
        whole = fmin(whole, (double)*stock);
        if (price > 0)
            whole = fmin(whole, fmax(0, floor(balance->money_left / price + COST_EPSILON)));
        balance->y[p] = (int)whole;
        assert(balance->y[p] >= 0 && balance->y[p] <= *stock);
        balance->money_left -= whole * price;
        *stock -= (long)whole;
        for (int s = 0; s < balance->slots; s++)
            balance->spare[s] += (long)whole * balance->patterns->slots[p][s];
    }
}

static void start_from(struct balance *balance, double cost_max)
{
    assert(balance->dual->start);
    const struct problem *problem = balance->problem;
    size_t cells = (size_t)problem->service_count * (size_t)balance->slots;
    memset(balance->spare, 0, (size_t)balance->slots * sizeof *balance->spare);
    start_patterns(balance, cost_max);
    memcpy(balance->x, balance->dual->start, cells * sizeof *balance->x);
    for (int i = 0; i < problem->service_count; i++)
        for (int s = 0; s < balance->slots; s++)
            balance->spare[s] -= balance->x[i * balance->slots + s];
}

/* Draws for about half of the services another cover of the pool, while their excess all
 * together stays within half of what cost_max leaves over the bound. */
static void redraw(struct balance *balance, double cost_max)
{
    const struct cover_pool *pool = balance->pool;
    int more[PROBLEM_SLOTS_MAX], less[PROBLEM_SLOTS_MAX];
    double slack = fmax(0, cost_max - balance->dual->bound) / 2;
    for (int i = 0; i < balance->problem->service_count; i++) {
        int count = pool->first[i + 1] - pool->first[i];
        if (count < 2 || rng_below(&balance->rng, 2) == 0)
            continue;
        int pick = pool->first[i] + (int)rng_below(&balance->rng, (uint64_t)count);
        assert(pick < pool->first[i + 1]);
        const int *row = &pool->counts[(size_t)pick * (size_t)balance->slots];
        const int *x = &balance->x[i * balance->slots];
        double excess = 0;
        for (int s = 0; s < balance->slots; s++) {
            more[s] = row[s] > x[s] ? row[s] - x[s] : 0;
            less[s] = x[s] > row[s] ? x[s] - row[s] : 0;
            excess += (more[s] - less[s]) * balance->dual->slot_price[s];
        }
        if (excess > slack)
            continue;
        slack -= fmax(excess, 0);
        balance_exchange(balance, i, more, less);
    }
}

static bool search(struct balance *balance, const struct balance_options *options)
{
    assert(options->tries >= 1);
    for (int try = 0; try < options->tries; try++) {
        if (options->stop && options->stop(options->context))
            return false;
        start_from(balance, options->cost_max);
        if (try > 0)
            redraw(balance, options->cost_max);
        if (balance_is_whole(balance))
            return true;
        if (balance->patterns->count > 0 && combine_search(balance, EXPANSIONS))
            return true;
    }
    return false;
}

bool balance_search(const struct problem *problem, const struct pattern_list *patterns,
                    const struct dual *dual, const struct cover_pool *pool,
                    const struct balance_options *options, struct aggregate *aggregate)
{
    assert(patterns->slot_count == problem->slot_count && !isnan(options->cost_max));
    size_t slots = (size_t)problem->slot_count, services = (size_t)problem->service_count;
    CLEANUP(balance_done)
    struct balance balance = {
        .problem = problem,
        .patterns = patterns,
        .dual = dual,
        .pool = pool,
        .rng = rng_seed(options->seed),
        .slots = problem->slot_count,
        .x = xcalloc(services * slots + 1, sizeof(int)),
        .y = xcalloc((size_t)patterns->count + 1, sizeof(int)),
        .spare = xcalloc(slots + 1, sizeof(long)),
        .weight = xcalloc(slots + 1, sizeof(double)),
        .stock_left = xcalloc(problem->kinds.count + 1, sizeof(long)),
    };
    double dearest = 0;
    for (size_t s = 0; s < slots; s++)
        dearest = fmax(dearest, dual->slot_price[s]);
    for (size_t s = 0; s < slots; s++) /* a free slot kind must not be short either */
        balance.weight[s] = fmax(dual->slot_price[s], dearest * 0.02 + 1e-12);
    if (!search(&balance, options))
        return false;
    assert(balance_is_whole(&balance));
    memcpy(aggregate->y, balance.y, (size_t)patterns->count * sizeof *balance.y);
    memcpy(aggregate->x, balance.x, services * slots * sizeof *balance.x);
    return true;
}
