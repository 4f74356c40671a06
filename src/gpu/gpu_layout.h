/* SPDX-License-Identifier: Apache-2.0
 *
 * A layout with its compute instances: what mig_layout is, and for each GPU instance the
 * widths of the compute instances inside. Text form: mig's layout text where an instance may
 * end in `:` and the widths that are not the default single one of full width:
 * `3g.20gb@4:2c+1c`, `2g.10gb@0:-` (no compute instance yet).
 */
#ifndef TRANCHE_GPU_GPU_LAYOUT_H
#define TRANCHE_GPU_GPU_LAYOUT_H

#include "base/str.h"
#include "gpu/driver.h"
#include "gpu/live_board.h"
#include "mig/layout.h"

struct gpu_slice {
    struct mig_instance gi;
    int ci_count;
    uint8_t ci_slices[GPU_CI_MAX]; /* widths, largest first */
};

struct gpu_layout {
    int count;
    struct gpu_slice slices[MIG_INSTANCES_MAX]; /* by start, then profile */
};

struct gpu_device_request {
    int profile;   /* of the board */
    int ci_slices; /* width; 0: the full one */
    int count;
};

/* One slice with its default compute instance. */
struct gpu_slice gpu_slice_default(const struct mig_board *board, struct mig_instance gi);
/* Adds a width, keeping the order. More than GPU_CI_MAX is asserted. */
void gpu_slice_add_ci(struct gpu_slice *slice, int ci_slices);
/* Whether both have compute instances of the same widths. */
bool gpu_slice_same_cis(const struct gpu_slice *a, const struct gpu_slice *b);
/* Whether a compute instance of this width still fits the counts of the GPU instance. */
bool gpu_slice_has_room(const struct mig_board *board, const struct gpu_slice *slice,
                        int ci_slices);

/* Asserts what holds of every layout: sorted, profiles of the board, widths in order, within
 * the GPU instance. Starts may be open, and legality is mig_layout_check()'s. */
void gpu_layout_assert(const struct mig_board *board, const struct gpu_layout *layout);

/* Adds `count` MIG devices of one compute-instance width, as mig-parted counts them: each
 * goes into a GPU instance of this profile that still has room, else into a new one whose
 * start is open. Wider devices are to be added first. E_INPUT when the profile has no such
 * width, E_NO when there would be more than MIG_INSTANCES_MAX instances. */
int gpu_layout_add_devices(const struct mig_board *board, struct gpu_layout *layout,
                           struct gpu_device_request request, struct error *err);

/* Brings the slices into the order by start, then profile. */
void gpu_layout_sort(struct gpu_layout *layout);
/* Whether both have the same instances with the same compute instances. */
bool gpu_layout_equal(const struct gpu_layout *a, const struct gpu_layout *b);
/* Whether every slice of `wanted` with an open start has a partner in `actual`, those with a
 * start exactly there, and none is left over. */
bool gpu_layout_satisfies(const struct gpu_layout *actual, const struct gpu_layout *wanted);
/* The GPU instances alone, as mig/ works on them. */
void gpu_layout_instances(const struct gpu_layout *layout, struct mig_layout *ret);

/* Appends the text that gpu_layout_parse() reads back. */
void gpu_layout_format(const struct mig_board *board, const struct gpu_layout *layout,
                       struct str *text);
/* Names by live_board_profile_get(), so old and new ones are understood. E_INPUT with the
 * offending word. */
int gpu_layout_parse(const struct live_board *live, const char *text,
                     struct gpu_layout *ret_layout, struct error *err);

/* The layout of the instances that a driver lists; E_IO when one is of no profile of the
 * board, or there are more than MIG_INSTANCES_MAX. */
int gpu_layout_from_list(const struct live_board *live, const struct gpu_gi_list *list,
                         struct gpu_layout *ret_layout, struct error *err);

#endif
