/* SPDX-License-Identifier: Apache-2.0
 *
 * Finalizers. A GpuService has ours before it is planned for, so that its pods are
 * drained before it goes; and loses it when the last pod has gone.
 */
#ifndef TRANCHE_CONTROL_STATUS_H
#define TRANCHE_CONTROL_STATUS_H

#include "control/effect.h"
#include "control/world.h"

/* Puts the finalizer on the pool's services that lack it; returns how many. Plans and statuses
 * wait for the next round then: their patches would be of an older version. */
size_t status_adopt_services(const struct world *world, const struct gpu_pool *pool,
                             struct effects *effects);
/* Of a pool that is gone: takes the finalizer off what is being deleted, since nobody will
 * drain or finish it. Pods go with their GpuService. */
void status_release_orphans(const struct world *world, const char *pool,
                            struct effects *effects);

/* Of a pool that cannot be read: it says so; as the only pools there are, also what else cannot
 * be read. */
void status_tell_unreadable_pool(const struct world *world, const struct world_fault *pool,
                                 struct effects *effects);

#endif
