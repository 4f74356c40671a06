/* SPDX-License-Identifier: Apache-2.0
 *
 * The canvas that writes SVG 1.1: one file without scripts, fonts or links. Looks are in
 * one style sheet with classes of a prefix of its own, so that pictures can stand inside
 * one HTML page; it follows the reader's choice of light or dark. Hatching is drawn as
 * lines, not as a pattern, since patterns need identifiers, which clash inside a page.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "draw/canvas_backend.h"

/* Pixels. A bold word of 12 px just fits into as many cells as it has characters. */
enum { HATCH_STEP = 9, TEXT_SIZE = 12, LARGE_SIZE = 16 };

struct svg_canvas {
    struct canvas base;
    struct str body;
    double width, height;
    char *title;
};

/* Text, stroke and area of each meaning, light and dark. */
static const struct look {
    const char *light_stroke, *light_area, *dark_stroke, *dark_area;
} looks[CANVAS_COLOUR_COUNT] = {
    [CANVAS_INK] = {"#1b1f24", "#1b1f24", "#eceff3", "#eceff3"},
    [CANVAS_MUTED] = {"#5c6670", "#5c6670", "#a3adb8", "#a3adb8"},
    [CANVAS_GRID] = {"#c3cad2", "#eef1f4", "#444d57", "#1a2027"},
    [CANVAS_NEUTRAL] = {"#7b8794", "#e6eaee", "#8b96a2", "#2a313a"},
    [CANVAS_GOOD] = {"#1f7a3d", "#cdeed6", "#55c17a", "#153f25"},
    [CANVAS_BAD] = {"#b3261e", "#fbd8d4", "#f08a80", "#551c17"},
    [CANVAS_SERIES + 0] = {"#2b67b8", "#d3e5fb", "#6aa9f2", "#17375f"},
    [CANVAS_SERIES + 1] = {"#b5650f", "#fde3c6", "#e9a35b", "#533212"},
    [CANVAS_SERIES + 2] = {"#1f8054", "#ccefdd", "#4fc795", "#10432d"},
    [CANVAS_SERIES + 3] = {"#7048c0", "#e5dbfa", "#ab8ff2", "#382763"},
    [CANVAS_SERIES + 4] = {"#147b86", "#c7edf0", "#4fc4cf", "#0e4148"},
    [CANVAS_SERIES + 5] = {"#b4326d", "#fbd6e6", "#ee80b0", "#541b37"},
    [CANVAS_SERIES + 6] = {"#74741a", "#ecebbb", "#c8c653", "#3e3d10"},
    [CANVAS_SERIES + 7] = {"#85563a", "#eddccf", "#cf9c79", "#442e1e"},
    [CANVAS_SERIES + 8] = {"#4f6177", "#d9e1ea", "#9fb2c9", "#2a3644"},
    [CANVAS_SERIES + 9] = {"#b23a2c", "#fbd7d1", "#f18d80", "#541f19"},
};

static struct svg_canvas *svg_of(struct canvas *canvas)
{
    return (struct svg_canvas *)canvas;
}

static void add_escaped(struct str *text, const char *words)
{
    assert(text && words);
    for (; *words; words++) {
        switch (*words) {
        case '&':
            str_add(text, "&amp;");
            break;
        case '<':
            str_add(text, "&lt;");
            break;
        case '>':
            str_add(text, "&gt;");
            break;
        case '"':
            str_add(text, "&quot;");
            break;
        default: /* XML has few control characters; titles have lines */
            str_add_char(text, (unsigned char)*words < 0x20 && *words != '\n' ? ' ' : *words);
        }
    }
}

/* A coordinate, to a hundredth of a pixel. */
static void add_length(struct str *text, double value)
{
    assert(isfinite(value));
    str_add_number(text, round(value * 100) / 100);
}

static void add_attribute(struct str *text, const char *name, double value)
{
    assert(name);
    str_addf(text, " %s=\"", name);
    add_length(text, value);
    str_add_char(text, '"');
}

