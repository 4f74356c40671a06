/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands to a running runtime: a unix socket (0600) in its state folder, one JSON object
 * on one line each way, then the connection ends.
 *
 *     {"do": "status"}                                  → the status (status.h)
 *     {"do": "apply", "plan": {…}, "models": {…}, "spare": N}
 *                                                       → {"ok": true, "change": N, "actions":
 * N}
 *     {"do": "down"}                                    → {"ok": true}
 *
 * A refusal is {"ok": false, "code": "E_BUSY", "text": …}.
 */
#ifndef TRANCHE_RUNTIME_CONTROL_H
#define TRANCHE_RUNTIME_CONTROL_H

#include "runtime/runtime.h"

/* Listens; *ret_fd is non-blocking. */
int control_listen(const char *folder, int *ret_fd, struct error *err);
/* Answers one client, if one waits. */
void control_serve(int fd, struct runtime *runtime);

/* Asks the runtime of a state folder. E_NOT_FOUND when none runs there; else the error that
 * it answered. *ret_answer is a new reference. */
int control_ask(const char *folder, const json_t *question, json_t **ret_answer,
                struct error *err);

#endif
