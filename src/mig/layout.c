/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts as values: spans as bit masks over memory units, the legality rules, adding,
 * removing, difference.
 */
#include "mig/layout.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "mig/rules.h"

static const struct mig_profile *profile_of(const struct mig_board *board,
                                            struct mig_instance instance)
{
    assert(instance.profile >= 0 && instance.profile < board->profile_count);
    return &board->profiles[instance.profile];
}

uint32_t mig_instance_span(const struct mig_board *board, struct mig_instance instance)
{
    const struct mig_profile *profile = profile_of(board, instance);

    assert(instance.start >= 0);
    assert(profile->placement_size > 0 && profile->placement_size <= MIG_UNITS_MAX);
    if (instance.start >= MIG_UNITS_MAX)
        return 0; /* off the board: rule 1 refuses it */
    return ((1U << profile->placement_size) - 1) << instance.start;
}

uint32_t mig_layout_span(const struct mig_board *board, const struct mig_layout *layout)
{
    uint32_t span = 0;

    assert(layout->count <= MIG_INSTANCES_MAX);
    for (int i = 0; i < layout->count; i++)
        span |= mig_instance_span(board, layout->instances[i]);
    assert(layout->count == 0 || span || layout->instances[0].start >= board->memory_units);
    return span;
}

/* By start, then profile: the order of the text form. */
static bool goes_before(struct mig_instance a, struct mig_instance b)
{
    return a.start != b.start ? a.start < b.start : a.profile < b.profile;
}

void mig_layout_sort(struct mig_layout *layout)
{
    assert(layout->count >= 0 && layout->count <= MIG_INSTANCES_MAX);
    for (int i = 1; i < layout->count; i++) {
        struct mig_instance moving = layout->instances[i];
        int j = i;

        for (; j > 0 && goes_before(moving, layout->instances[j - 1]); j--)
            layout->instances[j] = layout->instances[j - 1];
        layout->instances[j] = moving;
    }
}

void mig_layout_assert_valid(const struct mig_board *board, const struct mig_layout *layout)
{
    assert(layout->count >= 0 && layout->count <= MIG_INSTANCES_MAX);
    for (int i = 0; i < layout->count; i++) {
        struct mig_instance instance = layout->instances[i];

        assert(instance.profile >= 0 && instance.profile < board->profile_count);
        assert(instance.start >= MIG_START_ANY);
        assert(i == 0 || !goes_before(instance, layout->instances[i - 1]));
    }
}

bool mig_layout_equal(const struct mig_layout *a, const struct mig_layout *b)
{
    assert(a->count <= MIG_INSTANCES_MAX && b->count <= MIG_INSTANCES_MAX);
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++)
        if (a->instances[i].profile != b->instances[i].profile ||
            a->instances[i].start != b->instances[i].start)
            return false;
    return true;
}

void mig_units_text(uint32_t units, const char *conjunction, struct str *text)
{
    bool first = true;

    assert(units);
    for (int unit = 0; units; unit++, units >>= 1) {
        if (!(units & 1))
            continue;
        if (!first)
            str_addf(text, units == 1 ? " %s " : ", ", conjunction);
        str_addf(text, "%d", unit);
        first = false;
    }
}

void mig_instance_text(const struct mig_board *board, struct mig_instance instance,
                       struct str *text)
{
    const struct mig_profile *profile = profile_of(board, instance);

    assert(text);
    str_add(text, profile->name);
    if (instance.start != MIG_START_ANY)
        str_addf(text, "@%d", instance.start);
}

/* Adds a line, which begins with its newline, unless it is there: 3x1g@0 has one pair of
 * overlapping instances three times. */
static void add_once(struct str *violations, const char *line)
{
    size_t length = strlen(line);

    assert(line[0] == '\n');
    for (const char *at = violations->bytes; at && (at = strstr(at, line)); at += length)
        if (at[length] == '\n' || at[length] == '\0')
            return;
    str_add(violations, line);
}

