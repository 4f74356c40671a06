/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the times that Kubernetes writes: RFC 3339. They are written by clock_utc_text().
 */
#ifndef TRANCHE_CONTROL_TIMESTAMP_H
#define TRANCHE_CONTROL_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

/* Reads "…Z" or an offset "+02:00"; fractions of a second are dropped. */
bool timestamp_parse(const char *text, int64_t *ret_seconds);

#endif
