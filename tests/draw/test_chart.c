/* SPDX-License-Identifier: Apache-2.0
 *
 * Charts: axis steps, what appears for each kind, gaps, and data that has nothing to show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "draw/chart.h"

static void test_step(void **state)
{
    (void)state;
    static const struct {
        double range;
        int most;
        double step;
    } CASES[] = {{10, 5, 2},    {10, 10, 1},     {1, 6, 0.2},   {7, 6, 2},
                 {1e9, 4, 5e8}, {3e-6, 6, 5e-7}, {0.9, 3, 0.5}, {100, 1, 100}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        double step = chart_step(CASES[i].range, CASES[i].most);
        if (fabs(step - CASES[i].step) > CASES[i].step * 1e-9)
            fail_msg("case %zu: step %g, expected %g", i, step, CASES[i].step);
    }
}

/* How often a part occurs. */
static int count(const char *text, const char *part)
{
    int found = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        found++;
    return found;
}

static const double X[] = {1, 2, 4, 8};
static const double RISING[] = {10, 20, 40, 80};
static const double WITH_GAP[] = {10, NAN, 40, 80};

static void draw(enum chart_kind kind, const struct chart_series *series, struct str *svg)
{
    static const char *const NAMES[] = {"1g", "2g", "3g & 4g", "7g"};
    bool named = kind == CHART_BARS || kind == CHART_SPANS;
    chart_svg(&(struct chart){.kind = kind,
                              .title = "rates <of> slices",
                              .x_label = "batch",
                              .y_label = "requests/s",
                              .categories = NAMES,
                              .category_count = named ? 4 : 0,
                              .series = series,
                              .series_count = 1},
              svg);
}

static void test_lines(void **state)
{
    (void)state;
    CLEANUP(str_done) struct str whole = STR_EMPTY;
    CLEANUP(str_done) struct str gap = STR_EMPTY;
    struct chart_series series = {
        .label = "p99", .colour = CANVAS_SERIES, .x = X, .y = RISING, .count = 4};
    draw(CHART_LINES, &series, &whole);
    series.y = WITH_GAP;
    draw(CHART_LINES, &series, &gap);
    assert_non_null(strstr(whole.bytes, "rates &lt;of&gt; slices"));
    assert_non_null(strstr(whole.bytes, "requests/s"));
    assert_non_null(strstr(whole.bytes, "p99"));
    assert_null(strstr(whole.bytes, "nan"));
    assert_null(strstr(gap.bytes, "nan"));
    assert_int_equal(count(gap.bytes, "<svg"), 1);
    assert_true(strcmp(whole.bytes, gap.bytes) != 0);
}

static void test_bars(void **state)
{
    (void)state;
    static const double LOW[] = {9, 18, 37, 70};
    static const double HIGH[] = {11, 22, 43, 95};
    CLEANUP(str_done) struct str svg = STR_EMPTY;
    struct chart_series series = {.label = "batch 1",
                                  .colour = CANVAS_SERIES,
                                  .y = WITH_GAP,
                                  .low = LOW,
                                  .high = HIGH,
                                  .count = 4};
    draw(CHART_BARS, &series, &svg);
    assert_non_null(strstr(svg.bytes, "3g &amp; 4g"));
    assert_int_equal(count(svg.bytes, "batch 1: "), 3); /* a gap has no bar */
    assert_non_null(strstr(svg.bytes, "batch 1: 80"));
}

static void test_spans(void **state)
{
    (void)state;
    CLEANUP(str_done) struct str svg = STR_EMPTY;
    struct chart_series series = {
        .label = "create", .colour = CANVAS_GOOD, .x = X, .y = RISING, .count = 4};
    draw(CHART_SPANS, &series, &svg);
    assert_non_null(strstr(svg.bytes, "7g"));
    assert_null(strstr(svg.bytes, "nothing to show"));
}

static void test_nothing(void **state)
{
    (void)state;
    static const double NOTHING[] = {NAN, NAN, INFINITY, NAN};
    for (int kind = 0; kind < CHART_KIND_COUNT; kind++) {
        CLEANUP(str_done) struct str svg = STR_EMPTY;
        struct chart_series series = {
            .colour = CANVAS_SERIES, .x = NOTHING, .y = NOTHING, .count = 4};
        draw((enum chart_kind)kind, &series, &svg);
        assert_non_null(strstr(svg.bytes, "nothing to show"));
        assert_null(strstr(svg.bytes, "inf"));
    }
}

/* One value, a negative one, huge ones, and zero on a logarithmic axis. */
static void test_ranges(void **state)
{
    (void)state;
    static const double EDGES[][4] = {
        {0, 0, 0, 0}, {-5, 1, 2, 3}, {1e300, 1, 2, 3}, {1e-300, 1e-299, 0, 0}};
    for (size_t i = 0; i < sizeof EDGES / sizeof *EDGES; i++) {
        for (int logarithmic = 0; logarithmic < 2; logarithmic++) {
            CLEANUP(str_done) struct str svg = STR_EMPTY;
            struct chart_series series = {
                .colour = CANVAS_SERIES, .x = X, .y = EDGES[i], .count = 4};
            chart_svg(&(struct chart){.kind = CHART_STEPS,
                                      .series = &series,
                                      .series_count = 1,
                                      .logarithmic = logarithmic},
                      &svg);
            assert_null(strstr(svg.bytes, "nan"));
            assert_null(strstr(svg.bytes, "\"inf"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),    cmocka_unit_test(test_lines),
        cmocka_unit_test(test_bars),    cmocka_unit_test(test_spans),
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
