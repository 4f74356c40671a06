/* SPDX-License-Identifier: Apache-2.0
 *
 * The text form: what reads, what it reads as, and what is refused in which words.
 */
#include "support.h"

static void test_reads(void **state)
{
    static const char *const cases[][3] = {
        {"a100-40gb", "-", "-"},
        {"a100-40gb", " -\n", "-"},
        {"a100-40gb", "4g.20gb@0 2g.10gb@4 1g.5gb@6", "4g.20gb@0 2g.10gb@4 1g.5gb@6"},
        {"a100-40gb", "1g@6,2g@4,4g@0", "4g.20gb@0 2g.10gb@4 1g.5gb@6"},
        {"a100-40gb", "  1g@6\t,\n 2g@4   4g@0 ", "4g.20gb@0 2g.10gb@4 1g.5gb@6"},
        {"a100-40gb", "3x1g", "1g.5gb 1g.5gb 1g.5gb"},
        {"a100-40gb", "1x1g+me@3", "1g.5gb+me@3"},
        {"a100-40gb", "2x1g*2,3g", "1g.10gb 1g.10gb 3g.20gb"},
        {"a100-40gb", "1g@007", "1g.5gb@7"},
        {"a100-40gb", "1g@127", "1g.5gb@127"}, /* illegal, but a layout */
        {"a100-40gb", "8x1g", "1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb"},
        {"a100-40gb", "1g@2 1g@2", "1g.5gb@2 1g.5gb@2"},
        {"a100-40gb", "1g+me@2 1g@2", "1g.5gb@2 1g.5gb+me@2"},
        {"rtxpro6000-96gb", "1g-me@9 1g+me.all@0 2g", "2g.48gb 1g.24gb+me.all@0 1g.24gb-me@9"},
        {"t4-16gb", "whole", "whole"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct mig_board *board = board_named(cases[i][0]);
        struct mig_layout layout = layout_of(board, cases[i][1]);

        assert_layout_text(board, &layout, cases[i][2]);
    }
}

static void test_refuses(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *message;
    } cases[] = {
        {"", E_INPUT, "no text"},
        {" \n", E_INPUT, "no text"},
        {",", E_INPUT, "entry is missing beside a comma"},
        {",1g", E_INPUT, "entry is missing beside a comma"},
        {"1g,,2g", E_INPUT, "after the comma that follows \"1g\""},
        {"1g, ,2g", E_INPUT, "after the comma that follows \"1g\""},
        {"1g,", E_INPUT, "after the comma that follows \"1g\""},
        {"1g -", E_INPUT, "no slice profile \"-\""},
        {"--", E_INPUT, "no slice profile \"--\""},
        {"1G", E_INPUT, "no slice profile \"1G\""},
        {"1g.5", E_INPUT, "no slice profile \"1g.5\": it has 1g.5gb, 1g.5gb+me"},
        {"5g", E_INPUT, "a100-40gb has no slice profile \"5g\""},
        {"3g.40gb", E_INPUT, "no slice profile \"3g.40gb\""},
        {"1g@", E_INPUT, "the start after @"},
        {"1g@-1", E_INPUT, "the start after @"},
        {"1g@1.5", E_INPUT, "the start after @"},
        {"1g@1@2", E_INPUT, "the start after @"},
        {"1g@0x1", E_INPUT, "the start after @"},
        {"1g @1", E_INPUT, "there is no profile"},
        {"@1", E_INPUT, "there is no profile"},
        {"0x1g", E_INPUT, "count must be 1 or more"},
        {"00x1g", E_INPUT, "count must be 1 or more"},
        {"3x", E_INPUT, "there is no profile"},
        {"3x@1", E_INPUT, "there is no profile"},
        {"x1g", E_INPUT, "no slice profile \"x1g\""},
        {"-1x1g", E_INPUT, "no slice profile \"-1x1g\""},
        {"3x3x1g", E_INPUT, "no slice profile \"3x1g\""},
        {"9x1g", E_NO, "rule 5 (instances): 9 instances, a100-40gb holds at most 7"},
        {"99999999999999999999x1g", E_NO, "rule 5"},
        {"9x1g 5g", E_INPUT, "no slice profile \"5g\""}, /* wrong words come first */
        {"1g@128", E_NO, "rule 1 (starts): 1g.5gb@128: 1g.5gb may start at memory unit 0, 1"},
        {"3g@99999999999999999999", E_NO, "rule 1 (starts)"},
    };
    const struct mig_board *board = board_named("a100-40gb");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mig_layout layout = {.count = -7};
        struct error err = {0};

        assert_int_equal(mig_layout_parse(board, cases[i].text, &layout, &err), -cases[i].code);
        assert_int_equal(layout.count, -7);
        if (!strstr(err.text, cases[i].message))
            fail_msg("\"%s\": got \"%s\"", cases[i].text, err.text);
    }
}

static bool round_trip(const struct mig_layout *layout, void *context)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct mig_layout again;

    mig_layout_format(context, layout, &text);
    again = layout_of(context, text.bytes);
    assert_true(mig_layout_equal(layout, &again));
    return true;
}

static void test_round_trip_of_every_layout(void **state)
{
    (void)state;
    for (size_t i = 0; i < mig_board_count(); i++) {
        struct mig_board board = *mig_board_at(i);

        assert_true(mig_layout_enumerate(&board, MIG_UNIVERSE_FULL, false, round_trip, &board) >
                    1);
    }
}

static void test_long_text(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct mig_layout layout;
    struct error err = {0};

    (void)state;
    for (int i = 0; i < 200000; i++)
        str_add(&text, "1g.5gb@0,");
    str_add(&text, "1g");
    assert_int_equal(mig_layout_parse(board_named("a100-40gb"), text.bytes, &layout, &err),
                     -E_NO);
    assert_non_null(strstr(err.text, "200001 instances"));
    str_clear(&text);
    for (int i = 0; i < 100000; i++)
        str_add_char(&text, 'g');
    assert_int_equal(mig_layout_parse(board_named("a100-40gb"), text.bytes, &layout, &err),
                     -E_INPUT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_round_trip_of_every_layout),
        cmocka_unit_test(test_long_text),
    };

    return cmocka_run_group_tests_name("mig/layout_text", tests, NULL, NULL);
}
