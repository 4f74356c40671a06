/* SPDX-License-Identifier: Apache-2.0
 *
 * Subcommands of `tranche plan` that have files of their own, and the options of the
 * reference algorithms.
 */
#ifndef TRANCHE_CLI_PLAN_COMMANDS_H
#define TRANCHE_CLI_PLAN_COMMANDS_H

#include "base/option.h"
#include "plan/paper_parameters.h"

extern const struct command cmd_plan_classify;
extern const struct command cmd_plan_compare;
extern const struct command cmd_plan_draw;
extern const struct command cmd_plan_simulate;

/* One option for each parameter, for a struct with `struct paper_parameters paper`. */
#define PAPER_PARAMETER_OPTION(type, field, option, value, low, high, help)                    \
    OPTION_NUMBER(0, option, type, paper.field, "X", #value, low, high, help),
#define PAPER_PARAMETER_OPTIONS(type) PAPER_PARAMETERS_FOR(PAPER_PARAMETER_OPTION, type)

#endif
