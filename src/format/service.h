/* SPDX-License-Identifier: Apache-2.0
 *
 * Services and fleet: the YAML of the contract ("Services: YAML").
 */
#ifndef TRANCHE_FORMAT_SERVICE_H
#define TRANCHE_FORMAT_SERVICE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "format/measurement.h"
#include "mig/board.h"
#include "mig/fleet.h"

enum spread { SPREAD_NONE, SPREAD_GPU, SPREAD_NODE, SPREAD_COUNT };
enum latency_rule { RULE_QUEUE, RULE_BATCH, RULE_HALF, LATENCY_RULE_COUNT };

struct service {
    const char *name;
    const char *model;
    enum task task;
    double rate_rps;
    double latency_ms;  /* objective; NAN: none (training) */
    double percentile;  /* 50, 90, 95, 99, 99.9 or MEASUREMENT_PERCENTILE_MEAN */
    double max_wait_ms; /* always filled: default objective / 4; NAN for training */
    int min_instances;
    enum spread spread;
    int priority;
    unsigned line;                     /* of the service */
    unsigned model_line, model_column; /* of its model's name */
};

/* An instance fixed by hand on a listed GPU. */
struct fixed_instance {
    int profile;
    int start;
    int service;   /* index, or -1 when reserved */
    bool reserved; /* taken by somebody else: never used, never moved */
};

struct fleet_gpu { /* a GPU listed by name */
    const char *id;
    const char *node; /* "" unknown */
    VEC(struct fixed_instance) instances;
};

struct fleet_part { /* GPUs of one board at one price */
    const struct mig_board *board;
    int count; /* MIG_FLEET_UNLIMITED, or how many; includes the listed ones */
    double price;
    int gpus_per_node; /* 0: unknown */
    VEC(struct fleet_gpu) gpus;
    unsigned line;
};

struct service_set {
    struct arena arena;
    VEC(struct service) services;
    VEC(struct fleet_part) fleet; /* empty: every measured board, unlimited, price 1 */
    enum latency_rule latency_rule;
    double derate;
    char sha256[72];
};

/* Frees services, fleet and texts. */
void service_set_done(struct service_set *set);
/* Reads and checks the contract's YAML; what is left out has the contract's default. E_INPUT
 * with FILE:LINE:COL: an unknown key, a name used twice, a value out of range. */
int service_set_read(const char *path, struct service_set *ret_set, struct error *err);
/* The same from bytes; name is for messages. */
int service_set_parse(const char *name, const char *bytes, size_t length,
                      struct service_set *ret_set, struct error *err);
/* E_INPUT for a service whose model no row of the measurements names (nearest named). */
int service_set_match(const struct service_set *set, const struct measurement_set *rows,
                      const char *services_path, struct error *err);
/* Replaces set->fleet by a --fleet text: price 1 for boards that the file lacks, the file's
 * price and gpus_per_node for those it has. Wrong text is E_INPUT and leaves the set as it was.
 */
int service_set_use_fleet(struct service_set *set, const char *text, struct error *err);

/* The words of the file, static: "none", "gpu", "node". */
const char *spread_name(enum spread spread);
/* "queue", "batch", "half". */
const char *latency_rule_name(enum latency_rule rule);

#endif
