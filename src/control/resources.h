/* SPDX-License-Identifier: Apache-2.0
 *
 * Our custom resources as values. One table of fields a kind (schema.h) yields both the
 * reading here and the structural schemas of the definitions in deploy/. Reading is tolerant:
 * unknown fields and, in status, unknown words of an enumeration are passed over; a spec that
 * is wrong is an error that names object and field, and makes the object Stalled.
 *
 * Texts are borrowed from the JSON object (defaults from the arena); lists are owned by the
 * arena given: never push to them.
 */
#ifndef TRANCHE_CONTROL_RESOURCES_H
#define TRANCHE_CONTROL_RESOURCES_H

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "format/service.h"
#include "transition/document.h"

struct object_meta {
    const char *namespace; /* "" for cluster-scoped ones */
    const char *name, *uid, *resource_version;
    long long generation;
    bool deleting;      /* has a deletionTimestamp */
    bool has_finalizer; /* ours */
    const json_t *json; /* the object, borrowed */
};

/* GpuService, namespaced: what a user asks for. */
struct gpu_service {
    struct object_meta meta;
    const char *pool; /* spec.pool, default "default" */
    const char *model;
    enum task task;
    double rate_rps, latency_ms, percentile; /* latency NAN: none (training) */
    double max_wait_ms; /* latency / 4 where the spec has none; NAN: training */
    int min_instances;
    enum spread spread;
    int priority;
    int drain_seconds; /* between leaving the endpoints and deletion; default 15 */
    int port;          /* of the pods, default 8000 */
    VEC(const char *) allowed_slices; /* empty: any */
    const char *gateway;              /* parent of the HTTPRoute "namespace/name"; "" none */
    const json_t *pod_template;       /* metadata and spec, as of a Deployment */
};

/* PerfProfile, cluster: rows of a measurement file, under one model and board. */
struct perf_profile {
    struct object_meta meta;
    const char *model;
    const struct mig_board *board;
    VEC(struct measurement) rows;
};

enum actuator_kind {
    ACTUATOR_AUTO,
    ACTUATOR_AGENT,
    ACTUATOR_DRA,
    ACTUATOR_MIG_MANAGER,
    ACTUATOR_SIM,
    ACTUATOR_KIND_COUNT
};

/* GpuPool, cluster: which nodes, by what means, within which budgets. */
/* When Transitions may begin; both texts "" : at any time. See control/window.h. */
struct pool_window {
    const char *start, *end; /* "HH:MM" in UTC */
    VEC(const char *) days;  /* "Mon" …, on which it starts; none: every day */
};

struct gpu_pool {
    struct object_meta meta;
    const json_t *node_selector; /* labels and values; NULL: every node with GPUs */
    enum actuator_kind actuator;
    bool exact_placement; /* dra: write the allocation ourselves */
    enum latency_rule latency_rule;
    double derate;
    int spare_gpus;             /* that a transition may borrow */
    int max_unavailable_gpus;   /* touched at once; 0: no limit */
    int replan_seconds;         /* least time between two plans; default 30 */
    double headroom;            /* plans are made for rate × this; default 1.0 */
    int action_timeout_seconds; /* then Stalled; default 600 */
    struct pool_window window;
    bool paused;
};

struct partition_item {
    const char *gpu_uuid;
    const char *node;
    const struct mig_board *board;
    int profile, start;
    const char *service; /* "namespace/name"; "" unused */
    int batch, procs;
    double max_wait_ms, rate_rps, latency_ms; /* NAN: none */
};

/* PartitionPlan, cluster, immutable. A plan of many instances is several objects: parts. */
struct partition_plan {
    struct object_meta meta;
    const char *pool;
    const char *plan; /* name common to the parts */
    int part, parts;
    const char *input_hash; /* of services, profiles and inventory that it was made from */
    const char *algorithm;
    double cost, bound_cost;
    VEC(struct partition_item) items;
};

enum action_phase {
    PHASE_PENDING,
    PHASE_STARTED,
    PHASE_DONE,
    PHASE_FAILED,
    ACTION_PHASE_COUNT
};

struct action_state {
    enum action_phase phase;
    int attempts;
    int64_t started_s, finished_s; /* since 1970, 0: not */
    const char *reason;
};

/* Transition, cluster: spec (immutable) the DAG, status the intent: which actions were begun
 * and by which epoch. Whether an action is done is read off the world, not off the status. */
