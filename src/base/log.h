/* SPDX-License-Identifier: Apache-2.0
 *
 * One line a message to stderr in logfmt: `level=warn msg="…" key=value`, or JSON. Only cli/,
 * control/ and kube/ (of watches) log; other libraries return errors. The level comes from
 * --verbose/--quiet. On a terminal, warnings and errors have colour unless NO_COLOR is
 * set. A line is written with one write(), so lines of several processes never mix.
 */
#ifndef TRANCHE_BASE_LOG_H
#define TRANCHE_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVEL_COUNT };

/* Writes messages of this level and of more urgent ones; for the whole process. */
void log_set_level(enum log_level level);
/* From now on a line is one JSON object with `time` (UTC), `level`, `msg` and the pairs as
 * texts, for programs that gather logs. */
void log_set_json(bool json);
/* Whether messages of this level are written. */
bool log_enabled(enum log_level level);
/* Key-value pairs after the message: log_write(LOG_INFO, "instance ready", "gpu=%s slice=%s",
 * gpu, slice). pairs may be NULL. Values with blanks must be quoted by the caller. */
void log_write(enum log_level level, const char *message, const char *pairs, ...)
    __attribute__((format(printf, 3, 4)));

#endif
