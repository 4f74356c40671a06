/* SPDX-License-Identifier: Apache-2.0
 *
 * The undominated multisets. Every part of a legal layout is legal, so the multisets that
 * have a placement are closed downwards: a walk that adds one instance at a time, profiles
 * in ascending order, meets each of them once, and one to which no profile can be added has
 * no legal superset at all.
 */
#include <assert.h>
#include <string.h>

#include "mig/layout.h"

struct walk {
    const struct mig_board *board;
    uint32_t universe;
    int counts[MIG_PROFILES_MAX];
    int *rows;
    size_t capacity;
    size_t found;
};

static bool fits_one_more(struct walk *walk, int profile)
{
    bool fits;

    assert(profile < walk->board->profile_count);
    walk->counts[profile]++;
    fits = mig_multiset_place(walk->board, walk->counts, NULL);
    walk->counts[profile]--;
    return fits;
}

static void walk_write(struct walk *walk)
{
    size_t width = (size_t)walk->board->profile_count;

    assert(width <= MIG_PROFILES_MAX);
    if (walk->rows && walk->found < walk->capacity)
        memcpy(walk->rows + walk->found * width, walk->counts, width * sizeof(walk->counts[0]));
    walk->found++;
}

/* All multisets that extend the present one with profiles from `first` on. */
static void walk_from(struct walk *walk, int first)
{
    bool dominated = false;

    assert(first <= walk->board->profile_count);
    for (int profile = 0; profile < walk->board->profile_count; profile++) {
        if (!(walk->universe >> profile & 1) || !fits_one_more(walk, profile))
            continue;
        dominated = true;
        if (profile < first)
            continue;
        walk->counts[profile]++;
        walk_from(walk, profile);
        walk->counts[profile]--;
    }
    if (!dominated)
        walk_write(walk);
}

size_t mig_multisets_maximal(const struct mig_board *board, uint32_t universe, int *ret_rows,
                             size_t capacity)
{
    struct walk walk = {
        .board = board, .universe = universe, .rows = ret_rows, .capacity = capacity};

    assert(board->profile_count <= MIG_PROFILES_MAX);
    walk_from(&walk, 0);
    return walk.found;
}
