/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/builder.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const double DUST = 1e-13; /* of a rate: far below the tolerance of work_fits() */
enum { OCCUPANTS_TRACKED = 128, OCCUPANTS_TRIED = 20 };

void builder_init(struct builder *builder, const struct work *work,
                  const struct action_times *times)
{
    assert(work && times && work->services);
    const struct transition *transition = work->transition;
    *builder = (struct builder){.transition = work->transition, .times = times};
    builder->services = xcalloc(transition->services.count, sizeof *builder->services);
    for (size_t s = 0; s < transition->services.count; s++)
        builder->services[s].slack_rps =
            fmaxl(work->services[s].capacity_rps - work->services[s].floor_rps, 0);
    for (size_t g = 0; g < work->layouts.count; g++) {
        struct builder_gpu *gpu = vec_push(&builder->gpus);
        const struct mig_layout *layout = &work->layouts.data[g];
        for (int i = 0; i < layout->count; i++) {
            struct occupant occupant = {
                layout->instances[i].profile, layout->instances[i].start, -1, {0}};
            vec_add(&gpu->occupants, occupant);
        }
    }
}

void builder_done(struct builder *builder)
{
    for (size_t g = 0; g < builder->gpus.count; g++)
        vec_done(&builder->gpus.data[g].occupants);
    vec_done(&builder->gpus);
    for (size_t s = 0; builder->services && s < builder->transition->services.count; s++)
        vec_done(&builder->services[s].ready);
    free(builder->services);
    vec_done(&builder->more);
    vec_done(&builder->counted);
    *builder = (struct builder){0};
}

static struct builder_gpu *gpu_of(struct builder *builder, int gpu)
{
    assert(gpu >= 0);
    while ((int)builder->gpus.count <= gpu)
        (void)vec_push(&builder->gpus); /* borrowed meanwhile */
    return &builder->gpus.data[gpu];
}

