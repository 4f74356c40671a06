/* SPDX-License-Identifier: Apache-2.0
 *
 * One frame for all kinds: a plot area with a value axis on the left (spans: category names
 * instead), marks below, a legend under the title. Axes start at zero unless logarithmic.
 */
#include "draw/chart.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/vec.h"

enum {
    WIDTH = 640,
    PLOT_HEIGHT = 230,
    SPAN_ROW_HEIGHT = 18,
    TITLE_Y = 18,
    LEGEND_Y = 42,
    LEGEND_ROW = 18,
    TOP = 64,
    LEFT = 70,
    LEFT_SPANS = 210,
    RIGHT = 18,
    BOTTOM = 52,
    MARKS_MOST = 6,
    LEGEND_PATCH = 14,
    CHARACTER_WIDTH = 8,
};

struct axis {
    double low, high; /* in the axis' own measure: the logarithm where logarithmic */
    bool logarithmic;
};

struct plot {
    const struct chart *chart;
    struct canvas *canvas;
    struct canvas_rect area;
    struct axis x, y; /* spans: x is time, y is unused */
};

double chart_step(double range, int most)
{
    assert(range > 0 && most > 0);
    double power = pow(10, floor(log10(range / most)));
    static const double FACTORS[] = {1, 2, 5};
    for (size_t i = 0; i < sizeof FACTORS / sizeof *FACTORS; i++)
        if (range / (FACTORS[i] * power) <= most * (1 + 1e-9))
            return FACTORS[i] * power;
    return 10 * power;
}

/* ---- ranges ----------------------------------------------------------------------- */

static bool is_shown(const struct axis *axis, double value)
{
    return isfinite(value) && (!axis->logarithmic || value > 0);
}

static void widen(struct axis *axis, double value)
{
    if (!is_shown(axis, value))
        return;
    double place = axis->logarithmic ? log10(value) : value;
    axis->low = fmin(axis->low, place);
    axis->high = fmax(axis->high, place);
}

/* Rounds the ends outward to marks; false when nothing was shown. */
static bool settle(struct axis *axis)
{
    if (axis->low > axis->high)
        return false;
    if (axis->logarithmic) {
        axis->low = floor(axis->low);
        axis->high = fmax(ceil(axis->high), axis->low + 1);
        return true;
    }
    axis->low = fmin(axis->low, 0);
    if (axis->high <= axis->low)
        axis->high = axis->low + 1;
    double step = chart_step(axis->high - axis->low, MARKS_MOST);
    axis->high = ceil(axis->high / step - 1e-9) * step;
    axis->low = floor(axis->low / step + 1e-9) * step;
    return true;
}

static bool find_ranges(struct plot *plot)
{
    const struct chart *chart = plot->chart;
    bool spans = chart->kind == CHART_SPANS;
    bool over_numbers = chart->kind == CHART_LINES || chart->kind == CHART_STEPS;
    plot->x = (struct axis){.low = INFINITY, .high = -INFINITY};
    plot->y = (struct axis){
        .low = INFINITY, .high = -INFINITY, .logarithmic = !spans && chart->logarithmic};
    for (size_t s = 0; s < chart->series_count; s++) {
        const struct chart_series *series = &chart->series[s];
        for (size_t i = 0; i < series->count; i++) {
            if (over_numbers || spans)
                widen(&plot->x, series->x[i]);
            widen(spans ? &plot->x : &plot->y, series->y[i]);
            if (series->high)
                widen(&plot->y, series->high[i]);
        }
    }
    if (spans)
        return settle(&plot->x);
    return settle(&plot->y) && (!over_numbers || settle(&plot->x));
}

static double share(const struct axis *axis, double value)
{
    double place = axis->logarithmic ? log10(value) : value;
    return (place - axis->low) / (axis->high - axis->low);
}

static double x_of(const struct plot *plot, double value)
{
    return plot->area.x + plot->area.width * share(&plot->x, value);
}

