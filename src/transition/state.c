/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine after some of a transition's actions, as a plan.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "transition/document.h"

struct applier {
    const struct transition *transition;
    struct plan *state;
    int *gpu_of;    /* of each GPU here: index in the state */
    int *to_gpu_of; /* of each GPU here: index in to, -1: none */
};

static void add_services(struct applier *applier)
{
    struct plan *state = applier->state;
    for (size_t s = 0; s < applier->transition->services.count; s++) {
        struct plan_service service = {
            .name = arena_strdup(&state->arena, applier->transition->services.data[s].name),
            .required_rps = applier->transition->services.data[s].floor_rps};
        vec_add(&state->services, service);
    }
}

static void add_gpu(struct applier *applier, const char *id, const struct mig_board *board,
                    const char *node)
{
    assert(id && board);
    struct plan_gpu *gpu = vec_push(&applier->state->gpus);
    gpu->id = arena_strdup(&applier->state->arena, id);
    gpu->node = arena_strdup(&applier->state->arena, node);
    gpu->board = board;
}

static void add_from(struct applier *applier)
{
    assert(applier->state->gpus.count == 0);
    const struct transition *transition = applier->transition;
    CLEANUP(free_ptr)
    int *services = xcalloc(transition->from.services.count, sizeof *services);
    for (size_t s = 0; s < transition->from.services.count; s++)
        services[s] =
            transition_find_service(transition, transition->from.services.data[s].name);
    for (size_t g = 0; g < transition->from.gpus.count; g++) {
        const struct plan_gpu *gpu = &transition->from.gpus.data[g];
        add_gpu(applier, gpu->id, gpu->board, gpu->node);
        for (size_t i = 0; i < gpu->instances.count; i++) {
            struct plan_instance instance = gpu->instances.data[i];
            if (instance.service >= 0)
                instance.service = services[instance.service];
            vec_add(&applier->state->gpus.data[g].instances, instance);
        }
    }
}

static void find_gpus(struct applier *applier)
{
    const struct transition *transition = applier->transition;
    CLEANUP(map_done) struct map from = {0}, match = {0};
    for (size_t g = 0; g < transition->from.gpus.count; g++)
        map_put(&from, transition->from.gpus.data[g].id, NULL);
    for (size_t i = 0; i < transition->match.count; i++)
        map_put(&match, transition->match.data[i].id, NULL);
    assert(applier->state->gpus.count == transition->from.gpus.count);
    for (size_t g = 0; g < transition->gpus.count; g++) {
        const struct transition_gpu *gpu = &transition->gpus.data[g];
        ptrdiff_t here = map_find(&from, gpu->id), matched = map_find(&match, gpu->id);
        applier->to_gpu_of[g] =
            matched < 0 ? -1
                        : plan_find_gpu(&transition->to, transition->match.data[matched].to_id);
        applier->gpu_of[g] = (int)here;
        if (here >= 0)
            continue;
        applier->gpu_of[g] = (int)applier->state->gpus.count;
        add_gpu(applier, gpu->id, gpu->board, gpu->node);
    }
}

static int find_instance(const struct plan_gpu *gpu, const struct transition_action *action)
{
    assert(gpu && action);
    for (size_t i = 0; i < gpu->instances.count; i++)
        if (gpu->instances.data[i].profile == action->profile &&
            gpu->instances.data[i].start == action->start)
            return (int)i;
    return -1;
}

/* What an action does not say of a service that `to` runs in this slot: waiting and latency. */
static void fill_from_to(const struct applier *applier, const struct transition_action *action,
                         struct plan_instance *instance)
{
    assert(action->kind == ACTION_START);
    int index = applier->to_gpu_of[action->gpu];
    if (index < 0)
        return;
    const struct plan_gpu *gpu = &applier->transition->to.gpus.data[index];
    int wanted = find_instance(gpu, action);
    if (wanted < 0 || gpu->instances.data[wanted].service < 0)
        return;
    instance->max_wait_ms = gpu->instances.data[wanted].max_wait_ms;
    instance->latency_ms = gpu->instances.data[wanted].latency_ms;
}

static void set_idle(struct plan_instance *instance)
{
    assert(instance->profile >= 0 && instance->start >= 0);
    *instance = (struct plan_instance){.profile = instance->profile,
                                       .start = instance->start,
                                       .service = -1,
                                       .max_wait_ms = NAN,
                                       .latency_ms = NAN};
}

static void apply(const struct applier *applier, const struct transition_action *action)
{
    struct plan_gpu *gpu = &applier->state->gpus.data[applier->gpu_of[action->gpu]];
    int at = find_instance(gpu, action);
    assert((at < 0) == (action->kind == ACTION_CREATE_INSTANCE));
    struct plan_instance *instance =
        at < 0 ? vec_push(&gpu->instances) : &gpu->instances.data[at];
    switch (action->kind) {
    case ACTION_CREATE_INSTANCE:
        instance->profile = action->profile;
        instance->start = action->start;
        set_idle(instance);
        break;
    case ACTION_DELETE_INSTANCE:
        gpu->instances.data[at] = gpu->instances.data[--gpu->instances.count];
        break;
    case ACTION_START:
        instance->service = action->service;
        instance->batch = action->batch;
        instance->procs = action->procs;
        instance->rate_rps = action->rate_rps;
        fill_from_to(applier, action, instance);
        break;
    case ACTION_DRAIN:
        instance->rate_rps = 0;
        break;
    case ACTION_STOP:
        set_idle(instance);
        break;
    case ACTION_KIND_COUNT:
        break;
    }
}

static int compare_instances(const void *a, const void *b)
{
    const struct plan_instance *left = a, *right = b;
    return left->start != right->start ? left->start - right->start
                                       : left->profile - right->profile;
}

/* Sorts, sums, and drops GPUs that came and hold nothing. */
static void tidy(struct applier *applier)
{
    struct plan *state = applier->state;
    size_t kept = 0;
    for (size_t g = 0; g < state->gpus.count; g++) {
        struct plan_gpu *gpu = &state->gpus.data[g];
        if (g >= applier->transition->from.gpus.count && gpu->instances.count == 0) {
            vec_done(&gpu->instances);
            continue;
        }
        if (gpu->instances.count > 0)
            qsort(gpu->instances.data, gpu->instances.count, sizeof *gpu->instances.data,
                  compare_instances);
        bool serves = false;
        for (size_t i = 0; i < gpu->instances.count; i++) {
            const struct plan_instance *instance = &gpu->instances.data[i];
            serves |= instance->service >= 0;
            if (instance->service >= 0)
                state->services.data[instance->service].provided_rps += instance->rate_rps;
        }
        state->gpus_used += serves;
        state->gpus.data[kept++] = *gpu;
    }
    assert(kept >= applier->transition->from.gpus.count);
    state->gpus.count = kept;
    state->cost = state->gpus_used;
}

void transition_state(const struct transition *transition, const bool *done,
                      struct plan *ret_state)
{
    size_t gpus = transition->gpus.count;
    struct applier applier = {.transition = transition,
                              .state = ret_state,
                              .gpu_of = xcalloc(gpus, sizeof(int)),
                              .to_gpu_of = xcalloc(gpus, sizeof(int))};
    assert(transition_is_reachable(transition, done));
    assert(ret_state != &transition->from && ret_state != &transition->to);
    plan_init(ret_state);
    add_services(&applier);
    add_from(&applier);
    find_gpus(&applier);
    for (size_t i = 0; i < transition->actions.count; i++)
        if (done[i])
            apply(&applier, &transition->actions.data[i]);
    tidy(&applier);
    free(applier.gpu_of);
    free(applier.to_gpu_of);
}
