/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/recover.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"

enum { SPARES_MAX = 1 << 20 };

void recovery_done(struct recovery *recovery)
{
    vec_done(&recovery->unavoidable);
    arena_done(&recovery->arena);
}

/* Takes the GPU out of the state; what each service had on it goes to lost_rps. */
static void lose(struct plan *state, int gpu, double *lost_rps)
{
    assert(gpu >= 0 && gpu < (int)state->gpus.count);
    struct plan_gpu *gone = &state->gpus.data[gpu];
    for (size_t i = 0; i < gone->instances.count; i++) {
        const struct plan_instance *instance = &gone->instances.data[i];
        if (instance->service < 0)
            continue;
        lost_rps[instance->service] += instance->rate_rps;
        state->services.data[instance->service].provided_rps -= instance->rate_rps;
    }
    vec_done(&gone->instances);
    memmove(gone, gone + 1, (state->gpus.count - (size_t)gpu - 1) * sizeof *gone);
    state->gpus.count--;
}

/* Lowers what the state requires to what it has, and notes where that was. */
static void lower_floor(struct plan *state, const double *lost_rps, struct recovery *recovery)
{
    assert(lost_rps && recovery);
    for (size_t s = 0; s < state->services.count; s++) {
        struct plan_service *service = &state->services.data[s];
        double left = fmax(service->provided_rps, 0);
        if (left >= service->required_rps)
            continue;
        struct unavoidable unavoidable = {.service =
                                              arena_strdup(&recovery->arena, service->name),
                                          .floor_rps = service->required_rps,
                                          .lost_rps = lost_rps[s],
                                          .left_rps = left};
        vec_add(&recovery->unavoidable, unavoidable);
        service->required_rps = left;
    }
}

int transition_recover(const struct transition *transition, const bool *done, const char *lost,
                       const struct transition_options *options, struct recovery *ret_recovery,
                       struct transition *ret_transition, struct error *err)
{
    assert(done && lost && options);
    struct plan state;
    struct recovery recovery = {0};
    struct transition_options unlimited = *options;
    CLEANUP(free_ptr)
    double *lost_rps = xcalloc(transition->services.count, sizeof *lost_rps);
    transition_state(transition, done, &state);
    int gpu = plan_find_gpu(&state, lost);
    if (gpu < 0 && transition_find_gpu(transition, lost) < 0) {
        plan_done(&state);
        return error_set(err, E_NOT_FOUND, "\"%s\" is not a GPU of the transition", lost);
    }
    if (gpu >= 0)
        lose(&state, gpu, lost_rps);
    lower_floor(&state, lost_rps, &recovery);
    unlimited.algorithm = TRANSITION_DAG;
    unlimited.spare = SPARES_MAX;
    int rc = transition_plan(&state, &transition->to, &unlimited, ret_transition, err);
    plan_done(&state);
    if (rc < 0)
        recovery_done(&recovery);
    else
        *ret_recovery = recovery;
    return rc;
}
