/* SPDX-License-Identifier: Apache-2.0
 *
 * Which GPU here carries out which GPU of `to`: board by board an assignment problem.
 * Weighed in this order: compute slices that go on serving just as they do (same profile,
 * start, service, batch, process count and rate); slices of instances whose slot stays;
 * the same node; the same id.
 */
#ifndef TRANCHE_TRANSITION_MATCH_H
#define TRANCHE_TRANSITION_MATCH_H

#include "transition/document.h"

struct match_options {
    bool allow_larger_slice; /* leave a service in a larger slice where that saves a move */
    bool keep_nodes;         /* never carry out a GPU of a known node on another node */
};

/* Fills gpus (all of from, then new0 …) and match of a transition that has from and to. With
 * allow_larger_slice, instances of `to` become the larger ones that stay. */
void transition_match(struct transition *transition, const struct match_options *options);

/* Whether two instances of the plans serve alike: service, batch, processes and rate. */
bool match_serves_alike(const struct plan *from, const struct plan_instance *before,
                        const struct plan *to, const struct plan_instance *after);

#endif
