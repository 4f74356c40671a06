/* SPDX-License-Identifier: Apache-2.0
 *
 * From NVML's profile infos to a struct mig_board; see live_board.h.
 */
#include "gpu/live_board.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/nvml_abi.h"

/* What a profile enum means beyond its slices. */
static const struct {
    enum mig_group group;
    const char *suffix;      /* in names */
    const char *kind_suffix; /* in kinds, which lack the size */
} enum_traits[NVML_GPU_INSTANCE_PROFILE_COUNT] = {
    [NVML_GPU_INSTANCE_PROFILE_1_SLICE] = {MIG_GROUP_BASE, "", ""},
    [NVML_GPU_INSTANCE_PROFILE_2_SLICE] = {MIG_GROUP_BASE, "", ""},
    [NVML_GPU_INSTANCE_PROFILE_3_SLICE] = {MIG_GROUP_BASE, "", ""},
    [NVML_GPU_INSTANCE_PROFILE_4_SLICE] = {MIG_GROUP_BASE, "", ""},
    [NVML_GPU_INSTANCE_PROFILE_7_SLICE] = {MIG_GROUP_BASE, "", ""},
    [NVML_GPU_INSTANCE_PROFILE_8_SLICE] = {MIG_GROUP_BASE, "", ""},
    [NVML_GPU_INSTANCE_PROFILE_6_SLICE] = {MIG_GROUP_BASE, "", ""},
    [NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1] = {MIG_GROUP_ME, "+me", "+me"},
    [NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1] = {MIG_GROUP_ME, "+me", "+me"},
    [NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2] = {MIG_GROUP_REV2, "", "*2"},
    [NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX] = {MIG_GROUP_GFX, "+gfx", "+gfx"},
    [NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX] = {MIG_GROUP_GFX, "+gfx", "+gfx"},
    [NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX] = {MIG_GROUP_GFX, "+gfx", "+gfx"},
    [NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME] = {MIG_GROUP_NOME, "-me", "-me"},
    [NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME] = {MIG_GROUP_NOME, "-me", "-me"},
    [NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME] = {MIG_GROUP_MEALL, "+me.all", "+me.all"},
    [NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME] = {MIG_GROUP_MEALL, "+me.all", "+me.all"},
    [NVML_GPU_INSTANCE_PROFILE_3_SLICE_GFX] = {MIG_GROUP_GFX, "+gfx", "+gfx"},
};

void live_profile_name(const struct gpu_live_profile *profile, uint64_t memory_bytes,
                       char ret[GPU_TEXT_SIZE])
{
    const double eighths = 8, mib = 1 << 20, gib = 1 << 30;
    bool known =
        profile->nvml_enum >= 0 && profile->nvml_enum < NVML_GPU_INSTANCE_PROFILE_COUNT;
    double total = memory_bytes ? (double)memory_bytes : profile->memory_mib * mib;

    double share = profile->memory_mib * mib / total;
    share = fmin(ceil(share * eighths) / eighths, 1);
    snprintf(ret, GPU_TEXT_SIZE, "%dg.%.0fgb%s", profile->compute_slices,
             round(share * ceil(total / gib)),
             known ? enum_traits[profile->nvml_enum].suffix : "");
}

static const struct mig_profile *table_profile(const struct mig_board *table, int profile_id,
                                               int nvml_enum)
{
    for (int i = 0; table && i < table->profile_count; i++) {
        const struct mig_profile *profile = &table->profiles[i];
        /* Ids of two boards are not public; their enums are. */
        if (profile->profile_id == profile_id ||
            (profile->profile_id == MIG_UNKNOWN && profile->nvml_enum == nvml_enum))
            return profile;
    }
    return NULL;
}

static __attribute__((format(printf, 2, 3))) void note(struct live_board *live,
                                                       const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    str_vaddf(&live->differences, format, arguments);
    va_end(arguments);
    str_add_char(&live->differences, '\n');
}

static void note_number(struct live_board *live, const char *profile, const char *what,
                        int live_value, int table_value)
{
    if (table_value != MIG_UNKNOWN && live_value != table_value)
        note(live, "%s: the driver says %s %d, our table %d", profile, what, live_value,
             table_value);
}

/* Differences of one profile from the table's. Engines and SMs vary by source and are left
 * to the live value without a word (mig-hardware D1 to D3). */
static void compare_profile(struct live_board *live, const struct mig_profile *now,
                            const struct mig_profile *table)
{
    if (strcmp(now->name, table->name))
        note(live, "profile id %d: the driver calls it %s, our table %s", now->profile_id,
             now->name, table->name);
    note_number(live, now->name, "memory in MiB", now->memory_mib, table->memory_mib);
    note_number(live, now->name, "compute slices", now->compute_slices, table->compute_slices);
    note_number(live, now->name, "most instances", now->max_instances, table->max_instances);
    note_number(live, now->name, "span in memory units", now->placement_size,
                table->placement_size);
    if (now->starts != table->starts)
        note(live, "%s: the driver allows starts %#x, our table %#x (bit i: memory unit i)",
             now->name, now->starts, table->starts);
}

