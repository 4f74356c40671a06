/* SPDX-License-Identifier: Apache-2.0
 *
 * The default planner's engine: the transition played in time. Whenever something finishes,
 *
 *   1. what comes is created wherever its memory units are free;
 *   2. groups are released: all instances in the way of one that comes, or one that changes in
 *      place, when every service concerned can do without them; the most useful first;
 *   3. instances in nobody's way are released from what is left.
 *
 * When nothing moves any more (each group lacks capacity that only itself could make room
 * for), temporary instances are put into holes, on a borrowed GPU if there is no other hole.
 * The steps go to a builder, which keeps only the order that safety needs.
 */
#ifndef TRANCHE_TRANSITION_SCHEDULE_H
#define TRANCHE_TRANSITION_SCHEDULE_H

#include "base/rng.h"
#include "transition/builder.h"

struct schedule_options {
    const struct action_times *times;
    int spares_max;     /* GPUs that may be borrowed */
    double cost_weight; /* of compute slices given up, in the order of groups */
    double gain_weight; /* of compute slices that come */
    double need_weight; /* of a service that waits for capacity */
    double noise;       /* random part of that order */
    uint64_t seed;
    bool reserve;          /* in 3, keep what groups may need yet */
    bool many_temporaries; /* unblock as many groups at once as there are holes for */
};

enum tenant_kind { TENANT_LEAVING, TENANT_CHANGING, TENANT_TEMPORARY };
enum tenant_state { TENANT_COMING, TENANT_THERE, TENANT_RELEASED, TENANT_GONE };

/* An instance that must go, or change, before the end. */
struct tenant {
    enum tenant_kind kind;
    enum tenant_state state;
    struct slot slot;
    struct serving serving;
    struct serving after; /* of one that changes */
    int action;           /* the last on this instance, -1: none */
    bool useful;          /* in the way of something that comes */
};

enum arrival_state { ARRIVAL_WAITING, ARRIVAL_BEGUN, ARRIVAL_DONE };

struct arrival {
    enum arrival_state state;
    struct slot slot;
    struct serving serving;
    int action;
};

enum event_kind {
    EVENT_ARRIVAL_CREATED,
    EVENT_ARRIVAL_STARTED,
    EVENT_TEMPORARY_CREATED,
    EVENT_TENANT_STARTED, /* a temporary one, or one that has changed */
    EVENT_TENANT_STOPPED,
    EVENT_TENANT_DELETED
};

struct event {
    double at_seconds;
    int sequence;
    enum event_kind kind;
    int index; /* of the arrival or tenant */
};

/* What must be released together: the tenants in the way of an arrival, or one tenant. */
struct group {
    int arrival; /* -1: the tenant below changes in place */
    int tenant;
    double score;
};

struct schedule_gpu {
    struct mig_layout layout; /* what is there, or being created or deleted */
    VEC(int) tenants, arrivals;
};

struct schedule {
    const struct work *work;
    const struct schedule_options *options;
    struct transition *transition;
    struct builder builder;
    struct rng rng;
    double now_seconds;
    int sequence, open; /* open: arrivals and tenants that are not finished */
    VEC(struct event) events;
    VEC(struct tenant) tenants;
    VEC(struct arrival) arrivals;
    VEC(struct schedule_gpu) gpus;
    VEC(struct group) groups;
    long double *slack_rps; /* of each service: ready above the floor */
    double *useful_rps;     /* … of its useful tenants that are there */
    double *promised_rps;   /* … of temporary instances, less what groups will take */
    bool *no_hole;          /* … there is no place for a temporary instance of it */
    int temporaries, spares;
};

/* Plays the whole transition; actions and borrowed GPUs are appended to work->transition. E_NO
 * says what is in the way when the GPUs allowed do not suffice. */
int schedule_run(const struct work *work, const struct schedule_options *options,
                 int *ret_spares, struct error *err);

/* Shared by the two files. */
void schedule_push(struct schedule *schedule, double after_seconds, enum event_kind kind,
                   int index);
double schedule_seconds(const struct schedule *schedule, int action);
/* Calls visit for each tenant in the group's way that is there and not released. */
bool schedule_blocks(const struct schedule *schedule, const struct tenant *tenant,
                     const struct arrival *arrival, bool by_span);
bool schedule_has_overlap(const struct schedule *schedule, const struct arrival *arrival);
void schedule_collect_groups(struct schedule *schedule);
void schedule_release(struct schedule *schedule, int tenant);
/* Gets a schedule that has come to a stop going again: 0, or E_NO. */
int schedule_unblock(struct schedule *schedule, struct error *err);

#endif
