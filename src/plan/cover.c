/* SPDX-License-Identifier: Apache-2.0
 *
 * Branch and bound over slot kinds sorted by price for rate. At kind j, counts go down from
 * the one that covers all that is left; the bound of a child is what it has spent plus the
 * rest at the next kind's ratio, which only rises as the count falls, so the first child
 * over the incumbent ends the loop. When the limit of nodes is hit, the least bound among
 * the children not looked at is still a proved lower bound.
 */
#include "plan/cover.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { NODES_MAX = 20000, POOL_NODES_MAX = 4000 };
static const double DEMAND_EPSILON = 1e-9; /* the contract's tolerance, relative to the rate */

void cover_init(struct cover *cover, const struct problem *problem, int service)
{
    const struct service *wanted = &problem->services->services.data[service];
    double unit_rps = wanted->rate_rps;
    *cover = (struct cover){.slot_count = problem->slot_count};
    cover->items = xcalloc((size_t)problem->slot_count + 1, sizeof *cover->items);
    if (problem->dropped[service])
        return;
    for (int s = 0; s < problem->slot_count; s++) {
        const struct problem_option *option = problem_option(problem, service, s);
        if (option->row >= 0)
            cover->items[cover->item_count++] =
                (struct cover_item){.slot = s, .rate = option->rate_rps / unit_rps};
    }
    cover->demand = problem->demand_rps[service] / unit_rps;
    cover->instances_min = problem->instances_min[service];
    cover->spread = wanted->spread != SPREAD_NONE;
    cover->fixed_largest = problem->fixed_largest_rps[service] / unit_rps;
}

void cover_done(struct cover *cover)
{
    free(cover->items);
    *cover = (struct cover){0};
}

bool cover_possible(const struct cover *cover)
{
    bool needs = cover->demand > DEMAND_EPSILON || cover->instances_min > 0 || cover->spread;
    return cover->item_count > 0 || !needs;
}

/* One search: the items that may be used, sorted by ratio, and where results go. */
struct search {
    int item_count;
    struct cover_item items[PROBLEM_SLOTS_MAX];
    int counts[PROBLEM_SLOTS_MAX]; /* parallel to items */
    double price_min;              /* cheapest single instance */
    double best;                   /* price to beat */
    double open_bound;             /* least bound of children left out */
    int nodes, nodes_max;
    int instances_min;
    double demand;
    void (*found)(struct search *search, double price);
    /* of the cheapest: */
    int best_counts[PROBLEM_SLOTS_MAX];
    int extra_at; /* item that makes up for missing instances, at the leaf at hand */
    int extra;
    /* of the pool: */
    const struct cover_pool_request *pool;
    int slot_count;
    int pool_count;
    double least, ceiling;
};

static void sort_items(struct search *search)
{
    struct cover_item *items = search->items;
    for (int i = 1; i < search->item_count; i++) {
        struct cover_item item = items[i];
        int j = i;
        for (; j > 0 && items[j - 1].ratio > item.ratio; j--)
            items[j] = items[j - 1];
        items[j] = item;
    }
    search->price_min = DBL_MAX;
    for (int i = 0; i < search->item_count; i++) {
        if (items[i].price < search->price_min) {
            search->price_min = items[i].price;
            search->extra_at = i;
        }
    }
}

/* Items no faster than rate_max, with their prices. */
static void load_items(struct search *search, const struct cover *cover, const double *prices,
                       double rate_max)
{
    search->item_count = 0;
    search->slot_count = cover->slot_count;
    memset(search->counts, 0, sizeof search->counts);
    for (int i = 0; i < cover->item_count; i++) {
        struct cover_item item = cover->items[i];
        if (item.rate > rate_max)
            continue;
        item.price = prices[item.slot];
        item.ratio = item.price / item.rate;
        search->items[search->item_count++] = item;
    }
    sort_items(search);
}

static void leaf(struct search *search, double price, int missing)
{
    search->extra = missing > 0 ? missing : 0;
    price += search->extra * search->price_min;
    if (price < search->best)
        search->found(search, price);
}

static void search_from(struct search *search, int item, double rest, int missing, double price)
{
    const struct cover_item *at = &search->items[item];
    assert(item <= search->item_count);
    search->nodes++;
    if (rest <= DEMAND_EPSILON) {
        leaf(search, price, missing);
        return;
    }
    if (item == search->item_count)
        return;
    double next_ratio = item + 1 < search->item_count ? at[1].ratio : INFINITY;
    int most = (int)fmin(ceil((rest - DEMAND_EPSILON) / at->rate), 1e9);
    for (int k = most; k >= 0; k--) {
        double left = rest - k * at->rate;
        double spent = price + k * at->price;
        double bound = left > DEMAND_EPSILON ? spent + (left - DEMAND_EPSILON) * next_ratio : spent;
        if (bound >= search->best && k < most)
            break;
        if (search->nodes > search->nodes_max) {
            if (bound < search->open_bound)
                search->open_bound = bound;
            if (k < most)
                break;
            continue;
        }
        double with_count = spent + (missing > k ? missing - k : 0) * search->price_min;
        if (bound >= search->best || with_count >= search->best)
            continue;
        search->counts[item] = k;
        search_from(search, item + 1, left, missing - k, spent);
    }
    search->counts[item] = 0;
}

