/* SPDX-License-Identifier: Apache-2.0
 *
 * From a safe order to one that cannot be weakened: capacity edges that every floor holds
 * without are dropped, those first that make the transition longest, and then all edges that
 * longer paths imply. What is left is needed, each edge by itself.
 */
#ifndef TRANCHE_TRANSITION_WEAKEN_H
#define TRANCHE_TRANSITION_WEAKEN_H

#include "transition/work.h"

/* Shortens the `after` lists of work->transition, whose actions come each after those they
 * wait for. Slot edges and lives are kept as they are, or implied. Orders too large for this
 * (supply.h) keep the capacity edges that no path implies. */
void transition_weaken(const struct work *work);

#endif
