/* SPDX-License-Identifier: Apache-2.0
 *
 * The root command and the list of what stands below it.
 */
#include "cli/commands.h"

#include <stddef.h>

#define COMMAND(name) &cmd_##name,
static const struct command *const subcommands[] = {
#include "cli/commands.def"
    NULL,
};
#undef COMMAND

const struct command command_root = {
    .name = "tranche",
    .summary = "measure, plan and run deep-learning models on NVIDIA MIG slices",
    .description =
        "Measures what each model does on each slice of a Multi-Instance GPU, plans the "
        "fewest GPUs that meet every service's rate and latency, and changes a running "
        "machine or Kubernetes cluster to that plan without falling below the capacity "
        "that its services need.\n\n"
        "Results go to standard output, or whole or not at all to the file of -o; messages "
        "go to standard error. The exit status is 0 for done or yes, 1 for no, 2 for a "
        "wrong command line, 3 for wrong input, 4 for what cannot be read, written or is "
        "missing.",
    .examples = "tranche help layout\ntranche layout place a100-40gb 3g,2g,1g,1g",
    .subcommands = subcommands,
    .version = TRANCHE_VERSION,
};
