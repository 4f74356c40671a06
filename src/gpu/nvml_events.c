/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: critical errors of GPUs (Xid), by an event set that is looked into and never waited on.
 * It begins to listen at the first look: what was before is not told. Events are registered on
 * whole GPUs; one of an instance is told of its GPU.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "gpu/nvml_library.h"

enum { EVENTS_MOST = 64 }; /* of one look: the rest is the next one's */

static bool has_events(const struct nvml *nvml)
{
    return nvml->call.nvmlEventSetCreate && nvml->call.nvmlDeviceRegisterEvents &&
           nvml->call.nvmlEventSetWait_v2 && nvml->call.nvmlEventSetFree;
}

/* A GPU that cannot tell, or is lost, is in no other's way. */
static void listen(struct nvml *nvml)
{
    unsigned count = 0;
    nvmlDevice_t device;

    if (nvml->call.nvmlDeviceGetCount_v2(&count))
        return;
    for (unsigned i = 0; i < count; i++)
        if (!nvml->call.nvmlDeviceGetHandleByIndex_v2(i, &device))
            (void)nvml->call.nvmlDeviceRegisterEvents(device, nvmlEventTypeXidCriticalError,
                                                      nvml->events);
}

static void add(const struct nvml *nvml, const nvmlEventData_t *event,
                struct gpu_xid_list *xids)
{
    struct gpu_xid xid = {.number = event->eventData};

    if (!(event->eventType & nvmlEventTypeXidCriticalError) ||
        nvml->call.nvmlDeviceGetUUID(event->device, xid.uuid, sizeof xid.uuid))
        return;
    vec_add(&xids->items, xid);
}

int nvml_take_xids(void *self, struct gpu_xid_list *xids, struct error *err)
{
    struct nvml *nvml = self;
    nvmlReturn_t result = NVML_SUCCESS;

    assert(nvml->initialised);
    if (!has_events(nvml))
        return error_set(err, E_UNSUPPORTED, "the driver's library has no events");
    if (!nvml->events) {
        result = nvml->call.nvmlEventSetCreate(&nvml->events);
        if (result)
            return nvml_fail(nvml, result, "nvmlEventSetCreate", NULL, err);
        listen(nvml);
    }
    for (int i = 0; i < EVENTS_MOST && !result; i++) {
        nvmlEventData_t event = {0};
        result = nvml->call.nvmlEventSetWait_v2(nvml->events, &event, 0);
        if (!result)
            add(nvml, &event, xids);
    }
    return !result || result == NVML_ERROR_TIMEOUT
               ? 0
               : nvml_fail(nvml, result, "nvmlEventSetWait_v2", NULL, err);
}
