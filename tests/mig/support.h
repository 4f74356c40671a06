/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of mig share: cmocka's headers, layouts from text, seeded chance, and a
 * judge of legality that is written from the rules on arrays and shares no code with src/mig.
 */
#ifndef TRANCHE_TESTS_MIG_SUPPORT_H
#define TRANCHE_TESTS_MIG_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "mig/layout.h"

static inline const struct mig_board *board_named(const char *slug)
{
    const struct mig_board *board = mig_board_find(slug);

    if (!board)
        fail_msg("no board %s", slug);
    return board;
}

static inline struct mig_layout layout_of(const struct mig_board *board, const char *text)
{
    struct mig_layout layout = {0};
    struct error err = {0};

    if (mig_layout_parse(board, text, &layout, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return layout;
}

static inline void assert_layout_text(const struct mig_board *board,
                                      const struct mig_layout *layout, const char *expected)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    mig_layout_format(board, layout, &text);
    assert_string_equal(text.bytes, expected);
}

/* splitmix64 (Steele, Lea, Flood 2014), apart from base/rng so that a fault there cannot hide.
 */
static inline uint64_t chance(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

static inline int below(uint64_t *state, int bound)
{
    return (int)(chance(state) % (uint64_t)bound);
}

/* The seed of a property test: TRANCHE_SEED, or a fixed one. */
static inline uint64_t test_seed(void)
{
    const char *given = getenv("TRANCHE_SEED");

    return given ? strtoull(given, NULL, 10) : 20261130;
}

static inline bool judge_spans(const struct mig_board *board, const struct mig_layout *layout)
{
    int owners[64] = {0};

    for (int i = 0; i < layout->count; i++) {
        const struct mig_profile *profile = &board->profiles[layout->instances[i].profile];
        int start = layout->instances[i].start;

        if (start < 0 || start >= board->memory_units || !(profile->starts & 1U << start))
            return false;
        for (int unit = start; unit < start + profile->placement_size; unit++)
            if (owners[unit]++)
                return false;
    }
    return true;
}

/* The five rules of docs/spec/layout.md. */
static inline bool judge(const struct mig_board *board, const struct mig_layout *layout)
{
    int counts[MIG_PROFILES_MAX] = {0};
    int engines[MIG_ENGINE_COUNT] = {0};

    if (layout->count > board->max_instances || !judge_spans(board, layout))
        return false;
    for (int i = 0; i < layout->count; i++) {
        int profile = layout->instances[i].profile;

        if (++counts[profile] > board->profiles[profile].max_instances)
            return false;
        for (int e = 0; e < MIG_ENGINE_COUNT; e++)
            if (board->profiles[profile].engines[e] > 0)
                engines[e] += board->profiles[profile].engines[e];
    }
    for (int e = 0; e < MIG_ENGINE_COUNT; e++)
        if (board->engine_limits[e] >= 0 && engines[e] > board->engine_limits[e])
            return false;
    return true;
}

/* A board that never was: memory for its table comes with it. */
struct random_board {
    struct mig_board board;
    struct mig_profile profiles[MIG_PROFILES_MAX];
};

static inline void random_board(uint64_t *state, struct random_board *ret)
{
    static const char *const names[] = {"1g.1gb", "1g.1gb+me", "2g.2gb", "2g.3gb",
                                        "3g.3gb", "4g.4gb",    "7g.7gb"};
    static const char *const kinds[] = {"1g", "1g+me", "2g", "2g*2", "3g", "4g", "7g"};
    int units = 1 + below(state, MIG_UNITS_MAX);

    *ret = (struct random_board){.board = {.slug = "random",
                                           .memory_units = units,
                                           .max_instances = 1 + below(state, MIG_INSTANCES_MAX),
                                           .has_mig = true,
                                           .profile_count = 1 + below(state, 7)}};
    ret->board.profiles = ret->profiles;
    for (int e = 0; e < MIG_ENGINE_COUNT; e++)
        ret->board.engine_limits[e] = below(state, 6) - 1;
    for (int i = 0; i < ret->board.profile_count; i++) {
        struct mig_profile *profile = &ret->profiles[i];
        int size = 1 + below(state, units < 5 ? units : 5);

        *profile = (struct mig_profile){.name = names[i],
                                        .kind = kinds[i],
                                        .compute_slices = 1 + below(state, 7),
                                        .memory_units = size,
                                        .placement_size = size,
                                        .max_instances = 1 + below(state, 4)};
        profile->starts = (uint32_t)chance(state) & ((1U << (units - size + 1)) - 1);
        profile->starts |= 1U << below(state, units - size + 1);
        for (int e = 0; e < MIG_ENGINE_COUNT; e++)
            profile->engines[e] = below(state, 4) ? 0 : 1;
    }
}

#endif
