/* SPDX-License-Identifier: Apache-2.0
 *
 * The exact analysis of the batch queue. In short (docs/spec/latency-rules.md in full):
 *
 * One process. Let pi(n) be the share of batch starts that find n requests waiting. After
 * a full batch with n > b the next start is at its end, so n' = n - b + Poisson; after
 * n <= b nothing is left and the row of n' is closed form. Beyond `top`, pi falls
 * geometrically with the ratio 1/z, z > 1 the root of z^b = exp(rate S (z - 1)). So pi above b
 * is a banded linear system with one right side for each group of batch sizes, and the
 * masses of the groups follow from a system as small as their number.
 *
 * Every batch has a first request, one that finds a multiple of b waiting when it arrives.
 * Given the time r until the process could take it, the law of its batch is closed form
 * (requests behind it are Poisson, and uniform given their number), so each figure is an
 * integral of closed forms over the arrival times of first requests: Gauss-Legendre,
 * split where the integrand jumps.
 *
 * Batches of one on c processes: with a constant time D, the number in the system obeys
 * N' = max(N - c, 0) + Poisson(rate D) (Crommelin 1932), the same banded system; the
 * waiting time follows as in Franx (2001).
 */
#include "plan/queue_chain.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/queue_poisson.h"

const double queue_node_at[QUEUE_NODES] = {
    -0.9602898564975363, -0.7966664774136267, -0.5255324099163290, -0.1834346424956498,
    0.1834346424956498,  0.5255324099163290,  0.7966664774136267,  0.9602898564975363};
const double queue_node_weight[QUEUE_NODES] = {
    0.1012285362903763, 0.2223810344533745, 0.3137066458778873, 0.3626837833783620,
    0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763};

struct queue_chain *queue_chain_new(void)
{
    return xcalloc(1, sizeof(struct queue_chain));
}

void queue_chain_free(struct queue_chain *chain)
{
    if (!chain)
        return;
    free(chain->law);
    free(chain->above);
    free(chain->low);
    free(chain->band);
    poisson_done(&chain->full);
    poisson_done(&chain->scratch);
    poisson_done(&chain->ahead);
    poisson_done(&chain->behind);
    free(chain);
}

static double *reserve(double **memory, size_t *capacity, size_t count)
{
    if (count > *capacity) {
        *memory = xrealloc(*memory, count, sizeof **memory);
        *capacity = count;
    }
    memset(*memory, 0, count * sizeof **memory);
    return *memory;
}

/* Batches of wait that add_growth() looks at; later ones are rarer than any figure shows. */
enum { GROWTH_MAX = 1000 };

/* 1/z of the geometric tail: unit ln z = load (z - 1), z > 1. From the right of the root
 * Newton's steps fall monotonically (the function is concave). */
static double tail_ratio(int unit, double load)
{
    assert(load > 0 && load < unit);
    double r = unit / load;
    double z = r * r;
    if (!(z < 1e12))
        return 0;
    for (int i = 0; i < 60; i++) {
        double step = (unit * log(z) - load * (z - 1)) / (unit / z - load);
        z -= step;
        if (fabs(step) < 1e-14 * z)
            break;
    }
    return z > 1 ? 1 / z : 1;
}

double queue_chain_at(const struct queue_chain *chain, const double *law, int n)
{
    assert(n > chain->unit);
    if (n <= chain->top)
        return law[n];
    return law[chain->top] * pow(chain->ratio, n - chain->top);
}

double queue_chain_sum(const struct queue_chain *chain, const double *law)
{
    double sum = law[chain->top] * chain->ratio / (1 - chain->ratio);
    for (int n = chain->top; n > chain->unit; n--)
        sum += law[n];
    return sum;
}

/* Band of the system above `unit`: x(n') - sum_n x(n) P(n -> n') = source(n'), with
 * P(n -> n') = Poisson(n' - n + unit) and the geometric tail folded into the last column. */
struct band {
    int size;         /* unknowns: n = unit + 1 … top */
    int lower, upper; /* diagonals kept below and above the main one */
    double *rows;     /* size rows of lower + upper + 1 */
};

static double *band_entry(const struct band *band, int row, int column)
{
    return &band->rows[(size_t)row * (size_t)(band->lower + band->upper + 1) +
                       (size_t)(column - row + band->lower)];
}

