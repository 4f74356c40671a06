/* SPDX-License-Identifier: Apache-2.0
 *
 * Aggregates: cost, validity and labelling. Labelling fills GPUs in order, service by
 * service, so instances of one service lie together and what is left over gathers in the
 * last GPUs; spreading is a later step (spread.h).
 */
#include "plan/aggregate.h"

#include <assert.h>
#include <string.h>

static const double TOLERANCE = 1e-9; /* the contract's, relative */

void pattern_list_init(struct pattern_list *list, const struct problem *problem)
{
    *list = (struct pattern_list){.slot_count = problem->slot_count};
    size_t total = 0;
    for (size_t k = 0; k < problem->kinds.count; k++)
        total += (size_t)problem->kinds.data[k].pattern_count;
    list->kind = xcalloc(total + 1, sizeof *list->kind);
    list->slots = xcalloc(total + 1, sizeof *list->slots);
    list->price = xcalloc(total + 1, sizeof *list->price);
    for (size_t k = 0; k < problem->kinds.count; k++) {
        const struct problem_kind *kind = &problem->kinds.data[k];
        for (int p = 0; p < kind->pattern_count; p++) {
            list->kind[list->count] = (int)k;
            list->slots[list->count] = &kind->patterns[p * problem->slot_count];
            list->price[list->count++] = kind->price;
        }
    }
    assert((size_t)list->count == total);
}

void pattern_list_done(struct pattern_list *list)
{
    free(list->kind);
    free(list->slots);
    free(list->price);
    *list = (struct pattern_list){0};
}

static size_t cells(const struct problem *problem)
{
    return (size_t)problem->service_count * (size_t)problem->slot_count;
}

void aggregate_init(struct aggregate *aggregate, const struct problem *problem,
                    const struct pattern_list *patterns)
{
    assert(patterns->slot_count == problem->slot_count);
    aggregate->x = xcalloc(cells(problem) + 1, sizeof *aggregate->x);
    aggregate->y = xcalloc((size_t)patterns->count + 1, sizeof *aggregate->y);
}

void aggregate_done(struct aggregate *aggregate)
{
    free(aggregate->x);
    free(aggregate->y);
    *aggregate = (struct aggregate){0};
}

void aggregate_copy(struct aggregate *to, const struct aggregate *from,
                    const struct problem *problem, const struct pattern_list *patterns)
{
    assert(to != from && to->x && to->y);
    memcpy(to->x, from->x, cells(problem) * sizeof *to->x);
    memcpy(to->y, from->y, (size_t)patterns->count * sizeof *to->y);
}

double aggregate_cost(const struct aggregate *aggregate, const struct pattern_list *patterns)
{
    double cost = 0;
    for (int p = 0; p < patterns->count; p++)
        cost += patterns->price[p] * aggregate->y[p];
    assert(cost >= 0);
    return cost;
}

bool aggregate_covers(const struct problem *problem, int service, const int *counts)
{
    assert(service >= 0 && service < problem->service_count);
    double rate_rps = 0, largest_rps = problem->fixed_largest_rps[service];
    long instances = 0;
    if (problem->dropped[service])
        return true;
    for (int s = 0; s < problem->slot_count; s++) {
        const struct problem_option *option = problem_option(problem, service, s);
        if (counts[s] > 0 && option->row < 0)
            return false;
        rate_rps += counts[s] * option->rate_rps;
        instances += counts[s];
        if (counts[s] > 0 && option->rate_rps > largest_rps)
            largest_rps = option->rate_rps;
    }
    if (problem->services->services.data[service].spread != SPREAD_NONE)
        rate_rps -= largest_rps;
    double full_rps = problem->services->services.data[service].rate_rps;
    return rate_rps >= problem->demand_rps[service] - full_rps * TOLERANCE &&
           instances >= problem->instances_min[service];
}

static bool stock_holds(const struct aggregate *aggregate, const struct problem *problem,
                        const struct pattern_list *patterns)
{
    /* Patterns come in the order of their kinds, as pattern_list_init() lists them. */
    int p = 0;
    for (size_t k = 0; k < problem->kinds.count; k++) {
        long used = 0;
        for (; p < patterns->count && patterns->kind[p] == (int)k; p++)
            used += aggregate->y[p];
        int stock = problem->kinds.data[k].stock;
        if (stock != PROBLEM_UNLIMITED && used > stock)
            return false;
    }
    assert(p == patterns->count);
    return true;
}

bool aggregate_holds(const struct aggregate *aggregate, const struct problem *problem,
                     const struct pattern_list *patterns)
{
    assert(patterns->slot_count == problem->slot_count);
    for (int s = 0; s < problem->slot_count; s++) {
        long supply = 0, taken = 0;
        for (int p = 0; p < patterns->count; p++)
            supply += (long)patterns->slots[p][s] * aggregate->y[p];
        for (int i = 0; i < problem->service_count; i++)
            taken += aggregate->x[i * problem->slot_count + s];
        if (taken > supply)
            return false;
    }
    for (int i = 0; i < problem->service_count; i++)
        if (!aggregate_covers(problem, i, &aggregate->x[i * problem->slot_count]))
            return false;
    return stock_holds(aggregate, problem, patterns);
}

/* Slots of one kind in the order in which they are handed out. */
struct cursor {
    size_t gpu; /* position among the expanded GPUs */
    int used;   /* slots of this kind already taken there */
};

struct expanded {
    int pattern;
    struct solution_gpu gpu;
};

static void take_slot(struct cursor *cursor, struct expanded *expanded, size_t count,
                      const struct pattern_list *patterns, struct solution_item item)
{
    assert(item.slot >= 0 && item.slot < patterns->slot_count);
    while (cursor->used == patterns->slots[expanded[cursor->gpu].pattern][item.slot]) {
        cursor->gpu++;
        cursor->used = 0;
        assert(cursor->gpu < count);
    }
    (void)count;
    cursor->used++;
    struct solution_gpu *gpu = &expanded[cursor->gpu].gpu;
    assert(gpu->count < MIG_INSTANCES_MAX);
    gpu->items[gpu->count++] = item;
}

void aggregate_label(const struct aggregate *aggregate, const struct problem *problem,
                     const struct pattern_list *patterns, struct solution *solution)
{
    assert(patterns->slot_count == problem->slot_count);
    VEC(struct expanded) expanded = {0};
    for (int p = 0; p < patterns->count; p++)
        for (int k = 0; k < aggregate->y[p]; k++)
            vec_add(&expanded,
                    ((struct expanded){.pattern = p, .gpu.kind = patterns->kind[p]}));
    /* A cursor for each slot kind: its slots are handed out GPU by GPU, whichever service is
     * next. */
    struct cursor *cursors = xcalloc((size_t)problem->slot_count + 1, sizeof *cursors);
    for (int i = 0; i < problem->service_count; i++)
        for (int s = 0; s < problem->slot_count; s++)
            for (int k = 0; k < aggregate->x[i * problem->slot_count + s]; k++)
                take_slot(&cursors[s], expanded.data, expanded.count, patterns,
                          (struct solution_item){.slot = s, .service = i});
    for (size_t g = 0; g < expanded.count; g++)
        if (expanded.data[g].gpu.count > 0)
            vec_add(&solution->gpus, expanded.data[g].gpu);
    free(cursors);
    vec_done(&expanded);
}
