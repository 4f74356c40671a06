/* SPDX-License-Identifier: Apache-2.0
 *
 * Subcommands of `tranche plan` that have files of their own.
 */
#ifndef TRANCHE_CLI_PLAN_COMMANDS_H
#define TRANCHE_CLI_PLAN_COMMANDS_H

#include "base/option.h"

extern const struct command cmd_plan_draw;

#endif
