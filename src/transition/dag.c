/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/dag.h"

#include <assert.h>

#include "base/cleanup.h"
#include "transition/schedule.h"
#include "transition/sequence.h"
#include "transition/weaken.h"

enum { SPARES_UNLIMITED = 1 << 20 };

/* How many ways are tried, by the number of instances that come, leave or change, and whether
 * they are compared by the weakest order of each, or by the one that they are played in. */
static const struct effort {
    size_t items_max;
    int tries;
    bool weaken_all;
} efforts[] = {
    {64, 48, true}, {256, 24, true}, {1024, 12, true}, {4096, 5, false}, {SIZE_MAX, 3, false}};

/* One try's outcome. */
struct attempt {
    VEC(struct transition_action) actions;
    VEC(struct transition_gpu) gpus;
    int spares;
    double makespan_seconds;
};

static void attempt_done(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->actions.count; i++)
        vec_done(&attempt->actions.data[i].after);
    vec_done(&attempt->actions);
    vec_done(&attempt->gpus);
}

/* The first ways are chosen, the others random; each weighs what groups cost and bring. */
static struct schedule_options options_of(const struct transition_options *options, int number)
{
    assert(number >= 0);
    static const struct schedule_options chosen[] = {
        {.cost_weight = 1, .gain_weight = 0.5, .need_weight = 4, .many_temporaries = true},
        {.cost_weight = 1, .gain_weight = 0.5, .need_weight = 4, .reserve = true},
        {.cost_weight = 1, .gain_weight = 1, .reserve = true, .many_temporaries = true},
        {.cost_weight = 1},
    };
    struct schedule_options way = {0};
    if (number < (int)(sizeof chosen / sizeof *chosen)) {
        way = chosen[number];
    } else {
        struct rng rng = rng_seed_stream(options->seed, (uint64_t)number);
        way.cost_weight = rng_uniform(&rng, 0, 2);
        way.gain_weight = rng_uniform(&rng, 0, 2);
        way.need_weight = rng_uniform(&rng, 0, 6);
        way.noise = rng_uniform(&rng, 0, 4);
        way.reserve = rng_below(&rng, 2);
        way.many_temporaries = rng_below(&rng, 2);
    }
    way.times = options->times;
    way.seed = options->seed + (uint64_t)number;
    return way;
}

static bool is_better(const struct attempt *a, const struct attempt *b)
{
    if (a->spares != b->spares)
        return a->spares < b->spares;
    if (a->makespan_seconds != b->makespan_seconds)
        return a->makespan_seconds < b->makespan_seconds;
    return a->actions.count < b->actions.count;
}

/* Takes the actions and GPUs out of the transition, whose GPUs are as before afterwards. */
static void take_out(struct transition *transition, size_t gpus, struct attempt *ret_attempt)
{
    *ret_attempt = (struct attempt){.spares = (int)(transition->gpus.count - gpus),
                                    .makespan_seconds = transition_makespan(transition)};
    for (size_t i = 0; i < transition->actions.count; i++)
        vec_add(&ret_attempt->actions, transition->actions.data[i]);
    for (size_t g = 0; g < transition->gpus.count; g++)
        vec_add(&ret_attempt->gpus, transition->gpus.data[g]);
    vec_clear(&transition->actions);
    transition->gpus.count = gpus;
}

/* Plays one way. */
static int try_way(const struct work *work, const struct schedule_options *way, bool weaken,
                   struct attempt *ret_attempt, struct error *err)
{
    struct transition *transition = work->transition;
    assert(transition->actions.count == 0);
    size_t gpus = transition->gpus.count;
    int spares, rc = schedule_run(work, way, &spares, err);
    if (rc == 0 && weaken)
        transition_weaken(work);
    take_out(transition, gpus, ret_attempt);
    if (rc < 0)
        attempt_done(ret_attempt);
    return rc;
}

