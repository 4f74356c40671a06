/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes well-formed JSON of others readable; json_parse_lenient() is what one calls.
 */
#ifndef TRANCHE_BASE_JSON_REPAIR_H
#define TRANCHE_BASE_JSON_REPAIR_H

#include <stddef.h>

#include "base/str.h"

/* Appends the JSON text with replacements for what json_parse() refuses in well-formed JSON:
 *
 *     U+0000, half a surrogate pair     U+FFFD, in texts and keys
 *     U+007F as a plain byte            the same, escaped
 *     a whole number past 64 bits       with ".0": a floating-point number
 *     lists and objects too deep        null
 *
 * Text that is no JSON stays none. */
void json_repair(const char *bytes, size_t length, struct str *text);

#endif
