/* SPDX-License-Identifier: Apache-2.0
 *
 * The table behind mig/board.h; only board.c and the tests of the table read it.
 */
#ifndef TRANCHE_MIG_BOARD_TABLE_H
#define TRANCHE_MIG_BOARD_TABLE_H

#include "mig/board.h"

/* Sources and confidence of the figures stand with each board in board_table.c. */
extern const struct mig_board mig_board_table[];
extern const size_t mig_board_table_count;

#endif
