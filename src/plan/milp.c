/* SPDX-License-Identifier: Apache-2.0
 *
 * CBC through its C interface. It is quiet, runs on one thread, and may not close the last
 * fraction of a gap by tolerance: gaps are set to zero.
 */
#include "plan/milp.h"

#include <assert.h>
#include <coin/Cbc_C_Interface.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void milp_done(struct milp *milp)
{
    vec_done(&milp->column_lower);
    vec_done(&milp->column_upper);
    vec_done(&milp->objective);
    vec_done(&milp->integer);
    vec_done(&milp->row_lower);
    vec_done(&milp->row_upper);
    vec_done(&milp->entries);
}

int milp_add_column(struct milp *milp, double lower, double upper, double objective,
                    bool integer)
{
    assert(lower <= upper);
    assert(!integer || (lower == floor(lower) && upper == floor(upper)));
    vec_add(&milp->column_lower, lower);
    vec_add(&milp->column_upper, upper);
    vec_add(&milp->objective, objective);
    vec_add(&milp->integer, integer);
    return (int)milp->objective.count - 1;
}

int milp_add_row(struct milp *milp, double lower, double upper)
{
    assert(!isnan(lower) && !isnan(upper));
    assert(lower <= upper);
    vec_add(&milp->row_lower, lower);
    vec_add(&milp->row_upper, upper);
    return (int)milp->row_lower.count - 1;
}

void milp_set(struct milp *milp, int row, int column, double value)
{
    assert(row >= 0 && column >= 0 && isfinite(value));
    assert(row < (int)milp->row_lower.count && column < (int)milp->objective.count);
    if (value != 0)
        vec_add(&milp->entries, ((struct milp_entry){row, column, value}));
}

/* The matrix by columns, as CBC takes it. */
static Cbc_Model *load(const struct milp *milp)
{
    size_t columns = milp->objective.count, count = milp->entries.count;
    int *start = xcalloc(columns + 2, sizeof *start);
    int *index = xcalloc(count + 1, sizeof *index);
    double *value = xcalloc(count + 1, sizeof *value);
    for (size_t e = 0; e < count; e++)
        start[milp->entries.data[e].column + 2]++;
    for (size_t c = 2; c < columns + 2; c++)
        start[c] += start[c - 1];
    for (size_t e = 0; e < count; e++) {
        int at = start[milp->entries.data[e].column + 1]++;
        index[at] = milp->entries.data[e].row;
        value[at] = milp->entries.data[e].value;
    }
    Cbc_Model *model = Cbc_newModel();
    Cbc_loadProblem(model, (int)columns, (int)milp->row_lower.count, start, index, value,
                    milp->column_lower.data, milp->column_upper.data, milp->objective.data,
                    milp->row_lower.data, milp->row_upper.data);
    for (size_t c = 0; c < columns; c++)
        if (milp->integer.data[c])
            Cbc_setInteger(model, (int)c);
    free(start);
    free(index);
    free(value);
    return model;
}

static void set_number(Cbc_Model *model, const char *name, double value)
{
    assert(isfinite(value));
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    Cbc_setParameter(model, name, text);
}

static void set_limits(Cbc_Model *model, const struct milp_limits *limits)
{
    Cbc_setLogLevel(model, 0);
    Cbc_setParameter(model, "log", "0");
    /* Diving crosses bounds now and then, which an assertion in CLP takes for the end of the
     * program. */
    Cbc_setParameter(model, "divingCoefficient", "off");
    set_number(model, "ratioGap", 0);
    set_number(model, "allowableGap", 1e-9);
    Cbc_setParameter(model, "timeMode", "elapsed");
    if (isfinite(limits->seconds))
        set_number(model, "seconds", fmax(limits->seconds, 0.001));
    if (limits->nodes >= 0)
        set_number(model, "maxNodes", limits->nodes);
    if (isfinite(limits->cutoff))
        set_number(model, "cutoff", limits->cutoff);
}

void milp_solve(const struct milp *milp, const struct milp_limits *limits,
                struct milp_result *ret_result)
{
    size_t columns = milp->objective.count;
    assert(milp->integer.count == columns && milp->column_lower.count == columns);
    *ret_result = (struct milp_result){.status = MILP_UNKNOWN, .bound = -INFINITY};
    Cbc_Model *model = load(milp);
    set_limits(model, limits);
    Cbc_solve(model);
    const double *best = Cbc_numberSavedSolutions(model) > 0 || Cbc_isProvenOptimal(model)
                             ? Cbc_bestSolution(model)
                             : NULL;
    /* CBC may prove an optimum without having saved a solution: it is in the columns then. */
    if (!best && Cbc_isProvenOptimal(model))
        best = Cbc_getColSolution(model);
    if (best) {
        ret_result->values = xmemdup(best, columns * sizeof *best);
        ret_result->objective = 0;
        for (size_t c = 0; c < columns; c++)
            ret_result->objective += best[c] * milp->objective.data[c];
        ret_result->status = MILP_FEASIBLE;
    }
    ret_result->bound = Cbc_getBestPossibleObjValue(model);
    if (best && Cbc_isProvenOptimal(model)) {
        ret_result->status = MILP_OPTIMAL;
        ret_result->bound = ret_result->objective;
    } else if (!best && Cbc_isProvenInfeasible(model)) {
        ret_result->status = MILP_INFEASIBLE;
        ret_result->bound = limits->cutoff;
    }
    Cbc_deleteModel(model);
}
