/* SPDX-License-Identifier: Apache-2.0
 *
 * A mixed-integer linear program as a value, and the one place that talks to CBC. Minimises.
 * Used for small or stubborn problems, and by the bench as the compact model's solver.
 */
#ifndef TRANCHE_PLAN_MILP_H
#define TRANCHE_PLAN_MILP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"

struct milp_entry {
    int row, column;
    double value;
};

struct milp {
    VEC(double) column_lower;
    VEC(double) column_upper;
    VEC(double) objective;
    VEC(char) integer;
    VEC(double) row_lower;
    VEC(double) row_upper;
    VEC(struct milp_entry) entries;
};

/* Frees the program; zeroed lists are fine. */
void milp_done(struct milp *milp);
/* Adds a variable within [lower, upper] (INFINITY: no upper bound) and its cost; returns its
 * index. */
int milp_add_column(struct milp *milp, double lower, double upper, double objective,
                    bool integer);
/* Adds the row lower <= … <= upper without entries (an infinite side is none); returns its
 * index. */
int milp_add_row(struct milp *milp, double lower, double upper);
/* Sets one coefficient, once for each row and column; zeros are left out. */
void milp_set(struct milp *milp, int row, int column, double value);

enum milp_status {
    MILP_OPTIMAL,    /* proved */
    MILP_FEASIBLE,   /* a limit was met; values hold the best */
    MILP_INFEASIBLE, /* proved: nothing below the cutoff */
    MILP_UNKNOWN     /* a limit was met without a solution */
};

struct milp_limits {
    double cutoff;  /* solutions must be better than this; INFINITY: none */
    double seconds; /* wall time; INFINITY: none */
    int nodes;      /* of the search tree; -1: none */
};

struct milp_result {
    enum milp_status status;
    double objective;
    double bound;   /* proved lower bound; -INFINITY when none */
    double *values; /* one a column, owned (free()); NULL without a solution */
};

/* Branch and cut by CBC. Deterministic unless `seconds` cuts it. The caller frees
 * ret_result->values. */
void milp_solve(const struct milp *milp, const struct milp_limits *limits,
                struct milp_result *ret_result);

#endif
