/* SPDX-License-Identifier: Apache-2.0
 *
 * A schedule in which nothing moves: every group that is left needs some service to do
 * without capacity that it has not got. In this order:
 *
 *   1. temporary instances in holes, for the group that needs the fewest compute slices of
 *      them, and (as an option) for all others that holes are left for;
 *   2. an instance that its service can do without makes a hole, although that alone lets
 *      nothing come;
 *   3. a GPU is borrowed.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "transition/schedule.h"

enum { TEMPORARIES_PER_ITEM = 4, NEEDS_MAX = 2 * MIG_INSTANCES_MAX, HOLES_MAX = 64 };

struct need {
    int service;
    double rate_rps; /* of the tenants that go */
    double lack_rps; /* beyond what is ready or promised */
};

struct needs {
    int count;
    struct need list[NEEDS_MAX];
};

/* A place for a temporary instance. */
struct hole {
    const struct work_option *option;
    struct slot slot;
};

static void add_need(const struct schedule *schedule, struct needs *needs,
                     const struct tenant *tenant)
{
    assert(tenant->state == TENANT_THERE);
    int service = tenant->serving.service, i = 0;
    if (service < 0)
        return;
    while (i < needs->count && needs->list[i].service != service)
        i++;
    if (i == needs->count) {
        assert(i < NEEDS_MAX);
        needs->list[needs->count++] = (struct need){.service = service};
    }
    struct need *need = &needs->list[i];
    need->rate_rps += tenant->serving.rate_rps;
    double room = (double)schedule->slack_rps[service] + schedule->promised_rps[service];
    need->lack_rps =
        work_fits(need->rate_rps, room, schedule->work->services[service].floor_rps)
            ? 0
            : need->rate_rps - room;
}

static struct needs needs_of(const struct schedule *schedule, const struct group *group)
{
    assert(group->arrival >= 0 || group->tenant >= 0);
    struct needs needs = {0};
    if (group->arrival < 0) {
        add_need(schedule, &needs, &schedule->tenants.data[group->tenant]);
        return needs;
    }
    const struct arrival *arrival = &schedule->arrivals.data[group->arrival];
    const struct schedule_gpu *gpu = &schedule->gpus.data[arrival->slot.gpu];
    bool by_span = schedule_has_overlap(schedule, arrival);
    for (size_t j = 0; j < gpu->tenants.count; j++) {
        const struct tenant *tenant = &schedule->tenants.data[gpu->tenants.data[j]];
        if (tenant->state == TENANT_THERE &&
            schedule_blocks(schedule, tenant, arrival, by_span))
            add_need(schedule, &needs, tenant);
    }
    return needs;
}

/* Compute slices of temporary instances that the needs would take at the best rates. */
static double slices_needed(const struct schedule *schedule, const struct needs *needs)
{
    double slices = 0;
    for (int i = 0; i < needs->count; i++) {
        const struct work_service *service = &schedule->work->services[needs->list[i].service];
        double best = 0;
        for (size_t k = 0; k < service->options.count; k++) {
            const struct work_option *option = &service->options.data[k];
            best = fmax(best, option->serving.rate_rps /
                                  option->board->profiles[option->profile].compute_slices);
        }
        if (needs->list[i].lack_rps > 0)
            slices += best > 0 ? needs->list[i].lack_rps / best : INFINITY;
    }
    assert(slices >= 0);
    return slices;
}

/* Memory units of a GPU that something that comes is waiting for. */
static uint32_t wanted_units(const struct schedule *schedule, int gpu)
{
    assert(gpu >= 0 && (size_t)gpu < schedule->gpus.count);
    const struct schedule_gpu *here = &schedule->gpus.data[gpu];
    uint32_t units = 0;
    for (size_t i = 0; i < here->arrivals.count; i++) {
        const struct arrival *arrival = &schedule->arrivals.data[here->arrivals.data[i]];
        if (arrival->state == ARRIVAL_WAITING)
            units |= slot_span(schedule->transition, arrival->slot);
    }
    return units;
}

