/* SPDX-License-Identifier: Apache-2.0
 *
 * Enumeration: the counts of every board and universe (golden file, and an enumeration by
 * inclusion and exclusion under the judge), the published lists where they are at hand.
 */
#include "support.h"

#include "base/file.h"

static const char *const universes[] = {"base", "base+rev2", "base+me", "full"};

enum { STATES_MAX = 4096, ROWS_MAX = 512 };

static uint32_t mask_of(const struct mig_board *board, const char *universe)
{
    uint32_t mask = 0;

    assert_int_equal(mig_universe_get(board, universe, &mask, NULL), 0);
    return mask;
}

/* One instance after the other is taken or left; what the judge lets pass is kept. */
struct oracle {
    const struct mig_board *board;
    struct mig_instance items[256];
    int item_count;
    struct mig_layout states[STATES_MAX];
    int state_count;
    int maximal_count;
};

static void oracle_items(struct oracle *oracle, uint32_t universe)
{
    for (int profile = 0; profile < oracle->board->profile_count; profile++)
        for (int start = 0; start < oracle->board->memory_units; start++)
            if (universe >> profile & 1)
                oracle->items[oracle->item_count++] =
                    (struct mig_instance){(int8_t)profile, (int8_t)start};
}

static void oracle_walk(struct oracle *oracle, int item, const struct mig_layout *layout)
{
    struct mig_layout with = *layout;

    if (item == oracle->item_count) {
        assert_true(oracle->state_count < STATES_MAX);
        oracle->states[oracle->state_count++] = *layout;
        return;
    }
    oracle_walk(oracle, item + 1, layout);
    if (with.count == MIG_INSTANCES_MAX)
        return;
    with.instances[with.count++] = oracle->items[item];
    if (judge(oracle->board, &with)) /* what is illegal stays so, whatever is added */
        oracle_walk(oracle, item + 1, &with);
}

static bool oracle_maximal(const struct oracle *oracle, const struct mig_layout *layout)
{
    for (int i = 0; i < oracle->item_count; i++) {
        struct mig_layout with = *layout;

        if (with.count == MIG_INSTANCES_MAX)
            return true;
        with.instances[with.count++] = oracle->items[i];
        if (judge(oracle->board, &with))
            return false;
    }
    return true;
}

/* Sorted profiles, as a comparable multiset. */
static void multiset_of(const struct mig_layout *layout, char ret[MIG_INSTANCES_MAX + 1])
{
    for (int i = 0; i < layout->count; i++) {
        int j = i;

        for (; j > 0 && ret[j - 1] > 'a' + layout->instances[i].profile; j--)
            ret[j] = ret[j - 1];
        ret[j] = (char)('a' + layout->instances[i].profile);
    }
    ret[layout->count] = '\0';
}

static int add_distinct(char sets[][MIG_INSTANCES_MAX + 1], int count, const char *set)
{
    for (int i = 0; i < count; i++)
        if (strcmp(sets[i], set) == 0)
            return count;
    strcpy(sets[count], set);
    return count + 1;
}

/* Whether every letter of a stands in b; both sorted. */
static bool is_part(const char *a, const char *b)
{
    for (; *a; b++) {
        if (!*b)
            return false;
        a += *a == *b;
    }
    return true;
}

/* Counts of one board and universe: states, maximal states, multisets (none empty),
 * multisets of maximal states, multisets without a legal superset. */
static void oracle_counts(struct oracle *oracle, int ret[5])
{
    static char all[STATES_MAX][MIG_INSTANCES_MAX + 1], top[STATES_MAX][MIG_INSTANCES_MAX + 1];
    int all_count = 0, top_count = 0, maximal = 0, undominated = 0;

    for (int i = 0; i < oracle->state_count; i++) {
        char set[MIG_INSTANCES_MAX + 1];

        multiset_of(&oracle->states[i], set);
        if (*set)
            all_count = add_distinct(all, all_count, set);
        if (!oracle_maximal(oracle, &oracle->states[i]))
            continue;
        maximal++;
        top_count = add_distinct(top, top_count, set);
    }
    for (int i = 0; i < top_count; i++) {
        bool dominated = false;

        for (int j = 0; j < all_count; j++)
            dominated =
                dominated || (strlen(all[j]) > strlen(top[i]) && is_part(top[i], all[j]));
        undominated += !dominated;
    }
    memcpy(ret, (int[5]){oracle->state_count, maximal, all_count, top_count, undominated},
           5 * sizeof(int));
}

struct collected {
    const struct mig_board *board;
    struct mig_layout states[STATES_MAX];
    int count;
};

static bool collect(const struct mig_layout *layout, void *context)
{
    struct collected *collected = context;

    assert_true(collected->count < STATES_MAX);
    collected->states[collected->count++] = *layout;
    return true;
}

/* The order of the published lists: profile and start, instance by instance. */
static int compare_states(const void *a, const void *b)
{
    const struct mig_layout *x = a, *y = b;

    for (int i = 0; i < x->count && i < y->count; i++) {
        if (x->instances[i].profile != y->instances[i].profile)
            return x->instances[i].profile - y->instances[i].profile;
        if (x->instances[i].start != y->instances[i].start)
            return x->instances[i].start - y->instances[i].start;
    }
    return x->count - y->count;
}

/* Enumerates one board and universe both ways, compares, and appends the golden line. */
static void compare_universe(const struct mig_board *board, const char *universe,
                             struct str *golden)
{
    static struct oracle oracle;
    static struct collected collected;
    uint32_t mask = mask_of(board, universe);
    int counts[5];

