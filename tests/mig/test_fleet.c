/* SPDX-License-Identifier: Apache-2.0
 *
 * Fleets by text.
 */
#include "support.h"

#include "mig/fleet.h"

static void test_reads_and_writes(void **state)
{
    static const char *const cases[][2] = {
        {"a100-40gb:8", "a100-40gb:8"},
        {"a100-40gb:8,h100-80gb-sxm5:4", "a100-40gb:8,h100-80gb-sxm5:4"},
        {" a100-40gb:8 , t4-16gb:* ", "a100-40gb:8,t4-16gb:*"},
        {"a100-40gb:8,t4-16gb:1,a100-40gb:2", "a100-40gb:10,t4-16gb:1"},
        {"a100-40gb:8,a100-40gb:*", "a100-40gb:*"},
        {"a100-40gb:*,a100-40gb:8", "a100-40gb:*"},
        {"a100-40gb:1000000", "a100-40gb:1000000"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        struct mig_fleet fleet;
        struct error err = {0};

        if (mig_fleet_parse(cases[i][0], &fleet, &err) < 0)
            fail_msg("%s: %s", cases[i][0], err.text);
        mig_fleet_format(&fleet, &text);
        assert_string_equal(text.bytes, cases[i][1]);
    }
}

static void test_refuses(void **state)
{
    static const char *const cases[][2] = {
        {"", "empty fleet entry"},
        {"  ", "empty fleet entry"},
        {"a100-40gb:8,", "empty fleet entry"},
        {",a100-40gb:8", "empty fleet entry"},
        {"a100-40gb", "expected BOARD:COUNT"},
        {":8", "expected BOARD:COUNT"},
        {"a100-40gb:", "count must be 1 to 1000000"},
        {"a100-40gb:0", "count must be 1 to 1000000"},
        {"a100-40gb:-1", "count must be 1 to 1000000"},
        {"a100-40gb:1.5", "count must be 1 to 1000000"},
        {"a100-40gb:8x", "count must be 1 to 1000000"},
        {"a100-40gb:99999999999999999999", "count must be 1 to 1000000"},
        {"a100-40gb:999999,a100-40gb:2", "more than 1000000 GPUs of a100-40gb"},
        {"a100:8", "unknown board \"a100\": did you mean a100-40gb"},
        {"a-very-long-name-that-no-board-could-ever-have-in-any-catalogue-of-boards:1",
         "unknown board"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mig_fleet fleet = {.count = -7};
        struct error err = {0};

        assert_int_equal(mig_fleet_parse(cases[i][0], &fleet, &err), -E_INPUT);
        assert_int_equal(fleet.count, -7);
        if (!strstr(err.text, cases[i][1]))
            fail_msg("\"%s\": got \"%s\"", cases[i][0], err.text);
    }
}

static void test_every_board_fits(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct mig_fleet fleet;

    (void)state;
    for (size_t i = 0; i < mig_board_count(); i++)
        str_addf(&text, "%s%s:1", i ? "," : "", mig_board_at(i)->slug);
    assert_int_equal(mig_fleet_parse(text.bytes, &fleet, NULL), 0);
    assert_int_equal(fleet.count, mig_board_count());
    assert_true(mig_board_count() <= MIG_FLEET_BOARDS_MAX);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_and_writes),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_every_board_fits),
    };

    return cmocka_run_group_tests_name("mig/fleet", tests, NULL, NULL);
}
