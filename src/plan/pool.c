/* SPDX-License-Identifier: Apache-2.0
 *
 * The margin starts at a 64th of the slack and is doubled while the enumeration is
 * complete: a complete list holds covers far from the cheapest one that cost next to
 * nothing more, which a truncated one would not.
 */
#include "plan/pool.h"

#include <assert.h>
#include <string.h>

enum { CAPACITY = 256, NODES_TOTAL = 2000000, NODES_LEAST = 300, NODES_MOST = 20000 };

void cover_pool_init(struct cover_pool *pool, const struct problem *problem,
                     const struct cover *covers, const double *slot_prices, double slack)
{
    assert(slot_prices && slack >= 0);
    size_t slots = (size_t)problem->slot_count;
    VEC(int) counts = {0};
    int total = 0;
    int nodes = NODES_TOTAL / (problem->service_count + 1);
    struct cover_list list = {.capacity = CAPACITY,
                              .nodes_max = nodes < NODES_LEAST  ? NODES_LEAST
                                           : nodes > NODES_MOST ? NODES_MOST
                                                                : nodes,
                              .rows = xcalloc(CAPACITY * slots + 1, sizeof(int)),
                              .price = xcalloc(CAPACITY, sizeof(double))};
    int *kept = xcalloc(CAPACITY * slots + 1, sizeof *kept);
    *pool = (struct cover_pool){.slot_count = problem->slot_count};
    pool->first = xcalloc((size_t)problem->service_count + 1, sizeof *pool->first);
    for (int i = 0; i < problem->service_count; i++) {
        double least;
        int found = 1;
        cover_cheapest(&covers[i], slot_prices, kept, &least);
        for (double margin = slack / 64; margin <= slack; margin *= 2) {
            bool complete = cover_enumerate(&covers[i], slot_prices, least + margin, &list);
            if (complete || margin == slack / 64) {
                found = list.count;
                memcpy(kept, list.rows, (size_t)found * slots * sizeof *kept);
            }
            if (!complete || margin == 0) /* all prices are 0: no wider margin */
                break;
        }
        for (size_t k = 0; k < (size_t)found * slots; k++)
            vec_add(&counts, kept[k]);
        total += found;
        assert(found >= 0 && found <= CAPACITY);
        pool->first[i + 1] = total;
    }
    free(kept);
    free(list.rows);
    free(list.price);
    pool->counts = counts.data;
}

void cover_pool_done(struct cover_pool *pool)
{
    free(pool->first);
    free(pool->counts);
    *pool = (struct cover_pool){0};
}
