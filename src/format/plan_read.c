/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading of the plan document (schema "tranche.plan/1"). Instances are checked against
 * their board and the listed services; with a list of faults, what only a verifier can
 * make sense of is noted there and reading goes on.
 */
#include "format/plan_document.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"

enum { GPUS_MAX = 4000000, BATCH_MAX = 1 << 20, PROCS_MAX = 1 << 10 };
static const double NUMBER_MAX = 1e300;

struct reader {
    struct plan *plan;
    struct plan_faults *faults; /* NULL: faults are errors */
    struct map services;        /* name → position = index */
    struct map ids;
};

static void reader_done(struct reader *reader)
{
    map_done(&reader->services);
    map_done(&reader->ids);
}

void plan_faults_done(struct plan_faults *faults)
{
    vec_done(&faults->texts);
    arena_done(&faults->arena);
}

/* An E_INPUT at the member, or a noted fault and 0. */
static int note_fault(struct reader *reader, const struct json_place *parent, const char *key,
                      const char *text, struct error *err)
{
    assert(parent && text);
    struct json_place place = {.file = parent->file, .parent = parent, .key = key};
    if (!reader->faults)
        return json_error_at(&place, err, "%s", text);
    struct error inner;
    json_error_at(&place, &inner, "%s", text);
    vec_add(&reader->faults->texts, arena_strdup(&reader->faults->arena, inner.text));
    return 0;
}

static const char *keep(struct reader *reader, const char *text)
{
    return text ? arena_strdup(&reader->plan->arena, text) : NULL;
}

static int read_whole(const struct json_place *place, const json_t *object, const char *key,
                      const long long range[2], int *ret, struct error *err)
{
    assert(range[0] <= range[1]);
    long long value = *ret;
    int rc = json_get_int(place, object, key, true, range[0], range[1], &value, err);
    if (rc == 0)
        *ret = (int)value;
    return rc;
}

/* Figures of an instance that serves; one that is only kept needs none. */
static int read_serving(const struct json_place *place, const json_t *object,
                        struct plan_instance *instance, struct error *err)
{
    assert(instance->service >= -1);
    instance->max_wait_ms = instance->latency_ms = NAN;
    int rc = json_get_number(place, object, "max_wait_ms", false, 0, NUMBER_MAX,
                             &instance->max_wait_ms, err);
    if (rc == 0)
        rc = json_get_number(place, object, "latency_ms", false, 0, NUMBER_MAX,
                             &instance->latency_ms, err);
    if (rc == 0)
        rc = json_get_number(place, object, "rate_rps", instance->service >= 0, 0, NUMBER_MAX,
                             &instance->rate_rps, err);
    if (rc < 0 || instance->service < 0)
        return rc;
    rc = read_whole(place, object, "batch", (const long long[]){1, BATCH_MAX}, &instance->batch,
                    err);
    return rc < 0 ? rc
                  : read_whole(place, object, "procs", (const long long[]){1, PROCS_MAX},
                               &instance->procs, err);
}

/* *ret_known is false when a fault was noted and the instance must be left out. */
static int read_service_name(struct reader *reader, const struct json_place *place,
                             const json_t *object, struct plan_instance *instance,
                             bool *ret_known, struct error *err)
{
    const char *name = NULL;
    instance->service = -1;
    int rc = json_get_text(place, object, "service", false, &name, err);
    if (rc < 0 || !name)
        return rc;
    instance->service = (int)map_find(&reader->services, name);
    if (instance->service >= 0)
        return 0;
    *ret_known = false;
    CLEANUP(free_ptr)
    char *text = xasprintf("service \"%s\" is not in the plan's list of services", name);
    return note_fault(reader, place, "service", text, err);
}

static int read_slice(struct reader *reader, const struct json_place *place,
                      const json_t *object, const struct mig_board *board,
                      struct plan_instance *instance, bool *ret_known, struct error *err)
{
    assert(board && instance);
    const char *slice = NULL;
    struct error inner;
    int rc = json_get_text(place, object, "slice", true, &slice, err);
    if (rc < 0)
        return rc;
    rc = read_whole(place, object, "start", (const long long[]){0, MIG_UNITS_MAX - 1},
                    &instance->start, err);
    if (rc < 0)
        return rc;
    if (mig_profile_get(board, slice, &instance->profile, &inner) < 0) {
        *ret_known = false;
        return note_fault(reader, place, "slice", inner.text, err);
    }
    if (board->profiles[instance->profile].starts >> instance->start & 1)
        return 0;
    CLEANUP(free_ptr)
    char *text = xasprintf("start %d is not one of %s's on %s", instance->start,
                           board->profiles[instance->profile].name, board->slug);
    return note_fault(reader, place, "start", text, err);
}

