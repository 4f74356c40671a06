/* SPDX-License-Identifier: Apache-2.0
 *
 * Rollback. Taking the actions done back in turn passes the states that the transition
 * passed, in reverse, except that a process is up again before its drain is undone; capacity
 * in each is at least what it was, and no more instances are there: so this way back is safe
 * in sequence, and the builder makes it an order.
 */
#include "transition/rollback.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "transition/builder.h"
#include "transition/verify.h"
#include "transition/weaken.h"

int rollback_parse_done(const struct transition *transition, const char *ids, bool *ret_done,
                        struct error *err)
{
    assert(ids && ret_done);
    CLEANUP(free_ptr) char *copy = xstrdup(ids);
    char *rest = NULL;
    memset(ret_done, 0, transition->actions.count * sizeof *ret_done);
    for (char *id = strtok_r(copy, ", \t\n", &rest); id; id = strtok_r(NULL, ", \t\n", &rest)) {
        int action = transition_find_action(transition, id);
        if (action < 0 && strcmp(id, "-") == 0)
            continue;
        if (action < 0)
            return error_set(err, E_INPUT, "--done: \"%s\" is not an action of the transition",
                             id);
        ret_done[action] = true;
    }
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        for (size_t j = 0; ret_done[i] && j < action->after.count; j++)
            if (!ret_done[action->after.data[j]])
                return error_set(err, E_INPUT,
                                 "--done: %s is done without %s, which it waits for: no state "
                                 "that can be reached",
                                 action->id,
                                 transition->actions.data[action->after.data[j]].id);
    }
    return 0;
}

static void begin_back(const struct transition *transition, const bool *done,
                       struct transition *back)
{
    assert(transition_is_reachable(transition, done));
    transition_init(back);
    transition_state(transition, done, &back->from);
    transition_copy_plan(&transition->from, &back->to);
}

struct undo {
    const struct transition *forth; /* being taken back */
    const bool *done;
    struct builder builder;
    int *service_here; /* of forth's services: index in back */
    int *gpu_here;
    int *last; /* of each action's slot: the last undoing action there; by slot number */
    int *slot_of;
};

/* Numbers the slots: actions of one (GPU, profile, start) share a number. */
static int *number_slots(const struct transition *transition)
{
    size_t count = transition->actions.count;
    int *slot_of = xcalloc(count, sizeof *slot_of);
    for (size_t i = 0; i < count; i++) {
        const struct transition_action *a = &transition->actions.data[i];
        slot_of[i] = (int)i;
        for (size_t j = 0; j < i; j++) {
            const struct transition_action *b = &transition->actions.data[j];
            if (a->gpu == b->gpu && a->profile == b->profile && a->start == b->start) {
                slot_of[i] = slot_of[j];
                break;
            }
        }
    }
    return slot_of;
}

/* The serving that a start or drain is about, with its rate. */
static struct serving serving_of(const struct undo *undo,
                                 const struct transition_action *action)
{
    assert(action->service >= 0);
    return (struct serving){undo->service_here[action->service], action->batch, action->procs,
                            action->rate_rps};
}

static int undo_start_again(struct undo *undo, struct slot slot, struct serving serving,
                            int last)
{
    assert(serving.service >= 0);
    int start = builder_start(&undo->builder, slot, serving, last);
    builder_ready(&undo->builder, start);
    return start;
}

/* Whether the drain's instance was stopped, too. */
static bool was_stopped(const struct undo *undo, int drain)
{
    assert(undo->forth->actions.data[drain].kind == ACTION_DRAIN);
    for (size_t i = (size_t)drain + 1; i < undo->forth->actions.count; i++)
        if (undo->slot_of[i] == undo->slot_of[drain])
            return undo->done[i];
    return false;
}

static int undo_drain(struct undo *undo, int index, struct slot slot, int last)
{
    assert(index >= 0 && (size_t)index < undo->forth->actions.count);
    struct serving serving = serving_of(undo, &undo->forth->actions.data[index]),
                   drained = serving;
    if (was_stopped(undo, index))
        return last; /* started again where the stop was taken back */
    /* Its rate is gone already: taking this drain back spends nothing, and the start brings
     * it. */
    drained.rate_rps = 0;
    int drain = builder_drain(&undo->builder, slot, drained, last);
    return undo_start_again(undo, slot, serving, builder_stop(&undo->builder, drain));
}

