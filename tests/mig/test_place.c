/* SPDX-License-Identifier: Apache-2.0
 *
 * Placing: known answers, the words of a refusal, and the answer of a search without any
 * cleverness on random boards.
 */
#include "support.h"

/* `answer` begins with "rule" when nothing can be placed. */
static const struct {
    const char *board, *request, *existing, *answer;
} cases[] = {
    {"a100-40gb", "-", "-", "-"},
    {"a100-40gb", "3g,2g,1g,1g", "-", "2g.10gb@0 1g.5gb@2 1g.5gb@3 3g.20gb@4"},
    {"a100-40gb", "1g,1g,2g,3g", "-", "2g.10gb@0 1g.5gb@2 1g.5gb@3 3g.20gb@4"},
    {"a100-40gb", "4g,3g", "-", "4g.20gb@0 3g.20gb@4"},
    {"a100-40gb", "3g,2x2g", "-", "2g.10gb@0 2g.10gb@2 3g.20gb@4"},
    {"a100-40gb", "7x1g", "-",
     "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6"},
    {"a100-40gb", "4x1g.10gb", "-", "1g.10gb@0 1g.10gb@2 1g.10gb@4 1g.10gb@6"},
    {"a100-40gb", "2g", "3g@0 1g@6", "3g.20gb@0 2g.10gb@4 1g.5gb@6"},
    {"a100-40gb", "3g@4 4g", "-", "4g.20gb@0 3g.20gb@4"},
    {"a100-40gb", "4x1g.10gb,3x1g", "-",
     "rule 2 (disjoint spans): 4x1g.10gb and 3x1g.5gb take 11 memory units, a100-40gb has 8"},
    {"a100-40gb", "2x3g,1g", "-",
     "rule 2 (disjoint spans): 2x3g.20gb and 1g.5gb take 9 memory units, a100-40gb has 8"},
    {"a100-40gb", "4g,2x2g", "-",
     "rule 2 (disjoint spans): 4g.20gb and 2x2g.10gb never fit together; 4g.20gb may start at "
     "0; "
     "2g.10gb may start at 0, 2 or 4; each of the 9 choices overlaps"},
    {"a100-40gb", "1g,4g,2x2g", "-",
     "rule 2 (disjoint spans): 4g.20gb, 2x2g.10gb and 1g.5gb take 9 memory units, a100-40gb "
     "has "
     "8"},
    {"a100-40gb", "3g", "1g@0 1g@6",
     "rule 2 (disjoint spans): 3g.20gb has no free start beside 1g.5gb@0 1g.5gb@6; 3g.20gb may "
     "start at 0 or 4"},
    {"a100-40gb", "7g", "1g@3",
     "rule 2 (disjoint spans): 7g.40gb takes 8 memory units, a100-40gb has 7 free"},
    {"a100-40gb", "2g,2g", "1g@0 1g@4",
     "rule 2 (disjoint spans): 2x2g.10gb never fit together beside 1g.5gb@0 1g.5gb@4; 2g.10gb "
     "may start at 0, 2 or 4; the only choice overlaps"},
    {"a100-40gb", "2x1g+me", "-",
     "rule 3 (maximum of a profile): 1g.5gb+me, 1g.5gb+me: 2 of 1g.5gb+me, at most 1"},
    {"a100-40gb", "4g", "4g@0", "rule 3 (maximum of a profile): 4g.20gb, 4g.20gb@0"},
    {"a100-40gb", "8x1g", "-", "rule 3 (maximum of a profile)"},
    {"a100-40gb", "6x1g", "2x1g@0",
     "rule 2 (disjoint spans): 1g.5gb@0 and 1g.5gb@0 both take memory unit 0"},
    {"a100-40gb", "3g@2", "-", "rule 1 (starts): 3g.20gb@2"},
    {"a100-40gb", "8x1g", "7g@0", "rule 5 (instances): 9 instances, a100-40gb holds at most 7"},
    {"a30-24gb", "2x2g", "-", "2g.12gb@0 2g.12gb@2"},
    {"a30-24gb", "1g+me,2g+me", "-", "rule 4 (engines): 1g.6gb+me, 2g.12gb+me: need 2 JPEG"},
    {"rtxpro6000-96gb", "1g+me.all,3x1g-me", "-",
     "1g.24gb+me.all@0 1g.24gb-me@3 1g.24gb-me@6 1g.24gb-me@9"},
    {"rtxpro6000-96gb", "2g,2x1g", "-", "2g.48gb@0 1g.24gb@6 1g.24gb@9"},
    {"rtxpro6000-96gb", "1g+me.all,1g", "-", "rule 4 (engines): 1g.24gb, 1g.24gb+me.all"},
    {"t4-16gb", "whole", "-", "whole@0"},
    {"t4-16gb", "2xwhole", "-", "rule 3 (maximum of a profile): whole, whole: 2 of whole"},
};

