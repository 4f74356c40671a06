/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/schedule.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static bool goes_first(const struct event *a, const struct event *b)
{
    return a->at_seconds != b->at_seconds ? a->at_seconds < b->at_seconds
                                          : a->sequence < b->sequence;
}

void schedule_push(struct schedule *schedule, double after_seconds, enum event_kind kind,
                   int index)
{
    assert(isfinite(after_seconds));
    assert(after_seconds >= 0 && index >= 0);
    struct event event = {schedule->now_seconds + after_seconds, schedule->sequence++, kind,
                          index};
    size_t at = schedule->events.count;
    vec_add(&schedule->events, event);
    struct event *heap = schedule->events.data;
    while (at > 0 && goes_first(&event, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = event;
}

static struct event pop(struct schedule *schedule)
{
    assert(schedule->events.count > 0);
    struct event *heap = schedule->events.data, top = heap[0];
    size_t count = --schedule->events.count, at = 0;
    struct event last = heap[count];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && goes_first(&heap[child + 1], &heap[child]);
        if (!goes_first(&heap[child], &last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

double schedule_seconds(const struct schedule *schedule, int action)
{
    assert(action >= 0 && (size_t)action < schedule->transition->actions.count);
    return schedule->transition->actions.data[action].seconds;
}

static struct mig_instance instance_of(struct slot slot)
{
    return (struct mig_instance){(int8_t)slot.profile, (int8_t)slot.start};
}

static const struct mig_board *board_of(const struct schedule *schedule, int gpu)
{
    assert(gpu >= 0 && (size_t)gpu < schedule->transition->gpus.count);
    return schedule->transition->gpus.data[gpu].board;
}

bool schedule_blocks(const struct schedule *schedule, const struct tenant *tenant,
                     const struct arrival *arrival, bool by_span)
{
    if (tenant->kind == TENANT_CHANGING || tenant->state == TENANT_GONE)
        return false;
    return !by_span || (slot_span(schedule->transition, tenant->slot) &
                        slot_span(schedule->transition, arrival->slot));
}

/* Otherwise a limit by count is in the way, and so every tenant of the GPU. */
bool schedule_has_overlap(const struct schedule *schedule, const struct arrival *arrival)
{
    assert(arrival->slot.gpu >= 0 && (size_t)arrival->slot.gpu < schedule->gpus.count);
    const struct schedule_gpu *gpu = &schedule->gpus.data[arrival->slot.gpu];
    for (size_t i = 0; i < gpu->tenants.count; i++)
        if (schedule_blocks(schedule, &schedule->tenants.data[gpu->tenants.data[i]], arrival,
                            true))
            return true;
    return false;
}

static void create_arrivals(struct schedule *schedule)
{
    assert(schedule->gpus.count == schedule->transition->gpus.count);
    for (size_t i = 0; i < schedule->arrivals.count; i++) {
        struct arrival *arrival = &schedule->arrivals.data[i];
        struct schedule_gpu *gpu = &schedule->gpus.data[arrival->slot.gpu];
        const struct mig_board *board = board_of(schedule, arrival->slot.gpu);
        if (arrival->state != ARRIVAL_WAITING ||
            !mig_layout_can_add(board, &gpu->layout, instance_of(arrival->slot)))
            continue;
        mig_layout_add(board, &gpu->layout, instance_of(arrival->slot));
        arrival->state = ARRIVAL_BEGUN;
        arrival->action = builder_create(&schedule->builder, arrival->slot);
        schedule_push(schedule, schedule_seconds(schedule, arrival->action),
                      EVENT_ARRIVAL_CREATED, (int)i);
    }
}

void schedule_release(struct schedule *schedule, int index)
{
    struct tenant *tenant = &schedule->tenants.data[index];
    struct builder *builder = &schedule->builder;
    assert(index >= 0 && (size_t)index < schedule->tenants.count);
    assert(tenant->state == TENANT_THERE);
    tenant->state = TENANT_RELEASED;
    if (tenant->serving.service < 0) {
        tenant->action = builder_delete(builder, tenant->slot, tenant->action);
        schedule_push(schedule, schedule_seconds(schedule, tenant->action),
                      EVENT_TENANT_DELETED, index);
        return;
    }
    schedule->slack_rps[tenant->serving.service] -= tenant->serving.rate_rps;
    int drain = builder_drain(builder, tenant->slot, tenant->serving, tenant->action);
    tenant->action = builder_stop(builder, drain);
    schedule_push(schedule,
                  schedule_seconds(schedule, drain) +
                      schedule_seconds(schedule, tenant->action),
                  EVENT_TENANT_STOPPED, index);
}

/* Whether the service can do without `rate` more, `kept` set aside. */
static bool has_room(const struct schedule *schedule, int service, double rate, double kept)
{
    assert(rate >= 0 && kept >= 0);
    return service < 0 || work_fits(rate + kept, (double)schedule->slack_rps[service],
                                    schedule->work->services[service].floor_rps);
}

static int slices_of(const struct schedule *schedule, struct slot slot)
{
    assert(slot.profile >= 0);
    return board_of(schedule, slot.gpu)->profiles[slot.profile].compute_slices;
}

/* Marks who is in whose way, and what each service would have to give. */
static void mark_useful(struct schedule *schedule)
{
    for (size_t s = 0; s < schedule->transition->services.count; s++)
        schedule->useful_rps[s] = 0;
    for (size_t i = 0; i < schedule->tenants.count; i++) {
        struct tenant *tenant = &schedule->tenants.data[i];
        tenant->useful = tenant->kind == TENANT_CHANGING && tenant->after.service >= 0;
    }
    for (size_t i = 0; i < schedule->arrivals.count; i++) {
        const struct arrival *arrival = &schedule->arrivals.data[i];
        if (arrival->state != ARRIVAL_WAITING)
            continue;
        const struct schedule_gpu *gpu = &schedule->gpus.data[arrival->slot.gpu];
        bool by_span = schedule_has_overlap(schedule, arrival);
        for (size_t j = 0; j < gpu->tenants.count; j++) {
            struct tenant *tenant = &schedule->tenants.data[gpu->tenants.data[j]];
            tenant->useful |= schedule_blocks(schedule, tenant, arrival, by_span);
        }
    }
    for (size_t i = 0; i < schedule->tenants.count; i++) {
        const struct tenant *tenant = &schedule->tenants.data[i];
        if (tenant->useful && tenant->state == TENANT_THERE && tenant->serving.service >= 0)
            schedule->useful_rps[tenant->serving.service] += tenant->serving.rate_rps;
    }
}

static double gain_of(const struct schedule *schedule, struct slot slot, struct serving serving)
{
    const struct schedule_options *options = schedule->options;
    if (serving.service < 0)
        return 0;
    bool waits = !has_room(schedule, serving.service, schedule->useful_rps[serving.service], 0);
    return options->gain_weight * slices_of(schedule, slot) +
           (waits ? options->need_weight : 0);
}

static void add_group(struct schedule *schedule, int arrival, int tenant, double score)
{
    assert(arrival >= 0 || tenant >= 0);
    double noise = schedule->options->noise > 0
                       ? rng_uniform(&schedule->rng, 0, schedule->options->noise)
                       : 0;
    vec_add(&schedule->groups, ((struct group){arrival, tenant, score + noise}));
}

static void add_arrival_group(struct schedule *schedule, int index)
{
    assert(index >= 0 && (size_t)index < schedule->arrivals.count);
    const struct arrival *arrival = &schedule->arrivals.data[index];
    const struct schedule_gpu *gpu = &schedule->gpus.data[arrival->slot.gpu];
    bool by_span = schedule_has_overlap(schedule, arrival);
    double cost = 0;
    int blockers = 0;
    for (size_t j = 0; j < gpu->tenants.count; j++) {
        const struct tenant *tenant = &schedule->tenants.data[gpu->tenants.data[j]];
        if (tenant->state != TENANT_THERE ||
            !schedule_blocks(schedule, tenant, arrival, by_span))
            continue;
        blockers++;
        cost += tenant->serving.service >= 0 ? slices_of(schedule, tenant->slot) : 0;
    }
    if (blockers > 0)
        add_group(schedule, index, -1,
                  schedule->options->cost_weight * cost -
                      gain_of(schedule, arrival->slot, arrival->serving));
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *left = a, *right = b;
    if (left->score != right->score)
        return left->score < right->score ? -1 : 1;
    if (left->arrival != right->arrival)
        return left->arrival - right->arrival;
    return left->tenant - right->tenant;
}

void schedule_collect_groups(struct schedule *schedule)
{
    mark_useful(schedule);
    vec_clear(&schedule->groups);
    for (size_t i = 0; i < schedule->arrivals.count; i++)
        if (schedule->arrivals.data[i].state == ARRIVAL_WAITING)
            add_arrival_group(schedule, (int)i);
    for (size_t i = 0; i < schedule->tenants.count; i++) {
        const struct tenant *tenant = &schedule->tenants.data[i];
        if (tenant->kind == TENANT_CHANGING && tenant->state == TENANT_THERE && tenant->useful)
            add_group(schedule, -1, (int)i,
                      schedule->options->cost_weight * slices_of(schedule, tenant->slot) -
                          gain_of(schedule, tenant->slot, tenant->after));
    }
    if (schedule->groups.count > 0)
        qsort(schedule->groups.data, schedule->groups.count, sizeof(struct group),
              compare_groups);
}

/* Releases all in the arrival's way, or none. */
static void release_blockers(struct schedule *schedule, const struct arrival *arrival)
{
    const struct schedule_gpu *gpu = &schedule->gpus.data[arrival->slot.gpu];
    bool by_span = schedule_has_overlap(schedule, arrival);
    int blockers[2 * MIG_INSTANCES_MAX], count = 0, taken = 0;
    for (size_t j = 0; j < gpu->tenants.count; j++) {
        const struct tenant *tenant = &schedule->tenants.data[gpu->tenants.data[j]];
        if (tenant->state == TENANT_COMING &&
            schedule_blocks(schedule, tenant, arrival, by_span))
            return;
        if (tenant->state != TENANT_THERE ||
            !schedule_blocks(schedule, tenant, arrival, by_span))
            continue;
        assert(count < 2 * MIG_INSTANCES_MAX);
        blockers[count++] = gpu->tenants.data[j];
    }
    for (; taken < count; taken++) {
        const struct serving *serving = &schedule->tenants.data[blockers[taken]].serving;
        if (!has_room(schedule, serving->service, serving->rate_rps, 0))
            break;
        if (serving->service >= 0)
            schedule->slack_rps[serving->service] -= serving->rate_rps;
    }
    for (int i = 0; i < taken; i++) {
        const struct serving *serving = &schedule->tenants.data[blockers[i]].serving;
        if (serving->service >= 0)
            schedule->slack_rps[serving->service] += serving->rate_rps;
    }
    for (int i = 0; taken == count && i < count; i++)
        schedule_release(schedule, blockers[i]);
}

static void release_groups(struct schedule *schedule)
{
    schedule_collect_groups(schedule);
    for (size_t i = 0; i < schedule->groups.count; i++) {
        const struct group *group = &schedule->groups.data[i];
        if (group->arrival >= 0) {
            release_blockers(schedule, &schedule->arrivals.data[group->arrival]);
            continue;
        }
        const struct tenant *tenant = &schedule->tenants.data[group->tenant];
        if (has_room(schedule, tenant->serving.service, tenant->serving.rate_rps, 0))
            schedule_release(schedule, group->tenant);
    }
}

static void release_rest(struct schedule *schedule)
{
    mark_useful(schedule);
    for (size_t i = 0; i < schedule->tenants.count; i++) {
        const struct tenant *tenant = &schedule->tenants.data[i];
        int service = tenant->serving.service;
        if (tenant->state != TENANT_THERE || (tenant->useful && service >= 0))
            continue;
        bool keep =
            service >= 0 && (schedule->options->reserve || tenant->kind == TENANT_TEMPORARY);
        if (has_room(schedule, service, tenant->serving.rate_rps,
                     keep ? schedule->useful_rps[service] : 0))
            schedule_release(schedule, (int)i);
    }
}

static void finish_tenant(struct schedule *schedule, struct tenant *tenant)
{
    assert(tenant->state != TENANT_GONE && schedule->open > 0);
    tenant->state = TENANT_GONE;
    schedule->open--;
}

static void started(struct schedule *schedule, struct serving serving, int action)
{
    assert(action >= 0 && serving.service >= 0);
    builder_ready(&schedule->builder, action);
    schedule->slack_rps[serving.service] += serving.rate_rps;
}

/* The instance is there: its process may start, if it has one. */
static void arrival_created(struct schedule *schedule, int index)
{
    assert(schedule->arrivals.data[index].state == ARRIVAL_BEGUN);
    struct arrival *arrival = &schedule->arrivals.data[index];
    if (arrival->serving.service < 0) {
        arrival->state = ARRIVAL_DONE;
        schedule->open--;
        return;
    }
    arrival->action =
        builder_start(&schedule->builder, arrival->slot, arrival->serving, arrival->action);
    schedule_push(schedule, schedule_seconds(schedule, arrival->action), EVENT_ARRIVAL_STARTED,
                  index);
}

static void tenant_stopped(struct schedule *schedule, int index)
{
    assert(schedule->tenants.data[index].state == TENANT_RELEASED);
    struct tenant *tenant = &schedule->tenants.data[index];
    if (tenant->kind != TENANT_CHANGING) {
        tenant->action = builder_delete(&schedule->builder, tenant->slot, tenant->action);
        schedule_push(schedule, schedule_seconds(schedule, tenant->action),
                      EVENT_TENANT_DELETED, index);
    } else if (tenant->after.service < 0) {
        finish_tenant(schedule, tenant);
    } else {
        tenant->action =
            builder_start(&schedule->builder, tenant->slot, tenant->after, tenant->action);
        schedule_push(schedule, schedule_seconds(schedule, tenant->action),
                      EVENT_TENANT_STARTED, index);
    }
}

static void tenant_started(struct schedule *schedule, int index)
{
    assert(index >= 0 && (size_t)index < schedule->tenants.count);
    struct tenant *tenant = &schedule->tenants.data[index];
    bool temporary = tenant->kind == TENANT_TEMPORARY;
    started(schedule, temporary ? tenant->serving : tenant->after, tenant->action);
    if (temporary)
        tenant->state = TENANT_THERE;
    else
        finish_tenant(schedule, tenant);
}

static void tenant_deleted(struct schedule *schedule, int index)
{
    struct tenant *tenant = &schedule->tenants.data[index];
    struct mig_layout *layout = &schedule->gpus.data[tenant->slot.gpu].layout;
    int at = 0;
    while (layout->instances[at].profile != tenant->slot.profile ||
           layout->instances[at].start != tenant->slot.start)
        at++;
    assert(at < layout->count);
    mig_layout_remove(layout, at);
    finish_tenant(schedule, tenant);
}

static void temporary_created(struct schedule *schedule, int index)
{
    assert(index >= 0 && (size_t)index < schedule->tenants.count);
    struct tenant *tenant = &schedule->tenants.data[index];
    tenant->action =
        builder_start(&schedule->builder, tenant->slot, tenant->serving, tenant->action);
    schedule_push(schedule, schedule_seconds(schedule, tenant->action), EVENT_TENANT_STARTED,
                  index);
}

static void apply(struct schedule *schedule, const struct event *event)
{
    switch (event->kind) {
    case EVENT_ARRIVAL_CREATED:
        arrival_created(schedule, event->index);
        break;
    case EVENT_ARRIVAL_STARTED: {
        struct arrival *arrival = &schedule->arrivals.data[event->index];
        started(schedule, arrival->serving, arrival->action);
        arrival->state = ARRIVAL_DONE;
        schedule->open--;
        break;
    }
    case EVENT_TEMPORARY_CREATED:
        temporary_created(schedule, event->index);
        break;
    case EVENT_TENANT_STARTED:
        tenant_started(schedule, event->index);
        break;
    case EVENT_TENANT_STOPPED:
        tenant_stopped(schedule, event->index);
        break;
    case EVENT_TENANT_DELETED:
        tenant_deleted(schedule, event->index);
        break;
    }
}

static void decide(struct schedule *schedule)
{
    create_arrivals(schedule);
    release_groups(schedule);
    release_rest(schedule);
}

static void add_tenant(struct schedule *schedule, const struct work_item *item,
                       enum tenant_kind kind)
{
    assert(item->slot.gpu >= 0 && (size_t)item->slot.gpu < schedule->gpus.count);
    struct tenant tenant = {.kind = kind,
                            .state = TENANT_THERE,
                            .slot = item->slot,
                            .serving = item->before,
                            .after = item->after,
                            .action = -1};
    int index = (int)schedule->tenants.count;
    vec_add(&schedule->tenants, tenant);
    vec_add(&schedule->gpus.data[item->slot.gpu].tenants, index);
    schedule->open++;
    if (kind != TENANT_CHANGING || item->before.service >= 0)
        return;
    /* Nothing to drain: the new process may start at once. */
    schedule->tenants.data[index].state = TENANT_RELEASED;
    tenant_stopped(schedule, index);
}

static void add_arrival(struct schedule *schedule, const struct work_item *item)
{
    assert(item->slot.gpu >= 0 && (size_t)item->slot.gpu < schedule->gpus.count);
    struct arrival arrival = {ARRIVAL_WAITING, item->slot, item->after, -1};
    vec_add(&schedule->gpus.data[item->slot.gpu].arrivals, (int)schedule->arrivals.count);
    vec_add(&schedule->arrivals, arrival);
    schedule->open++;
}

static void schedule_init(struct schedule *schedule, const struct work *work,
                          const struct schedule_options *options)
{
    assert(work && options && options->times);
    size_t services = work->transition->services.count;
    *schedule = (struct schedule){.work = work,
                                  .options = options,
                                  .transition = work->transition,
                                  .rng = rng_seed(options->seed),
                                  .slack_rps = xcalloc(services, sizeof(long double)),
                                  .useful_rps = xcalloc(services, sizeof(double)),
                                  .promised_rps = xcalloc(services, sizeof(double)),
                                  .no_hole = xcalloc(services, sizeof(bool))};
    builder_init(&schedule->builder, work, options->times);
    schedule->builder.group = GROUP_REPARTITION;
    for (size_t s = 0; s < services; s++)
        schedule->slack_rps[s] =
            fmaxl(work->services[s].capacity_rps - work->services[s].floor_rps, 0);
    for (size_t g = 0; g < work->layouts.count; g++)
        ((struct schedule_gpu *)vec_push(&schedule->gpus))->layout = work->layouts.data[g];
    for (size_t i = 0; i < work->leaving.count; i++)
        add_tenant(schedule, &work->leaving.data[i], TENANT_LEAVING);
    for (size_t i = 0; i < work->changing.count; i++)
        add_tenant(schedule, &work->changing.data[i], TENANT_CHANGING);
    for (size_t i = 0; i < work->coming.count; i++)
        add_arrival(schedule, &work->coming.data[i]);
}

static void schedule_done(struct schedule *schedule)
{
    for (size_t g = 0; g < schedule->gpus.count; g++) {
        vec_done(&schedule->gpus.data[g].tenants);
        vec_done(&schedule->gpus.data[g].arrivals);
    }
    vec_done(&schedule->gpus);
    vec_done(&schedule->events);
    vec_done(&schedule->tenants);
    vec_done(&schedule->arrivals);
    vec_done(&schedule->groups);
    builder_done(&schedule->builder);
    free(schedule->slack_rps);
    free(schedule->useful_rps);
    free(schedule->promised_rps);
    free(schedule->no_hole);
}

int schedule_run(const struct work *work, const struct schedule_options *options,
                 int *ret_spares, struct error *err)
{
    assert(ret_spares);
    struct schedule schedule;
    int rc = 0;
    schedule_init(&schedule, work, options);
    decide(&schedule);
    while (rc == 0 && schedule.open > 0) {
        if (schedule.events.count == 0) {
            rc = schedule_unblock(&schedule, err);
            continue;
        }
        double now = schedule.events.data[0].at_seconds;
        schedule.now_seconds = now;
        while (schedule.events.count > 0 && schedule.events.data[0].at_seconds <= now) {
            struct event event = pop(&schedule);
            apply(&schedule, &event);
        }
        decide(&schedule);
    }
    if (rc == 0)
        *ret_spares = schedule.spares;
    schedule_done(&schedule);
    return rc;
}
