/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulated annealing on the shortage, sum over slot kinds of weight x max(0, use - supply),
 * from the rounded fractional plan, in turn with a search for a combination of changes
 * that ends it (combine.c). Cost and stock are never exceeded. Seeded: the same input gives
 * the same plan.
 */
#include "plan/balance.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "plan/balance_state.h"

enum { ANNEAL_STEPS = 1 << 15, EXPANSIONS = 1500 };
static const double COST_EPSILON = 1e-9;
static const double RATE_EPSILON = 1e-9; /* the contract's tolerance, of the full rate */

static void balance_done(struct balance *balance)
{
    free(balance->x);
    free(balance->surplus);
    free(balance->instances);
    free(balance->y);
    free(balance->spare);
    free(balance->weight);
    free(balance->stock_left);
}

static double shortage_of(const struct balance *balance)
{
    double shortage = 0;
    for (int s = 0; s < balance->slots; s++)
        if (balance->spare[s] < 0)
            shortage -= balance->weight[s] * (double)balance->spare[s];
    return shortage;
}

bool balance_is_whole(const struct balance *balance)
{
    for (int s = 0; s < balance->slots; s++)
        if (balance->spare[s] < 0)
            return false;
    return true;
}

static double rate_of(const struct balance *balance, int service, int slot)
{
    return problem_option(balance->problem, service, slot)->rate_rps /
           balance->problem->services->services.data[service].rate_rps;
}

bool balance_allows(const struct balance *balance, int service, const int *more,
                    const int *less)
{
    const struct problem *problem = balance->problem;
    const int *x = &balance->x[service * balance->slots];
    double surplus = balance->surplus[service];
    int instances = balance->instances[service], changed[PROBLEM_SLOTS_MAX];
    for (int s = 0; s < balance->slots; s++) {
        changed[s] = x[s] + more[s] - less[s];
        if (changed[s] < 0 || (more[s] > 0 && problem_option(problem, service, s)->row < 0))
            return false;
        if (more[s] != less[s])
            surplus += (more[s] - less[s]) * rate_of(balance, service, s);
        instances += more[s] - less[s];
    }
    if (problem->services->services.data[service].spread != SPREAD_NONE)
        return aggregate_covers(problem, service, changed);
    return surplus >= -RATE_EPSILON && instances >= problem->instances_min[service];
}

void balance_exchange(struct balance *balance, int service, const int *more, const int *less)
{
    for (int s = 0; s < balance->slots; s++) {
        int delta = more[s] - less[s];
        if (delta == 0)
            continue;
        balance->x[service * balance->slots + s] += delta;
        balance->surplus[service] += delta * rate_of(balance, service, s);
        balance->instances[service] += delta;
        balance->spare[s] -= delta;
    }
    balance->shortage = shortage_of(balance);
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
            whole = fmin(whole, floor(balance->money_left / price + COST_EPSILON));
        balance->y[p] = (int)whole;
        balance->money_left -= whole * price;
        *stock -= (long)whole;
        for (int s = 0; s < balance->slots; s++)
            balance->spare[s] += (long)whole * balance->patterns->slots[p][s];
    }
}

/* Patterns rounded down as far as cost and stock go, and the bound's covers. */
static void start_from(struct balance *balance, double cost_max)
{
    const struct problem *problem = balance->problem;
    size_t cells = (size_t)problem->service_count * (size_t)balance->slots;
    start_patterns(balance, cost_max);
    memcpy(balance->x, balance->dual->start, cells * sizeof *balance->x);
    for (int i = 0; i < problem->service_count; i++) {
        balance->surplus[i] =
            -problem->demand_rps[i] / problem->services->services.data[i].rate_rps;
        for (int s = 0; s < balance->slots; s++) {
            int count = balance->x[i * balance->slots + s];
            balance->surplus[i] += count * rate_of(balance, i, s);
            balance->instances[i] += count;
            balance->spare[s] -= count;
        }
    }
    balance->shortage = shortage_of(balance);
}

/* Change of the shortage when `more` is added to and `less` taken from the spare slots. */
static double change_of(const struct balance *balance, const int *more, const int *less)
{
    double change = 0;
    for (int s = 0; s < balance->slots; s++) {
        long delta = (more ? more[s] : 0) - (less ? less[s] : 0);
        if (delta == 0)
            continue;
        long before = balance->spare[s], after = before + delta;
        change += balance->weight[s] *
                  (double)((after < 0 ? -after : 0) - (before < 0 ? -before : 0));
    }
    return change;
}

static bool accepts(struct balance *balance, double change)
{
    if (change <= 0)
        return true;
    if (change > 20 * balance->temperature)
        return false;
    return rng_unit(&balance->rng) < exp(-change / balance->temperature);
}

