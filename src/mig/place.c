/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing starts, or proving that none exist. Maxima and engines do not depend on starts,
 * so they are settled first; what is left is to find disjoint spans, by backtracking over at
 * most MIG_INSTANCES_MAX instances, the largest spans first, equal profiles in ascending
 * starts. Explicit starts make the result independent of the order of creation.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "mig/layout.h"
#include "mig/rules.h"

/* The instances whose start is open, in the order in which they are placed. */
struct search {
    const struct mig_board *board;
    int count;
    struct mig_instance open[MIG_INSTANCES_MAX];
};

/* Larger spans first, then more compute slices, then the board's order. */
static bool placed_before(const struct mig_board *board, int a, int b)
{
    const struct mig_profile *x = &board->profiles[a], *y = &board->profiles[b];

    if (x->placement_size != y->placement_size)
        return x->placement_size > y->placement_size;
    if (x->compute_slices != y->compute_slices)
        return x->compute_slices > y->compute_slices;
    return a < b;
}

static void search_add(struct search *search, struct mig_instance instance)
{
    int i = search->count++;

    assert(search->count <= MIG_INSTANCES_MAX && instance.start == MIG_START_ANY);
    for (; i > 0 && placed_before(search->board, instance.profile, search->open[i - 1].profile);
         i--)
        search->open[i] = search->open[i - 1];
    search->open[i] = instance;
}

/* Places open[depth…] beside the units in `taken`; true when it could. */
static bool search_from(struct search *search, int depth, uint32_t taken)
{
    const struct mig_profile *profile;
    struct mig_instance *instance = &search->open[depth];
    int first = 0;

    assert(depth <= search->count);
    assert(!(taken >> search->board->memory_units));
    if (depth == search->count)
        return true;
    profile = &search->board->profiles[instance->profile];
    if (depth > 0 && instance[-1].profile == instance->profile)
        first = instance[-1].start + 1; /* equal instances: one order is enough */
    for (int start = first; start < search->board->memory_units; start++) {
        uint32_t span;

        if (!(profile->starts >> start & 1))
            continue;
        instance->start = (int8_t)start;
        span = mig_instance_span(search->board, *instance);
        if (!(span & taken) && search_from(search, depth + 1, taken | span))
            return true;
    }
    instance->start = MIG_START_ANY;
    return false;
}

static int units_of(const struct search *search)
{
    int units = 0;

    for (int i = 0; i < search->count; i++)
        units += search->board->profiles[search->open[i].profile].placement_size;
    assert(units >= search->count);
    return units;
}

/* "4x1g.10gb and 3x1g.5gb" for the open instances, which are grouped by profile. */
static void open_text(const struct search *search, struct str *text)
{
    for (int i = 0, next; i < search->count; i = next) {
        const char *name = search->board->profiles[search->open[i].profile].name;

        for (next = i + 1; next < search->count; next++)
            if (search->open[next].profile != search->open[i].profile)
                break;
        assert(next > i);
        if (i)
            str_add(text, next == search->count ? " and " : ", ");
        if (next - i > 1)
            str_addf(text, "%dx", next - i);
        str_add(text, name);
    }
}

/* The smallest part of the search that still has no solution: every instance without
 * which the rest stays impossible is dropped. */
static struct search core_of(const struct search *search, uint32_t taken)
{
    struct search core = *search;

    for (int i = core.count - 1; i >= 0; i--) {
        struct search less = {.board = core.board};

        for (int j = 0; j < core.count; j++)
            if (j != i)
                search_add(&less, core.open[j]);
        if (!search_from(&less, 0, taken))
            core = less;
    }
    assert(core.count > 0 && core.count <= search->count);
    return core;
}

/* How many choices of starts the core has, each start by itself free. */
static long long choices_of(const struct search *core, uint32_t taken)
{
    long long choices = 1;

    for (int i = 0; i < core->count; i++) {
        struct mig_instance instance = core->open[i];
        int free = 0;

        for (int start = 0; start < core->board->memory_units; start++) {
            instance.start = (int8_t)start;
            free += core->board->profiles[instance.profile].starts >> start & 1 &&
                    !(mig_instance_span(core->board, instance) & taken);
        }
        choices *= free;
    }
    assert(choices >= 0);
    return choices;
}

