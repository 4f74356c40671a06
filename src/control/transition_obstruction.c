/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transition_obstruction.h"

#include <assert.h>

#include "mig/layout.h"

/* Whether an action that is not done takes the instance away. */
static bool is_being_deleted(const struct obstruction_query *query, int gpu,
                             const struct world_instance *instance)
{
    for (size_t i = 0; i < query->transition->actions.count; i++) {
        const struct transition_action *action = &query->transition->actions.data[i];
        if (action->kind == ACTION_DELETE_INSTANCE && !query->done[i] &&
            query->gpus[action->gpu] == gpu && action->profile == instance->profile &&
            action->start == instance->start)
            return true;
    }
    return false;
}

/* Whether the instance of an action is to be made yet. */
static bool is_to_be_made(const struct obstruction_query *query, size_t index)
{
    const struct transition_action *action = &query->transition->actions.data[index];
    int at = query->gpus[action->gpu];

    if ((action->kind != ACTION_CREATE_INSTANCE && action->kind != ACTION_START) ||
        query->done[index] || at < 0)
        return false;
    const struct world_gpu *gpu = &query->observed->gpus.data[at];
    for (size_t i = 0; i < gpu->instances.count; i++)
        if (gpu->instances.data[i].profile == action->profile &&
            gpu->instances.data[i].start == action->start)
            return gpu->instances.data[i].phase != INSTANCE_READY;
    return true;
}

static bool is_obstructed(const struct obstruction_query *query, size_t index)
{
    const struct transition_action *action = &query->transition->actions.data[index];
    const struct mig_instance wanted = {(int8_t)action->profile, (int8_t)action->start};
    struct mig_layout layout = {0};
    int at = query->gpus[action->gpu];

    assert(at >= 0 && (size_t)at < query->observed->gpus.count);
    const struct world_gpu *gpu = &query->observed->gpus.data[at];
    for (size_t i = 0; i < gpu->instances.count; i++) {
        const struct world_instance *there = &gpu->instances.data[i];
        const struct mig_instance stays = {(int8_t)there->profile, (int8_t)there->start};
        /* Only what is on the GPU: it is part of any state that is planned from. */
        bool is_there = there->phase == INSTANCE_READY || there->phase == INSTANCE_LEAVING;
        bool is_wanted = there->profile == action->profile && there->start == action->start;
        if (is_there && !is_wanted && !is_being_deleted(query, at, there) &&
            mig_layout_can_add(gpu->board, &layout, stays))
            mig_layout_add(gpu->board, &layout, stays);
    }
    return !mig_layout_can_add(gpu->board, &layout, wanted);
}

bool transition_is_obstructed(const struct obstruction_query *query)
{
    for (size_t i = 0; i < query->transition->actions.count; i++)
        if (is_to_be_made(query, i) && is_obstructed(query, i))
            return true;
    return false;
}