/* How bad a hole is: in the way of something that comes, then on an emptier GPU. */
static int hole_badness(const struct schedule *schedule, struct slot slot)
{
    assert(slot.gpu >= 0 && (size_t)slot.gpu < schedule->gpus.count);
    const struct schedule_gpu *gpu = &schedule->gpus.data[slot.gpu];
    const struct mig_board *board = schedule->transition->gpus.data[slot.gpu].board;
    bool in_way = slot_span(schedule->transition, slot) & wanted_units(schedule, slot.gpu);
    int taken = __builtin_popcount(mig_layout_span(board, &gpu->layout));
    return (in_way ? 100 : 0) + board->memory_units - taken;
}

/* The least bad hole for an option outside `barred` units of one GPU; false when none. */
static bool find_place(const struct schedule *schedule, const struct work_option *option,
                       const struct arrival *barred, struct slot *ret_slot)
{
    assert(option->serving.rate_rps > 0);
    int best = INT32_MAX;
    const struct mig_profile *profile = &option->board->profiles[option->profile];
    for (size_t g = 0; g < schedule->gpus.count; g++) {
        const struct mig_layout *layout = &schedule->gpus.data[g].layout;
        if (schedule->transition->gpus.data[g].board != option->board)
            continue;
        int taken = __builtin_popcount(mig_layout_span(option->board, layout));
        if (taken + profile->placement_size > option->board->memory_units)
            continue;
        for (int start = 0; start < option->board->memory_units; start++) {
            struct slot slot = {(int)g, option->profile, start};
            if (!(profile->starts >> start & 1))
                continue;
            struct mig_instance instance = {(int8_t)option->profile, (int8_t)start};
            if (barred && barred->slot.gpu == (int)g &&
                (slot_span(schedule->transition, slot) &
                 slot_span(schedule->transition, barred->slot)))
                continue;
            if (!mig_layout_can_add(option->board, layout, instance))
                continue;
            int badness = hole_badness(schedule, slot);
            if (badness < best) {
                best = badness;
                *ret_slot = slot;
            }
        }
    }
    return best < INT32_MAX;
}

/* The smallest option that covers the lack, else the one with the highest rate. */
static bool find_hole(const struct schedule *schedule, int service, double lack_rps,
                      const struct arrival *barred, struct hole *ret_hole)
{
    assert(service >= 0 && ret_hole);
    const struct work_service *here = &schedule->work->services[service];
    const struct work_option *best = NULL;
    for (size_t k = 0; k < here->options.count; k++) {
        const struct work_option *option = &here->options.data[k];
        struct slot slot;
        if (best && option->serving.rate_rps <= best->serving.rate_rps)
            continue;
        if (!find_place(schedule, option, barred, &slot))
            continue;
        best = option;
        *ret_hole = (struct hole){option, slot};
        if (work_fits(lack_rps, option->serving.rate_rps, here->floor_rps))
            break; /* options come smallest first */
    }
    return best;
}

static struct mig_instance instance_in(const struct hole *hole)
{
    return (struct mig_instance){(int8_t)hole->slot.profile, (int8_t)hole->slot.start};
}

static void fill_hole(struct schedule *schedule, const struct hole *hole)
{
    assert(hole->option->board == schedule->transition->gpus.data[hole->slot.gpu].board);
    mig_layout_add(hole->option->board, &schedule->gpus.data[hole->slot.gpu].layout,
                   instance_in(hole));
}

static void clear_hole(struct schedule *schedule, const struct hole *hole)
{
    assert(hole->slot.gpu >= 0 && (size_t)hole->slot.gpu < schedule->gpus.count);
    struct mig_layout *layout = &schedule->gpus.data[hole->slot.gpu].layout;
    int at = 0;
    while (layout->instances[at].profile != hole->slot.profile ||
           layout->instances[at].start != hole->slot.start)
        at++;
    assert(at < layout->count);
    mig_layout_remove(layout, at);
}