/* Some instances of one slot kind of a service for as many of another as are needed. */
static void try_exchange(struct balance *balance)
{
    const struct problem *problem = balance->problem;
    int more[PROBLEM_SLOTS_MAX] = {0}, less[PROBLEM_SLOTS_MAX] = {0};
    int i = (int)rng_below(&balance->rng, (uint64_t)problem->service_count);
    int from = (int)rng_below(&balance->rng, (uint64_t)balance->slots);
    int to = (int)rng_below(&balance->rng, (uint64_t)balance->slots);
    int have = balance->x[i * balance->slots + from];
    if (have == 0 || problem->dropped[i] || problem_option(problem, i, to)->row < 0)
        return;
    less[from] = 1 + (int)rng_below(&balance->rng, (uint64_t)(have < 3 ? have : 3));
    if (to != from) {
        double missing = less[from] * rate_of(balance, i, from) - balance->surplus[i];
        double needed = ceil((missing - RATE_EPSILON) / rate_of(balance, i, to));
        if (needed > 64)
            return;
        more[to] = needed > 0 ? (int)needed : 0;
    }
    double change = change_of(balance, less, more);
    if (accepts(balance, change) && balance_allows(balance, i, more, less))
        balance_exchange(balance, i, more, less);
}

/* One GPU more of a pattern, one less, or one in place of another. */
static void try_pattern(struct balance *balance)
{
    int count = balance->patterns->count;
    int more = (int)rng_below(&balance->rng, (uint64_t)count + 1) - 1;
    int less = (int)rng_below(&balance->rng, (uint64_t)count + 1) - 1;
    if (more == less || (less >= 0 && balance->y[less] == 0))
        return;
    double money = (more < 0 ? 0 : balance->patterns->price[more]) -
                   (less < 0 ? 0 : balance->patterns->price[less]);
    int more_kind = more < 0 ? -1 : balance->patterns->kind[more];
    int less_kind = less < 0 ? -1 : balance->patterns->kind[less];
    if (money > balance->money_left + COST_EPSILON ||
        (more >= 0 && more_kind != less_kind && balance->stock_left[more_kind] <= 0))
        return;
    const int *gained = more < 0 ? NULL : balance->patterns->slots[more];
    const int *lost = less < 0 ? NULL : balance->patterns->slots[less];
    double change = change_of(balance, gained, lost);
    if (!accepts(balance, change))
        return;
    for (int s = 0; s < balance->slots; s++)
        balance->spare[s] += (gained ? gained[s] : 0) - (lost ? lost[s] : 0);
    balance->shortage += change;
    balance->money_left -= money;
    if (more >= 0) {
        balance->y[more]++;
        balance->stock_left[more_kind]--;
    }
    if (less >= 0) {
        balance->y[less]--;
        balance->stock_left[less_kind]++;
    }
}

/* Cools from about a slot's price down to a hundredth of it. */
static bool anneal(struct balance *balance, double heat)
{
    double mean = 0;
    for (int s = 0; s < balance->slots; s++)
        mean += balance->weight[s] / balance->slots;
    for (long step = 0; step < ANNEAL_STEPS; step++) {
        if (step % 64 == 0)
            balance->temperature = mean * heat * pow(0.01, (double)step / ANNEAL_STEPS);
        if (step % 4 == 0)
            try_pattern(balance);
        else
            try_exchange(balance);
        if (balance->shortage < 1e-9 * (mean + 1e-300) && balance_is_whole(balance))
            return true;
    }
    return false;
}

static bool search(struct balance *balance, const struct balance_options *options)
{
    if (balance_is_whole(balance))
        return true;
    if (balance->patterns->count == 0)
        return false;
    for (int try = 0; try < options->tries; try++) {
        if (options->stop && options->stop(options->context))
            return false;
        if (try > 0 && anneal(balance, try % 2 ? 0.3 : 0.6))
            return true;
        if (combine_search(balance, EXPANSIONS))
            return true;
    }
    return false;
}

bool balance_search(const struct problem *problem, const struct pattern_list *patterns,
                    const struct dual *dual, const struct cover_pool *pool,
                    const struct balance_options *options, struct aggregate *aggregate)
{
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
        .surplus = xcalloc(services + 1, sizeof(double)),
        .instances = xcalloc(services + 1, sizeof(int)),
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
    start_from(&balance, options->cost_max);
    if (!search(&balance, options))
        return false;
    memcpy(aggregate->y, balance.y, (size_t)patterns->count * sizeof *balance.y);
    memcpy(aggregate->x, balance.x, services * slots * sizeof *balance.x);
    return true;
}
