/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking up boards, profiles and universes. All lookups are walks over short tables.
 */
#include "mig/board.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/option.h"
#include "base/str.h"
#include "mig/board_table.h"

enum { MIG_BOARDS_MAX = 64 };

size_t mig_board_count(void)
{
    assert(mig_board_table_count > 0);
    return mig_board_table_count;
}

const struct mig_board *mig_board_at(size_t index)
{
    assert(index < mig_board_table_count);
    return &mig_board_table[index];
}

const struct mig_board *mig_board_find(const char *slug)
{
    assert(slug);
    for (size_t i = 0; i < mig_board_table_count; i++)
        if (strcmp(mig_board_table[i].slug, slug) == 0)
            return &mig_board_table[i];
    return NULL;
}

/* "did you mean …": the slugs that begin with the word, or the nearest by spelling. */
static void add_nearest(const char *word, struct str *text)
{
    const char *slugs[MIG_BOARDS_MAX];
    const char *nearest;

    assert(mig_board_table_count <= MIG_BOARDS_MAX);
    for (size_t i = 0; i < mig_board_table_count; i++) {
        slugs[i] = mig_board_table[i].slug;
        if (*word && text_starts_with(slugs[i], word))
            str_addf(text, "%s%s", text->length ? " or " : "did you mean ", slugs[i]);
    }
    nearest = text_nearest(word, slugs, mig_board_table_count);
    if (!text->length && nearest)
        str_addf(text, "did you mean %s", nearest);
}

int mig_board_get(const char *slug, const struct mig_board **ret_board, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    const struct mig_board *board = mig_board_find(slug);

    assert(ret_board);
    if (board) {
        *ret_board = board;
        return 0;
    }
    add_nearest(slug, &text);
    str_add(&text, text.length ? "? Known are " : "known are ");
    for (size_t i = 0; i < mig_board_table_count; i++)
        str_addf(&text, "%s%s", i ? ", " : "", mig_board_table[i].slug);
    return error_set(err, E_INPUT, "unknown board \"%.60s\": %s", slug, text.bytes);
}

const struct mig_board *mig_board_by_pci(uint32_t pci_device_id)
{
    for (size_t i = 0; i < mig_board_table_count; i++) {
        const struct mig_board *board = &mig_board_table[i];

        assert(board->pci_device_id_count == 0 || board->pci_device_ids);
        for (int j = 0; j < board->pci_device_id_count; j++)
            if (board->pci_device_ids[j] == pci_device_id)
                return board;
    }
    return NULL;
}

const char *mig_group_name(enum mig_group group)
{
    static const char *const names[MIG_GROUP_COUNT] = {
        [MIG_GROUP_BASE] = "base", [MIG_GROUP_ME] = "me",       [MIG_GROUP_REV2] = "rev2",
        [MIG_GROUP_GFX] = "gfx",   [MIG_GROUP_MEALL] = "meall", [MIG_GROUP_NOME] = "nome",
    };

    assert(group < MIG_GROUP_COUNT);
    return names[group];
}

const char *mig_engine_name(enum mig_engine engine)
{
    static const char *const names[MIG_ENGINE_COUNT] = {
        [MIG_DECODER] = "decoders",
        [MIG_ENCODER] = "encoders",
        [MIG_JPEG] = "JPEG engines",
        [MIG_OFA] = "optical-flow engines",
    };

    assert(engine < MIG_ENGINE_COUNT);
    return names[engine];
}

int mig_profile_find(const struct mig_board *board, const char *name)
{
    assert(board && name);
    for (int i = 0; i < board->profile_count; i++)
        if (strcmp(board->profiles[i].name, name) == 0)
            return i;
    for (int i = 0; i < board->profile_count; i++)
        if (strcmp(board->profiles[i].kind, name) == 0)
            return i;
    return -1;
}

int mig_profile_get(const struct mig_board *board, const char *name, int *ret_profile,
                    struct error *err)
{
    CLEANUP(str_done) struct str known = STR_EMPTY;
    int profile = mig_profile_find(board, name);

    assert(ret_profile);
    if (profile < 0) {
        for (int i = 0; i < board->profile_count; i++)
            str_addf(&known, "%s%s", i ? ", " : "", board->profiles[i].name);
        return error_set(err, E_INPUT, "%s has no slice profile \"%.60s\": it has %s",
                         board->slug, name, known.bytes);
    }
    *ret_profile = profile;
    return 0;
}

int mig_universe_get(const struct mig_board *board, const char *name, uint32_t *ret_mask,
                     struct error *err)
{
    static const struct {
        const char *name;
        uint32_t groups; /* bit per enum mig_group */
    } universes[] = {
        {"base", 1U << MIG_GROUP_BASE},
        {"base+rev2", 1U << MIG_GROUP_BASE | 1U << MIG_GROUP_REV2},
        {"base+me", 1U << MIG_GROUP_BASE | 1U << MIG_GROUP_ME},
        {"full", (1U << MIG_GROUP_COUNT) - 1},
    };
    uint32_t mask = 0;

    assert(board && ret_mask && board->profile_count <= MIG_PROFILES_MAX);
    for (size_t i = 0; i < sizeof(universes) / sizeof(universes[0]); i++) {
        if (strcmp(universes[i].name, name) != 0)
            continue;
        for (int j = 0; j < board->profile_count; j++)
            if (universes[i].groups >> board->profiles[j].group & 1)
                mask |= 1U << j;
        *ret_mask = mask;
        return 0;
    }
    return error_set(err, E_USAGE,
                     "unknown universe \"%.60s\": expected base, base+rev2, base+me or full",
                     name);
}
