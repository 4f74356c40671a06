/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as a value: which instances exist on which GPU and what each serves (a deployment
 * in the MIG-serving paper), and its JSON, schema "tranche.plan/1" of the contract.
 * The planners make it, plan verify, transition, the runtimes and reports read it.
 */
#ifndef TRANCHE_FORMAT_PLAN_DOCUMENT_H
#define TRANCHE_FORMAT_PLAN_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "mig/layout.h"

enum plan_status { PLAN_OPTIMAL, PLAN_FEASIBLE, PLAN_INFEASIBLE, PLAN_STATUS_COUNT };

struct plan_instance {
    int profile; /* index into the GPU's board->profiles */
    int start;
    int service; /* index into plan->services, -1: kept but unused ("service": null) */
    int batch, procs;
    double max_wait_ms; /* NAN: none */
    double rate_rps;    /* full promised capacity */
    double latency_ms;  /* NAN: none (training) */
};

struct plan_gpu {
    const char *id;
    const struct mig_board *board;
    const char *node;                    /* "" unknown */
    VEC(struct plan_instance) instances; /* sorted by start */
};

struct plan_service {
    const char *name;
    double required_rps;
    double provided_rps; /* sum of its instances' rate_rps */
};

struct plan_infeasible {
    const char *service;
    const char *reason;        /* "latency", "memory", "stock", "no_measurement" */
    double nearest_latency_ms; /* NAN: none */
};

struct plan {
    struct arena arena; /* owns all text */
    const char *algorithm;
    uint64_t seed;
    enum plan_status status;
    bool emulated;
    double cost;
    int gpus_used;
    double bound_cost; /* NAN: none was proved */
    int bound_gpus;    /* -1: not all prices are equal */
    const char *bound_how;
    const char *stopped_by; /* NULL or "budget" */
    VEC(struct plan_gpu) gpus;
    VEC(struct plan_service) services;
    VEC(struct plan_infeasible) infeasible;
    json_t *options; /* object, owned; NULL: none */
    json_t *inputs;  /* object, owned; NULL: none */
    json_t *extra;   /* further members ("changes", …), kept and written back; NULL: none */
};

/* An empty plan: nothing proved, nothing used. */
void plan_init(struct plan *plan);
/* Frees the plan and every text that was borrowed from it. */
void plan_done(struct plan *plan);
/* Reads and checks form: ids unique, boards, slices and services known, numbers finite
 * and in range, starts among the profile's. Legality and rates are plan verify's job.
 * Members that only explain (bound, options, inputs, seed, emulated) may be absent.
 * E_INPUT "FILE: gpus[3].instances[0].slice: …". */
int plan_read(const char *path, struct plan *ret_plan, struct error *err);
/* What plan_read() would refuse although the form is right: a slice that the board lacks,
 * a service that the plan does not list, a start out of place. For a verifier, which has
 * to list every fault: such an instance is noted here and, but for the start, left out. */
struct plan_faults {
    struct arena arena;
    VEC(const char *) texts; /* "gpus[3].instances[0].slice: …" */
};
/* Frees the list and its texts. */
void plan_faults_done(struct plan_faults *faults);
/* As plan_read(), but faults of that kind are listed and do not fail it. */
int plan_read_faulty(const char *path, struct plan *ret_plan, struct plan_faults *ret_faults,
                     struct error *err);
/* plan_read() of a document in memory; name is for messages. */
int plan_from_json(const char *name, const json_t *root, struct plan *ret_plan,
                   struct error *err);
/* The GPUs and services alone, as transition documents carry them. */
int plan_gpus_from_json(const struct json_place *place, const json_t *gpus,
                        const json_t *services, struct plan *ret_plan, struct error *err);
/* The document of the contract; a new reference, which shares nothing with the plan. Members
 * that are not known (NAN, -1, NULL) are null or left out as the schema says. */
json_t *plan_to_json(const struct plan *plan);
/* Its "gpus" list alone, a new reference: for transition documents. */
json_t *plan_gpus_to_json(const struct plan *plan); /* the "gpus" list */
/* Its "services" list alone, a new reference. */
json_t *plan_services_to_json(const struct plan *plan); /* the "services" list */
/* Appends the document as json_write_pretty() writes it: equal plans give equal bytes. */
void plan_format(const struct plan *plan, struct str *text);

/* The layout of one GPU of a plan, sorted. More than MIG_INSTANCES_MAX instances are the
 * caller's fault: plan_read() refuses them. */
void plan_gpu_layout(const struct plan_gpu *gpu, struct mig_layout *ret_layout);
/* Index of a service by name, or -1. */
int plan_find_service(const struct plan *plan, const char *name);
/* Index of a GPU by id, or -1. */
int plan_find_gpu(const struct plan *plan, const char *id);

#endif
