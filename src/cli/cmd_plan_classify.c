/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche plan classify`: how models scale with the slice, as MIG-serving classes them.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "cli/table.h"
#include "format/measurement.h"
#include "plan/paper_bounds.h"

struct classify_options {
    const char *measurements;
    bool json;
    const char *output;
};

static const struct option_spec specs[] = {
    {.letter = 'm',
     .name = "measurements",
     .kind = OPTION_KIND_TEXT,
     .offset = offsetof(struct classify_options, measurements),
     .value_name = "FILE",
     .required = true,
     .help = "measurements, CSV"},
    OPTION_FLAG(0, "json", struct classify_options, json, "print JSON"),
    OPTION_TEXT('o', "output", struct classify_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
};

/* How many models of each batch are in each class, in the order of first appearance. */
struct tally {
    int batch;
    int counts[SCALING_COUNT];
};

static size_t tally_up(const struct scaling *found, size_t count, struct tally *tallies)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < used && tallies[at].batch != found[i].batch)
            at++;
        if (at == used)
            tallies[used++] = (struct tally){.batch = found[i].batch};
        tallies[at].counts[found[i].scaling]++;
    }
    return used;
}

static void write_text(const struct scaling *found, size_t count, struct str *text)
{
    static const struct table_column columns[] = {
        {"model", TABLE_ALIGN_LEFT},     {"board", TABLE_ALIGN_LEFT},
        {"batch", TABLE_ALIGN_RIGHT},    {"smallest", TABLE_ALIGN_LEFT},
        {"quotient", TABLE_ALIGN_RIGHT}, {"class", TABLE_ALIGN_LEFT}};
    static const struct table_column sums[] = {{"batch", TABLE_ALIGN_RIGHT},
                                               {"sub-linear", TABLE_ALIGN_RIGHT},
                                               {"linear", TABLE_ALIGN_RIGHT},
                                               {"super-linear", TABLE_ALIGN_RIGHT}};
    CLEANUP(table_free_ptr) struct table *table = table_new(columns, 6);
    CLEANUP(table_free_ptr) struct table *totals = table_new(sums, 4);
    CLEANUP(free_ptr) struct tally *tallies = xcalloc(count + 1, sizeof *tallies);
    for (size_t i = 0; i < count; i++) {
        table_add(table, found[i].model);
        table_add(table, found[i].board->slug);
        table_addf(table, "%d", found[i].batch);
        table_add(table, found[i].smallest);
        table_add_number(table, found[i].quotient, 2);
        table_add(table, scaling_class_name(found[i].scaling));
    }
    size_t used = tally_up(found, count, tallies);
    for (size_t i = 0; i < used; i++) {
        table_addf(totals, "%d", tallies[i].batch);
        for (int c = 0; c < SCALING_COUNT; c++)
            table_addf(totals, "%d", tallies[i].counts[c]);
    }
    table_write(table, text);
    str_add(text, "\n");
    table_write(totals, text);
}

static void write_json(const struct scaling *found, size_t count, struct str *text)
{
    CLEANUP(json_decref_ptr) json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:s, s:f, s:s}", "model",
                                              found[i].model, "board", found[i].board->slug,
                                              "batch", found[i].batch, "smallest",
                                              found[i].smallest, "quotient", found[i].quotient,
                                              "class", scaling_class_name(found[i].scaling)));
    json_write_pretty(list, text);
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct classify_options *given = raw;
    CLEANUP(measurement_set_done) struct measurement_set rows = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(free_ptr) struct scaling *found = NULL;
    size_t count;
    assert(arguments.count == 0);
    int rc = measurement_set_read(given->measurements, &rows, err);
    if (rc < 0)
        return rc;
    found = paper_classify(&rows, &count);
    if (given->json)
        write_json(found, count, &text);
    else
        write_text(found, count, &text);
    return output_write(given->output, &text, err);
}

const struct command cmd_plan_classify = {
    .name = "classify",
    .summary = "how models scale with the slice: sub-linear, linear, super-linear",
    .description =
        "For each model, board and batch that was measured on the whole GPU and on a smaller "
        "slice: q = throughput of the whole GPU / throughput per compute slice of the "
        "smallest slice that runs it. Linear is 6.5 <= q <= 7.5 on a board of seven slices "
        "(MIG-serving, arXiv 2109.11067), sub-linear below, super-linear above; on a board "
        "of n slices the margin is n/14.",
    .examples = "tranche plan classify -m measurements.csv",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .options_size = sizeof(struct classify_options),
    .run = run,
};
