/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench compare`: whether results got worse.
 */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "cli/bench_options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "load/compare.h"
#include "load/result_document.h"

struct compare_command_options {
    const char *figures, *test, *output;
    double threshold, level;
    bool json, allow_missing;
};

static const struct option_spec options[] = {
    OPTION_TEXT('f', "figures", struct compare_command_options, figures, "LIST",
                "throughput_rps,latency_ms_mean,latency_ms_p99",
                "what is compared, by name in result documents"),
    OPTION_CHOICE('t', "test", struct compare_command_options, test, "welch|mann-whitney",
                  "welch", "Welch's t test, or the rank test of Mann and Whitney"),
    OPTION_NUMBER(0, "threshold", struct compare_command_options, threshold, "SHARE", "0.05", 0,
                  100, "changes of up to this are never worse"),
    OPTION_NUMBER(0, "level", struct compare_command_options, level, "P", "0.05", 1e-12, 0.5,
                  "significance over all comparisons together"),
    OPTION_FLAG(0, "allow-missing", struct compare_command_options, allow_missing,
                "cells that B lacks are no regression"),
    OPTION_FLAG(0, "json", struct compare_command_options, json, "print JSON"),
    OPTION_TEXT('o', "output", struct compare_command_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
};

/* "a,b" into a list ended by NULL, whose text is *ret_text. */
static const char **split(const char *list, char **ret_text)
{
    size_t count = 2;
    for (const char *at = list; *at; at++)
        count += *at == ',';
    const char **words = xcalloc(count, sizeof *words);
    char *rest = *ret_text = xstrdup(list), *word;
    for (size_t i = 0; (word = strsep(&rest, ","));)
        if (*word)
            words[i++] = word;
    return words;
}

static void add_text(const struct compare_result *result, struct str *text)
{
    static const struct table_column columns[] = {
        {"cell", TABLE_ALIGN_LEFT}, {"figure", TABLE_ALIGN_LEFT},  {"A", TABLE_ALIGN_RIGHT},
        {"B", TABLE_ALIGN_RIGHT},   {"change", TABLE_ALIGN_RIGHT}, {"p", TABLE_ALIGN_RIGHT},
        {"", TABLE_ALIGN_LEFT},
    };
    CLEANUP(table_free_ptr)
    struct table *table = table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < result->list.count; i++) {
        const struct comparison *one = &result->list.data[i];
        bool missing = one->outcome == COMPARE_MISSING;
        table_add(table, one->cell);
        table_add(table, one->figure);
        table_addf(table, "%.5g", one->before);
        if (missing) {
            table_add(table, "");
            table_add(table, "");
        } else {
            table_addf(table, "%.5g", one->after);
            table_addf(table, "%+.1f %%", 100 * one->change);
        }
        if (isnan(one->p))
            table_add(table, "-");
        else
            table_addf(table, "%.3g", one->p);
        table_add(table, compare_outcome_name(one->outcome));
    }
    table_write(table, text);
    str_addf(text, "%zu worse, %zu better, %zu the same, %zu missing, %zu cells added\n",
             result->counts[COMPARE_WORSE], result->counts[COMPARE_BETTER],
             result->counts[COMPARE_SAME], result->counts[COMPARE_MISSING], result->added);
}

static void add_json(const struct compare_command_options *given,
                     const struct compare_result *result, struct str *text)
{
    CLEANUP(json_decref_ptr) json_t *root = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < result->list.count; i++) {
        const struct comparison *one = &result->list.data[i];
        json_t *item =
            json_pack("{s:s, s:s, s:f, s:s}", "cell", one->cell, "figure", one->figure,
                      "before", one->before, "outcome", compare_outcome_name(one->outcome));
        if (one->outcome != COMPARE_MISSING) {
            json_object_set_new(item, "after", json_real(one->after));
            if (isfinite(one->change))
                json_object_set_new(item, "change", json_real(one->change));
        }
        if (!isnan(one->p))
            json_object_set_new(item, "p", json_real(one->p));
        json_array_append_new(list, item);
    }
    json_object_set_new(root, "schema", json_string("tranche.comparison/1"));
    json_object_set_new(root, "test", json_string(given->test));
    json_object_set_new(root, "threshold", json_real(given->threshold));
    json_object_set_new(root, "level", json_real(given->level));
    json_object_set_new(root, "comparisons", list);
    json_object_set_new(root, "worse", json_integer((json_int_t)result->counts[COMPARE_WORSE]));
    json_object_set_new(root, "missing",
                        json_integer((json_int_t)result->counts[COMPARE_MISSING]));
    json_write_pretty(root, text);
}

static int judge(const struct compare_command_options *given,
                 const struct compare_result *result, struct error *err)
{
    size_t worse = result->counts[COMPARE_WORSE];
    size_t missing = given->allow_missing ? 0 : result->counts[COMPARE_MISSING];
    if (worse > 0)
        return error_set(err, E_NO, "%zu of %zu figures got worse", worse, result->list.count);
    if (missing > 0)
        return error_set(err, E_NO, "%zu of %zu figures are missing (--allow-missing)", missing,
                         result->list.count);
    return 0;
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct compare_command_options *given = raw;
    CLEANUP(json_decref_ptr) json_t *before = NULL;
    CLEANUP(json_decref_ptr) json_t *after = NULL;
    CLEANUP(compare_result_done) struct compare_result result = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(free_ptr) char *names = NULL;
    CLEANUP(free_ptr) const char **figures = split(given->figures, &names);
    int failure = result_document_read(arguments.items[0], &before, err);
    if (!failure)
        failure = result_document_read(arguments.items[1], &after, err);
    if (failure)
        return failure;
    compare_documents(before, after,
                      &(struct compare_options){
                          .figures = figures,
                          .test = *given->test == 'm' ? COMPARE_MANN_WHITNEY : COMPARE_WELCH,
                          .threshold = given->threshold,
                          .level = given->level,
                      },
                      &result);
    if (result.list.count == 0)
        return error_set(err, E_INPUT, "%s: none of the figures %s in any cell",
                         arguments.items[0], given->figures);
    if (given->json)
        add_json(given, &result, &text);
    else
        add_text(&result, &text);
    failure = output_write(given->output, &text, err);
    return failure ? failure : judge(given, &result, err);
}

const struct command cmd_bench_compare = {
    .name = "compare",
    .summary = "whether results got worse",
    .positionals = "A.json B.json",
    .arguments_min = 2,
    .arguments_max = 2,
    .description =
        "Compares the cells that two result documents share. A figure is worse when its mean "
        "moved the wrong way by more than --threshold and the runs differ by the test at "
        "--level, corrected for the number of comparisons (Holm). With fewer than two runs on "
        "a side there is no test (p is -) and the threshold alone decides: measure with "
        "repetitions.\n\n"
        "Exit status 1 when a figure is worse, or a cell of A is missing in B: usable as a "
        "gate.",
    .examples = "tranche bench compare main.results/result.json branch.results/result.json\n"
                "tranche bench compare -f latency_ms_p99 --threshold 0.1 a.json b.json",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct compare_command_options),
    .run = run,
};
