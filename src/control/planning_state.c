/* SPDX-License-Identifier: Apache-2.0
 *
 * The state that is there and the state that is wanted, as plans.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "control/json_covers.h"
#include "control/object.h"
#include "control/planning.h"

static const double TOLERANCE = 1e-9;

/* ---- the target ------------------------------------------------------------------- */

static int compare_parts(const void *a, const void *b)
{
    const struct partition_plan *const *left = a, *const *right = b;

    return (*left)->part - (*right)->part;
}

static bool is_whole(const struct target_plan *target)
{
    size_t count = target->parts.count;

    if (count == 0 || (size_t)target->parts.data[0]->parts != count)
        return false;
    for (size_t p = 0; p < count; p++)
        if (target->parts.data[p]->part != (int)p)
            return false;
    return true;
}

bool target_plan_find(const struct pool_view *view, struct target_plan *ret_target)
{
    const char *name =
        json_string_value(json_at(view->pool->meta.json, "status", "plan", NULL));
    struct target_plan target = {.name = name ? name : ""};

    for (size_t i = 0; *target.name && i < view->world->plans.count; i++) {
        const struct partition_plan *plan = &view->world->plans.data[i];
        if (strcmp(plan->plan, target.name) == 0 &&
            strcmp(plan->pool, view->pool->meta.name) == 0)
            vec_add(&target.parts, plan);
    }
    if (target.parts.count > 0)
        qsort(target.parts.data, target.parts.count, sizeof *target.parts.data, compare_parts);
    if (!is_whole(&target)) {
        target_plan_done(&target);
        return false;
    }
    *ret_target = target;
    return true;
}

void target_plan_done(struct target_plan *target)
{
    vec_done(&target->parts);
}

const struct partition_item *target_plan_item(const struct target_plan *target,
                                              const char *gpu_uuid, int profile, int start)
{
    assert(gpu_uuid);
    for (size_t p = 0; p < target->parts.count; p++)
        for (size_t i = 0; i < target->parts.data[p]->items.count; i++) {
            const struct partition_item *item = &target->parts.data[p]->items.data[i];
            if (item->start == start && item->profile == profile &&
                strcmp(item->gpu_uuid, gpu_uuid) == 0)
                return item;
        }
    return NULL;
}

/* ---- what is there ---------------------------------------------------------------- */

void planning_template_hash(const struct gpu_service *service,
                            char ret_hash[TEMPLATE_HASH_SIZE])
{
    json_t *whole = json_pack("{s:O?, s:s, s:i}", "template", (json_t *)service->pod_template,
                              "model", service->model, "port", service->port);

    assert(whole);
    json_hash(whole, TEMPLATE_HASH_SIZE - 1, ret_hash);
    json_decref(whole);
}

/* Service by service, so that a template is hashed once a round. */
struct template_hashes {
    char (*hashes)[TEMPLATE_HASH_SIZE]; /* "" where the service is gone */
};

static struct template_hashes hash_templates(const struct pool_view *view)
{
    struct template_hashes all = {.hashes =
                                      xcalloc(view->services.count + 1, TEMPLATE_HASH_SIZE)};

    for (size_t s = 0; s < view->services.count; s++)
        if (view->services.data[s].service >= 0)
            planning_template_hash(&view->world->services.data[view->services.data[s].service],
                                   all.hashes[s]);
    return all;
}

static void add_services(const struct pool_view *view, struct plan *plan)
{
    for (size_t s = 0; s < view->services.count; s++) {
        struct plan_service *service = vec_push(&plan->services);
        service->name = view->services.data[s].name;
    }
}

static struct plan_instance idle(int profile, int start)
{
    assert(profile >= 0 && start >= 0);
    return (struct plan_instance){.profile = profile,
                                  .start = start,
                                  .service = -1,
                                  .max_wait_ms = NAN,
                                  .latency_ms = NAN};
}

static int compare_instances(const void *a, const void *b)
{
    const struct plan_instance *left = a, *right = b;

    return left->start != right->start ? left->start - right->start
                                       : left->profile - right->profile;
}

/* Adds the instance unless the GPU cannot hold it beside the others: while one is being made in
 * place of another, both are observed. */