static void undo_action(struct undo *undo, int index)
{
    assert(undo->done[index]);
    const struct transition_action *action = &undo->forth->actions.data[index];
    struct slot slot = {undo->gpu_here[action->gpu], action->profile, action->start};
    int *last = &undo->last[undo->slot_of[index]];
    switch (action->kind) {
    case ACTION_CREATE_INSTANCE:
        *last = builder_delete(&undo->builder, slot, *last);
        break;
    case ACTION_DELETE_INSTANCE:
        *last = builder_create(&undo->builder, slot);
        break;
    case ACTION_START:
        *last = builder_stop(&undo->builder, builder_drain(&undo->builder, slot,
                                                           serving_of(undo, action), *last));
        break;
    case ACTION_STOP:
        *last = undo_start_again(undo, slot, serving_of(undo, action), *last);
        break;
    case ACTION_DRAIN:
        *last = undo_drain(undo, index, slot, *last);
        break;
    case ACTION_KIND_COUNT:
        break;
    }
}

static void undo_all(const struct transition *transition, const bool *done, struct undo *undo,
                     const struct transition *back)
{
    assert(undo->gpu_here);
    size_t count = transition->actions.count;
    undo->slot_of = number_slots(transition);
    undo->last = xcalloc(count, sizeof(int));
    undo->service_here = xcalloc(transition->services.count, sizeof(int));
    memset(undo->last, 0xff, count * sizeof(int));
    for (size_t s = 0; s < transition->services.count; s++)
        undo->service_here[s] =
            transition_find_service(back, transition->services.data[s].name);
    for (size_t i = count; i-- > 0;)
        if (done[i])
            undo_action(undo, (int)i);
    free(undo->slot_of);
    free(undo->last);
    free(undo->service_here);
    free(undo->gpu_here);
}

/* Where each GPU of the transition is on the way back. One that is empty in the state, and so
 * not in it, comes as a borrowed one: it may be needed on the way. */
static int *find_gpus(const struct transition *transition, struct transition *back)
{
    int *here = xcalloc(transition->gpus.count, sizeof *here), number = 0;
    for (size_t g = 0; g < transition->gpus.count; g++) {
        const struct transition_gpu *gpu = &transition->gpus.data[g];
        const char *id;
        here[g] = transition_find_gpu(back, gpu->id);
        if (here[g] >= 0)
            continue;
        do
            id = arena_printf(&back->arena, "spare%d", number++);
        while (transition_find_gpu(back, id) >= 0);
        here[g] = (int)back->gpus.count;
        struct transition_gpu spare = {id, gpu->board, arena_strdup(&back->arena, gpu->node)};
        vec_add(&back->gpus, spare);
    }
    return here;
}

int rollback_in_turn(const struct transition *transition, const bool *done,
                     const struct action_times *times, struct transition *ret_back,
                     struct error *err)
{
    assert(done && ret_back);
    struct transition back;
    struct work work;
    begin_back(transition, done, &back);
    back.algorithm = "in-turn";
    transition_match_by_id(&back);
    int rc = work_build(&back, &work, err);
    if (rc < 0) {
        transition_done(&back);
        return rc;
    }
    struct undo undo = {
        .forth = transition, .done = done, .gpu_here = find_gpus(transition, &back)};
    builder_init(&undo.builder, &work, times ? times : action_times_find("measured"));
    undo_all(transition, done, &undo, &back);
    transition_weaken(&work);
    builder_done(&undo.builder);
    work_done(&work);
    transition_finish(&back, true);
    *ret_back = back;
    return 0;
}

int transition_rollback(const struct transition *transition, const bool *done,
                        const struct action_times *times, struct transition *ret_back,
                        struct error *err)
{
    assert(done && ret_back);
    struct transition_report report;
    struct transition_options options = {.keep_ids = true, .times = times, .seed = 1};
    struct plan state;
    transition_verify(transition, &report);
    int rc = transition_report_error(&report, err);
    transition_report_done(&report);
    if (rc < 0)
        return error_wrap(err, "there is no safe way back from an unsafe transition");
    transition_state(transition, done, &state);
    rc = transition_plan(&state, &transition->from, &options, ret_back, NULL);
    plan_done(&state);
    if (rc == 0)
        return 0;
    rc = rollback_in_turn(transition, done, times, ret_back, err);
    if (rc < 0)
        return rc;
    transition_verify(ret_back, &report);
    rc = transition_report_error(&report, err);
    transition_report_done(&report);
    if (rc < 0)
        transition_done(ret_back);
    return rc;
}
