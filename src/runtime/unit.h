/* SPDX-License-Identifier: Apache-2.0
 *
 * A unit: one instance and the server that shall run in it, as the runtime sees it. Its
 * process is a keeper (keeper.h); this side starts it, adopts it, looks how far it is, and
 * ends it.
 */
#ifndef TRANCHE_RUNTIME_UNIT_H
#define TRANCHE_RUNTIME_UNIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "runtime/process_id.h"
#include "runtime/router.h"

enum unit_want {
    UNIT_SERVE,
    UNIT_DRAIN, /* no new requests; the server stays */
    UNIT_STOP   /* nothing of it stays */
};

struct unit {
    char key[32]; /* "n3-4": number of the GPU, start */
    int gpu;      /* index into the machine's GPUs */
    const char *slice;
    int start;
    char service[ROUTER_NAME_SIZE];
    int batch, procs;
    double max_wait_ms; /* NAN: none */
    double rate_rps;
    bool training; /* it trains: nothing is routed to it */
    enum unit_want want;

    struct process_id keeper, server;
    bool ready; /* the server answers */
    int port;
    double live_max_wait_ms; /* of the server that runs; NAN: not said */
    int64_t tuned_ns;        /* when it was last told another one */
    bool routed;             /* HAProxy has it */
    bool drained_in_router;
    enum router_server_state router_state;
    int sessions, weight;
    int failures; /* starts in a row that came to nothing */
    int64_t started_ns, retry_ns, down_since_ns;
    struct unit_progress {
        long long steps;                    /* ever, by its checkpoints */
        double steps_per_s, rate_rps, loss; /* lately; NAN: not said */
    } progress;                             /* of training */
    bool adopted;                           /* what runs was held against what shall */
    char identity[512]; /* of what runs: service, model, batch, processes, device */
};

/* Writes units/KEY.json and starts its keeper from `program`. */
int unit_launch(struct unit *unit, const char *folder, const json_t *spec, struct error *err);
/* Tells the keeper that lives what can be changed while the server runs. */
int unit_retune(struct unit *unit, const char *folder, const json_t *spec, struct error *err);
/* Whether the server waits for batches as long as it shall. */
bool unit_is_tuned(const struct unit *unit);
/* Reads units/KEY.live: fills keeper, server, ready and port; false when no keeper lives. */
bool unit_look(struct unit *unit, const char *folder);
/* Asks it to end, or ends it and its server at once. */
void unit_end(struct unit *unit, bool at_once);
/* Removes what a dead keeper left in units/. */
void unit_clean(const struct unit *unit, const char *folder);
/* Whether the keeper that lives was started for the same. */
bool unit_runs(const struct unit *unit, const json_t *spec);

#endif
