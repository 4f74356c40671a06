/* SPDX-License-Identifier: Apache-2.0 */
#include "control/pool_view.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "control/kinds.h"
#include "control/object.h"
#include "kube/api.h"

bool pod_is_serving(const struct world_pod *pod)
{
    return pod->ready && pod->is_routed && pod->draining_since_s == 0;
}

static struct view_service *get_service(struct pool_view *view, const char *name)
{
    assert(name && view->names.count == view->services.count);
    ptrdiff_t at = map_find(&view->names, name);

    if (at >= 0)
        return &view->services.data[at];
    map_put(&view->names, name, NULL);
    struct view_service *service = vec_push(&view->services);
    service->name = name;
    service->service = world_find_service(view->world, name);
    if (service->service >= 0 &&
        strcmp(view->world->services.data[service->service].pool, view->pool->meta.name) != 0)
        service->service = -1; /* it has moved to another pool */
    else if (service->service < 0)
        service->is_unreadable = world_is_unreadable(view->world, name);
    return service;
}

bool pool_view_is_own(const struct pool_view *view, const struct world_pod *pod)
{
    assert(pod->meta.json);
    return strcmp(object_label(pod->meta.json, LABEL_POOL), view->pool->meta.name) == 0;
}

static void add_pod(struct pool_view *view, size_t index)
{
    const struct world_pod *pod = &view->world->pods.data[index];
    int gpu = pool_view_gpu(view, pod->gpu_uuid);

    if (gpu < 0 && !pool_view_is_own(view, pod))
        return;
    struct view_service *service = get_service(view, pod->service);
    service->pods++;
    service->pods_ready += pod_is_serving(pod);
    service->ready_rps += pod_is_serving(pod) ? pod->rate_rps : 0;
    if (gpu < 0)
        return;
    service->here_rps += pod_is_serving(pod) ? pod->rate_rps : 0;
    vec_add(&view->on.data[gpu].pods, index);
    /* What would be there if every pod were ready: waits_in_vain() of transition_step.c asks
     * for it. */
    if (!view->gpus->gpus.data[gpu].lost && !pod->ended && !pod->meta.deleting &&
        pod->draining_since_s == 0)
        service->existing_rps += pod->rate_rps;
}

void pool_view_init(struct pool_view *view, struct world *world, const struct gpu_pool *pool,
                    const struct actuator_gpus *gpus)
{
    *view = (struct pool_view){.world = world, .pool = pool, .gpus = gpus};
    for (size_t g = 0; g < gpus->gpus.count; g++) {
        map_put(&view->uuids, gpus->gpus.data[g].uuid, NULL);
        (void)vec_push(&view->on);
    }
    assert(view->uuids.count == gpus->gpus.count); /* actuator.h: no UUID twice */
    for (size_t s = 0; s < world->services.count; s++)
        if (strcmp(world->services.data[s].pool, pool->meta.name) == 0)
            (void)get_service(view, world->service_names.entries[s].key);
    for (size_t i = 0; i < world->pods.count; i++)
        add_pod(view, i);
}

void pool_view_done(struct pool_view *view)
{
    for (size_t g = 0; g < view->on.count; g++)
        vec_done(&view->on.data[g].pods);
    vec_done(&view->on);
    vec_done(&view->services);
    map_done(&view->uuids);
    map_done(&view->names);
}

const struct actuator_ops *pool_actuator(const struct world *world, const struct gpu_pool *pool)
{
    return world->sources.actuator ? world->sources.actuator : actuator_of(world, pool);
}

int pool_view_gpu(const struct pool_view *view, const char *uuid)
{
    assert(uuid);
    return (int)map_find(&view->uuids, uuid);
}

int pool_view_service(const struct pool_view *view, const char *name)
{
    assert(name);
    return (int)map_find(&view->names, name);
}

const struct world_instance *pool_view_instance(const struct pool_view *view, int gpu,
                                                int profile, int start)
{
    assert(gpu >= 0 && (size_t)gpu < view->gpus->gpus.count);
    const struct world_gpu *here = &view->gpus->gpus.data[gpu];

    for (size_t i = 0; i < here->instances.count; i++)
        if (here->instances.data[i].profile == profile &&
            here->instances.data[i].start == start)
            return &here->instances.data[i];
    return NULL;
}

const struct world_pod *pool_view_pod(const struct pool_view *view,
                                      const struct view_slot *slot)
{
    const struct world_pod *best = NULL;
    int best_rank = -1;

    assert(slot->gpu >= 0 && (size_t)slot->gpu < view->on.count);
    const struct view_gpu *here = &view->on.data[slot->gpu];
    for (size_t i = 0; i < here->pods.count; i++) {
        const struct world_pod *pod = &view->world->pods.data[here->pods.data[i]];
        if (pod->profile != slot->profile || pod->start != slot->start)
            continue;
        int rank = 2 * (strcmp(pod->service, slot->service) == 0) + !pod->meta.deleting;
        if (rank > best_rank) {
            best = pod;
            best_rank = rank;
        }
    }
    return best;
}

bool pool_view_is_usable(const struct pool_view *view, int gpu)
{
    assert(gpu >= 0 && (size_t)gpu < view->gpus->gpus.count);
    const struct world_gpu *here = &view->gpus->gpus.data[gpu];
    const struct world_node *node = &view->world->nodes.data[here->node];

    return !here->lost && !here->shared && !node->cordoned && !node->out_of_service &&
           !*node->conflict;
}

/* ---- transitions ------------------------------------------------------------------ */

bool transition_is_closed(const struct transition_object *object)
{
    const json_t *condition = object_condition(object->meta.json, "Complete");

    return object->complete || strcmp(json_text(condition, "reason"), "Superseded") == 0;
}

static const char *created_at(const struct transition_object *object)
{
    return kube_metadata(object->meta.json, "creationTimestamp");
}

/* Begun before not begun, then by age, then by name: every controller chooses the same. */
static bool goes_first(const struct transition_object *a, const struct transition_object *b)
{
    bool begun = a->epoch >= 0, other_begun = b->epoch >= 0;
    int age = strcmp(created_at(a), created_at(b));

    if (begun != other_begun)
        return begun;
    return age ? age < 0 : strcmp(a->meta.name, b->meta.name) < 0;
}

struct transition_object *pool_open_transition(struct world *world, const struct gpu_pool *pool)
{
    struct transition_object *first = NULL;

    for (size_t i = 0; i < world->transitions.count; i++) {
        struct transition_object *object = &world->transitions.data[i];
        if (strcmp(object->pool, pool->meta.name) != 0 || transition_is_closed(object))
            continue;
        if (!first || goes_first(object, first))
            first = object;
    }
    return first;
}