/* Compute-instance profiles of a GPU instance that is not there yet: the table's, or every
 * width that divides no more than the slices. The ids are read from the live instance when
 * one is made. */
static int fill_ci_profiles(struct mig_ci_profile ret[GPU_CI_PROFILES_MAX], int slices,
                            const struct mig_profile *table)
{
    static const int widths[] = {1, 2, 3, 4, 6, 7, 8};
    int count = 0;

    if (table && table->ci_profile_count) {
        for (; count < table->ci_profile_count && count < GPU_CI_PROFILES_MAX; count++)
            ret[count] = table->ci_profiles[count];
        return count;
    }
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        if (widths[i] <= slices)
            ret[count++] = (struct mig_ci_profile){.compute_slices = widths[i],
                                                   .profile_id = MIG_UNKNOWN,
                                                   .max_in_gi = slices / widths[i],
                                                   .is_default = widths[i] == slices};
    return count;
}

static void fill_starts(struct live_board *live, const struct gpu_live_profile *from,
                        const struct mig_profile *table, struct mig_profile *ret)
{
    if (from->placement_count < 0) {
        ret->starts = table ? table->starts : 0;
        ret->placement_size = ret->memory_units = table ? table->placement_size : 0;
        if (!table)
            note(live, "%s: no permission to list its starts, and no table knows this board",
                 ret->name);
        return;
    }
    for (int i = 0; i < from->placement_count; i++) {
        const struct gpu_placement *placement = &from->placements[i];
        if (placement->start < 0 || placement->size <= 0 ||
            placement->start + placement->size > MIG_UNITS_MAX) {
            note(live,
                 "%s: the driver's placement %d:%d is beyond the %d memory units that "
                 "this program knows; it is not used",
                 ret->name, placement->start, placement->size, MIG_UNITS_MAX);
            continue;
        }
        ret->starts |= UINT32_C(1) << placement->start;
        ret->placement_size = ret->memory_units = placement->size;
    }
}

static void fill_kind(const struct gpu_live_profile *from, char ret[GPU_TEXT_SIZE],
                      enum mig_group *ret_group)
{
    bool known = from->nvml_enum >= 0 && from->nvml_enum < NVML_GPU_INSTANCE_PROFILE_COUNT;

    *ret_group = known ? enum_traits[from->nvml_enum].group : MIG_GROUP_BASE;
    snprintf(ret, GPU_TEXT_SIZE, "%dg%s", from->compute_slices,
             known ? enum_traits[from->nvml_enum].kind_suffix : "?");
}

static void fill_profile(struct live_board *live, const struct gpu_identity *identity,
                         const struct gpu_live_profile *from, int index)
{
    const struct mig_profile *table =
        table_profile(live->table, from->profile_id, from->nvml_enum);
    struct mig_profile *ret = &live->profiles[index];

    assert(index >= 0 && index < GPU_LIVE_PROFILES_MAX);
    if (from->name[0])
        snprintf(live->names[index], GPU_TEXT_SIZE, "%s", from->name);
    else if (table && table->memory_mib == from->memory_mib)
        snprintf(live->names[index], GPU_TEXT_SIZE, "%s", table->name);
    else
        live_profile_name(from, identity->memory_bytes, live->names[index]);
    *ret = (struct mig_profile){
        .name = live->names[index],
        .kind = live->kinds[index],
        .nvml_enum = from->nvml_enum,
        .profile_id = from->profile_id,
        .compute_slices = from->compute_slices,
        .max_instances = from->max_instances,
        .sm = from->sm,
        .copy_engines = from->copy_engines,
        .engines = {[MIG_DECODER] = from->decoders,
                    [MIG_ENCODER] = from->encoders,
                    [MIG_JPEG] = from->jpeg,
                    [MIG_OFA] = from->ofa},
        .memory_mib = from->memory_mib,
        .ci_profiles = live->ci_profiles[index],
    };
    fill_kind(from, live->kinds[index], &ret->group);
    fill_starts(live, from, table, ret);
    ret->ci_profile_count =
        fill_ci_profiles(live->ci_profiles[index], from->compute_slices, table);
    if (table)
        compare_profile(live, ret, table);
    else if (live->table)
        note(live, "%s: our table of %s does not have it", ret->name, live->table->slug);
}

/* Sizes of the whole board from its profiles; engine limits from the table, else from the
 * profile that spans all units. */
