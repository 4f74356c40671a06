/* SPDX-License-Identifier: Apache-2.0
 *
 * Pods of a pool on GPUs that are not observed (the node has left the pool, another owner
 * drives it, the GPU is off the bus): no plan has them, so no Transition ends them. They serve
 * until their service has its floor without them; then they are drained and stopped.
 *
 * That needs no order between these drains and those of Transitions: floors are counted from
 * the pods on observed GPUs alone (struct view_service, here_rps), so a stray that goes takes
 * nothing from what a Transition counts on.
 */
#ifndef TRANCHE_CONTROL_STRAYS_H
#define TRANCHE_CONTROL_STRAYS_H

#include "control/actuator.h"

/* Only while no Transition is open: one under way may be about to use up what is there. */
void reconcile_strays(struct world *world, const struct gpu_pool *pool,
                      const struct actuator_gpus *gpus, struct effects *effects);

#endif
