/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche status`: the running plan of this machine.
 */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/running.h"
#include "cli/status_text.h"

struct status_options {
    const char *state_dir;
    bool watch, json;
    double interval;
};

static const struct option_spec options[] = {
    OPTION_FLAG('w', "watch", struct status_options, watch, "again and again, until Ctrl-C"),
    OPTION_NUMBER('i', "interval", struct status_options, interval, "SECONDS", "1", 0.1, 3600,
                  "time between two looks"),
    OPTION_FLAG(0, "json", struct status_options, json,
                "print JSON (with --watch one object a line)"),
    RUNNING_STATE_OPTION(struct status_options),
};

static int show(const struct status_options *given, const json_t *status, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (!given->watch)
        return status_print(status, given->json, err);
    if (given->json) {
        json_write_line(status, &text);
        str_add_char(&text, '\n');
    } else {
        if (output_is_terminal())
            str_add(&text, "\x1b[H\x1b[2J");
        status_text(status, &text);
    }
    int failed = output_write(NULL, &text, err);
    fflush(stdout);
    return failed;
}

static int run(const void *parsed, struct arguments arguments, struct error *err)
{
    const struct status_options *given = parsed;
    CLEANUP(free_ptr) char *folder = running_folder(given->state_dir);
    (void)arguments;
    running_catch_signals();
    do {
        CLEANUP(json_decref_ptr) json_t *status = NULL;
        int failed = running_ask(folder, "status", &status, err);
        if (!failed)
            failed = show(given, status, err);
        if (failed)
            return failed;
    } while (given->watch && running_sleep(given->interval));
    return 0;
}

const struct command cmd_status = {
    .name = "status",
    .summary = "show the running plan: instances, rates, percentiles",
    .arguments_max = 0,
    .description =
        "Rates and percentiles are those of the last ten seconds, as HAProxy saw the requests; "
        "\"within\" is the share of them that was answered within the objective, in percent. "
        "\"ready\" is the rate that the servers now in routing can promise.",
    .examples = "tranche status\ntranche status --watch\ntranche status --json | jq .services",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct status_options),
    .run = run,
};
