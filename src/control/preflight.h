/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche controller --check`: whether a cluster is ready for the controller, before anything
 * is changed in it. Only reads, and asks by SelfSubjectAccessReview what the caller may do.
 *
 * Each question gives a finding; the cluster is ready when none is bad.
 */
#ifndef TRANCHE_CONTROL_PREFLIGHT_H
#define TRANCHE_CONTROL_PREFLIGHT_H

#include "base/arena.h"
#include "base/vec.h"
#include "kube/api.h"

enum finding_level {
    FINDING_GOOD,
    FINDING_NOTE, /* something that is optional is not there */
    FINDING_BAD,
    FINDING_LEVEL_COUNT
};

struct preflight_finding {
    enum finding_level level;
    const char *subject; /* "Kubernetes", "definitions", "rights" … */
    const char *text;
};

enum definition_state {
    DEFINITION_CURRENT, /* the schema is this program's */
    DEFINITION_OTHER,   /* of another version of the program */
    DEFINITION_MISSING,
    DEFINITION_UNKNOWN, /* may not be read */
    DEFINITION_STATE_COUNT
};

struct preflight_definition {
    const char *name; /* "gpuservices.tranche.dev" */
    enum definition_state state;
    const char *hash; /* what is there; "" none */
};

struct preflight_right {
    const char *verb, *group, *resource, *subresource; /* subresource "" none */
    const char *namespace, *name;                      /* "" all */
    const char *purpose;                               /* "the actuator dra", "" always */
    bool needed;                                       /* in this cluster as it is now */
    bool allowed;
};

struct preflight_conflict {
    const char *node, *text;
};

struct preflight_report {
    struct arena arena;  /* owns all text */
    const char *version; /* of the API server: "v1.36.3" */
    int major, minor;
    bool has_dra;         /* resource.k8s.io/v1 is served */
    bool has_dra_driver;  /* gpu.nvidia.com publishes ResourceSlices */
    bool has_dynamic_mig; /* … with partitions that are made on demand */
    bool has_gateway;     /* HTTPRoute of gateway.networking.k8s.io/v1 is served */
    int nodes, pools;
    VEC(struct preflight_definition) definitions;
    VEC(struct preflight_right) rights;
    VEC(struct preflight_conflict) conflicts; /* nodes that two owners drive */
    VEC(struct preflight_finding) findings;
    bool ok; /* no finding is bad */
};

struct preflight_options {
    struct kube_client *client; /* borrowed */
    const char *namespace;      /* that the controller runs in, for its Lease */
    const char *lease;          /* NULL: "tranche-controller" */
};

/* Frees the report's texts and lists. */
void preflight_report_done(struct preflight_report *report);
/* Returns 0 with a report, whatever is found; an error only when the API server cannot be
 * asked (E_IO, E_TIMEOUT, E_USAGE for credentials it refuses). */
int preflight_run(const struct preflight_options *options, struct preflight_report *ret_report,
                  struct error *err);

/* The report as JSON; a new reference. */
json_t *preflight_to_json(const struct preflight_report *report);
/* The level's word in report and JSON; static. */
const char *finding_level_name(enum finding_level level);

#endif
