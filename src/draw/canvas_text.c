/* SPDX-License-Identifier: Apache-2.0
 *
 * The canvas that writes text: a grid of character cells. Lines are kept as the four arms of
 * each cell, so that borders which meet become one junction; words go over lines, lines over
 * areas.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/memory.h"
#include "draw/canvas_backend.h"

enum { ARM_UP = 1, ARM_DOWN = 2, ARM_LEFT = 4, ARM_RIGHT = 8 };

enum { BYTES_MAX = 8 };

struct cell {
    char words[BYTES_MAX]; /* one character, or empty; "\1" behind a wide one */
    unsigned char arms;
    bool solid; /* a line that is not broken passes */
    bool shaded;
    bool bar;
    bool bold;
    enum canvas_colour colour;
};

struct text_canvas {
    struct canvas base;
    int columns, rows;
    bool colour;
    struct cell *cells;
};

static struct text_canvas *text_of(struct canvas *canvas)
{
    return (struct text_canvas *)canvas;
}

/* The cell, or NULL outside of the picture. */
static struct cell *cell_at(struct text_canvas *text, int column, int row)
{
    assert(text->cells);
    if (column < 0 || row < 0 || column >= text->columns || row >= text->rows)
        return NULL;
    return &text->cells[row * text->columns + column];
}

static int column_of(double x)
{
    return (int)floor(x / CANVAS_CELL_WIDTH);
}

static int row_of(double y)
{
    return (int)floor(y / CANVAS_CELL_HEIGHT);
}

static void add_arms(struct text_canvas *text, int column, int row, unsigned arms,
                     enum canvas_colour colour, bool solid)
{
    struct cell *cell = cell_at(text, column, row);

    assert(arms);
    if (!cell)
        return;
    cell->arms |= (unsigned char)arms;
    cell->solid |= solid;
    if (!*cell->words)
        cell->colour = colour;
}

static void horizontal(struct text_canvas *text, int row, int from, int to,
                       enum canvas_colour colour, bool solid)
{
    assert(from <= to);
    for (int column = from; column <= to && from < to; column++)
        add_arms(text, column, row,
                 (column > from ? ARM_LEFT : 0U) | (column < to ? ARM_RIGHT : 0U), colour,
                 solid);
}

static void vertical(struct text_canvas *text, int column, int from, int to,
                     enum canvas_colour colour, bool solid)
{
    assert(from <= to);
    for (int row = from; row <= to && from < to; row++)
        add_arms(text, column, row, (row > from ? ARM_UP : 0U) | (row < to ? ARM_DOWN : 0U),
                 colour, solid);
}

/* Marks the inside of a hatched area, or all of a bar, which covers whole cells. */
static void fill_cells(struct text_canvas *text, struct canvas_rect rect,
                       enum canvas_colour colour, bool bar)
{
    int left = bar ? (int)lround(rect.x / CANVAS_CELL_WIDTH) : column_of(rect.x) + 1;
    int right = bar ? (int)lround((rect.x + rect.width) / CANVAS_CELL_WIDTH)
                    : column_of(rect.x + rect.width);
    int top = bar ? (int)lround(rect.y / CANVAS_CELL_HEIGHT) : row_of(rect.y) + 1;
    int bottom = bar ? (int)lround((rect.y + rect.height) / CANVAS_CELL_HEIGHT)
                     : row_of(rect.y + rect.height);

    assert(rect.width >= 0 && rect.height >= 0);
    for (int row = top; row < bottom; row++) {
        for (int column = left; column < right; column++) {
            struct cell *cell = cell_at(text, column, row);

            if (!cell || *cell->words)
                continue;
            cell->shaded = !bar;
            cell->bar = bar;
            cell->colour = colour;
        }
    }
}

static void text_rect(struct canvas *canvas, struct canvas_rect rect, enum canvas_colour colour,
                      enum canvas_fill fill)
{
    struct text_canvas *text = text_of(canvas);
    int left = column_of(rect.x), right = column_of(rect.x + rect.width);
    int top = row_of(rect.y), bottom = row_of(rect.y + rect.height);
    bool solid = fill != CANVAS_DASHED;