static struct band band_make(struct queue_chain *chain)
{
    const struct poisson *full = &chain->full;
    int unit = chain->unit;
    struct band band = {.size = chain->top - unit};
    band.lower = full->high > unit ? full->high - unit : 0;
    band.upper = full->low < unit ? unit - full->low : 0;
    if (band.lower >= band.size)
        band.lower = band.size - 1;
    if (band.upper >= band.size)
        band.upper = band.size - 1;
    size_t width = (size_t)(band.lower + band.upper + 1);
    band.rows = reserve(&chain->band, &chain->band_capacity, (size_t)band.size * width);
    int last = band.size - 1;
    for (int row = 0; row < band.size; row++) {
        int from = row > band.lower ? row - band.lower : 0;
        int to = row + band.upper < last ? row + band.upper : last;
        for (int column = from; column <= to; column++)
            *band_entry(&band, row, column) = -poisson_at(full, row - column + unit);
        if (to == last) {
            double tail = 0, weight = chain->ratio;
            for (int i = 1; i <= row - last + unit - full->low; i++, weight *= chain->ratio)
                tail += weight * poisson_at(full, row - last - i + unit);
            *band_entry(&band, row, last) -= tail;
        }
        *band_entry(&band, row, row) += 1;
    }
    return band;
}

/* Gaussian elimination without pivots: the matrix is an M-matrix (its columns sum to the
 * chance of leaving the region), for which that is stable. `count` right sides. */
static void band_solve(const struct band *band, double *const *sides, int count)
{
    for (int pivot = 0; pivot < band->size; pivot++) {
        const double *top = band_entry(band, pivot, pivot);
        assert(top[0] > 0);
        int bottom =
            pivot + band->lower < band->size - 1 ? pivot + band->lower : band->size - 1;
        int width = pivot + band->upper < band->size - 1 ? band->upper : band->size - 1 - pivot;
        for (int row = pivot + 1; row <= bottom; row++) {
            double *entry = band_entry(band, row, pivot);
            if (*entry == 0)
                continue;
            double factor = *entry / top[0];
            for (int i = 1; i <= width; i++)
                entry[i] -= factor * top[i];
            for (int side = 0; side < count; side++)
                sides[side][row] -= factor * sides[side][pivot];
        }
    }
    for (int row = band->size - 1; row >= 0; row--) {
        const double *diagonal = band_entry(band, row, row);
        int width = row + band->upper < band->size - 1 ? band->upper : band->size - 1 - row;
        for (int side = 0; side < count; side++) {
            double value = sides[side][row];
            for (int i = 1; i <= width; i++)
                value -= diagonal[i] * sides[side][row + i];
            sides[side][row] = value / diagonal[0];
        }
    }
}

/* For each group, the expected number of starts at each n > unit that follow one start in
 * the group (until the next start with n <= unit). */
static void solve_above(struct queue_chain *chain)
{
    const struct queue_case *system = &chain->system;
    size_t stride = (size_t)chain->top + 1;
    double *above =
        reserve(&chain->above, &chain->above_capacity, stride * (size_t)system->group_count);
    double *sides[QUEUE_GROUPS_MAX];
    for (int g = 0; g < system->group_count; g++) {
        poisson_set(&chain->scratch, system->rate * system->groups[g].service_ms);
        sides[g] = above + stride * (size_t)g + chain->unit + 1;
        for (int n = chain->unit + 1; n <= chain->top; n++)
            sides[g][n - chain->unit - 1] = poisson_at(&chain->scratch, n);
    }
    struct band band = band_make(chain);
    band_solve(&band, sides, system->group_count);
}

/* From a law above `unit`, the flow into n' = k <= unit by starts that wait for nothing. */
static double flow_down(const struct queue_chain *chain, const double *law, int k)
{
    assert(k >= 0 && k <= chain->unit);
    double sum = 0;
    int first = chain->unit + k - chain->full.high;
    int last = chain->unit + k - chain->full.low;
    if (first <= chain->unit)
        first = chain->unit + 1;
    for (int n = first; n <= last; n++)
        sum += queue_chain_at(chain, law, n) * poisson_at(&chain->full, k - n + chain->unit);
    return sum;
}

/* sum over left > 0 of law(unit + left) P(count - left arrivals), from chain->ahead. */
static double left_and_arrived(const struct queue_chain *chain, const double *law, int count)
{
    const struct poisson *ahead = &chain->ahead;
    int first = count - ahead->high, last = count - ahead->low, tail = chain->top - chain->unit;
    double sum = 0;
    if (first < 1)
        first = 1;
    int stored = last < tail ? last : tail;
    const double *shares = law + chain->unit, *chances = ahead->values - ahead->base + count;
    for (int left = first; left <= stored; left++)
        sum += shares[left] * chances[-left];
    int left = first > tail ? first : tail + 1;
    if (left > last)
        return sum;
    double share = queue_chain_at(chain, law, chain->unit + left);
    for (; left <= last; left++, share *= chain->ratio)
        sum += share * chances[-left];
    return sum;
}

