/* SPDX-License-Identifier: Apache-2.0
 *
 * Every legal layout of a universe. A layout is built from left to right, each instance
 * behind the end of the one before, so none is met twice; visiting a layout before those
 * that extend it, with the next instances by profile and then start, is the sorted order.
 */
#include <assert.h>

#include "mig/layout.h"
#include "mig/rules.h"

struct walk {
    const struct mig_board *board;
    uint32_t universe;
    bool maximal_only;
    bool (*visit)(const struct mig_layout *layout, void *context);
    void *context;
    size_t count;
    bool stopped;
};

static bool in_universe(const struct walk *walk, int profile)
{
    assert(profile < walk->board->profile_count);
    return walk->universe >> profile & 1;
}

/* Whether nothing of the universe can be added. */
static bool is_maximal(const struct walk *walk, const struct mig_layout *layout)
{
    for (int profile = 0; profile < walk->board->profile_count; profile++) {
        if (!in_universe(walk, profile))
            continue;
        for (int start = 0; start < walk->board->memory_units; start++)
            if (mig_layout_can_add(walk->board, layout,
                                   (struct mig_instance){(int8_t)profile, (int8_t)start}))
                return false;
    }
    assert(layout->count > 0 || walk->universe == 0);
    return true;
}

static void walk_visit(struct walk *walk, const struct mig_layout *layout)
{
    assert(!walk->stopped);
    mig_layout_assert_valid(walk->board, layout);
    if (walk->maximal_only && !is_maximal(walk, layout))
        return;
    walk->count++;
    if (walk->visit && !walk->visit(layout, walk->context))
        walk->stopped = true;
}

/* Visits `layout`, whose last span ends before unit `end`, and all that extend it. */
static void walk_from(struct walk *walk, struct mig_layout *layout, int end)
{
    assert(end <= walk->board->memory_units);
    walk_visit(walk, layout);
    for (int profile = 0; profile < walk->board->profile_count; profile++) {
        if (!in_universe(walk, profile))
            continue;
        for (int start = end; start < walk->board->memory_units && !walk->stopped; start++) {
            struct mig_instance instance = {(int8_t)profile, (int8_t)start};

            if (!mig_layout_can_add(walk->board, layout, instance))
                continue;
            layout->instances[layout->count++] = instance;
            walk_from(walk, layout, start + walk->board->profiles[profile].placement_size);
            layout->count--;
        }
    }
}

size_t mig_layout_enumerate(const struct mig_board *board, uint32_t universe, bool maximal_only,
                            bool (*visit)(const struct mig_layout *layout, void *context),
                            void *context)
{
    struct mig_layout layout = {0};
    struct walk walk = {
        .board = board,
        .universe = universe & ((1U << board->profile_count) - 1),
        .maximal_only = maximal_only,
        .visit = visit,
        .context = context,
    };

    assert(board->profile_count <= MIG_PROFILES_MAX);
    walk_from(&walk, &layout, 0);
    assert(layout.count == 0);
    return walk.count;
}
