/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench …`: measurements. Each subcommand is a file cmd_bench_NAME.c and a line in
 * bench_commands.def.
 */
#include <stddef.h>

#include "cli/bench_options.h"
#include "cli/commands.h"

#define BENCH_COMMAND(name) &cmd_bench_##name,
static const struct command *const subcommands[] = {
#include "cli/bench_commands.def"
    NULL,
};
#undef BENCH_COMMAND

const struct command cmd_bench = {
    .name = "bench",
    .summary = "measure what models do on slices",
    .description =
        "Runs models in slices, one process bound to each, and writes what they did as "
        "measurements that `tranche plan` reads. On a GPU a slice is a MIG instance. Without "
        "one it is a share of CPU time that stands for it, and results say `cpu-slice "
        "(emulated)`.",
    .subcommands = subcommands,
};