static void add_point(struct str *text, char command, double x, double y)
{
    assert(text);
    str_add_char(text, command);
    add_length(text, x);
    str_add_char(text, ' ');
    add_length(text, y);
}

/* Parallel lines from lower left to upper right, cut at the edges. */
static void add_hatch(struct str *text, struct canvas_rect rect)
{
    double right = rect.x + rect.width, bottom = rect.y + rect.height;

    assert(rect.width > 0 && rect.height > 0);
    str_addf(text, "<path class=\"tr-h\" d=\"");
    for (int i = 1; i * HATCH_STEP < rect.width + rect.height; i++) {
        double across = i * HATCH_STEP;
        double over = across - rect.height; /* how far the lower end is cut off */
        double beyond = across - rect.width;

        add_point(text, 'M', over > 0 ? rect.x + over : rect.x,
                  over > 0 ? bottom : rect.y + across);
        add_point(text, 'L', beyond > 0 ? right : rect.x + across,
                  beyond > 0 ? rect.y + beyond : rect.y);
    }
    str_add(text, "\"/>\n");
}

static void svg_rect(struct canvas *canvas, struct canvas_rect rect, enum canvas_colour colour,
                     enum canvas_fill fill)
{
    static const char *const classes[] = {
        [CANVAS_SOLID] = "tr-a",       [CANVAS_BAR] = "tr-b", [CANVAS_HATCH] = "tr-o",
        [CANVAS_DASHED] = "tr-o tr-d", [CANVAS_KEY] = "tr-a",
    };
    struct str *body = &svg_of(canvas)->body;

    assert(fill <= CANVAS_KEY);
    if (fill == CANVAS_HATCH && rect.width > 0 && rect.height > 0)
        add_hatch(body, rect);
    str_addf(body, "<rect class=\"%s tr-c%d\"", classes[fill], (int)colour);
    add_attribute(body, "x", rect.x);
    add_attribute(body, "y", rect.y);
    add_attribute(body, "width", rect.width);
    add_attribute(body, "height", rect.height);
    str_add(body, fill == CANVAS_BAR ? "/>\n" : " rx=\"3\"/>\n");
}

static void svg_polyline(struct canvas *canvas, const struct canvas_point *points, size_t count,
                         enum canvas_colour colour, enum canvas_stroke stroke)
{
    static const char *const classes[] = {
        [CANVAS_THIN] = "", [CANVAS_THICK] = " tr-w", [CANVAS_BROKEN] = " tr-d"};
    struct str *body = &svg_of(canvas)->body;

    assert(stroke <= CANVAS_BROKEN);
    str_addf(body, "<path class=\"tr-o tr-c%d%s\" d=\"", (int)colour, classes[stroke]);
    for (size_t i = 0; i < count; i++)
        add_point(body, i ? 'L' : 'M', points[i].x, points[i].y);
    str_add(body, "\"/>\n");
}

static void svg_text(struct canvas *canvas, const struct canvas_text *text)
{
    static const char *const anchors[] = {
        [CANVAS_START] = "", [CANVAS_MIDDLE] = " tr-m", [CANVAS_END] = " tr-e"};
    struct str *body = &svg_of(canvas)->body;
    double size = text->large ? LARGE_SIZE : TEXT_SIZE;

    assert(text->anchor <= CANVAS_END);
    str_addf(body, "<text class=\"tr-t%d%s%s%s\"", (int)text->colour, anchors[text->anchor],
             text->bold ? " tr-bold" : "", text->large ? " tr-large" : "");
    add_attribute(body, "x", text->at.x);
    add_attribute(body, "y", text->at.y + 0.35 * size); /* of the base line */
    str_add_char(body, '>');
    add_escaped(body, text->words);
    str_add(body, "</text>\n");
}

static void svg_group_begin(struct canvas *canvas, const char *title)
{
    struct str *body = &svg_of(canvas)->body;

    assert(title);
    str_add(body, "<g><title>");
    add_escaped(body, title);
    str_add(body, "</title>\n");
}

