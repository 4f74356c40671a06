/* SPDX-License-Identifier: Apache-2.0
 *
 * The node agent's hands: one look at the node's GPUs, and, on order, the change of those that
 * are ours to the layouts asked for. Blocking; called from the agent's worker thread alone.
 *
 * GPUs are changed one at a time, each with gpu/apply.h's lock and journal, so that a lost or
 * busy one is in no other's way. An instance that is not asked for but in use stays until it
 * is free; what overlaps it waits.
 */
#ifndef TRANCHE_CONTROL_AGENT_GPUS_H
#define TRANCHE_CONTROL_AGENT_GPUS_H

#include <signal.h>

#include "base/arena.h"
#include "control/cdi.h"
#include "control/resources.h"
#include "gpu/driver.h"

struct agent_gpus_options {
    enum gpu_driver_kind kind;
    const char *library;    /* see struct gpu_driver_options */
    const char *state_dir;  /* lock and journal */
    const char *proc;       /* NULL: "/proc" */
    struct cdi_options cdi; /* folder NULL: no specifications */
    const volatile sig_atomic_t *stop;
};

/* What shall be; a value with its texts, made by agent_order_set(). */
struct agent_order {
    struct arena arena;
    bool change; /* false: look only */
    const struct node_gpu *gpus;
    size_t count;
};

enum agent_outcome {
    AGENT_SYNCED,  /* as ordered */
    AGENT_WAITING, /* something is in use, or another writer is at work */
    AGENT_FAILED,
    AGENT_INVALID,   /* the order cannot be: an illegal layout, a GPU of another board */
    AGENT_NO_DRIVER, /* nothing could be read; findings have no GPUs */
    AGENT_OUTCOME_COUNT
};

/* What went wrong on one GPU. */
struct agent_trouble {
    const char *uuid, *text;
};

struct agent_findings {
    struct arena arena;
    VEC(struct agent_trouble) troubles;
    enum agent_outcome outcome;
    struct node_gpu *gpus; /* those that can be read, of boards that we know */
    size_t count;
    size_t lost; /* GPUs that were there and cannot be read any more */
    char driver_version[GPU_TEXT_SIZE];
    struct str message; /* of what is not as ordered; "" */
    size_t changes;     /* GPUs on which something was changed */
};

struct agent_gpus;

/* Never NULL; the driver is opened by the first look, and again after it failed. Texts of
 * options are borrowed. */
struct agent_gpus *agent_gpus_new(const struct agent_gpus_options *options);
/* Closes the driver; NULL is fine. */
void agent_gpus_free(struct agent_gpus *gpus);
CLEANUP_DEFINE_FREE(agent_gpus)

/* Copies the GPUs, texts included. */
void agent_order_set(struct agent_order *order, bool change, const struct node_gpu *gpus,
                     size_t count);
/* Frees the order's texts; a zeroed one is fine. */
void agent_order_done(struct agent_order *order);
/* Frees the findings; zeroed ones are fine. */
void agent_findings_done(struct agent_findings *findings);

/* Changes what is ordered, then looks. Never fails: what went wrong is in the findings. */
void agent_gpus_work(struct agent_gpus *gpus, const struct agent_order *order,
                     struct agent_findings *ret);

#endif
