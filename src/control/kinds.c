/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds as constants.
 */
#include "control/kinds.h"

#define OWN(plural, kind, namespaced)                                                          \
    {                                                                                          \
        CONTROL_GROUP, CONTROL_VERSION, plural, kind, namespaced                               \
    }

const struct kube_kind KIND_GPU_SERVICE = OWN("gpuservices", "GpuService", true);
const struct kube_kind KIND_PERF_PROFILE = OWN("perfprofiles", "PerfProfile", false);
const struct kube_kind KIND_GPU_POOL = OWN("gpupools", "GpuPool", false);
const struct kube_kind KIND_PARTITION_PLAN = OWN("partitionplans", "PartitionPlan", false);
const struct kube_kind KIND_TRANSITION = OWN("transitions", "Transition", false);
const struct kube_kind KIND_NODE_GPU_STATE = OWN("nodegpustates", "NodeGpuState", false);

const struct kube_kind KIND_SERVICE = {"", "v1", "services", "Service", true};
const struct kube_kind KIND_ENDPOINT_SLICE = {"discovery.k8s.io", "v1", "endpointslices",
                                              "EndpointSlice", true};
const struct kube_kind KIND_HTTP_ROUTE = {"gateway.networking.k8s.io", "v1", "httproutes",
                                          "HTTPRoute", true};
const struct kube_kind KIND_RESOURCE_CLAIM = {"resource.k8s.io", "v1", "resourceclaims",
                                              "ResourceClaim", true};
const struct kube_kind KIND_RESOURCE_SLICE = {"resource.k8s.io", "v1", "resourceslices",
                                              "ResourceSlice", false};
const struct kube_kind KIND_DEFINITION = {"apiextensions.k8s.io", "v1",
                                          "customresourcedefinitions",
                                          "CustomResourceDefinition", false};
