/* SPDX-License-Identifier: Apache-2.0
 *
 * The worth of a batch in closed form. Its first request waits y; behind it came a Poisson
 * number of requests, each uniform over the y: with n in all, the i-th has waited
 * y - y U(i-1 of n-1). It is late when that plus the batch's time passes the limit, that is
 * when it came within z = y + total - limit of the first.
 */
#include "plan/queue_value.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* With this many arrivals on the mean a batch of b fills for certain (to 1e-9). */
static double certain_mean(int batch)
{
    return batch + 8 * sqrt(batch) + 16;
}

/* The window of a mean as far as batches of b read it: where they fill as a rule, only how
 * likely fewer are matters. */
static void set_window(struct poisson *poisson, double mean, int batch)
{
    if (mean >= batch)
        poisson_set_upto(poisson, mean, batch);
    else
        poisson_set(poisson, mean);
}

/* A batch of exactly n <= b whose first request waited y. */
static double worth_of_size(const struct queue_value *value, double y, int n, double total_ms)
{
    if (value->measure == QUEUE_MEAN)
        return n * total_ms + y + (n - 1) * y / 2;
    double z = y + total_ms - value->limit_ms;
    if (z <= 0)
        return 0;
    return z >= y ? n : 1 + (n - 1) * z / y;
}

/* Expected worth of unfilled batches (fewer than b), with value->behind set for y. */
static double worth_partial(const struct queue_value *value, double y)
{
    const struct queue_case *system = value->system;
    double sum = 0;
    for (int g = 0; g < system->group_count; g++) {
        const struct queue_group *group = &system->groups[g];
        int to = group->to < system->batch ? group->to : system->batch - 1;
        for (int n = group->from; n <= to; n++) {
            double chance = poisson_at(&value->behind, n - 1);
            if (chance > 0)
                sum += chance * worth_of_size(value, y, n, group->total_ms);
        }
    }
    return sum;
}

/* E[late requests; the batch is full] where the first waited y, z of which make it late. */
static double late_full(struct queue_value *value, double y, double z)
{
    int batch = value->system->batch;
    double rate = value->system->rate;
    if (z <= 0)
        return 0;
    if (z >= y)
        return batch * poisson_at_least(&value->behind, batch - 1);
    if (rate * z > certain_mean(batch))
        return batch;
    set_window(&value->late, rate * z, batch);
    double sum = 1 + poisson_mean_capped(&value->late, batch - 1);
    for (int n = value->behind.low + 1; n < batch; n++)
        sum -= poisson_at(&value->behind, n - 1) * (1 + (n - 1) * z / y);
    return sum > 0 ? sum : 0;
}

/* Expected worth of full batches whose first request waited y, value->behind set for y. */
static double worth_full(struct queue_value *value, double y)
{
    const struct queue_case *system = value->system;
    double total = queue_last_group(system)->total_ms;
    int batch = system->batch;
    if (value->measure == QUEUE_LATE)
        return late_full(value, y, y + total - value->limit_ms);
    return poisson_at_least(&value->behind, batch - 1) * batch * (total + y) -
           batch * (batch - 1.0) / (2 * system->rate) * poisson_at_least(&value->behind, batch);
}

/* A batch that starts when its first request has waited y and the process frees. */
static double worth_at_once(struct queue_value *value, double y, bool may_be_partial)
{
    const struct queue_case *system = value->system;
    double mean = system->rate * y, certain = certain_mean(system->batch);
    double z = y + queue_last_group(system)->total_ms - value->limit_ms;
    if (value->measure == QUEUE_LATE && system->rate * (z < y ? z : y) > certain)
        return system->batch;
    set_window(&value->behind, mean < certain ? mean : certain, system->batch);
    double sum = worth_full(value, y);
    return may_be_partial ? sum + worth_partial(value, y) : sum;
}

/* P(Erlang(stages) <= y) = P(Poisson >= stages), of the window in value->behind. */
static double erlang_within(const struct queue_value *value, int stages)
{
    return stages <= 0 ? 1 : poisson_at_least(&value->behind, stages);
}

/* Batches that start the moment they fill, the first having waited from low to high: the
 * b-1st request behind it comes at y with Erlang density, the others are uniform before. */
static double worth_filled(struct queue_value *value, double low, double high)
{
    const struct queue_case *system = value->system;
    double total = queue_last_group(system)->total_ms, slack = value->limit_ms - total;
    double rate = system->rate;
    int batch = system->batch;
    if (batch == 1)
        return 0;
    if (value->measure == QUEUE_LATE && slack > low)
        low = slack;
    if (low >= high)
        return 0;
    double within[3]; /* of batch - 2, - 1 and - 0 stages */
    poisson_set(&value->behind, rate * high);
    for (int i = 0; i < 3; i++)
        within[i] = erlang_within(value, batch - 2 + i);
    poisson_set(&value->behind, rate * low);
    for (int i = 0; i < 3; i++)
        within[i] -= erlang_within(value, batch - 2 + i);
    if (value->measure == QUEUE_MEAN)
        return batch * total * within[1] + batch * (batch - 1.0) / (2 * rate) * within[2];
    if (slack <= 0)
        return batch * within[1];
    if (batch == 2)
        return within[1];
    return (batch - 1) * within[1] - slack * rate * within[0];
}

void queue_value_set(struct queue_value *value, const struct queue_case *system,
                     enum queue_measure measure, double limit_ms)
{
    assert(system->rate > 0 && system->group_count > 0);
    value->system = system;
    value->measure = measure;
    value->limit_ms = limit_ms;
    value->timer = 0;
    if (system->batch > 1 && system->rate * system->wait_ms <= certain_mean(system->batch)) {
        poisson_set(&value->behind, system->rate * system->wait_ms);
        value->timer = worth_partial(value, system->wait_ms);
    }
}

void queue_value_done(struct queue_value *value)
{
    poisson_done(&value->behind);
    poisson_done(&value->late);
    value->system = NULL;
}

double queue_value_of_batch(struct queue_value *value, double busy_ms)
{
    const struct queue_case *system = value->system;
    assert(busy_ms >= 0);
    if (system->batch == 1 || busy_ms >= system->wait_ms)
        return worth_at_once(value, busy_ms, system->batch > 1);
    double high = system->wait_ms, certain = certain_mean(system->batch) / system->rate;
    return worth_at_once(value, busy_ms, false) +
           worth_filled(value, busy_ms, high < certain ? high : certain) + value->timer;
}

double queue_value_slope(const struct queue_value *value)
{
    return value->measure == QUEUE_MEAN ? value->system->batch : 0;
}

double queue_value_linear(const struct queue_value *value)
{
    const struct queue_case *system = value->system;
    double full = certain_mean(system->batch) / system->rate;
    if (value->measure == QUEUE_LATE) {
        double slack = value->limit_ms - queue_last_group(system)->total_ms;
        full += slack > 0 ? slack : 0;
    }
    return full; /* a longer max_wait bends nothing: by then the batch is full */
}

double queue_value_zero(const struct queue_value *value)
{
    const struct queue_case *system = value->system;
    if (value->measure == QUEUE_MEAN)
        return 0;
    double longest = 0;
    for (int g = 0; g < system->group_count; g++)
        if (system->groups[g].total_ms > longest)
            longest = system->groups[g].total_ms;
    double zero = value->limit_ms - longest;
    double filled_ms = fmin(system->wait_ms, certain_mean(system->batch) / system->rate);
    return zero <= (system->batch > 1 ? filled_ms : 0) ? 0 : zero;
}
