/* SPDX-License-Identifier: Apache-2.0
 *
 * Why an order of actions holds the floor, service by service, as a certificate that can be
 * kept while the order is weakened: which starts stand in for which drains.
 *
 * The floor of a service holds in every state if and only if what it may do without at first,
 * and the rates of its starts, can be dealt out to its drains so that each drain is made up
 * for by starts that it waits for (by way of other actions, too): a transport problem. Any set
 * of drains has then been dealt disjoint shares of starts that are done when they may begin;
 * and where no such deal exists, the set of drains that a minimum cut leaves short is a state
 * below the floor (max-flow min-cut). So an edge may go exactly when the deal can be changed
 * to do without it.
 */
#ifndef TRANCHE_TRANSITION_SUPPLY_H
#define TRANCHE_TRANSITION_SUPPLY_H

#include "transition/work.h"

/* A share of a start, or of the slack, that stands in for a drain. */
struct supply_share {
    int giver, taker; /* indices of the service's */
    int64_t amount;
};

struct supply_giver {
    int column; /* of the start; -1: the slack, which everyone may take from */
    int64_t left;
};

struct supply_taker {
    int action;   /* a drain */
    int64_t lack; /* what is not made up for */
};

/* Rates are whole numbers, of a fraction of the service's sum, so that sums are exact. */
struct supply_service {
    VEC(struct supply_giver) givers; /* the slack first */
    VEC(struct supply_taker) takers;
    VEC(struct supply_share) shares;
    int64_t lack, lack_max; /* of all takers, and how much of it is rounding */
};

/* A path from a taker to a giver that has something left. */
struct supply_search {
    VEC(int) queue;          /* takers */
    VEC(int) taker_of_giver; /* who would take from it, -1: not reached */
    VEC(int) share_of_taker; /* what it would give up for that, -1: not reached */
    VEC(int) share_of_giver; /* its first share, -1: none */
    VEC(int) next_share;     /* of the same giver, -1: none */
};

struct supply {
    struct transition *transition;
    int *row_of;    /* of each action, -1: it comes before no drain and is none */
    int *column_of; /* of each start that comes before a drain, -1 */
    size_t words;
    uint64_t *rows; /* of each row: the columns that it waits for */
    int *successor_first, *successors;
    bool *is_dirty;    /* of each action: a row that it depends on has changed */
    bool *is_affected; /* of each service: so has the row of one of its drains */
    struct supply_service *services;
    struct supply_service kept; /* the service being changed, as it was */
    struct supply_search search;
    uint64_t *scratch;      /* a row */
    VEC(int) changed;       /* actions whose rows the edge in question changes, in order */
    VEC(uint64_t) old_rows; /* … as they were */
    int64_t effort_left;    /* words to look at yet: an end that does not depend on time */
};

/* false: the order is too large for this. supply_done() in any case. */
bool supply_init(struct supply *supply, const struct work *work);
void supply_done(struct supply *supply);
/* Takes the index-th action out of the `after` list of a drain when every floor holds without
 * it; else changes nothing. */
bool supply_drop_edge(struct supply *supply, int drain, size_t index);

#endif
