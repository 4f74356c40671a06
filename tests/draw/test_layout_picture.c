/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of layouts: what they show, and that text and SVG of every legal layout of every
 * board can be drawn.
 */
#include "support.h"

#include <locale.h>

#include "draw/layout_picture.h"

static struct draw_gpu gpu_of(const char *slug, const char *layout_text)
{
    const struct mig_board *board = mig_board_find(slug);
    struct mig_layout layout;

    assert_non_null(board);
    assert_int_equal(mig_layout_parse(board, layout_text, &layout, NULL), 0);
    return draw_gpu_of(board, &layout);
}

/* Four GPUs of a plan, with labels, colours and keys. */
static void draw_plan(bool svg, struct str *text)
{
    static const struct draw_key keys[] = {{"ranker", CANVAS_SERIES},
                                           {"übersetzer <large>", CANVAS_SERIES + 1}};
    struct draw_gpu gpus[] = {
        gpu_of("a100-40gb", "4g@0 2g@4 1g@6"), gpu_of("a100-80gb", "1g+me@0 1g*2@2 3g@4"),
        gpu_of("rtxpro6000-96gb", "1g+me.all@0 2g-me@6"), gpu_of("t4-16gb", "whole@0")};
    struct layout_picture picture = {
        .title = "plan", .gpus = gpus, .gpu_count = 4, .keys = keys, .key_count = 2};

    for (int i = 0; i < 3; i++) {
        gpus[0].labels[i] = i == 1 ? "übersetzer <large>" : "ranker";
        gpus[0].colours[i] = i == 1 ? CANVAS_SERIES + 1 : CANVAS_SERIES;
    }
    gpus[0].title = "g0";
    gpus[0].remark = "a100-40gb on n0";
    gpus[0].details[0] = "batch 8, 971.25 requests/s";
    gpus[3].title =
        "a very long name of a GPU that no bar is wide enough for, so that it is cut";
    if (svg)
        layout_picture_svg(&picture, text);
    else
        layout_picture_text(&picture, false, text);
}

static void test_plan(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY, svg = STR_EMPTY;

    (void)state;
    draw_plan(false, &text);
    assert_golden("plan.txt", &text);
    draw_plan(true, &svg);
    assert_golden("plan.svg", &svg);
    assert_well_formed(svg.bytes);
    assert_non_null(strstr(svg.bytes, "ranker on 4g.20gb@0: 4 compute slices, 56 SM, 19.6 GiB\n"
                                      "batch 8, 971.25 requests/s</title>"));
    assert_non_null(strstr(svg.bytes, "übersetzer &lt;large&gt; on 2g.10gb@4"));
}

static void test_difference(void **state)
{
    const struct mig_board *board = mig_board_find("a30-24gb");
    struct draw_gpu from = gpu_of("a30-24gb", "2g@0 1g@2"),
                    to = gpu_of("a30-24gb", "2g@0 2g@2");
    struct draw_gpu gpus[2];

    (void)state;
    draw_gpu_difference(board, &from.layout, &to.layout, gpus);
    assert_string_equal(gpus[0].labels[0], "stays");
    assert_string_equal(gpus[0].labels[1], "removed");
    assert_int_equal(gpus[0].colours[1], CANVAS_BAD);
    assert_string_equal(gpus[1].labels[0], "stays");
    assert_string_equal(gpus[1].labels[1], "created");
    assert_int_equal(gpus[1].colours[1], CANVAS_GOOD);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;

    for (text = strstr(text, part); text; text = strstr(text + 1, part))
        count++;
    return count;
}

static bool draw_both(const struct mig_layout *layout, void *context)
{
    CLEANUP(str_done) struct str text = STR_EMPTY, svg = STR_EMPTY;
    struct draw_gpu gpu = draw_gpu_of(context, layout);
    struct layout_picture picture = {.gpus = &gpu, .gpu_count = 1};
    const char *line, *end;

    layout_picture_text(&picture, false, &text);
    layout_picture_svg(&picture, &svg);
    for (line = text.bytes; (end = strchr(line, '\n')); line = end + 1) {
        CLEANUP(str_done) struct str one = STR_EMPTY;

        str_add_bytes(&one, line, (size_t)(end - line));
        assert_true(text_columns(one.bytes) <= 80);
        assert_false(text_ends_with(one.bytes, " "));
    }
    assert_int_equal(count_of(svg.bytes, "<rect class=\"tr-a"), layout->count);
    assert_int_equal(count_of(svg.bytes, "compute slice"), layout->count + gpu.board->has_mig);
    return true;
}

static void test_every_maximal_layout(void **state)
{
    (void)state;
    for (size_t i = 0; i < mig_board_count(); i++) {
        struct mig_board board = *mig_board_at(i);
        struct mig_layout empty = {0};

        draw_both(&empty, &board);
        mig_layout_enumerate(&board, MIG_UNIVERSE_FULL, true, draw_both, &board);
    }
}

static void test_many_gpus(void **state)
{
    CLEANUP(str_done) struct str svg = STR_EMPTY, text = STR_EMPTY;
    struct draw_gpu gpus[200];
    struct layout_picture picture = {.gpus = gpus, .gpu_count = 200, .columns = 3};

    (void)state;
    for (int i = 0; i < 200; i++)
        gpus[i] = gpu_of("a100-40gb", i % 2 ? "7g@0" : "4g@0 3g@4");
    layout_picture_svg(&picture, &svg);
    assert_well_formed(svg.bytes);
    assert_int_equal(count_of(svg.bytes, "<rect class=\"tr-a"), 300);
    layout_picture_text(&picture, true, &text);
    assert_int_equal(count_of(text.bytes, "7g.40gb"), 100);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_difference),
        cmocka_unit_test(test_every_maximal_layout),
        cmocka_unit_test(test_many_gpus),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("draw/layout_picture", tests, NULL, NULL);
}
