/* SPDX-License-Identifier: Apache-2.0
 *
 * A transition in words and tables for people.
 */
#ifndef TRANCHE_CLI_TRANSITION_TEXT_H
#define TRANCHE_CLI_TRANSITION_TEXT_H

#include "base/str.h"
#include "transition/simulate.h"
#include "transition/verify.h"

/* Appends what the transition takes, its actions (only the first `actions_shown`) and, with a
 * report, the least capacity of each service. */
void transition_text(const struct transition *transition,
                     const struct transition_report *report, size_t actions_shown,
                     struct str *text);
/* The violations, or one line that says what was proved; and the least capacities. */
void transition_report_text(const struct transition *transition,
                            const struct transition_report *report, struct str *text);
/* The verdict of transition verify as JSON; a new reference. */
json_t *transition_report_json(const struct transition_report *report);

/* What a run took and what requests noticed; what lost GPUs made unavoidable. */
void simulation_text(const struct simulation *simulation, struct str *text);
/* The result of transition simulate as JSON; a new reference. */
json_t *simulation_json(const struct simulation *simulation);

#endif
