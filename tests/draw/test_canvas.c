/* SPDX-License-Identifier: Apache-2.0
 *
 * The two canvases: junctions, words, clipping and colour in text; escaping and geometry
 * in SVG.
 */
#include "support.h"

#include <locale.h>

#include "draw/canvas.h"

enum { W = CANVAS_CELL_WIDTH, H = CANVAS_CELL_HEIGHT };

/* A rectangle through the middles of cells. */
static struct canvas_rect cells(double left, double top, double width, double height)
{
    return (struct canvas_rect){(left + 0.5) * W, (top + 0.5) * H, width * W, height * H};
}

static struct canvas_point middle(double column, double row)
{
    return (struct canvas_point){(column + 0.5) * W, (row + 0.5) * H};
}

static void assert_text(struct canvas *canvas, const char *expected)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    canvas_finish(canvas, &text);
    assert_string_equal(text.bytes, expected);
}

static void test_borders_join(void **state)
{
    CLEANUP(canvas_free_ptr) struct canvas *canvas = canvas_text_new(7 * W, 3 * H, false);

    (void)state;
    canvas_rect(canvas, cells(0, 0, 3, 2), CANVAS_SERIES, CANVAS_SOLID);
    canvas_rect(canvas, cells(3, 0, 3, 2), CANVAS_SERIES, CANVAS_DASHED);
    assert_text(canvas, "┌──┬╌╌┐\n"
                        "│  │  ╎\n"
                        "└──┴╌╌┘\n");
}

static void test_hatch_bar_key(void **state)
{
    CLEANUP(canvas_free_ptr) struct canvas *canvas = canvas_text_new(12 * W, 3 * H, false);

    (void)state;
    canvas_rect(canvas, cells(0, 0, 3, 2), CANVAS_GRID, CANVAS_HATCH);
    canvas_rect(canvas, (struct canvas_rect){5 * W, H, 2 * W, 2 * H}, CANVAS_GOOD, CANVAS_BAR);
    canvas_rect(canvas, (struct canvas_rect){8.4 * W, 0.3 * H, 2 * W, 0.5 * H}, CANVAS_BAD,
                CANVAS_KEY);
    assert_text(canvas, "┌──┐    ██\n"
                        "│░░│ ██\n"
                        "└──┘ ██\n");
}

static void test_lines(void **state)
{
    CLEANUP(canvas_free_ptr) struct canvas *canvas = canvas_text_new(8 * W, 4 * H, false);
    struct canvas_point slope[] = {middle(1, 3), middle(4, 0), middle(7, 0)};

    (void)state;
    canvas_line(canvas, middle(0, 0), middle(0, 3), CANVAS_MUTED, CANVAS_THIN);
    canvas_line(canvas, middle(0, 3), middle(7, 3), CANVAS_MUTED, CANVAS_THIN);
    canvas_polyline(canvas, slope, 3, CANVAS_SERIES, CANVAS_THICK);
    assert_text(canvas, "╷   •──╴\n"
                        "│  •\n"
                        "│ •\n"
                        "└•─────╴\n");
}

static void put(struct canvas *canvas, double column, double row, const char *words,
                enum canvas_anchor anchor)
{
    canvas_text(canvas, &(struct canvas_text){.at = middle(column, row),
                                              .words = words,
                                              .colour = CANVAS_INK,
                                              .anchor = anchor});
}

static void test_words(void **state)
{
    CLEANUP(canvas_free_ptr) struct canvas *canvas = canvas_text_new(12 * W, 4 * H, false);

    (void)state;
    put(canvas, 0, 0, "left", CANVAS_START);
    put(canvas, 11.5, 0, "right", CANVAS_END);
    put(canvas, 5.5, 1, "äé日本", CANVAS_MIDDLE); /* six columns */
    put(canvas, 9, 2, "cut at the edge", CANVAS_START);
    put(canvas, -2, 3, "xyz", CANVAS_START);
    put(canvas, 3, 9, "below", CANVAS_START);
    put(canvas, 6, 3, "\x1b\xff", CANVAS_START);
    assert_text(canvas, "left   right\n"
                        "   äé日本\n"
                        "         cut\n"
                        "z     ??\n");
}

