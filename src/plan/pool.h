/* SPDX-License-Identifier: Apache-2.0
 *
 * Covers worth having: for each service, all whose price at the bound is within some margin
 * of the cheapest, the margin as wide as keeps the list short.
 */
#ifndef TRANCHE_PLAN_POOL_H
#define TRANCHE_PLAN_POOL_H

#include "plan/cover.h"

struct cover_pool {
    int slot_count;
    int *first;  /* service_count + 1 positions of covers */
    int *counts; /* rows of slot_count */
};

/* `slack`: covers dearer than the cheapest by more than this are of no use. */
void cover_pool_init(struct cover_pool *pool, const struct problem *problem,
                     const struct cover *covers, const double *slot_prices, double slack);
/* Frees the lists; zero after. */
void cover_pool_done(struct cover_pool *pool);

#endif
