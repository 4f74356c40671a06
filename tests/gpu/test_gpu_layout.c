/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts with compute instances: text, counting of mig-parted's devices, satisfaction.
 */
#include "support.h"

static struct live_board *live;

static int set_up(void **state)
{
    (void)state;
    live = live_board_of_table(mig_board_find("a100-40gb"));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    live_board_free(live);
    return 0;
}

static void assert_text(const struct gpu_layout *layout, const char *expected)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    gpu_layout_format(&live->board, layout, &text);
    assert_string_equal(text.bytes, expected);
}

static struct gpu_layout layout_of(const char *text)
{
    struct gpu_layout layout;
    struct error err;
    if (gpu_layout_parse(live, text, &layout, &err))
        fail_msg("%s: %s", text, err.text);
    return layout;
}

static void test_board_from_driver_is_the_table(void **state)
{
    (void)state;
    assert_string_equal(live->differences.bytes, "");
    assert_int_equal(live->board.memory_units, 8);
    assert_int_equal(live->board.compute_slices, 7);
    assert_int_equal(live->board.max_instances, 7);
}

static void test_text(void **state)
{
    static const struct {
        const char *text, *canonical;
    } cases[] = {
        {"-", "-"},
        {"1g.5gb@6,4g.20gb@0 2g@4", "4g.20gb@0 2g.10gb@4 1g.5gb@6"},
        {"3g@4:2c+1c", "3g.20gb@4:2c+1c"},
        {"3g@4:1c+2c", "3g.20gb@4:2c+1c"},
        {"3g@0:3c", "3g.20gb@0"},
        {"2g@0:-", "2g.10gb@0:-"},
        {"2x3g", "3g.20gb 3g.20gb"},
        {"3x1c.3g.20gb", "3g.20gb:1c+1c+1c"},
        {"4x1c.3g.20gb", "3g.20gb:1c 3g.20gb:1c+1c+1c"},
        {"1g+me@2", "1g.5gb+me@2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gpu_layout layout = layout_of(cases[i].text);
        assert_text(&layout, cases[i].canonical);
    }
}

static void test_wrong_text(void **state)
{
    static const char *const cases[] = {"",         "5g@0",      "3g@4:",      "3g@4:4c",
                                        "3g@4:2c+", "3g@4:2c2c", "3g@0:2c+2c", "1c.3g@4",
                                        "@3",       "3g@x",      "2c.1g"};
    struct gpu_layout layout;
    struct error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (gpu_layout_parse(live, cases[i], &layout, &err) != -E_INPUT)
            fail_msg("\"%s\" was taken", cases[i]);
}

static void test_devices_fill_instances(void **state)
{
    struct gpu_layout layout = {0};
    struct error err;
    int g3 = mig_profile_find(&live->board, "3g.20gb");

    (void)state;
    assert_int_equal(gpu_layout_add_devices(&live->board, &layout,
                                            (struct gpu_device_request){g3, 2, 1}, &err),
                     0);
    assert_int_equal(gpu_layout_add_devices(&live->board, &layout,
                                            (struct gpu_device_request){g3, 1, 1}, &err),
                     0);
    assert_text(&layout, "3g.20gb:2c+1c");
    assert_int_equal(gpu_layout_add_devices(&live->board, &layout,
                                            (struct gpu_device_request){g3, 4, 1}, &err),
                     -E_INPUT);
    assert_int_equal(gpu_layout_add_devices(&live->board, &layout,
                                            (struct gpu_device_request){g3, 0, 40}, &err),
                     -E_NO);
}

static void test_satisfies(void **state)
{
    static const struct {
        const char *actual, *wanted;
        bool yes;
    } cases[] = {
        {"-", "-", true},
        {"3g@0 3g@4", "3g 3g@0", true},
        {"3g@0 3g@4", "3g", false},
        {"3g@0 3g@4:1c+1c+1c", "3x1c.3g.20gb 3g", true},
        {"3g@0 3g@4:1c+1c", "3x1c.3g.20gb 3g", false},
        {"2g@0 2g@2", "2g@2 2g@4", false},
        {"1g@6", "1g", true},
        {"1g@6", "1g+me", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gpu_layout actual = layout_of(cases[i].actual);
        struct gpu_layout wanted = layout_of(cases[i].wanted);
        if (gpu_layout_satisfies(&actual, &wanted) != cases[i].yes)
            fail_msg("%s against %s", cases[i].actual, cases[i].wanted);
    }
}

static void test_name_by_arithmetic(void **state)
{
    /* go-nvlib: eighths of the whole, rounded up, times the GiB of the board. */
    static const struct {
        struct gpu_live_profile profile;
        uint64_t memory_mib;
        const char *name;
    } cases[] = {
        {{.nvml_enum = 0, .compute_slices = 1, .memory_mib = 4864}, 40960, "1g.5gb"},
        {{.nvml_enum = 7, .compute_slices = 1, .memory_mib = 4864}, 40960, "1g.5gb+me"},
        {{.nvml_enum = 2, .compute_slices = 3, .memory_mib = 20096}, 40960, "3g.20gb"},
        {{.nvml_enum = 4, .compute_slices = 7, .memory_mib = 80640}, 81920, "7g.80gb"},
        {{.nvml_enum = 4, .compute_slices = 7, .memory_mib = 80640}, 80896, "7g.79gb"},
        {{.nvml_enum = 13, .compute_slices = 1, .memory_mib = 24192}, 97887, "1g.24gb-me"},
    };
    char name[GPU_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        live_profile_name(&cases[i].profile, cases[i].memory_mib << 20, name);
        assert_string_equal(name, cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_board_from_driver_is_the_table),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_wrong_text),
        cmocka_unit_test(test_devices_fill_instances),
        cmocka_unit_test(test_satisfies),
        cmocka_unit_test(test_name_by_arithmetic),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
