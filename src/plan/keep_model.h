/* SPDX-License-Identifier: Apache-2.0
 *
 * How many instances of an earlier plan can stay at a given cost, as a program: its
 * relaxation proves how many at most, its whole solutions say which. docs/spec/planning.md
 * has the rows.
 */
#ifndef TRANCHE_PLAN_KEEP_MODEL_H
#define TRANCHE_PLAN_KEEP_MODEL_H

#include "plan/aggregate.h"
#include "plan/cover.h"
#include "plan/milp.h"
#include "plan/pin.h"

/* GPUs of the earlier plan that are alike: kind, and instances with their services. */
struct keep_class {
    int gpu; /* the first of them */
    int count;
};

/* One way to partition GPUs of a class: which of its places stay, and what is beside. */
struct keep_column {
    int class;
    unsigned places;    /* bit n: the n-th old instance's place is still there */
    const int *pattern; /* slots beside them, by slot kind; NULL: no room for any */
};

struct keep_model {
    const struct problem *problem;
    struct old_plan *old;
    struct pattern_list patterns;
    struct cover *covers;
    int *class_of; /* of each old GPU; -1: it has no instance that could stay */
    VEC(struct keep_class) classes;
    VEC(struct keep_column) columns;
    int *kept_column; /* by service and slot kind; -1: nothing there to keep */
    int *link_row;    /* kept <= instances, parallel */
    int first_y, first_w, first_supply;
    struct milp milp;
};

/* True when the program has been built; false when it would be too large. */
bool keep_model_init(struct keep_model *model, const struct problem *problem,
                     struct old_plan *old, double cost_max);
/* Frees the program; fine after keep_model_init() said false. */
void keep_model_done(struct keep_model *model);

/* A proved upper bound of how many instances can stay; at most all. */
int keep_model_bound(struct keep_model *model);

struct keep_search {
    int kept; /* at least 0; more than this are looked for */
    int nodes;
    double seconds; /* INFINITY: no limit of time */
};
/* Branch and cut. Lowers *bound when that proves something; true when keep (one flag an
 * instance) was filled. */
bool keep_model_search(struct keep_model *model, const struct keep_search *search, bool *keep,
                       int *bound);

/* What a run of branch and cut for more than `kept` proves of how many can stay, at least
 * `kept`; INT_MAX: nothing. */
int keep_model_proved(const struct milp_result *result, int kept);
/* Which instances stay in a whole solution's values. */
void keep_model_read(const struct keep_model *model, const double *values, bool *keep);

#endif
