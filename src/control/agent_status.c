/* SPDX-License-Identifier: Apache-2.0
 *
 * The node agent's words; see agent_status.h.
 */
#include "control/agent_status.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "control/actuator_internal.h"

#define HEARTBEAT "heartbeatAt"

/* status.message and status.gpus[].message hold 1,024 characters (resource_fields_made.c). */
enum { MESSAGE_SIZE = 1024 + 1 };

static const struct {
    const char *reason;
    bool stalled;
} refusals[AGENT_REFUSAL_COUNT] =
    {
        [AGENT_REFUSES_SPEC] = {"InvalidSpec", true},
        [AGENT_REFUSES_EPOCH] = {"StaleEpoch", false},
        [AGENT_REFUSES_OWNER] = {"DriverConflict", true},
},
  outcomes[AGENT_OUTCOME_COUNT] = {
      [AGENT_SYNCED] = {"AsOrdered", false},
      [AGENT_WAITING] = {"InUse", false},
      [AGENT_FAILED] = {"Failed", true},
      [AGENT_INVALID] = {"InvalidSpec", true},
      [AGENT_NO_DRIVER] = {"DriverUnavailable", true},
};

const char *agent_status_reason(const struct agent_view *view)
{
    if (view->refusal)
        return refusals[view->refusal].reason;
    if (!view->findings || (!view->followed && view->findings->outcome != AGENT_NO_DRIVER))
        return "Starting";
    return outcomes[view->findings->outcome].reason;
}

static bool is_stalled(const struct agent_view *view)
{
    if (view->refusal)
        return refusals[view->refusal].stalled;
    return view->findings && outcomes[view->findings->outcome].stalled;
}

/* The API server takes no longer text: what does not fit is left out, by whole characters. */
static void clip(const char *text, char ret[MESSAGE_SIZE])
{
    static const char mark[] = " …";
    size_t length = strlen(text);

    if (length < MESSAGE_SIZE) {
        snprintf(ret, MESSAGE_SIZE, "%s", text);
        return;
    }
    length = MESSAGE_SIZE - sizeof mark;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    snprintf(ret, MESSAGE_SIZE, "%.*s%s", (int)length, text, mark);
}

static const char *message_of(const struct agent_view *view, char ret[MESSAGE_SIZE])
{
    const char *text = view->refusal    ? view->why
                       : view->findings ? view->findings->message.bytes
                                        : "";

    clip(text, ret);
    return ret;
}

static void set_condition(json_t *conditions, const struct agent_view *view, const char *type,
                          bool is_true, const char *reason)
{
    char message[MESSAGE_SIZE];
    struct condition condition = {.type = type,
                                  .reason = reason,
                                  .message = is_true ? "" : message_of(view, message),
                                  .is_true = is_true,
                                  .observed_generation = view->generation};

    if (!strcmp(type, "Stalled") || !strcmp(type, CONDITION_DRIVER_CONFLICT))
        condition.message = is_true ? message_of(view, message) : "";
    condition_set(conditions, &condition, view->now_s);
}

static json_t *conditions_of(const struct agent_view *view)
{
    const json_t *status = json_object_get(view->object, "status");
    json_t *conditions = json_deep_copy(json_object_get(status, "conditions"));
    const char *reason = agent_status_reason(view);
    bool stalled = is_stalled(view);
    bool synced = !view->refusal && view->findings && view->findings->outcome == AGENT_SYNCED;
    bool conflict = view->refusal == AGENT_REFUSES_OWNER;

    if (!json_is_array(conditions)) {
        json_decref(conditions);
        conditions = json_array();
    }
    set_condition(conditions, view, CONDITION_SYNCED, synced, reason);
    set_condition(conditions, view, "Ready", synced, reason);
    set_condition(conditions, view, "Stalled", stalled, stalled ? reason : "NoTrouble");
    set_condition(conditions, view, CONDITION_DRIVER_CONFLICT, conflict,
                  conflict ? "OtherOwner" : "NoOtherOwner");
    return conditions;
}

