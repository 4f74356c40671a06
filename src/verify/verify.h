/* SPDX-License-Identifier: Apache-2.0
 *
 * The independent check of a plan against the services and measurements: it shares no code
 * with the planners but the tables of boards and the legality of layouts, and works out
 * the latency rules by itself.
 */
#ifndef TRANCHE_VERIFY_VERIFY_H
#define TRANCHE_VERIFY_VERIFY_H

#include "base/arena.h"
#include "base/vec.h"
#include "format/measurement.h"
#include "format/plan_document.h"
#include "format/service.h"

struct violation {
    const char *rule;  /* "layout", "rate", "latency", "memory", "stock", … */
    const char *place; /* "gpus[3].instances[0]", "services[2]", "" */
    const char *text;  /* what is wrong, what was expected */
};

struct violations {
    struct arena arena;
    VEC(struct violation) list;
};
/* Frees the list and its texts. */
void violations_done(struct violations *violations);

/* Lists every violation; returns how many there are. A plan whose status is infeasible is
 * one violation: it serves nothing. */
size_t plan_verify(const struct plan *plan, const struct service_set *services,
                   const struct measurement_set *rows, struct violations *ret_violations);

#endif
