/* SPDX-License-Identifier: Apache-2.0
 *
 * The independent check of a transition, for every order in which its actions may finish
 * (docs/spec/transition.md has the proof). It shares the document and the hardware tables
 * with the planners, and no other code.
 */
#ifndef TRANCHE_TRANSITION_VERIFY_H
#define TRANCHE_TRANSITION_VERIFY_H

#include "transition/document.h"

struct transition_violation {
    const char *rule;  /* "floor", "slots", "lifecycle", "end", "gpus", "match", "figures" */
    const char *place; /* the action, GPU or service */
    const char *text;
};

/* The least ready capacity of a service over all states that can be reached. */
struct transition_minimum {
    const char *service; /* borrowed from the transition */
    double floor_rps;
    double minimum_rps;
};

struct transition_report {
    struct arena arena;
    VEC(struct transition_violation) violations;
    VEC(struct transition_minimum) minima; /* one a service, in the transition's order */
};

/* Fills *ret_report; the transition is safe when there is no violation. */
void transition_verify(const struct transition *transition,
                       struct transition_report *ret_report);
void transition_report_done(struct transition_report *report);
/* E_NO with the first violations as text, or 0. */
int transition_report_error(const struct transition_report *report, struct error *err);

#endif
