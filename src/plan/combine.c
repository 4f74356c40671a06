/* SPDX-License-Identifier: Apache-2.0
 *
 * Best-first search for a combination of changes. All that matters of a state is its spare
 * vector, and all that matters of a change is what it adds to it; thousands of services
 * have only some hundred different changes. States with the same vector are one state.
 *
 * The worth of the spare vector at the bound's prices, W, is cost_max less the bound less
 * the excess of the covers and patterns chosen. A state without shortage has W >= 0, and no
 * change from a cheapest cover raises W: states with W below zero are not followed.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "plan/balance_state.h"

enum {
    CHANGES_MAX = 1500,
    CARRIERS_MAX = 8,
    NODES_MAX = 120000,
    DEPTH_MAX = 24,
    TABLE_SIZE = 1 << 18,
    DIMENSIONS_MAX = PROBLEM_SLOTS_MAX + 2
};

/* One kind of change: added to the spare slots; the services that can make it, or the
 * patterns of one GPU that it adds and takes away. */
struct change {
    int more, less; /* patterns, -1: none; both -1: a change of cover */
    double money;
    double excess; /* by which it lowers the worth of the spare vector */
    int carrier_count;
    int carriers[CARRIERS_MAX]; /* services that can make it */
};

struct node {
    int parent, change, depth;
    double shortage, worth, money;
};

struct combine {
    struct balance *balance;
    const struct dual *dual;
    int slots;
    VEC(struct change) changes;
    VEC(int) deltas; /* rows of slots, parallel to changes */
    VEC(struct node) nodes;
    VEC(int) spares; /* rows of slots, parallel to nodes */
    VEC(int) heap;   /* node indices, least shortage first */
    int *table;      /* index + 1 of the node with a vector */
};

static void combine_done(struct combine *combine)
{
    vec_done(&combine->changes);
    vec_done(&combine->deltas);
    vec_done(&combine->nodes);
    vec_done(&combine->spares);
    vec_done(&combine->heap);
    free(combine->table);
}

static const int *delta_of(const struct combine *combine, int change)
{
    assert(change >= 0 && (size_t)change < combine->changes.count);
    return &combine->deltas.data[(size_t)change * (size_t)combine->slots];
}

static const int *spare_of(const struct combine *combine, int node)
{
    assert(node >= 0 && (size_t)node < combine->nodes.count);
    return &combine->spares.data[(size_t)node * (size_t)combine->slots];
}

static uint64_t hash_row(const int *row, int count)
{
    /* FNV-1a over whole counts instead of bytes; the last step brings high bits down, as tables
     * take the low ones. */
    uint64_t hash = 1469598103934665603ULL;
    for (int s = 0; s < count; s++)
        hash = (hash ^ (uint32_t)row[s]) * 1099511628211ULL;
    return hash ^ hash >> 29;
}

/* ---- the different changes ---- */

static struct change *find_change(struct combine *combine, const int *delta, int *table,
                                  size_t table_size)
{
    assert(table_size > CHANGES_MAX && (table_size & (table_size - 1)) == 0);
    size_t width = (size_t)combine->slots;
    size_t at = hash_row(delta, combine->slots) & (table_size - 1);
    for (; table[at]; at = (at + 1) & (table_size - 1)) {
        int index = table[at] - 1;
        if (combine->changes.data[index].more < 0 && combine->changes.data[index].less < 0 &&
            memcmp(delta_of(combine, index), delta, width * sizeof *delta) == 0)
            return &combine->changes.data[index];
    }
    if (combine->changes.count >= CHANGES_MAX)
        return NULL;
    for (size_t s = 0; s < width; s++)
        vec_add(&combine->deltas, delta[s]);
    vec_add(&combine->changes, ((struct change){.more = -1, .less = -1}));
    table[at] = (int)combine->changes.count;
    return &combine->changes.data[combine->changes.count - 1];
}

static double worth_of(const struct combine *combine, const int *delta)
{
    double worth = 0;
    for (int s = 0; s < combine->slots; s++)
        worth += delta[s] * combine->dual->slot_price[s];
    return worth;
}

/* Changes to all covers of the pool, services from a random one on, until there are enough:
 * first those of little excess. */
