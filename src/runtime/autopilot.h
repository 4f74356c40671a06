/* SPDX-License-Identifier: Apache-2.0
 *
 * Following demand: from observed arrival rates to the decision whether to change the plan,
 * and to which. Pure: no clock, no I/O; `tranche autopilot` looks, asks and acts.
 *
 * The rules (docs/spec/autopilot.md):
 *   forecast   (1 + headroom) × max(r0, r1, r0 + max(0, r0 − r1)), r0 and r1 the rates of the
 *              last two looks: the higher of both, and a rise goes on as it did; never below
 *              `least_share` of the rate in the services file
 *   grow       at once, when the forecast of a service is above what the plan promises it
 *   shrink     when a plan for the forecast has been cheaper in `hold` looks in a row
 *   change     of all plans of the least cost the one that moves least, within max_moves
 *   degrade    a forecast that the fleet cannot hold is cut by priority: the lowest first, all
 *              of one priority by the same share
 *   quiet      in quiet hours nothing is changed
 */
#ifndef TRANCHE_RUNTIME_AUTOPILOT_H
#define TRANCHE_RUNTIME_AUTOPILOT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/measurement.h"
#include "format/plan_document.h"
#include "format/service.h"

struct autopilot_hours {
    int from_minute, to_minute; /* of the day; from > to goes over midnight */
};

struct autopilot_settings {
    double headroom;
    double least_share;
    int hold;
    int max_moves; /* -1: any */
    VEC(struct autopilot_hours) quiet;
};

struct autopilot {
    struct autopilot_settings settings;
    struct service_set *services; /* borrowed; its rates are overwritten by forecasts */
    const struct measurement_set *rows;
    double *stated_rps;    /* the file's rates */
    double *recent_rps[2]; /* last look, the one before; NAN: none yet */
    double *forecast_rps;
    int cheaper_looks; /* in a row */
};

enum autopilot_verdict { AUTOPILOT_KEEP, AUTOPILOT_CHANGE, AUTOPILOT_WAIT };

struct autopilot_decision {
    enum autopilot_verdict verdict; /* WAIT: would change, and may not */
    bool degraded;
    struct plan plan;  /* where verdict is CHANGE */
    struct str reason; /* one line for people */
};

/* "22:00-06:00"; E_USAGE otherwise. */
int autopilot_hours_parse(const char *text, struct autopilot_hours *ret_hours,
                          struct error *err);

/* No look has been made. services, rows and the list of quiet hours are borrowed and must
 * outlive it. */
void autopilot_init(struct autopilot *autopilot, const struct autopilot_settings *settings,
                    struct service_set *services, const struct measurement_set *rows);
/* Frees what autopilot_init() made: what was borrowed stays the caller's. */
void autopilot_done(struct autopilot *autopilot);

/* One look: the arrival rate of each service of the set, in its order; NAN: not known. */
void autopilot_observe(struct autopilot *autopilot, const double *rates_rps);
/* What to do now with this plan in force, at this minute of the day. The decision must be
 * done with autopilot_decision_done(). */
int autopilot_decide(struct autopilot *autopilot, const struct plan *current, int minute,
                     struct autopilot_decision *ret_decision, struct error *err);
/* Frees plan and reason. */
void autopilot_decision_done(struct autopilot_decision *decision);

#endif