static double y_of(const struct plot *plot, double value)
{
    return plot->area.y + plot->area.height * (1 - share(&plot->y, value));
}

/* ---- frame ------------------------------------------------------------------------ */

static void add_words(const struct plot *plot, double x, double y, enum canvas_anchor anchor,
                      const char *words)
{
    canvas_text(plot->canvas,
                &(struct canvas_text){
                    .at = {x, y}, .words = words, .colour = CANVAS_MUTED, .anchor = anchor});
}

/* Calls mark() for each mark of an axis. */
static void each_mark(const struct plot *plot, const struct axis *axis,
                      void (*mark)(const struct plot *plot, double value, const char *words))
{
    double step = axis->logarithmic ? fmax(1, ceil((axis->high - axis->low) / MARKS_MOST))
                                    : chart_step(axis->high - axis->low, MARKS_MOST);
    for (double at = axis->low; at <= axis->high + step * 1e-6; at += step) {
        CLEANUP(str_done) struct str words = STR_EMPTY;
        double value = axis->logarithmic ? pow(10, at) : at;
        if (!axis->logarithmic && fabs(value) < step * 1e-9)
            value = 0; /* what is left of 0.3 - 3 * 0.1 */
        char text[32];
        snprintf(text, sizeof text, "%.6g", value);
        str_add(&words, text);
        mark(plot, value, words.bytes);
    }
}

static void mark_y(const struct plot *plot, double value, const char *words)
{
    double y = y_of(plot, value);
    canvas_line(plot->canvas, (struct canvas_point){plot->area.x, y},
                (struct canvas_point){plot->area.x + plot->area.width, y}, CANVAS_GRID,
                CANVAS_THIN);
    add_words(plot, plot->area.x - 8, y, CANVAS_END, words);
}

static void mark_x(const struct plot *plot, double value, const char *words)
{
    double x = x_of(plot, value);
    double bottom = plot->area.y + plot->area.height;
    canvas_line(plot->canvas, (struct canvas_point){x, plot->area.y},
                (struct canvas_point){x, bottom}, CANVAS_GRID, CANVAS_THIN);
    add_words(plot, x, bottom + 14, CANVAS_MIDDLE, words);
}

static void add_category_names(const struct plot *plot)
{
    const struct chart *chart = plot->chart;
    double width = plot->area.width / (double)chart->category_count;
    for (size_t i = 0; i < chart->category_count; i++) {
        CLEANUP(str_done) struct str words = STR_EMPTY;
        if (chart->kind == CHART_SPANS) {
            canvas_fit_words(chart->categories[i], (LEFT_SPANS - 16) / CHARACTER_WIDTH, &words);
            add_words(plot, plot->area.x - 8,
                      plot->area.y + ((double)i + 0.5) * SPAN_ROW_HEIGHT, CANVAS_END,
                      words.bytes);
        } else {
            canvas_fit_words(chart->categories[i], canvas_fitting_columns(width), &words);
            add_words(plot, plot->area.x + ((double)i + 0.5) * width,
                      plot->area.y + plot->area.height + 14, CANVAS_MIDDLE, words.bytes);
        }
    }
}

/* The width of a label with its patch; words are the label, cut to what fits. */
static double legend_width(const struct chart_series *series, struct str *words)
{
    canvas_fit_words(series->label, 28, words);
    return LEGEND_PATCH + 6 + (double)(text_columns(words->bytes) + 2) * CHARACTER_WIDTH;
}

/* Moves to the next row where the label does not fit; row counts from 0. */
static void place_label(double width, double *x, int *row)
{
    if (*x > LEFT && *x + width - 2 * CHARACTER_WIDTH > WIDTH - RIGHT) {
        *x = LEFT;
        (*row)++;
    }
}

