/* SPDX-License-Identifier: Apache-2.0
 *
 * Charts over a canvas, as SVG: lines over numbers (latency by rate, a CDF, capacity over
 * time), bars over categories (throughput by slice, with intervals), and spans over time
 * (the actions of a transition). Data is borrowed; a NAN is a gap.
 */
#ifndef TRANCHE_DRAW_CHART_H
#define TRANCHE_DRAW_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "draw/canvas.h"

enum chart_kind {
    CHART_LINES, /* y over x, points joined */
    CHART_STEPS, /* y over x, level until the next x */
    CHART_BARS,  /* y over categories, series side by side */
    CHART_SPANS, /* a bar from x to y for each row of categories */
    CHART_KIND_COUNT
};

struct chart_series {
    const char *label;
    enum canvas_colour colour;
    bool broken;              /* a bound or a target: a broken line */
    const double *x;          /* lines and steps; spans: starts */
    const double *y;          /* values; spans: ends. bars: one for each category */
    const double *low, *high; /* intervals of bars, or NULL */
    size_t count;             /* points; bars and spans: category_count */
};

struct chart {
    enum chart_kind kind;
    const char *title;
    const char *x_label, *y_label; /* with units; NULL: none */
    const char *const *categories; /* bars and spans */
    size_t category_count;
    const struct chart_series *series;
    size_t series_count;
    bool logarithmic; /* the value axis; values <= 0 are gaps */
};

/* Appends one SVG. A chart without a value to show says so in its middle. */
void chart_svg(const struct chart *chart, struct str *svg);

/* The step of axis marks for a range: 1, 2 or 5 times a power of ten, so that there are
 * at most `most` steps. For tests; range > 0. */
double chart_step(double range, int most);

#endif