    assert(left <= right && top <= bottom);
    if (fill == CANVAS_KEY) { /* as high as the line that it stands in */
        rect.y = top * CANVAS_CELL_HEIGHT;
        rect.height = CANVAS_CELL_HEIGHT;
    }
    if (fill != CANVAS_SOLID && fill != CANVAS_DASHED)
        fill_cells(text, rect, colour, fill != CANVAS_HATCH);
    if (fill == CANVAS_BAR || fill == CANVAS_KEY)
        return;
    horizontal(text, top, left, right, colour, solid);
    horizontal(text, bottom, left, right, colour, solid);
    vertical(text, left, top, bottom, colour, solid);
    vertical(text, right, top, bottom, colour, solid);
}

static void put_character(struct text_canvas *text, int column, int row, const char *bytes,
                          enum canvas_colour colour)
{
    struct cell *cell = cell_at(text, column, row);

    assert(strlen(bytes) < BYTES_MAX);
    if (!cell)
        return;
    memcpy(cell->words, bytes, strlen(bytes) + 1);
    cell->colour = colour;
}

/* A line that is neither level nor upright: a dot in every cell that it passes. */
static void dots(struct text_canvas *text, struct canvas_point from, struct canvas_point to,
                 enum canvas_colour colour)
{
    double columns = fabs(to.x - from.x) / CANVAS_CELL_WIDTH;
    double rows = fabs(to.y - from.y) / CANVAS_CELL_HEIGHT;
    int steps = (int)ceil(2 * fmax(columns, rows)) + 1;

    assert(steps > 0);
    for (int i = 0; i <= steps; i++) {
        double part = (double)i / steps;
        int column = column_of(from.x + part * (to.x - from.x));
        int row = row_of(from.y + part * (to.y - from.y));
        struct cell *cell = cell_at(text, column, row);

        if (cell && !*cell->words)
            put_character(text, column, row, "•", colour);
    }
}

static void text_polyline(struct canvas *canvas, const struct canvas_point *points,
                          size_t count, enum canvas_colour colour, enum canvas_stroke stroke)
{
    struct text_canvas *text = text_of(canvas);
    bool solid = stroke != CANVAS_BROKEN;

    assert(count >= 1);
    for (size_t i = 1; i < count; i++) {
        int from_column = column_of(points[i - 1].x), to_column = column_of(points[i].x);
        int from_row = row_of(points[i - 1].y), to_row = row_of(points[i].y);

        if (from_row == to_row)
            horizontal(text, from_row, from_column < to_column ? from_column : to_column,
                       from_column < to_column ? to_column : from_column, colour, solid);
        else if (from_column == to_column)
            vertical(text, from_column, from_row < to_row ? from_row : to_row,
                     from_row < to_row ? to_row : from_row, colour, solid);
        else
            dots(text, points[i - 1], points[i], colour);
    }
}

/* Reads one character of UTF-8: its bytes and columns. A control character or a stray
 * byte becomes "?"; the number of bytes read. */
static size_t character_read(const char *words, char ret_bytes[BYTES_MAX], int *ret_width)
{
    mbstate_t state = {0};
    wchar_t wide;
    size_t length = mbrtowc(&wide, words, strlen(words), &state);
    int width = length <= 4 && length > 0 ? wcwidth(wide) : -1;

    assert(*words);
    if (width < 0) {
        memcpy(ret_bytes, "?", 2);
        *ret_width = 1;
        return 1;
    }
    memcpy(ret_bytes, words, length);
    ret_bytes[length] = '\0';
    *ret_width = width;
    return length;
}

static void text_text(struct canvas *canvas, const struct canvas_text *text)
{
    struct text_canvas *grid = text_of(canvas);
    int columns = (int)text_columns(text->words);
    double left = text->at.x - (text->anchor == CANVAS_START    ? 0
                                : text->anchor == CANVAS_MIDDLE ? columns / 2.0
                                                                : columns) *
                                   CANVAS_CELL_WIDTH;
    int column = (int)floor(left / CANVAS_CELL_WIDTH + 0.25);
    int row = row_of(text->at.y);
    const char *rest = text->words;

    assert(text->words);
    while (*rest) {
        char bytes[BYTES_MAX];
        int width;

        rest += character_read(rest, bytes, &width);
        if (width == 0) /* a combining mark has no cell of its own */
            continue;
        put_character(grid, column, row, bytes, text->colour);
        if (width == 2)
            put_character(grid, column + 1, row, "\1", text->colour);
        for (int i = 0; i < width; i++)
            if (cell_at(grid, column + i, row))
                cell_at(grid, column + i, row)->bold = text->bold;
        column += width;
    }
}

