/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/work.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "transition/match.h"

/* Tighter than the contract's 1e-9, so that sums in another order stay within that. */
static const double TOLERANCE = 1e-11;

bool work_fits(double rate, double room, double scale)
{
    assert(!isnan(rate) && !isnan(room) && scale >= 0);
    return rate <= room + TOLERANCE * fmax(scale, fabs(rate));
}

uint32_t slot_span(const struct transition *transition, struct slot slot)
{
    assert(slot.gpu >= 0 && (size_t)slot.gpu < transition->gpus.count);
    struct mig_instance instance = {(int8_t)slot.profile, (int8_t)slot.start};
    return mig_instance_span(transition->gpus.data[slot.gpu].board, instance);
}

void slot_text(const struct transition *transition, struct slot slot, struct str *text)
{
    assert(slot.gpu >= 0 && (size_t)slot.gpu < transition->gpus.count);
    const struct transition_gpu *gpu = &transition->gpus.data[slot.gpu];
    str_addf(text, "%s@%d of %s", gpu->board->profiles[slot.profile].name, slot.start, gpu->id);
}

void work_done(struct work *work)
{
    vec_done(&work->leaving);
    vec_done(&work->coming);
    vec_done(&work->changing);
    vec_done(&work->layouts);
    for (size_t i = 0; work->services && i < work->transition->services.count; i++)
        vec_done(&work->services[i].options);
    free(work->services);
    *work = (struct work){0};
}

static void add_services(struct transition *transition, const struct plan *plan,
                         struct map *names)
{
    for (size_t i = 0; i < plan->services.count; i++) {
        const char *name = plan->services.data[i].name;
        if (map_find(names, name) >= 0)
            continue;
        map_put(names, name, NULL);
        struct transition_service *service = vec_push(&transition->services);
        service->name = arena_strdup(&transition->arena, name);
        service->floor_rps = transition_floor_rps(&transition->from, &transition->to, name);
    }
}

/* For each service of a plan, its index here. */
static int *services_of(const struct plan *plan, const struct map *names)
{
    int *map = xcalloc(plan->services.count, sizeof *map);
    for (size_t i = 0; i < plan->services.count; i++)
        map[i] = (int)map_find(names, plan->services.data[i].name);
    return map;
}

static struct serving serving_of(const struct plan_instance *instance, const int *services)
{
    assert(services || !instance);
    if (!instance || instance->service < 0)
        return (struct serving){.service = -1};
    return (struct serving){services[instance->service], instance->batch, instance->procs,
                            instance->rate_rps};
}

static void add_option(struct work *work, const struct mig_board *board, int profile,
                       struct serving serving)
{
    assert(profile >= 0 && profile < board->profile_count);
    if (serving.service < 0 || serving.rate_rps <= 0)
        return;
    assert(serving.service < (int)work->transition->services.count);
    struct work_service *service = &work->services[serving.service];
    struct work_option option = {board, profile, serving};
    size_t at = service->options.count;
    for (size_t i = 0; i < service->options.count; i++) {
        const struct work_option *other = &service->options.data[i];
        if (other->board == board && other->profile == profile &&
            other->serving.rate_rps >= serving.rate_rps)
            return;
    }
    vec_add(&service->options, option);
    int slices = board->profiles[profile].compute_slices;
    while (at > 0) {
        const struct work_option *other = &service->options.data[at - 1];
        if (other->board->profiles[other->profile].compute_slices <= slices)
            break;
        service->options.data[at] = *other;
        at--;
    }
    service->options.data[at] = option;
}

static void add_options(struct work *work, const struct plan *plan, const int *services)
{
    for (size_t i = 0; i < plan->gpus.count; i++)
        for (size_t j = 0; j < plan->gpus.data[i].instances.count; j++) {
            const struct plan_instance *instance = &plan->gpus.data[i].instances.data[j];
            add_option(work, plan->gpus.data[i].board, instance->profile,
                       serving_of(instance, services));
        }
}

static const struct plan_instance *find_slot(const struct plan_gpu *gpu,
                                             const struct plan_instance *wanted)
{
    assert(wanted);
    for (size_t i = 0; gpu && i < gpu->instances.count; i++)
        if (gpu->instances.data[i].profile == wanted->profile &&
            gpu->instances.data[i].start == wanted->start)
            return &gpu->instances.data[i];
    return NULL;
}

