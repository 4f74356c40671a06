/* SPDX-License-Identifier: Apache-2.0
 *
 * What all `tranche plan` commands read: services, measurements and a fleet that may
 * override the one of the services file.
 */
#ifndef TRANCHE_CLI_PLAN_INPUTS_H
#define TRANCHE_CLI_PLAN_INPUTS_H

#include "base/error.h"
#include "base/option.h"
#include "format/measurement.h"
#include "format/service.h"

struct plan_inputs {
    struct service_set services;
    struct measurement_set rows;
};

/* Reads and matches both files; fleet_text may be NULL. E_INPUT or E_IO with the place. */
int plan_inputs_read(struct plan_inputs *inputs, const char *services_path,
                     const char *measurements_path, const char *fleet_text, struct error *err);
/* Frees services and measurements. */
void plan_inputs_done(struct plan_inputs *inputs);

/* The options of those inputs, for a struct with services, measurements, fleet and json. */
#define PLAN_INPUT_OPTIONS(type)                                                               \
    {.letter = 's',                                                                            \
     .name = "services",                                                                       \
     .kind = OPTION_KIND_TEXT,                                                                 \
     .offset = offsetof(type, services),                                                       \
     .value_name = "FILE",                                                                     \
     .required = true,                                                                         \
     .help = "services and fleet, YAML"},                                                      \
        {.letter = 'm',                                                                        \
         .name = "measurements",                                                               \
         .kind = OPTION_KIND_TEXT,                                                             \
         .offset = offsetof(type, measurements),                                               \
         .value_name = "FILE",                                                                 \
         .required = true,                                                                     \
         .help = "measurements, CSV"},                                                         \
        OPTION_TEXT(0, "fleet", type, fleet, "FLEET", NULL,                                    \
                    "GPUs by board (a100-40gb:8,…) instead of the services file's fleet"),     \
        OPTION_FLAG(0, "json", type, json, "print JSON")

#endif
