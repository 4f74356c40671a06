/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the verifier that looks at GPUs rather than instances.
 */
#ifndef TRANCHE_VERIFY_FLEET_H
#define TRANCHE_VERIFY_FLEET_H

#include "verify/check.h"

/* Stock, fixed and reserved instances, nodes, cost and bound. */
void check_fleet(struct check *check);

#endif