double queue_chain_arrivals(struct queue_chain *chain, const struct queue_source *source,
                            double t, int count)
{
    assert(t >= 0 && count >= 0);
    double rate = chain->system.rate, mean = rate * t;
    if (source->mass == 0 && count - mean - 26 - 8.5 * sqrt(mean) > chain->top - chain->unit) {
        /* all of it in the geometric tail: sum_i ratio^-i P(i) = exp(mean (1/ratio - 1)) */
        int beyond = count + chain->unit - chain->top;
        return rate * source->law[chain->top] *
               exp(beyond * log(chain->ratio) + mean * (1 / chain->ratio - 1));
    }
    poisson_set_upto(&chain->ahead, mean, count);
    double sum = source->mass * poisson_at(&chain->ahead, count);
    if (source->law)
        sum += left_and_arrived(chain, source->law, count);
    return rate * sum;
}

/* With this many arrivals on the mean, fewer than b have no chance to speak of. */
static double plenty(const struct queue_case *system)
{
    return system->batch + 40 * sqrt(system->batch) + 800;
}

/* One panel of first requests whose batch could start after low … high ms, the wait being
 * longer: what was counted for them as starting at once is moved to where the wait puts it. */
static double move_panel(struct queue_chain *chain, const struct queue_source *source, int j,
                         const double range[2], double *flow)
{
    double sum = 0;
    const struct queue_case *system = &chain->system;
    double full = queue_last_group(system)->service_ms;
    double half = (range[1] - range[0]) / 2, middle = (range[1] + range[0]) / 2;
    for (int i = 0; i < QUEUE_NODES; i++) {
        double r = middle + half * queue_node_at[i];
        double t = source->service_ms + j * full - r;
        double weight = half * queue_node_weight[i] *
                        queue_chain_arrivals(chain, source, t, j * system->batch);
        sum += weight;
        poisson_set(&chain->scratch, fmin(system->rate * r, plenty(system)));
        for (int k = 1; k < system->batch; k++)
            flow[k] += weight *
                       (poisson_at(&chain->behind, k - 1) - poisson_at(&chain->scratch, k - 1));
    }
    return sum;
}

/* Where a full batch is shorter than the wait, a request that was left over may still have
 * to wait when the process frees, and its batch grows meanwhile: the change of the flow into
 * n' = k < b, added to flow[k]. */
static void add_growth(struct queue_chain *chain, const struct queue_source *source,
                       double *flow)
{
    const struct queue_case *system = &chain->system;
    double full = queue_last_group(system)->service_ms;
    int panels = (int)(sqrt(system->batch) / 2) + 1;
    poisson_set(&chain->behind, fmin(system->rate * system->wait_ms, plenty(system)));
    double moved = 1;
    for (int j = 1; j <= GROWTH_MAX && j * full < system->wait_ms && moved > 1e-12; j++) {
        moved = 0;
        double low = j * full, high = low + source->service_ms;
        if (high > system->wait_ms)
            high = system->wait_ms;
        for (int i = 0; i < panels; i++) {
            double range[2] = {low + (high - low) * i / panels,
                               low + (high - low) * (i + 1) / panels};
            moved += move_panel(chain, source, j, range, flow);
        }
    }
}

/* After a start in `group` that left nobody: the share of next starts that find k < b. */
static void fresh_flow(struct queue_chain *chain, int group, double *flow)
{
    const struct queue_case *system = &chain->system;
    double service = system->groups[group].service_ms, wait = system->wait_ms;
    double early = service > wait ? exp(-system->rate * (service - wait)) : 1;
    poisson_set(&chain->scratch, system->rate * service);
    poisson_set(&chain->ahead, system->rate * (wait < service ? wait : service));
    poisson_set(&chain->behind, fmin(system->rate * wait, plenty(system)));
    for (int k = 1; k < system->batch; k++)
        flow[k] += poisson_at(&chain->scratch, k) - early * poisson_at(&chain->ahead, k) +
                   early * poisson_at(&chain->behind, k - 1);
}

/* flow[k]: starts with k < b per start in `group`, by way of all starts above b. */
static void group_flow(struct queue_chain *chain, int group, double *flow)
{
    const struct queue_case *system = &chain->system;
    const double *law = chain->above + ((size_t)chain->top + 1) * (size_t)group;
    memset(flow, 0, (size_t)(system->batch + 1) * sizeof *flow);
    fresh_flow(chain, group, flow);
    for (int k = 1; k < system->batch; k++)
        flow[k] += flow_down(chain, law, k);
    if (queue_last_group(system)->service_ms >= system->wait_ms)
        return;
    struct queue_source fresh = {system->groups[group].service_ms, 1, NULL};
    struct queue_source left = {queue_last_group(system)->service_ms, 0, law};
    add_growth(chain, &fresh, flow);
    add_growth(chain, &left, flow);
}

/* Solves the small system of the groups' masses: mass[g] = sum_h mass[h] into[h][g] for
 * all groups but the last, whose mass is 1 for now. Gaussian elimination with pivots. */
