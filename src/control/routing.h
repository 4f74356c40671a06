/* SPDX-License-Identifier: Apache-2.0
 *
 * Where requests go: for each GpuService a Service without selector and EndpointSlices of ours,
 * which list the pods that are ready and not draining.
 *
 *     always           Service NAME, EndpointSlices NAME-N
 *     with a gateway   for each class of pods of equal rate a Service NAME-CLASS with
 *     EndpointSlices NAME-CLASS-N of its own, and an HTTPRoute NAME that shares requests among
 *     the classes by the sums of their rates
 *
 * The route names a class once a slice is seen to list a pod of it, so that no request goes
 * where nobody is; pods of a class that it does not name are no capacity (world_pod.is_routed).
 *
 * Kubernetes shares the requests of a Service evenly among its pods. Where pods have different
 * rates and there is no gateway, only pods × the lowest rate can be used; status.c says so.
 *
 * A pod's slice follows from its name, so that one pod's coming and going rewrites one slice.
 */
#ifndef TRANCHE_CONTROL_ROUTING_H
#define TRANCHE_CONTROL_ROUTING_H

#include "control/world.h"

enum { ROUTING_CLASS_SIZE = 9 };

/* The class of pods that promise this rate: eight hexadecimal digits. */
void routing_class(double rate_rps, char ret_class[ROUTING_CLASS_SIZE]);
/* Whether requests of the service are shared by rates. */
bool routing_is_weighted(const struct world *world, const struct gpu_service *service);
/* Whether an HTTPRoute names a Service of its namespace as a backend. */
bool routing_names(const json_t *route, const char *backend);
/* The Service that a slice belongs to, "" none. */
const char *routing_slice_service(const json_t *slice);

#endif
