/* SPDX-License-Identifier: Apache-2.0
 *
 * The transitive reduction of an order: an edge that a longer path implies is left out. For an
 * acyclic order it is unique, and the order stays the same (Aho, Garey, Ullman 1972).
 */
#ifndef TRANCHE_TRANSITION_REDUCTION_H
#define TRANCHE_TRANSITION_REDUCTION_H

#include "transition/document.h"

/* Shortens the `after` lists of actions that each come after those they wait for. */
void transition_reduce(struct transition *transition);

#endif
