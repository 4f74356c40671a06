/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche plan draw`: a plan as a picture, in text or SVG.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "format/plan_document.h"
#include "report/plan_picture.h"

struct draw_options {
    const char *format, *output;
};

static const struct option_spec options[] = {
    OPTION_CHOICE(0, "format", struct draw_options, format, "text|svg", NULL,
                  "what to draw (default: text; svg where FILE ends in .svg)"),
    OPTION_TEXT('o', "output", struct draw_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
};

static bool wants_svg(const struct draw_options *given)
{
    if (given->format)
        return strcmp(given->format, "svg") == 0;
    return given->output && text_ends_with(given->output, ".svg");
}

static int run(const void *parsed, struct arguments arguments, struct error *err)
{
    const struct draw_options *given = parsed;
    CLEANUP(plan_done) struct plan plan;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    plan_init(&plan);
    int failed = plan_read(arguments.items[0], &plan, err);
    if (failed)
        return failed;
    if (wants_svg(given))
        plan_picture_svg(&plan, &text);
    else
        plan_picture_text(&plan, !given->output && output_has_colour(), &text);
    return output_write(given->output, &text, err);
}

const struct command cmd_plan_draw = {
    .name = "draw",
    .summary = "draw a plan: every GPU, its instances, what each serves",
    .positionals = "PLAN.json",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "Draws each GPU as a bar of memory units with its instances in the colour of "
        "their service.",
    .examples = "tranche plan draw plan.json\n"
                "tranche plan draw plan.json -o plan.svg",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct draw_options),
    .run = run,
};
