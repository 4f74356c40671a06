/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing what we want with what is there, so that nothing is written that is there already.
 */
#ifndef TRANCHE_CONTROL_JSON_COVERS_H
#define TRANCHE_CONTROL_JSON_COVERS_H

#include <jansson.h>
#include <stdbool.h>

/* Whether `actual` has all that `wanted` says: members of objects one by one (what is only in
 * actual does not matter; null in wanted means absent, as in a merge patch; an empty text, list
 * or object may be absent), lists item by item and of one length, numbers by value. */
bool json_covers(const json_t *actual, const json_t *wanted);

/* The value at a path of member names, or NULL: json_at(object, "spec", "template", NULL). */
const json_t *json_at(const json_t *object, ...) __attribute__((sentinel));

#endif
