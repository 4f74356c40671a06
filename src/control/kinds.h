/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of objects that the controller and the node agent read or write: our own
 * (tranche.dev/v1alpha1, docs/spec/kubernetes-api.md) and those of Kubernetes; and the names
 * that we and NVIDIA put on objects.
 */
#ifndef TRANCHE_CONTROL_KINDS_H
#define TRANCHE_CONTROL_KINDS_H

#include "kube/path.h"

#define CONTROL_GROUP   "tranche.dev"
#define CONTROL_VERSION "v1alpha1"

extern const struct kube_kind KIND_GPU_SERVICE, KIND_PERF_PROFILE, KIND_GPU_POOL,
    KIND_PARTITION_PLAN, KIND_TRANSITION, KIND_NODE_GPU_STATE;
extern const struct kube_kind KIND_SERVICE, KIND_ENDPOINT_SLICE, KIND_HTTP_ROUTE,
    KIND_RESOURCE_CLAIM, KIND_RESOURCE_SLICE, KIND_DEFINITION;

/* What the log says while the server does not know our kinds, and how often at most. */
#define MISSING_DEFINITIONS "the cluster lacks our definitions: install those of deploy/crds"
#define MISSING_AGAIN_NS    INT64_C(60000000000)

/* NVIDIA's DRA driver, and the label by which mig-manager is told what to make. */
#define DRA_DRIVER       "gpu.nvidia.com"
#define LABEL_MIG_CONFIG "nvidia.com/mig.config"

/* Field managers of server-side apply. */
#define MANAGER_CONTROLLER "tranche-controller"
#define MANAGER_STATUS     "tranche-controller-status"
#define MANAGER_AGENT      "tranche-agent"

/* Labels (selectable) of pods, claims, Services and EndpointSlices. */
#define LABEL_MANAGED_BY "app.kubernetes.io/managed-by" /* "tranche" */
#define LABEL_POOL       "tranche.dev/pool"
#define LABEL_SERVICE    "tranche.dev/service" /* name of the GpuService */
#define LABEL_CLASS      "tranche.dev/class"   /* instances of equal capacity, see routing.h */
/* Annotations of pods (and claims): the instance they are for. */
#define NOTE_GPU            "tranche.dev/gpu-uuid"
#define NOTE_SLICE          "tranche.dev/slice"
#define NOTE_START          "tranche.dev/start"
#define NOTE_BATCH          "tranche.dev/batch"
#define NOTE_PROCS          "tranche.dev/procs"
#define NOTE_MAX_WAIT_MS    "tranche.dev/max-wait-ms"
#define NOTE_RATE_RPS       "tranche.dev/rate-rps"
#define NOTE_TEMPLATE       "tranche.dev/template-hash" /* of the pod template it was made from */
#define NOTE_TRANSITION     "tranche.dev/transition"
#define NOTE_DRAINING_SINCE "tranche.dev/draining-since" /* RFC 3339; out of the endpoints */
#define NOTE_HASH           "tranche.dev/hash"           /* of what we want, for ensure */
#define NOTE_EPOCH          "tranche.dev/epoch"
#define FINALIZER           "tranche.dev/finalizer"

#endif