static void test_colour(void **state)
{
    CLEANUP(canvas_free_ptr) struct canvas *canvas = canvas_text_new(10 * W, H, true);

    (void)state;
    canvas_text(canvas,
                &(struct canvas_text){
                    .at = middle(0, 0), .words = "bad", .colour = CANVAS_BAD, .bold = true});
    put(canvas, 4, 0, "ink", CANVAS_START);
    assert_text(canvas, "\033[0;1;31mbad\033[0m ink\n");
}

static void test_fit_words(void **state)
{
    static const struct {
        const char *words;
        int columns;
        const char *expected;
    } cases[] = {
        {"ranker", 6, "ranker"},
        {"ranker", 5, "rank…"},
        {"ranker", 1, "…"},
        {"ranker", 0, ""},
        {"", 3, ""},
        {"日本語", 6, "日本語"},
        {"日本語", 5, "日本…"},
        {"日本語", 4, "日…"},
        {"ä\xffö", 2, "ä…"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(str_done) struct str text = STR_EMPTY;

        canvas_fit_words(cases[i].words, cases[i].columns, &text);
        assert_string_equal(text.bytes, cases[i].expected);
    }
    assert_int_equal(canvas_fitting_columns(-3), 0);
    assert_int_equal(canvas_fitting_columns(3.5 * W), 3);
}

static void test_svg(void **state)
{
    CLEANUP(canvas_free_ptr) struct canvas *canvas = canvas_svg_new(100, 60, "a <b> & \"c\"");
    CLEANUP(str_done) struct str svg = STR_EMPTY;

    (void)state;
    canvas_group_begin(canvas, "tip & more");
    canvas_rect(canvas, (struct canvas_rect){1, 2, 30.126, 20}, CANVAS_SERIES + 3,
                CANVAS_SOLID);
    canvas_rect(canvas, (struct canvas_rect){40, 2, 20, 10}, CANVAS_GRID, CANVAS_HATCH);
    canvas_rect(canvas, (struct canvas_rect){40, 2, 0, 0}, CANVAS_GRID, CANVAS_HATCH);
    put(canvas, 1, 1, "<script>\x01", CANVAS_MIDDLE);
    canvas_group_end(canvas);
    canvas_polyline(canvas, (struct canvas_point[]){{0, 0}, {5, 5.5}, {10, 0}}, 3, CANVAS_BAD,
                    CANVAS_BROKEN);
    canvas_finish(canvas, &svg);
    assert_well_formed(svg.bytes);
    assert_golden("canvas.svg", &svg);
    assert_non_null(strstr(svg.bytes, "width=\"30.13\""));
    assert_null(strstr(svg.bytes, "<script"));
}

/* Every end of a hatching line lies on the edge of its area. */
static void test_hatch_stays_inside(void **state)
{
    static const struct canvas_rect rects[] = {{10, 20, 72, 72}, {0, 0, 7, 90}, {3, 5, 300, 8}};

    (void)state;
    for (size_t i = 0; i < sizeof rects / sizeof *rects; i++) {
        CLEANUP(canvas_free_ptr) struct canvas *canvas = canvas_svg_new(400, 200, "hatch");
        CLEANUP(str_done) struct str svg = STR_EMPTY;
        double right = rects[i].x + rects[i].width, bottom = rects[i].y + rects[i].height;
        const char *path;
        int points = 0;

        canvas_rect(canvas, rects[i], CANVAS_GRID, CANVAS_HATCH);
        canvas_finish(canvas, &svg);
        path = strstr(svg.bytes, "<path class=\"tr-h\" d=\"") + 22;
        while (*path == 'M' || *path == 'L') {
            double x = strtod(path + 1, (char **)&path), y = strtod(path, (char **)&path);

            assert_true(x >= rects[i].x && x <= right && y >= rects[i].y && y <= bottom);
            assert_true(x == rects[i].x || x == right || y == rects[i].y || y == bottom);
            points++;
        }
        assert_true(points > 10);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_borders_join), cmocka_unit_test(test_hatch_bar_key),
        cmocka_unit_test(test_lines),        cmocka_unit_test(test_words),
        cmocka_unit_test(test_colour),       cmocka_unit_test(test_fit_words),
        cmocka_unit_test(test_svg),          cmocka_unit_test(test_hatch_stays_inside),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("draw/canvas", tests, NULL, NULL);
}
