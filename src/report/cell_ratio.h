/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells of a result document as values, and ratios of their figures with intervals. The ratio
 * of two cells is that of geometric means over repetitions; its interval is Welch's, of the
 * difference of logarithms. Ratios of several pairs are averaged (geometrically), and the
 * interval is then of that average, for the pairs that were measured.
 */
#ifndef TRANCHE_REPORT_CELL_RATIO_H
#define TRANCHE_REPORT_CELL_RATIO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/vec.h"

struct bench_cell {
    const json_t *json;                                      /* borrowed, as are texts */
    const char *model, *slice, *mode, *load, *task, *device; /* "": the key has none */
    int batch, procs, sequence;
    int instances;      /* slices that were measured together */
    int compute_slices; /* of the profile; 0: the board is not known */
    double rate_rps;    /* of an open loop, all instances together; NAN: closed */
    bool ok, valid;     /* any run ended well; any is VALID */
};
struct bench_cells {
    VEC(struct bench_cell) list;
};
/* How many slices were measured together in a cell of the document; at least 1. */
int bench_cell_instances(const json_t *cell);

/* The cells of a checked result document, in its order. Texts are borrowed from the document,
 * which must outlive them. */
struct bench_cells bench_cells_read(const json_t *document);
/* Frees the list. */
void bench_cells_done(struct bench_cells *cells);

/* Geometric mean of a figure over the runs that count: VALID ones, where there is none those
 * that ended well. NAN: none. */
double bench_cell_figure(const struct bench_cell *cell, const char *figure);

struct ratio {
    double value, low, high; /* low and high NAN: no pair has repetitions */
    int pairs;               /* 0: nothing to compare, value is NAN */
    bool valid;              /* all from VALID runs */
};

/* Adds up pairs. Zero-initialise. */
struct ratio_sum {
    double logarithms, variance, freedom;
    int pairs;
    int unsure;         /* pairs without repetitions: taken to scatter as the others do */
    bool invalid;       /* INVALID runs are in it */
    double least, most; /* of the pairs' ratios */
};
/* Adds the ratio of a's figure to b's, each multiplied by its own factor before; nothing when
 * one of them has none above 0. */
struct ratio_pair {
    const struct bench_cell *a, *b;
    double a_factor, b_factor; /* 0: 1 */
};
/* Adds the ratio of a's figure to b's, each multiplied by its own factor before; nothing when
 * one of them has none above 0. */
void ratio_sum_add(struct ratio_sum *sum, const struct ratio_pair *pair, const char *figure);
/* The geometric mean of the ratios added, with its 95 % interval (Welch-Satterthwaite degrees
 * of freedom over all pairs). */
struct ratio ratio_sum_mean(const struct ratio_sum *sum);

#endif
