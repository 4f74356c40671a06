/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings along one axis: batch, sequence length, rate, slice. Of many slices the smallest
 * and the largest are said.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "report/answer_internal.h"

#define SATURATED 0.95 /* of the highest throughput */
#define DOUBLED   2.0  /* of the tail at the lowest rate */

/* The arms of one model and task, in modes where a slice works by itself. */
struct ends {
    struct arm small, large; /* on the smallest and the largest slice */
};

static bool is_by_itself(const struct bench_cell *cell)
{
    return strcmp(cell->mode, "alone") == 0 || *cell->mode == '\0';
}

static bool same_work(const struct bench_cell *a, const struct bench_cell *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->task, b->task) == 0;
}

/* Whether `cell` is the first of its model and task. */
static bool is_first_of_work(const struct bench_cells *cells, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (same_work(&cells->list.data[i], &cells->list.data[index]))
            return false;
    return true;
}

/* False: there is no arm of this axis for the model. */
static bool find_ends(const struct bench_cells *cells, const struct bench_cell *work,
                      enum arm_axis axis, struct ends *ret_ends)
{
    struct arm arm;
    size_t position = 0;
    *ret_ends = (struct ends){0};
    while (arm_next(cells, axis, &position, &arm)) {
        const struct bench_cell *first = arm.cells[0];
        if (!same_work(first, work) || !is_by_itself(first))
            continue;
        if (ret_ends->small.count == 0 ||
            first->compute_slices < ret_ends->small.cells[0]->compute_slices)
            ret_ends->small = arm;
        if (ret_ends->large.count == 0 ||
            first->compute_slices > ret_ends->large.cells[0]->compute_slices)
            ret_ends->large = arm;
    }
    return ret_ends->small.count > 0;
}

/* " on 1g, ×3.1 on 7g": the growth of a figure at both ends; nothing known adds nothing. */
static void add_growths(struct answer *answer, const struct ends *ends, const char *figure,
                        struct str *line)
{
    const struct arm *arms[] = {&ends->small, &ends->large};
    const char *before = "";
    for (int i = 0; i < 2; i++) {
        struct ratio_sum growth = arm_growth(arms[i], figure);
        if (growth.pairs == 0 ||
            (i == 1 && strcmp(arms[0]->cells[0]->slice, arms[1]->cells[0]->slice) == 0))
            continue;
        str_add(line, before);
        answer_ratio(answer, &growth, line);
        str_addf(line, " on %s", arms[i]->cells[0]->slice);
        before = ", ";
    }
}

static int first_saturated(const struct arm *arm)
{
    double most = 0;
    for (size_t i = 0; i < arm->count; i++)
        most = fmax(most, bench_cell_figure(arm->cells[i], "throughput_rps"));
    for (size_t i = 0; i < arm->count; i++)
        if (bench_cell_figure(arm->cells[i], "throughput_rps") >= SATURATED * most)
            return arm->cells[i]->batch;
    return arm->cells[arm->count - 1]->batch;
}

static void begin_line(const struct bench_cell *cell, struct str *line)
{
    str_addf(line, "%s%s", cell->model,
             strcmp(cell->task, "training") == 0 ? ", training" : "");
}

void answer_batches(struct answer *answer)
{
    const struct bench_cells *cells = &answer->cells;
    for (size_t i = 0; i < cells->list.count; i++) {
        CLEANUP(str_done) struct str line = STR_EMPTY;
        struct ends ends;
        if (!is_first_of_work(cells, i) ||
            !find_ends(cells, &cells->list.data[i], ARM_BATCH, &ends))
            continue;
        const struct arm *small = &ends.small, *large = &ends.large;
        begin_line(small->cells[0], &line);
        str_addf(&line, ", batch %d to %d: throughput ", small->cells[0]->batch,
                 small->cells[small->count - 1]->batch);
        add_growths(answer, &ends, "throughput_rps", &line);
        str_add(&line, "; the time of a batch ");
        add_growths(answer, &ends, "latency_ms_mean", &line);
        str_addf(&line, "; %.0f %% of the highest throughput is reached at batch %d on %s",
                 100 * SATURATED, first_saturated(small), small->cells[0]->slice);
        if (strcmp(small->cells[0]->slice, large->cells[0]->slice) != 0)
            str_addf(&line, ", %d on %s", first_saturated(large), large->cells[0]->slice);
        str_add_char(&line, '.');
        answer_say(answer, &line);
    }
}