static void rule_starts(const struct mig_board *board, const struct mig_layout *layout,
                        struct str *violations)
{
    CLEANUP(str_done) struct str line = STR_EMPTY;

    for (int i = 0; i < layout->count; i++) {
        struct mig_instance instance = layout->instances[i];
        const struct mig_profile *profile = profile_of(board, instance);

        assert(profile->starts);
        if (instance.start < MIG_UNITS_MAX && profile->starts >> instance.start & 1)
            continue;
        str_clear(&line);
        str_add(&line, "\nrule 1 (starts): ");
        mig_instance_text(board, instance, &line);
        str_addf(&line, ": %s may start at memory unit ", profile->name);
        mig_units_text(profile->starts, "or", &line);
        add_once(violations, line.bytes);
    }
}

static void rule_spans(const struct mig_board *board, const struct mig_layout *layout,
                       struct str *violations)
{
    CLEANUP(str_done) struct str line = STR_EMPTY;

    for (int i = 0; i < layout->count; i++) {
        for (int j = i + 1; j < layout->count; j++) {
            struct mig_instance a = layout->instances[i], b = layout->instances[j];
            uint32_t shared = mig_instance_span(board, a) & mig_instance_span(board, b);

            if (!shared)
                continue;
            assert(i != j);
            str_clear(&line);
            str_add(&line, "\nrule 2 (disjoint spans): ");
            mig_instance_text(board, a, &line);
            str_add(&line, " and ");
            mig_instance_text(board, b, &line);
            str_addf(&line, " both take memory unit%s ", shared & (shared - 1) ? "s" : "");
            mig_units_text(shared, "and", &line);
            add_once(violations, line.bytes);
        }
    }
}

/* Names the concerned instances; there is at least one. */
static void add_instances(const struct mig_board *board, const struct mig_layout *layout,
                          const bool *concerned, struct str *text)
{
    bool first = true;

    for (int i = 0; i < layout->count; i++) {
        if (!concerned[i])
            continue;
        if (!first)
            str_add(text, ", ");
        mig_instance_text(board, layout->instances[i], text);
        first = false;
    }
    assert(!first);
}

static void rule_maxima(const struct mig_board *board, const struct mig_layout *layout,
                        struct str *violations)
{
    for (int profile = 0; profile < board->profile_count; profile++) {
        bool concerned[MIG_INSTANCES_MAX] = {false};
        int most = board->profiles[profile].max_instances;
        int count = 0;

        assert(most > 0);
        for (int i = 0; i < layout->count; i++) {
            concerned[i] = layout->instances[i].profile == profile;
            count += concerned[i];
        }
        if (count <= most)
            continue;
        str_add(violations, "\nrule 3 (maximum of a profile): ");
        add_instances(board, layout, concerned, violations);
        str_addf(violations, ": %d of %s, at most %d", count, board->profiles[profile].name,
                 most);
    }
}

static void rule_engines(const struct mig_board *board, const struct mig_layout *layout,
                         struct str *violations)
{
    for (int engine = 0; engine < MIG_ENGINE_COUNT; engine++) {
        bool concerned[MIG_INSTANCES_MAX] = {false};
        int limit = board->engine_limits[engine];
        int sum = 0;

        for (int i = 0; i < layout->count; i++) {
            int used = mig_engines_used(profile_of(board, layout->instances[i]), engine);

            concerned[i] = used > 0;
            sum += used;
        }
        assert(limit >= 0 || limit == MIG_UNKNOWN);
        if (limit == MIG_UNKNOWN || sum <= limit)
            continue;
        str_add(violations, "\nrule 4 (engines): ");
        add_instances(board, layout, concerned, violations);
        str_addf(violations, ": need %d %s, %s has %d", sum, mig_engine_name(engine),
                 board->slug, limit);
    }
}

