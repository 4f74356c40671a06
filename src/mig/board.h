/* SPDX-License-Identifier: Apache-2.0
 *
 * Boards and their MIG profiles as constant data (src/mig/board_table.c). Memory units are
 * the placement axis of nvmlGpuInstancePlacement_t; compute slices are what the "3" of
 * 3g counts. A board without MIG has one profile, "whole", on one memory unit, so that a
 * layout of it is `whole@0` and every function works on it alike.
 */
#ifndef TRANCHE_MIG_BOARD_H
#define TRANCHE_MIG_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { MIG_UNITS_MAX = 12, MIG_PROFILES_MAX = 24, MIG_INSTANCES_MAX = 8 };

enum mig_group {
    MIG_GROUP_BASE,
    MIG_GROUP_ME,    /* with media engines, at most one a GPU */
    MIG_GROUP_REV2,  /* double memory */
    MIG_GROUP_GFX,   /* graphics */
    MIG_GROUP_MEALL, /* all media engines */
    MIG_GROUP_NOME,  /* no media engines */
    MIG_GROUP_COUNT
};

enum mig_engine { MIG_DECODER, MIG_ENCODER, MIG_JPEG, MIG_OFA, MIG_ENGINE_COUNT };

enum { MIG_UNKNOWN = -1 }; /* a number that no public source gives */

struct mig_ci_profile {
    int compute_slices;
    int profile_id; /* compute instance profile id as NVML knows it */
    int max_in_gi;
    bool is_default;
};

struct mig_profile {
    const char *name; /* "3g.20gb", "1g.5gb+me" */
    const char *kind; /* "3g", "1g+me", "1g*2" (double memory) */
    enum mig_group group;
    int nvml_enum;  /* argument of the profile-info calls, NVML_GPU_INSTANCE_PROFILE_* */
    int profile_id; /* argument of every other call */
    int compute_slices;
    int memory_units; /* as listed; placement_size is what a span takes */
    uint32_t starts;  /* bit i: may start at memory unit i */
    int placement_size;
    int max_instances;
    int sm;
    int copy_engines;
    int engines[MIG_ENGINE_COUNT];
    int memory_mib; /* usable memory */
    const struct mig_ci_profile *ci_profiles;
    int ci_profile_count;
};

struct mig_board {
    const char *slug; /* "a100-40gb" */
    const char *gpu;  /* "NVIDIA A100 40GB (…)" */
    const char *arch; /* "ampere", "hopper", … */
    const char *chip;
    int cc_major, cc_minor; /* CUDA compute capability */
    int memory_units;       /* 1 on a board without MIG */
    int compute_slices;
    int max_instances;
    int memory_mib; /* usable memory of the whole board */
    bool has_mig;
    bool mode_change_needs_reset;
    bool mode_persists_reboot;
    bool mode_lost_on_driver_unload;
    int engine_limits[MIG_ENGINE_COUNT]; /* MIG_UNKNOWN: not checked */
    const uint32_t *pci_device_ids;      /* 0xDDDDVVVV; device then vendor */
    int pci_device_id_count;
    const char *confidence; /* of the placements: "observed", "inferred" … */
    const char *note;       /* a remark for the reader, or NULL */
    const struct mig_profile *profiles;
    int profile_count;
};

/* All boards in a fixed order (MIG boards first, by architecture, then those without). */
size_t mig_board_count(void);
/* The board at a position below the count; borrowed, never NULL. */
const struct mig_board *mig_board_at(size_t index);
/* By slug; NULL when unknown. */
const struct mig_board *mig_board_find(const char *slug);
/* The same, but E_INPUT naming the slugs that begin alike and all known ones. */
int mig_board_get(const char *slug, const struct mig_board **ret_board, struct error *err);
/* "base", "me" … */
const char *mig_group_name(enum mig_group group);
/* "decoders", "encoders", "JPEG engines", "optical-flow engines". */
const char *mig_engine_name(enum mig_engine engine);
/* By PCI device id 0xDDDDVVVV; NULL when unknown. */
const struct mig_board *mig_board_by_pci(uint32_t pci_device_id);

/* The index of a profile by full name or bare kind ("3g" is the board's plain profile
 * with three compute slices, "1g+me", "1g*2", "whole"); -1 when the board has none. Kinds
 * are unique on a board. */
int mig_profile_find(const struct mig_board *board, const char *name);
/* The same, but E_INPUT listing what the board has. */
int mig_profile_get(const struct mig_board *board, const char *name, int *ret_profile,
                    struct error *err);

/* Sets of profiles for enumeration: bit i stands for profiles[i]. */
#define MIG_UNIVERSE_FULL UINT32_MAX
/* "base", "base+rev2", "base+me", "full" → the board's profiles; E_USAGE otherwise. A
 * group that the board lacks adds nothing. */
int mig_universe_get(const struct mig_board *board, const char *name, uint32_t *ret_mask,
                     struct error *err);

#endif
