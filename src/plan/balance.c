/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulated annealing on the shortage, sum over slot kinds of weight x max(0, use - supply),
 * from the rounded fractional plan. Cost and stock are never exceeded. One step costs a
 * handful of additions. Seeded: the same input gives the same plan.
 */
#include "plan/balance.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"

enum { STOP_EVERY = 8192 };
static const double COST_EPSILON = 1e-9;

void cover_pool_init(struct cover_pool *pool, const struct problem *problem,
                     const struct cover *covers, const struct dual *dual, double slack,
                     int capacity)
{
    size_t slots = (size_t)problem->slot_count, room = (size_t)capacity;
    int *rows = xcalloc(room * slots + 1, sizeof *rows);
    double *excess = xcalloc(room + 1, sizeof *excess);
    VEC(int) counts = {0};
    VEC(double) all_excess = {0};
    *pool = (struct cover_pool){.slot_count = problem->slot_count};
    pool->first = xcalloc((size_t)problem->service_count + 1, sizeof *pool->first);
    for (int i = 0; i < problem->service_count; i++) {
        const int *start = &dual->start[(size_t)i * slots];
        struct cover_pool_request request = {.slot_prices = dual->slot_price,
                                             .slack = slack,
                                             .capacity = capacity,
                                             .ret_rows = rows,
                                             .ret_excess = excess};
        int found = cover_enumerate(&covers[i], &request);
        for (int r = -1; r < found; r++) {
            const int *row = r < 0 ? start : &rows[(size_t)r * slots];
            if (r >= 0 && memcmp(row, start, slots * sizeof *row) == 0)
                continue;
            for (size_t s = 0; s < slots; s++)
                vec_add(&counts, row[s]);
            vec_add(&all_excess, r < 0 ? 0 : excess[r]);
        }
        pool->first[i + 1] = (int)all_excess.count;
    }
    free(rows);
    free(excess);
    pool->counts = counts.data;
    pool->excess = all_excess.data;
}

void cover_pool_done(struct cover_pool *pool)
{
    free(pool->first);
    free(pool->counts);
    free(pool->excess);
    *pool = (struct cover_pool){0};
}

struct balance {
    const struct problem *problem;
    const struct pattern_list *patterns;
    const struct cover_pool *pool;
    struct rng rng;
    int slots;
    long *spare;        /* supply less use of each slot kind */
    double *weight;     /* of a shortage of one */
    int *chosen;        /* cover of each service, position in the pool */
    int *y;             /* GPUs of each pattern */
    long *stock_left;   /* per kind */
    double money_left;
    double shortage;
    double temperature;
    int *movable;       /* services with a choice of covers */
    int movable_count;
};

static void balance_done(struct balance *balance)
{
    free(balance->spare);
    free(balance->weight);
    free(balance->chosen);
    free(balance->y);
    free(balance->stock_left);
    free(balance->movable);
}

static double shortage_of(const struct balance *balance)
{
    double shortage = 0;
    for (int s = 0; s < balance->slots; s++)
        if (balance->spare[s] < 0)
            shortage -= balance->weight[s] * (double)balance->spare[s];
    return shortage;
}

