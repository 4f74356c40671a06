/* SPDX-License-Identifier: Apache-2.0
 *
 * What a canvas has to do; one const table a kind of canvas. Only src/draw/canvas*.c
 * include this.
 */
#ifndef TRANCHE_DRAW_CANVAS_BACKEND_H
#define TRANCHE_DRAW_CANVAS_BACKEND_H

#include "draw/canvas.h"

struct canvas_operations {
    void (*rect)(struct canvas *canvas, struct canvas_rect rect, enum canvas_colour colour,
                 enum canvas_fill fill);
    void (*polyline)(struct canvas *canvas, const struct canvas_point *points, size_t count,
                     enum canvas_colour colour, enum canvas_stroke stroke);
    void (*text)(struct canvas *canvas, const struct canvas_text *text);
    void (*group_begin)(struct canvas *canvas, const char *title);
    void (*group_end)(struct canvas *canvas);
    void (*finish)(struct canvas *canvas, struct str *text);
    void (*free)(struct canvas *canvas);
};

/* The first member of every kind of canvas. */
struct canvas {
    const struct canvas_operations *operations;
    int open_groups;
};

#endif
