/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's lower bound and model classes.
 */
#include "plan/paper_bounds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

static int slices_of(const struct mig_board *board, int profile)
{
    assert(profile >= 0 && profile < board->profile_count);
    int slices = board->profiles[profile].compute_slices;
    return slices > 0 ? slices : 1;
}

/* Price of one compute slice of a board, the cheapest kind. */
static double slice_price(const struct problem *problem, const struct mig_board *board)
{
    double least = INFINITY;
    for (size_t k = 0; k < problem->kinds.count; k++)
        if (problem->kinds.data[k].board == board && problem->kinds.data[k].price < least)
            least = problem->kinds.data[k].price;
    return least / (board->compute_slices > 0 ? board->compute_slices : 1);
}

double paper_lower_bound(const struct problem *problem)
{
    double sum = problem->base_cost;
    for (int i = 0; i < problem->service_count; i++) {
        double least = INFINITY;
        for (int s = 0; s < problem->slot_count; s++) {
            const struct problem_option *option = problem_option(problem, i, s);
            const struct problem_slot *slot = &problem->slots[s];
            if (option->row < 0 || option->rate_rps <= 0)
                continue;
            double price = slice_price(problem, slot->board) *
                           slices_of(slot->board, slot->profile) / option->rate_rps;
            least = price < least ? price : least;
        }
        if (!problem->dropped[i] && problem->demand_rps[i] > 0)
            sum += problem->demand_rps[i] * least;
    }
    assert(sum >= problem->base_cost);
    return sum;
}

const char *scaling_class_name(enum scaling_class scaling)
{
    static const char *const names[SCALING_COUNT] = {"sub-linear", "linear", "super-linear"};
    assert(scaling < SCALING_COUNT);
    return names[scaling];
}

/* The rows of one model, board and batch seen so far. */
struct group {
    const struct measurement *smallest, *largest;
};

static bool is_base(const struct measurement *row)
{
    return row->status == STATUS_OK && row->task == TASK_INFERENCE && row->procs == 1 &&
           row->board->has_mig && row->board->profiles[row->profile].group == MIG_GROUP_BASE;
}

static void note_row(struct group *group, const struct measurement *row)
{
    assert(row->status == STATUS_OK);
    int slices = slices_of(row->board, row->profile);
    if (!group->smallest || slices < slices_of(row->board, group->smallest->profile))
        group->smallest = row;
    if (!group->largest || slices > slices_of(row->board, group->largest->profile))
        group->largest = row;
}

/* False when the largest slice, or a smaller one, was not measured. */
static bool classify(const struct group *group, struct scaling *ret_scaling)
{
    assert(group->smallest && group->largest && ret_scaling);
    const struct measurement *smallest = group->smallest, *largest = group->largest;
    const struct mig_board *board = largest->board;
    int whole = board->compute_slices;
    if (slices_of(board, largest->profile) != whole || smallest == largest)
        return false;
    double unit = smallest->throughput_rps / slices_of(board, smallest->profile);
    double quotient = largest->throughput_rps / unit, margin = whole / 14.0;
    *ret_scaling = (struct scaling){
        .model = largest->model,
        .board = board,
        .batch = largest->batch,
        .smallest = board->profiles[smallest->profile].name,
        .quotient = quotient,
        .scaling = quotient < whole - margin   ? SCALING_SUB_LINEAR
                   : quotient > whole + margin ? SCALING_SUPER_LINEAR
                                               : SCALING_LINEAR,
    };
    return true;
}

struct scaling *paper_classify(const struct measurement_set *rows, size_t *ret_count)
{
    assert(rows && ret_count);
    struct map keys = {0};
    struct group *groups = xcalloc(rows->rows.count + 1, sizeof *groups);
    for (size_t r = 0; r < rows->rows.count; r++) {
        const struct measurement *row = &rows->rows.data[r];
        if (!is_base(row))
            continue;
        char *key = xasprintf("%s/%d/%s", row->board->slug, row->batch, row->model);
        ptrdiff_t at = map_find(&keys, key);
        note_row(&groups[at >= 0 ? (size_t)at : map_put(&keys, key, NULL)], row);
        free(key);
    }
    struct scaling *found = xcalloc(keys.count + 1, sizeof *found);
    *ret_count = 0;
    for (size_t g = 0; g < keys.count; g++)
        *ret_count += classify(&groups[g], &found[*ret_count]);
    map_done(&keys);
    free(groups);
    return found;
}
