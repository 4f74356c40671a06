/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan in words and tables for people.
 */
#ifndef TRANCHE_CLI_PLAN_TEXT_H
#define TRANCHE_CLI_PLAN_TEXT_H

#include "base/str.h"
#include "format/plan_document.h"

/* Appends what the plan costs and how well that is proved, its services, and its GPUs
 * (only the first `gpus_shown` of them). */
void plan_text(const struct plan *plan, size_t gpus_shown, struct str *text);

#endif
