/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model server itself says of where the time of requests goes: waiting, inputs,
 * model, outputs. Servers count sums, so the difference of two looks gives the means of
 * what was answered between them, by whomever it was asked.
 *
 * Two forms are read: Triton's statistics (GET /v2/models/MODEL/stats; Triton, `tranche
 * serve`), and Prometheus text in the names of Triton, MLServer, OpenVINO Model Server and
 * vLLM (docs/spec/http-load.md).
 */
#ifndef TRANCHE_LOAD_SERVER_PHASES_H
#define TRANCHE_LOAD_SERVER_PHASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum request_phase {
    REQUEST_QUEUE,
    REQUEST_INPUT,
    REQUEST_COMPUTE,
    REQUEST_OUTPUT,
    REQUEST_PHASE_COUNT
};
const char *request_phase_name(enum request_phase phase); /* "queue", "input" … */

/* Sums since the server began. */
struct server_sums {
    double requests, total_ns, phase_ns[REQUEST_PHASE_COUNT];
    bool has_total, has_phase[REQUEST_PHASE_COUNT]; /* what the server counts at all */
};

/* Reads a page of either form and adds it to *sums; model NULL: of all models. E_UNSUPPORTED
 * when it has no count of requests that is known here. */
int server_sums_add(const char *page, size_t length, const char *model,
                    struct server_sums *sums, struct error *err);

/* Means over the requests between two looks. */
struct server_phases {
    uint64_t requests;                              /* 0: unknown, and the reason below */
    double total_ms, phase_ms[REQUEST_PHASE_COUNT]; /* NAN: the server does not say */
    char reason[ERROR_TEXT_SIZE];
};
/* What of the total is in none of the phases (HTTP, JSON); NAN unless all are known. */
double server_phases_rest_ms(const struct server_phases *phases);
/* Means of what was answered between two looks: differences of sums over the difference of
 * counts. A count that fell (the server began anew) is a reason. */
struct server_phases server_phases_between(const struct server_sums *before,
                                           const struct server_sums *after);

#endif