json_t *agent_status_make(const struct agent_view *view)
{
    const struct agent_findings *findings = view->findings;
    const json_t *old = json_object_get(view->object, "status");
    json_t *status = json_object();
    char now[21], message[MESSAGE_SIZE];

    clock_utc_text(view->now_s, now);
    json_object_set_new(status, "observedGeneration", json_integer(view->generation));
    json_object_set_new(status, "observedEpoch", json_integer(view->epoch));
    json_object_set_new(status, HEARTBEAT, json_string(now));
    json_object_set_new(status, "agentVersion", json_string(view->agent_version));
    json_object_set_new(status, "message", json_string(message_of(view, message)));
    json_object_set_new(status, "conditions", conditions_of(view));
    if (findings && findings->outcome != AGENT_NO_DRIVER) {
        json_object_set_new(status, "driverVersion", json_string(findings->driver_version));
        json_object_set_new(status, "gpus",
                            node_found_to_json(findings->gpus, findings->count));
    } else {
        json_t *gpus = json_object_get(old, "gpus");
        json_object_set_new(status, "gpus", gpus ? json_deep_copy(gpus) : json_array());
        const char *version = json_text(old, "driverVersion");
        if (*version)
            json_object_set_new(status, "driverVersion", json_string(version));
    }
    return status;
}

bool agent_status_equal(const json_t *a, const json_t *b)
{
    CLEANUP(json_decref_ptr) json_t *x = json_copy((json_t *)(uintptr_t)a);
    CLEANUP(json_decref_ptr) json_t *y = json_copy((json_t *)(uintptr_t)b);

    if (!json_is_object(x) || !json_is_object(y))
        return !json_object_size(x) && !json_object_size(y);
    json_object_del(x, HEARTBEAT);
    json_object_del(y, HEARTBEAT);
    return json_equal(x, y);
}

/* --- extended resources --- */

/* Counts by name: {"tranche.dev/mig-1g.5gb": 2}. */
static json_t *count_resources(const struct agent_order *order,
                               const struct agent_findings *findings)
{
    json_t *counts = json_object();

    for (size_t i = 0; i < findings->count; i++) {
        const struct node_gpu *gpu = &findings->gpus[i];
        bool is_ordered = node_gpu_find(order->gpus, order->count, gpu->uuid);
        for (size_t j = 0; is_ordered && j < gpu->instances.count; j++) {
            char name[64];
            if (!gpu->instances.data[j].ready)
                continue;
            resource_name(RESOURCE_PREFIX,
                          &gpu->board->profiles[gpu->instances.data[j].profile], name);
            json_int_t count = json_integer_value(json_object_get(counts, name));
            json_object_set_new(counts, name, json_integer(count + 1));
        }
    }
    return counts;
}

/* Adds to a patch what makes `have` (of one field of the node's status) say the counts. */
static void patch_field(json_t *patch, const json_t *have, const json_t *counts)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)counts, name, value)
    {
        char text[24];
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        if (strcmp(json_text(have, name), text) != 0)
            json_object_set_new(patch, name, json_string(text));
    }
    json_object_foreach((json_t *)(uintptr_t)have, name, value)
    {
        if (text_starts_with(name, RESOURCE_PREFIX) && !json_object_get(counts, name))
            json_object_set_new(patch, name, json_null());
    }
}

json_t *agent_resources_patch(const json_t *node, const struct agent_order *order,
                              const struct agent_findings *findings)
{
    static const char *const fields[] = {"capacity", "allocatable"};
    const json_t *status = json_object_get(node, "status");
    CLEANUP(json_decref_ptr) json_t *counts = count_resources(order, findings);
    json_t *changes = json_object();

    assert(json_is_object(node));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        json_t *patch = json_object();
        patch_field(patch, json_object_get(status, fields[i]), counts);
        if (json_object_size(patch))
            json_object_set(changes, fields[i], patch);
        json_decref(patch);
    }
    if (json_object_size(changes))
        return json_pack("{s:o}", "status", changes);
    json_decref(changes);
    return NULL;
}
