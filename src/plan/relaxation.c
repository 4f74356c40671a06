/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/relaxation.h"

#include <assert.h>
#include <coin/Clp_C_Interface.h>

enum { LOG_SILENT = 0 };

void relaxation_init(struct relaxation *relaxation, const struct milp *milp)
{
    int columns = (int)milp->objective.count;
    assert(columns > 0 && milp->column_upper.count == milp->objective.count);
    int *starts = xcalloc((size_t)columns + 2, sizeof *starts);
    Clp_Simplex *simplex = Clp_newModel();
    *relaxation = (struct relaxation){.simplex = simplex, .columns = columns};
    Clp_setLogLevel(simplex, LOG_SILENT);
    Clp_resize(simplex, 0, 0);
    Clp_addColumns(simplex, columns, milp->column_lower.data, milp->column_upper.data,
                   milp->objective.data, starts, NULL, NULL);
    free(starts);
    relaxation_add_rows(relaxation, milp);
}

void relaxation_done(struct relaxation *relaxation)
{
    if (relaxation->simplex)
        Clp_deleteModel(relaxation->simplex);
    *relaxation = (struct relaxation){0};
}

void relaxation_add_rows(struct relaxation *relaxation, const struct milp *milp)
{
    int first = Clp_getNumRows(relaxation->simplex);
    int count = (int)milp->row_lower.count - first;
    assert(count >= 0);
    if (count == 0)
        return;
    int *starts = xcalloc((size_t)count + 2, sizeof *starts);
    int *index = xcalloc(milp->entries.count + 1, sizeof *index);
    double *value = xcalloc(milp->entries.count + 1, sizeof *value);
    for (size_t e = 0; e < milp->entries.count; e++)
        if (milp->entries.data[e].row >= first)
            starts[milp->entries.data[e].row - first + 2]++;
    for (int r = 2; r <= count; r++)
        starts[r] += starts[r - 1];
    for (size_t e = 0; e < milp->entries.count; e++) {
        if (milp->entries.data[e].row < first)
            continue;
        int at = starts[milp->entries.data[e].row - first + 1]++;
        index[at] = milp->entries.data[e].column;
        value[at] = milp->entries.data[e].value;
    }
    Clp_addRows(relaxation->simplex, count, milp->row_lower.data + first,
                milp->row_upper.data + first, starts, index, value);
    free(starts);
    free(index);
    free(value);
}

bool relaxation_solve(struct relaxation *relaxation)
{
    assert(relaxation->simplex);
    if (relaxation->rows_solved == 0)
        Clp_initialSolve(relaxation->simplex);
    else
        Clp_dual(relaxation->simplex, 0);
    relaxation->rows_solved = Clp_getNumRows(relaxation->simplex);
    return Clp_status(relaxation->simplex) == 0;
}

double relaxation_objective(const struct relaxation *relaxation)
{
    assert(relaxation->rows_solved > 0);
    return Clp_objectiveValue(relaxation->simplex);
}

const double *relaxation_values(const struct relaxation *relaxation)
{
    assert(relaxation->rows_solved > 0);
    return Clp_primalColumnSolution(relaxation->simplex);
}

const double *relaxation_duals(const struct relaxation *relaxation)
{
    assert(relaxation->rows_solved > 0);
    return Clp_dualRowSolution(relaxation->simplex);
}
