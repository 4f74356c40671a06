/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a transition's order that lies between two sets of actions: what verification
 * cuts. Buffers are kept between calls.
 */
#ifndef TRANCHE_TRANSITION_SUBGRAPH_H
#define TRANCHE_TRANSITION_SUBGRAPH_H

#include "transition/closure.h"
#include "transition/document.h"

struct subgraph {
    const struct transition *transition;
    int *successor_first; /* count + 1 entries into successors */
    int *successors;
    int *node; /* closure node of an action, -1: none */
    unsigned *seen;
    unsigned round;
    VEC(int) stack, marked;
};

void subgraph_init(struct subgraph *subgraph, const struct transition *transition);
void subgraph_done(struct subgraph *subgraph);

/* Adds to an empty closure a node of weight 0 for each action that is a source or comes after
 * one and comes before a sink or is one, with the order among them; subgraph->node finds it. */
void subgraph_between(struct subgraph *subgraph, const int *sources, size_t source_count,
                      const int *sinks, size_t sink_count, struct closure *closure);

#endif
