/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts as values: spans, the five rules and their words, adding, removing, difference.
 */
#include "support.h"

/* What `layout check` says: "" when legal. */
static const struct {
    const char *board, *layout, *says;
} check_cases[] = {
    {"a100-40gb", "-", ""},
    {"a100-40gb", "7g@0", ""},
    {"a100-40gb", "4g@0 3g@4", ""},
    {"a100-40gb", "2g@0 2g@2 2g@4 1g@6", ""},
    {"a100-40gb", "1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6", ""},
    {"a100-40gb", "1g*2@0 1g*2@2 1g*2@4 1g*2@6", ""},
    {"a100-40gb", "1g@0 1g+me@6", ""},
    {"a100-40gb", "2g@1",
     "rule 1 (starts): 2g.10gb@1: 2g.10gb may start at memory unit 0, 2 or 4"},
    {"a100-40gb", "2g@5", /* the published figure has it, the placement list has not */
     "rule 1 (starts): 2g.10gb@5: 2g.10gb may start at memory unit 0, 2 or 4"},
    {"a100-40gb", "1g@7",
     "rule 1 (starts): 1g.5gb@7: 1g.5gb may start at memory unit 0, 1, 2, 3, 4, 5 or 6"},
    {"a100-40gb", "4g@4", "rule 1 (starts): 4g.20gb@4: 4g.20gb may start at memory unit 0"},
    {"a100-40gb", "3g@0 2g@2",
     "rule 2 (disjoint spans): 3g.20gb@0 and 2g.10gb@2 both take memory units 2 and 3"},
    {"a100-40gb", "1g@0 1g@0",
     "rule 2 (disjoint spans): 1g.5gb@0 and 1g.5gb@0 both take memory unit 0"},
    {"a100-40gb", "3g@4 1g@6", /* compute slices 3 + 1, and yet */
     "rule 2 (disjoint spans): 3g.20gb@4 and 1g.5gb@6 both take memory unit 6"},
    {"a100-40gb", "1g+me@0 1g+me@1",
     "rule 3 (maximum of a profile): 1g.5gb+me@0, 1g.5gb+me@1: 2 of 1g.5gb+me, at most 1\n"
     "rule 4 (engines): 1g.5gb+me@0, 1g.5gb+me@1: need 2 JPEG engines, a100-40gb has 1\n"
     "rule 4 (engines): 1g.5gb+me@0, 1g.5gb+me@1: need 2 optical-flow engines, a100-40gb has "
     "1"},
    {"a30-24gb", "4g@0", ""},
    {"a30-24gb", "2g@0 1g@2 1g+me@3", ""},
    {"a30-24gb", "1g+me@0 2g+me@2",
     "rule 4 (engines): 1g.6gb+me@0, 2g.12gb+me@2: need 2 JPEG engines, a30-24gb has 1\n"
     "rule 4 (engines): 1g.6gb+me@0, 2g.12gb+me@2: need 2 optical-flow engines, a30-24gb has "
     "1"},
    {"h100-80gb-sxm5", "3g@0 3g@4", ""},
    {"h100-80gb-sxm5", "1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g+me@6", ""},
    {"b200-180gb", "4g@0 3g@4", ""}, /* unknown engine counts are not held against it */
    {"b200-180gb", "1g+me@0 1g+me@1",
     "rule 3 (maximum of a profile): 1g.23gb+me@0, 1g.23gb+me@1: 2 of 1g.23gb+me, at most 1\n"
     "rule 4 (engines): 1g.23gb+me@0, 1g.23gb+me@1: need 2 optical-flow engines, b200-180gb "
     "has "
     "1"},
    {"rtxpro6000-96gb", "4g@0", ""},
    {"rtxpro6000-96gb", "1g@0 1g+gfx@3 1g-me@6 1g+me@9", ""},
    {"rtxpro6000-96gb", "2g+me.all@0 2g-me@6", ""},
    {"rtxpro6000-96gb", "2g+me.all@0 1g@6",
     "rule 4 (engines): 2g.48gb+me.all@0, 1g.24gb@6: need 5 decoders, rtxpro6000-96gb has 4\n"
     "rule 4 (engines): 2g.48gb+me.all@0, 1g.24gb@6: need 5 encoders, rtxpro6000-96gb has 4\n"
     "rule 4 (engines): 2g.48gb+me.all@0, 1g.24gb@6: need 5 JPEG engines, rtxpro6000-96gb has "
     "4"},
    {"rtxpro6000-96gb", "1g@4",
     "rule 1 (starts): 1g.24gb@4: 1g.24gb may start at memory unit 0, 3, 6 or 9"},
    {"rtxpro5000-48gb", "1g@0 1g+gfx@1", ""},
    {"rtxpro4500-32gb", "2g@0 1g@1",
     "rule 2 (disjoint spans): 2g.32gb@0 and 1g.16gb@1 both take memory unit 1\n"
     "rule 4 (engines): 2g.32gb@0, 1g.16gb@1: need 4 decoders, rtxpro4500-32gb has 3\n"
     "rule 4 (engines): 2g.32gb@0, 1g.16gb@1: need 4 encoders, rtxpro4500-32gb has 3\n"
     "rule 4 (engines): 2g.32gb@0, 1g.16gb@1: need 3 JPEG engines, rtxpro4500-32gb has 2"},
    {"t4-16gb", "whole@0", ""},
    {"t4-16gb", "whole@1", "rule 1 (starts): whole@1: whole may start at memory unit 0"},
};

