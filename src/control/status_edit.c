/* SPDX-License-Identifier: Apache-2.0 */
#include "control/status_edit.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "control/json_covers.h"
#include "control/kinds.h"
#include "control/resources.h"
#include "kube/api.h"

static bool is_status_patch(const struct effect *effect, const struct kube_kind *kind,
                            const json_t *object)
{
    const char *namespace = kube_metadata(object, "namespace");

    return effect->kind == EFFECT_PATCH && effect->object_kind == kind && effect->subresource &&
           strcmp(effect->subresource, "status") == 0 &&
           strcmp(effect->name, kube_metadata(object, "name")) == 0 &&
           strcmp(effect->namespace ? effect->namespace : "", namespace) == 0;
}

static json_t *earlier_body(const struct effects *effects, const struct kube_kind *kind,
                            const json_t *object)
{
    for (size_t i = 0; i < effects->items.count; i++)
        if (is_status_patch(&effects->items.data[i], kind, object))
            return effects->items.data[i].body;
    return NULL;
}

void status_edit_begin(struct status_edit *edit, struct effects *effects,
                       const struct kube_kind *kind, const json_t *object, int64_t now_s)
{
    const json_t *there = json_at(object, "status", "conditions", NULL);

    *edit = (struct status_edit){
        .effects = effects, .kind = kind, .object = object, .now_s = now_s};
    edit->body = earlier_body(effects, kind, object);
    edit->is_new = !edit->body;
    if (edit->is_new)
        edit->body = json_pack("{s:{s:o}}", "status", "conditions",
                               json_is_array(there) ? json_deep_copy(there) : json_array());
    edit->conditions = json_object_get(json_object_get(edit->body, "status"), "conditions");
    assert(json_is_array(edit->conditions));
}

void status_edit_set(struct status_edit *edit, const char *key, json_t *value)
{
    assert(value);
    json_object_set_new(json_object_get(edit->body, "status"), key, value);
}

void status_edit_condition(struct status_edit *edit, const char *type, bool is_true,
                           const char *reason, const char *message, ...)
{
    va_list arguments;
    CLEANUP(str_done) struct str text = STR_EMPTY;

    va_start(arguments, message);
    str_vaddf(&text, message, arguments);
    va_end(arguments);
    struct condition condition = {.type = type,
                                  .reason = reason,
                                  .message = text.bytes,
                                  .is_true = is_true,
                                  .observed_generation = json_integer_value(
                                      json_at(edit->object, "metadata", "generation", NULL))};
    (void)condition_set(edit->conditions, &condition, edit->now_s);
}

const json_t *status_edit_find(const struct status_edit *edit, const char *type)
{
    return condition_find(edit->conditions, type);
}

void status_edit_end(struct status_edit *edit)
{
    const json_t *generation = json_at(edit->object, "metadata", "generation", NULL);

    if (generation)
        status_edit_set(edit, "observedGeneration", json_incref((json_t *)generation));
    if (!edit->is_new)
        return;
    if (json_covers(edit->object, edit->body)) {
        json_decref(edit->body);
    } else {
        struct effect *effect =
            effect_patch(edit->effects, edit->kind, edit->object, edit->body, true);
        effect->subresource = "status";
        effect->manager = MANAGER_STATUS;
        effect->chain = edit->chain;
        effect->reason = "status";
    }
    edit->body = edit->conditions = NULL;
}