static void create_temporary(struct schedule *schedule, const struct hole *hole)
{
    assert(hole->option->serving.service >= 0 && hole->option->serving.rate_rps > 0);
    struct tenant tenant = {.kind = TENANT_TEMPORARY,
                            .state = TENANT_COMING,
                            .slot = hole->slot,
                            .serving = hole->option->serving,
                            .after = {.service = -1}};
    int index = (int)schedule->tenants.count;
    tenant.action = builder_create(&schedule->builder, hole->slot);
    vec_add(&schedule->tenants, tenant);
    vec_add(&schedule->gpus.data[hole->slot.gpu].tenants, index);
    schedule->open++;
    schedule->temporaries++;
    schedule_push(schedule, schedule_seconds(schedule, tenant.action), EVENT_TEMPORARY_CREATED,
                  index);
}

/* Finds holes for all that the group lacks and fills them, or changes nothing. */
static bool help_group(struct schedule *schedule, const struct group *group)
{
    struct needs needs = needs_of(schedule, group);
    struct hole holes[HOLES_MAX];
    int count = 0;
    bool helped = true;
    const struct arrival *barred =
        group->arrival < 0 ? NULL : &schedule->arrivals.data[group->arrival];
    for (int i = 0; i < needs.count && helped; i++) {
        double lack = needs.list[i].lack_rps;
        int service = needs.list[i].service;
        double floor_rps = schedule->work->services[service].floor_rps;
        helped = !(lack > 0 && schedule->no_hole[service]);
        while (helped && !work_fits(lack, 0, floor_rps)) {
            helped =
                count < HOLES_MAX && find_hole(schedule, service, lack, barred, &holes[count]);
            if (!helped) {
                /* Only a lack looked for in full says that no hole is left; part of one may
                 * have filled the last. */
                schedule->no_hole[service] |= lack >= needs.list[i].lack_rps;
                break;
            }
            fill_hole(schedule, &holes[count]);
            lack -= holes[count++].option->serving.rate_rps;
        }
    }
    if (!helped) {
        while (count > 0)
            clear_hole(schedule, &holes[--count]);
        return false;
    }
    for (int i = 0; i < count; i++) {
        schedule->promised_rps[holes[i].option->serving.service] +=
            holes[i].option->serving.rate_rps;
        create_temporary(schedule, &holes[i]);
    }
    for (int i = 0; i < needs.count; i++)
        schedule->promised_rps[needs.list[i].service] -= needs.list[i].rate_rps;
    assert(count <= HOLES_MAX);
    return count > 0;
}

static int compare_scores(const void *a, const void *b)
{
    const struct group *left = a, *right = b;
    if (left->score != right->score)
        return left->score < right->score ? -1 : 1;
    if (left->arrival != right->arrival)
        return left->arrival - right->arrival;
    return left->tenant - right->tenant;
}

/* The groups, those first that lack the least. */
static void rank_groups(struct schedule *schedule)
{
    size_t services = schedule->transition->services.count;
    if (services > 0)
        memset(schedule->promised_rps, 0, services * sizeof(double));
    schedule_collect_groups(schedule);
    for (size_t i = 0; i < schedule->groups.count; i++) {
        struct needs needs = needs_of(schedule, &schedule->groups.data[i]);
        /* The score so far breaks ties. */
        schedule->groups.data[i].score =
            slices_needed(schedule, &needs) + schedule->groups.data[i].score * 1e-3;
    }
    if (schedule->groups.count > 0)
        qsort(schedule->groups.data, schedule->groups.count, sizeof(struct group),
              compare_scores);
}

