/* SPDX-License-Identifier: Apache-2.0
 *
 * How long actions take. The defaults are published measurements; a YAML file replaces
 * them:
 *
 *     seconds: {create_instance: 2.4, start: 20}
 *     services:
 *       - {name: llm, start: 90}
 */
#ifndef TRANCHE_TRANSITION_TIMES_H
#define TRANCHE_TRANSITION_TIMES_H

#include "base/arena.h"
#include "transition/document.h"

struct service_times {
    const char *service;
    double seconds[ACTION_KIND_COUNT]; /* NAN: as for all */
};

struct action_times {
    struct arena arena;
    double seconds[ACTION_KIND_COUNT];
    VEC(struct service_times) services;
};

/* "measured": medians measured on A100-40GB with a direct driver path; "paper": the MIG-serving
 * paper's pod-based actions. NULL when there is no such table. */
const struct action_times *action_times_find(const char *name);
/* The table in a YAML text; kinds that it lacks are those of "measured". */
int action_times_parse(const char *name, const char *bytes, size_t length,
                       struct action_times *ret_times, struct error *err);
void action_times_done(struct action_times *times);
/* service: NULL for an action that has none. */
double action_times_seconds(const struct action_times *times, enum action_kind kind,
                            const char *service);

#endif
