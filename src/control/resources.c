/* SPDX-License-Identifier: Apache-2.0
 *
 * Custom resources into structs and back. The tables (resource_fields_*.c) do the fields;
 * here is what concerns several of them.
 */
#include "control/resources.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "control/kinds.h"
#include "control/schema.h"

void object_meta_read(const json_t *object, struct object_meta *ret_meta)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *finalizers = json_object_get(metadata, "finalizers");
    bool has_finalizer = false;

    assert(ret_meta);
    for (size_t i = 0; i < json_array_size(finalizers); i++) {
        const char *finalizer = json_string_value(json_array_get(finalizers, i));
        has_finalizer |= finalizer && strcmp(finalizer, FINALIZER) == 0;
    }
    *ret_meta = (struct object_meta){
        .namespace = json_text(metadata, "namespace"),
        .name = json_text(metadata, "name"),
        .uid = json_text(metadata, "uid"),
        .resource_version = json_text(metadata, "resourceVersion"),
        .generation = json_integer_value(json_object_get(metadata, "generation")),
        .deleting = json_is_string(json_object_get(metadata, "deletionTimestamp")),
        .has_finalizer = has_finalizer,
        .json = object,
    };
}

struct node_gpu *node_gpu_find(const struct node_gpu *gpus, size_t count, const char *uuid)
{
    assert(uuid);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(gpus[i].uuid, uuid))
            return (struct node_gpu *)&gpus[i];
    return NULL;
}

struct node_instance *node_instance_find(const struct node_gpu *gpu, int profile, int start)
{
    assert(gpu);
    for (size_t i = 0; i < gpu->instances.count; i++)
        if (gpu->instances.data[i].profile == profile && gpu->instances.data[i].start == start)
            return &gpu->instances.data[i];
    return NULL;
}

static int wrong_service(const struct gpu_service *service, const char *text, struct error *err)
{
    return error_set(err, E_INPUT, "GpuService %s/%s: spec.%s", service->meta.namespace,
                     service->meta.name, text);
}

int gpu_service_read(const json_t *object, struct arena *arena, struct gpu_service *ret,
                     struct error *err)
{
    *ret = (struct gpu_service){0};
    object_meta_read(object, &ret->meta);
    int rc = schema_read(SCHEMA_KINDS[SCHEMA_GPU_SERVICE], object, arena, ret, err);
    if (rc < 0)
        return rc;
    bool training = ret->task == TASK_TRAINING;
    if (training && !(isnan(ret->latency_ms) && isnan(ret->max_wait_ms)))
        return wrong_service(ret,
                             "latencyMs and maxWaitMs: a training service has no latency "
                             "objective, expected them to be left out",
                             err);
    if (!training && isnan(ret->latency_ms))
        return wrong_service(ret,
                             "latencyMs: is missing, expected the objective in milliseconds "
                             "(or task: training)",
                             err);
    if (isnan(ret->max_wait_ms))
        ret->max_wait_ms = ret->latency_ms / 4;
    ret->pod_template = json_object_get(json_object_get(object, "spec"), "podTemplate");
    const json_t *containers =
        json_object_get(json_object_get(ret->pod_template, "spec"), "containers");
    if (json_array_size(containers) == 0)
        return wrong_service(ret, "podTemplate.spec.containers: expected at least one", err);
    return 0;
}

int perf_profile_read(const json_t *object, struct arena *arena, struct perf_profile *ret,
                      struct error *err)
{
    *ret = (struct perf_profile){0};
    object_meta_read(object, &ret->meta);
    int rc = schema_read(SCHEMA_KINDS[SCHEMA_PERF_PROFILE], object, arena, ret, err);
    for (size_t i = 0; rc == 0 && i < ret->rows.count; i++) {
        struct measurement *row = &ret->rows.data[i];
        row->model = ret->model;
        row->board = ret->board;
        if (row->status == STATUS_OK && !(row->throughput_rps > 0))
            rc =
                error_set(err, E_INPUT,
                          "PerfProfile %s: spec.entries[%zu].throughputRps: found %g, expected "
                          "a number above 0 where the status is ok",
                          ret->meta.name, i, row->throughput_rps);
    }
    return rc;
}

int gpu_pool_read(const json_t *object, struct arena *arena, struct gpu_pool *ret,
                  struct error *err)
{
    *ret = (struct gpu_pool){0};
    object_meta_read(object, &ret->meta);
    return schema_read(SCHEMA_KINDS[SCHEMA_GPU_POOL], object, arena, ret, err);
}

int partition_plan_read(const json_t *object, struct arena *arena, struct partition_plan *ret,
                        struct error *err)
{
    *ret = (struct partition_plan){0};
    object_meta_read(object, &ret->meta);
    int rc = schema_read(SCHEMA_KINDS[SCHEMA_PARTITION_PLAN], object, arena, ret, err);
    if (rc == 0 && ret->part >= ret->parts)
        return error_set(err, E_INPUT,
                         "PartitionPlan %s: spec.part: found %d of %d, expected "
                         "less",
                         ret->meta.name, ret->part, ret->parts);
    return rc;
}

int node_gpu_state_read(const json_t *object, struct arena *arena, struct node_gpu_state *ret,
                        struct error *err)
{
    *ret = (struct node_gpu_state){0};
    object_meta_read(object, &ret->meta);
    ret->generation = ret->meta.generation;
    ret->synced = condition_is_true(object, "Synced");
    ret->driver_conflict = condition_is_true(object, "DriverConflict");
    return schema_read(SCHEMA_KINDS[SCHEMA_NODE_GPU_STATE], object, arena, ret, err);
}

static json_t *whole_object(const struct kube_kind *kind, const char *name, json_t *spec)
{
    json_t *metadata = json_object(), *object = json_object();
    char *version = kube_api_version(kind);

    json_object_set_new(metadata, "name", json_string(name));
    json_object_set_new(object, "apiVersion", json_string(version));
    json_object_set_new(object, "kind", json_string(kind->kind));
    json_object_set_new(object, "metadata", metadata);
    json_object_set_new(object, "spec", spec);
    free(version);
    return object;
}

json_t *partition_plan_to_json(const struct partition_plan *plan)
{
    const struct schema_kind *schema = SCHEMA_KINDS[SCHEMA_PARTITION_PLAN];

    assert(plan->meta.name && plan->parts > plan->part);
    return whole_object(schema->kind, plan->meta.name, schema_write(&schema->spec, plan));
}

json_t *perf_profile_to_json(const struct perf_profile *profile)
{
    const struct schema_kind *schema = SCHEMA_KINDS[SCHEMA_PERF_PROFILE];

    assert(profile->meta.name && profile->board);
    return whole_object(schema->kind, profile->meta.name, schema_write(&schema->spec, profile));
}

json_t *node_desired_to_json(const struct node_gpu *gpus, size_t count)
{
    const struct schema_kind *schema = SCHEMA_KINDS[SCHEMA_NODE_GPU_STATE];

    return schema_write_items(schema_field(&schema->spec, "gpus"), gpus, count);
}

json_t *node_found_to_json(const struct node_gpu *gpus, size_t count)
{
    const struct schema_kind *schema = SCHEMA_KINDS[SCHEMA_NODE_GPU_STATE];

    return schema_write_items(schema_field(&schema->status, "gpus"), gpus, count);
}