static void fill_board(struct live_board *live, int count)
{
    assert(count >= 0 && count <= GPU_LIVE_PROFILES_MAX);
    struct mig_board *board = &live->board;
    const struct mig_profile *whole = NULL;

    for (int i = 0; i < count; i++) {
        const struct mig_profile *profile = &live->profiles[i];
        for (int start = 0; start < 32; start++)
            if (profile->starts >> start & 1 &&
                start + profile->placement_size > board->memory_units)
                board->memory_units = start + profile->placement_size;
        if (profile->compute_slices > board->compute_slices)
            board->compute_slices = profile->compute_slices;
    }
    /* No driver tells how many instances a board holds at most; placements settle it. */
    if (!live->table)
        board->max_instances =
            board->memory_units < MIG_INSTANCES_MAX ? board->memory_units : MIG_INSTANCES_MAX;
    for (int i = 0; i < count; i++)
        if (live->profiles[i].placement_size == board->memory_units)
            whole = &live->profiles[i];
    for (int i = 0; i < MIG_ENGINE_COUNT; i++)
        board->engine_limits[i] = live->table ? live->table->engine_limits[i]
                                  : whole     ? whole->engines[i]
                                              : MIG_UNKNOWN;
}

static void note_missing(struct live_board *live, int count)
{
    assert(count >= 0 && count <= GPU_LIVE_PROFILES_MAX);
    for (int i = 0; live->table && i < live->table->profile_count; i++) {
        const struct mig_profile *profile = &live->table->profiles[i];
        bool found = false;
        for (int j = 0; j < count && !found; j++)
            found = live->profiles[j].profile_id == profile->profile_id ||
                    (profile->profile_id == MIG_UNKNOWN &&
                     live->profiles[j].nvml_enum == profile->nvml_enum);
        if (!found)
            note(live, "%s: in our table of %s, not offered by this driver", profile->name,
                 live->table->slug);
    }
}

struct live_board *live_board_new(const struct gpu_identity *identity,
                                  const struct gpu_live_profile *profiles, int count)
{
    struct live_board *live = xcalloc(1, sizeof *live);
    const int hopper = 9;

    assert(count >= 0 && count <= GPU_LIVE_PROFILES_MAX);
    live->differences = STR_EMPTY;
    live->table = mig_board_by_pci(identity->pci_device_id);
    snprintf(live->slug, sizeof live->slug, "%s",
             live->table ? live->table->slug : identity->name);
    if (live->table)
        live->board = *live->table;
    else
        live->board = (struct mig_board){.gpu = live->slug,
                                         .arch = "unknown",
                                         .chip = "unknown",
                                         .cc_major = identity->cc_major,
                                         .cc_minor = identity->cc_minor,
                                         .mode_change_needs_reset = identity->cc_major < hopper,
                                         .mode_persists_reboot = identity->cc_major < hopper,
                                         .confidence = "read from the driver"};
    live->board.slug = live->slug;
    live->board.profiles = live->profiles;
    live->board.profile_count = count;
    live->board.has_mig = count > 0;
    live->board.memory_units = 0;
    if (!live->table)
        note(live, "PCI id %#x (%s) is in no table; everything is read from the driver",
             identity->pci_device_id, identity->name);
    for (int i = 0; i < count; i++)
        fill_profile(live, identity, &profiles[i], i);
    fill_board(live, count);
    note_missing(live, count);
    return live;
}

/* What NVML would say of a profile of the table. */
static struct gpu_live_profile profile_of_table(const struct mig_profile *from)
{
    struct gpu_live_profile ret = {.nvml_enum = from->nvml_enum,
                                   .profile_id = from->profile_id,
                                   .compute_slices = from->compute_slices,
                                   .max_instances = from->max_instances,
                                   .sm = from->sm,
                                   .copy_engines = from->copy_engines,
                                   .decoders = from->engines[MIG_DECODER],
                                   .encoders = from->engines[MIG_ENCODER],
                                   .jpeg = from->engines[MIG_JPEG],
                                   .ofa = from->engines[MIG_OFA],
                                   .memory_mib = from->memory_mib};

    snprintf(ret.name, sizeof ret.name, "%s", from->name);
    for (int start = 0; start < MIG_UNITS_MAX; start++)
        if (from->starts >> start & 1)
            ret.placements[ret.placement_count++] =
                (struct gpu_placement){.start = start, .size = from->placement_size};
    return ret;
}

struct live_board *live_board_of_table(const struct mig_board *board)
{
    struct gpu_live_profile profiles[GPU_LIVE_PROFILES_MAX];
    struct gpu_identity identity = {.cc_major = board->cc_major, .cc_minor = board->cc_minor};

