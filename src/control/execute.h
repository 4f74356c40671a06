/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries a round's effects out, in order, through the client's loop. Neighbours of one kind
 * that are about different objects go out together, up to `window` at once. One that the
 * server refuses for what it is (a 4xx about this object, or somebody else's object under its
 * name) is told, and those that depend on it are left out (effect_depends()); the others go on.
 * Any other failure ends the rest: the next round looks at the world anew.
 *
 *     ensure    created under its name; AlreadyExists, or no clear answer: read what is there,
 *               and take it for ours if NOTE_HASH is the same
 *     apply     server-side, forced, with the effect's manager; one that yields is preceded by
 * a read, and leaves an object without our label alone, with an event patch     merge patch,
 * tied to the effect's resourceVersion where it has one delete    with the UID, and the
 * resourceVersion where tied, as preconditions; an object that is gone, or has a
 * deletionTimestamp already, is well event     handed to kube/event.h
 *
 * Before each one `allowed` is asked (does the Lease hold? are the caches fresh?); a
 * destructive one is preceded by a quorum read of its object, whose UID and, where tied,
 * resourceVersion must be those the decision was made on.
 */
#ifndef TRANCHE_CONTROL_EXECUTE_H
#define TRANCHE_CONTROL_EXECUTE_H

#include "control/effect.h"
#include "kube/event.h"

enum execute_end {
    EXECUTE_DONE,     /* all of them */
    EXECUTE_CONFLICT, /* the world is not as thought: look again soon */
    EXECUTE_FAILED,   /* see error; look again after a backoff, or when the server says */
    EXECUTE_STOPPED,  /* by execute_stop(), or not allowed any more */
    EXECUTE_END_COUNT
};

struct execute_outcome {
    enum execute_end end;
    size_t carried_out;      /* effects */
    size_t failed;           /* index of the one that failed; SIZE_MAX: none */
    int64_t retry_after_ns;  /* what the server asked for; -1: nothing */
    bool unknown;            /* the one that failed may have been carried out */
    size_t left_out;         /* effects that depend on refused ones */
    struct error error;      /* of the first; E_NONE unless CONFLICT or FAILED */
    const struct effect *at; /* the failed one, borrowed during done() */
};

struct execute_options {
    struct kube_client *client; /* borrowed */
    struct kube_events *events; /* borrowed; NULL: events are dropped */
    const char *action;         /* of events: "Reconcile" */
    unsigned window;            /* calls at once; 0: 16 */
    bool (*allowed)(void *context, const struct effect *effect);
    /* The server's answer to a write, or NULL for a deletion of an object already gone. */
    void (*wrote)(void *context, const struct effect *effect, const json_t *answer);
    /* It was refused for what it is; may be NULL. */
    void (*refused)(void *context, const struct effect *effect, const struct error *error);
    void (*done)(void *context, const struct execute_outcome *outcome);
    void *context;
};

struct execution;

/* Takes the effects over (they are empty after). done() is called once, from a later turn of
 * the loop, and may free the execution. */
struct execution *execute_start(const struct execute_options *options, struct effects *effects);
/* Begins no further effect; done() is called when those under way have been answered. */
void execute_stop(struct execution *execution);
/* Cancels what is under way; done() is not called. NULL is fine. */
void execution_free(struct execution *execution);
CLEANUP_DEFINE_FREE(execution)

/* What effects have in common, for metrics and logs: "ensure", "apply" … */
const char *effect_kind_name(enum effect_kind kind);
/* {"effect", "kind", "namespace", "name", "subresource", "reason", "body"}: for --dry-run; a
 * new reference. */
json_t *effect_to_json(const struct effect *effect);

#endif
