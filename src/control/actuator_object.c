/* SPDX-License-Identifier: Apache-2.0
 *
 * What actuators and the node agent read out of objects and put into pods; see
 * actuator_internal.h.
 */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "control/actuator_internal.h"

/* --- names --- */

void resource_name(const char *prefix, const struct mig_profile *profile, char ret_name[64])
{
    snprintf(ret_name, 64, "%s%s", prefix, profile->name);
    for (char *at = ret_name + strlen(prefix); *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '.' && *at != '-')
            *at = '.';
}

/* --- devices of a ResourceSlice --- */

const char *device_attribute(const json_t *device, const char *name)
{
    const json_t *attributes = json_object_get(device, "attributes");
    const json_t *value = json_object_get(attributes, name);

    if (!value) {
        char qualified[128];
        snprintf(qualified, sizeof qualified, DRA_DRIVER "/%s", name);
        value = json_object_get(attributes, qualified);
    }
    const char *text = json_text(value, "string");
    return *text ? text : json_text(value, "version");
}

bool device_is_partition(const json_t *device)
{
    return !strcmp(device_attribute(device, "type"), "mig") ||
           *device_attribute(device, "profile");
}

bool slice_offers_partitions(const json_t *slice)
{
    const json_t *spec = json_object_get(slice, "spec"), *device;
    size_t i;

    if (strcmp(json_text(spec, "driver"), DRA_DRIVER) != 0)
        return false;
    json_array_foreach(json_object_get(spec, "devices"), i, device)
    {
        if (strstr(json_text(device, "name"), "-mig-") &&
            json_array_size(json_object_get(device, "consumesCounters")) > 0)
            return true;
    }
    return false;
}

/* --- pods --- */

void pod_pin(json_t *pod, const char *node)
{
    json_t *affinity = json_child(json_child(pod, "spec"), "affinity");
    json_t *required = json_child(json_child(affinity, "nodeAffinity"),
                                  "requiredDuringSchedulingIgnoredDuringExecution");
    json_t *terms = json_child_list(required, "nodeSelectorTerms"), *term;
    size_t i;

    assert(*node);
    /* Terms are alternatives: each gets the node as a further demand. */
    if (!json_array_size(terms))
        json_array_append_new(terms, json_object());
    json_array_foreach(terms, i, term)
    {
        if (!json_is_object(term))
            continue;
        json_array_append_new(json_child_list(term, "matchFields"),
                              json_pack("{s:s, s:s, s:[s]}", "key", "metadata.name", "operator",
                                        "In", "values", node));
    }
}

void pod_set_variable(json_t *pod, const char *name, const char *value)
{
    json_t *containers = json_child_list(json_child(pod, "spec"), "containers"), *container;
    size_t i, j;

    json_array_foreach(containers, i, container)
    {
        if (!json_is_object(container))
            continue;
        json_t *variables = json_child_list(container, "env"), *variable;
        json_t *entry = json_pack("{s:s, s:s}", "name", name, "value", value);
        bool found = false;
        json_array_foreach(variables, j, variable)
        {
            if (strcmp(json_text(variable, "name"), name) != 0)
                continue;
            json_array_set(variables, j, entry);
            found = true;
        }
        if (!found)
            json_array_append(variables, entry);
        json_decref(entry);
    }
}

void pod_add_resource(json_t *pod, const char *name)
{
    json_t *containers = json_child_list(json_child(pod, "spec"), "containers");
    json_t *first = json_array_get(containers, 0);

    if (!json_is_object(first))
        return;
    json_t *resources = json_child(first, "resources");
    /* Of extended resources requests and limits must be the same. */
    json_object_set_new(json_child(resources, "limits"), name, json_string("1"));
    json_object_set_new(json_child(resources, "requests"), name, json_string("1"));
}