static void test_check(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(check_cases) / sizeof(check_cases[0]); i++) {
        const struct mig_board *board = board_named(check_cases[i].board);
        struct mig_layout layout = layout_of(board, check_cases[i].layout);
        struct error err = {0};
        int result = mig_layout_check(board, &layout, &err);

        assert_int_equal(result, *check_cases[i].says ? -E_NO : 0);
        assert_string_equal(err.text, check_cases[i].says);
    }
}

static void test_too_many_instances(void **state)
{
    const struct mig_board *board = board_named("a100-40gb");
    struct mig_layout layout = layout_of(board, "1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6 1g+me@6");
    struct error err = {0};

    (void)state;
    assert_int_equal(mig_layout_check(board, &layout, &err), -E_NO);
    assert_non_null(
        strstr(err.text, "\nrule 5 (instances): 8 instances, a100-40gb holds at most 7"));
}

/* check() and can_add() against the judge, on random layouts of random and real boards. */
static void random_layouts(const struct mig_board *board, uint64_t *seed)
{
    for (int round = 0; round < 50; round++) {
        struct mig_layout layout = {0};
        struct mig_instance more = {(int8_t)below(seed, board->profile_count),
                                    (int8_t)below(seed, MIG_UNITS_MAX + 2)};
        struct mig_layout with;
        int count = below(seed, 6);

        for (int i = 0; i < count; i++)
            layout.instances[layout.count++] =
                (struct mig_instance){(int8_t)below(seed, board->profile_count),
                                      (int8_t)below(seed, board->memory_units + 1)};
        mig_layout_sort(&layout);
        assert_int_equal(mig_layout_check(board, &layout, NULL) == 0, judge(board, &layout));
        if (!judge(board, &layout))
            continue;
        with = layout;
        with.instances[with.count++] = more;
        assert_int_equal(mig_layout_can_add(board, &layout, more), judge(board, &with));
        if (!judge(board, &with))
            continue;
        mig_layout_sort(&with);
        mig_layout_add(board, &layout, more);
        assert_true(mig_layout_equal(&layout, &with));
    }
}

static void test_rules_against_the_judge(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    print_message("# seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 2000; i++) {
        struct random_board random;

        random_board(&seed, &random);
        random_layouts(&random.board, &seed);
    }
    for (size_t i = 0; i < mig_board_count(); i++)
        for (int round = 0; round < 40; round++)
            random_layouts(mig_board_at(i), &seed);
}

static void test_spans(void **state)
{
    const struct mig_board *board = board_named("a100-40gb");
    struct mig_layout layout = layout_of(board, "2g@2 3g@4");

    (void)state;
    assert_int_equal(mig_layout_span(board, &layout), 0xfc);
    assert_int_equal(mig_instance_span(board, layout.instances[0]), 0x0c);
    layout = layout_of(board_named("rtxpro6000-96gb"), "4g@0");
    assert_int_equal(mig_layout_span(board_named("rtxpro6000-96gb"), &layout), 0xfff);
}

static void test_remove(void **state)
{
    const struct mig_board *board = board_named("a100-40gb");
    struct mig_layout layout = layout_of(board, "4g@0 2g@4 1g@6");

    (void)state;
    mig_layout_remove(&layout, 1);
    assert_layout_text(board, &layout, "4g.20gb@0 1g.5gb@6");
    mig_layout_remove(&layout, 1);
    mig_layout_remove(&layout, 0);
    assert_layout_text(board, &layout, "-");
}

static void test_diff(void **state)
{
    static const struct {
        const char *from, *to, *keep, *remove, *create;
    } cases[] = {
        {"-", "-", "-", "-", "-"},
        {"-", "7g@0", "-", "-", "7g.40gb@0"},
        {"7g@0", "-", "-", "7g.40gb@0", "-"},
        {"4g@0 2g@4 1g@6", "4g@0 3g@4", "4g.20gb@0", "2g.10gb@4 1g.5gb@6", "3g.20gb@4"},
        {"4g@0", "3g@0", "-", "4g.20gb@0", "3g.20gb@0"}, /* same span, other profile */
        {"1g@0 1g@1", "1g@1 1g@2", "1g.5gb@1", "1g.5gb@0", "1g.5gb@2"},
        {"2g@0 1g@6", "2g@0 1g@6", "2g.10gb@0 1g.5gb@6", "-", "-"},
    };
    const struct mig_board *board = board_named("a100-40gb");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mig_layout from = layout_of(board, cases[i].from);
        struct mig_layout to = layout_of(board, cases[i].to);
        struct mig_diff diff;

        mig_layout_diff(&from, &to, &diff);
        assert_layout_text(board, &diff.keep, cases[i].keep);
        assert_layout_text(board, &diff.remove, cases[i].remove);
        assert_layout_text(board, &diff.create, cases[i].create);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),  cmocka_unit_test(test_too_many_instances),
        cmocka_unit_test(test_spans),  cmocka_unit_test(test_rules_against_the_judge),
        cmocka_unit_test(test_remove), cmocka_unit_test(test_diff),
    };

    return cmocka_run_group_tests_name("mig/layout", tests, NULL, NULL);
}