static bool add_instance(struct plan_gpu *gpu, struct mig_layout *layout, int profile,
                         int start)
{
    assert(gpu->instances.count == (size_t)layout->count);
    struct mig_instance instance = {(int8_t)profile, (int8_t)start};

    if (!mig_layout_can_add(gpu->board, layout, instance))
        return false;
    mig_layout_add(gpu->board, layout, instance);
    vec_add(&gpu->instances, idle(profile, start));
    return true;
}

static void add_instances(const struct world_gpu *there, struct plan_gpu *gpu,
                          struct mig_layout *layout)
{
    static const enum instance_phase order[] = {INSTANCE_READY, INSTANCE_LEAVING,
                                                INSTANCE_PENDING, INSTANCE_FAILED};

    for (size_t o = 0; o < sizeof order / sizeof *order; o++)
        for (size_t i = 0; i < there->instances.count; i++)
            if (there->instances.data[i].phase == order[o])
                (void)add_instance(gpu, layout, there->instances.data[i].profile,
                                   there->instances.data[i].start);
}

static struct plan_instance *find_instance(struct plan_gpu *gpu, int profile, int start)
{
    for (size_t i = 0; i < gpu->instances.count; i++)
        if (gpu->instances.data[i].profile == profile && gpu->instances.data[i].start == start)
            return &gpu->instances.data[i];
    return NULL;
}

/* A pod that is on its way out, or ended, gives nothing. */
static double rate_of(const struct world_pod *pod)
{
    assert(pod->rate_rps >= 0);
    return pod->meta.deleting || pod->ended || pod->draining_since_s > 0 ? 0 : pod->rate_rps;
}

static void add_pod(const struct pool_view *view, const struct template_hashes *templates,
                    const struct world_pod *pod, struct plan_gpu *gpu,
                    struct mig_layout *layout)
{
    int service = pool_view_service(view, pod->service);
    struct plan_instance *instance;

    assert(service >= 0);
    if (pod->profile < 0)
        return;
    instance = find_instance(gpu, pod->profile, pod->start);
    if (!instance && add_instance(gpu, layout, pod->profile, pod->start))
        instance = &gpu->instances.data[gpu->instances.count - 1];
    if (!instance || (instance->service >= 0 && rate_of(pod) <= instance->rate_rps))
        return;
    bool outdated = *templates->hashes[service] &&
                    strcmp(templates->hashes[service], pod->template_hash) != 0;
    instance->service = service;
    instance->batch = pod->batch;
    instance->procs = pod->procs + (outdated ? PROCS_OUTDATED : 0);
    instance->rate_rps = rate_of(pod);
}

static void observe_gpu(const struct pool_view *view, const struct template_hashes *templates,
                        size_t index, struct plan *plan)
{
    const struct world_gpu *there = &view->gpus->gpus.data[index];
    struct mig_layout layout = {0};
    struct plan_gpu *gpu = vec_push(&plan->gpus);

    assert(!there->lost);
    gpu->id = there->uuid;
    gpu->board = there->board;
    gpu->node = view->world->nodes.data[there->node].name;
    add_instances(there, gpu, &layout);
    for (size_t i = 0; i < view->on.data[index].pods.count; i++)
        add_pod(view, templates, &view->world->pods.data[view->on.data[index].pods.data[i]],
                gpu, &layout);
    if (gpu->instances.count > 0)
        qsort(gpu->instances.data, gpu->instances.count, sizeof *gpu->instances.data,
              compare_instances);
}

static void sum_up(struct plan *plan)
{
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++) {
            const struct plan_instance *instance = &plan->gpus.data[g].instances.data[i];
            if (instance->service >= 0)
                plan->services.data[instance->service].provided_rps += instance->rate_rps;
        }
}

double planning_status_rate(const struct pool_view *view, size_t s, const char *field)
{
    assert(s < view->services.count && field);
    int service = view->services.data[s].service;

    if (service < 0)
        return 0;
    const json_t *rate =
        json_at(view->world->services.data[service].meta.json, "status", field, NULL);
    return rate ? json_number_value(rate) : 0;
}

