/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands of a running plan (up, status, apply, down, autopilot) share: where its
 * state lies, and which model file each service runs.
 */
#ifndef TRANCHE_CLI_RUNNING_H
#define TRANCHE_CLI_RUNNING_H

#include <jansson.h>

#include "base/error.h"
#include "base/option.h"
#include "format/plan_document.h"
#include "format/service.h"

#define RUNNING_STATE_OPTION(type)                                                             \
    OPTION_TEXT(0, "state-dir", type, state_dir, "FOLDER", NULL,                               \
                "where the running plan keeps its state (default: $TRANCHE_RUNTIME_DIR, "      \
                "/run/tranche/runtime for root, $XDG_RUNTIME_DIR/tranche-runtime)")

#define RUNNING_MODEL_OPTIONS(type)                                                            \
    OPTION_TEXT('s', "services", type, services, "FILE", NULL,                                 \
                "services file: models and objectives of the plan's services"),                \
        OPTION_TEXT(0, "models", type, models, "FOLDER", NULL,                                 \
                    "where MODEL.onnx lies (default: models beside the program)"),             \
        OPTION_LIST(0, "model", type, model, "NAME=FILE",                                      \
                    "the file of a model or service of this name")

/* The folder as absolute path, owned by the caller. */
char *running_folder(const char *given);
/* The program's own path, owned by the caller. */
char *running_program(void);

struct running_models {
    const struct service_set *services; /* NULL: models have the names of services */
    const char *folder;                 /* --models */
    struct option_list files;           /* --model */
};
/* {"SERVICE": {"path", "model", "latency_ms", "percentile"}} for every service of the plan.
 * E_IO for a file that cannot be read, E_INPUT for a name that cannot be served. */
int running_models_find(const struct running_models *models, const struct plan *plan,
                        json_t **ret_models, struct error *err);
/* {"do": what}: asks, and returns the answer. */
int running_ask(const char *folder, const char *what, json_t **ret_answer, struct error *err);
/* Sleeps; false when Ctrl-C came. Call running_catch_signals() before. */
void running_catch_signals(void);
bool running_sleep(double seconds);

#endif
