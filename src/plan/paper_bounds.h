/* SPDX-License-Identifier: Apache-2.0
 *
 * MIG-serving's lower bound and its classes of models.
 */
#ifndef TRANCHE_PLAN_PAPER_BOUNDS_H
#define TRANCHE_PLAN_PAPER_BOUNDS_H

#include "plan/problem.h"

/* The paper's bound: every service on its most cost-efficient instances, MIG's rules left
 * out: sum_i D_i / max_s(T_is / slices) / 7, with the price and slices of the board. Below
 * the bound that `exact` proves. base_cost included. */
double paper_lower_bound(const struct problem *problem);

/* How throughput grows with the slice (section 2.2): q = T(whole) / u, u the throughput per
 * compute slice of the smallest instance that can run the model. With 7 slices, linear is
 * 6.5 <= q <= 7.5; on a board of n slices, within n/14 of n. */
enum scaling_class { SCALING_SUB_LINEAR, SCALING_LINEAR, SCALING_SUPER_LINEAR, SCALING_COUNT };
/* "sub-linear", "linear", "super-linear". */
const char *scaling_class_name(enum scaling_class scaling);

struct scaling {
    const char *model; /* borrowed from the rows */
    const struct mig_board *board;
    int batch;
    const char *smallest; /* slice profile */
    double quotient;      /* q */
    enum scaling_class scaling;
};

/* One entry for each (model, board, batch) whose largest slice and a smaller one were
 * measured ok with one process; in the rows' order. Returns a new array (free()). */
struct scaling *paper_classify(const struct measurement_set *rows, size_t *ret_count);

#endif
