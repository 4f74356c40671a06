/* SPDX-License-Identifier: Apache-2.0
 *
 * The aggregate form of a plan: how many instances of each slot kind every service has,
 * and how many GPUs of each kind take each pattern. Slots of one kind are alike, so any
 * labelling of the patterns' slots with those counts is a plan (planning notes, 3.1).
 */
#ifndef TRANCHE_PLAN_AGGREGATE_H
#define TRANCHE_PLAN_AGGREGATE_H

#include "plan/problem.h"
#include "plan/solver.h"

/* All patterns of all kinds in one list. */
struct pattern_list {
    int count;
    int slot_count;
    int *kind;         /* of each pattern */
    const int **slots; /* of each pattern: slot_count counts */
    double *price;     /* of each pattern's kind */
};
/* Lists the patterns kind by kind, in the order of problem->kinds. Counts are borrowed from the
 * problem, which must outlive the list. */
void pattern_list_init(struct pattern_list *list, const struct problem *problem);
/* Frees the list; zero after. */
void pattern_list_done(struct pattern_list *list);

struct aggregate {
    int *x; /* service_count rows of slot_count instances */
    int *y; /* GPUs of each pattern in a pattern_list */
};
/* An aggregate without instances and GPUs, of the size that problem and patterns have. */
void aggregate_init(struct aggregate *aggregate, const struct problem *problem,
                    const struct pattern_list *patterns);
/* Frees the counts; zero after. */
void aggregate_done(struct aggregate *aggregate);
/* Copies the counts; both were made for this problem and these patterns. */
void aggregate_copy(struct aggregate *to, const struct aggregate *from,
                    const struct problem *problem, const struct pattern_list *patterns);

/* Cost of the patterns, without problem->base_cost. */
double aggregate_cost(const struct aggregate *aggregate, const struct pattern_list *patterns);
/* Whether every service is covered (rate within 1e-9, instances, the largest instance to
 * spare under spread), slots suffice and stock holds. */
bool aggregate_holds(const struct aggregate *aggregate, const struct problem *problem,
                     const struct pattern_list *patterns);
/* Whether these counts (one for each slot kind) cover one service: its rate within the
 * contract's 1e-9, its instances, and under spread the rate without its largest instance. */
bool aggregate_covers(const struct problem *problem, int service, const int *counts);

/* Labels the slots and appends to solution->gpus. GPUs that stay empty are left out. The
 * aggregate must hold (aggregate_holds()), or slots run out, which is asserted. */
void aggregate_label(const struct aggregate *aggregate, const struct problem *problem,
                     const struct pattern_list *patterns, struct solution *solution);

#endif