    assert(board->has_mig && board->profile_count <= GPU_LIVE_PROFILES_MAX);
    snprintf(identity.name, sizeof identity.name, "%s", board->gpu);
    if (board->pci_device_id_count)
        identity.pci_device_id = board->pci_device_ids[0];
    for (int i = 0; i < board->profile_count; i++)
        profiles[i] = profile_of_table(&board->profiles[i]);
    return live_board_new(&identity, profiles, board->profile_count);
}

void live_board_free(struct live_board *live)
{
    if (!live)
        return;
    str_done(&live->differences);
    free(live);
}

int live_board_profile_by_id(const struct live_board *live, int profile_id)
{
    assert(live->board.profiles == live->profiles);
    for (int i = 0; i < live->board.profile_count; i++)
        if (live->profiles[i].profile_id == profile_id)
            return i;
    return -1;
}

int live_board_profile_of_gi(const struct live_board *live, const struct gpu_gi *gi)
{
    int best = -1;

    if (gi->profile_id >= 0)
        return live_board_profile_by_id(live, gi->profile_id);
    /* 1g and 1g+me look alike from outside: the plain one, which comes first, is told. */
    for (int i = 0; i < live->board.profile_count; i++) {
        const struct mig_profile *profile = &live->profiles[i];
        if (profile->compute_slices != gi->compute_slices)
            continue;
        if (best < 0 || abs(profile->memory_mib - gi->memory_mib) <
                            abs(live->profiles[best].memory_mib - gi->memory_mib))
            best = i;
    }
    return best;
}

/* --- names --- */

/* A number of at most this many digits and the word behind it, both taken off *text; false
 * when they do not stand there. */
static bool take_number(const char **text, size_t digits_max, const char *word, int *ret)
{
    size_t digits = strspn(*text, "0123456789");

    if (digits < 1 || digits > digits_max || !text_starts_with(*text + digits, word))
        return false;
    *ret = (int)strtol(*text, NULL, 10);
    *text += digits + strlen(word);
    return true;
}

/* "3g.40gb+me" in parts; false when it has not that form. */
static bool split_name(const char *name, int *ret_slices, int *ret_gb, const char **ret_suffix)
{
    if (!take_number(&name, 2, "g.", ret_slices) || !take_number(&name, 5, "gb", ret_gb))
        return false;
    *ret_suffix = name;
    return true;
}

static int find_by_table_name(const struct live_board *live, const char *name)
{
    for (int i = 0; live->table && i < live->table->profile_count; i++) {
        const struct mig_profile *profile = &live->table->profiles[i];
        if (!strcmp(profile->name, name) && profile->profile_id != MIG_UNKNOWN)
            return live_board_profile_by_id(live, profile->profile_id);
    }
    return -1;
}

/* The same slices and suffix with the nearest size, if that is near enough. */
static int find_by_size(const struct live_board *live, const char *name)
{
    const double tolerance = 0.025;
    int slices, gb, best = -1, best_distance = 0;
    const char *suffix;

    if (!split_name(name, &slices, &gb, &suffix))
        return -1;
    for (int i = 0; i < live->board.profile_count; i++) {
        int own_slices, own_gb;
        const char *own_suffix;
        if (!split_name(live->profiles[i].name, &own_slices, &own_gb, &own_suffix) ||
            own_slices != slices || strcmp(own_suffix, suffix))
            continue;
        int distance = abs(own_gb - gb);
        if (distance <= fmax(1, gb * tolerance) && (best < 0 || distance < best_distance)) {
            best = i;
            best_distance = distance;
        }
    }
    return best;
}

/* "; a100-40gb has it", for the first board of our tables that has this name. */
static void other_board(const char *name, char ret[GPU_TEXT_SIZE])
{
    ret[0] = '\0';
    for (size_t i = 0; i < mig_board_count(); i++) {
        const struct mig_board *board = mig_board_at(i);
        for (int j = 0; j < board->profile_count; j++)
            if (!strcmp(board->profiles[j].name, name)) {
                snprintf(ret, GPU_TEXT_SIZE, "; %s has one of that name", board->slug);
                return;
            }
    }
}

int live_board_profile_get(const struct live_board *live, const char *name, int *ret_profile,
                           bool *ret_alias, struct error *err)
{
    char elsewhere[GPU_TEXT_SIZE];
    struct error inner;
    assert(name && ret_profile);
    int profile = mig_profile_find(&live->board, name);
    bool alias = profile < 0;

    if (profile < 0)
        profile = find_by_table_name(live, name);
    if (profile < 0)
        profile = find_by_size(live, name);
    if (profile < 0) {
        other_board(name, elsewhere);
        int r = mig_profile_get(&live->board, name, &profile, &inner);
        return error_set(err, (enum error_code) - r, "%s%s", inner.text, elsewhere);
    }
    *ret_profile = profile;
    if (ret_alias)
        *ret_alias = alias;
    return 0;
}