static int read_instance(struct reader *reader, const struct json_place *place,
                         const json_t *object, struct plan_gpu *gpu, struct error *err)
{
    assert(gpu->board && gpu->instances.count < MIG_INSTANCES_MAX);
    struct plan_instance instance = {0};
    bool known = true;
    if (!json_is_object(object))
        return json_error_at(place, err, "expected an object with slice, start and service");
    int rc = read_slice(reader, place, object, gpu->board, &instance, &known, err);
    if (rc == 0)
        rc = read_service_name(reader, place, object, &instance, &known, err);
    if (rc < 0 || !known)
        return rc;
    rc = read_serving(place, object, &instance, err);
    if (rc < 0)
        return rc;
    vec_add(&gpu->instances, instance);
    return 0;
}

static int compare_instances(const void *a, const void *b)
{
    const struct plan_instance *left = a, *right = b;
    if (left->start != right->start)
        return left->start - right->start;
    return left->profile - right->profile;
}

static int read_instances(struct reader *reader, const struct json_place *place,
                          const json_t *list, struct plan_gpu *gpu, struct error *err)
{
    int rc = 0;
    if (json_array_size(list) > MIG_INSTANCES_MAX)
        return json_error_at(place, err, "%zu instances, expected at most %d on a GPU",
                             json_array_size(list), (int)MIG_INSTANCES_MAX);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        struct json_place at = {.file = place->file, .parent = place, .index = i};
        rc = read_instance(reader, &at, json_array_get(list, i), gpu, err);
    }
    if (gpu->instances.count > 0)
        qsort(gpu->instances.data, gpu->instances.count, sizeof *gpu->instances.data,
              compare_instances);
    return rc;
}

static int read_gpu(struct reader *reader, const struct json_place *place, const json_t *object,
                    struct error *err)
{
    const char *id = NULL, *board = NULL, *node = "";
    const json_t *instances = NULL;
    struct error inner;
    if (!json_is_object(object))
        return json_error_at(place, err, "expected an object with id, board and instances");
    int rc = json_get_text(place, object, "id", true, &id, err);
    if (rc == 0)
        rc = json_get_text(place, object, "board", true, &board, err);
    if (rc == 0)
        rc = json_get_text(place, object, "node", false, &node, err);
    if (rc == 0)
        rc = json_get_list(place, object, "instances", true, &instances, err);
    if (rc < 0)
        return rc;
    struct json_place id_place = {.file = place->file, .parent = place, .key = "id"};
    struct json_place board_place = {.file = place->file, .parent = place, .key = "board"};
    struct json_place list_place = {.file = place->file, .parent = place, .key = "instances"};
    if (map_find(&reader->ids, id) >= 0)
        return json_error_at(&id_place, err, "\"%s\" is used twice, expected unique ids", id);
    map_put(&reader->ids, id, NULL);
    /* Into the plan before it is whole, so that plan_done() frees it whatever fails below. */
    struct plan_gpu *gpu = vec_push(&reader->plan->gpus);
    gpu->id = keep(reader, id);
    gpu->node = keep(reader, node);
    if (mig_board_get(board, &gpu->board, &inner) < 0)
        return json_error_at(&board_place, err, "%s", inner.text);
    return read_instances(reader, &list_place, instances, gpu, err);
}

