/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparison of results. See compare.h.
 */
#include "load/compare.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/stats.h"
#include "load/result_document.h"

static const char *const outcome_names[COMPARE_OUTCOME_COUNT] = {"same", "better", "worse",
                                                                 "missing"};

const char *compare_outcome_name(enum compare_outcome outcome)
{
    assert(outcome < COMPARE_OUTCOME_COUNT);
    return outcome_names[outcome];
}

struct values {
    VEC(double) list;
};

static bool is_text(const json_t *run, const char *name, const char *wanted)
{
    const char *text = json_string_value(json_object_get(run, name));
    return text && strcmp(text, wanted) == 0;
}

/* The figure of every valid run; of every run that ended well where none is valid. */
static struct values find_values(const json_t *cell, const char *figure)
{
    struct values values = {0};
    const json_t *runs = json_object_get(cell, "runs"), *run;
    size_t index;
    for (int pass = 0; pass < 2 && values.list.count == 0; pass++) {
        json_array_foreach(runs, index, run)
        {
            const json_t *value = json_object_get(json_object_get(run, "figures"), figure);
            bool counts =
                pass == 0 ? is_text(run, "verdict", "VALID") : is_text(run, "status", "ok");
            if (counts && json_is_number(value))
                vec_add(&values.list, json_number_value(value));
        }
    }
    return values;
}

static double test(const struct compare_options *options, const struct values *before,
                   const struct values *after)
{
    if (before->list.count < 2 || after->list.count < 2)
        return NAN;
    if (options->test == COMPARE_MANN_WHITNEY)
        return stats_mann_whitney_p(before->list.data, before->list.count, after->list.data,
                                    after->list.count);
    return stats_welch_p(before->list.data, before->list.count, after->list.data,
                         after->list.count);
}

static void compare_figure(const struct compare_options *options, const json_t *before_cell,
                           const json_t *after_cell, const char *figure,
                           struct compare_result *result)
{
    struct values before = find_values(before_cell, figure);
    struct values after = find_values(after_cell, figure);
    CLEANUP(str_done) struct str key = STR_EMPTY;
    if (before.list.count > 0) {
        struct comparison *comparison = vec_push(&result->list);
        result_key_text(json_object_get(before_cell, "key"), &key);
        comparison->cell = str_take(&key);
        comparison->figure = figure;
        comparison->runs_before = before.list.count;
        comparison->runs_after = after.list.count;
        comparison->before = stats_mean(before.list.data, before.list.count);
        comparison->after = stats_mean(after.list.data, after.list.count);
        comparison->change = comparison->before != 0
                                 ? comparison->after / comparison->before - 1
                                 : (comparison->after != 0 ? INFINITY : 0);
        comparison->p = test(options, &before, &after);
    }
    vec_done(&before.list);
    vec_done(&after.list);
}

static int by_p(const void *a, const void *b)
{
    const struct comparison *const *x = a, *const *y = b;
    return ((*x)->p > (*y)->p) - ((*x)->p < (*y)->p);
}

/* Holm (1979): the k-th smallest of m p values times m − k + 1, never falling. */
static void correct(struct compare_result *result)
{
    CLEANUP(free_ptr)
    struct comparison **tested = xcalloc(result->list.count + 1, sizeof(struct comparison *));
    size_t count = 0;
    double floor = 0;
    for (size_t i = 0; i < result->list.count; i++)
        if (!isnan(result->list.data[i].p))
            tested[count++] = &result->list.data[i];
    qsort(tested, count, sizeof *tested, by_p);
    for (size_t k = 0; k < count; k++) {
        floor = fmax(floor, fmin(1, tested[k]->p * (double)(count - k)));
        tested[k]->p = floor;
    }
}

static bool low_is_better(const char *figure)
{
    return strstr(figure, "_ms") || strncmp(figure, "latency", 7) == 0 ||
           strncmp(figure, "memory", 6) == 0 || strncmp(figure, "power", 5) == 0;
}

static enum compare_outcome judge(const struct compare_options *options,
                                  const struct comparison *comparison)
{
    if (comparison->runs_after == 0)
        return COMPARE_MISSING;
    if (fabs(comparison->change) <= options->threshold)
        return COMPARE_SAME;
    if (!isnan(comparison->p) && comparison->p >= options->level)
        return COMPARE_SAME;
    return (comparison->change < 0) == low_is_better(comparison->figure) ? COMPARE_BETTER
                                                                         : COMPARE_WORSE;
}

void compare_documents(const json_t *before, const json_t *after,
                       const struct compare_options *options, struct compare_result *ret_result)
{
    size_t index;
    const json_t *cell;
    struct result_index old, new;
    *ret_result = (struct compare_result){0};
    result_index_init(&old, before);
    result_index_init(&new, after);
    json_array_foreach(json_object_get(before, "cells"), index, cell)
    {
        const json_t *other = result_index_find(&new, json_object_get(cell, "key"));
        for (const char *const *figure = options->figures; *figure; figure++)
            compare_figure(options, cell, other, *figure, ret_result);
    }
    json_array_foreach(json_object_get(after, "cells"), index, cell) ret_result->added +=
        !result_index_find(&old, json_object_get(cell, "key"));
    result_index_done(&old);
    result_index_done(&new);
    correct(ret_result);
    for (size_t i = 0; i < ret_result->list.count; i++) {
        struct comparison *comparison = &ret_result->list.data[i];
        comparison->outcome = judge(options, comparison);
        ret_result->counts[comparison->outcome]++;
    }
}

void compare_result_done(struct compare_result *result)
{
    for (size_t i = 0; i < result->list.count; i++)
        free(result->list.data[i].cell);
    vec_done(&result->list);
}
