/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche keeper FOLDER KEY`: the process that owns one slice and its server. The runtime
 * starts it.
 */
#include "cli/commands.h"
#include "runtime/keeper.h"

static int run(const void *options, struct arguments arguments, struct error *err)
{
    (void)options;
    return keeper_run(arguments.items[0], arguments.items[1], err);
}

const struct command cmd_keeper = {
    .name = "keeper",
    .summary = "own one slice and the server in it (started by the runtime)",
    .positionals = "FOLDER KEY",
    .arguments_min = 2,
    .arguments_max = 2,
    .run = run,
    .hidden = true,
};
