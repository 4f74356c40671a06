/* SPDX-License-Identifier: Apache-2.0
 *
 * Times as Kubernetes writes them: RFC 3339 in UTC, whole seconds.
 */
#ifndef TRANCHE_CONTROL_TIMESTAMP_H
#define TRANCHE_CONTROL_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

/* "2026-03-01T12:00:00Z" of seconds since 1970, which must lie in the years 1 to 9999. */
void timestamp_format(int64_t seconds, char ret_text[21]);
/* Reads "…Z" or an offset "+02:00"; fractions of a second are dropped. */
bool timestamp_parse(const char *text, int64_t *ret_seconds);

#endif
