/* SPDX-License-Identifier: Apache-2.0
 *
 * The MIG-serving paper's controller (arXiv 2109.11067, section 6), exchange and compact, as
 * the reference that ours is held against. What the paper leaves open is decided in
 * docs/spec/transition.md.
 */
#ifndef TRANCHE_TRANSITION_EXCHANGE_COMPACT_H
#define TRANCHE_TRANSITION_EXCHANGE_COMPACT_H

#include "transition/plan.h"

/* Fills gpus, match, actions and figures of a transition that has from and to. With
 * gpu_order, actions on one GPU follow one another, as in the paper; without, only what
 * safety needs of the order is kept. E_NO as transition_plan(). */
int exchange_compact_plan(struct transition *transition,
                          const struct transition_options *options, bool gpu_order,
                          struct error *err);

#endif
