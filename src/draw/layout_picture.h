/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of layouts: one GPU, or a grid of many with what runs on each instance. All
 * that is shown is given as data; nothing here knows plans or services. Each GPU is a bar of
 * memory units: instances over their spans, units where something still fits in dashes, units
 * where nothing fits any more crossed out.
 */
#ifndef TRANCHE_DRAW_LAYOUT_PICTURE_H
#define TRANCHE_DRAW_LAYOUT_PICTURE_H

#include "base/str.h"
#include "draw/canvas.h"
#include "mig/layout.h"

/* Coloured by profile: for colours[] below. */
enum { DRAW_COLOUR_AUTO = -1 };

struct draw_gpu {
    const char *title;  /* "g0"; NULL: the board's slug */
    const char *remark; /* behind the title, or NULL */
    const struct mig_board *board;
    struct mig_layout layout;               /* all starts known; should be legal */
    const char *labels[MIG_INSTANCES_MAX];  /* what runs on instance i, or NULL */
    int colours[MIG_INSTANCES_MAX];         /* an enum canvas_colour or DRAW_COLOUR_AUTO */
    const char *details[MIG_INSTANCES_MAX]; /* more lines for the pointer (SVG), or NULL */
};

/* A GPU without labels, coloured by profile. */
struct draw_gpu draw_gpu_of(const struct mig_board *board, const struct mig_layout *layout);

/* Two GPUs, "from" and "to", on which what stays, what is removed and what is created
 * have colours and labels. */
void draw_gpu_difference(const struct mig_board *board, const struct mig_layout *from,
                         const struct mig_layout *to, struct draw_gpu ret_gpus[2]);

/* The explanation of a colour. */
struct draw_key {
    const char *label;
    enum canvas_colour colour;
};

struct layout_picture {
    const char *title; /* NULL: none */
    const struct draw_gpu *gpus;
    size_t gpu_count;
    int columns; /* GPUs side by side; 0: one in text, up to two in SVG */
    const struct draw_key *keys;
    size_t key_count;
};

/* Appends the picture. A text line is at most 80 columns where columns is 0 or 1. */
void layout_picture_svg(const struct layout_picture *picture, struct str *svg);
/* Appends the picture for a terminal; with `colour`, with ANSI escapes. */
void layout_picture_text(const struct layout_picture *picture, bool colour, struct str *text);

#endif
