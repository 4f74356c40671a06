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
/* Deletes CLP's model; zero after. */
void relaxation_done(struct relaxation *relaxation);
/* Copies rows that were added to the program since. */
void relaxation_add_rows(struct relaxation *relaxation, const struct milp *milp);

/* True when solved to optimality; the next three hold until the next call. */
bool relaxation_solve(struct relaxation *relaxation);
/* The value of the optimum: a lower bound of the program's. */
double relaxation_objective(const struct relaxation *relaxation);
/* The optimum's values by column, borrowed. */
const double *relaxation_values(const struct relaxation *relaxation);
/* Its dual prices by row, borrowed; at a minimum, those of >= rows are not negative. */
const double *relaxation_duals(const struct relaxation *relaxation);

#endif
