/* SPDX-License-Identifier: Apache-2.0
 *
 * A process named so that a number used again is not taken for it: pid and start time.
 */
#ifndef TRANCHE_RUNTIME_PROCESS_ID_H
#define TRANCHE_RUNTIME_PROCESS_ID_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct process_id {
    pid_t pid;             /* 0: none */
    long long start_ticks; /* since boot, /proc/PID/stat field 22 */
};

/* False when there is no such process, or it has ended and is not reaped yet. */
bool process_id_of(pid_t pid, struct process_id *ret_id);
/* Whether that very process is there and no zombie. */
bool process_id_alive(const struct process_id *id);
/* Sends a signal when it is still that process. */
void process_id_signal(const struct process_id *id, int signal_number);
/* Waits until it has ended, at most this long; reaps it when it is our child. */
bool process_id_wait(const struct process_id *id, int64_t timeout_ns);

/* {"pid": N, "start": TICKS}; reading gives {0, 0} for anything else. */
json_t *process_id_to_json(const struct process_id *id);
/* Reads what process_id_to_json() wrote; {0, 0} for anything else. */
struct process_id process_id_from_json(const json_t *json);

#endif
