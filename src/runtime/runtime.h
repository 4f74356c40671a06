/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan running on one machine. A runtime holds what shall be (the plan in force, or a
 * change under way) against what is (instances, keepers, HAProxy's servers) and closes the
 * gap, tick by tick; a new start after a crash is the same: what was decided comes from the
 * journal, what is, is looked at.
 *
 * One thread. Nothing here waits for a server: starting, draining and ending are seen at
 * later ticks. docs/spec/runtime.md tells the rules.
 */
#ifndef TRANCHE_RUNTIME_RUNTIME_H
#define TRANCHE_RUNTIME_RUNTIME_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "format/plan_document.h"
#include "runtime/events.h"
#include "runtime/machine.h"
#include "runtime/router.h"
#include "runtime/timeline.h"
#include "runtime/traffic.h"
#include "runtime/unit.h"
#include "transition/document.h"

enum runtime_phase {
    PHASE_STARTING, /* not every server has answered yet */
    PHASE_SERVING,
    PHASE_CHANGING,
    PHASE_ENDING,
    PHASE_ENDED,
    PHASE_COUNT
};

/* A change under way. */
struct change {
    struct transition transition;
    struct plan to;
    bool *begun, *done; /* one entry an action */
    int *gpus;          /* machine's GPU of each of the transition's */
    struct timeline timeline;
    int64_t retry_ns;
    bool renamed; /* the GPUs have the ids of `to` already */
};

struct runtime {
    char *folder, *journal_path;
    int lock_fd;
    json_t *settings; /* see runtime_settings_check() */
    struct plan plan; /* in force, or what a change starts from */
    struct change *change;
    int change_number;
    json_t *last_change; /* how the last one went, timeline.h's; NULL: none yet */
    enum runtime_phase phase;
    struct machine machine;
    struct router router;
    struct traffic traffic;
    struct events events;
    VEC(struct unit *) units;
    unsigned long long requests_before[ROUTER_BACKENDS]; /* of a HAProxy that died */
    unsigned long long failed_before[ROUTER_BACKENDS];
    struct router_statistics statistics; /* last read */
    int64_t statistics_ns, blocked_said_ns;
    bool machine_open, router_open, statistics_read;
};

/* Opens the state folder, takes its lock and reads the journal. E_BUSY when a runtime is at
 * work there, E_NOT_FOUND when nothing was brought up there. */
int runtime_open(const char *folder, struct runtime **ret_runtime, struct error *err);
/* Leaves everything running. NULL is fine. */
void runtime_free(struct runtime *runtime);
CLEANUP_DEFINE_FREE(runtime)

/* Takes GPUs, brings layouts and HAProxy about, adopts what runs, ends what should not. */
int runtime_start(struct runtime *runtime, struct error *err);
/* Looks and acts once. */
void runtime_tick(struct runtime *runtime);
/* Reads HAProxy's counters now, for a status that is no older than the question. */
void runtime_refresh(struct runtime *runtime);
/* Begins a change to a plan. E_BUSY while another is under way, E_NO when no transition
 * keeps the floor (with `spare` borrowed GPUs), E_MISSING without enough GPUs; nothing was
 * begun then. models: as in the settings, for services that are new; may be NULL. */
int runtime_apply(struct runtime *runtime, const json_t *plan, const json_t *models, int spare,
                  struct error *err);
/* Ends everything; PHASE_ENDED when it is done. */
void runtime_down(struct runtime *runtime);

/* Writes the journal of a plan that shall be brought up; a runtime opened afterwards does
 * it. */
int runtime_prepare(const char *folder, const json_t *settings, const json_t *plan,
                    struct error *err);
/* Whether no runtime has got as far as taking a GPU for what was brought up. */
bool runtime_is_first_start(const struct runtime *runtime);
/* Undoes a start that failed, and forgets it. */
void runtime_abandon(struct runtime *runtime);

/* ---- between the files of this folder --------------------------------------------- */

/* "starting", "serving", "changing", "ending", "ended". */
const char *runtime_phase_name(enum runtime_phase phase);
/* The settings' entry of a service's model, borrowed; NULL: none. */
const json_t *runtime_model(const struct runtime *runtime, const char *service);
/* The latency objective of a service, ms; NAN: none. */
double runtime_objective_ms(const struct runtime *runtime, const char *service);
/* Whether its models say that it trains. */
bool runtime_is_training(const struct runtime *runtime, const char *service);
/* Whether it does what it is there for: answers requests, or trains. */
bool runtime_unit_works(const struct unit *unit);
/* Sum of the rates of the service's units that answer and are not drained. */
double runtime_capacity_rps(const struct runtime *runtime, const char *service);
/* The unit on this GPU (of the machine) at this memory unit, borrowed; NULL: none. */
struct unit *runtime_find_unit(const struct runtime *runtime, int gpu, int start);
/* The unit of a plan's or transition's instance; want is UNIT_SERVE. */
struct unit *runtime_add_unit(struct runtime *runtime, int gpu, const struct plan *plan,
                              const struct plan_instance *instance);
/* Frees a unit that has no process any more. */
void runtime_remove_unit(struct runtime *runtime, struct unit *unit);
/* Appends a record to the journal, synced, and drops the reference. E_IO. */
int runtime_record(struct runtime *runtime, json_t *record_stolen, struct error *err);
/* Takes the journal in: plan, GPUs, a change under way. E_NOT_FOUND for an empty one; E_INPUT
 * for a record that cannot be read. */
int runtime_replay(struct runtime *runtime, struct error *err);
/* The journal shortened to what is so now. */
int runtime_compact(struct runtime *runtime, struct error *err);

/* A change none of whose actions has begun. Takes over what is in transition and plan;
 * started_unix_s is wall time, seconds. */
struct change *change_new(const struct transition *stolen, const struct plan *to_stolen,
                          double started_unix_s);
/* NULL is fine; units and GPUs stay as they are. */
void change_free(struct change *change);
/* What a begun action makes of the units. */
void change_enact(struct runtime *runtime, int action);
/* Notes an action as begun and done; what a stop has ended is forgotten. */
void change_settle(struct runtime *runtime, int action);
/* GPUs for the ids that no GPU has yet. */
int change_take_gpus(struct runtime *runtime, struct error *err);
/* Begins what may begin, settles what is done, and ends the change when all is. */
void change_tick(struct runtime *runtime, int64_t now_ns);

/* The keeper's spec of a unit, a new reference. */
int runtime_unit_spec(struct runtime *runtime, const struct unit *unit, json_t **ret_spec,
                      struct error *err);

#endif
