/* SPDX-License-Identifier: Apache-2.0
 *
 * See answer.h. Here: the order of findings, how ratios are said, what could not run, and what
 * the verdicts are worth.
 */
#include "report/answer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/answer_internal.h"
#include "report/html.h"

enum { FAILURES_MOST = 8 };
static const char MARK[] = "\u2020"; /* a dagger */

void answer_say(struct answer *answer, struct str *line)
{
    if (line->length > 0)
        vec_add(&answer->lines, str_take(line));
}

void answer_ratio(struct answer *answer, const struct ratio_sum *sum, struct str *line)
{
    struct ratio ratio = ratio_sum_mean(sum);
    assert(ratio.pairs > 0);
    str_addf(line, "\u00d7%.3g", ratio.value);
    if (!isnan(ratio.low))
        str_addf(line, " (%.3g to %.3g)", ratio.low, ratio.high);
    if (!ratio.valid)
        str_add(line, MARK);
    answer->marked |= !ratio.valid;
}

const char *answer_judgement(const struct ratio_sum *sum, bool low_is_good)
{
    struct ratio ratio = ratio_sum_mean(sum);
    if (isnan(ratio.low))
        return "without an interval";
    if (ratio.low <= 1 && ratio.high >= 1)
        return "not shown to differ";
    return (ratio.high < 1) == low_is_good ? "better" : "worse";
}

/* Arms. */

double arm_value(const struct bench_cell *cell, enum arm_axis axis)
{
    switch (axis) {
    case ARM_BATCH:
        return cell->batch;
    case ARM_SEQUENCE:
        return cell->sequence;
    case ARM_RATE:
        return cell->rate_rps;
    case ARM_SLICE:
        break;
    }
    return cell->compute_slices;
}

static bool same_but(const struct bench_cell *a, const struct bench_cell *b, enum arm_axis axis)
{
    bool same_load = axis == ARM_RATE ? !isnan(a->rate_rps) && !isnan(b->rate_rps)
                                      : strcmp(a->load, b->load) == 0;
    return same_load && strcmp(a->model, b->model) == 0 && strcmp(a->task, b->task) == 0 &&
           strcmp(a->mode, b->mode) == 0 && a->procs == b->procs &&
           (axis == ARM_SLICE || strcmp(a->slice, b->slice) == 0) &&
           (axis == ARM_BATCH || a->batch == b->batch) &&
           (axis == ARM_SEQUENCE || a->sequence == b->sequence);
}

/* Puts the cell into its place; one with a value that is there already is left out. */
static void insert(struct arm *arm, const struct bench_cell *cell, enum arm_axis axis)
{
    size_t at = arm->count;
    double value = arm_value(cell, axis);
    while (at > 0 && arm_value(arm->cells[at - 1], axis) > value)
        at--;
    if (arm->count == ARM_CELLS_MAX || !(value > 0) ||
        (at > 0 && arm_value(arm->cells[at - 1], axis) == value))
        return;
    memmove(&arm->cells[at + 1], &arm->cells[at], (arm->count - at) * sizeof arm->cells[0]);
    arm->cells[at] = cell;
    arm->count++;
}

bool arm_next(const struct bench_cells *cells, enum arm_axis axis, size_t *position,
              struct arm *ret_arm)
{
    for (; *position < cells->list.count; (*position)++) {
        const struct bench_cell *first = &cells->list.data[*position];
        bool seen = false;
        for (size_t i = 0; i < *position && !seen; i++)
            seen = same_but(&cells->list.data[i], first, axis);
        if (seen)
            continue;
        ret_arm->count = 0;
        for (size_t i = *position; i < cells->list.count; i++)
            if (cells->list.data[i].ok && same_but(first, &cells->list.data[i], axis))
                insert(ret_arm, &cells->list.data[i], axis);
        if (ret_arm->count >= 2)
            return (*position)++, true;
    }
    return false;
}

struct ratio_sum arm_growth(const struct arm *arm, const char *figure)
{
    struct ratio_sum sum = {0};
    assert(arm->count >= 2);
    ratio_sum_add(&sum, &(struct ratio_pair){arm->cells[arm->count - 1], arm->cells[0], 0, 0},
                  figure);
    return sum;
}

/* What did not run. */