/* Rows beyond the first. */
static int legend_rows(const struct chart *chart)
{
    double x = LEFT;
    int row = 0;
    for (size_t s = 0; s < chart->series_count; s++) {
        CLEANUP(str_done) struct str words = STR_EMPTY;
        if (!chart->series[s].label)
            continue;
        double width = legend_width(&chart->series[s], &words);
        place_label(width, &x, &row);
        x += width;
    }
    return row;
}

static void add_legend(const struct plot *plot)
{
    const struct chart *chart = plot->chart;
    double x = LEFT;
    int row = 0;
    for (size_t s = 0; s < chart->series_count; s++) {
        const struct chart_series *series = &chart->series[s];
        if (!series->label)
            continue;
        CLEANUP(str_done) struct str words = STR_EMPTY;
        double width = legend_width(series, &words);
        place_label(width, &x, &row);
        double y = LEGEND_Y + row * LEGEND_ROW;
        if (series->broken)
            canvas_line(plot->canvas, (struct canvas_point){x, y},
                        (struct canvas_point){x + LEGEND_PATCH, y}, series->colour,
                        CANVAS_BROKEN);
        else
            canvas_rect(plot->canvas, (struct canvas_rect){x, y - 5, LEGEND_PATCH, 10},
                        series->colour, CANVAS_BAR);
        add_words(plot, x + LEGEND_PATCH + 6, y, CANVAS_START, words.bytes);
        x += width;
    }
}

static void add_frame(const struct plot *plot, bool empty)
{
    const struct chart *chart = plot->chart;
    double bottom = plot->area.y + plot->area.height;
    if (chart->title)
        canvas_text(
            plot->canvas,
            &(struct canvas_text){.at = {16, TITLE_Y}, .words = chart->title, .bold = true});
    if (empty) {
        add_words(plot, plot->area.x + plot->area.width / 2, plot->area.y + 40, CANVAS_MIDDLE,
                  "nothing to show");
        return;
    }
    add_legend(plot);
    if (chart->kind != CHART_SPANS)
        each_mark(plot, &plot->y, mark_y);
    if (chart->kind != CHART_BARS)
        each_mark(plot, &plot->x, mark_x);
    if (chart->category_count > 0)
        add_category_names(plot);
    if (chart->y_label)
        add_words(plot, 16, plot->area.y - 14, CANVAS_START, chart->y_label);
    if (chart->x_label)
        add_words(plot, plot->area.x + plot->area.width / 2, bottom + 34, CANVAS_MIDDLE,
                  chart->x_label);
    canvas_line(plot->canvas, (struct canvas_point){plot->area.x, bottom},
                (struct canvas_point){plot->area.x + plot->area.width, bottom}, CANVAS_MUTED,
                CANVAS_THIN);
}

/* ---- data ------------------------------------------------------------------------- */

static void flush_line(const struct plot *plot, const struct chart_series *series,
                       const struct canvas_point *points, size_t count)
{
    if (count > 0)
        canvas_polyline(plot->canvas, points, count, series->colour,
                        series->broken ? CANVAS_BROKEN : CANVAS_THICK);
}

/* Joins the points of a series; a value that cannot be shown ends the line. */
static void draw_line(const struct plot *plot, const struct chart_series *series)
{
    VEC(struct canvas_point) line = {0};
    for (size_t i = 0; i < series->count; i++) {
        if (!is_shown(&plot->x, series->x[i]) || !is_shown(&plot->y, series->y[i])) {
            flush_line(plot, series, line.data, line.count);
            vec_clear(&line);
            continue;
        }
        struct canvas_point next = {x_of(plot, series->x[i]), y_of(plot, series->y[i])};
        if (plot->chart->kind == CHART_STEPS && line.count > 0) {
            struct canvas_point corner = {next.x, line.data[line.count - 1].y};
            vec_add(&line, corner);
        }
        vec_add(&line, next);
    }
    flush_line(plot, series, line.data, line.count);
    vec_done(&line);
}