static void compare_gpu(struct work *work, int index, const struct plan_gpu *from,
                        const struct plan_gpu *to, int *const services[2])
{
    assert(index >= 0);
    const struct transition *transition = work->transition;
    for (size_t i = 0; from && i < from->instances.count; i++) {
        const struct plan_instance *before = &from->instances.data[i];
        const struct plan_instance *after = find_slot(to, before);
        struct work_item item = {{index, before->profile, before->start},
                                 serving_of(before, services[0]),
                                 serving_of(after, services[1])};
        if (item.before.service >= 0)
            work->services[item.before.service].capacity_rps += item.before.rate_rps;
        if (!after)
            vec_add(&work->leaving, item);
        else if (!match_serves_alike(&transition->from, before, &transition->to, after))
            vec_add(&work->changing, item);
    }
    for (size_t i = 0; to && i < to->instances.count; i++) {
        const struct plan_instance *after = &to->instances.data[i];
        struct work_item item = {{index, after->profile, after->start},
                                 {.service = -1},
                                 serving_of(after, services[1])};
        if (!find_slot(from, after))
            vec_add(&work->coming, item);
    }
}

static int check_layouts(const struct plan *plan, const char *which, struct error *err)
{
    for (size_t i = 0; i < plan->gpus.count; i++) {
        struct mig_layout layout;
        plan_gpu_layout(&plan->gpus.data[i], &layout);
        if (mig_layout_check(plan->gpus.data[i].board, &layout, err) < 0)
            return error_wrap(err, "%s: %s", which, plan->gpus.data[i].id);
    }
    return 0;
}

static int check_floor(const struct work *work, struct error *err)
{
    assert(work->services);
    const struct transition *transition = work->transition;
    for (size_t s = 0; s < transition->services.count; s++) {
        const struct transition_service *service = &transition->services.data[s];
        double given[2] = {(double)work->services[s].capacity_rps, 0};
        for (size_t i = 0; i < transition->to.gpus.count; i++)
            for (size_t j = 0; j < transition->to.gpus.data[i].instances.count; j++) {
                const struct plan_instance *instance =
                    &transition->to.gpus.data[i].instances.data[j];
                if (instance->service >= 0 &&
                    strcmp(transition->to.services.data[instance->service].name,
                           service->name) == 0)
                    given[1] += instance->rate_rps;
            }
        for (int p = 0; p < 2; p++)
            if (!work_fits(service->floor_rps, given[p] * (1 + 1e-9), service->floor_rps))
                return error_set(err, E_NO,
                                 "service \"%s\": %s gives %.9g rps, and %.9g must never be "
                                 "missed: no order can hold that",
                                 service->name, p ? "to" : "from", given[p],
                                 service->floor_rps);
    }
    return 0;
}

static void compare_gpus(struct work *work, int *const services[2])
{
    const struct transition *transition = work->transition;
    CLEANUP(map_done) struct map here = {0};
    size_t count = transition->gpus.count;
    const struct plan_gpu **to = xcalloc(count, sizeof(struct plan_gpu *));
    for (size_t i = 0; i < count; i++)
        map_put(&here, transition->gpus.data[i].id, NULL);
    for (size_t i = 0; i < transition->match.count; i++)
        to[map_find(&here, transition->match.data[i].id)] = &transition->to.gpus.data[i];
    for (size_t i = 0; i < count; i++) {
        const struct plan_gpu *from =
            i < transition->from.gpus.count ? &transition->from.gpus.data[i] : NULL;
        struct mig_layout layout = {0};
        if (from)
            plan_gpu_layout(from, &layout);
        vec_add(&work->layouts, layout);
        compare_gpu(work, (int)i, from, to[i], services);
    }
    assert(work->layouts.count == count);
    free(to);
}

int work_build(struct transition *transition, struct work *ret_work, struct error *err)
{
    CLEANUP(map_done) struct map names = {0};
    struct work work = {.transition = transition};
    assert(transition->services.count == 0);
    assert(ret_work);
    int rc = check_layouts(&transition->from, "from", err);
    if (rc == 0)
        rc = check_layouts(&transition->to, "to", err);
    if (rc < 0)
        return rc;
    add_services(transition, &transition->from, &names);
    add_services(transition, &transition->to, &names);
    work.services = xcalloc(transition->services.count, sizeof *work.services);
    int *services[2] = {services_of(&transition->from, &names),
                        services_of(&transition->to, &names)};
    for (size_t s = 0; s < transition->services.count; s++)
        work.services[s].floor_rps = transition->services.data[s].floor_rps;
    add_options(&work, &transition->from, services[0]);
    add_options(&work, &transition->to, services[1]);
    compare_gpus(&work, services);
    free(services[0]);
    free(services[1]);
    rc = check_floor(&work, err);
    if (rc < 0)
        work_done(&work);
    else
        *ret_work = work;
    return rc;
}
