/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam of the planners: a solver takes a problem and gives GPUs whose slots are
 * labelled with services. Starts, names and nodes of the GPUs, and the plan document, are
 * made from that by one shared piece of code (assemble.h), and the result is checked by
 * plan_verify() whoever made it.
 */
#ifndef TRANCHE_PLAN_SOLVER_H
#define TRANCHE_PLAN_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/executor.h"
#include "base/vec.h"
#include "plan/problem.h"

enum { PLAN_GPUS_MAX = 250000 }; /* larger plans are not made */

struct solution_item {
    int slot;    /* slot kind */
    int service; /* which service runs there */
    int stay;    /* 1 + the memory unit where it must start; 0: assembly chooses */
};

struct solution_gpu {
    int kind;  /* index into problem->kinds */
    int reuse; /* 1 + the GPU of problem->from that this one continues; 0: a free one */
    int count;
    struct solution_item items[MIG_INSTANCES_MAX]; /* a sub-multiset of one pattern */
};

struct solution {
    bool feasible;                 /* false: no plan within stock was found */
    VEC(struct solution_gpu) gpus; /* GPUs that get new instances; fixed ones are implied */
    double bound_cost;     /* proved lower bound of the cost, base_cost included; NAN: none */
    const char *bound_how; /* static text: how it was proved */
    bool stopped_by_budget;
    /* Under problem->from: no plan that costs no more keeps more instances than this. */
    bool has_kept_bound;
    int kept_bound;
};

struct solver_settings {
    uint64_t seed;
    double budget_s; /* wall time after which to return the best so far; INFINITY: none */
    long rounds;     /* genetic algorithm: most rounds; -1: its default */
    long iterations; /* MCTS: iterations a step; -1: its default */
    const struct clock_source *clock; /* for budget_s alone; may be NULL without a budget */
    const struct executor *executor;  /* NULL: one thread; never changes the result */
    const void *parameters;           /* a solver's own table of parameters, or NULL */
};

struct solver {
    const char *name;    /* of --algorithm */
    const char *summary; /* one line */
    /* Fills *ret_solution (zeroed before; the caller frees it). A problem that cannot be
     * met within stock is feasible = false and 0, not an error. */
    int (*solve)(const struct problem *problem, const struct solver_settings *settings,
                 struct solution *ret_solution, struct error *err);
};

/* Frees the GPUs; a zeroed solution is fine. */
void solution_done(struct solution *solution);
/* Adds the partly taken GPUs that the solution leaves as they are, without items. */
void solution_add_untouched(const struct problem *problem, struct solution *solution);
/* Sum of the prices of the solution's GPUs and of those that fixed instances make used anyway
 * (base_cost). */
double solution_cost(const struct problem *problem, const struct solution *solution);
/* Asserts that every GPU fits one of its kind's patterns, stock holds, and every service
 * has its rate and instances (spread is the assembly's and plan_verify()'s). */
void solution_check(const struct problem *problem, const struct solution *solution);

extern const struct solver solver_exact, solver_greedy, solver_mcts, solver_ga;
extern const struct solver solver_whole, solver_ones, solver_mix, solver_parvagpu,
    solver_jormungandr;

/* The solver of this name, static; NULL when it is unknown. */
const struct solver *solver_find(const char *name);
/* All solvers in the order of help texts, NULL-terminated; static. */
const struct solver *const *solver_list(void);

#endif
