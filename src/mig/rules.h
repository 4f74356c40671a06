/* SPDX-License-Identifier: Apache-2.0
 *
 * The legality rules one by one, shared by checking and placing inside src/mig. Each
 * adds a line to `violations` for every breach, with the rule and the instances.
 */
#ifndef TRANCHE_MIG_RULES_H
#define TRANCHE_MIG_RULES_H

#include "mig/layout.h"

/* The rules that need no starts: 3 (maxima), 4 (engines), 5 (instances in all). */
void mig_rules_without_starts(const struct mig_board *board, const struct mig_layout *layout,
                              struct str *violations);

/* Asserts what holds of every layout value: known profiles, and instances sorted by start,
 * then profile. */
void mig_layout_assert_valid(const struct mig_board *board, const struct mig_layout *layout);

/* "0", "0 or 4", "0, 2 or 4": the memory units in a bit set, never empty. */
void mig_units_text(uint32_t units, const char *conjunction, struct str *text);

/* "3g.20gb@4", or "3g.20gb" while the start is open. */
void mig_instance_text(const struct mig_board *board, struct mig_instance instance,
                       struct str *text);

/* Engines of one kind that an instance takes; an unknown number counts as none. */
static inline int mig_engines_used(const struct mig_profile *profile, int engine)
{
    return profile->engines[engine] == MIG_UNKNOWN ? 0 : profile->engines[engine];
}

#endif
