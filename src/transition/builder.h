/* SPDX-License-Identifier: Apache-2.0
 *
 * From a safe sequence of steps to the weakest order that keeps it safe. A planner tells the
 * steps one after another, as they would happen; each becomes an action that waits only for
 *
 *   - the action before it on the same instance (life, and routing: stop waits for drain);
 *   - slot edges: a creation waits for the deletions that freed its memory units, and for
 *     others only where a limit by count would break;
 *   - capacity edges: what a service may do without, and then the rates of its starts in
 *     the order in which they became ready, are spent once each by its drains. A drain waits
 *     for the starts that it spends, so any set of drains is outweighed by the starts they
 *     wait for together.
 */
#ifndef TRANCHE_TRANSITION_BUILDER_H
#define TRANCHE_TRANSITION_BUILDER_H

#include "transition/times.h"
#include "transition/work.h"

/* An instance of one GPU in the course of the transition. */
struct occupant {
    int profile, start;
    int delete;         /* action, -1: still there */
    uint64_t before[2]; /* occupants whose deletion its creation waits for */
};

struct builder_gpu {
    VEC(struct occupant) occupants;
};

/* Rates that became ready and are not spent yet. */
struct builder_service {
    long double slack_rps; /* may be done without from the beginning */
    VEC(int) ready;        /* starts in the order they became ready */
    size_t spent;          /* of `ready`: all used up before this one */
    double left_rps;       /* of ready[spent] */
};

struct builder {
    struct transition *transition; /* actions are appended here */
    const struct action_times *times;
    VEC(struct builder_gpu) gpus;
    struct builder_service *services;
    VEC(int) more;       /* further actions that the next one waits for (planner's own edges) */
    VEC(size_t) counted; /* occupants that it waits for by count */
    enum action_group group; /* of the next action */
};

void builder_init(struct builder *builder, const struct work *work,
                  const struct action_times *times);
void builder_done(struct builder *builder);

/* The next action also waits for this one. */
void builder_also_after(struct builder *builder, int action);
int builder_create(struct builder *builder, struct slot slot);
/* previous: the action before on the same instance, -1: none. */
int builder_start(struct builder *builder, struct slot slot, struct serving serving,
                  int previous);
/* The start has finished: its rate may be spent. */
void builder_ready(struct builder *builder, int start);
int builder_drain(struct builder *builder, struct slot slot, struct serving serving,
                  int previous);
int builder_stop(struct builder *builder, int drain);
int builder_delete(struct builder *builder, struct slot slot, int previous);

#endif
