/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: events. The machine keeps the last SIM_EVENTS_MAX of them with their numbers; a set
 * remembers the number up to which it has seen. Waiting looks at the machine every 10 ms and
 * holds no lock between, so that one process can wait for what another does.
 */
#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "sim/api.h"
#include "sim/call.h"

enum { SETS_MAX = 64, POLL_MS = 10 };

#define EVENT_TYPES (nvmlEventTypeXidCriticalError | nvmlEventMigConfigChange)

struct event_set {
    bool used;
    uint64_t seen; /* sequence of the last event looked at */
    unsigned long long types[SIM_GPUS_MAX];
};

static struct event_set sets[SETS_MAX]; /* guarded by sim_tables_lock() */

/* The set behind a caller's pointer, or NULL. With the tables locked. */
static struct event_set *find_set(nvmlEventSet_t handle)
{
    uintptr_t place = (uintptr_t)handle - (uintptr_t)sets;
    if (place >= sizeof sets || place % sizeof sets[0] != 0)
        return NULL;
    struct event_set *set = &sets[place / sizeof sets[0]];
    return set->used ? set : NULL;
}

static nvmlReturn_t create_set(const struct sim_machine *machine, nvmlEventSet_t *ret_set)
{
    if (!ret_set)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t status = NVML_ERROR_MEMORY;
    sim_tables_lock();
    for (int i = 0; i < SETS_MAX && status != NVML_SUCCESS; i++) {
        if (sets[i].used)
            continue;
        sets[i] = (struct event_set){.used = true, .seen = machine->event_count};
        *ret_set = (nvmlEventSet_t)(void *)&sets[i];
        status = NVML_SUCCESS;
    }
    sim_tables_unlock();
    return status;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    return NVML_CALL(NONE, NULL, create_set(call.machine, set));
}

static nvmlReturn_t free_set(nvmlEventSet_t handle)
{
    sim_tables_lock();
    struct event_set *set = find_set(handle);
    if (set)
        set->used = false;
    sim_tables_unlock();
    return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    return NVML_CALL(STATELESS, NULL, free_set(set));
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device,
                                              unsigned long long *eventTypes)
{
    return NVML_CALL(READING, device, NVML_SET(eventTypes, EVENT_TYPES));
}

static nvmlReturn_t register_events(const struct sim_call *call, unsigned long long types,
                                    nvmlEventSet_t handle)
{
    if (types & ~EVENT_TYPES)
        return NVML_ERROR_NOT_SUPPORTED;
    sim_tables_lock();
    struct event_set *set = find_set(handle);
    if (set)
        set->types[call->gpu_index] |= types;
    sim_tables_unlock();
    return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long eventTypes,
                                      nvmlEventSet_t set)
{
    return NVML_CALL(PARENT, device, register_events(&call, eventTypes, set));
}

/* The next event that the set asked for, or TIMEOUT when there is none yet. */
static nvmlReturn_t next_event(const struct sim_machine *machine, nvmlEventSet_t handle,
                               nvmlEventData_t *data)
{
    nvmlReturn_t status = NVML_ERROR_TIMEOUT;
    sim_tables_lock();
    struct event_set *set = find_set(handle);
    if (!set)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (set && machine->event_count > set->seen + SIM_EVENTS_MAX)
        set->seen = machine->event_count - SIM_EVENTS_MAX; /* the older ones are gone */
    while (set && status == NVML_ERROR_TIMEOUT && set->seen < machine->event_count) {
        const struct sim_event *event = &machine->events[set->seen++ % SIM_EVENTS_MAX];
        if (event->gpu >= machine->gpu_count || !(set->types[event->gpu] & event->type))
            continue;
        *data = (nvmlEventData_t){.device = sim_device_handle(machine, event->gpu),
                                  .eventType = event->type,
                                  .eventData = event->data,
                                  .gpuInstanceId = event->gi,
                                  .computeInstanceId = event->ci};
        status = NVML_SUCCESS;
    }
    sim_tables_unlock();
    return status;
}

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* One look at the machine is one call of `name` to the fault plan: the first only counts. */
static nvmlReturn_t wait_event(const char *name, nvmlEventSet_t set, nvmlEventData_t *data,
                               unsigned timeout_ms)
{
    int64_t deadline_ms = monotonic_ms() + timeout_ms;
    for (bool first = true;; first = false) {
        struct sim_call call = {.name = name, .flags = CALL_NONE, .repeated = !first};
        nvmlReturn_t status = sim_call_begin(&call);
        if (status == NVML_SUCCESS)
            status = data ? next_event(call.machine, set, data) : NVML_ERROR_INVALID_ARGUMENT;
        status = sim_call_end(&call, status);
        if (status != NVML_ERROR_TIMEOUT || monotonic_ms() >= deadline_ms)
            return status;
        struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
        nanosleep(&pause, NULL);
    }
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data,
                                 unsigned int timeout_ms)
{
    return wait_event(__func__, set, data, timeout_ms);
}

/* The first version's struct ends before the instance ids, so they are not written. */
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data,
                              unsigned int timeout_ms)
{
    nvmlEventData_t full = {0};
    nvmlReturn_t status = wait_event(__func__, set, data ? &full : NULL, timeout_ms);
    if (status != NVML_SUCCESS || !data)
        return status;
    data->device = full.device;
    data->eventType = full.eventType;
    data->eventData = full.eventData;
    return status;
}
