/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rates a pool serves when it is too small for all. Pure; the caller says what fits.
 *
 * Services of higher priority come first. Among equals, each keeps what it has before any gets
 * more: nobody loses what runs because somebody of no higher priority wants more. What is left
 * goes to the older service, by creationTimestamp, then by name. What does not fit whole is
 * served in part.
 */
#ifndef TRANCHE_CONTROL_PLANNING_ADMISSION_H
#define TRANCHE_CONTROL_PLANNING_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct admission_service {
    const char *name, *created; /* "namespace/name", creationTimestamp */
    int priority;
    double wanted_rps; /* above 0, or 0: it takes no part */
    double held_rps;   /* what it has, of what it wants */
    double given_rps;  /* out: 0 nothing, at most wanted_rps */
};

struct admission {
    struct admission_service *services;
    size_t count;
    /* Whether the pool serves all given_rps at once; < 0 ends the admission. */
    int (*fits)(void *context, bool *ret_fits, struct error *err);
    void *context;
    int tries_max; /* calls of fits(); what is not tried does not fit */
};

/* Sets given_rps of all; what all want is known not to fit. The last call of fits() that said
 * yes was of just these, if any is above 0. E_NO, and nothing to rely on, when the services of
 * the highest priority cannot even keep what they have. */
int admission_run(struct admission *admission, struct error *err);

#endif
