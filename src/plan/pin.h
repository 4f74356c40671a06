/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeping instances of an earlier plan in place. What is kept is taken from the problem:
 * the GPUs that have kept instances become partly taken kinds that are paid for, and what
 * the kept instances give is taken from the demands. The rest is a problem like any other.
 */
#ifndef TRANCHE_PLAN_PIN_H
#define TRANCHE_PLAN_PIN_H

#include "plan/solver.h"

/* An instance of problem->from that could stay: its service and slot kind still exist. */
struct old_instance {
    int gpu;      /* index into from->gpus */
    int instance; /* index into that GPU's instances */
    int kind;     /* of the problem, to which the GPU belongs */
    int service;  /* of the problem */
    int slot;
    int start;
};

struct old_plan {
    int gpu_count;
    int *kind;  /* of each GPU of from, -1: no longer in the fleet */
    int *first; /* gpu_count + 1 positions into instances */
    struct old_instance *instances;
    int instance_count;
    int outside;        /* serving instances not listed that a plan may have in place even so */
    bool ambiguous;     /* some GPU could be of several parts of the fleet */
    struct arena arena; /* patterns beside kept instances, worked out once */
    VEC(struct problem_kind) known;
};

/* Which GPUs and instances of problem->from still fit the fleet, services and rules. */
void old_plan_init(struct old_plan *old, const struct problem *problem);
/* Frees the lists and the patterns that old_plan_patterns() gave out. */
void old_plan_done(struct old_plan *old);
/* Fills the patterns of a kind beside what is taken of it, from what was worked out before
 * when its board and instances are the same. Memory is old's. */
void old_plan_patterns(struct old_plan *old, const struct problem *problem,
                       struct problem_kind *kind);

/* The problem that is left when the instances with pinned[i] stay. */
struct pinned_problem {
    struct problem problem; /* shares the tables of the base */
    const struct problem *base;
    struct old_plan *old;
    const bool *pinned;
    int *gpus;  /* GPUs of from that have pinned instances, grouped by kind */
    int *first; /* kinds + 1 positions into gpus; free kinds have none */
};
/* `keep` has a flag for each of old->instances and, like base and old, must outlive the pinned
 * problem. GPUs whose kept instances are alike make one kind. */
void pinned_problem_init(struct pinned_problem *pinned, const struct problem *base,
                         struct old_plan *old, const bool *keep);
/* Frees what is not shared with the base. */
void pinned_problem_done(struct pinned_problem *pinned);

/* A solution of the rest as a solution of the base: pinned instances put back, with their
 * starts, on the GPUs that they were on. Bounds are copied. The caller frees *ret_solution. */
void pinned_problem_expand(const struct pinned_problem *pinned, const struct solution *rest,
                           struct solution *ret_solution);

#endif
