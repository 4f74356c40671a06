/* SPDX-License-Identifier: Apache-2.0
 *
 * A round's decisions, out of a snapshot.
 */
#include "control/controller.h"

int controller_reconcile(const struct world_sources *sources,
                         const struct reconcile_options *options, struct effects *ret_effects,
                         struct reconcile_figures *ret_figures, struct error *err)
{
    struct world world;

    world_build(sources, &world);
    int rc = reconcile_pool(&world, options, ret_effects, ret_figures, err);
    world_done(&world);
    return rc;
}
