/* SPDX-License-Identifier: Apache-2.0
 *
 * Bringing a machine's GPUs to a request, whole or not at all: under a lock, with a journal,
 * read back and compared. docs/spec/gpu-apply.md tells the rules.
 *
 * A step that fails takes the GPUs back to what they held (unless told not to); a process that
 * dies leaves the journal, and the next run of the same request carries on from there.
 */
#ifndef TRANCHE_GPU_APPLY_H
#define TRANCHE_GPU_APPLY_H

#include <signal.h>

#include "gpu/change.h"
#include "gpu/driver.h"
#include "gpu/target.h"

struct gpu_request {
    /* Targets for this inventory; called under the lock. */
    int (*targets)(void *context, const struct gpu_inventory *inventory,
                   struct gpu_target_list *ret_targets, struct error *err);
    void *context;
    const char *text; /* names the request: the same text is the same request */
};

struct gpu_apply_options {
    const char *state_dir; /* lock and journal; see gpu_state_dir() */
    bool dry_run;          /* plan and report only: no lock, no journal */
    bool no_rollback;      /* after a failed step leave the GPUs as they are */
    /* This GPU alone is read and changed: a lost neighbour is in nobody's way. NULL: all. */
    const struct gpu_identity *only;
    const char *proc; /* NULL: "/proc"; where holders of device files are looked for */
    /* Set by a signal handler: no further step begins, and what was done is taken back
     * (E_INTERRUPTED). NULL: never. */
    const volatile sig_atomic_t *stop;
    /* Called before each step with its words; may be NULL. */
    void (*progress)(void *context, const char *step);
    void *progress_context;
};

enum gpu_apply_outcome {
    GPU_APPLY_UNCHANGED, /* nothing was to be done */
    GPU_APPLY_PLANNED,   /* dry run */
    GPU_APPLY_DONE,      /* done, read back and equal */
    GPU_APPLY_OUTCOME_COUNT
};

struct gpu_apply_report {
    enum gpu_apply_outcome outcome;
    struct str plan;  /* gpu_change_describe() */
    struct str notes; /* lines for the user */
    json_t *change;   /* gpu_change_to_json(); NULL before planning */
};
/* An empty report; gpu_apply() fills it, gpu_apply_report_done() frees it. */
void gpu_apply_report_init(struct gpu_apply_report *report);
/* Frees plan, notes and change. */
void gpu_apply_report_done(struct gpu_apply_report *report);

/* 0 when the machine is as requested. E_NO: the read-back differs, or a mode change is
 * pending (what is owed is named), or the layout is impossible; E_BUSY: a process holds what
 * must go, or another writer is at work; other codes from the driver, with the words whether
 * the old layout was restored. The report is filled as far as things went. */
int gpu_apply(const struct gpu_driver *driver, const struct gpu_request *request,
              const struct gpu_apply_options *options, struct gpu_apply_report *report,
              struct error *err);

/* Carries on, or takes back, the change whose journal lies in the state folder. E_NOT_FOUND
 * when there is none. */
int gpu_apply_resume(const struct gpu_driver *driver, const struct gpu_apply_options *options,
                     struct gpu_apply_report *report, struct error *err);
/* The same, back to what the GPUs held before that change. */
int gpu_apply_rollback(const struct gpu_driver *driver, const struct gpu_apply_options *options,
                       struct gpu_apply_report *report, struct error *err);

/* Appends the default state folder: $TRANCHE_STATE_DIR; for the simulated driver beside its
 * state file; /run/tranche for root; else below $XDG_RUNTIME_DIR or /tmp, by user id. */
void gpu_state_dir(enum gpu_driver_kind kind, struct str *path);

#endif