struct transition_object {
    struct object_meta meta;
    const char *pool;
    const char *from, *to;           /* names of plans; from "" the state found */
    struct transition transition;    /* owned: transition_done(); its plans `from` and `to`
                                        have no GPUs, and services that require their floor */
    long long epoch;                 /* of status; -1 none yet */
    VEC(struct action_state) states; /* one an action */
    bool complete, stalled;          /* conditions */
};

struct node_instance { /* wanted, or found */
    int profile, start;
    const char *uuid; /* MIG UUID; "" unknown or not there yet */
    bool ready;       /* GPU and compute instance there, CDI specification written */
};
struct node_gpu {
    const char *uuid;
    const struct mig_board *board;
    bool mig_enabled;
    const char *message; /* found: why it is not as wanted, and will not be by waiting; or "" */
    VEC(struct node_instance) instances;
};
/* NodeGpuState, cluster, name = node: spec by the controller, status by the agent. */
struct node_gpu_state {
    struct object_meta meta;
    long long epoch, observed_epoch;
    long long generation, observed_generation;
    VEC(struct node_gpu) desired; /* GPUs that are ours to change; others are left alone */
    VEC(struct node_gpu) found;
    bool synced, driver_conflict;
    const char *message;
};

/* One of a list by its UUID, one of a GPU by its place; NULL when there is none. */
struct node_gpu *node_gpu_find(const struct node_gpu *gpus, size_t count, const char *uuid);
struct node_instance *node_instance_find(const struct node_gpu *gpu, int profile, int start);

/* Never fails: texts that are not there are "". */
void object_meta_read(const json_t *object, struct object_meta *ret_meta);
/* Each of these: E_INPUT "GpuService shop/ranker: spec.rateRps: expected …, found …" for a spec
 * that is wrong. *ret is zeroed before and has nothing to free but, of a Transition, its struct
 * transition. */
int gpu_service_read(const json_t *object, struct arena *arena, struct gpu_service *ret,
                     struct error *err);
/* Reads a PerfProfile: rows of its model and board. */
int perf_profile_read(const json_t *object, struct arena *arena, struct perf_profile *ret,
                      struct error *err);
/* Reads a GpuPool; what the spec leaves out has the schema's default. */
int gpu_pool_read(const json_t *object, struct arena *arena, struct gpu_pool *ret,
                  struct error *err);
/* Reads one part of a PartitionPlan. */
int partition_plan_read(const json_t *object, struct arena *arena, struct partition_plan *ret,
                        struct error *err);
/* Reads spec and status of a Transition; an order with a cycle is E_INPUT. */
int transition_object_read(const json_t *object, struct arena *arena,
                           struct transition_object *ret, struct error *err);
/* Reads what is desired and what was found on a node. */
int node_gpu_state_read(const json_t *object, struct arena *arena, struct node_gpu_state *ret,
                        struct error *err);

/* Whole objects with apiVersion, kind, metadata.name, spec; new references. */
json_t *partition_plan_to_json(const struct partition_plan *plan);
/* Likewise of a PerfProfile. */
json_t *perf_profile_to_json(const struct perf_profile *profile);
/* spec only: gpus, services (floors), actions in camel case. */
json_t *transition_object_to_json(const char *name, const char *pool, const char *from,
                                  const char *to, const struct transition *transition);
json_t *action_states_to_json(const struct transition_object *object);   /* status.actions */
json_t *node_desired_to_json(const struct node_gpu *gpus, size_t count); /* spec.gpus */
json_t *node_found_to_json(const struct node_gpu *gpus, size_t count);   /* status.gpus */

/* The metav1.Condition of this type in a list; borrowed, NULL when there is none. */
json_t *condition_find(const json_t *conditions, const char *type);
/* The same in an object's status.conditions. */
const json_t *object_condition(const json_t *object, const char *type);
/* Whether the object has that condition with status "True". */
bool condition_is_true(const json_t *object, const char *type);
/* A condition to be set. */
struct condition {
    const char *type, *reason, *message;
    bool is_true;
    long long observed_generation;
};
/* Sets or replaces one in a list; lastTransitionTime changes only with the status. Returns
 * whether anything changed. now_s: since 1970. */
bool condition_set(json_t *conditions, const struct condition *condition, int64_t now_s);

#endif
