/* SPDX-License-Identifier: Apache-2.0
 *
 * The pod of an instance: the service's template, our labels and annotations, and in the
 * environment of its first container what it shall serve:
 *
 *     TRANCHE_SERVICE, TRANCHE_MODEL, TRANCHE_SLICE, TRANCHE_BATCH, TRANCHE_PROCS,
 *     TRANCHE_MAX_WAIT_MS, TRANCHE_PORT
 *
 * What the template sets itself is left as it is. Devices, node and claims are the actuator's.
 */
#ifndef TRANCHE_CONTROL_POD_OBJECT_H
#define TRANCHE_CONTROL_POD_OBJECT_H

#include "control/effect.h"
#include "control/world.h"

struct pod_request {
    const struct gpu_service *service;
    const char *pool;
    const struct world_gpu *gpu;
    int profile, start;
    const char *transition, *action; /* name and id: the pod's name follows from them */
    int batch, procs;
    double max_wait_ms; /* NAN: none */
    double rate_rps;
    long long epoch;
};

/* "SERVICE-HASH10", at most 63 characters; service: name without namespace. */
void pod_object_name(const char *service, const char *transition, const char *action,
                     char ret_name[64]);
/* A new reference. */
json_t *pod_object_make(const struct pod_request *request);

/* Marks the pod as draining, tied to its version: routing leaves it out. Nothing when it goes
 * already, or when the caches are not fresh. */
void pod_drain(const struct world *world, const struct world_pod *pod, struct effects *effects);
/* Deletes it, by its UID; likewise. */
void pod_stop(const struct world *world, const struct world_pod *pod, struct effects *effects);

#endif
