/* SPDX-License-Identifier: Apache-2.0
 *
 * The part that all canvases share: handing on, and fitting words.
 */
#include <assert.h>
#include <string.h>
#include <wchar.h>

#include "draw/canvas_backend.h"

void canvas_free(struct canvas *canvas)
{
    if (canvas)
        canvas->operations->free(canvas);
}

void canvas_rect(struct canvas *canvas, struct canvas_rect rect, enum canvas_colour colour,
                 enum canvas_fill fill)
{
    assert(rect.width >= 0 && rect.height >= 0 && colour < CANVAS_COLOUR_COUNT);
    canvas->operations->rect(canvas, rect, colour, fill);
}

void canvas_line(struct canvas *canvas, struct canvas_point from, struct canvas_point to,
                 enum canvas_colour colour, enum canvas_stroke stroke)
{
    canvas_polyline(canvas, (struct canvas_point[]){from, to}, 2, colour, stroke);
}

void canvas_polyline(struct canvas *canvas, const struct canvas_point *points, size_t count,
                     enum canvas_colour colour, enum canvas_stroke stroke)
{
    assert(count >= 1 && colour < CANVAS_COLOUR_COUNT);
    canvas->operations->polyline(canvas, points, count, colour, stroke);
}

void canvas_text(struct canvas *canvas, const struct canvas_text *text)
{
    assert(text->words && text->colour < CANVAS_COLOUR_COUNT);
    canvas->operations->text(canvas, text);
}

void canvas_group_begin(struct canvas *canvas, const char *title)
{
    assert(title && canvas->open_groups >= 0);
    canvas->open_groups++;
    canvas->operations->group_begin(canvas, title);
}

void canvas_group_end(struct canvas *canvas)
{
    assert(canvas->open_groups > 0);
    canvas->open_groups--;
    canvas->operations->group_end(canvas);
}

void canvas_finish(struct canvas *canvas, struct str *text)
{
    assert(canvas->open_groups == 0 && text);
    canvas->operations->finish(canvas, text);
}

int canvas_fitting_columns(double width)
{
    return width > 0 ? (int)(width / CANVAS_CELL_WIDTH) : 0;
}

/* Bytes of the UTF-8 character that starts here; a stray byte is a character. */
static size_t character_length(const char *text)
{
    unsigned char first = (unsigned char)*text;
    size_t length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    assert(first);
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 1;
    return length;
}

void canvas_fit_words(const char *words, int columns, struct str *text)
{
    CLEANUP(str_done) struct str kept = STR_EMPTY;
    size_t at = 0;

    assert(words && text);
    if (columns <= 0)
        return;
    if (text_columns(words) <= (size_t)columns) {
        str_add(text, words);
        return;
    }
    while (words[at]) {
        size_t length = character_length(words + at);
        size_t before = kept.length;

        str_add_bytes(&kept, words + at, length);
        if (text_columns(kept.bytes) > (size_t)columns - 1) {
            kept.length = before;
            kept.bytes[before] = '\0';
            break;
        }
        at += length;
    }
    str_add(text, kept.bytes);
    str_add(text, "…");
}
