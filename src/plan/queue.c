/* SPDX-License-Identifier: Apache-2.0
 *
 * The `queue` rule: chooses the method for a system, searches the highest rate, and
 * remembers answers.
 */
#include "plan/queue.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/vec.h"
#include "plan/queue_chain.h"
#include "plan/queue_measure.h"
#include "plan/queue_replay.h"

enum { CHAIN_BATCH_MAX = 256, SEARCH_STEPS_MAX = 60 };

/* Nothing is promised nearer to saturation than this: the queue would still be growing
 * after days. */
static const double SATURATION_MARGIN = 1e-4;

struct queue_model {
    struct queue_chain *chain;
    struct queue_value value;
    struct queue_replay *replay;
    struct map promises; /* key text -> index + 1 into answers */
    VEC(double) answers;
};

struct queue_model *queue_model_new(void)
{
    struct queue_model *model = xcalloc(1, sizeof *model);
    model->chain = queue_chain_new();
    model->replay = queue_replay_new();
    return model;
}

void queue_model_free(struct queue_model *model)
{
    if (!model)
        return;
    queue_chain_free(model->chain);
    queue_value_done(&model->value);
    queue_replay_free(model->replay);
    map_done(&model->promises);
    vec_done(&model->answers);
    free(model);
}

/* A server spread out into groups of batch sizes 1 … batch_max; the rate is still 0. */
static int spread_groups(const struct queue_server *server,
                         struct queue_group ret_groups[QUEUE_GROUPS_MAX])
{
    int count = 0, from = 1;
    for (int i = 0; i < server->size_count && from <= server->batch_max; i++) {
        assert(server->latency_ms[i] > 0 &&
               (i == 0 || server->batch[i] > server->batch[i - 1]));
        if (server->batch[i] < from)
            continue;
        int to = server->batch[i] < server->batch_max ? server->batch[i] : server->batch_max;
        assert(count < QUEUE_GROUPS_MAX);
        ret_groups[count++] = (struct queue_group){from, to, server->latency_ms[i]};
        from = to + 1;
    }
    assert(from == server->batch_max + 1);
    return count;
}

double queue_saturation_rps(const struct queue_server *server)
{
    for (int i = 0; i < server->size_count; i++)
        if (server->batch[i] >= server->batch_max)
            return 1000.0 * server->procs * server->batch_max / server->latency_ms[i];
    assert(!"a measured batch reaches batch_max");
    return 0;
}

/* One figure of a system at its rate. `coarse` may be less exact and faster. */
static double measure_at(struct queue_model *model, const struct queue_case *system,
                         const struct queue_objective *objective, bool coarse)
{
    enum queue_measure measure = objective->percentile == 0 ? QUEUE_MEAN : QUEUE_LATE;
    bool exact = system->batch == 1 || (system->procs == 1 && system->batch <= CHAIN_BATCH_MAX);
    if (!exact)
        return queue_replay_measure(model->replay, system, measure, objective->latency_ms,
                                    coarse);
    queue_chain_solve(model->chain, system);
    return queue_measure(model->chain, &model->value, measure, objective->latency_ms);
}

/* --- the highest rate ------------------------------------------------------ */

struct search {
    struct queue_model *model;
    struct queue_case system;
    const struct queue_objective *objective;
    bool coarse;
};

/* The logarithm of figure / allowed: <= 0 where the objective is met. */
static double excess(struct search *search, double rate_rps)
{
    const struct queue_objective *objective = search->objective;
    search->system.rate = rate_rps / 1000;
    double figure = measure_at(search->model, &search->system, objective, search->coarse);
    double allowed =
        objective->percentile == 0 ? objective->latency_ms : 1 - objective->percentile / 100;
    return log(fmax(figure, 1e-12) / allowed);
}

/* A range whose lower end meets the objective and whose upper end does not. */
struct range {
    double low, low_excess, high, high_excess;
};

/* Narrows to a relative width by regula falsi (Illinois) with a bisection now and then. */
static void narrow(struct search *search, struct range *range, double width)
{
    double low_value = range->low_excess, high_value = range->high_excess;
    int side = 0;
    for (int i = 0; i < SEARCH_STEPS_MAX && range->high - range->low > width * range->high;
         i++) {
        double share = low_value / (low_value - high_value);
        if (i % 4 == 3 || !(share > 0 && share < 1))
            share = 0.5;
        double step = width * range->high / (range->high - range->low) / 2;
        share = fmin(fmax(share, step), 1 - step);
        double middle = range->low + share * (range->high - range->low);
        double value = excess(search, middle);
        if (value <= 0) {
            range->low = middle;
            range->low_excess = low_value = value;
            high_value = side < 0 ? high_value / 2 : range->high_excess;
            side = -1;
        } else {
            range->high = middle;
            range->high_excess = high_value = value;
            low_value = side > 0 ? low_value / 2 : range->low_excess;
            side = 1;
        }
    }
}

/* Walks down from `top` to the first rate that meets the objective; false when none does.
 * The figure need not be monotonic: at low rates requests wait for their batch to fill. */
