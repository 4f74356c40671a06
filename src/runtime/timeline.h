/* SPDX-License-Identifier: Apache-2.0
 *
 * What was measured while a change was carried out: when each action began and was done, and
 * which capacity of each service was ready. Times are seconds since the change began; those
 * of actions come from the journal after a crash, the capacity of the time in which nobody
 * looked is not known.
 */
#ifndef TRANCHE_RUNTIME_TIMELINE_H
#define TRANCHE_RUNTIME_TIMELINE_H

#include <jansson.h>

#include "base/vec.h"
#include "transition/document.h"

struct timeline_point {
    double at_s, ready_rps; /* ready from then on; NAN: not known */
};

struct timeline_series {
    VEC(struct timeline_point) points;
    double minimum_rps; /* least that was seen; INFINITY: nothing was */
};

struct timeline {
    double started_unix_s;
    size_t action_count, service_count;
    double *begun_s, *done_s;      /* by action; NAN: not yet */
    struct timeline_series *ready; /* by service of the transition */
};

/* Wall time in seconds since 1970. */
double timeline_wall_s(void);
/* Owns its arrays; timeline_done() it. */
void timeline_init(struct timeline *timeline, const struct transition *transition,
                   double started_unix_s);
/* Frees the arrays. */
void timeline_done(struct timeline *timeline);
/* Seconds since the change began. */
double timeline_now_s(const struct timeline *timeline);
/* What is ready of a service now. */
void timeline_note_ready(struct timeline *timeline, size_t service, double ready_rps);
/* Nobody looked until now: the curves have a gap. */
void timeline_note_gap(struct timeline *timeline);

/* Schema "tranche.change/1" (docs/spec/runtime.md), a new reference. */
json_t *timeline_to_json(const struct timeline *timeline, const struct transition *transition,
                         int number);

#endif
