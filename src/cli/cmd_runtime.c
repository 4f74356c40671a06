/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche runtime FOLDER`: the process that steers a running plan. `tranche up` starts it.
 */
#include "cli/commands.h"
#include "runtime/runtime_main.h"

static int run(const void *options, struct arguments arguments, struct error *err)
{
    (void)options;
    return runtime_main(arguments.items[0], err);
}

const struct command cmd_runtime = {
    .name = "runtime",
    .summary = "steer a running plan (started by tranche up)",
    .positionals = "FOLDER",
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
    .hidden = true,
};