static bool find_range(struct search *search, double top, struct range *range)
{
    range->high = top;
    range->high_excess = excess(search, top);
    for (double step = 0.03; range->high > top * 1e-6; step = fmin(step * 1.25, 0.5)) {
        double rate = range->high * (1 - step), value = excess(search, rate);
        if (value <= 0) {
            range->low = rate;
            range->low_excess = value;
            return true;
        }
        range->high = rate;
        range->high_excess = value;
    }
    return false;
}

/* Down to four significant digits. */
static double round_down(double value)
{
    if (!(value > 0))
        return 0;
    double unit = pow(10, floor(log10(value)) - 3);
    double rounded = floor(value / unit * (1 + 1e-12)) * unit;
    return unit < 1 ? floor(value / unit * (1 + 1e-12)) / round(1 / unit) : rounded;
}

static double find_promise(struct search *search, const struct queue_server *server,
                           double limit_rps)
{
    double saturation = queue_saturation_rps(server) * (1 - SATURATION_MARGIN);
    double top = fmin(saturation, limit_rps);
    if (limit_rps <= saturation && excess(search, limit_rps) <= 0)
        return limit_rps;
    bool coarse = search->system.procs > 1 && search->system.batch > 1;
    struct range range = {0};
    search->coarse = coarse;
    if (!find_range(search, top, &range))
        return 0;
    if (coarse) { /* widen around the coarse answer and go on with all arrivals */
        narrow(search, &range, 0.01);
        search->coarse = false;
        top = fmin(top, range.high * 1.02);
        if (!find_range(search, top, &range))
            return 0;
    }
    narrow(search, &range, 1e-4);
    return round_down(range.low);
}

static void add_key(struct str *key, double value)
{
    str_addf(key, "%a,", value);
}

double queue_promise_rps(struct queue_model *model, const struct queue_server *server,
                         const struct queue_objective *objective, double limit_rps)
{
    assert(server->procs >= 1 && server->procs <= QUEUE_PROCS_LIMIT);
    assert(server->batch_max >= 1 && server->batch_max <= QUEUE_BATCH_LIMIT);
    struct queue_group groups[QUEUE_GROUPS_MAX];
    struct search search = {
        .model = model,
        .objective = objective,
        .system = {.procs = server->procs,
                   .batch = server->batch_max,
                   .wait_ms = objective->max_wait_ms,
                   .group_count = spread_groups(server, groups),
                   .groups = groups},
    };
    CLEANUP(str_done) struct str key = STR_EMPTY;
    str_addf(&key, "%d,", server->procs);
    add_key(&key, objective->percentile);
    add_key(&key, objective->latency_ms);
    add_key(&key, objective->max_wait_ms);
    add_key(&key, limit_rps);
    for (int g = 0; g < search.system.group_count; g++) {
        add_key(&key, groups[g].to);
        add_key(&key, groups[g].service_ms);
    }
    ptrdiff_t known = map_find(&model->promises, key.bytes);
    if (known >= 0)
        return model->answers.data[known];
    double promise = limit_rps > 0 ? find_promise(&search, server, limit_rps) : 0;
    map_put(&model->promises, key.bytes, model);
    vec_add(&model->answers, promise);
    return promise;
}

/* --- figures at a rate ------------------------------------------------------ */

double queue_share_within(struct queue_model *model, const struct queue_server *server,
                          double max_wait_ms, double limit_ms, double rate_rps)
{
    assert(rate_rps > 0);
    if (rate_rps >= queue_saturation_rps(server))
        return 0;
    struct queue_group groups[QUEUE_GROUPS_MAX];
    struct queue_case system = {.procs = server->procs,
                                .batch = server->batch_max,
                                .wait_ms = max_wait_ms,
                                .rate = rate_rps / 1000,
                                .group_count = spread_groups(server, groups),
                                .groups = groups};
    struct queue_objective objective = {.percentile = 99, .latency_ms = limit_ms};
    return 1 - measure_at(model, &system, &objective, false);
}

/* The smallest limit that `allowed` of the requests miss at most, by bisection. */
static double find_percentile(struct queue_model *model, const struct queue_case *system,
                              double allowed)
{
    struct queue_objective objective = {.percentile = 100 * (1 - allowed), .latency_ms = 1};
    double low = 0, high = queue_last_group(system)->service_ms + system->wait_ms;
    for (;; low = high, high *= 2) {
        objective.latency_ms = high;
        if (measure_at(model, system, &objective, false) <= allowed)
            break;
    }
    while (high - low > 1e-5 * high) {
        objective.latency_ms = (low + high) / 2;
        if (measure_at(model, system, &objective, false) <= allowed)
            high = objective.latency_ms;
        else
            low = objective.latency_ms;
    }
    return high;
}

double queue_latency_ms(struct queue_model *model, const struct queue_server *server,
                        const struct queue_objective *objective, double rate_rps)
{
    assert(rate_rps > 0);
    if (rate_rps >= queue_saturation_rps(server))
        return INFINITY;
    struct queue_group groups[QUEUE_GROUPS_MAX];
    struct queue_case system = {.procs = server->procs,
                                .batch = server->batch_max,
                                .wait_ms = objective->max_wait_ms,
                                .rate = rate_rps / 1000,
                                .group_count = spread_groups(server, groups),
                                .groups = groups};
    if (objective->percentile == 0)
        return measure_at(model, &system, objective, false);
    return find_percentile(model, &system, 1 - objective->percentile / 100);
}
