/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning a transition: matching GPUs, ordering actions, and the independent check of the
 * result. Pure: the same plans and options give the same transition.
 */
#ifndef TRANCHE_TRANSITION_PLAN_H
#define TRANCHE_TRANSITION_PLAN_H

#include "transition/document.h"
#include "transition/times.h"

enum transition_algorithm { TRANSITION_DAG, TRANSITION_EXCHANGE_COMPACT };

struct transition_options {
    enum transition_algorithm algorithm;
    int spare;               /* GPUs beyond max(from, to) that may be borrowed */
    bool allow_larger_slice; /* dag: leave a service in a larger slice that saves a move */
    bool keep_nodes;         /* dag: carry out a GPU of a known node on that node alone */
    bool keep_ids;           /* each GPU of `to` is the GPU of `from` with its id */
    const struct action_times *times; /* NULL: "measured" */
    uint64_t seed;
};

/* Returns 0 with a transition that transition_verify() passes. E_NO when none exists with the
 * spare GPUs given: the message names the service, the GPU and how many would do. */
int transition_plan(const struct plan *from, const struct plan *to,
                    const struct transition_options *options, struct transition *ret_transition,
                    struct error *err);

/* Copies the GPUs and services of a plan. */
void transition_copy_plan(const struct plan *plan, struct plan *ret_copy);
/* Fills gpus and match: every GPU of `to` is the one of from with its id, or a new one. */
void transition_match_by_id(struct transition *transition);
/* Makes a list of actions a whole document: ids, GPUs that matter, groups of the paper's
 * actions unless they are set, figures. */
void transition_finish(struct transition *transition, bool set_groups);

#endif
