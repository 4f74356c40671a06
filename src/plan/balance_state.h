/* SPDX-License-Identifier: Apache-2.0
 *
 * The state that the local searches of the whole plan share: the cover of each service, how
 * many GPUs take each pattern, and the spare of everything limited: slots (supply less
 * use), GPUs of each kind (stock), money.
 */
#ifndef TRANCHE_PLAN_BALANCE_STATE_H
#define TRANCHE_PLAN_BALANCE_STATE_H

#include "base/rng.h"
#include "plan/balance.h"

struct balance {
    const struct problem *problem;
    const struct pattern_list *patterns;
    const struct dual *dual;
    const struct cover_pool *pool;
    struct rng rng;
    int slots;
    int *x;           /* the covers: service_count rows of slots */
    int *y;           /* GPUs of each pattern */
    long *spare;      /* supply less use of each slot kind */
    double *weight;   /* of a shortage of one */
    long *stock_left; /* per kind; a large number when unlimited */
    double money_left;
};

/* Whether no slot kind is short. */
bool balance_is_whole(const struct balance *balance);
/* Adds `more` to and takes `less` (slots counts each) from a service's cover; spare and
 * shortage follow. */
void balance_exchange(struct balance *balance, int service, const int *more, const int *less);

/* Looks for a combination of changes that leaves nothing short, from the present state, by
 * best-first search over the spare vector; applies it and returns true when there is one
 * within `expansions` looked at. */
bool combine_search(struct balance *balance, int expansions);

#endif
