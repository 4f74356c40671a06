/* SPDX-License-Identifier: Apache-2.0
 *
 * Maximum-weight closure: nodes with weights, and pairs "a requires b"; which set that holds
 * with each node all that it requires weighs the most? A minimum cut (Picard 1976) found by
 * Dinic's algorithm (1970). The empty set weighs 0.
 */
#ifndef TRANCHE_TRANSITION_CLOSURE_H
#define TRANCHE_TRANSITION_CLOSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct closure_arc {
    int to, twin; /* twin: index of the opposite arc */
    int next;     /* of the same node, -1: none */
    int64_t room;
};

struct closure {
    VEC(int64_t) weights;         /* one a node */
    VEC(struct closure_arc) arcs; /* filled by closure_solve() */
    VEC(int) requires;            /* pairs: node, what it requires */
};

/* Weights are within ±2^52 and their absolute values sum to less than 2^62. */
int closure_add_node(struct closure *closure, int64_t weight);
void closure_require(struct closure *closure, int node, int required);
/* The greatest weight; ret_members has one entry a node: the least set that reaches it. */
int64_t closure_solve(struct closure *closure, bool *ret_members);
void closure_clear(struct closure *closure);
void closure_done(struct closure *closure);

#endif