static const json_t *failed_run(const struct bench_cell *cell)
{
    return cell->ok ? NULL : json_array_get(json_object_get(cell->json, "runs"), 0);
}

static void add_failure(const struct bench_cell *cell, const json_t *run, struct str *line)
{
    const char *status = json_string_value(json_object_get(run, "status"));
    str_addf(line, "%s %s batch %d", cell->model, cell->slice, cell->batch);
    if (cell->sequence > 0)
        str_addf(line, " length %d", cell->sequence);
    str_addf(line, " %s (%s)", cell->mode, status ? status : "no run");
}

static void say_failures(struct answer *answer)
{
    CLEANUP(str_done) struct str line = STR_EMPTY;
    size_t failed = 0;
    const char *reason = NULL;
    for (size_t i = 0; i < answer->cells.list.count; i++) {
        const struct bench_cell *cell = &answer->cells.list.data[i];
        const json_t *run = failed_run(cell);
        if (!run)
            continue;
        if (failed++ < FAILURES_MOST) {
            str_add(&line, failed > 1 ? ", " : "Did not run: ");
            add_failure(cell, run, &line);
        }
        if (!reason)
            reason = json_string_value(json_object_get(run, "reason"));
    }
    if (failed > FAILURES_MOST)
        str_addf(&line, " and %zu more", failed - FAILURES_MOST);
    if (failed > 0 && reason)
        str_addf(&line, ". The first says: %s", reason);
    if (failed > 0)
        str_add_char(&line, '.');
    else if (answer->cells.list.count > 0)
        str_addf(&line, "Everything fitted: all %zu cells ran.", answer->cells.list.count);
    answer_say(answer, &line);
}

static void say_validity(struct answer *answer)
{
    CLEANUP(str_done) struct str line = STR_EMPTY;
    size_t valid = 0, emulated = 0, count = answer->cells.list.count;
    for (size_t i = 0; i < count; i++) {
        valid += answer->cells.list.data[i].valid;
        emulated += strcmp(answer->cells.list.data[i].device, "cpu-slice") == 0;
    }
    str_addf(&line, "%zu of %zu cells are VALID", valid, count);
    if (answer->marked)
        str_addf(&line, "; ratios with %s have INVALID runs in them, for want of others", MARK);
    str_add(&line,
            ". Intervals are of 95 %, over repetitions; a ratio without one has a side with "
            "one such run.");
    if (emulated > 0)
        str_add(&line, " Measured on CPU slices, which imitate a share of compute: not a GPU.");
    answer_say(answer, &line);
}

static bool every_cell_ran(const struct bench_cells *cells)
{
    for (size_t i = 0; i < cells->list.count; i++)
        if (!cells->list.data[i].ok)
            return false;
    return true;
}

static void find_all(const json_t *document, struct answer *answer)
{
    static void (*const findings[])(struct answer *) = {
        answer_sharing, answer_neighbours, answer_rates, answer_sequences,
        answer_batches, answer_slices,     answer_whole,
    };
    answer->cells = bench_cells_read(document);
    bool all_ran = every_cell_ran(&answer->cells);
    if (!all_ran)
        say_failures(answer);
    for (size_t i = 0; i < sizeof findings / sizeof *findings; i++)
        findings[i](answer);
    if (answer->cells.list.count == 0)
        return;
    if (all_ran)
        say_failures(answer);
    say_validity(answer);
}

static void answer_done(struct answer *answer)
{
    for (size_t i = 0; i < answer->lines.count; i++)
        free(answer->lines.data[i]);
    vec_done(&answer->lines);
    bench_cells_done(&answer->cells);
}

void answer_add(const json_t *document, struct str *html)
{
    CLEANUP(answer_done) struct answer answer = {0};
    find_all(document, &answer);
    if (answer.lines.count == 0)
        return;
    html_add_heading(html, 3, "Answer");
    html_list_begin(html, "answer");
    for (size_t i = 0; i < answer.lines.count; i++)
        html_list_item(html, answer.lines.data[i]);
    html_list_end(html);
}

void answer_text(const json_t *document, struct str *text)
{
    CLEANUP(answer_done) struct answer answer = {0};
    find_all(document, &answer);
    for (size_t i = 0; i < answer.lines.count; i++)
        str_addf(text, "%s\n", answer.lines.data[i]);
}
