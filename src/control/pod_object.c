/* SPDX-License-Identifier: Apache-2.0 */
#include "control/pod_object.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "control/kinds.h"
#include "control/object.h"
#include "control/planning.h"

void pod_object_name(const char *service, const char *transition, const char *action,
                     char ret_name[64])
{
    CLEANUP(str_done) struct str key = STR_EMPTY;
    char hash[11];

    assert(*service && *transition && *action);
    str_addf(&key, "%s\n%s\n%s", service, transition, action);
    text_hash(key.bytes, 10, hash);
    snprintf(ret_name, 64, "%.52s-%s", service, hash);
}

static json_t *number_text(double value)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    if (isfinite(value))
        str_add_number(&text, value);
    return json_string(text.bytes);
}

static json_t *int_text(int value)
{
    return number_text(value);
}

static void add_labels(json_t *metadata, const struct pod_request *request)
{
    json_t *labels = json_child(metadata, "labels");

    json_object_set_new(labels, LABEL_MANAGED_BY, json_string("tranche"));
    json_object_set_new(labels, LABEL_POOL, json_string(request->pool));
    json_object_set_new(labels, LABEL_SERVICE, json_string(request->service->meta.name));
}

static void add_notes(json_t *metadata, const struct pod_request *request)
{
    json_t *notes = json_child(metadata, "annotations");
    const struct world_gpu *gpu = request->gpu;
    char template[TEMPLATE_HASH_SIZE];
    CLEANUP(free_ptr) char *epoch = xasprintf("%lld", request->epoch);

    planning_template_hash(request->service, template);
    json_object_set_new(notes, NOTE_GPU, json_string(gpu->uuid));
    json_object_set_new(notes, NOTE_SLICE,
                        json_string(gpu->board->profiles[request->profile].name));
    json_object_set_new(notes, NOTE_START, int_text(request->start));
    json_object_set_new(notes, NOTE_BATCH, int_text(request->batch));
    json_object_set_new(notes, NOTE_PROCS, int_text(request->procs));
    json_object_set_new(notes, NOTE_MAX_WAIT_MS, number_text(request->max_wait_ms));
    json_object_set_new(notes, NOTE_RATE_RPS, number_text(request->rate_rps));
    json_object_set_new(notes, NOTE_TEMPLATE, json_string(template));
    json_object_set_new(notes, NOTE_TRANSITION, json_string(request->transition));
    json_object_set_new(notes, NOTE_EPOCH, json_string(epoch));
    json_object_set_new(
        notes, NOTE_HASH,
        json_string(strrchr(json_string_value(json_object_get(metadata, "name")), '-') + 1));
}

static void set_env(json_t *list, const char *name, json_t *value)
{
    size_t index;
    json_t *entry;

    json_array_foreach(list, index, entry)
    {
        const char *there = json_string_value(json_object_get(entry, "name"));
        if (there && strcmp(there, name) == 0) {
            json_decref(value);
            return;
        }
    }
    json_array_append_new(list, json_pack("{s:s, s:o}", "name", name, "value", value));
}

static void add_environment(json_t *spec, const struct pod_request *request)
{
    const struct gpu_service *service = request->service;
    json_t *container = json_array_get(json_object_get(spec, "containers"), 0);

    if (!container)
        return; /* the server refuses the pod and says so */
    if (!json_is_array(json_object_get(container, "env")))
        json_object_set_new(container, "env", json_array());
    json_t *env = json_object_get(container, "env");
    set_env(env, "TRANCHE_SERVICE", json_string(service->meta.name));
    set_env(env, "TRANCHE_MODEL", json_string(service->model));
    set_env(env, "TRANCHE_SLICE",
            json_string(request->gpu->board->profiles[request->profile].name));
    set_env(env, "TRANCHE_BATCH", int_text(request->batch));
    set_env(env, "TRANCHE_PROCS", int_text(request->procs));
    set_env(env, "TRANCHE_MAX_WAIT_MS", number_text(request->max_wait_ms));
    set_env(env, "TRANCHE_PORT", int_text(service->port));
}

json_t *pod_object_make(const struct pod_request *request)
{
    const struct gpu_service *service = request->service;
    const json_t *template_spec = json_object_get(service->pod_template, "spec"),
                 *template_meta = json_object_get(service->pod_template, "metadata");
    json_t *metadata = json_object(), *spec = json_is_object(template_spec)
                                                  ? json_deep_copy(template_spec)
                                                  : json_object();
    static const char *const kept[] = {"labels", "annotations"};
    char name[64];

    pod_object_name(service->meta.name, request->transition, request->action, name);
    json_object_set_new(metadata, "name", json_string(name));
    json_object_set_new(metadata, "namespace", json_string(service->meta.namespace));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (json_is_object(json_object_get(template_meta, kept[i])))
            json_object_set_new(metadata, kept[i],
                                json_deep_copy(json_object_get(template_meta, kept[i])));
    add_labels(metadata, request);
    add_notes(metadata, request);
    json_object_set_new(metadata, "ownerReferences",
                        json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion",
                                  CONTROL_GROUP "/" CONTROL_VERSION, "kind", "GpuService",
                                  "name", service->meta.name, "uid", service->meta.uid,
                                  "controller", true));
    add_environment(spec, request);
    return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "Pod", "metadata",
                     metadata, "spec", spec);
}

void pod_drain(const struct world *world, const struct world_pod *pod, struct effects *effects)
{
    CLEANUP(free_ptr) char *epoch = xasprintf("%lld", world->sources.epoch);
    char now[21];

    if (pod->meta.deleting || pod->draining_since_s > 0 || !world->sources.fresh)
        return;
    clock_utc_text(world->sources.now_s, now);
    struct effect *effect =
        effect_patch(effects, &KUBE_POD, pod->meta.json,
                     json_pack("{s:{s:{s:s, s:s}}}", "metadata", "annotations",
                               NOTE_DRAINING_SINCE, now, NOTE_EPOCH, epoch),
                     true);
    effect->destructive = true;
    effect->reason = "drain";
}

void pod_stop(const struct world *world, const struct world_pod *pod, struct effects *effects)
{
    if (pod->meta.deleting || !world->sources.fresh)
        return;
    struct effect *effect = effect_delete(effects, &KUBE_POD, pod->meta.json, false);
    effect->destructive = true;
    effect->reason = "stop";
}
