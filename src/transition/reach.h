/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the order of a transition puts one action before another, for many pairs at once:
 * sets of ancestors as bits, in blocks of columns, so that memory stays bounded.
 */
#ifndef TRANCHE_TRANSITION_REACH_H
#define TRANCHE_TRANSITION_REACH_H

#include "transition/document.h"

struct reach_query {
    int before, after; /* actions */
    bool ordered;      /* the answer: before is done whenever after may begin */
};

/* Fills every query's answer. */
void reach_answer(const struct transition *transition, struct reach_query *queries,
                  size_t count);

#endif