static void add_cover_changes(struct combine *combine, double slack)
{
    struct balance *balance = combine->balance;
    const struct cover_pool *pool = balance->pool;
    size_t table_size = 8192;
    int *table = xcalloc(table_size, sizeof *table);
    int services = balance->problem->service_count, delta[PROBLEM_SLOTS_MAX];
    int start = (int)rng_below(&balance->rng, (uint64_t)services);
    assert(CHANGES_MAX * 2 < (int)table_size);
    /* In three passes, each for the changes that the ceiling before left out. */
    for (double ceiling = slack / 16, floor = -INFINITY; ceiling <= slack;
         floor = ceiling, ceiling *= 4) {
        for (int k = 0; k < services; k++) {
            int i = (start + k) % services;
            const int *x = &balance->x[i * combine->slots];
            for (int c = pool->first[i]; c < pool->first[i + 1]; c++) {
                const int *row = &pool->counts[(size_t)c * (size_t)combine->slots];
                int size = 0;
                for (int s = 0; s < combine->slots; s++) {
                    delta[s] = x[s] - row[s];
                    size += delta[s] != 0;
                }
                double excess = -worth_of(combine, delta);
                if (size == 0 || excess > ceiling || excess <= floor)
                    continue;
                struct change *change = find_change(combine, delta, table, table_size);
                if (!change || change->carrier_count == CARRIERS_MAX)
                    continue;
                change->excess = excess;
                change->carriers[change->carrier_count++] = i;
            }
        }
    }
    free(table);
}

static void add_pattern_change(struct combine *combine, int more, int less, double slack)
{
    assert(more >= -1 && less >= -1 && more != less);
    const struct pattern_list *patterns = combine->balance->patterns;
    struct change change = {.more = more, .less = less, .carrier_count = CARRIERS_MAX};
    int delta[PROBLEM_SLOTS_MAX];
    change.money =
        (less < 0 ? 0 : patterns->price[less]) - (more < 0 ? 0 : patterns->price[more]);
    for (int s = 0; s < combine->slots; s++)
        delta[s] = (more < 0 ? 0 : patterns->slots[more][s]) -
                   (less < 0 ? 0 : patterns->slots[less][s]);
    double scarcity = 0;
    if (more >= 0)
        scarcity -= combine->dual->stock_price[patterns->kind[more]];
    if (less >= 0)
        scarcity += combine->dual->stock_price[patterns->kind[less]];
    change.excess = -(worth_of(combine, delta) + change.money + scarcity);
    if (change.excess > slack)
        return;
    vec_add(&combine->changes, change);
    for (int s = 0; s < combine->slots; s++)
        vec_add(&combine->deltas, delta[s]);
}

static void add_pattern_changes(struct combine *combine, double slack)
{
    int count = combine->balance->patterns->count;
    for (int more = -1; more < count; more++)
        for (int less = -1; less < count; less++)
            if (more != less && (less < 0 || combine->balance->y[less] > 0))
                add_pattern_change(combine, more, less, slack);
}

/* ---- the search ---- */

static bool heap_before(const struct combine *combine, int a, int b)
{
    const struct node *x = &combine->nodes.data[a], *y = &combine->nodes.data[b];
    if (x->shortage != y->shortage)
        return x->shortage < y->shortage;
    return x->worth != y->worth ? x->worth > y->worth : a < b;
}

static void heap_push(struct combine *combine, int node)
{
    assert(node >= 0 && (size_t)node < combine->nodes.count);
    vec_add(&combine->heap, node);
    int *heap = combine->heap.data;
    size_t at = combine->heap.count - 1;
    while (at > 0 && heap_before(combine, heap[at], heap[(at - 1) / 2])) {
        int swap = heap[at];
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = swap;
        at = (at - 1) / 2;
    }
}

static int heap_pop(struct combine *combine)
{
    assert(combine->heap.count > 0);
    int *heap = combine->heap.data, top = heap[0];
    size_t count = --combine->heap.count;
    heap[0] = heap[count];
    for (size_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap_before(combine, heap[child + 1], heap[child]))
            child++;
        if (!heap_before(combine, heap[child], heap[at]))
            break;
        int swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
    return top;
}