static void test_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct mig_board *board = board_named(cases[i].board);
        struct mig_layout request = layout_of(board, cases[i].request);
        struct mig_layout existing = layout_of(board, cases[i].existing);
        struct mig_layout answer;
        struct error err = {0};
        bool refused = strncmp(cases[i].answer, "rule", 4) == 0;

        assert_int_equal(mig_layout_place(board, &request, &existing, &answer, &err),
                         refused ? -E_NO : 0);
        if (!refused)
            assert_layout_text(board, &answer, cases[i].answer);
        else if (strncmp(err.text, cases[i].answer, strlen(cases[i].answer)) != 0)
            fail_msg("%s %s: got \"%s\"", cases[i].board, cases[i].request, err.text);
    }
}

/* The order in which open starts are chosen: larger spans, more slices, table order. */
static bool comes_first(const struct mig_board *board, int a, int b)
{
    const struct mig_profile *x = &board->profiles[a], *y = &board->profiles[b];
    int by_size = y->placement_size - x->placement_size;
    int by_slices = y->compute_slices - x->compute_slices;

    return by_size ? by_size < 0 : by_slices ? by_slices < 0 : a < b;
}

/* Tries every start of every open instance, in lexicographic order. */
static bool try_all(const struct mig_board *board, struct mig_layout *layout, const int *open,
                    int open_count)
{
    if (open_count == 0)
        return judge(board, layout);
    for (int start = 0; start < board->memory_units; start++) {
        layout->instances[open[0]].start = (int8_t)start;
        if (try_all(board, layout, open + 1, open_count - 1))
            return true;
    }
    return false;
}

static bool brute_force(const struct mig_board *board, const struct mig_layout *request,
                        const struct mig_layout *existing, struct mig_layout *ret)
{
    struct mig_layout all = *existing;
    int open[MIG_INSTANCES_MAX];
    int open_count = 0;

    for (int i = 0; i < request->count; i++)
        all.instances[all.count++] = request->instances[i];
    for (int i = 0; i < all.count; i++)
        if (all.instances[i].start == MIG_START_ANY)
            open[open_count++] = i;
    for (int i = 0; i < open_count; i++)
        for (int j = i + 1; j < open_count; j++)
            if (comes_first(board, all.instances[open[j]].profile,
                            all.instances[open[i]].profile)) {
                int swap = open[i];

                open[i] = open[j];
                open[j] = swap;
            }
    if (!try_all(board, &all, open, open_count))
        return false;
    mig_layout_sort(&all);
    *ret = all;
    return true;
}

static void random_instances(const struct mig_board *board, uint64_t *seed, int count,
                             int fixed, struct mig_layout *layout)
{
    for (int i = 0; i < count; i++) {
        int start = below(seed, 100) < fixed ? below(seed, board->memory_units) : MIG_START_ANY;

        layout->instances[layout->count++] =
            (struct mig_instance){(int8_t)below(seed, board->profile_count), (int8_t)start};
    }
    mig_layout_sort(layout);
}

static int compare_once(const struct mig_board *board, uint64_t *seed)
{
    struct mig_layout request = {0}, existing = {0}, expected, answer = {0};
    struct error err = {0};
    bool possible;

    random_instances(board, seed, below(seed, 4), 15, &request);
    random_instances(board, seed, below(seed, 3), 100, &existing);
    possible = brute_force(board, &request, &existing, &expected);
    assert_int_equal(mig_layout_place(board, &request, &existing, &answer, &err),
                     possible ? 0 : -E_NO);
    if (possible)
        assert_true(mig_layout_equal(&answer, &expected));
    else
        assert_memory_equal(err.text, "rule ", 5);
    return possible;
}

static void test_against_brute_force(void **state)
{
    uint64_t seed = test_seed();
    int possible = 0;

    (void)state;
    print_message("# seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 2000; i++) {
        struct random_board random;

        random_board(&seed, &random);
        for (int round = 0; round < 5; round++)
            possible += compare_once(&random.board, &seed);
    }
    for (size_t i = 0; i < mig_board_count(); i++)
        for (int round = 0; round < 100; round++)
            possible += compare_once(mig_board_at(i), &seed);
    assert_in_range(possible, 1000, 11000); /* both answers were met often */
}

