/* SPDX-License-Identifier: Apache-2.0
 *
 * The board as the live driver describes it: a struct mig_board made from the profiles and
 * placements that NVML lists, so that checking and placing (mig/) work on what is really
 * there, a board that no table knows included. Where our table (by PCI id) says otherwise,
 * the live value wins and the difference is noted. What no driver tells (engine limits,
 * compute-instance profiles before there is an instance, starts without permission) comes
 * from the table.
 */
#ifndef TRANCHE_GPU_LIVE_BOARD_H
#define TRANCHE_GPU_LIVE_BOARD_H

#include "base/cleanup.h"
#include "base/str.h"
#include "gpu/driver.h"
#include "mig/board.h"

struct live_board {
    struct mig_board board;        /* points into this object */
    const struct mig_board *table; /* by PCI id; NULL: unknown */
    struct mig_profile profiles[GPU_LIVE_PROFILES_MAX];
    struct mig_ci_profile ci_profiles[GPU_LIVE_PROFILES_MAX][GPU_CI_PROFILES_MAX];
    char names[GPU_LIVE_PROFILES_MAX][GPU_TEXT_SIZE];
    char kinds[GPU_LIVE_PROFILES_MAX][GPU_TEXT_SIZE];
    char slug[GPU_TEXT_SIZE];
    struct str differences; /* one line each; empty: as our table says */
};

/* Never NULL; the identity's text is copied. */
struct live_board *live_board_new(const struct gpu_identity *identity,
                                  const struct gpu_live_profile *profiles, int count);
/* The same for a driver that says what the table of this board says: where there is no
 * driver (tests, offline checks of a config). The board must have MIG. */
struct live_board *live_board_of_table(const struct mig_board *board);
void live_board_free(struct live_board *live); /* NULL is fine */
CLEANUP_DEFINE_FREE(live_board)

/* The profile of this NVML profile id, or -1. */
int live_board_profile_by_id(const struct live_board *live, int profile_id);

/* The profile of a listed GPU instance: by id, or (listed without permission) by slices and
 * memory; -1 when none fits. */
int live_board_profile_of_gi(const struct live_board *live, const struct gpu_gi *gi);

/* Finds a profile by a name that some driver or table gave it: the live name first, then the
 * table's (same profile id), then the same slices and suffix with a memory size nearest to
 * the one in the name, within 1 GB or 2.5 % (7g.79gb for 7g.80gb, 1g.24gb for 1g.23gb). Such
 * a match sets *ret_alias (may be NULL). E_INPUT lists the live profiles, and names the
 * board that has such a profile if one has. */
int live_board_profile_get(const struct live_board *live, const char *name, int *ret_profile,
                           bool *ret_alias, struct error *err);

/* The name by NVIDIA's arithmetic: the share of the memory rounded up to eighths, times the
 * board's GiB rounded up (go-nvlib). For drivers whose profile info has no name. */
void live_profile_name(const struct gpu_live_profile *profile, uint64_t memory_bytes,
                       char ret[GPU_TEXT_SIZE]);

#endif
