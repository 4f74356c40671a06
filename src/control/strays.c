/* SPDX-License-Identifier: Apache-2.0 */
#include "control/strays.h"

#include <assert.h>

#include "control/planning.h"
#include "control/pod_object.h"

static const double TOLERANCE = 1e-9;
enum { DRAIN_SECONDS_DEFAULT = 15 };

static const struct gpu_service *service_of(const struct pool_view *view, size_t s)
{
    int at = view->services.data[s].service;

    return at < 0 ? NULL : &view->world->services.data[at];
}

/* Whether the service has what it is held to on GPUs that are observed. */
static bool can_do_without(const struct pool_view *view, size_t s)
{
    const struct gpu_service *service = service_of(view, s);
    double floor_rps =
        service && !service->meta.deleting ? planning_status_rate(view, s, "floorRps") : 0;

    if (view->services.data[s].is_unreadable)
        return false;
    return view->services.data[s].here_rps >= floor_rps * (1 - TOLERANCE);
}

static void end_pod(const struct pool_view *view, size_t s, const struct world_pod *pod,
                    struct effects *effects)
{
    const struct world_sources *sources = &view->world->sources;
    const struct gpu_service *service = service_of(view, s);
    int64_t drain_s = service ? service->drain_seconds : DRAIN_SECONDS_DEFAULT;

    int64_t wait_s = pod->draining_since_s + drain_s - sources->now_s;
    bool drains = !pod->ended && pod->draining_since_s > 0;

    if (pod->ended || (drains && wait_s <= 0 && !pod->in_endpoints)) {
        pod_stop(view->world, pod, effects);
    } else if (drains && wait_s > 0) {
        effects_again_at(effects, sources->now_ns + wait_s * INT64_C(1000000000));
    } else if (!drains && can_do_without(view, s)) {
        pod_drain(view->world, pod, effects);
    }
}

void reconcile_strays(struct world *world, const struct gpu_pool *pool,
                      const struct actuator_gpus *gpus, struct effects *effects)
{
    CLEANUP(pool_view_done) struct pool_view view = {0};

    pool_view_init(&view, world, pool, gpus);
    for (size_t i = 0; i < world->pods.count; i++) {
        const struct world_pod *pod = &world->pods.data[i];
        if (pod->meta.deleting || !pool_view_is_own(&view, pod) ||
            pool_view_gpu(&view, pod->gpu_uuid) >= 0)
            continue;
        int s = pool_view_service(&view, pod->service);
        assert(s >= 0);
        end_pod(&view, (size_t)s, pod, effects);
    }
}
