/* SPDX-License-Identifier: Apache-2.0
 *
 * What one batch counts for, given the time r that its first request had to wait for the
 * process: how many requests it has, how many of them are late, and their times together.
 * The i-th request behind the first comes at an Erlang(i) time E(i); the batch starts y
 * after the first came, y = r where E(batch - 1) <= r, E(batch - 1) where that is within
 * max_wait, and max(r, max_wait) otherwise. A request is late when E(i) < y + S - limit.
 */
#include <assert.h>
#include <math.h>

#include "verify/queue_law.h"

struct worth {
    struct queue_law *law;
    double limit_ms;
    bool mean;
    /* sums over all batches */
    double requests, late, total_ms;
};

static double full_time(const struct queue_law *law)
{
    return queue_law_time(law, law->groups - 1);
}

/* P(Poisson(rate t) >= n) = P(E(n) <= t). */
static double at_least(struct queue_law *law, int n, double t)
{
    assert(n <= law->unit + 2);
    if (n <= 0)
        return 1;
    queue_law_poisson(law, law->rate * t, n, law->chance);
    double below = 0;
    for (int k = 0; k < n; k++)
        below += law->chance[k];
    return below < 1 ? 1 - below : 0;
}

/* Requests of a batch, and what those count that start unfilled, y after the first came. */
static void add_unfilled(struct worth *worth, double y, double mass)
{
    assert(y >= 0);
    struct queue_law *law = worth->law;
    int batch = law->unit, k = 1;
    double unfilled = 0, requests = 0, late = 0, total_ms = 0;
    queue_law_poisson(law, law->rate * y, batch, law->chance);
    for (int g = 0; g < law->groups; g++) {
        double service = queue_law_time(law, g), z = y + service - worth->limit_ms;
        double share = z <= 0 ? 0 : z >= y ? 1 : z / y;
        for (; k < batch && k <= queue_law_group_end(law, g); k++) {
            double chance = law->chance[k - 1];
            unfilled += chance;
            requests += k * chance;
            late += z > 0 ? chance * (1 + (k - 1) * share) : 0;
            total_ms += chance * (k * (service + y) - (k - 1) * y / 2);
        }
    }
    worth->requests += mass * (requests + batch * fmax(0, 1 - unfilled));
    worth->late += mass * late;
    worth->total_ms += mass * total_ms;
}

/* Late requests of a batch that is full when the process frees, r after the first came: of
 * those E[min(batch, 1 + N(z)); N(r) >= batch - 1], N(z) arrivals come within z, and the
 * rest within the limit less S, for which law->filled has the chances. */
static double late_at_once(struct worth *worth, double r)
{
    assert(!worth->mean);
    struct queue_law *law = worth->law;
    int batch = law->unit;
    double z = r + full_time(law) - worth->limit_ms;
    if (z <= 0)
        return 0;
    if (z >= r)
        return batch * at_least(law, batch - 1, r);
    double sum = 0, below = 0;
    queue_law_poisson(law, law->rate * z, batch, law->chance_late);
    for (int m = 0; m < batch - 1; m++) {
        below += law->chance_late[m];
        sum += law->chance_late[m] * (1 + m) * law->filled[batch - 1 - m];
    }
    return sum + batch * fmax(0, 1 - below);
}

/* Batches that start the moment they fill, between r and max_wait after the first came. */
static void add_filling(struct worth *worth, double r, double mass)
{
    struct queue_law *law = worth->law;
    int batch = law->unit;
    double wait = law->queue.max_wait_ms, service = full_time(law);
    if (r >= wait || batch < 2)
        return;
    if (worth->mean) {
        double within = at_least(law, batch - 1, wait) - at_least(law, batch - 1, r);
        double more = at_least(law, batch, wait) - at_least(law, batch, r);
        worth->total_ms +=
            mass * batch * (service * within + (batch - 1) / (2 * law->rate) * more);
        return;
    }
    double slack = worth->limit_ms - service, low = fmax(r, slack);
    if (low >= wait)
        return;
    double within = at_least(law, batch - 1, wait) - at_least(law, batch - 1, low);
    if (slack <= 0) {
        worth->late += mass * batch * within;
        return;
    }
    double less = at_least(law, batch - 2, wait) - at_least(law, batch - 2, low);
    worth->late += mass * ((batch - 1) * within - slack * law->rate * less);
}

static void add_batch(void *context, double r, double mass)
{
    struct worth *worth = context;
    struct queue_law *law = worth->law;
    int batch = law->unit;
    add_unfilled(worth, fmax(r, law->queue.max_wait_ms), mass);
    add_filling(worth, r, mass);
    if (!worth->mean) {
        worth->late += mass * late_at_once(worth, r);
        return;
    }
    worth->total_ms += mass * batch *
                       ((r + full_time(law)) * at_least(law, batch - 1, r) -
                        (batch - 1) / (2 * law->rate) * at_least(law, batch, r));
}

/* Requests of their own: late when their wait r passes the limit less the service. */
static void add_request(void *context, double r, double mass)
{
    struct worth *worth = context;
    double time_ms = r + full_time(worth->law);
    worth->requests += mass;
    worth->late += time_ms > worth->limit_ms ? mass : 0;
    worth->total_ms += mass * time_ms;
}

static void sum_worth(struct worth *worth)
{
    struct queue_law *law = worth->law;
    double breaks[QUEUE_LAW_GROUPS_MAX + 1];
    double wait = law->queue.max_wait_ms, slack = worth->limit_ms - full_time(law);
    int count = 0;
    breaks[count++] = wait;
    for (int g = 0; !worth->mean && g < law->groups; g++)
        breaks[count++] = worth->limit_ms - queue_law_time(law, g);
    assert(count <= QUEUE_LAW_GROUPS_MAX + 1);
    double linear =
        fmax(wait, fmax(0, worth->mean ? 0 : slack) + queue_law_certain(law) / law->rate);
    queue_law_walk(
        law, &(struct queue_walk){.start = &law->start,
                                  .breaks = breaks,
                                  .break_count = count,
                                  .linear = linear,
                                  .visit = law->queue.procs == 1 ? add_batch : add_request,
                                  .context = worth});
}

double queue_law_late(struct queue_law *law, double limit_ms)
{
    struct worth worth = {.law = law, .limit_ms = limit_ms};
    double slack = limit_ms - full_time(law);
    for (int j = 0; j < law->unit + 1; j++)
        law->filled[j] = slack > 0 ? at_least(law, j, slack) : j <= 0;
    sum_worth(&worth);
    assert(worth.requests > 0);
    return fmin(fmax(worth.late / worth.requests, 0), 1);
}

double queue_law_mean_ms(struct queue_law *law)
{
    struct worth worth = {.law = law, .limit_ms = INFINITY, .mean = true};
    sum_worth(&worth);
    assert(worth.requests > 0);
    return worth.total_ms / worth.requests;
}