static double shortage_of(const struct combine *combine, const int *spare)
{
    double shortage = 0;
    for (int s = 0; s < combine->slots; s++)
        if (spare[s] < 0)
            shortage -= combine->balance->weight[s] * spare[s];
    assert(shortage >= 0);
    return shortage;
}

/* The table's place of a vector: of the node that has it, or a free one. */
static size_t table_find(const struct combine *combine, const int *spare)
{
    assert(combine->table);
    size_t at = hash_row(spare, combine->slots) & (TABLE_SIZE - 1);
    while (combine->table[at] && memcmp(spare_of(combine, combine->table[at] - 1), spare,
                                        (size_t)combine->slots * sizeof *spare) != 0)
        at = (at + 1) & (TABLE_SIZE - 1);
    return at;
}

/* Adds a state unless its vector was met; returns its index or -1. */
static int add_node(struct combine *combine, const int *spare, const struct node *node)
{
    assert(node->depth <= DEPTH_MAX);
    static_assert(NODES_MAX < TABLE_SIZE, "probing ends at a free place");
    size_t at = table_find(combine, spare);
    if (combine->table[at] || combine->nodes.count == NODES_MAX)
        return -1;
    for (int s = 0; s < combine->slots; s++)
        vec_add(&combine->spares, spare[s]);
    vec_add(&combine->nodes, *node);
    int index = (int)combine->nodes.count - 1;
    combine->table[at] = index + 1;
    heap_push(combine, index);
    return index;
}

/* GPUs of each pattern and kind along a path must stay within what there is. */
static bool path_allows(const struct combine *combine, int node, const struct change *change)
{
    assert(change >= combine->changes.data);
    const struct balance *balance = combine->balance;
    const struct pattern_list *patterns = balance->patterns;
    if (change->more < 0 && change->less < 0) {
        int used = 0;
        for (int n = node; n >= 0; n = combine->nodes.data[n].parent)
            used += combine->nodes.data[n].change == (int)(change - combine->changes.data);
        return used < change->carrier_count;
    }
    long stock = change->more < 0 ? 1 : balance->stock_left[patterns->kind[change->more]];
    long left = change->less < 0 ? 1 : balance->y[change->less];
    for (int n = node; n >= 0; n = combine->nodes.data[n].parent) {
        int c = combine->nodes.data[n].change;
        if (c < 0)
            continue;
        const struct change *earlier = &combine->changes.data[c];
        if (change->more >= 0 && earlier->more >= 0)
            stock -= patterns->kind[earlier->more] == patterns->kind[change->more];
        if (change->more >= 0 && earlier->less >= 0)
            stock += patterns->kind[earlier->less] == patterns->kind[change->more];
        if (change->less >= 0) {
            left -= earlier->less == change->less;
            left += earlier->more == change->less;
        }
    }
    if (change->more >= 0 && change->less >= 0 &&
        patterns->kind[change->more] == patterns->kind[change->less])
        stock++;
    return stock > 0 && left > 0;
}

/* Gives each change of cover on the path a service of its own; false when they run out. */
static bool assign_carriers(const struct combine *combine, const int *path, int length,
                            int *services)
{
    assert(length >= 0 && length <= DEPTH_MAX);
    for (int i = 0; i < length; i++) {
        const struct change *change = &combine->changes.data[path[i]];
        bool needs = change->more < 0 && change->less < 0;
        services[i] = -1;
        for (int c = 0; needs && services[i] < 0 && c < change->carrier_count; c++) {
            bool taken = false;
            for (int j = 0; j < i; j++)
                taken |= services[j] == change->carriers[c];
            if (!taken)
                services[i] = change->carriers[c];
        }
        if (needs && services[i] < 0)
            return false;
    }
    return true;
}

static void apply_patterns(struct balance *balance, const struct change *change,
                           const int *delta)
{
    for (int s = 0; s < balance->slots; s++)
        balance->spare[s] += delta[s];
    balance->money_left += change->money;
    if (change->more >= 0) {
        balance->y[change->more]++;
        balance->stock_left[balance->patterns->kind[change->more]]--;
    }
    if (change->less >= 0) {
        balance->y[change->less]--;
        balance->stock_left[balance->patterns->kind[change->less]]++;
    }
}

