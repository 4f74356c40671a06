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

enum { NODES_MAX = 20000 };
static const double DEMAND_EPSILON = 1e-9; /* the contract's tolerance, relative to the rate */

void cover_init(struct cover *cover, const struct problem *problem, int service)
{
    assert(service >= 0 && service < problem->service_count);
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
    cover->margin = problem->fixed_largest_rps[service] / unit_rps;
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
    int slot_count;
    int best_counts[PROBLEM_SLOTS_MAX]; /* by slot kind */
    int extra_at; /* item that makes up for missing instances, at the leaf at hand */
    int extra;
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
        assert(i == 0 || items[i - 1].ratio <= items[i].ratio);
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
    assert(cover->item_count <= PROBLEM_SLOTS_MAX);
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

static void found_cheapest(struct search *search, double price)
{
    assert(price < search->best && search->extra >= 0);
    search->best = price;
    memset(search->best_counts, 0, (size_t)search->slot_count * sizeof(int));
    for (int i = 0; i < search->item_count; i++)
        search->best_counts[search->items[i].slot] += search->counts[i];
    search->best_counts[search->items[search->extra_at].slot] += search->extra;
}

static void leaf(struct search *search, double price, int missing)
{
    search->extra = missing > 0 ? missing : 0;
    /* Instances that are only there for the count are of the cheapest kind. */
    price += search->extra * search->price_min;
    if (price < search->best)
        found_cheapest(search, price);
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
        double bound =
            left > DEMAND_EPSILON ? spent + (left - DEMAND_EPSILON) * next_ratio : spent;
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

/* Runs the search for plain covers, or once for each possible largest kind. */
static void search_all(struct search *search, const struct cover *cover, const double *prices)
{
    if (!cover->spread) {
        load_items(search, cover, prices, INFINITY);
        if (search->item_count > 0)
            search_from(search, 0, cover->demand, cover->instances_min, 0);
        return;
    }
    for (int m = 0; m < cover->item_count; m++) {
        double largest = cover->items[m].rate;
        load_items(search, cover, prices, largest);
        double demand = cover->demand + fmax(largest, cover->margin);
        search_from(search, 0, demand, cover->instances_min, 0);
    }
}

double cover_cheapest(const struct cover *cover, const double *slot_prices, int *counts,
                      double *ret_price)
{
    assert(slot_prices && counts && ret_price);
    struct search search = {.best = INFINITY, .open_bound = INFINITY, .nodes_max = NODES_MAX};
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
    /* What was left out at the limit of nodes may hold a cheaper cover, but none below
     * open_bound. */
    return fmin(search.best, search.open_bound);
}

/* Enumeration walks the same tree with a ceiling that stays. */
struct listing {
    const struct search *search; /* items */
    const struct cover *cover;
    int counts[PROBLEM_SLOTS_MAX];
    double demand, ceiling;
    int instances_min;
    int nodes;
    struct cover_list *list;
    bool cut;
};

/* Whether every instance is needed, for the rate or for the number of instances. */
static bool is_minimal(const struct listing *listing)
{
    double total = 0, smallest = INFINITY;
    long instances = 0;
    for (int i = 0; i < listing->search->item_count; i++) {
        total += listing->counts[i] * listing->search->items[i].rate;
        instances += listing->counts[i];
        if (listing->counts[i] > 0)
            smallest = fmin(smallest, listing->search->items[i].rate);
    }
    return instances <= listing->instances_min ||
           total - smallest < listing->demand - DEMAND_EPSILON;
}

static void list_add(struct listing *listing, double price)
{
    assert(listing->list->count <= listing->list->capacity);
    struct cover_list *list = listing->list;
    size_t width = (size_t)listing->cover->slot_count;
    if (!is_minimal(listing))
        return;
    if (list->count == list->capacity) {
        listing->cut = true;
        return;
    }
    int *row = &list->rows[(size_t)list->count * width];
    memset(row, 0, width * sizeof *row);
    for (int i = 0; i < listing->search->item_count; i++)
        row[listing->search->items[i].slot] = listing->counts[i];
    list->price[list->count++] = price;
}

static void list_from(struct listing *listing, int item, double rest, int missing, double price)
{
    assert(item <= listing->search->item_count);
    const struct search *search = listing->search;
    const struct cover_item *at = &search->items[item];
    listing->nodes++;
    if (rest <= DEMAND_EPSILON && missing <= 0) {
        list_add(listing, price);
        return;
    }
    if (item == search->item_count || listing->cut)
        return;
    double next_ratio = item + 1 < search->item_count ? at[1].ratio : INFINITY;
    double needed = fmax(ceil((rest - DEMAND_EPSILON) / at->rate), missing);
    int most = (int)fmin(fmax(needed, 0), 1e9);
    for (int k = most; k >= 0 && !listing->cut; k--) {
        double left = rest - k * at->rate, spent = price + k * at->price;
        double bound =
            left > DEMAND_EPSILON ? spent + (left - DEMAND_EPSILON) * next_ratio : spent;
        listing->cut |= listing->nodes > listing->list->nodes_max;
        if (bound > listing->ceiling && k < most && missing <= 0)
            break;
        if (bound > listing->ceiling)
            continue;
        listing->counts[item] = k;
        list_from(listing, item + 1, left, missing - k, spent);
    }
    listing->counts[item] = 0;
}

bool cover_enumerate(const struct cover *cover, const double *slot_prices, double ceiling,
                     struct cover_list *list)
{
    assert(list->rows && list->price && list->capacity > 0);
    struct search search = {0};
    struct listing listing = {.search = &search,
                              .cover = cover,
                              .demand = cover->demand,
                              .ceiling = ceiling,
                              .instances_min = cover->instances_min,
                              .list = list};
    list->count = 0;
    for (int m = 0; m < (cover->spread ? cover->item_count : 1); m++) {
        double largest = cover->spread ? cover->items[m].rate : INFINITY;
        load_items(&search, cover, slot_prices, largest);
        if (cover->spread)
            listing.demand = cover->demand + fmax(largest, cover->margin);
        list_from(&listing, 0, listing.demand, cover->instances_min, 0);
    }
    return !listing.cut;
}