static void svg_group_end(struct canvas *canvas)
{
    str_add(&svg_of(canvas)->body, "</g>\n");
}

/* The rules of every colour that the body uses. */
static void add_colours(const struct str *body, bool dark, struct str *text)
{
    for (int i = 0; i < CANVAS_COLOUR_COUNT; i++) {
        const char *stroke = dark ? looks[i].dark_stroke : looks[i].light_stroke;
        const char *area = dark ? looks[i].dark_area : looks[i].light_area;
        char shape[16], words[16];

        assert(stroke && area);
        snprintf(shape, sizeof(shape), "tr-c%d", i);
        snprintf(words, sizeof(words), "tr-t%d", i);
        if (strstr(body->bytes, shape))
            str_addf(text, ".tr-a.%s{fill:%s;stroke:%s}.tr-o.%s{stroke:%s}.tr-b.%s{fill:%s}\n",
                     shape, area, stroke, shape, stroke, shape, stroke);
        if (strstr(body->bytes, words))
            str_addf(text, ".%s{fill:%s}\n", words, stroke);
    }
}

static void add_style(const struct str *body, struct str *text)
{
    assert(body && text);
    str_add(text, "<style>\n"
                  ".tr{font-family:system-ui,\"Segoe UI\",\"Helvetica Neue\",Arial,sans-serif;"
                  "font-size:12px}\n"
                  ".tr-page{fill:#fff}.tr-h{fill:none;stroke:#c3cad2}\n"
                  ".tr-a,.tr-o{stroke-width:1.25}.tr-o{fill:none;stroke-linejoin:round}\n"
                  ".tr-w{stroke-width:2.25}.tr-d{stroke-dasharray:4 3}\n"
                  ".tr-m{text-anchor:middle}.tr-e{text-anchor:end}\n"
                  ".tr-bold{font-weight:600}.tr-large{font-size:16px}\n");
    add_colours(body, false, text);
    str_add(text, "@media screen and (prefers-color-scheme:dark){\n"
                  ".tr-page{fill:#11161c}.tr-h{stroke:#444d57}\n");
    add_colours(body, true, text);
    str_add(text, "}\n</style>\n");
}

static void svg_finish(struct canvas *canvas, struct str *text)
{
    const struct svg_canvas *svg = svg_of(canvas);

    assert(svg->width > 0 && svg->height > 0);
    str_add(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tr\" role=\"img\"");
    add_attribute(text, "width", svg->width);
    add_attribute(text, "height", svg->height);
    str_add(text, " viewBox=\"0 0 ");
    add_length(text, svg->width);
    str_add_char(text, ' ');
    add_length(text, svg->height);
    str_add(text, "\">\n<title>");
    add_escaped(text, svg->title);
    str_add(text, "</title>\n");
    add_style(&svg->body, text);
    str_add(text, "<rect class=\"tr-page\" width=\"100%\" height=\"100%\"/>\n");
    str_add_bytes(text, svg->body.bytes, svg->body.length);
    str_add(text, "</svg>\n");
}

static void svg_free(struct canvas *canvas)
{
    struct svg_canvas *svg = svg_of(canvas);

    str_done(&svg->body);
    free(svg->title);
    free(svg);
}

struct canvas *canvas_svg_new(double width, double height, const char *title)
{
    static const struct canvas_operations operations = {
        .rect = svg_rect,
        .polyline = svg_polyline,
        .text = svg_text,
        .group_begin = svg_group_begin,
        .group_end = svg_group_end,
        .finish = svg_finish,
        .free = svg_free,
    };
    struct svg_canvas *svg = xcalloc(1, sizeof(*svg));

    assert(width > 0 && height > 0 && title);
    svg->base.operations = &operations;
    svg->body = STR_EMPTY;
    svg->width = width;
    svg->height = height;
    svg->title = xstrdup(title);
    return &svg->base;
}