/* "; 4g.20gb may start at 0; 2g.10gb may start at 0, 2 or 4" */
static void starts_text(const struct search *core, struct str *text)
{
    for (int i = 0; i < core->count; i++) {
        const struct mig_profile *profile = &core->board->profiles[core->open[i].profile];

        if (i && core->open[i - 1].profile == core->open[i].profile)
            continue;
        assert(profile->starts);
        str_addf(text, "; %s may start at ", profile->name);
        mig_units_text(profile->starts, "or", text);
    }
}

/* Why no choice of starts is legal, as a statement that a reader can check by hand. */
static int no_place(const struct search *search, const struct mig_layout *fixed,
                    struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    uint32_t taken = mig_layout_span(search->board, fixed);
    int free = search->board->memory_units - __builtin_popcount(taken);
    int need = units_of(search);
    struct search core;
    long long choices;

    if (need > free) {
        open_text(search, &text);
        return error_set(err, E_NO,
                         "rule 2 (disjoint spans): %s take%s %d memory units, %s has %d%s",
                         text.bytes, search->count == 1 ? "s" : "", need, search->board->slug,
                         free, fixed->count ? " free" : "");
    }
    core = core_of(search, taken);
    choices = choices_of(&core, taken);
    open_text(&core, &text);
    str_add(&text, core.count == 1 ? " has no free start" : " never fit together");
    if (fixed->count) {
        str_add(&text, " beside ");
        mig_layout_format(search->board, fixed, &text);
    }
    starts_text(&core, &text);
    assert(core.count <= search->count);
    if (choices == 1)
        str_add(&text, "; the only choice overlaps");
    else if (choices > 1)
        str_addf(&text, "; each of the %lld choices overlaps", choices);
    return error_set(err, E_NO, "rule 2 (disjoint spans): %s", text.bytes);
}

/* Splits request and existing into what has a start and what has not. */
static int split(const struct mig_layout *request, const struct mig_layout *existing,
                 struct search *search, struct mig_layout *fixed, struct error *err)
{
    struct mig_layout all = existing ? *existing : (struct mig_layout){0};
    CLEANUP(str_done) struct str violations = STR_EMPTY;
    int total = all.count + request->count;

    assert(all.count <= MIG_INSTANCES_MAX && request->count <= MIG_INSTANCES_MAX);
    if (total > MIG_INSTANCES_MAX)
        return error_set(err, E_NO, "rule 5 (instances): %d instances, %s holds at most %d",
                         total, search->board->slug, search->board->max_instances);
    *fixed = all;
    for (int i = 0; i < request->count; i++) {
        struct mig_instance instance = request->instances[i];

        all.instances[all.count++] = instance;
        if (instance.start == MIG_START_ANY)
            search_add(search, instance);
        else
            fixed->instances[fixed->count++] = instance;
    }
    mig_layout_sort(fixed);
    if (mig_layout_check(search->board, fixed, err) < 0)
        return -E_NO;
    mig_layout_sort(&all);
    mig_rules_without_starts(search->board, &all, &violations);
    if (violations.length)
        return error_set(err, E_NO, "%s", violations.bytes + 1);
    return 0;
}

int mig_layout_place(const struct mig_board *board, const struct mig_layout *request,
                     const struct mig_layout *existing, struct mig_layout *ret_layout,
                     struct error *err)
{
    struct search search = {.board = board};
    struct mig_layout fixed = {0};

    assert(board && request && ret_layout);
    if (split(request, existing, &search, &fixed, err) < 0)
        return -E_NO;
    if (!search_from(&search, 0, mig_layout_span(board, &fixed)))
        return no_place(&search, &fixed, err);
    for (int i = 0; i < search.count; i++)
        fixed.instances[fixed.count++] = search.open[i];
    mig_layout_sort(&fixed);
    mig_layout_assert_valid(board, &fixed);
    assert(mig_layout_check(board, &fixed, NULL) == 0);
    assert(fixed.count == request->count + (existing ? existing->count : 0));
    *ret_layout = fixed;
    return 0;
}

