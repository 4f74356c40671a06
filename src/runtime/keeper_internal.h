/* SPDX-License-Identifier: Apache-2.0
 *
 * A keeper's own state, and what serving and training have in common. Private to this
 * folder.
 */
#ifndef TRANCHE_RUNTIME_KEEPER_INTERNAL_H
#define TRANCHE_RUNTIME_KEEPER_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "slice/slice.h"

struct keeper {
    const char *folder, *key;
    json_t *spec;
    char *live_path, *log_path;
    struct slice *slice;
    struct slice_process *server; /* NULL: training */
    pid_t server_pid;             /* of training: the first process; 0: none */
    struct str output;            /* of stdout, until it says ready */
    int lock_fd, signal_fd, port;
    bool ready, ending;
    int64_t deadline_ns;   /* of ending */
    json_t *training_live; /* what training says in KEY.live; NULL: nothing */
};

/* A text of the spec, borrowed; NULL when it has none under key. */
const char *keeper_text(const struct keeper *keeper, const char *key);
/* A number of the spec; 0 when it has none under key. */
double keeper_number(const struct keeper *keeper, const char *key);
/* Writes KEY.live. */
int keeper_say_live(const struct keeper *keeper, struct error *err);
/* Appends what the server says to the unit's log; what cannot be written is lost. */
void keeper_write_log(const struct keeper *keeper, const char *bytes, size_t length);

/* Trains in the slice until SIGTERM; what keeper_run() returns. */
int keeper_train(struct keeper *keeper, struct error *err);

#endif
