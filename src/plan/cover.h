/* SPDX-License-Identifier: Apache-2.0
 *
 * The cheapest integer cover of one service at given slot prices: an unbounded knapsack,
 *     min sum_s price_s x_s   with   sum_s rate_s x_s >= demand,  sum_s x_s >= instances,
 * x whole. Under spread the rate must hold without the largest instance: for each slot kind
 * m as the largest, cover demand + rate_m with kinds that are no faster. Solved by depth
 * first branch and bound over kinds in order of price for rate.
 */
#ifndef TRANCHE_PLAN_COVER_H
#define TRANCHE_PLAN_COVER_H

#include "base/vec.h"
#include "plan/problem.h"

struct cover_item {
    int slot;
    double rate; /* in units of the service's full rate */
    double price;
    double ratio; /* price / rate */
};

/* One service made ready; prices are set at each call. */
struct cover {
    int slot_count;
    int item_count;
    struct cover_item *items; /* usable slot kinds, in rising slot order */
    double demand;            /* in the same units */
    int instances_min;
    bool spread;
    double margin; /* under spread: what must be spare at least, in units of the full rate */
};

/* Makes the service's cover problem: what it still needs, and the slot kinds that it can
 * use. */
void cover_init(struct cover *cover, const struct problem *problem, int service);
/* Frees the items; zero after. */
void cover_done(struct cover *cover);
/* Whether any counts can cover it at all. */
bool cover_possible(const struct cover *cover);

/* Writes the cheapest cover found into counts (slot_count) and its price into *ret_price;
 * returns a proved lower bound of the price of any cover, equal to it unless the search hit
 * its limit of nodes. */
double cover_cheapest(const struct cover *cover, const double *slot_prices, int *counts,
                      double *ret_price);

/* Covers met by an enumeration. The memory is the caller's. */
struct cover_list {
    int capacity, nodes_max;
    int count;
    int *rows;     /* capacity rows of slot_count */
    double *price; /* of each */
};

/* Lists every cover whose price is at most `ceiling` and in which no instance can be left
 * out. False when there are more than the list holds or its limit of nodes was hit; the
 * list then holds some of them. */
bool cover_enumerate(const struct cover *cover, const double *slot_prices, double ceiling,
                     struct cover_list *list);

#endif
