/* SPDX-License-Identifier: Apache-2.0
 *
 * The status of a running plan for people.
 */
#ifndef TRANCHE_CLI_STATUS_TEXT_H
#define TRANCHE_CLI_STATUS_TEXT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"

/* Appends the status of a running plan in words: GPUs, instances, services. */
void status_text(const json_t *status, struct str *text);
/* To standard output, as text or as JSON (without the plan). */
int status_print(const json_t *status, bool json, struct error *err);

#endif