/* Every legal layout, its starts taken away, can be placed again; so can its multiset. */
static bool forget_starts(const struct mig_layout *layout, void *context)
{
    const struct mig_board *board = context;
    struct mig_layout request = *layout, answer, by_multiset;
    int counts[MIG_PROFILES_MAX] = {0};

    for (int i = 0; i < request.count; i++) {
        request.instances[i].start = MIG_START_ANY;
        counts[request.instances[i].profile]++;
    }
    assert_int_equal(mig_layout_place(board, &request, NULL, &answer, NULL), 0);
    assert_true(judge(board, &answer));
    assert_true(mig_multiset_place(board, counts, &by_multiset));
    assert_true(mig_layout_equal(&answer, &by_multiset));
    return true;
}

static void test_places_every_legal_multiset(void **state)
{
    (void)state;
    for (size_t i = 0; i < mig_board_count(); i++) {
        struct mig_board board = *mig_board_at(i);

        mig_layout_enumerate(&board, MIG_UNIVERSE_FULL, false, forget_starts, &board);
    }
}

/* The most open instances that any legal layout of the same profiles has where they were. */
struct most_kept {
    const struct mig_layout *old;
    int counts[MIG_PROFILES_MAX];
    int most;
};

static int count_kept(const struct mig_layout *old, const struct mig_layout *layout)
{
    int kept = 0;
    for (int i = 0; i < layout->count; i++)
        kept += mig_layout_contains(old, layout->instances[i]);
    return kept;
}

static bool look_at(const struct mig_layout *layout, void *context)
{
    struct most_kept *most = context;
    int counts[MIG_PROFILES_MAX] = {0};
    for (int i = 0; i < layout->count; i++)
        counts[layout->instances[i].profile]++;
    int kept = count_kept(most->old, layout);
    if (memcmp(counts, most->counts, sizeof counts) == 0 && kept > most->most)
        most->most = kept;
    return true;
}

/* Requests without starts beside old layouts, against all layouts there are. */
static void test_near_keeps_the_most(void **state)
{
    static const char *const olds[] = {"-",
                                       "1g@3 3g@4",
                                       "2g@2 1g@6",
                                       "1g@1 1g@5 2g@2",
                                       "3g@0 2g@4 1g@6",
                                       "1g@0 1g@2 1g@4 1g@6"};
    static const char *const requests[] = {"3g",       "2x1g 3g",         "4g 2g 1g",
                                           "2g 2g 1g", "3x1g 2g 1g.10gb", "1g+me 1g 3g"};
    const struct mig_board *board = board_named("a100-40gb");
    (void)state;
    for (size_t o = 0; o < sizeof olds / sizeof *olds; o++)
        for (size_t r = 0; r < sizeof requests / sizeof *requests; r++) {
            struct mig_layout old = {0}, request = {0}, answer;
            assert_int_equal(mig_layout_parse(board, olds[o], &old, NULL), 0);
            assert_int_equal(mig_layout_parse(board, requests[r], &request, NULL), 0);
            struct most_kept most = {.old = &old};
            for (int i = 0; i < request.count; i++)
                most.counts[request.instances[i].profile]++;
            assert_int_equal(mig_layout_place_near(board, &request, &old, &answer, NULL), 0);
            assert_true(judge(board, &answer));
            mig_layout_enumerate(board, MIG_UNIVERSE_FULL, false, look_at, &most);
            assert_int_equal(count_kept(&old, &answer), most.most);
        }
}

static void test_multiset_refused(void **state)
{
    const struct mig_board *board = board_named("a100-40gb");
    struct mig_layout layout = {.count = -7};
    int too_many_units[MIG_PROFILES_MAX] = {3, 0, 4};
    int too_many_of_one[MIG_PROFILES_MAX] = {0, 2};
    int no_starts[MIG_PROFILES_MAX] = {0, 0, 0, 2, 0, 1};

    (void)state;
    assert_false(mig_multiset_place(board, too_many_units, &layout));
    assert_false(mig_multiset_place(board, too_many_of_one, &layout));
    assert_false(mig_multiset_place(board, no_starts, &layout));
    assert_int_equal(layout.count, -7);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_against_brute_force),
        cmocka_unit_test(test_places_every_legal_multiset),
        cmocka_unit_test(test_near_keeps_the_most),
        cmocka_unit_test(test_multiset_refused),
    };

    return cmocka_run_group_tests_name("mig/place", tests, NULL, NULL);
}
