/* SPDX-License-Identifier: Apache-2.0
 *
 * From a fractional plan to a whole one of at most a given cost. What a plan needs is that
 * the slots of its GPUs suffice for the covers of its services: a vector of slot kinds,
 * supply less use, that must not be negative. Every change (another cover for a service,
 * another pattern for a GPU) moves that short vector, whatever the number of services, so a
 * search over changes is cheap; the prices of the bound tell what each shortage is worth
 * and which changes are worth making.
 */
#ifndef TRANCHE_PLAN_BALANCE_H
#define TRANCHE_PLAN_BALANCE_H

#include "plan/aggregate.h"
#include "plan/dual.h"
#include "plan/pool.h"

struct balance_options {
    double cost_max; /* patterns may cost at most this */
    uint64_t seed;
    int tries; /* starts */
    bool (*stop)(void *context);
    void *context;
};

/* Looks for a plan within cost_max; true and *aggregate filled when one was found. */
bool balance_search(const struct problem *problem, const struct pattern_list *patterns,
                    const struct dual *dual, const struct cover_pool *pool,
                    const struct balance_options *options, struct aggregate *aggregate);

#endif
