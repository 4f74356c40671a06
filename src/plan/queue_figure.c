/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice among the exact law, the replay, and the corrected law near saturation.
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

/* The share of saturation up to which several processes are replayed. */
static const double REPLAY_LOAD = 0.92;

struct queue_figure {
    struct queue_chain *chain;
    double solved_rate; /* of the law in `chain`, per ms; 0: none of this system */
    struct queue_value value;
    struct queue_replay *replay;
    /* Of several processes at REPLAY_LOAD, for one limit: */
    bool corrected;
    double limit;      /* the question's, ms */
    double floor;      /* the replayed figure: it only grows from there to saturation */
    double factor;     /* replayed share / that of the fast single process */
    double difference; /* replayed mean - that of the fast single process, ms */
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
    figure->corrected = false;
    figure->solved_rate = 0;
}

/* A system of very large batches as one of CHAIN_BATCH_MAX whose requests stand for several.
 * The arrivals become burstier by the same factor, so the answer errs to the safe side. */
static struct queue_case scale_down(const struct queue_case *system,
                                    struct queue_group groups[QUEUE_GROUPS_MAX])
{
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
    scaled.batch = groups[count - 1].to;
    scaled.rate = system->rate * scaled.batch / system->batch;
    scaled.groups = groups;
    scaled.group_count = count;
    return scaled;
}

static double exact(struct queue_figure *figure, const struct queue_case *system,
                    enum queue_measure measure, double limit_ms)
{
    struct queue_group groups[QUEUE_GROUPS_MAX];
    struct queue_case scaled = *system;
    if (system->batch > CHAIN_BATCH_MAX)
        scaled = scale_down(system, groups);
    if (figure->solved_rate != scaled.rate)
        queue_chain_solve(figure->chain, &scaled);
    figure->solved_rate = scaled.rate;
    figure->chain->system = scaled; /* its groups are the caller's of now */
    return queue_measure(figure->chain, &figure->value, measure, limit_ms);
}

static double saturation(const struct queue_case *system)
{
    return system->procs * system->batch / queue_last_group(system)->service_ms;
}

/* The limit that `allowed` of the requests of the chain solved last miss. */
static double solved_percentile(struct queue_figure *figure, double allowed)
{
    double low = 0, high = queue_last_group(&figure->chain->system)->total_ms;
    while (queue_measure(figure->chain, &figure->value, QUEUE_LATE, high) > allowed) {
        low = high;
        high *= 2;
    }
    while (high - low > 1e-3 * high) {
        double middle = (low + high) / 2;
        if (queue_measure(figure->chain, &figure->value, QUEUE_LATE, middle) > allowed)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Measures at REPLAY_LOAD how several processes compare with one that is p times as fast:
 * at the question's limit, or nearer where too few requests miss that. */
static void measure_correction(struct queue_figure *figure, const struct queue_case *system,
                               const struct queue_case *fast,
                               const struct queue_question *question)
{
    struct queue_case many = *system, one = *fast;
    double limit = question->limit_ms;
    many.rate = one.rate = REPLAY_LOAD * saturation(system);
    double replayed =
        queue_replay_measure(figure->replay, &many, question->measure, limit, question->coarse);
    figure->corrected = true;
    figure->limit = limit;
    figure->floor = replayed;
    queue_chain_solve(figure->chain, &one);
    figure->solved_rate = 0;
    if (question->measure == QUEUE_LATE && replayed < question->allowed / 4) {
        limit = fmin(limit, solved_percentile(figure, question->allowed));
        replayed = queue_replay_measure(figure->replay, &many, question->measure, limit,
                                        question->coarse);
    }
    double base = queue_measure(figure->chain, &figure->value, question->measure, limit);
    figure->difference = replayed - base;
    figure->factor = fmax(replayed / base, 0.01);
}

static double corrected(struct queue_figure *figure, const struct queue_case *system,
                        const struct queue_question *question)
{
    struct queue_group groups[QUEUE_GROUPS_MAX];
    struct queue_case fast = *system;
    bool mean = question->measure == QUEUE_MEAN;
    fast.procs = 1;
    fast.groups = groups;
    for (int g = 0; g < system->group_count; g++) {
        groups[g] = system->groups[g];
        groups[g].service_ms /= system->procs;
    }
    if (!figure->corrected || (!mean && figure->limit != question->limit_ms))
        measure_correction(figure, system, &fast, question);
    double rest = (1 - system->rate / saturation(system)) / (1 - REPLAY_LOAD);
    double base = exact(figure, &fast, question->measure, question->limit_ms);
    if (mean)
        return base + figure->difference * rest;
    return fmin(fmax(base * (1 + (figure->factor - 1) * rest), figure->floor), 1);
}

/* The exact law needs small batches that are not much slower than full ones. */
static bool is_regular(const struct queue_case *system)
{
    double full = queue_last_group(system)->service_ms;
    for (int g = 0; g < system->group_count; g++)
        if (system->groups[g].service_ms > 4 * full)
            return false;
    return true;
}

double queue_figure_at(struct queue_figure *figure, const struct queue_case *system,
                       const struct queue_question *question)
{
    assert(system->rate > 0 && system->rate < saturation(system));
    bool regular = is_regular(system);
    if (regular && (system->procs == 1 || system->batch == 1))
        return exact(figure, system, question->measure, question->limit_ms);
    if (regular && system->rate > REPLAY_LOAD * saturation(system))
        return corrected(figure, system, question);
    return queue_replay_measure(figure->replay, system, question->measure, question->limit_ms,
                                question->coarse);
}