static int read_service(struct reader *reader, const struct json_place *place,
                        const json_t *object, struct error *err)
{
    assert(reader->services.count == reader->plan->services.count);
    const char *name = NULL;
    struct plan_service service = {0};
    if (!json_is_object(object))
        return json_error_at(place, err, "expected an object with name and required_rps");
    int rc = json_get_text(place, object, "name", true, &name, err);
    if (rc == 0)
        rc = json_get_number(place, object, "required_rps", true, 0, NUMBER_MAX,
                             &service.required_rps, err);
    if (rc == 0)
        rc = json_get_number(place, object, "provided_rps", true, 0, NUMBER_MAX,
                             &service.provided_rps, err);
    if (rc < 0)
        return rc;
    if (map_find(&reader->services, name) >= 0)
        return json_error_at(place, err, "service \"%s\" is listed twice", name);
    map_put(&reader->services, name, NULL);
    service.name = keep(reader, name);
    vec_add(&reader->plan->services, service);
    return 0;
}

static int read_gpus_and_services(struct reader *reader, const struct json_place *place,
                                  const json_t *gpus, const json_t *services, struct error *err)
{
    int rc = 0;
    struct json_place gpus_place = {.file = place->file, .parent = place, .key = "gpus"};
    struct json_place services_place = {
        .file = place->file, .parent = place, .key = "services"};
    if (!json_is_array(services))
        return json_error_at(&services_place, err, "expected a list of services");
    if (!json_is_array(gpus) || json_array_size(gpus) > GPUS_MAX)
        return json_error_at(&gpus_place, err, "expected a list of at most %d GPUs", GPUS_MAX);
    /* Services first: instances name them, whatever the order in the document. */
    for (size_t i = 0; rc == 0 && i < json_array_size(services); i++) {
        struct json_place at = {.file = place->file, .parent = &services_place, .index = i};
        rc = read_service(reader, &at, json_array_get(services, i), err);
    }
    for (size_t i = 0; rc == 0 && i < json_array_size(gpus); i++) {
        struct json_place at = {.file = place->file, .parent = &gpus_place, .index = i};
        rc = read_gpu(reader, &at, json_array_get(gpus, i), err);
    }
    return rc;
}

/* Members that may be left out, but where they stand have a value of their type. */
static int refuse_null(const struct json_place *place, const json_t *object,
                       const char *const *keys, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct json_place at = {.file = place->file, .parent = place, .key = keys[i]};
        if (json_is_null(json_object_get(object, keys[i])))
            return json_error_at(&at, err, "found null, expected a value, or no such member");
    }
    return 0;
}

static int count_used(const struct plan *plan)
{
    assert(plan->gpus.count <= GPUS_MAX);
    int used = 0;
    for (size_t i = 0; i < plan->gpus.count; i++) {
        bool serves = false;
        for (size_t j = 0; j < plan->gpus.data[i].instances.count; j++)
            serves |= plan->gpus.data[i].instances.data[j].service >= 0;
        used += serves;
    }
    return used;
}

static int read_bound(struct reader *reader, const struct json_place *place, const json_t *root,
                      struct error *err)
{
    struct plan *plan = reader->plan;
    const json_t *bound = NULL;
    long long gpus = -1;
    int rc = json_get_object(place, root, "bound", false, &bound, err);
    if (rc < 0 || !bound)
        return rc;
    struct json_place at = {.file = place->file, .parent = place, .key = "bound"};
    rc = json_get_number(&at, bound, "cost", true, 0, NUMBER_MAX, &plan->bound_cost, err);
    if (rc == 0)
        rc = json_get_int(&at, bound, "gpus", false, 0, GPUS_MAX, &gpus, err);
    if (rc == 0)
        rc = json_get_text(&at, bound, "how", false, &plan->bound_how, err);
    plan->bound_gpus = (int)gpus;
    plan->bound_how = keep(reader, plan->bound_how);
    return rc;
}

static int read_infeasible(struct reader *reader, const struct json_place *place,
                           const json_t *root, struct error *err)
{
    const json_t *list = NULL;
    int rc = json_get_list(place, root, "infeasible", false, &list, err);
    struct json_place list_place = {.file = place->file, .parent = place, .key = "infeasible"};
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        struct json_place at = {.file = place->file, .parent = &list_place, .index = i};
        const json_t *object = json_array_get(list, i);
        struct plan_infeasible entry = {.nearest_latency_ms = NAN};
        if (!json_is_object(object))
            return json_error_at(&at, err, "expected an object with service and reason");
        rc = json_get_text(&at, object, "service", true, &entry.service, err);
        if (rc == 0)
            rc = json_get_text(&at, object, "reason", true, &entry.reason, err);
        if (rc == 0)
            rc = json_get_number(&at, object, "nearest_latency_ms", false, 0, NUMBER_MAX,
                                 &entry.nearest_latency_ms, err);
        entry.service = keep(reader, entry.service);
        entry.reason = keep(reader, entry.reason);
        vec_add(&reader->plan->infeasible, entry);
    }
    return rc;
}

