/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice between the exact law and the replay.
 */
#include "plan/queue_figure.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "plan/queue_measure.h"
#include "plan/queue_replay.h"

/* Larger batches are counted in units of several requests: see scale_down(). */
enum { CHAIN_BATCH_MAX = 1024 };

struct queue_figure {
    struct queue_chain *chain;
    double solved_rate; /* of the law in `chain`, per ms; 0: none of this system */
    struct queue_value value;
    struct queue_replay *replay;
};

struct queue_figure *queue_figure_new(void)
{
    struct queue_figure *figure = xcalloc(1, sizeof *figure);
    figure->chain = queue_chain_new();
    figure->replay = queue_replay_new();
    return figure;
}

void queue_figure_free(struct queue_figure *figure)
{
    if (!figure)
        return;
    queue_chain_free(figure->chain);
    queue_value_done(&figure->value);
    queue_replay_free(figure->replay);
    free(figure);
}

void queue_figure_begin(struct queue_figure *figure)
{
    figure->solved_rate = 0;
}

/* A system of very large batches as one of CHAIN_BATCH_MAX whose requests stand for several.
 * The arrivals become burstier by the same factor, so the answer errs to the safe side. */
static struct queue_case scale_down(const struct queue_case *system,
                                    struct queue_group groups[QUEUE_GROUPS_MAX])
{
    assert(system->batch > CHAIN_BATCH_MAX);
    struct queue_case scaled = *system;
    double unit = (double)system->batch / CHAIN_BATCH_MAX;
    int count = 0, from = 1;
    for (int g = 0; g < system->group_count; g++) {
        int to = (int)ceil(system->groups[g].to / unit - 1e-9);
        if (to < from)
            continue;
        groups[count] = system->groups[g];
        groups[count].from = from;
        groups[count++].to = to;
        from = to + 1;
    }
    assert(count > 0 && groups[count - 1].to <= CHAIN_BATCH_MAX);
    scaled.batch = groups[count - 1].to;
    scaled.rate = system->rate * scaled.batch / system->batch;
    scaled.groups = groups;
    scaled.group_count = count;
    return scaled;
}

static double exact(struct queue_figure *figure, const struct queue_case *system,
                    enum queue_measure measure, double limit_ms)
{
    assert(system->procs == 1 || system->batch == 1);
    if (figure->solved_rate != system->rate)
        queue_chain_solve(figure->chain, system);
    figure->solved_rate = system->rate;
    figure->chain->system = *system; /* its groups are the caller's of now */
    return queue_measure(figure->chain, &figure->value, measure, limit_ms);
}

static double saturation(const struct queue_case *system)
{
    return system->procs * system->batch / queue_last_group(system)->service_ms;
}

/* Several processes by a replay, less what the same arrivals give one process that is as
 * fast as all of them together, plus what is exactly true of that one. The two replays err
 * alike, and the busier the system the more so: the sum is some ten times as exact. */
static double compared(struct queue_figure *figure, const struct queue_case *system,
                       const struct queue_question *question)
{
    assert(system->procs > 1);
    struct queue_group groups[QUEUE_GROUPS_MAX];
    struct queue_case fast = *system;
    fast.procs = 1;
    fast.groups = groups;
    for (int g = 0; g < system->group_count; g++) {
        groups[g] = system->groups[g];
        groups[g].service_ms /= system->procs;
    }
    double replayed = queue_replay_measure(figure->replay, system, question->measure,
                                           question->limit_ms, question->coarse);
    double known = exact(figure, &fast, question->measure, question->limit_ms);
    double base = queue_replay_measure(figure->replay, &fast, question->measure,
                                       question->limit_ms, question->coarse);
    double sum = replayed + known - base;
    return question->measure == QUEUE_MEAN ? sum : fmin(fmax(sum, 0), 1);
}

/* The exact law needs small batches that are not much slower than full ones. */
static bool is_regular(const struct queue_case *system)
{
    assert(system->group_count > 0);
    double full = queue_last_group(system)->service_ms;
    for (int g = 0; g < system->group_count; g++)
        if (system->groups[g].service_ms > 4 * full)
            return false;
    return true;
}

double queue_figure_at(struct queue_figure *figure, const struct queue_case *system,
                       const struct queue_question *question)
{
    struct queue_group groups[QUEUE_GROUPS_MAX];
    struct queue_case scaled = *system;
    assert(system->rate > 0 && system->rate < saturation(system));
    if (!is_regular(system))
        return queue_replay_measure(figure->replay, system, question->measure,
                                    question->limit_ms, question->coarse);
    if (system->batch > CHAIN_BATCH_MAX)
        scaled = scale_down(system, groups);
    if (scaled.procs == 1 || scaled.batch == 1)
        return exact(figure, &scaled, question->measure, question->limit_ms);
    return compared(figure, &scaled, question);
}