static void solve_masses(double into[][QUEUE_GROUPS_MAX], int last, double *mass)
{
    double m[QUEUE_GROUPS_MAX][QUEUE_GROUPS_MAX + 1];
    for (int g = 0; g < last; g++) {
        for (int h = 0; h < last; h++)
            m[g][h] = (g == h) - into[h][g];
        m[g][last] = into[last][g];
    }
    for (int p = 0; p < last; p++) {
        int best = p;
        for (int row = p + 1; row < last; row++)
            if (fabs(m[row][p]) > fabs(m[best][p]))
                best = row;
        for (int i = p; i <= last; i++) {
            double kept = m[p][i];
            m[p][i] = m[best][i];
            m[best][i] = kept;
        }
        for (int row = 0; row < last; row++) {
            double factor = row == p || m[p][p] == 0 ? 0 : m[row][p] / m[p][p];
            for (int i = p; factor != 0 && i <= last; i++)
                m[row][i] -= factor * m[p][i];
        }
    }
    for (int g = 0; g < last; g++)
        mass[g] = m[g][g] != 0 ? m[g][last] / m[g][g] : 0;
    mass[last] = 1;
}

/* Masses of the groups and the law above b, per start. */
static void solve_groups(struct queue_chain *chain)
{
    const struct queue_case *system = &chain->system;
    int groups = system->group_count, last = groups - 1;
    size_t width = (size_t)system->batch + 1, stride = (size_t)chain->top + 1;
    double *flow = reserve(&chain->low, &chain->low_capacity, width * (size_t)groups);
    double into[QUEUE_GROUPS_MAX][QUEUE_GROUPS_MAX] = {{0}};
    for (int h = 0; h < groups; h++) {
        group_flow(chain, h, flow + width * (size_t)h);
        for (int g = 0; g < last; g++)
            for (int k = system->groups[g].from; k <= system->groups[g].to; k++)
                into[h][g] += flow[width * (size_t)h + (size_t)k];
    }
    solve_masses(into, last, chain->mass);
    double *law = reserve(&chain->law, &chain->law_capacity, stride);
    for (int g = 0; g < groups; g++)
        for (int n = chain->unit + 1; n <= chain->top; n++)
            law[n] += chain->mass[g] * chain->above[stride * (size_t)g + (size_t)n];
    double total = queue_chain_sum(chain, law), below = 0, requests = 0;
    for (int g = 0; g < groups; g++)
        total += chain->mass[g];
    for (int k = 1; k < system->batch; k++) {
        double share = 0;
        for (int g = 0; g < groups; g++)
            share += chain->mass[g] * flow[width * (size_t)g + (size_t)k];
        below += share;
        requests += k * share;
    }
    chain->requests_per_start = (requests + system->batch * (total - below)) / total;
    for (int g = 0; g < groups; g++)
        chain->mass[g] /= total;
    for (int n = 0; n <= chain->top; n++)
        law[n] /= total;
}

/* Crommelin's chain of c processes: low[n] and law[n] are the chance of n in the system. */
static void solve_processes(struct queue_chain *chain)
{
    int unit = chain->unit;
    size_t stride = (size_t)chain->top + 1;
    double *low = reserve(&chain->low, &chain->low_capacity, (size_t)unit + 1);
    double *law = reserve(&chain->law, &chain->law_capacity, stride);
    memcpy(law, chain->above, stride * sizeof *law);
    double total = queue_chain_sum(chain, law);
    for (int k = 0; k <= unit; k++) {
        low[k] = poisson_at(&chain->full, k) + flow_down(chain, law, k);
        total += low[k];
    }
    for (int k = 0; k <= unit; k++)
        low[k] /= total;
    for (int n = unit + 1; n <= chain->top; n++)
        law[n] /= total;
}

void queue_chain_solve(struct queue_chain *chain, const struct queue_case *system)
{
    assert(system->procs == 1 || system->batch == 1);
    assert(system->group_count > 0 && system->group_count <= QUEUE_GROUPS_MAX);
    chain->system = *system;
    chain->unit = system->batch > 1 ? system->batch : system->procs;
    double load = system->rate * queue_last_group(system)->service_ms;
    chain->ratio = tail_ratio(chain->unit, load);
    chain->top = 2 * chain->unit + (int)(8 * sqrt(chain->unit)) + 8;
    for (int g = 0; g < system->group_count; g++) { /* a slow small batch fills the queue */
        double mean = system->rate * system->groups[g].service_ms;
        int most = chain->unit + (int)(mean + 8 * sqrt(mean)) + 8;
        chain->top = most > chain->top ? most : chain->top;
    }
    poisson_set(&chain->full, load);
    solve_above(chain);
    if (system->batch == 1)
        solve_processes(chain);
    else
        solve_groups(chain);
}
