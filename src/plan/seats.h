/* SPDX-License-Identifier: Apache-2.0
 *
 * Which GPU of the fleet each GPU of a solution is: its id and node. GPUs of the earlier
 * plan and partly taken ones keep theirs; then listed GPUs are taken in order; the rest are
 * named g0, g1 …, and their nodes n0, n1 … where the fleet says how many GPUs a node has.
 */
#ifndef TRANCHE_PLAN_SEATS_H
#define TRANCHE_PLAN_SEATS_H

#include "base/arena.h"
#include "plan/solver.h"

struct seat {
    const char *id;
    const char *node; /* "" unknown */
};

/* One seat for each GPU of the solution, in its order. Texts are of the arena or borrowed
 * from the problem; the array is of the arena. */
const struct seat *seats_assign(const struct problem *problem, const struct solution *solution,
                                struct arena *arena);

#endif