    oracle.board = board;
    oracle.item_count = oracle.state_count = 0;
    oracle_items(&oracle, mask);
    oracle_walk(&oracle, 0, &(struct mig_layout){0});
    for (int i = 0; i < oracle.state_count; i++)
        mig_layout_sort(&oracle.states[i]);
    qsort(oracle.states, (size_t)oracle.state_count, sizeof(oracle.states[0]), compare_states);
    collected.count = 0;
    assert_int_equal(mig_layout_enumerate(board, mask, false, collect, &collected),
                     oracle.state_count);
    for (int i = 0; i < oracle.state_count; i++)
        assert_true(mig_layout_equal(&oracle.states[i], &collected.states[i]));
    oracle_counts(&oracle, counts);
    assert_int_equal(mig_layout_enumerate(board, mask, true, NULL, NULL), counts[1]);
    assert_int_equal(mig_multisets_maximal(board, mask, NULL, 0), counts[4]);
    str_addf(golden, "%s %s %d %d %d %d %d\n", board->slug, universe, counts[0], counts[1],
             counts[2], counts[3], counts[4]);
}

static void test_counts_of_all_boards(void **state)
{
    CLEANUP(str_done) struct str counts = STR_EMPTY, expected = STR_EMPTY, path = STR_EMPTY;
    const char *update = getenv("UPDATE_GOLDEN");

    (void)state;
    str_add(&counts, "board universe states maximal multisets maximal_multisets undominated\n");
    for (size_t i = 0; i < mig_board_count(); i++)
        for (size_t j = 0; j < sizeof(universes) / sizeof(universes[0]); j++)
            compare_universe(mig_board_at(i), universes[j], &counts);
    str_addf(&path, "%s/tests/mig/golden/state_counts.txt", getenv("TRANCHE_SOURCE_ROOT"));
    if (update && strcmp(update, "1") == 0)
        assert_int_equal(file_write(path.bytes, counts.bytes, counts.length, NULL), 0);
    assert_int_equal(file_read(path.bytes, 1 << 20, &expected, NULL), 0);
    assert_string_equal(counts.bytes, expected.bytes);
}

/* The twelve of a 7-slice board, as published. */
static void test_undominated_multisets(void **state)
{
    static const char *const expected[] = {
        "7x1g",      "5x1g 1x2g",      "4x1g 1x3g", "3x1g 2x2g", "3x1g 1x4g", "2x1g 1x2g 1x3g",
        "1x1g 3x2g", "1x1g 1x2g 1x4g", "2x2g 1x3g", "2x3g",      "1x3g 1x4g", "1x7g",
    };
    const struct mig_board *board = board_named("a100-40gb");
    int rows[ROWS_MAX];
    size_t count = mig_multisets_maximal(board, mask_of(board, "base"), rows, 64);

    (void)state;
    assert_int_equal(count, 12);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        bool found = false;

        for (int j = 0; j < board->profile_count; j++)
            if (rows[i * (size_t)board->profile_count + (size_t)j])
                str_addf(&text, "%s%dx%s", text.length ? " " : "",
                         rows[i * (size_t)board->profile_count + (size_t)j],
                         board->profiles[j].kind);
        for (size_t j = 0; j < count; j++)
            found = found || strcmp(expected[j], text.bytes) == 0;
        if (!found)
            fail_msg("unexpected multiset %s", text.bytes);
    }
}

static void test_capacity(void **state)
{
    const struct mig_board *board = board_named("a100-40gb");
    int rows[3 * MIG_PROFILES_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        rows[i] = -1;
    assert_int_equal(mig_multisets_maximal(board, mask_of(board, "base"), rows, 2), 12);
    assert_true(rows[2 * board->profile_count - 1] >= 0);
    assert_int_equal(rows[2 * board->profile_count], -1);
}

struct list {
    const struct mig_board *board;
    struct str *text;
    int left; /* states until it says stop; negative: never */
};

static bool add_line(const struct mig_layout *layout, void *context)
{
    struct list *list = context;

    mig_layout_format(list->board, layout, list->text);
    str_add_char(list->text, '\n');
    return --list->left != 0;
}

static void test_stops(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct list list = {board_named("a30-24gb"), &text, 3};

    (void)state;
    assert_int_equal(
        mig_layout_enumerate(list.board, MIG_UNIVERSE_FULL, false, add_line, &list), 3);
    assert_string_equal(text.bytes, "-\n1g.6gb@0\n1g.6gb@0 1g.6gb@1\n");
}

static void test_published_lists(void **state)
{
    static const char *const boards[] = {"a100-40gb", "a30-24gb", "h100-80gb-sxm5"};
    static const char *const listed[] = {"base", "base+me"};
    int compared = 0;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        CLEANUP(str_done) struct str path = STR_EMPTY, expected = STR_EMPTY, text = STR_EMPTY;
        struct list list = {board_named(boards[i / 2]), &text, -1};

        str_addf(&path, "%s/../shared/facts/states/%s.%s.all.txt",
                 getenv("TRANCHE_SOURCE_ROOT"), boards[i / 2], listed[i % 2]);
        if (file_read(path.bytes, 1 << 20, &expected, NULL) < 0)
            continue;
        mig_layout_enumerate(list.board, mask_of(list.board, listed[i % 2]), false, add_line,
                             &list);
        assert_string_equal(text.bytes, expected.bytes);
        compared++;
    }
    if (compared == 0) {
        print_message("# skipped: no ../shared/facts/states to compare with\n");
        skip();
    }
    assert_int_equal(compared, 6);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_of_all_boards),
        cmocka_unit_test(test_undominated_multisets),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_published_lists),
    };

    return cmocka_run_group_tests_name("mig/enumerate", tests, NULL, NULL);
}