static int read_status(struct reader *reader, const struct json_place *place,
                       const json_t *root, struct error *err)
{
    static const char *const names[PLAN_STATUS_COUNT] = {"optimal", "feasible", "infeasible"};
    const char *text = NULL;
    int rc = json_get_text(place, root, "status", true, &text, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < PLAN_STATUS_COUNT; i++) {
        if (strcmp(text, names[i]) == 0) {
            reader->plan->status = (enum plan_status)i;
            return 0;
        }
    }
    struct json_place at = {.file = place->file, .parent = place, .key = "status"};
    return json_error_at(&at, err, "\"%s\", expected optimal, feasible or infeasible", text);
}

static int read_figures(struct reader *reader, const struct json_place *place,
                        const json_t *root, struct error *err)
{
    struct plan *plan = reader->plan;
    static const char *const valued[] = {"algorithm", "seed",    "emulated",   "cost",
                                         "gpus_used", "options", "stopped_by", "inputs"};
    long long seed = 0, used = plan->gpus_used;
    int rc = refuse_null(place, root, valued, sizeof valued / sizeof *valued, err);
    if (rc == 0)
        rc = json_get_text(place, root, "algorithm", false, &plan->algorithm, err);
    plan->algorithm = keep(reader, plan->algorithm);
    if (rc == 0)
        rc = json_get_int(place, root, "seed", false, 0, INT64_MAX, &seed, err);
    if (rc == 0)
        rc = json_get_bool(place, root, "emulated", false, &plan->emulated, err);
    if (rc == 0)
        rc = json_get_number(place, root, "cost", false, 0, NUMBER_MAX, &plan->cost, err);
    if (rc == 0)
        rc = json_get_int(place, root, "gpus_used", false, 0, GPUS_MAX, &used, err);
    if (rc == 0)
        rc = json_get_text(place, root, "stopped_by", false, &plan->stopped_by, err);
    plan->stopped_by = keep(reader, plan->stopped_by);
    plan->seed = (uint64_t)seed;
    plan->gpus_used = (int)used;
    return rc;
}

static int check_options(const struct json_place *parent, const json_t *options,
                         struct error *err)
{
    static const char *const texts[] = {"fleet", "latency_rule", "rules"};
    static const char *const others[] = {"derate", "fleet_given"};
    struct json_place place = {.file = parent->file, .parent = parent, .key = "options"};
    const char *text = NULL;
    double derate = 1;
    bool given = false;
    int rc = refuse_null(&place, options, texts, sizeof texts / sizeof *texts, err);
    if (rc == 0)
        rc = refuse_null(&place, options, others, sizeof others / sizeof *others, err);
    for (size_t i = 0; rc == 0 && i < sizeof texts / sizeof *texts; i++)
        rc = json_get_text(&place, options, texts[i], false, &text, err);
    if (rc == 0)
        rc = json_get_number(&place, options, "derate", false, 0, 1, &derate, err);
    return rc < 0 ? rc : json_get_bool(&place, options, "fleet_given", false, &given, err);
}

static int check_inputs(const struct json_place *parent, const json_t *inputs,
                        struct error *err)
{
    static const char *const keys[] = {"services", "measurements"};
    struct json_place place = {.file = parent->file, .parent = parent, .key = "inputs"};
    const char *text = NULL;
    int rc = refuse_null(&place, inputs, keys, 2, err);
    for (size_t i = 0; rc == 0 && i < 2; i++)
        rc = json_get_text(&place, inputs, keys[i], false, &text, err);
    return rc;
}