/* A sequence that borrows `spares` GPUs, all of one board. */
static bool try_search(const struct work *work, const struct transition_options *options,
                       int spares, struct attempt *ret_attempt)
{
    struct transition *transition = work->transition;
    size_t gpus = transition->gpus.count;
    bool found = false;
    for (size_t g = 0; !found && g < gpus; g++) {
        const struct mig_board *board = transition->gpus.data[g].board;
        bool tried = spares == 0 && g > 0;
        for (size_t i = 0; i < g; i++)
            tried |= transition->gpus.data[i].board == board;
        found = !tried && sequence_search(work, options->times, spares, board);
    }
    if (!found)
        return false;
    transition_weaken(work);
    take_out(transition, gpus, ret_attempt);
    return true;
}

static const struct effort *effort_for(const struct work *work)
{
    size_t items = work->leaving.count + work->coming.count + work->changing.count, row = 0;
    while (items > efforts[row].items_max)
        row++;
    return &efforts[row];
}

/* The best of the ways that borrow at most `spares` GPUs. */
static int try_ways(const struct work *work, const struct transition_options *options,
                    int spares, struct attempt *ret_best, struct error *err)
{
    assert(spares >= 0);
    struct attempt best = {.spares = spares + 1};
    const struct effort *effort = effort_for(work);
    int rc = -E_NO;
    bool found = false;
    for (int number = 0; number < effort->tries; number++) {
        struct attempt attempt;
        struct error inner;
        struct schedule_options way = options_of(options, number);
        way.spares_max = found ? best.spares : spares;
        if (try_way(work, &way, effort->weaken_all, &attempt, &inner) < 0) {
            if (!found && number == 0 && err)
                *err = inner;
            continue;
        }
        if (!found || is_better(&attempt, &best)) {
            attempt_done(&best);
            best = attempt;
        } else {
            attempt_done(&attempt);
        }
        found = true;
        rc = 0;
    }
    if (found)
        *ret_best = best;
    return rc;
}

/* The best of the ways, or what a search finds with fewer borrowed GPUs, `spares_min` at
 * least. */
static int find_best(const struct work *work, const struct transition_options *options,
                     int spares_min, int spares, struct attempt *ret_best, struct error *err)
{
    int rc = try_ways(work, options, spares, ret_best, err);
    int fewer = rc == 0 ? ret_best->spares - 1 : spares;
    struct attempt attempt;
    if (rc < 0 && rc != -E_NO)
        return rc;
    for (; fewer >= spares_min && try_search(work, options, fewer, &attempt);
         fewer = attempt.spares - 1) {
        if (rc == 0)
            attempt_done(ret_best);
        *ret_best = attempt;
        rc = 0;
    }
    return rc;
}

static void take(struct transition *transition, struct attempt *best)
{
    vec_done(&transition->actions);
    assert(transition->actions.count == 0);
    transition->gpus.count = 0;
    for (size_t i = 0; i < best->actions.count; i++)
        vec_add(&transition->actions, best->actions.data[i]);
    for (size_t g = 0; g < best->gpus.count; g++)
        vec_add(&transition->gpus, best->gpus.data[g]);
    best->actions.count = 0;
    attempt_done(best);
}

static int say_how_many(int spares, struct error *err)
{
    assert(spares > 0);
    CLEANUP(free_ptr) char *why = xstrdup(err ? err->text : "");
    return error_set(err, E_NO, "%s; %d spare GPU%s would do (--spare %d)", why, spares,
                     spares == 1 ? "" : "s", spares);
}

int dag_plan(struct transition *transition, const struct transition_options *options,
             struct error *err)
{
    assert(options->times && options->spare >= 0);
    struct work work;
    struct attempt best;
    int rc = work_build(transition, &work, err);
    if (rc < 0)
        return rc;
    transition->algorithm = "dag";
    rc = find_best(&work, options, 0, options->spare, &best, err);
    if (rc == 0) {
        take(transition, &best);
        if (!effort_for(&work)->weaken_all)
            transition_weaken(&work);
        transition_finish(transition, true);
    } else {
        struct attempt enough;
        if (find_best(&work, options, options->spare + 1, SPARES_UNLIMITED, &enough, NULL) ==
            0) {
            rc = say_how_many(enough.spares, err);
            attempt_done(&enough);
        }
    }
    work_done(&work);
    return rc;
}