void mig_rules_without_starts(const struct mig_board *board, const struct mig_layout *layout,
                              struct str *violations)
{
    assert(layout->count >= 0 && layout->count <= MIG_INSTANCES_MAX);
    rule_maxima(board, layout, violations);
    rule_engines(board, layout, violations);
    if (layout->count > board->max_instances)
        str_addf(violations, "\nrule 5 (instances): %d instances, %s holds at most %d",
                 layout->count, board->slug, board->max_instances);
}

int mig_layout_check(const struct mig_board *board, const struct mig_layout *layout,
                     struct error *err)
{
    CLEANUP(str_done) struct str violations = STR_EMPTY;

    assert(layout->count >= 0 && layout->count <= MIG_INSTANCES_MAX);
    rule_starts(board, layout, &violations);
    rule_spans(board, layout, &violations);
    mig_rules_without_starts(board, layout, &violations);
    if (violations.length) /* each line begins with its newline */
        return error_set(err, E_NO, "%s", violations.bytes + 1);
    return 0;
}

bool mig_layout_can_add(const struct mig_board *board, const struct mig_layout *layout,
                        struct mig_instance instance)
{
    const struct mig_profile *profile = profile_of(board, instance);
    int alike = 0;

    assert(instance.start >= 0 && layout->count <= board->max_instances);
    if (layout->count == board->max_instances || instance.start >= MIG_UNITS_MAX ||
        !(profile->starts >> instance.start & 1) ||
        mig_layout_span(board, layout) & mig_instance_span(board, instance))
        return false;
    for (int i = 0; i < layout->count; i++)
        alike += layout->instances[i].profile == instance.profile;
    if (alike >= profile->max_instances)
        return false;
    for (int engine = 0; engine < MIG_ENGINE_COUNT; engine++) {
        int limit = board->engine_limits[engine];
        int sum = mig_engines_used(profile, engine);

        for (int i = 0; i < layout->count; i++)
            sum += mig_engines_used(profile_of(board, layout->instances[i]), engine);
        if (limit != MIG_UNKNOWN && sum > limit)
            return false;
    }
    return true;
}

void mig_layout_add(const struct mig_board *board, struct mig_layout *layout,
                    struct mig_instance instance)
{
    assert(mig_layout_can_add(board, layout, instance));
    layout->instances[layout->count++] = instance;
    mig_layout_sort(layout);
    mig_layout_assert_valid(board, layout);
    assert(mig_layout_check(board, layout, NULL) == 0);
}

void mig_layout_remove(struct mig_layout *layout, int index)
{
    assert(index >= 0 && index < layout->count);
    memmove(&layout->instances[index], &layout->instances[index + 1],
            (size_t)(layout->count - index - 1) * sizeof(layout->instances[0]));
    layout->count--;
    assert(layout->count >= 0);
}

bool mig_layout_contains(const struct mig_layout *layout, struct mig_instance instance)
{
    assert(layout->count >= 0 && layout->count <= MIG_INSTANCES_MAX);
    for (int i = 0; i < layout->count; i++)
        if (layout->instances[i].profile == instance.profile &&
            layout->instances[i].start == instance.start)
            return true;
    return false;
}

void mig_layout_diff(const struct mig_layout *from, const struct mig_layout *to,
                     struct mig_diff *ret_diff)
{
    struct mig_diff diff = {0};

    assert(from && to && ret_diff);
    for (int i = 0; i < from->count; i++) {
        bool stays = mig_layout_contains(to, from->instances[i]);
        struct mig_layout *side = stays ? &diff.keep : &diff.remove;

        side->instances[side->count++] = from->instances[i];
    }
    for (int i = 0; i < to->count; i++)
        if (!mig_layout_contains(from, to->instances[i]))
            diff.create.instances[diff.create.count++] = to->instances[i];
    assert(diff.keep.count + diff.create.count == to->count);
    assert(diff.keep.count + diff.remove.count == from->count);
    *ret_diff = diff;
}
