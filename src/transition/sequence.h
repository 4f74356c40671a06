/* SPDX-License-Identifier: Apache-2.0
 *
 * A search for a sequence of steps that borrows fewer GPUs than the schedules found: from what
 * each GPU holds, one instance is started or ended at a time, never below a floor, best first
 * by how much is not yet as it should be. Within its limits it looks at everything: then no
 * such sequence exists when it finds none, given which GPU becomes which.
 */
#ifndef TRANCHE_TRANSITION_SEQUENCE_H
#define TRANCHE_TRANSITION_SEQUENCE_H

#include "transition/times.h"
#include "transition/work.h"

/* Appends `spares` borrowed GPUs of this board, and the actions of a sequence that does with
 * them, to work->transition. false, and nothing appended: none was found. */
bool sequence_search(const struct work *work, const struct action_times *times, int spares,
                     const struct mig_board *board);

#endif