static void text_group_begin(struct canvas *canvas, const char *title)
{
    (void)canvas;
    (void)title;
}

static void text_group_end(struct canvas *canvas)
{
    (void)canvas;
}

/* What the cell shows; "" behind a wide character. */
static const char *cell_words(const struct cell *cell)
{
    static const char *const solid[16] = {" ", "╵", "╷", "│", "╴", "┘", "┐", "┤",
                                          "╶", "└", "┌", "├", "─", "┴", "┬", "┼"};
    bool level = cell->arms == (ARM_LEFT | ARM_RIGHT);
    bool upright = cell->arms == (ARM_UP | ARM_DOWN);

    assert(cell->arms < 16);
    if (*cell->words)
        return *cell->words == '\1' ? "" : cell->words;
    if (cell->arms && !cell->solid && (level || upright))
        return level ? "╌" : "╎";
    if (cell->arms)
        return solid[cell->arms];
    return cell->bar ? "█" : cell->shaded ? "░" : " ";
}

static bool is_blank(const struct cell *cell)
{
    return !*cell->words && !cell->arms && !cell->bar && !cell->shaded;
}

/* The ANSI parameters of a cell's looks; "" for plain. */
static const char *cell_code(const struct cell *cell)
{
    static const char *const codes[CANVAS_COLOUR_COUNT] = {
        [CANVAS_INK] = "",          [CANVAS_MUTED] = "2",       [CANVAS_GRID] = "2",
        [CANVAS_NEUTRAL] = "",      [CANVAS_GOOD] = "32",       [CANVAS_BAD] = "31",
        [CANVAS_SERIES + 0] = "94", [CANVAS_SERIES + 1] = "33", [CANVAS_SERIES + 2] = "32",
        [CANVAS_SERIES + 3] = "35", [CANVAS_SERIES + 4] = "36", [CANVAS_SERIES + 5] = "95",
        [CANVAS_SERIES + 6] = "93", [CANVAS_SERIES + 7] = "91", [CANVAS_SERIES + 8] = "37",
        [CANVAS_SERIES + 9] = "31",
    };

    assert(cell->colour < CANVAS_COLOUR_COUNT);
    return is_blank(cell) ? "" : codes[cell->colour];
}

static void write_row(const struct text_canvas *text, const struct cell *cells, struct str *out)
{
    const char *code = "";
    bool bold = false;
    int end = text->columns;

    assert(cells);
    while (end > 0 && is_blank(&cells[end - 1]))
        end--;
    for (int i = 0; i < end; i++) {
        const char *next = cell_code(&cells[i]);
        bool heavy = cells[i].bold && *cells[i].words;

        if (text->colour && (strcmp(next, code) != 0 || heavy != bold)) {
            str_addf(out, "\033[0%s%s%sm", heavy ? ";1" : "", *next ? ";" : "", next);
            code = next;
            bold = heavy;
        }
        str_add(out, cell_words(&cells[i]));
    }
    if (text->colour && (*code || bold))
        str_add(out, "\033[0m");
    str_add_char(out, '\n');
}

static void text_finish(struct canvas *canvas, struct str *out)
{
    const struct text_canvas *text = text_of(canvas);

    assert(out);
    for (int row = 0; row < text->rows; row++)
        write_row(text, &text->cells[row * text->columns], out);
}

static void text_free(struct canvas *canvas)
{
    free(text_of(canvas)->cells);
    free(canvas);
}

struct canvas *canvas_text_new(double width, double height, bool colour)
{
    static const struct canvas_operations operations = {
        .rect = text_rect,
        .polyline = text_polyline,
        .text = text_text,
        .group_begin = text_group_begin,
        .group_end = text_group_end,
        .finish = text_finish,
        .free = text_free,
    };
    struct text_canvas *text = xcalloc(1, sizeof(*text));

    assert(width > 0 && height > 0);
    text->base.operations = &operations;
    text->columns = (int)ceil(width / CANVAS_CELL_WIDTH);
    text->rows = (int)ceil(height / CANVAS_CELL_HEIGHT);
    text->colour = colour;
    text->cells = xcalloc((size_t)text->columns * (size_t)text->rows, sizeof(*text->cells));
    return &text->base;
}