static bool help_groups(struct schedule *schedule)
{
    bool helped = false;
    size_t services = schedule->transition->services.count;
    if (services > 0)
        memset(schedule->no_hole, 0, services * sizeof(bool));
    for (size_t i = 0; i < schedule->groups.count; i++) {
        helped |= help_group(schedule, &schedule->groups.data[i]);
        if (helped && !schedule->options->many_temporaries)
            break;
    }
    return helped;
}

static bool release_anything(struct schedule *schedule)
{
    for (int useful = 0; useful < 2; useful++) {
        for (size_t i = 0; i < schedule->tenants.count; i++) {
            const struct tenant *tenant = &schedule->tenants.data[i];
            int service = tenant->serving.service;
            if (tenant->kind != TENANT_LEAVING || tenant->state != TENANT_THERE ||
                tenant->useful != useful)
                continue;
            if (service >= 0 &&
                !work_fits(tenant->serving.rate_rps, (double)schedule->slack_rps[service],
                           schedule->work->services[service].floor_rps))
                continue;
            schedule_release(schedule, (int)i);
            return true;
        }
    }
    return false;
}

/* What is in the way of the group that lacks the least. */
static int explain(const struct schedule *schedule, const struct group *group,
                   struct error *err)
{
    assert(group->arrival >= 0 || group->tenant >= 0);
    struct needs needs = needs_of(schedule, group);
    int gpu = group->arrival >= 0 ? schedule->arrivals.data[group->arrival].slot.gpu
                                  : schedule->tenants.data[group->tenant].slot.gpu;
    const struct need *need = &needs.list[0];
    for (int i = 0; i < needs.count && needs.list[i].lack_rps <= 0; i++)
        need = &needs.list[i + 1 < needs.count ? i + 1 : i];
    CLEANUP(str_done) struct str slot = STR_EMPTY;
    slot_text(schedule->transition,
              group->arrival >= 0 ? schedule->arrivals.data[group->arrival].slot
                                  : schedule->tenants.data[group->tenant].slot,
              &slot);
    return error_set(
        err, E_NO,
        "no order exists without another GPU: %s must be freed, where service \"%s\" "
        "gives %.9g rps; it may do without %.9g, and no hole takes the rest "
        "(GPU %s)",
        slot.bytes, schedule->transition->services.data[need->service].name, need->rate_rps,
        fmax((double)schedule->slack_rps[need->service], 0),
        schedule->transition->gpus.data[gpu].id);
}

static void borrow(struct schedule *schedule, const struct group *group)
{
    struct transition *transition = schedule->transition;
    int gpu = group->arrival >= 0 ? schedule->arrivals.data[group->arrival].slot.gpu
                                  : schedule->tenants.data[group->tenant].slot.gpu;
    const char *id;
    int number = schedule->spares;
    do
        id = arena_printf(&transition->arena, "spare%d", number++);
    while (transition_find_gpu(transition, id) >= 0);
    struct transition_gpu spare = {
        .id = id, .board = transition->gpus.data[gpu].board, .node = ""};
    vec_add(&transition->gpus, spare);
    (void)vec_push(&schedule->gpus);
    assert(schedule->gpus.count == transition->gpus.count);
    schedule->spares++;
}

int schedule_unblock(struct schedule *schedule, struct error *err)
{
    int items = (int)(schedule->work->leaving.count + schedule->work->changing.count);
    rank_groups(schedule);
    bool worn_out = schedule->temporaries > TEMPORARIES_PER_ITEM * items + MIG_INSTANCES_MAX;
    if (worn_out)
        return error_set(err, E_NO, "no order was found within %d temporary instances",
                         schedule->temporaries);
    if (schedule->groups.count > 0 && help_groups(schedule))
        return 0;
    if (release_anything(schedule))
        return 0;
    /* What is left without a group waits for nothing but temporary instances to go. */
    assert(schedule->groups.count > 0);
    if (schedule->spares >= schedule->options->spares_max)
        return explain(schedule, &schedule->groups.data[0], err);
    borrow(schedule, &schedule->groups.data[0]);
    return 0;
}
