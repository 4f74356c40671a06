/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench compare`: whether results got worse.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
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

/* One side of the comparison. */
struct side {
    json_t *document; /* measurements become one, too */
    bool is_csv;
};

static void sides_done(struct side (*sides)[2])
{
    for (int i = 0; i < 2; i++)
        json_decref((*sides)[i].document);
}

/* What else the file could have been, after what is wrong with it as CSV. */
static int not_measurements(int failure, struct error *err)
{
    CLEANUP(free_ptr) char *text = xstrdup(err->text);

    assert(failure < 0);
    return error_set(err, (enum error_code) - failure,
                     "%s (read as measurements, CSV; a result document of bench run is JSON)",
                     text);
}

static int measurements_side(const char *path, const struct str *bytes, struct side *ret_side,
                             struct error *err)
{
    CLEANUP(measurement_set_done) struct measurement_set set = {0};

    int failure = measurement_set_parse(path, bytes->bytes, bytes->length, &set, err);
    if (failure)
        return not_measurements(failure, err);
    *ret_side = (struct side){compare_measurements_document(&set), true};
    return 0;
}

/* A result document, which begins with a brace, or the contract's CSV. */
static int side_read(const char *path, struct side *ret_side, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *document = NULL;

    int failure = file_read(path, FILE_SIZE_LIMIT, &bytes, err);
    if (failure)
        return failure;
    const char *name = strcmp(path, "-") ? path : "(stdin)";
    bool is_json = bytes.length && bytes.bytes[strspn(bytes.bytes, " \t\r\n")] == '{';
    if (!is_json && !text_ends_with(path, ".json"))
        return measurements_side(name, &bytes, ret_side, err);
    failure = json_parse(name, bytes.bytes, bytes.length, &document, err);
    if (!failure)
        failure = result_document_check(name, document, err);
    if (!failure)
        *ret_side = (struct side){STEAL(document), false};
    return failure;
}

static int sides_read(struct arguments arguments, struct side sides[2], struct error *err)
{
    assert(arguments.count == 2);
    for (int i = 0; i < 2; i++) {
        int failure = side_read(arguments.items[i], &sides[i], err);
        if (failure)
            return failure;
    }
    if (sides[0].is_csv != sides[1].is_csv)
        return error_set(err, E_INPUT,
                         "%s is %s and %s is %s: expected two of a kind; bench run writes "
                         "both, result.json and measurements.csv",
                         arguments.items[0], sides[0].is_csv ? "CSV" : "a result document",
                         arguments.items[1], sides[1].is_csv ? "CSV" : "a result document");
    return 0;
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

/* test: "none" when there is none. */
static void add_json(const struct compare_command_options *given, const char *test,
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
    json_object_set_new(root, "test", json_string(test));
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
    CLEANUP(sides_done) struct side sides[2] = {0};
    CLEANUP(compare_result_done) struct compare_result result = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(free_ptr) char *names = NULL;
    CLEANUP(free_ptr) const char **figures = split(given->figures, &names);
    int failure = sides_read(arguments, sides, err);
    if (failure)
        return failure;
    compare_documents(sides[0].document, sides[1].document,
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
        add_json(given, sides[0].is_csv ? "none" : given->test, &result, &text);
    else
        add_text(&result, &text);
    if (!given->json && sides[0].is_csv)
        str_add(&text, "no test is possible: measurements have one value a cell; the threshold "
                       "alone decides\n");
    failure = output_write(given->output, &text, err);
    return failure ? failure : judge(given, &result, err);
}

const struct command cmd_bench_compare = {
    .name = "compare",
    .summary = "whether results got worse",
    .positionals = "A B",
    .arguments_min = 2,
    .arguments_max = 2,
    .description =
        "Compares the cells that two result documents (result.json of bench run) share, or the "
        "rows of two measurements CSVs, which have one value a cell and so no test. A figure "
        "is worse when its mean "
        "moved the wrong way by more than --threshold and the runs differ by the test at "
        "--level, corrected for the number of comparisons (Holm). With fewer than two runs on "
        "a side there is no test (p is -) and the threshold alone decides: measure with "
        "repetitions.\n\n"
        "Exit status 1 when a figure is worse, or a cell of A is missing in B: usable as a "
        "gate.",
    .examples = "tranche bench compare main.results/result.json branch.results/result.json\n"
                "tranche bench compare main.csv branch.csv --threshold 0.1\n"
                "tranche bench compare -f latency_ms_p99 --threshold 0.1 a.json b.json",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct compare_command_options),
    .run = run,
};
