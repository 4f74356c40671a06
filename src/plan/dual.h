/* SPDX-License-Identifier: Apache-2.0
 *
 * The bound of the exact planner. Give every slot kind a price such that no pattern of a
 * GPU is worth more than the GPU costs (plus a price for its scarcity where stock is
 * limited). Then no plan costs less than
 *     L = sum over services of their cheapest integer cover - sum of stock x scarcity price,
 * because a plan's slots are worth at most what its GPUs cost. L is concave and piecewise
 * linear in the prices; it is raised by cutting planes: every cover met is a plane. That is
 * column generation over covers seen from the other side (Dantzig-Wolfe with integral
 * subproblems), and the weights of the planes are the fractional plan.
 */
#ifndef TRANCHE_PLAN_DUAL_H
#define TRANCHE_PLAN_DUAL_H

#include <stdbool.h>

#include "plan/aggregate.h"
#include "plan/cover.h"

struct dual_options {
    bool feasibility; /* GPUs cost nothing; bound > 0 then proves that stock is too small */
    double gap;       /* stop when the bound is within this of the best possible */
    int rounds_max;
    bool (*stop)(void *context); /* asked once a round; NULL: never */
    void *context;
};

struct dual {
    double bound;           /* proved, without problem->base_cost */
    double upper;           /* value of the planes: no prices give more than this */
    double *slot_price;     /* at the bound */
    double *stock_price;    /* per kind */
    double *pattern_weight; /* the fractional plan: GPUs of each pattern */
    int *start;             /* a cover of each service to round from: rows of slot_count */
    int rounds;
};

/* Raises the bound until it is within options->gap of the best, no plane is violated,
 * rounds_max is reached or stop() says so. `covers` has one for each service. What it finds is
 * a proved bound whenever it ends. The caller frees *ret_dual; same input, same result. */
void dual_solve(const struct problem *problem, const struct pattern_list *patterns,
                const struct cover *covers, const struct dual_options *options,
                struct dual *ret_dual);
/* Frees the arrays; zero after. */
void dual_done(struct dual *dual);

#endif
