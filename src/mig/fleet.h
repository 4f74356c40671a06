/* SPDX-License-Identifier: Apache-2.0
 *
 * A fleet by text: `a100-40gb:8,h100-80gb-sxm5:4`; `a100-40gb:*` = as many as needed;
 * entries of one board add up.
 */
#ifndef TRANCHE_MIG_FLEET_H
#define TRANCHE_MIG_FLEET_H

#include "base/error.h"
#include "base/str.h"
#include "mig/board.h"

enum { MIG_FLEET_BOARDS_MAX = 32, MIG_FLEET_UNLIMITED = -1, MIG_FLEET_COUNT_MAX = 1000000 };

struct mig_fleet_entry {
    const struct mig_board *board;
    int count; /* MIG_FLEET_UNLIMITED: as many as needed */
};
struct mig_fleet {
    int count;
    struct mig_fleet_entry entries[MIG_FLEET_BOARDS_MAX]; /* in order of first mention */
};

/* E_INPUT with the offending entry for wrong syntax, unknown board or count. */
int mig_fleet_parse(const char *text, struct mig_fleet *ret_fleet, struct error *err);
/* Appends the text that mig_fleet_parse() reads back. */
void mig_fleet_format(const struct mig_fleet *fleet, struct str *text);

#endif
