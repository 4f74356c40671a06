/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche report`: one self-contained page from measurements, plans and results.
 */
#include <stdint.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/report.h"

struct report_options {
    const char *output, *title;
};

static const struct option_spec options[] = {
    OPTION_TEXT('o', "output", struct report_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
    OPTION_TEXT(0, "title", struct report_options, title, "TEXT", "tranche report",
                "title of the page"),
};

static int run(const void *parsed, struct arguments arguments, struct error *err)
{
    const struct report_options *given = parsed;
    CLEANUP(str_done) struct str html = STR_EMPTY;
    int failed = report_page(given->title, arguments.items, arguments.count, &html, err);
    return failed ? failed : output_write(given->output, &html, err);
}

const struct command cmd_report = {
    .name = "report",
    .summary = "make one HTML page of measurements, plans and results",
    .positionals = "FILE…",
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .description =
        "Makes one self-contained HTML page (pictures inside, no script, nothing fetched) with "
        "a "
        "section for each file: measurements as CSV, plans, transitions, changes as they were "
        "measured "
        "(`tranche apply --json`), summaries of what was served and benchmark results.",
    .examples = "tranche report measurements.csv plan.json -o report.html",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct report_options),
    .run = run,
};
