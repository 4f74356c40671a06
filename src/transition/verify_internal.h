/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of verification share: the lives of instances and of what they serve, read
 * out of the actions.
 */
#ifndef TRANCHE_TRANSITION_VERIFY_INTERNAL_H
#define TRANCHE_TRANSITION_VERIFY_INTERNAL_H

#include "transition/verify.h"

/* A GPU instance from its creation to its deletion. */
struct life {
    int gpu, profile, start;
    int create; /* action, -1: there at the beginning */
    int delete; /* action, -1: there at the end */
};

/* A service on an instance from start to drain. */
struct period {
    int service;
    double rate_rps;
    int start; /* action, -1: serving at the beginning */
    int drain; /* action, -1: serving at the end */
};

/* What stands in a slot. */
enum slot_state { SLOT_ABSENT, SLOT_IDLE, SLOT_SERVING, SLOT_DRAINED };
struct slot_content {
    enum slot_state state;
    int service; /* of the transition; -1: none */
    int batch, procs;
    double rate_rps;
};

struct verifier {
    const struct transition *transition;
    struct transition_report *report;
    int *from_gpu; /* of each GPU here: index in from, -1: none */
    int *to_gpu;   /* … index in to by match, -1: none */
    VEC(struct life) lives;
    VEC(struct period) periods;
};

void verifier_violation(struct verifier *verifier, const char *rule, const char *place,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
/* "g3 3g.20gb@4", in the report's arena. */
const char *verifier_slot_text(struct verifier *verifier, int gpu, int profile, int start);
double verifier_tolerance(double reference);

/* Walks each slot's actions, checks that they make sense and are ordered, compares what
 * stands there in the end, and fills lives and periods. */
void verify_lives(struct verifier *verifier);
/* No reachable layout is illegal. */
void verify_slots(struct verifier *verifier);
/* The least capacity of each service. */
void verify_floor(struct verifier *verifier);

#endif
