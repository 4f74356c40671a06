/* SPDX-License-Identifier: Apache-2.0
 *
 * One figure of one queueing system at any rate: chooses the method.
 *
 * One process, or batches of one: exact (queue_chain.h). Several processes: replay
 * (queue_replay.h), corrected by the exact law of one process p times as fast, whose replay
 * errs alike. That one's backlog falls off at exactly the same rate (both obey
 * exp(x S) (rate / (rate + x))^(p b) = 1), so near saturation, where a finite replay sees no
 * long excursion of either, the exact law is what remains.
 */
#ifndef TRANCHE_PLAN_QUEUE_FIGURE_H
#define TRANCHE_PLAN_QUEUE_FIGURE_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "plan/queue_case.h"

struct queue_figure;
/* Working memory; never NULL; queue_figure_free() it. */
struct queue_figure *queue_figure_new(void);
void queue_figure_free(struct queue_figure *figure); /* NULL is fine */
CLEANUP_DEFINE_FREE(queue_figure)

/* What is asked of a system: the share of requests over limit_ms, or their mean time in ms
 * (limit_ms not read). `allowed` is the share of interest, 0 … 1. */
struct queue_question {
    enum queue_measure measure;
    double limit_ms;
    double allowed;
    bool coarse; /* faster, less exact where it is a replay */
};

/* Forgets the system asked about before; call when anything but its rate or the
 * question's limit changes. */
void queue_figure_begin(struct queue_figure *figure);
/* The figure, system->rate below saturation. */
double queue_figure_at(struct queue_figure *figure, const struct queue_case *system,
                       const struct queue_question *question);

#endif