static bool apply_path(struct combine *combine, int node)
{
    assert(combine->nodes.data[node].depth <= DEPTH_MAX);
    int path[DEPTH_MAX + 1], services[DEPTH_MAX + 1], length = 0;
    int more[PROBLEM_SLOTS_MAX], less[PROBLEM_SLOTS_MAX];
    for (int n = node; combine->nodes.data[n].change >= 0; n = combine->nodes.data[n].parent)
        path[length++] = combine->nodes.data[n].change;
    if (!assign_carriers(combine, path, length, services))
        return false;
    for (int i = 0; i < length; i++) {
        const int *delta = delta_of(combine, path[i]);
        if (services[i] < 0) {
            apply_patterns(combine->balance, &combine->changes.data[path[i]], delta);
            continue;
        }
        for (int s = 0; s < combine->slots; s++) {
            more[s] = delta[s] < 0 ? -delta[s] : 0;
            less[s] = delta[s] > 0 ? delta[s] : 0;
        }
        balance_exchange(combine->balance, services[i], more, less);
    }
    assert(balance_is_whole(combine->balance));
    return true;
}

/* All states one change further; true when one has no shortage and was applied. */
static bool expand(struct combine *combine, int index)
{
    const struct node at = combine->nodes.data[index];
    int spare[PROBLEM_SLOTS_MAX];
    if (at.depth == DEPTH_MAX)
        return false;
    for (size_t c = 0; c < combine->changes.count; c++) {
        const struct change *change = &combine->changes.data[c];
        struct node next = {.parent = index,
                            .change = (int)c,
                            .depth = at.depth + 1,
                            .worth = at.worth - change->excess,
                            .money = at.money + change->money};
        if (next.worth < -1e-6 || next.money < -1e-9)
            continue;
        const int *old = spare_of(combine, index), *delta = delta_of(combine, (int)c);
        for (int s = 0; s < combine->slots; s++)
            spare[s] = old[s] + delta[s];
        next.shortage = shortage_of(combine, spare);
        /* Some steps must first make matters worse; those that do so by much seldom lead
         * anywhere. */
        if (next.shortage > at.shortage * 1.2 + 0.3 * combine->balance->weight[0] +
                                combine->dual->slot_price[0])
            continue;
        if (!path_allows(combine, index, change))
            continue;
        int added = add_node(combine, spare, &next);
        if (added >= 0 && next.shortage <= 0 && apply_path(combine, added))
            return true;
    }
    return false;
}

/* The worth of what is spare now, money and GPUs included. */
static double present_worth(const struct combine *combine)
{
    const struct balance *balance = combine->balance;
    double worth = balance->money_left;
    for (int s = 0; s < combine->slots; s++)
        worth += (double)balance->spare[s] * combine->dual->slot_price[s];
    for (size_t k = 0; k < balance->problem->kinds.count; k++)
        if (balance->problem->kinds.data[k].stock != PROBLEM_UNLIMITED)
            worth += (double)balance->stock_left[k] * combine->dual->stock_price[k];
    assert(!isnan(worth));
    return worth;
}

bool combine_search(struct balance *balance, int expansions)
{
    assert(expansions >= 0 && balance->slots <= PROBLEM_SLOTS_MAX);
    CLEANUP(combine_done)
    struct combine combine = {
        .balance = balance, .dual = balance->dual, .slots = balance->slots};
    int spare[PROBLEM_SLOTS_MAX];
    struct node first = {.parent = -1, .change = -1};
    first.worth = present_worth(&combine);
    first.money = balance->money_left;
    double slack = fmax(first.worth, 0) + 1e-6;
    add_pattern_changes(&combine, slack);
    add_cover_changes(&combine, slack);
    combine.table = xcalloc(TABLE_SIZE, sizeof *combine.table);
    for (int s = 0; s < combine.slots; s++)
        spare[s] = (int)balance->spare[s];
    first.shortage = shortage_of(&combine, spare);
    add_node(&combine, spare, &first);
    while (combine.heap.count > 0 && expansions-- > 0)
        if (expand(&combine, heap_pop(&combine)))
            return true;
    return false;
}
