/* SPDX-License-Identifier: Apache-2.0
 *
 * Effects as values: making, appending and freeing them.
 */
#include "control/effect.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/memory.h"
#include "control/kinds.h"
#include "kube/api.h"

void effects_init(struct effects *effects)
{
    *effects = (struct effects){.again_ns = INT64_MAX};
}

void effects_done(struct effects *effects)
{
    for (size_t i = 0; i < effects->items.count; i++) {
        struct effect *effect = &effects->items.data[i];
        free(effect->namespace);
        free(effect->name);
        json_decref(effect->body);
        free(effect->uid);
        free(effect->resource_version);
        free(effect->note);
    }
    vec_done(&effects->items);
    effects_init(effects);
}

static char *text_or_null(const char *text)
{
    return *text ? xstrdup(text) : NULL;
}

/* One about the object whose metadata are given. */
static struct effect *add(struct effects *effects, enum effect_kind what,
                          const struct kube_kind *kind, const json_t *object)
{
    struct effect *effect = vec_push(&effects->items);

    assert(kind && object && *kube_metadata(object, "name"));
    effect->kind = what;
    effect->object_kind = kind;
    effect->name = xstrdup(kube_metadata(object, "name"));
    if (kind->namespaced)
        effect->namespace = text_or_null(kube_metadata(object, "namespace"));
    effect->manager = MANAGER_CONTROLLER;
    effect->reason = "";
    return effect;
}

struct effect *effect_ensure(struct effects *effects, const struct kube_kind *kind,
                             json_t *body)
{
    struct effect *effect = add(effects, EFFECT_ENSURE, kind, body);

    effect->body = body;
    effect->reason = "ensure";
    return effect;
}

struct effect *effect_apply(struct effects *effects, const struct kube_kind *kind, json_t *body)
{
    struct effect *effect = add(effects, EFFECT_APPLY, kind, body);

    effect->body = body;
    effect->reason = "apply";
    return effect;
}

struct effect *effect_patch(struct effects *effects, const struct kube_kind *kind,
                            const json_t *object, json_t *patch, bool tied)
{
    struct effect *effect = add(effects, EFFECT_PATCH, kind, object);

    assert(json_is_object(patch));
    effect->body = patch;
    effect->reason = "patch";
    if (tied)
        effect->resource_version = text_or_null(kube_metadata(object, "resourceVersion"));
    return effect;
}

struct effect *effect_delete(struct effects *effects, const struct kube_kind *kind,
                             const json_t *object, bool tied)
{
    struct effect *effect = add(effects, EFFECT_DELETE, kind, object);

    effect->uid = text_or_null(kube_metadata(object, "uid"));
    effect->reason = "delete";
    if (tied)
        effect->resource_version = text_or_null(kube_metadata(object, "resourceVersion"));
    return effect;
}

void effect_event(struct effects *effects, const struct kube_kind *kind, const json_t *object,
                  bool warning, const char *reason, const char *note, ...)
{
    va_list arguments;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct effect *effect = add(effects, EFFECT_EVENT, kind, object);

    va_start(arguments, note);
    str_vaddf(&text, note, arguments);
    va_end(arguments);
    effect->body = json_incref((json_t *)object);
    effect->warning = warning;
    effect->reason = reason;
    effect->note = str_take(&text);
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

bool effect_depends(const struct effect *later, const struct effect *failed)
{
    assert(later->object_kind && failed->object_kind);
    if (later->chain && later->chain == failed->chain)
        return true;
    return later->object_kind == failed->object_kind && later->kind != EFFECT_EVENT &&
           same_text(later->name, failed->name) &&
           same_text(later->namespace, failed->namespace);
}

char *effect_key(const char *what, const struct kube_kind *kind, const char *namespace,
                 const char *name)
{
    return xasprintf("%s %s %s/%s", what, kind->kind, namespace ? namespace : "", name);
}

void effects_again_at(struct effects *effects, int64_t at_ns)
{
    if (at_ns < effects->again_ns)
        effects->again_ns = at_ns;
}