static void draw_interval(const struct plot *plot, const struct chart_series *series, size_t i,
                          double middle)
{
    if (!series->low || !is_shown(&plot->y, series->low[i]) ||
        !is_shown(&plot->y, series->high[i]))
        return;
    double top = y_of(plot, series->high[i]);
    /* An interval may reach below what the axis shows, as of a mean near 0. */
    double floor = plot->area.y + plot->area.height;
    double bottom = fmin(y_of(plot, series->low[i]), floor);
    canvas_line(plot->canvas, (struct canvas_point){middle, top},
                (struct canvas_point){middle, bottom}, CANVAS_INK, CANVAS_THIN);
    for (int end = 0; end < 2; end++) {
        double y = end ? bottom : top;
        if (end && bottom == floor)
            break;
        canvas_line(plot->canvas, (struct canvas_point){middle - 3, y},
                    (struct canvas_point){middle + 3, y}, CANVAS_INK, CANVAS_THIN);
    }
}

static void draw_bars(const struct plot *plot, size_t s)
{
    const struct chart *chart = plot->chart;
    const struct chart_series *series = &chart->series[s];
    double bottom = plot->area.y + plot->area.height;
    double slot = plot->area.width / (double)chart->category_count;
    double width = slot * 0.8 / (double)chart->series_count;
    assert(series->count == chart->category_count);
    for (size_t i = 0; i < series->count; i++) {
        if (!is_shown(&plot->y, series->y[i]))
            continue;
        double x = plot->area.x + ((double)i + 0.1) * slot + (double)s * width;
        double y = y_of(plot, series->y[i]);
        char words[96];
        snprintf(words, sizeof words, "%s: %.6g", series->label ? series->label : "value",
                 series->y[i]);
        canvas_group_begin(plot->canvas, words);
        canvas_rect(plot->canvas, (struct canvas_rect){x, y, fmax(width - 2, 1), bottom - y},
                    series->colour, CANVAS_BAR);
        canvas_group_end(plot->canvas);
        draw_interval(plot, series, i, x + width / 2 - 1);
    }
}

static void draw_spans(const struct plot *plot, const struct chart_series *series)
{
    for (size_t i = 0; i < series->count; i++) {
        if (!isfinite(series->x[i]) || !isfinite(series->y[i]))
            continue;
        double x = x_of(plot, series->x[i]);
        canvas_rect(plot->canvas,
                    (struct canvas_rect){x, plot->area.y + (double)i * SPAN_ROW_HEIGHT + 3,
                                         fmax(x_of(plot, series->y[i]) - x, 1),
                                         SPAN_ROW_HEIGHT - 6},
                    series->colour, CANVAS_BAR);
    }
}

void chart_svg(const struct chart *chart, struct str *svg)
{
    assert(chart->kind < CHART_KIND_COUNT);
    bool spans = chart->kind == CHART_SPANS;
    double left = spans ? LEFT_SPANS : LEFT;
    double height = spans ? (double)(chart->category_count * SPAN_ROW_HEIGHT) : PLOT_HEIGHT;
    if (height < SPAN_ROW_HEIGHT * 4)
        height = SPAN_ROW_HEIGHT * 4;
    double top = TOP + 12 + legend_rows(chart) * LEGEND_ROW;
    CLEANUP(canvas_free_ptr)
    struct canvas *canvas =
        canvas_svg_new(WIDTH, top + height + BOTTOM, chart->title ? chart->title : "chart");
    struct plot plot = {
        .chart = chart, .canvas = canvas, .area = {left, top, WIDTH - left - RIGHT, height}};
    bool shown = find_ranges(&plot) && (chart->kind != CHART_BARS || chart->category_count > 0);
    add_frame(&plot, !shown);
    for (size_t s = 0; shown && s < chart->series_count; s++) {
        if (chart->kind == CHART_BARS)
            draw_bars(&plot, s);
        else if (spans)
            draw_spans(&plot, &chart->series[s]);
        else
            draw_line(&plot, &chart->series[s]);
    }
    canvas_finish(canvas, svg);
}
