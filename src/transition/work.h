/* SPDX-License-Identifier: Apache-2.0
 *
 * The planners' view of a transition whose GPUs are matched: what leaves, what comes, what
 * changes in place, and how much each service may do without.
 */
#ifndef TRANCHE_TRANSITION_WORK_H
#define TRANCHE_TRANSITION_WORK_H

#include "transition/document.h"

struct slot {
    int gpu; /* index into transition->gpus */
    int profile, start;
};

struct serving {
    int service; /* index into transition->services, -1: none */
    int batch, procs;
    double rate_rps;
};

struct work_item {
    struct slot slot;
    struct serving before; /* of what leaves or changes */
    struct serving after;  /* of what comes or changes */
};

/* A way to run a service that one of the plans uses, so that its rate is known. */
struct work_option {
    const struct mig_board *board;
    int profile;
    struct serving serving;
};

struct work_service {
    long double capacity_rps; /* of from; a difference of large sums must be good to 1e-11 */
    double floor_rps;
    VEC(struct work_option) options; /* smallest profile first */
};

struct work {
    struct transition *transition;
    VEC(struct work_item) leaving;  /* instances of from alone */
    VEC(struct work_item) coming;   /* instances of to alone */
    VEC(struct work_item) changing; /* the same slot serves otherwise */
    VEC(struct mig_layout) layouts; /* of each GPU here in from */
    struct work_service *services;  /* one a service of the transition */
};

/* Fills the transition's services and floors, and *ret_work. E_NO names the service when one
 * of the plans gives less than the floor, or the GPU whose layout is illegal. */
int work_build(struct transition *transition, struct work *ret_work, struct error *err);
void work_done(struct work *work);

/* Whether `rate` fits into `room`, both in rps, beside a total of `scale`. */
bool work_fits(double rate, double room, double scale);
uint32_t slot_span(const struct transition *transition, struct slot slot);
/* "3g.20gb@4 of g3" */
void slot_text(const struct transition *transition, struct slot slot, struct str *text);

#endif
