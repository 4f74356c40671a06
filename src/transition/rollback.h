/* SPDX-License-Identifier: Apache-2.0
 *
 * The way back: from a state that a transition can reach to the plan it began with.
 */
#ifndef TRANCHE_TRANSITION_ROLLBACK_H
#define TRANCHE_TRANSITION_ROLLBACK_H

#include "transition/plan.h"

/* Reads "a1,a2 a7" ("-" or nothing: none) into ret_done, one entry an action. E_INPUT for an
 * unknown id, or a set that cannot be reached: an action without one that it waits for. */
int rollback_parse_done(const struct transition *transition, const char *ids, bool *ret_done,
                        struct error *err);

/* A transition from the state after `done` to `from`, GPU by GPU, under the same floor. What is
 * under way counts as not begun. It always exists: where the planner finds no order without a
 * further GPU, the actions done are taken back in turn. The transition must pass verification;
 * else E_NO. times: NULL for "measured". */
int transition_rollback(const struct transition *transition, const bool *done,
                        const struct action_times *times, struct transition *ret_back,
                        struct error *err);
/* The actions done, taken back from the last to the first, in the weakest safe order. */
int rollback_in_turn(const struct transition *transition, const bool *done,
                     const struct action_times *times, struct transition *ret_back,
                     struct error *err);

#endif
