/* SPDX-License-Identifier: Apache-2.0
 *
 * A transition as a value: the ordered actions that lead from one plan to another, and its
 * JSON, schema "tranche.transition/1" of the contract. Planners make it; verification,
 * simulation, rollback, the runtime of one machine and the controller read it and walk it
 * with transition_next().
 *
 * An action may begin once every action of its `after` list is done. What the kinds mean:
 *
 *     create_instance  the GPU instance takes its span from the moment this may begin
 *     delete_instance  … and gives it back when this is done
 *     start            the service's rate_rps counts when this is done
 *     drain            the rate is gone as soon as this may begin
 *     stop             the process has ended; the instance is kept and serves nothing
 */
#ifndef TRANCHE_TRANSITION_DOCUMENT_H
#define TRANCHE_TRANSITION_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/plan_document.h"

enum action_kind {
    ACTION_CREATE_INSTANCE,
    ACTION_DELETE_INSTANCE,
    ACTION_START,
    ACTION_DRAIN,
    ACTION_STOP,
    ACTION_KIND_COUNT
};

/* The MIG-serving paper's action that an action belongs to. */
enum action_group {
    GROUP_CREATE,
    GROUP_DELETE,
    GROUP_MIGRATE_LOCAL,
    GROUP_MIGRATE_REMOTE,
    GROUP_REPARTITION,
    ACTION_GROUP_COUNT
};

struct transition_gpu {
    const char *id; /* of `from`, or new0 …, spare0 … */
    const struct mig_board *board;
    const char *node; /* "" unknown */
};

struct transition_match {
    const char *to_id; /* id in `to` */
    const char *id;    /* id here */
};

struct transition_service {
    const char *name;
    double floor_rps;
};

struct transition_action {
    const char *id;
    enum action_kind kind;
    enum action_group group;
    int gpu; /* index into gpus */
    int profile, start;
    int service; /* index into services; -1 for create_instance and delete_instance */
    int batch, procs;
    double rate_rps;
    double seconds;
    VEC(int) after; /* indices into actions, ascending */
};

struct transition {
    struct arena arena; /* owns all text */
    const char *algorithm;
    struct plan from, to; /* their gpus and services */
    VEC(struct transition_gpu) gpus;
    VEC(struct transition_match) match;
    VEC(struct transition_service) services; /* those of from, then those of to alone */
    VEC(struct transition_action) actions;   /* each after those of its `after` list */
    int extra_gpus;                          /* borrowed ones */
    double makespan_seconds;                 /* longest path of `seconds` */
};

void transition_init(struct transition *transition);
void transition_done(struct transition *transition);

/* Reads and checks form: known kinds, GPUs, slices and services, numbers in range, ids
 * unique, `after` names actions and has no cycle. Actions are put into an order in which each
 * comes after those it waits for (the file's, where that is one). Whether the order is safe
 * is transition_verify()'s question. E_INPUT "NAME: actions[3].after: …". */
int transition_from_json(const char *name, const json_t *root,
                         struct transition *ret_transition, struct error *err);
json_t *transition_to_json(const struct transition *transition); /* new reference */
void transition_format(const struct transition *transition, struct str *text);

const char *action_kind_name(enum action_kind kind);
const char *action_group_name(enum action_group group);
/* Index of an action, GPU or service by its id or name, or -1. */
int transition_find_action(const struct transition *transition, const char *id);
int transition_find_gpu(const struct transition *transition, const char *id);
int transition_find_service(const struct transition *transition, const char *name);
/* Where the GPU of `to` with this id is carried out: an id here, or NULL. */
const char *transition_match_of(const struct transition *transition, const char *to_id);

/* min(required before, required after); 0 for a service that one of the plans lacks. */
double transition_floor_rps(const struct plan *from, const struct plan *to,
                            const char *service);
/* The longest path of `seconds`. */
double transition_makespan(const struct transition *transition);

/* Walking the order: writes the actions that may begin now, in the order of the list, and
 * returns how many there are. done and begun (may be NULL) have one entry an action; what
 * is done or begun is not named again. ret_ready has room for all actions. */
size_t transition_next(const struct transition *transition, const bool *done, const bool *begun,
                       int *ret_ready);
/* Whether every action of the set has all of its `after` list in the set. */
bool transition_is_reachable(const struct transition *transition, const bool *done);

/* The machine after the actions done, as a plan's GPUs and services: GPUs of `from`, then
 * the new and borrowed ones that hold an instance. A drained instance that was not stopped
 * has its service and rate 0. Each service requires its floor. The set must be reachable and
 * the transition verified. */
void transition_state(const struct transition *transition, const bool *done,
                      struct plan *ret_state);

#endif
