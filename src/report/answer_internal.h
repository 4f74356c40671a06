/* SPDX-License-Identifier: Apache-2.0
 *
 * What findings are made of. Private to this folder.
 */
#ifndef TRANCHE_REPORT_ANSWER_INTERNAL_H
#define TRANCHE_REPORT_ANSWER_INTERNAL_H

#include "base/str.h"
#include "report/cell_ratio.h"

struct answer {
    struct bench_cells cells;
    VEC(char *) lines; /* a finding each */
    bool marked;       /* some ratio is of INVALID runs */
};

/* Takes the text as one more finding, and leaves it empty. */
void answer_say(struct answer *answer, struct str *line);
/* "×3.1 (2.9 to 3.3)", with a mark when INVALID runs went into it. */
void answer_ratio(struct answer *answer, const struct ratio_sum *sum, struct str *line);
/* "better", "worse", "not shown to differ" or "without an interval", for a ratio that is good
 * when low. */
const char *answer_judgement(const struct ratio_sum *sum, bool low_is_good);

/* Cells that differ in one thing alone, in its order. */
enum arm_axis { ARM_BATCH, ARM_SEQUENCE, ARM_RATE, ARM_SLICE };
enum { ARM_CELLS_MAX = 64 };
struct arm {
    const struct bench_cell *cells[ARM_CELLS_MAX];
    size_t count;
};
/* The next arm with at least two cells that ran; *position starts at 0. False: no more. */
bool arm_next(const struct bench_cells *cells, enum arm_axis axis, size_t *position,
              struct arm *ret_arm);
/* The cell's place on the axis: batch, tokens, requests a second or compute slices. */
double arm_value(const struct bench_cell *cell, enum arm_axis axis);
/* The last cell's figure over the first's. */
struct ratio_sum arm_growth(const struct arm *arm, const char *figure);

/* What the findings are, each said once if the cells have it (answer_trends.c, answer_modes.c):
 * throughput and latency from the smallest batch to the largest. */
void answer_batches(struct answer *answer);
/* Time from the shortest sequence to the longest. */
void answer_sequences(struct answer *answer);
/* Latency from the lowest rate of an open loop to the highest. */
void answer_rates(struct answer *answer);
/* Throughput from the smallest slice to the largest, per compute slice too. */
void answer_slices(struct answer *answer);
/* Slices of their own against processes that share one GPU, by way of sharing. */
void answer_sharing(struct answer *answer);
/* A slice beside others at work against the same slice alone. */
void answer_neighbours(struct answer *answer);
/* The GPU without MIG against its largest slice. */
void answer_whole(struct answer *answer);

#endif