/* options, inputs and members that we do not know are kept as they are. */
static int keep_members(struct reader *reader, const struct json_place *place, json_t *root,
                        struct error *err)
{
    static const char *const known[] = {
        "schema", "algorithm", "seed", "status",   "emulated",   "cost",   "gpus_used",
        "bound",  "options",   "gpus", "services", "infeasible", "inputs", "stopped_by"};
    struct plan *plan = reader->plan;
    const json_t *options = NULL, *inputs = NULL;
    int rc = json_get_object(place, root, "options", false, &options, err);
    if (rc == 0 && options)
        rc = check_options(place, options, err);
    if (rc == 0)
        rc = json_get_object(place, root, "inputs", false, &inputs, err);
    if (rc == 0 && inputs)
        rc = check_inputs(place, inputs, err);
    if (rc < 0)
        return rc;
    plan->options = json_incref(json_object_get(root, "options"));
    plan->inputs = json_incref(json_object_get(root, "inputs"));
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            is_known |= strcmp(key, known[i]) == 0;
        if (is_known)
            continue;
        if (!plan->extra)
            plan->extra = json_object();
        json_object_set(plan->extra, key, value);
    }
    return 0;
}

static int read_root(struct reader *reader, const struct json_place *place, json_t *root,
                     struct error *err)
{
    const char *schema = NULL;
    const json_t *gpus = NULL, *services = NULL;
    if (!json_is_object(root))
        return json_error_at(place, err, "expected a plan, an object");
    int rc = json_get_text(place, root, "schema", true, &schema, err);
    if (rc < 0)
        return rc;
    struct json_place schema_place = {.file = place->file, .parent = place, .key = "schema"};
    if (strcmp(schema, "tranche.plan/1") != 0)
        return json_error_at(&schema_place, err, "\"%s\", expected \"tranche.plan/1\"", schema);
    rc = json_get_list(place, root, "gpus", true, &gpus, err);
    if (rc == 0)
        rc = json_get_list(place, root, "services", true, &services, err);
    if (rc == 0)
        rc = read_gpus_and_services(reader, place, gpus, services, err);
    if (rc < 0)
        return rc;
    /* What the figures are when the document does not say: each GPU at a price of 1. */
    reader->plan->gpus_used = count_used(reader->plan);
    reader->plan->cost = reader->plan->gpus_used;
    rc = read_status(reader, place, root, err);
    if (rc == 0)
        rc = read_figures(reader, place, root, err);
    if (rc == 0)
        rc = read_bound(reader, place, root, err);
    if (rc == 0)
        rc = read_infeasible(reader, place, root, err);
    return rc < 0 ? rc : keep_members(reader, place, root, err);
}

static int plan_from_json_with(const char *name, const json_t *root, struct plan_faults *faults,
                               struct plan *ret_plan, struct error *err)
{
    assert(name && ret_plan);
    struct plan plan;
    plan_init(&plan);
    CLEANUP(reader_done) struct reader reader = {.plan = &plan, .faults = faults};
    struct json_place place = {.file = name};
    /* Members are only shared by reference count, never changed. */
    int rc = read_root(&reader, &place, (json_t *)root, err);
    if (rc < 0)
        plan_done(&plan);
    else
        *ret_plan = plan;
    return rc;
}

int plan_from_json(const char *name, const json_t *root, struct plan *ret_plan,
                   struct error *err)
{
    return plan_from_json_with(name, root, NULL, ret_plan, err);
}

int plan_read(const char *path, struct plan *ret_plan, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    int rc = json_read(path, &root, err);
    return rc < 0 ? rc : plan_from_json(path, root, ret_plan, err);
}

int plan_read_faulty(const char *path, struct plan *ret_plan, struct plan_faults *ret_faults,
                     struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    int rc = json_read(path, &root, err);
    if (rc < 0)
        return rc;
    struct plan_faults faults = {0};
    rc = plan_from_json_with(path, root, &faults, ret_plan, err);
    if (rc < 0)
        plan_faults_done(&faults);
    else
        *ret_faults = faults;
    return rc;
}

int plan_gpus_from_json(const struct json_place *place, const json_t *gpus,
                        const json_t *services, struct plan *ret_plan, struct error *err)
{
    assert(place && ret_plan);
    struct plan plan;
    plan_init(&plan);
    CLEANUP(reader_done) struct reader reader = {.plan = &plan};
    int rc = read_gpus_and_services(&reader, place, gpus, services, err);
    if (rc < 0) {
        plan_done(&plan);
        return rc;
    }
    plan.gpus_used = count_used(&plan);
    plan.cost = plan.gpus_used;
    *ret_plan = plan;
    return 0;
}
