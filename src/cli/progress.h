/* SPDX-License-Identifier: Apache-2.0
 *
 * How far long work is, for a person at a terminal.
 */
#ifndef TRANCHE_CLI_PROGRESS_H
#define TRANCHE_CLI_PROGRESS_H

#include <stdint.h>

/* One line on standard error that is rewritten in place, at most ten times a second;
 * nothing at all unless that is a terminal and messages are not silenced (--quiet).
 * Zero-initialised is ready. */
struct progress {
    int64_t shown_ns; /* monotonic time of the last rewriting; 0: none yet */
};
/* Replaces the line shown before; nothing when standard error is no terminal. */
void progress_show(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Clears the line; call before a message and at the end. */
void progress_done(struct progress *progress);

#endif
