/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner's tests share: inputs from text, and small random planning problems.
 */
#ifndef TRANCHE_TESTS_PLAN_SUPPORT_H
#define TRANCHE_TESTS_PLAN_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "plan/run.h"

struct inputs {
    struct service_set services;
    struct measurement_set rows;
};

static inline void inputs_read(struct inputs *inputs, const char *yaml, const char *csv)
{
    struct error err = {0};
    if (service_set_parse("s.yaml", yaml, strlen(yaml), &inputs->services, &err) < 0 ||
        measurement_set_parse("m.csv", csv, strlen(csv), &inputs->rows, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void inputs_done(struct inputs *inputs)
{
    service_set_done(&inputs->services);
    measurement_set_done(&inputs->rows);
}

static inline void plan_or_fail(const struct plan_request *request, struct plan *plan)
{
    struct error err = {0};
    if (plan_run(request, plan, &err) < 0)
        fail_msg("%s", err.text);
}

/* The seed of a property test: TRANCHE_SEED or a fixed one; printed. */
static inline uint64_t test_seed(void)
{
    const char *text = getenv("TRANCHE_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20261130;
    print_message("seed %llu (TRANCHE_SEED)\n", (unsigned long long)seed);
    return seed;
}

#endif
