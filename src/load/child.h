/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload processes of one slice, seen from the parent: started, listened to, ended.
 */
#ifndef TRANCHE_LOAD_CHILD_H
#define TRANCHE_LOAD_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "load/workload_protocol.h"
#include "slice/slice.h"

enum { CHILDREN_MAX = 32 };

enum child_state {
    CHILD_STARTING,
    CHILD_READY,
    CHILD_DONE,   /* said done and ended */
    CHILD_FAILED, /* see failure */
};

/* Why a child failed, as far as results tell it. */
enum child_failure {
    FAILURE_INIT,
    FAILURE_OOM,
    FAILURE_UNSUPPORTED,
    FAILURE_TIMEOUT,
    FAILURE_CRASH,
};

struct child {
    struct slice_process *process;
    enum child_state state;
    enum child_failure failure;
    char reason[PROTOCOL_TEXT_MAX]; /* of the failure */
    struct ready_event ready;
    struct done_event done;
    struct line_reader lines, log_lines;
    struct str log; /* the last lines that were no events */
    bool said_done, out_closed, log_closed;
    int64_t heard_ns; /* last line */
};

/* Where the phases that workloads time are recorded: of steps that begin at from_ns or later,
 * of the first `children`. A histogram is made when its phase is first told. */
struct phase_times {
    int64_t from_ns;
    int children;
    struct hist *times[WORKLOAD_PHASE_COUNT];
};

struct children {
    struct slice *slice;
    struct child list[CHILDREN_MAX];
    int count;
    struct workload_event event;       /* reused */
    const volatile sig_atomic_t *stop; /* set by a signal handler; NULL: never */
    int64_t ready_timeout_ns, silence_timeout_ns;
    /* Called for each group of steps. */
    void (*on_steps)(void *context, int child, const struct steps_event *steps);
    void *context;
    struct phase_times *phases; /* NULL: not recorded */
};

/* Adds a child. Errors as slice_spawn(). */
int children_start(struct children *children, const struct slice_command *command,
                   struct error *err);
/* Listens for at most timeout_ns; returns after the first news. Children that stay silent
 * too long are killed and fail. E_INTERRUPTED when told to stop. */
int children_listen(struct children *children, int64_t timeout_ns, struct error *err);
/* Whether all are at least ready. */
bool children_are_ready(const struct children *children);
/* The index of the first that failed; -1: none. */
int children_failed(const struct children *children);
/* Writes text to one child that listens; false when it is gone. */
bool child_write(struct child *child, const char *text);
/* Asks all to finish, waits for their "done" for at most timeout_ns, then kills. What they
 * still say is read, without calls of on_steps; phases are no longer recorded. */
void children_finish(struct children *children, int64_t timeout_ns);
/* Kills what is left and frees all; the slice stays the caller's. */
void children_done(struct children *children);

#endif
