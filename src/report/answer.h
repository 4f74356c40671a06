/* SPDX-License-Identifier: Apache-2.0
 *
 * What results say, in words: each finding applies where the cells have what it compares
 * (batches, sequence lengths, rates, slices, sharing modes), so that an experiment's question
 * is answered by its own data. docs/spec/experiments.md lists the findings.
 */
#ifndef TRANCHE_REPORT_ANSWER_H
#define TRANCHE_REPORT_ANSWER_H

#include "base/json.h"
#include "base/str.h"

/* Appends the findings as an HTML list under a heading; nothing when there is none. */
void answer_add(const json_t *document, struct str *html);
/* The same as text, a line each, for tests. */
void answer_text(const json_t *document, struct str *text);

#endif
