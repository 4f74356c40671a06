/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions of an object's status, in the form of metav1.Condition.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "control/resources.h"

json_t *condition_find(const json_t *conditions, const char *type)
{
    for (size_t i = 0; i < json_array_size(conditions); i++)
        if (strcmp(json_text(json_array_get(conditions, i), "type"), type) == 0)
            return json_array_get(conditions, i);
    return NULL;
}

const json_t *object_condition(const json_t *object, const char *type)
{
    return condition_find(json_object_get(json_object_get(object, "status"), "conditions"),
                          type);
}

bool condition_is_true(const json_t *object, const char *type)
{
    return strcmp(json_text(object_condition(object, type), "status"), "True") == 0;
}

static json_t *make(const struct condition *condition, const char *since)
{
    json_t *made = json_object();

    json_object_set_new(made, "type", json_string(condition->type));
    json_object_set_new(made, "status", json_string(condition->is_true ? "True" : "False"));
    json_object_set_new(made, "reason", json_string(condition->reason));
    json_object_set_new(made, "message", json_string(condition->message));
    if (condition->observed_generation > 0)
        json_object_set_new(made, "observedGeneration",
                            json_integer(condition->observed_generation));
    json_object_set_new(made, "lastTransitionTime", json_string(since));
    return made;
}

bool condition_set(json_t *conditions, const struct condition *condition, int64_t now_s)
{
    json_t *old = condition_find(conditions, condition->type);
    char since[21];

    assert(json_is_array(conditions) && *condition->type && *condition->reason);
    clock_utc_text(now_s, since);
    bool same_status =
        strcmp(json_text(old, "status"), condition->is_true ? "True" : "False") == 0;
    const char *kept = json_text(old, "lastTransitionTime");
    json_t *made = make(condition, same_status && *kept ? kept : since);
    if (!old) {
        json_array_append_new(conditions, made);
        return true;
    }
    bool changed = !json_equal(old, made);
    json_object_clear(old);
    json_object_update(old, made);
    json_decref(made);
    return changed;
}
