/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to the preflight: the rights that the controller needs, as one table.
 */
#ifndef TRANCHE_CONTROL_PREFLIGHT_RIGHTS_H
#define TRANCHE_CONTROL_PREFLIGHT_RIGHTS_H

#include "control/preflight.h"

enum right_purpose {
    RIGHT_ALWAYS,
    RIGHT_DRA,
    RIGHT_MIG_MANAGER,
    RIGHT_GATEWAY,
    RIGHT_PURPOSE_COUNT
};

/* Asks for each right of the table; needs: which purposes this cluster has. Fills
 * report->rights. */
int preflight_ask_rights(const struct preflight_options *options,
                         const bool needs[RIGHT_PURPOSE_COUNT], struct preflight_report *report,
                         struct error *err);

#endif