/* Patterns rounded down, as far as cost and stock go; the first cover for every service. */
static void start_from(struct balance *balance, const struct dual *dual, double cost_max)
{
    const struct problem *problem = balance->problem;
    balance->money_left = cost_max;
    for (size_t k = 0; k < problem->kinds.count; k++)
        balance->stock_left[k] = problem->kinds.data[k].stock == PROBLEM_UNLIMITED
                                     ? INT32_MAX
                                     : problem->kinds.data[k].stock;
    for (int p = 0; p < balance->patterns->count; p++) {
        double whole = floor(dual->pattern_weight[p] + 1e-6), price = balance->patterns->price[p];
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
    for (int i = 0; i < problem->service_count; i++) {
        int first = balance->pool->first[i];
        balance->chosen[i] = first;
        if (balance->pool->first[i + 1] > first + 1)
            balance->movable[balance->movable_count++] = i;
        for (int s = 0; s < balance->slots; s++)
            balance->spare[s] -= balance->pool->counts[first * balance->slots + s];
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
        change += balance->weight[s] * (double)((after < 0 ? -after : 0) - (before < 0 ? -before : 0));
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

static void apply(struct balance *balance, const int *more, const int *less, double change)
{
    for (int s = 0; s < balance->slots; s++)
        balance->spare[s] += (more ? more[s] : 0) - (less ? less[s] : 0);
    balance->shortage += change;
}

static void try_cover(struct balance *balance)
{
    if (balance->movable_count == 0)
        return;
    int i = balance->movable[rng_below(&balance->rng, (uint64_t)balance->movable_count)];
    int first = balance->pool->first[i], count = balance->pool->first[i + 1] - first;
    int other = first + (int)rng_below(&balance->rng, (uint64_t)count);
    if (other == balance->chosen[i])
        return;
    const int *old = &balance->pool->counts[balance->chosen[i] * balance->slots];
    const int *new = &balance->pool->counts[other * balance->slots];
    double change = change_of(balance, old, new);
    if (!accepts(balance, change))
        return;
    apply(balance, old, new, change);
    balance->chosen[i] = other;
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
    if (money > balance->money_left + COST_EPSILON)
        return;
    int more_kind = more < 0 ? -1 : balance->patterns->kind[more];
    int less_kind = less < 0 ? -1 : balance->patterns->kind[less];
    if (more >= 0 && more_kind != less_kind && balance->stock_left[more_kind] <= 0)
        return;
    const int *gained = more < 0 ? NULL : balance->patterns->slots[more];
    const int *lost = less < 0 ? NULL : balance->patterns->slots[less];
    double change = change_of(balance, gained, lost);
    if (!accepts(balance, change))
        return;
    apply(balance, gained, lost, change);
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

static bool is_balanced(const struct balance *balance)
{
    for (int s = 0; s < balance->slots; s++)
        if (balance->spare[s] < 0)
            return false;
    return true;
}

/* Cools from about a slot's price down to a hundredth of it, again and again. */
static bool anneal(struct balance *balance, const struct balance_options *options)
{
    double mean = 0;
    for (int s = 0; s < balance->slots; s++)
        mean += balance->weight[s] / balance->slots;
    const long cycle = options->steps / 4 + 1;
    for (long step = 0; step < options->steps; step++) {
        if (step % STOP_EVERY == 0 && options->stop && options->stop(options->context))
            return false;
        if (step % 64 == 0) {
            double cooled = (double)(step % cycle) / (double)cycle;
            balance->temperature = mean * 0.5 * pow(0.005, cooled);
        }
        if (step % 4 == 0)
            try_pattern(balance);
        else
            try_cover(balance);
        if (balance->shortage < 1e-9 * (mean + 1e-300) && is_balanced(balance))
            return true;
    }
    return false;
}

static void write_aggregate(const struct balance *balance, struct aggregate *aggregate)
{
    size_t slots = (size_t)balance->slots;
    memcpy(aggregate->y, balance->y, (size_t)balance->patterns->count * sizeof *balance->y);
    for (int i = 0; i < balance->problem->service_count; i++)
        memcpy(&aggregate->x[(size_t)i * slots],
               &balance->pool->counts[(size_t)balance->chosen[i] * slots],
               slots * sizeof *aggregate->x);
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
        .pool = pool,
        .rng = rng_seed(options->seed),
        .slots = problem->slot_count,
        .spare = xcalloc(slots + 1, sizeof(long)),
        .weight = xcalloc(slots + 1, sizeof(double)),
        .chosen = xcalloc(services + 1, sizeof(int)),
        .y = xcalloc((size_t)patterns->count + 1, sizeof(int)),
        .stock_left = xcalloc(problem->kinds.count + 1, sizeof(long)),
        .movable = xcalloc(services + 1, sizeof(int)),
    };
    double dearest = 0;
    for (size_t s = 0; s < slots; s++)
        dearest = fmax(dearest, dual->slot_price[s]);
    for (size_t s = 0; s < slots; s++) /* a free slot kind must not be short either */
        balance.weight[s] = fmax(dual->slot_price[s], dearest * 0.02 + 1e-12);
    start_from(&balance, dual, options->cost_max);
    if (!is_balanced(&balance) && (patterns->count == 0 || !anneal(&balance, options)))
        return false;
    write_aggregate(&balance, aggregate);
    return true;
}