static void found_cheapest(struct search *search, double price)
{
    search->best = price;
    memset(search->best_counts, 0, (size_t)search->slot_count * sizeof(int));
    for (int i = 0; i < search->item_count; i++)
        search->best_counts[search->items[i].slot] += search->counts[i];
    search->best_counts[search->items[search->extra_at].slot] += search->extra;
}

/* Runs the search for plain covers, or once for each possible largest kind. */
static void search_all(struct search *search, const struct cover *cover, const double *prices)
{
    search->instances_min = cover->instances_min;
    if (!cover->spread) {
        load_items(search, cover, prices, INFINITY);
        if (search->item_count > 0)
            search_from(search, 0, cover->demand, cover->instances_min, 0);
        return;
    }
    for (int m = 0; m < cover->item_count; m++) {
        double largest = cover->items[m].rate;
        load_items(search, cover, prices, largest);
        search->demand = cover->demand + fmax(largest, cover->fixed_largest);
        search_from(search, 0, search->demand, cover->instances_min, 0);
    }
}

double cover_cheapest(const struct cover *cover, const double *slot_prices, int *counts,
                      double *ret_price)
{
    struct search search = {.best = INFINITY,
                            .open_bound = INFINITY,
                            .nodes_max = NODES_MAX,
                            .found = found_cheapest};
    memset(counts, 0, (size_t)cover->slot_count * sizeof *counts);
    *ret_price = 0;
    if (!cover->spread && cover->demand <= DEMAND_EPSILON && cover->instances_min <= 0)
        return 0;
    if (cover->item_count == 0)
        return 0;
    search_all(&search, cover, slot_prices);
    assert(isfinite(search.best));
    memcpy(counts, search.best_counts, (size_t)cover->slot_count * sizeof *counts);
    *ret_price = search.best;
    return fmin(search.best, search.open_bound);
}

/* Whether every instance is needed, for the rate or for the number of instances. */
static bool is_minimal(const struct search *search, double demand)
{
    double total = 0, smallest = INFINITY;
    long instances = search->extra;
    for (int i = 0; i < search->item_count; i++) {
        total += search->counts[i] * search->items[i].rate;
        instances += search->counts[i];
        if (search->counts[i] > 0)
            smallest = fmin(smallest, search->items[i].rate);
    }
    return instances <= search->instances_min || total - smallest < demand - DEMAND_EPSILON;
}

static void found_pool(struct search *search, double price)
{
    const struct cover_pool_request *pool = search->pool;
    size_t width = (size_t)search->slot_count;
    int row[PROBLEM_SLOTS_MAX] = {0};
    if (!is_minimal(search, search->demand))
        return;
    for (int i = 0; i < search->item_count; i++)
        row[search->items[i].slot] += search->counts[i];
    row[search->items[search->extra_at].slot] += search->extra;
    for (int r = 0; r < search->pool_count; r++)
        if (memcmp(&pool->ret_rows[(size_t)r * width], row, width * sizeof *row) == 0)
            return;
    int at = search->pool_count < pool->capacity ? search->pool_count++ : pool->capacity - 1;
    for (; at > 0 && pool->ret_excess[at - 1] > price; at--) {
        pool->ret_excess[at] = pool->ret_excess[at - 1];
        memcpy(&pool->ret_rows[(size_t)at * width], &pool->ret_rows[(size_t)(at - 1) * width],
               width * sizeof *row);
    }
    pool->ret_excess[at] = price;
    memcpy(&pool->ret_rows[(size_t)at * width], row, width * sizeof *row);
    search->best = search->pool_count < pool->capacity ? search->ceiling
                                                       : pool->ret_excess[pool->capacity - 1];
}

int cover_enumerate(const struct cover *cover, const struct cover_pool_request *request)
{
    int counts[PROBLEM_SLOTS_MAX];
    double least;
    struct search search = {.open_bound = INFINITY,
                            .nodes_max = POOL_NODES_MAX,
                            .found = found_pool,
                            .pool = request,
                            .demand = cover->demand};
    assert(request->capacity > 0);
    cover_cheapest(cover, request->slot_prices, counts, &least);
    search.ceiling = least + request->slack;
    search.best = search.ceiling;
    if (cover->item_count > 0 &&
        (cover->spread || cover->demand > DEMAND_EPSILON || cover->instances_min > 0))
        search_all(&search, cover, request->slot_prices);
    bool has_cheapest = false;
    for (int r = 0; r < search.pool_count; r++) {
        has_cheapest |= memcmp(&request->ret_rows[(size_t)r * (size_t)cover->slot_count], counts,
                               (size_t)cover->slot_count * sizeof *counts) == 0;
        request->ret_excess[r] -= least;
    }
    if (!has_cheapest) { /* the search was cut before it, or there is nothing to choose */
        int at = search.pool_count < request->capacity ? search.pool_count++
                                                       : request->capacity - 1;
        memcpy(&request->ret_rows[(size_t)at * (size_t)cover->slot_count], counts,
               (size_t)cover->slot_count * sizeof *counts);
        request->ret_excess[at] = 0;
    }
    return search.pool_count;
}
