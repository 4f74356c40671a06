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
#include "plan/queue_figure.h"

enum { SEARCH_STEPS_MAX = 60 };

/* Nothing is promised nearer to saturation than this: the queue would still be growing
 * after days. */
static const double SATURATION_MARGIN = 1e-4;

/* To which a predicted percentile is searched, relative. */
static const double PERCENTILE_WIDTH = 5e-5;

/* The contract's, relative: a batch that waits out max_wait often ends just at the objective,
 * which is a quarter of it plus the batch's time, and then is not late. */
static const double TOLERANCE = 1e-9;

struct queue_model {
    struct queue_figure *figure;
    struct map known; /* key text, at the index of its answer */
    VEC(double) answers;
};

struct queue_model *queue_model_new(void)
{
    struct queue_model *model = xcalloc(1, sizeof *model);
    model->figure = queue_figure_new();
    return model;
}

void queue_model_free(struct queue_model *model)
{
    if (!model)
        return;
    queue_figure_free(model->figure);
    map_done(&model->known);
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
        ret_groups[count++] =
            (struct queue_group){from, to, server->latency_ms[i], server->latency_ms[i]};
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

/* The system without its rate; groups is the memory of its groups. */
static struct queue_case make_case(const struct queue_server *server, double max_wait_ms,
                                   struct queue_group groups[QUEUE_GROUPS_MAX])
{
    assert(server->procs >= 1 && server->procs <= QUEUE_PROCS_LIMIT);
    assert(server->batch_max >= 1 && server->batch_max <= QUEUE_BATCH_LIMIT);
    assert(max_wait_ms >= 0);
    return (struct queue_case){.procs = server->procs,
                               .batch = server->batch_max,
                               .wait_ms = max_wait_ms,
                               .group_count = spread_groups(server, groups),
                               .groups = groups};
}

static struct queue_question make_question(const struct queue_objective *objective)
{
    bool mean = objective->percentile == 0;
    assert(objective->percentile >= 0 && objective->percentile < 100);
    return (struct queue_question){.measure = mean ? QUEUE_MEAN : QUEUE_LATE,
                                   .limit_ms = objective->latency_ms * (1 + TOLERANCE),
                                   .allowed = mean ? 0 : 1 - objective->percentile / 100};
}

/* --- the highest rate ------------------------------------------------------ */

struct search {
    struct queue_figure *figure;
    struct queue_case system;
    struct queue_question question;
};

/* The logarithm of figure / allowed: <= 0 where the objective is met. */
static double excess(struct search *search, double rate_rps)
{
    const struct queue_question *question = &search->question;
    search->system.rate = rate_rps / 1000;
    double figure = queue_figure_at(search->figure, &search->system, question);
    double most = question->measure == QUEUE_MEAN ? question->limit_ms : question->allowed;
    return log(fmax(figure, 1e-12) / most);
}

/* A range whose lower end meets the objective and whose upper end does not. */
struct range {
    double low, low_excess, high, high_excess;
};

/* The step of four significant digits at a value > 0. */
static double grid_step(double value)
{
    return pow(10, floor(log10(value)) - 3);
}

/* A whole multiple of the step, exact where the step is a power of a tenth. */
static double grid_point(double steps, double unit)
{
    return unit < 1 ? steps / round(1 / unit) : steps * unit;
}

/* Down to four significant digits. */
static double round_down(double value)
{
    if (!(value > 0))
        return 0;
    double unit = grid_step(value);
    return grid_point(floor(value / unit * (1 + 1e-12)), unit);
}

/* The next value of four significant digits above one. */
static double grid_next(double value)
{
    double unit = grid_step(value);
    return grid_point(floor(value / unit * (1 + 1e-12)) + 1, unit);
}

/* A value of four significant digits strictly inside the range, next to `wanted`; NAN when
 * there is none. */
static double grid_inside(const struct range *range, double wanted)
{
    double first = grid_next(range->low), point = round_down(fmax(wanted, first));
    if (!(first < range->high))
        return NAN;
    if (point >= range->high)
        point = round_down(range->high - grid_step(range->low) / 2);
    return fmax(point, first);
}

/* Narrows by regula falsi (Illinois) with a bisection now and then, at values of four
 * significant digits until none lies inside, or to a relative width; gives up below `floor`. */
static void narrow(struct search *search, struct range *range, double width, double floor)
{
    double low_value = range->low_excess, high_value = range->high_excess;
    int side = 0;
    for (int i = 0; i < SEARCH_STEPS_MAX && range->high - range->low > width * range->high &&
                    range->high > floor;
         i++) {
        double share = low_value / (low_value - high_value);
        if (i % 4 == 3 || !(share > 0 && share < 1))
            share = 0.5;
        double middle = grid_inside(range, range->low + share * (range->high - range->low));
        if (isnan(middle))
            return;
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

/* Walks down from range->high, whose excess is known, in steps growing by a factor, to the
 * first rate that meets the objective; false when none from `floor` on does. */
static bool walk_down(struct search *search, double factor, double floor, struct range *range)
{
    double least = range->high * 1e-6;
    for (double step = 0.03; range->high > least && range->high > floor;
         step = fmin(step * factor, 0.5)) {
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

/* The figure need not be monotonic: at low rates requests wait for their batch to fill. So
 * what long steps have not met is looked for again in short ones. */
static bool find_range(struct search *search, double top, double floor, struct range *range)
{
    struct range whole = {.high = top, .high_excess = excess(search, top)};
    *range = whole;
    if (walk_down(search, 3, floor, range))
        return true;
    *range = whole;
    return walk_down(search, 1.25, floor, range);
}

static double find_promise(struct search *search, double saturation_rps,
                           const struct queue_wanted *wanted)
{
    double top = saturation_rps * (1 - SATURATION_MARGIN), floor = wanted->least_rps;
    queue_figure_begin(search->figure);
    if (wanted->limit_rps <= top && excess(search, wanted->limit_rps) <= 0)
        return wanted->limit_rps;
    struct range range = {0};
    top = fmin(top, wanted->limit_rps);
    if (search->system.procs > 1 && search->system.batch > 1) {
        /* a rough answer first, then all arrivals from a little above it */
        search->question.coarse = true;
        queue_figure_begin(search->figure);
        if (find_range(search, top, floor * 0.98, &range)) {
            narrow(search, &range, 0.01, floor * 0.98);
            top = fmin(top, range.high * 1.02);
        }
        search->question.coarse = false;
        queue_figure_begin(search->figure);
    }
    if (!find_range(search, top, floor, &range))
        return 0;
    narrow(search, &range, 0, floor);
    if (range.high <= floor)
        return 0;
    double rounded = round_down(range.low);
    /* a lower rate is not always kept where a higher one is */
    return rounded == range.low || excess(search, rounded) <= 0 ? rounded : range.low;
}

/* All that an answer depends on, as text: which question, the system, a rate. */
static void write_key(struct str *key, char what, const struct search *search, double rate_rps)
{
    const struct queue_case *system = &search->system;
    str_addf(key, "%c %d %d %a %a %a %a", what, search->question.measure, system->procs,
             search->question.allowed, search->question.limit_ms, system->wait_ms, rate_rps);
    for (int g = 0; g < system->group_count; g++)
        str_addf(key, " %d %a", system->groups[g].to, system->groups[g].service_ms);
}

/* The answer remembered under the key; false when there is none. */
static bool recall(const struct queue_model *model, const struct str *key, double *ret_answer)
{
    ptrdiff_t known = map_find(&model->known, key->bytes);
    if (known >= 0)
        *ret_answer = model->answers.data[known];
    return known >= 0;
}

static double remember(struct queue_model *model, const struct str *key, double answer)
{
    map_put(&model->known, key->bytes, model);
    vec_add(&model->answers, answer);
    return answer;
}

double queue_promise_rps(struct queue_model *model, const struct queue_server *server,
                         const struct queue_objective *objective,
                         const struct queue_wanted *wanted)
{
    assert(objective->latency_ms > 0 && wanted->limit_rps >= 0 && wanted->least_rps >= 0);
    struct queue_group groups[QUEUE_GROUPS_MAX];
    struct search search = {.figure = model->figure,
                            .system = make_case(server, objective->max_wait_ms, groups),
                            .question = make_question(objective)};
    CLEANUP(str_done) struct str key = STR_EMPTY;
    double promise = 0;
    write_key(&key, 'p', &search, wanted->limit_rps);
    str_addf(&key, " %a", wanted->least_rps);
    if (recall(model, &key, &promise))
        return promise;
    if (wanted->limit_rps > 0)
        promise = find_promise(&search, queue_saturation_rps(server), wanted);
    return remember(model, &key, promise);
}

/* --- figures at a rate ------------------------------------------------------ */

double queue_share_within(struct queue_model *model, const struct queue_server *server,
                          double max_wait_ms, double limit_ms, double rate_rps)
{
    assert(rate_rps > 0);
    if (rate_rps >= queue_saturation_rps(server))
        return 0;
    struct queue_group groups[QUEUE_GROUPS_MAX];
    struct queue_case system = make_case(server, max_wait_ms, groups);
    struct queue_question question = {
        .measure = QUEUE_LATE, .limit_ms = limit_ms, .allowed = 0.01};
    system.rate = rate_rps / 1000;
    queue_figure_begin(model->figure);
    return 1 - queue_figure_at(model->figure, &system, &question);
}

/* The logarithm of the share that misses a limit over what is allowed. */
static double excess_at(struct queue_figure *figure, const struct queue_case *system,
                        struct queue_question *question, double limit_ms)
{
    question->limit_ms = limit_ms;
    return log(fmax(queue_figure_at(figure, system, question), 1e-12) / question->allowed);
}

/* The smallest limit that at most `allowed` of the requests miss; from below the objective
 * when that is kept. Regula falsi (Illinois) with a bisection now and then: the share jumps
 * where a batch's time passes the limit. A promise is often bound by the objective, so just
 * below it is looked at first. */
static double find_percentile(struct queue_figure *figure, const struct queue_case *system,
                              struct queue_question *question)
{
    double objective = question->limit_ms, low = 0, high = objective;
    double low_value = -log(question->allowed), high_value = 1;
    if (objective > 0)
        high_value = excess_at(figure, system, question, objective);
    if (high_value > 0) {
        high = fmax(queue_last_group(system)->total_ms + system->wait_ms, objective);
        while ((high_value = excess_at(figure, system, question, high)) > 0) {
            low = high;
            low_value = high_value;
            high *= 2;
        }
    }
    double low_end = low_value, high_end = high_value;
    for (int i = 0, side = 0; high - low > PERCENTILE_WIDTH * high; i++) {
        double share = low_value / (low_value - high_value);
        if (i % 3 == 2)
            share = 0.5;
        double least = PERCENTILE_WIDTH * high / (high - low) * 0.9;
        share = i == 0 ? 1 - least : fmin(fmax(share, least), 1 - least);
        double middle = low + share * (high - low);
        double value = excess_at(figure, system, question, middle);
        if (value <= 0) {
            high = middle;
            high_end = high_value = value;
            low_value = side > 0 ? low_value / 2 : low_end;
            side = 1;
        } else {
            low = middle;
            low_end = low_value = value;
            high_value = side < 0 ? high_value / 2 : high_end;
            side = -1;
        }
    }
    return high;
}

/* Up to four significant digits, but not past `most`. */
static double round_up(double value, double most)
{
    double unit = pow(10, floor(log10(value)) - 3);
    double steps = ceil(value / unit * (1 - 1e-12));
    double rounded = unit < 1 ? steps / round(1 / unit) : steps * unit;
    return value <= most * (1 + 2 * TOLERANCE) ? fmin(rounded, most) : rounded;
}

double queue_latency_ms(struct queue_model *model, const struct queue_server *server,
                        const struct queue_objective *objective, double rate_rps)
{
    assert(rate_rps > 0);
    if (rate_rps >= queue_saturation_rps(server))
        return INFINITY;
    struct queue_group groups[QUEUE_GROUPS_MAX];
    struct search search = {.figure = model->figure,
                            .system = make_case(server, objective->max_wait_ms, groups),
                            .question = make_question(objective)};
    CLEANUP(str_done) struct str key = STR_EMPTY;
    double figure = 0;
    write_key(&key, 'l', &search, rate_rps);
    if (recall(model, &key, &figure))
        return figure;
    search.system.rate = rate_rps / 1000;
    queue_figure_begin(model->figure);
    figure = search.question.measure == QUEUE_MEAN
                 ? queue_figure_at(model->figure, &search.system, &search.question)
                 : find_percentile(model->figure, &search.system, &search.question);
    return remember(model, &key, round_up(figure, objective->latency_ms));
}