/* k of time ~ length^k between the ends of the arm. */
static double exponent(const struct arm *arm)
{
    struct ratio growth;
    struct ratio_sum sum = arm_growth(arm, "latency_ms_mean");
    growth = ratio_sum_mean(&sum);
    double lengths = (double)arm->cells[arm->count - 1]->sequence / arm->cells[0]->sequence;
    return log(growth.value) / log(lengths);
}

void answer_sequences(struct answer *answer)
{
    const struct bench_cells *cells = &answer->cells;
    for (size_t i = 0; i < cells->list.count; i++) {
        CLEANUP(str_done) struct str line = STR_EMPTY;
        struct ends ends;
        if (!is_first_of_work(cells, i) ||
            !find_ends(cells, &cells->list.data[i], ARM_SEQUENCE, &ends))
            continue;
        const struct arm *small = &ends.small;
        begin_line(small->cells[0], &line);
        str_addf(&line, ", length %d to %d: throughput ", small->cells[0]->sequence,
                 small->cells[small->count - 1]->sequence);
        add_growths(answer, &ends, "throughput_rps", &line);
        str_add(&line, "; the time of a batch ");
        add_growths(answer, &ends, "latency_ms_mean", &line);
        double power = exponent(small);
        if (isfinite(power))
            str_addf(&line, "; it grows as length to the power %.2f on %s", power,
                     small->cells[0]->slice);
        str_add_char(&line, '.');
        answer_say(answer, &line);
    }
}

/* The first cell whose tail is twice that of the lowest rate, by more than chance; or NULL. */
static const struct bench_cell *first_doubled(const struct arm *arm, const char *figure)
{
    for (size_t i = 1; i < arm->count; i++) {
        struct ratio_sum sum = {0};
        ratio_sum_add(&sum, &(struct ratio_pair){arm->cells[i], arm->cells[0], 0, 0}, figure);
        struct ratio ratio = ratio_sum_mean(&sum);
        if (ratio.value >= DOUBLED && !(ratio.low <= 1))
            return arm->cells[i];
    }
    return NULL;
}

void answer_rates(struct answer *answer)
{
    static const char FIGURE[] = "e2e_ms_p99";
    struct arm arm;
    size_t position = 0;
    while (arm_next(&answer->cells, ARM_RATE, &position, &arm)) {
        CLEANUP(str_done) struct str line = STR_EMPTY;
        const struct bench_cell *low = arm.cells[0], *high = arm.cells[arm.count - 1];
        struct ratio_sum growth = arm_growth(&arm, FIGURE);
        const struct bench_cell *doubled = first_doubled(&arm, FIGURE);
        if (growth.pairs == 0)
            continue;
        begin_line(low, &line);
        str_addf(&line, ", %s, %d \u00d7 %s", low->mode, low->instances, low->slice);
        if (low->procs > 1)
            str_addf(&line, " with %d processes", low->procs);
        str_addf(&line,
                 ": p99 from the intended time is %.4g ms at %g/s in all and %.4g ms at %g/s, ",
                 bench_cell_figure(low, FIGURE), low->rate_rps, bench_cell_figure(high, FIGURE),
                 high->rate_rps);
        answer_ratio(answer, &growth, &line);
        if (doubled)
            str_addf(&line, "; it has doubled at %g/s.", doubled->rate_rps);
        else
            str_add(&line, "; it is not shown to have doubled.");
        answer_say(answer, &line);
    }
}

/* The growth from the smallest to the largest slice, at the smallest and the largest batch. */
void answer_slices(struct answer *answer)
{
    struct arm arm;
    size_t position = 0;
    CLEANUP(str_done) struct str line = STR_EMPTY;
    const struct bench_cell *before = NULL;
    while (arm_next(&answer->cells, ARM_SLICE, &position, &arm)) {
        const struct bench_cell *low = arm.cells[0], *high = arm.cells[arm.count - 1];
        struct ratio_sum growth = arm_growth(&arm, "throughput_rps");
        if (growth.pairs == 0 || !is_by_itself(low) || !isnan(low->rate_rps))
            continue;
        if (before && !same_work(before, low)) {
            str_add_char(&line, '.');
            answer_say(answer, &line);
        }
        if (line.length == 0) {
            begin_line(low, &line);
            str_addf(&line, ": %s has %.3g times the compute of %s and gives", high->slice,
                     (double)high->compute_slices / low->compute_slices, low->slice);
        } else {
            str_add_char(&line, ',');
        }
        str_add_char(&line, ' ');
        answer_ratio(answer, &growth, &line);
        str_addf(&line, " the throughput at batch %d", low->batch);
        if (low->sequence > 0)
            str_addf(&line, " length %d", low->sequence);
        before = low;
    }
    if (line.length > 0)
        str_add_char(&line, '.');
    answer_say(answer, &line);
}
