/* SPDX-License-Identifier: Apache-2.0
 *
 * The linear relaxation of a mixed-integer program, to which rows can be added between
 * solves. The one place that talks to CLP on behalf of struct milp.
 */
#ifndef TRANCHE_PLAN_RELAXATION_H
#define TRANCHE_PLAN_RELAXATION_H

#include "plan/milp.h"

struct relaxation {
    void *simplex; /* Clp_Simplex */
    int columns, rows_solved;
};

/* Copies the program without its integrality. */
void relaxation_init(struct relaxation *relaxation, const struct milp *milp);
void relaxation_done(struct relaxation *relaxation);
/* Copies rows that were added to the program since. */
void relaxation_add_rows(struct relaxation *relaxation, const struct milp *milp);

/* True when solved to optimality; the next three hold until the next call. */
bool relaxation_solve(struct relaxation *relaxation);
double relaxation_objective(const struct relaxation *relaxation);
const double *relaxation_values(const struct relaxation *relaxation); /* by column */
const double *relaxation_duals(const struct relaxation *relaxation);  /* by row */

#endif