/* Both ends are held to the floor that was set when the plan was made, as far as they have it.
 */
static void require_floor(const struct pool_view *view, struct plan *plan)
{
    for (size_t s = 0; s < plan->services.count; s++)
        plan->services.data[s].required_rps = fmin(planning_status_rate(view, s, "floorRps"),
                                                   plan->services.data[s].provided_rps);
}

void planning_observed(const struct pool_view *view, struct plan *ret_plan)
{
    struct template_hashes templates = hash_templates(view);

    plan_init(ret_plan);
    add_services(view, ret_plan);
    for (size_t g = 0; g < view->gpus->gpus.count; g++)
        if (!view->gpus->gpus.data[g].lost)
            observe_gpu(view, &templates, g, ret_plan);
    sum_up(ret_plan);
    require_floor(view, ret_plan);
    free(templates.hashes);
}

/* ---- what is wanted --------------------------------------------------------------- */

static void add_item(const struct pool_view *view, const struct map *ids,
                     const struct partition_item *item, struct plan *plan)
{
    ptrdiff_t at = map_find(ids, item->gpu_uuid);

    if (at < 0 || plan->gpus.data[at].board != item->board)
        return;
    int service = pool_view_service(view, item->service);
    struct plan_instance *instance = vec_push(&plan->gpus.data[at].instances);
    *instance = idle(item->profile, item->start);
    if (service < 0 || (view->services.data[service].service < 0 &&
                        !view->services.data[service].is_unreadable))
        return; /* gone since: a new plan is due */
    instance->service = service;
    instance->batch = item->batch;
    instance->procs = item->procs;
    instance->rate_rps = item->rate_rps;
    instance->max_wait_ms = item->max_wait_ms;
    instance->latency_ms = item->latency_ms;
}

void planning_wanted(const struct pool_view *view, const struct target_plan *target,
                     const struct plan *observed, struct plan *ret_plan)
{
    assert(target->parts.count > 0);
    CLEANUP(map_done) struct map ids = {0};

    plan_init(ret_plan);
    add_services(view, ret_plan);
    for (size_t g = 0; g < observed->gpus.count; g++) {
        struct plan_gpu *gpu = vec_push(&ret_plan->gpus);
        *gpu = (struct plan_gpu){.id = observed->gpus.data[g].id,
                                 .board = observed->gpus.data[g].board,
                                 .node = observed->gpus.data[g].node};
        map_put(&ids, gpu->id, NULL);
    }
    for (size_t p = 0; p < target->parts.count; p++)
        for (size_t i = 0; i < target->parts.data[p]->items.count; i++)
            add_item(view, &ids, &target->parts.data[p]->items.data[i], ret_plan);
    for (size_t g = 0; g < ret_plan->gpus.count; g++)
        if (ret_plan->gpus.data[g].instances.count > 0)
            qsort(ret_plan->gpus.data[g].instances.data, ret_plan->gpus.data[g].instances.count,
                  sizeof(struct plan_instance), compare_instances);
    sum_up(ret_plan);
    require_floor(view, ret_plan);
}

bool planning_serves_same(const struct plan_instance *a, const struct plan_instance *b)
{
    if (a->profile != b->profile || a->start != b->start || a->service != b->service)
        return false;
    return a->service < 0 || (a->batch == b->batch && a->procs == b->procs &&
                              fabs(a->rate_rps - b->rate_rps) <= TOLERANCE * fabs(b->rate_rps));
}

bool planning_is_same_gpu(const struct plan_gpu *observed, const struct plan_gpu *wanted)
{
    assert(observed->board == wanted->board);
    if (observed->instances.count != wanted->instances.count)
        return false;
    for (size_t i = 0; i < wanted->instances.count; i++)
        if (!planning_serves_same(&observed->instances.data[i], &wanted->instances.data[i]))
            return false;
    return true;
}

bool planning_is_same(const struct plan *observed, const struct plan *wanted)
{
    assert(observed->gpus.count == wanted->gpus.count);
    for (size_t g = 0; g < wanted->gpus.count; g++)
        if (!planning_is_same_gpu(&observed->gpus.data[g], &wanted->gpus.data[g]))
            return false;
    return true;
}
