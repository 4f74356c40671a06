/* SPDX-License-Identifier: Apache-2.0
 *
 * The root of the tree of commands. A new command is a file cmd_NAME.c that defines
 * `const struct command cmd_NAME`, a line in commands.def and one in meson.build.
 */
#ifndef TRANCHE_CLI_COMMANDS_H
#define TRANCHE_CLI_COMMANDS_H

#include "base/option.h"

/* `tranche` itself. */
extern const struct command command_root;

#define COMMAND(name) extern const struct command cmd_##name;
#include "cli/commands.def"
#undef COMMAND

#endif
