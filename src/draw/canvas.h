/* SPDX-License-Identifier: Apache-2.0
 *
 * The one way to draw. A picture is drawn once, in pixels from the top left, and becomes
 * SVG or text according to the canvas it is drawn on. The text canvas shows one character
 * for each cell of CANVAS_CELL_WIDTH by CANVAS_CELL_HEIGHT pixels: what shall look well
 * there has its texts in the middle of cells and its lines through the middle of cells.
 * Colours are meanings; each canvas knows how they look in the light and in the dark.
 */
#ifndef TRANCHE_DRAW_CANVAS_H
#define TRANCHE_DRAW_CANVAS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { CANVAS_CELL_WIDTH = 8, CANVAS_CELL_HEIGHT = 18, CANVAS_SERIES_COUNT = 10 };

enum canvas_colour {
    CANVAS_INK,     /* text that is read first */
    CANVAS_MUTED,   /* text that is read second, axes */
    CANVAS_GRID,    /* what should hardly be seen */
    CANVAS_NEUTRAL, /* an area without a meaning of its own */
    CANVAS_GOOD,
    CANVAS_BAD,
    CANVAS_SERIES, /* CANVAS_SERIES + i, i < CANVAS_SERIES_COUNT: things to tell apart */
    CANVAS_COLOUR_COUNT = CANVAS_SERIES + CANVAS_SERIES_COUNT
};

enum canvas_fill {
    CANVAS_SOLID,  /* an area with its outline */
    CANVAS_BAR,    /* a solid area in the outline's colour: bars of charts */
    CANVAS_HATCH,  /* crossed out: cannot be used */
    CANVAS_DASHED, /* an outline alone: nothing is there */
    CANVAS_KEY,    /* a patch of colour, at most a line high, that explains it */
};

enum canvas_stroke { CANVAS_THIN, CANVAS_THICK, CANVAS_BROKEN };

enum canvas_anchor { CANVAS_START, CANVAS_MIDDLE, CANVAS_END };

struct canvas_point {
    double x, y;
};

struct canvas_rect {
    double x, y, width, height;
};

struct canvas_text {
    struct canvas_point at; /* x of the anchor, y of the middle of the line */
    const char *words;      /* UTF-8, escaped here */
    enum canvas_colour colour;
    enum canvas_anchor anchor;
    bool bold;
    bool large; /* a heading */
};

struct canvas;

/* Never NULL. The title is the accessible name of the SVG (not drawn). */
struct canvas *canvas_svg_new(double width, double height, const char *title);
/* With `colour`, the text has ANSI escapes. */
struct canvas *canvas_text_new(double width, double height, bool colour);
/* Frees the canvas; NULL is fine. */
void canvas_free(struct canvas *canvas);
CLEANUP_DEFINE_FREE(canvas)

/* A rectangle filled in one of the ways above. */
void canvas_rect(struct canvas *canvas, struct canvas_rect rect, enum canvas_colour colour,
                 enum canvas_fill fill);
/* A straight line. */
void canvas_line(struct canvas *canvas, struct canvas_point from, struct canvas_point to,
                 enum canvas_colour colour, enum canvas_stroke stroke);
/* A line through count >= 1 points. */
void canvas_polyline(struct canvas *canvas, const struct canvas_point *points, size_t count,
                     enum canvas_colour colour, enum canvas_stroke stroke);
/* One line of text; where it is longer than its place it is not cut. */
void canvas_text(struct canvas *canvas, const struct canvas_text *text);
/* What is drawn until the end belongs together; title is shown where a pointer rests on
 * it (SVG). May be nested. */
void canvas_group_begin(struct canvas *canvas, const char *title);
/* Ends the group begun last. */
void canvas_group_end(struct canvas *canvas);

/* Appends the whole picture, which ends with a newline. Once, after all drawing. */
void canvas_finish(struct canvas *canvas, struct str *text);

/* How many characters surely fit into `width` pixels on every canvas. */
int canvas_fitting_columns(double width);
/* Appends words, cut with "…" to at most this many columns (UTF-8 is kept whole). */
void canvas_fit_words(const char *words, int columns, struct str *text);

#endif
