/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans as values and their writing as JSON; plan_read.c reads.
 */
#include "format/plan_document.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const char *const status_names[PLAN_STATUS_COUNT] = {"optimal", "feasible",
                                                            "infeasible"};

void plan_init(struct plan *plan)
{
    *plan = (struct plan){.algorithm = "",
                          .status = PLAN_FEASIBLE,
                          .bound_cost = NAN,
                          .bound_gpus = -1,
                          .bound_how = ""};
}

void plan_done(struct plan *plan)
{
    assert(plan);
    for (size_t i = 0; i < plan->gpus.count; i++)
        vec_done(&plan->gpus.data[i].instances);
    vec_done(&plan->gpus);
    vec_done(&plan->services);
    vec_done(&plan->infeasible);
    json_decref(plan->options);
    json_decref(plan->inputs);
    json_decref(plan->extra);
    arena_done(&plan->arena);
    plan_init(plan);
}

static json_t *number_or_null(double value)
{
    assert(isnan(value) || isfinite(value));
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *instance_to_json(const struct plan *plan, const struct plan_gpu *gpu,
                                const struct plan_instance *instance)
{
    assert(instance->service >= -1);
    assert(instance->profile >= 0 && instance->profile < gpu->board->profile_count);
    assert(instance->service < (int)plan->services.count);
    const char *service =
        instance->service < 0 ? NULL : plan->services.data[instance->service].name;
    json_t *object = json_object();
    json_object_set_new(object, "slice",
                        json_string(gpu->board->profiles[instance->profile].name));
    json_object_set_new(object, "start", json_integer(instance->start));
    json_object_set_new(object, "service", text_or_null(service));
    json_object_set_new(object, "batch", json_integer(instance->batch));
    json_object_set_new(object, "procs", json_integer(instance->procs));
    json_object_set_new(object, "max_wait_ms", number_or_null(instance->max_wait_ms));
    json_object_set_new(object, "rate_rps", json_real(instance->rate_rps));
    json_object_set_new(object, "latency_ms", number_or_null(instance->latency_ms));
    return object;
}

json_t *plan_gpus_to_json(const struct plan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->gpus.count; i++) {
        const struct plan_gpu *gpu = &plan->gpus.data[i];
        json_t *object = json_object();
        json_object_set_new(object, "id", json_string(gpu->id));
        json_object_set_new(object, "board", json_string(gpu->board->slug));
        if (gpu->node && *gpu->node)
            json_object_set_new(object, "node", json_string(gpu->node));
        json_t *instances = json_array();
        for (size_t j = 0; j < gpu->instances.count; j++)
            json_array_append_new(instances,
                                  instance_to_json(plan, gpu, &gpu->instances.data[j]));
        json_object_set_new(object, "instances", instances);
        json_array_append_new(list, object);
    }
    return list;
}

json_t *plan_services_to_json(const struct plan *plan)
{
    assert(plan);
    json_t *list = json_array();
    for (size_t i = 0; i < plan->services.count; i++) {
        const struct plan_service *service = &plan->services.data[i];
        json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "name", service->name,
                                              "required_rps", service->required_rps,
                                              "provided_rps", service->provided_rps));
    }
    return list;
}

static json_t *infeasible_to_json(const struct plan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->infeasible.count; i++) {
        const struct plan_infeasible *entry = &plan->infeasible.data[i];
        json_t *object = json_object();
        json_object_set_new(object, "service", json_string(entry->service));
        json_object_set_new(object, "reason", json_string(entry->reason));
        json_object_set_new(object, "nearest_latency_ms",
                            number_or_null(entry->nearest_latency_ms));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *bound_to_json(const struct plan *plan)
{
    assert(plan->bound_gpus >= -1 && plan->bound_how);
    if (isnan(plan->bound_cost))
        return json_null();
    json_t *bound = json_object();
    json_object_set_new(bound, "cost", json_real(plan->bound_cost));
    if (plan->bound_gpus >= 0)
        json_object_set_new(bound, "gpus", json_integer(plan->bound_gpus));
    json_object_set_new(bound, "how", json_string(plan->bound_how));
    return bound;
}

json_t *plan_to_json(const struct plan *plan)
{
    assert(plan->status < PLAN_STATUS_COUNT && plan->algorithm);
    assert(isfinite(plan->cost) && plan->gpus_used >= 0);
    json_t *root = json_object();
    json_object_set_new(root, "schema", json_string("tranche.plan/1"));
    json_object_set_new(root, "algorithm", json_string(plan->algorithm));
    json_object_set_new(root, "seed", json_integer((json_int_t)plan->seed));
    json_object_set_new(root, "status", json_string(status_names[plan->status]));
    json_object_set_new(root, "emulated", json_boolean(plan->emulated));
    json_object_set_new(root, "cost", json_real(plan->cost));
    json_object_set_new(root, "gpus_used", json_integer(plan->gpus_used));
    json_object_set_new(root, "bound", bound_to_json(plan));
    if (plan->stopped_by)
        json_object_set_new(root, "stopped_by", json_string(plan->stopped_by));
    if (plan->options)
        json_object_set(root, "options", plan->options);
    json_object_set_new(root, "gpus", plan_gpus_to_json(plan));
    json_object_set_new(root, "services", plan_services_to_json(plan));
    if (plan->status == PLAN_INFEASIBLE || plan->infeasible.count > 0)
        json_object_set_new(root, "infeasible", infeasible_to_json(plan));
    if (plan->inputs)
        json_object_set(root, "inputs", plan->inputs);
    const char *key;
    json_t *value;
    json_object_foreach(plan->extra, key, value) json_object_set(root, key, value);
    return root;
}

void plan_format(const struct plan *plan, struct str *text)
{
    assert(plan && text);
    json_t *root = plan_to_json(plan);
    json_write_pretty(root, text);
    json_decref(root);
}

void plan_gpu_layout(const struct plan_gpu *gpu, struct mig_layout *ret_layout)
{
    assert(gpu->instances.count <= MIG_INSTANCES_MAX);
    *ret_layout = (struct mig_layout){0};
    for (size_t i = 0; i < gpu->instances.count; i++)
        ret_layout->instances[ret_layout->count++] =
            (struct mig_instance){.profile = (int8_t)gpu->instances.data[i].profile,
                                  .start = (int8_t)gpu->instances.data[i].start};
    mig_layout_sort(ret_layout);
}

int plan_find_service(const struct plan *plan, const char *name)
{
    assert(plan && name);
    for (size_t i = 0; i < plan->services.count; i++)
        if (strcmp(plan->services.data[i].name, name) == 0)
            return (int)i;
    return -1;
}

int plan_find_gpu(const struct plan *plan, const char *id)
{
    assert(plan && id);
    for (size_t i = 0; i < plan->gpus.count; i++)
        if (strcmp(plan->gpus.data[i].id, id) == 0)
            return (int)i;
    return -1;
}
