/* SPDX-License-Identifier: Apache-2.0
 *
 * What each service may promise on each slot kind: the latency rule applied to every row,
 * the best row kept. Services that ask the same (model, objective, wait) are answered once,
 * and the different questions are independent pieces of work: the `queue` rule is dear.
 */
#ifndef TRANCHE_PLAN_PROMISES_H
#define TRANCHE_PLAN_PROMISES_H

#include "base/executor.h"
#include "plan/problem.h"

struct promise_table {
    VEC(struct problem_slot)
    pairs;                          /* measured pairs of board and profile on the fleet, in
                                       the order of the board table, then of profiles */
    struct problem_option *options; /* service_count rows of pairs.count */
};

/* Fills the table for problem->parts, services and rows, and appends the services that no
 * pair can serve to problem->infeasible with the reason. The executor, or NULL, changes
 * the time alone. */
void promise_table_init(struct promise_table *table, struct problem *problem,
                        const struct executor *executor);
/* Frees pairs and options. */
void promise_table_done(struct promise_table *table);

#endif
