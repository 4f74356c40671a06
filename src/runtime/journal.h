/* SPDX-License-Identifier: Apache-2.0
 *
 * What a running plan has decided and done, one JSON object a line, each written and synced
 * before what it announces is begun:
 *
 *     {"record": "up", "settings": {…}, "plan": {…}}
 *     {"record": "gpu", "id": …, "uuid": …, "number": N, "found": "LAYOUT"}
 *     {"record": "transition", "document": {…}, "plan": {…}, "models": {…}, "at": SECONDS}
 *     {"record": "begin"|"done", "action": ID, "at": SECONDS}
 *     {"record": "complete"}
 *     {"record": "down"}
 *
 * A last line that was cut off by a crash is not there. What processes and instances exist
 * is never read from here but looked at, so that every action can be done again.
 */
#ifndef TRANCHE_RUNTIME_JOURNAL_H
#define TRANCHE_RUNTIME_JOURNAL_H

#include <jansson.h>

#include "base/error.h"

/* Appends one record and syncs. On failure (E_IO: a full disk …) the file ends as before. */
int journal_append(const char *path, const json_t *record, struct error *err);
/* The whole records as a list; *ret_records is a new reference. No file: an empty list. */
int journal_read(const char *path, json_t **ret_records, struct error *err);
/* Replaces the journal by these records, whole or not at all. */
int journal_replace(const char *path, const json_t *records, struct error *err);

#endif