void builder_also_after(struct builder *builder, int action)
{
    assert(action >= -1 && action < (int)builder->transition->actions.count);
    if (action >= 0)
        vec_add(&builder->more, action);
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Appends an action that waits for the actions gathered in `more`. */
static int add_action(struct builder *builder, enum action_kind kind, struct slot slot,
                      struct serving serving)
{
    assert(slot.gpu >= 0 && (size_t)slot.gpu < builder->transition->gpus.count);
    assert(serving.service < (int)builder->transition->services.count);
    struct transition *transition = builder->transition;
    int index = (int)transition->actions.count;
    struct transition_action action = {.id = "",
                                       .kind = kind,
                                       .group = builder->group,
                                       .gpu = slot.gpu,
                                       .profile = slot.profile,
                                       .start = slot.start,
                                       .service = serving.service,
                                       .batch = serving.batch,
                                       .procs = serving.procs,
                                       .rate_rps = serving.rate_rps};
    const char *name =
        serving.service < 0 ? NULL : transition->services.data[serving.service].name;
    action.seconds = action_times_seconds(builder->times, kind, name);
    if (builder->more.count > 0)
        qsort(builder->more.data, builder->more.count, sizeof(int), compare_ints);
    for (size_t i = 0; i < builder->more.count; i++) {
        assert(builder->more.data[i] < index);
        if (i == 0 || builder->more.data[i - 1] != builder->more.data[i])
            vec_add(&action.after, builder->more.data[i]);
    }
    vec_clear(&builder->more);
    vec_add(&transition->actions, action);
    return index;
}

static uint32_t span_of(const struct mig_board *board, const struct occupant *occupant)
{
    struct mig_instance instance = {(int8_t)occupant->profile, (int8_t)occupant->start};
    return mig_instance_span(board, instance);
}

static bool is_before(const struct occupant *newer, size_t index)
{
    return index < OCCUPANTS_TRACKED && newer->before[index / 64] >> (index % 64) & 1;
}

/* `newer` comes after occupant `index`, and so after all that the latter's creation waited
 * for. */
static void come_after(const struct builder_gpu *gpu, struct occupant *newer, size_t index)
{
    const struct occupant *older = &gpu->occupants.data[index];
    assert(newer != older);
    assert(older->delete >= 0);
    if (index < OCCUPANTS_TRACKED)
        newer->before[index / 64] |= UINT64_C(1) << (index % 64);
    newer->before[0] |= older->before[0];
    newer->before[1] |= older->before[1];
}

static int engines_of(const struct mig_board *board, int profile, int engine)
{
    assert(profile >= 0 && profile < board->profile_count);
    int engines = board->profiles[profile].engines[engine];
    return engines == MIG_UNKNOWN ? 0 : engines;
}

/* What the limits by count are about. */
struct tally {
    int instances, alike, engines[MIG_ENGINE_COUNT];
};

static struct tally tally_with(struct tally tally, const struct mig_board *board, int profile,
                               int newer_profile)
{
    tally.instances++;
    tally.alike += profile == newer_profile;
    for (int e = 0; e < MIG_ENGINE_COUNT; e++)
        tally.engines[e] += engines_of(board, profile, e);
    return tally;
}

static bool tally_holds(const struct tally *tally, const struct mig_board *board,
                        int newer_profile)
{
    bool hold = tally->instances <= board->max_instances &&
                tally->alike <= board->profiles[newer_profile].max_instances;
    for (int e = 0; e < MIG_ENGINE_COUNT; e++)
        hold &= board->engine_limits[e] == MIG_UNKNOWN ||
                tally->engines[e] <= board->engine_limits[e];
    return hold;
}

/* Whether some of the occupants from `next` on, with those chosen, may all be there together
 * with `newer` and break a limit: no two of them, in the order of creation, come after one
 * another. */
static bool may_exceed(const struct mig_board *board, const struct builder_gpu *gpu,
                       const struct occupant *newer, size_t next, uint64_t chosen,
                       struct tally tally)
{
    if (!tally_holds(&tally, board, newer->profile))
        return true;
    for (size_t i = next; i < gpu->occupants.count; i++) {
        const struct occupant *occupant = &gpu->occupants.data[i];
        if (is_before(newer, i) || (occupant->before[0] & chosen))
            continue;
        if (may_exceed(board, gpu, newer, i + 1, chosen | UINT64_C(1) << i,
                       tally_with(tally, board, occupant->profile, newer->profile)))
            return true;
    }
    return false;
}

/* Whether the limits by count hold in every state that `newer` may be in; where occupants are
 * many, as if all that it does not wait for were there. */
static bool counts_hold(const struct mig_board *board, const struct builder_gpu *gpu,
                        const struct occupant *newer)
{
    assert(newer->profile >= 0 && newer->profile < board->profile_count);
    struct tally alone = tally_with((struct tally){0}, board, newer->profile, newer->profile);
    struct tally all = alone;
    for (size_t i = 0; i < gpu->occupants.count; i++)
        if (!is_before(newer, i))
            all = tally_with(all, board, gpu->occupants.data[i].profile, newer->profile);
    if (tally_holds(&all, board, newer->profile))
        return true;
    return gpu->occupants.count <= OCCUPANTS_TRIED &&
           !may_exceed(board, gpu, newer, 0, 0, alone);
}

/* Deletions beyond those that free memory units, until the limits by count hold; then without
 * those that were not needed for that, the latest first. */
static void wait_for_counts(struct builder *builder, const struct mig_board *board,
                            const struct builder_gpu *gpu, struct occupant *newer)
{
    const struct occupant spans_alone = *newer;
    struct occupant trial = *newer;
    vec_clear(&builder->counted);
    for (size_t i = 0; i < gpu->occupants.count && !counts_hold(board, gpu, &trial); i++) {
        if (gpu->occupants.data[i].delete < 0 || is_before(&trial, i))
            continue;
        come_after(gpu, &trial, i);
        vec_add(&builder->counted, i);
    }
    for (size_t k = builder->counted.count; k-- > 0;) {
        trial = spans_alone;
        for (size_t i = 0; i < builder->counted.count; i++)
            if (i != k)
                come_after(gpu, &trial, builder->counted.data[i]);
        if (!counts_hold(board, gpu, &trial))
            continue;
        builder->counted.data[k] = builder->counted.data[--builder->counted.count];
    }
    for (size_t i = 0; i < builder->counted.count; i++) {
        come_after(gpu, newer, builder->counted.data[i]);
        builder_also_after(builder, gpu->occupants.data[builder->counted.data[i]].delete);
    }
}

int builder_create(struct builder *builder, struct slot slot)
{
    struct builder_gpu *gpu = gpu_of(builder, slot.gpu);
    const struct mig_board *board = builder->transition->gpus.data[slot.gpu].board;
    struct occupant newer = {slot.profile, slot.start, -1, {0}};
    assert(slot.profile >= 0 && slot.profile < board->profile_count);
    uint32_t open = slot_span(builder->transition, slot);
    assert(open);
    for (size_t i = gpu->occupants.count; i-- > 0 && open;) {
        uint32_t span = span_of(board, &gpu->occupants.data[i]);
        if (!(span & open))
            continue;
        come_after(gpu, &newer, i);
        builder_also_after(builder, gpu->occupants.data[i].delete);
        open &= ~span;
    }
    wait_for_counts(builder, board, gpu, &newer);
    vec_add(&gpu->occupants, newer);
    return add_action(builder, ACTION_CREATE_INSTANCE, slot, (struct serving){.service = -1});
}

int builder_start(struct builder *builder, struct slot slot, struct serving serving,
                  int previous)
{
    assert(serving.service >= 0);
    builder_also_after(builder, previous);
    return add_action(builder, ACTION_START, slot, serving);
}

void builder_ready(struct builder *builder, int start)
{
    assert(start >= 0 && (size_t)start < builder->transition->actions.count);
    const struct transition_action *action = &builder->transition->actions.data[start];
    struct builder_service *service = &builder->services[action->service];
    assert(action->kind == ACTION_START);
    if (service->spent == service->ready.count)
        service->left_rps = action->rate_rps;
    vec_add(&service->ready, start);
}

/* Takes what the drain needs from the slack, then from starts in the order of readiness. What
 * is left of either by rounding is left out: nobody need wait for it. */
static void spend(struct builder *builder, struct builder_service *service, double rate_rps,
                  double floor_rps)
{
    assert(rate_rps >= 0 && service->slack_rps >= 0);
    /* What may be done without is spent first: it needs no start to be waited for. */
    double scale = fmax(floor_rps, rate_rps), need = rate_rps;
    if (service->slack_rps > DUST * scale)
        need = (double)(rate_rps - service->slack_rps);
    service->slack_rps = fmaxl(service->slack_rps - rate_rps, 0);
    while (!work_fits(need, 0, scale)) {
        assert(service->spent < service->ready.count);
        builder_also_after(builder, service->ready.data[service->spent]);
        if (service->left_rps - need > DUST * scale) {
            service->left_rps -= need;
            return;
        }
        need -= service->left_rps;
        if (++service->spent < service->ready.count)
            service->left_rps =
                builder->transition->actions.data[service->ready.data[service->spent]].rate_rps;
    }
}

int builder_drain(struct builder *builder, struct slot slot, struct serving serving,
                  int previous)
{
    assert(serving.service >= 0);
    builder_also_after(builder, previous);
    spend(builder, &builder->services[serving.service], serving.rate_rps,
          builder->transition->services.data[serving.service].floor_rps);
    return add_action(builder, ACTION_DRAIN, slot, serving);
}

int builder_stop(struct builder *builder, int drain)
{
    assert(drain >= 0 && (size_t)drain < builder->transition->actions.count);
    const struct transition_action *action = &builder->transition->actions.data[drain];
    struct slot slot = {action->gpu, action->profile, action->start};
    struct serving serving = {action->service, action->batch, action->procs, action->rate_rps};
    assert(action->kind == ACTION_DRAIN);
    builder_also_after(builder, drain);
    return add_action(builder, ACTION_STOP, slot, serving);
}

int builder_delete(struct builder *builder, struct slot slot, int previous)
{
    struct builder_gpu *gpu = gpu_of(builder, slot.gpu);
    builder_also_after(builder, previous);
    int action =
        add_action(builder, ACTION_DELETE_INSTANCE, slot, (struct serving){.service = -1});
    /* The newest occupant of the slot: older ones there are deleted already. */
    for (size_t i = gpu->occupants.count; i-- > 0;) {
        struct occupant *occupant = &gpu->occupants.data[i];
        if (occupant->profile == slot.profile && occupant->start == slot.start) {
            assert(occupant->delete < 0);
            occupant->delete = action;
            break;
        }
    }
    return action;
}
