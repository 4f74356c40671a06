/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeping in two stages. What stands in the way of keeping is hardly ever the partition of
 * an old GPU but the cost: so little is left over that few services can afford a cover near
 * the one they had. So covers are searched first, as if slots could be cut from GPUs at will
 * (y fractional, no old GPUs): a small program, whose size does not depend on the number of
 * GPUs, and whose bound holds for every plan. Then, with the covers fixed, whole old GPUs
 * are chosen for them. Where that keeps less, the covers are searched again beside fractional
 * old GPUs, and in the neighbourhood of the best plan.
 */
#include "plan/keep_stages.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { GPU_NODES = 200 }; /* for whole GPUs of known covers */

/* Rows that hold old GPUs (w) to nothing but their number and to what stays (k). */
static bool *find_gpu_rows(const struct keep_model *model)
{
    const struct milp *milp = &model->milp;
    bool *with_gpus = xcalloc(milp->row_lower.count + 1, sizeof *with_gpus);
    bool *with_others = xcalloc(milp->row_lower.count + 1, sizeof *with_others);
    int cells = model->problem->service_count * model->problem->slot_count;
    for (size_t e = 0; e < milp->entries.count; e++) {
        const struct milp_entry *entry = &milp->entries.data[e];
        with_gpus[entry->row] |= entry->column >= model->first_w;
        with_others[entry->row] |= entry->column < cells || (entry->column >= model->first_y &&
                                                             entry->column < model->first_w);
    }
    for (size_t r = 0; r < milp->row_lower.count; r++)
        with_gpus[r] &= !with_others[r];
    free(with_others);
    return with_gpus;
}

/* More instances than this never help: they cover the service alone, and all that there were
 * stay. */
static double count_limit(const struct keep_model *model, int cell)
{
    const struct problem *problem = model->problem;
    int service = cell / problem->slot_count, kept = model->kept_column[cell];
    const struct problem_option *option =
        problem_option(problem, service, cell % problem->slot_count);
    if (option->row < 0 || problem->dropped[service])
        return 0;
    double needed = ceil(problem->demand_rps[service] / option->rate_rps) + 1;
    double there = kept < 0 ? 0 : model->milp.column_upper.data[kept];
    return fmax(fmax(needed, there), problem->instances_min[service]);
}

int keep_stage_columns(const struct keep_model *model, const struct keep_stage *stage)
{
    assert(model->first_w > 0);
    return stage->with_gpus ? (int)model->milp.objective.count : model->first_w;
}

/* The program with whole covers and fractional GPUs; old GPUs are left out unless with_gpus:
 * then any partition of them is one of new GPUs of their kind. */
static void build_covers(const struct keep_model *model, const struct keep_stage *stage,
                         struct milp *ret_milp)
{
    const struct milp *whole = &model->milp;
    int cells = model->problem->service_count * model->problem->slot_count;
    int columns = keep_stage_columns(model, stage);
    bool *left_out = find_gpu_rows(model);
    int *row_of = xcalloc(whole->row_lower.count + 1, sizeof *row_of);
    *ret_milp = (struct milp){0};
    for (int c = 0; c < columns; c++) {
        double lower = whole->column_lower.data[c], upper = whole->column_upper.data[c];
        if (c < cells)
            upper = count_limit(model, c);
        if (c < cells && stage->around) {
            lower = fmin(fmax(0, stage->around[c] - stage->distance), upper);
            upper = fmin(upper, stage->around[c] + stage->distance);
        }
        milp_add_column(ret_milp, lower, upper, whole->objective.data[c], c < model->first_y);
    }
    for (size_t r = 0; r < whole->row_lower.count; r++)
        row_of[r] =
            left_out[r] && !stage->with_gpus
                ? -1
                : milp_add_row(ret_milp, whole->row_lower.data[r], whole->row_upper.data[r]);
    for (size_t e = 0; e < whole->entries.count; e++) {
        const struct milp_entry *entry = &whole->entries.data[e];
        if (entry->column < columns && row_of[entry->row] >= 0)
            milp_set(ret_milp, row_of[entry->row], entry->column, entry->value);
    }
    free(left_out);
    free(row_of);
}

bool keep_stage_covers(const struct keep_model *model, const struct keep_search *search,
                       const struct keep_stage *stage, int *x, int *bound)
{
    CLEANUP(milp_done) struct milp milp;
    struct milp_result result;
    int cells = model->problem->service_count * model->problem->slot_count;
    assert(search->kept >= 0 && *bound >= search->kept);
    build_covers(model, stage, &milp);
    milp_solve(&milp,
               &(struct milp_limits){.cutoff = -search->kept - 0.5,
                                     .seconds = search->seconds,
                                     .nodes = search->nodes},
               &result);
    if (!stage->around) { /* else it holds for the neighbourhood alone */
        int proved = keep_model_proved(&result, search->kept);
        *bound = proved < *bound ? proved : *bound;
    }
    bool found = result.values != NULL && -result.objective > search->kept + 0.5;
    for (int c = 0; found && c < cells; c++)
        x[c] = (int)lround(result.values[c]);
    free(result.values);
    return found;
}

bool keep_stage_gpus(const struct keep_model *model, const struct keep_search *search,
                     const int *x, bool *keep)
{
    const struct milp *whole = &model->milp;
    struct milp fixed = *whole; /* but for its own bounds */
    struct milp_result result;
    int cells = model->problem->service_count * model->problem->slot_count;
    size_t columns = whole->objective.count;
    fixed.column_lower.data =
        xmemdup(whole->column_lower.data, columns * sizeof *whole->column_lower.data);
    fixed.column_upper.data =
        xmemdup(whole->column_upper.data, columns * sizeof *whole->column_upper.data);
    for (int c = 0; c < cells; c++)
        fixed.column_lower.data[c] = fixed.column_upper.data[c] = x[c];
    milp_solve(&fixed,
               &(struct milp_limits){.cutoff = -search->kept - 0.5,
                                     .seconds = search->seconds,
                                     .nodes = GPU_NODES},
               &result);
    bool found = result.values != NULL && -result.objective > search->kept + 0.5;
    if (found)
        keep_model_read(model, result.values, keep);
    free(result.values);
    free(fixed.column_lower.data);
    free(fixed.column_upper.data);
    return found;
}