/* Open instances of a request put on the starts that equal ones have in an old layout. */
struct keeping {
    const struct mig_board *board;
    const struct mig_layout *old;
    struct mig_layout request;
    struct mig_layout best;
    int best_kept; /* open instances that `best` has where they were */
};

/* Decides for old instance `index` and those after it whether one stays; depth is at most
 * MIG_INSTANCES_MAX, and what cannot beat the best is cut. */
static void keep_most(struct keeping *keeping, int index, int kept)
{
    struct mig_layout placed;

    if (kept + keeping->old->count - index <= keeping->best_kept)
        return;
    if (index == keeping->old->count) {
        if (mig_layout_place(keeping->board, &keeping->request, NULL, &placed, NULL) == 0) {
            keeping->best = placed;
            keeping->best_kept = kept;
        }
        return;
    }
    struct mig_instance old = keeping->old->instances[index];
    for (int i = 0; i < keeping->request.count; i++) {
        struct mig_instance *open = &keeping->request.instances[i];
        if (open->profile != old.profile || open->start != MIG_START_ANY)
            continue;
        open->start = old.start;
        keep_most(keeping, index + 1, kept + 1);
        open->start = MIG_START_ANY;
        break; /* equal open instances: one is enough */
    }
    keep_most(keeping, index + 1, kept);
}

int mig_layout_place_near(const struct mig_board *board, const struct mig_layout *request,
                          const struct mig_layout *old, struct mig_layout *ret_layout,
                          struct error *err)
{
    struct keeping keeping = {.board = board, .old = old, .request = *request};

    assert(board && request && ret_layout);
    assert(mig_layout_check(board, old, NULL) == 0);
    if (mig_layout_place(board, request, NULL, &keeping.best, err) < 0)
        return -E_NO;
    keep_most(&keeping, 0, 0);
    *ret_layout = keeping.best;
    return 0;
}

/* Whether a multiset keeps the rules that need no starts. */
static bool counts_legal(const struct mig_board *board, const int *profile_counts)
{
    int total = 0;
    int engines[MIG_ENGINE_COUNT] = {0};

    for (int i = 0; i < board->profile_count; i++) {
        const struct mig_profile *profile = &board->profiles[i];

        assert(profile_counts[i] >= 0);
        if (profile_counts[i] > profile->max_instances)
            return false;
        total += profile_counts[i];
        for (int engine = 0; engine < MIG_ENGINE_COUNT; engine++)
            engines[engine] += profile_counts[i] * mig_engines_used(profile, engine);
    }
    for (int engine = 0; engine < MIG_ENGINE_COUNT; engine++)
        if (board->engine_limits[engine] != MIG_UNKNOWN &&
            engines[engine] > board->engine_limits[engine])
            return false;
    return total <= board->max_instances;
}

bool mig_multiset_place(const struct mig_board *board, const int *profile_counts,
                        struct mig_layout *ret_layout)
{
    struct search search = {.board = board};
    struct mig_layout layout = {0};

    assert(board && profile_counts && board->max_instances <= MIG_INSTANCES_MAX);
    if (!counts_legal(board, profile_counts))
        return false;
    for (int i = 0; i < board->profile_count; i++)
        for (int j = 0; j < profile_counts[i]; j++)
            search_add(&search, (struct mig_instance){(int8_t)i, MIG_START_ANY});
    if (units_of(&search) > board->memory_units || !search_from(&search, 0, 0))
        return false;
    for (int i = 0; i < search.count; i++)
        layout.instances[layout.count++] = search.open[i];
    mig_layout_sort(&layout);
    mig_layout_assert_valid(board, &layout);
    if (ret_layout)
        *ret_layout = layout;
    return true;
}
