/* SPDX-License-Identifier: Apache-2.0
 *
 * The density psi of r above the floor obeys
 *
 *     psi(x') = source(x') + integral psi(x) rate P(unit - 1; rate (x + S - x')) dx
 *
 * with x = r - floor and P the Poisson law: a step adds S and takes away an Erlang time.
 * Solved by collocation on Gauss-Legendre panels (Nystrom); where the kernel is cut off at
 * x = x' - S inside a panel, psi's interpolant is integrated over the rest of the panel.
 * Beyond the grid psi falls as exp(-decay x), exp(decay S) (rate / (rate + decay))^unit = 1.
 */
#include "verify/queue_law.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { POINTS = QUEUE_LAW_POINTS, BREAKS_MAX = 4 * QUEUE_LAW_GROUPS_MAX };

/* A chance that is taken as none: far below what the method errs by, far above underflow. */
static const double NEVER = 1e-200;

/* Lengths of the exponential tail after which nothing is left of it. */
static const double TAIL_LENGTHS = 100;

double queue_law_service(const struct queue_law *law, int group)
{
    assert(group >= 0 && group < law->groups);
    return law->queue.occupied * law->queue.latency_ms[group];
}

double queue_law_time(const struct queue_law *law, int group)
{
    assert(group >= 0 && group < law->groups);
    return law->queue.latency_ms[group];
}

int queue_law_group_end(const struct queue_law *law, int group)
{
    assert(group >= 0 && group < law->groups);
    return law->queue.sizes[group] < law->queue.batch_max ? law->queue.sizes[group]
                                                          : law->queue.batch_max;
}

static double full_service(const struct queue_law *law)
{
    return queue_law_service(law, law->groups - 1);
}

double queue_law_certain(const struct queue_law *law)
{
    return law->unit + 9 * sqrt(law->unit) + 28;
}

/* ---- the Poisson law and quadrature ------------------------------------------------ */

static double poisson(const struct queue_law *law, int k, double mean)
{
    assert(k >= 0 && k <= law->unit + 1);
    if (mean <= 0)
        return mean == 0 && k == 0;
    return exp(k * log(mean) - mean - law->log_factorial[k]);
}

void queue_law_poisson(const struct queue_law *law, double mean, int count, double *values)
{
    assert(count <= law->unit + 2);
    if (count <= 0)
        return;
    int top = mean < count - 1 ? (int)mean : count - 1;
    values[top] = poisson(law, top, mean);
    for (int k = top; k > 0; k--)
        values[k - 1] = values[k] * k / mean;
    for (int k = top + 1; k < count; k++)
        values[k] = values[k - 1] * mean / k;
}

/* P(Poisson(mean) < n), from the terms next to n. */
static double poisson_below(const struct queue_law *law, int n, double mean)
{
    assert(n > 0 && n <= law->unit + 1);
    double sum = 0;
    if (n <= mean) {
        double term = poisson(law, n - 1, mean);
        for (int k = n - 1; k >= 0 && term > 1e-18 * sum; term *= k-- / mean)
            sum += term;
        return sum;
    }
    double term = poisson(law, n, mean);
    for (int k = n; term > 1e-18 * (sum + 1e-300); term *= mean / ++k)
        sum += term;
    return 1 - sum;
}

/* Points and weights on -1 … 1 (Newton on the Legendre polynomial) and the weights of
 * barycentric interpolation between them. */
static void make_points(struct queue_law *law)
{
    for (int i = 0; i < POINTS; i++) {
        double x = -cos(M_PI * (i + 0.75) / (POINTS + 0.5)), slope = 1;
        for (int step = 0; step < 20; step++) {
            double before = 1, value = x;
            for (int n = 2; n <= POINTS; n++) {
                double next = ((2 * n - 1) * x * value - (n - 1) * before) / n;
                before = value;
                value = next;
            }
            slope = POINTS * (x * value - before) / (x * x - 1);
            x -= value / slope;
        }
        law->points[i] = x;
        law->weights[i] = 2 / ((1 - x * x) * slope * slope);
        law->hats[i] = (i % 2 ? -1 : 1) * sqrt((1 - x * x) * law->weights[i]);
    }
}

/* How much each point of a panel counts in the interpolated value at u of -1 … 1. */
static void interpolate(const struct queue_law *law, double u, double shares[POINTS])
{
    assert(isfinite(u));
    double sum = 0;
    for (int i = 0; i < POINTS; i++) {
        double distance = u - law->points[i];
        /* At a point itself the weights would be infinite; so near, it has all of the
         * weight. */
        if (fabs(distance) < 1e-15)
            distance = 1e-15;
        shares[i] = law->hats[i] / distance;
        sum += shares[i];
    }
    for (int i = 0; i < POINTS; i++)
        shares[i] /= sum;
}

/* ---- the grid ----------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where psi bends: at the ends of the sources, and after each step less sharply. */
static int find_bends(const struct queue_law *law, double end, double ret_bends[BREAKS_MAX])
{
    int count = 0, steps = 1 + 8 / law->unit;
    ret_bends[count++] = 0;
    ret_bends[count++] = end;
    for (int g = 0; g < law->groups; g++)
        for (int j = 0; j < steps; j++) {
            double bend = queue_law_service(law, g) + j * full_service(law);
            if (bend < end && count < BREAKS_MAX)
                ret_bends[count++] = bend;
        }
    qsort(ret_bends, (size_t)count, sizeof *ret_bends, compare_doubles);
    return count;
}

static void make_grid(struct queue_law *law)
{
    assert(law->rate > 0 && law->unit > 0);
    double bends[BREAKS_MAX], deviation = sqrt(law->unit) / law->rate, longest = 0;
    for (int g = 0; g < law->groups; g++)
        longest = fmax(longest, queue_law_service(law, g));
    double end = longest + 12 * deviation;
    int count = find_bends(law, end, bends);
    law->edges = xcalloc((size_t)(end / deviation) + 2 + (size_t)count, sizeof *law->edges);
    for (int i = 0; i + 1 < count; i++) {
        double width = bends[i + 1] - bends[i];
        if (width < 1e-12 * end)
            continue;
        /* Between its bends psi varies with the arrivals of one batch; panels keep well within
         * that. */
        int panels = (int)(width / (1.5 * deviation)) + 1;
        for (int p = 0; p < panels; p++)
            law->edges[law->panels++] = bends[i] + width * p / panels;
    }
    law->edges[law->panels] = end;
    law->at = xcalloc((size_t)law->panels * POINTS, sizeof *law->at);
    law->weight = xcalloc((size_t)law->panels * POINTS, sizeof *law->weight);
    for (int i = 0; i < law->panels * POINTS; i++) {
        double low = law->edges[i / POINTS], half = (law->edges[i / POINTS + 1] - low) / 2;
        law->at[i] = low + half * (1 + law->points[i % POINTS]);
        law->weight[i] = half * law->weights[i % POINTS];
    }
}

/* The decay beyond the grid: decay S = unit log(1 + decay / rate), from the right. */
static void find_decay(struct queue_law *law)
{
    double service = full_service(law), unit = law->unit;
    double decay = 4 * (unit / service + law->rate);
    while (decay * service < unit * log1p(decay / law->rate))
        decay *= 2;
    for (int i = 0; i < 100; i++) {
        double value = decay * service - unit * log1p(decay / law->rate);
        double step = value / (service - unit / (law->rate + decay));
        decay -= step;
        if (fabs(step) < 1e-14 * decay)
            break;
    }
    assert(decay > 0);
    law->decay = decay;
    law->has_tail = decay * 12 * sqrt(unit) / law->rate < 60;
}

/* ---- the integral equation ---------------------------------------------------------- */

static double kernel(const struct queue_law *law, double from, double to)
{
    double mean = law->rate * (from + full_service(law) - to);
    double slack = 9 * sqrt(law->unit) + 40;
    if (mean < 0 || mean > law->unit + slack || mean < law->unit - slack)
        return 0;
    return law->rate * poisson(law, law->unit - 1, mean);
}

/* The panel that x lies in is counted from x on, by way of its interpolant. */
static void fill_cut_panel(const struct queue_law *law, int panel, double x, double to,
                           double *row)
{
    assert(panel >= 0 && panel < law->panels);
    double low = law->edges[panel], high = law->edges[panel + 1], half = (high - x) / 2;
    double shares[POINTS];
    for (int q = 0; q < POINTS; q++) {
        double from = x + half * (1 + law->points[q]);
        double value = half * law->weights[q] * kernel(law, from, to);
        interpolate(law, (2 * from - low - high) / (high - low), shares);
        for (int i = 0; i < POINTS; i++)
            row[panel * POINTS + i] -= value * shares[i];
    }
}

/* What the part beyond the grid gives to psi(to), per psi at the last point. */
static double beyond(const struct queue_law *law, double to)
{
    double end = law->edges[law->panels], last = law->at[law->panels * POINTS - 1];
    double mean = (law->rate + law->decay) * (end + full_service(law) - to);
    if (!law->has_tail || mean > law->unit + 40 * sqrt(law->unit) + 100)
        return 0;
    return exp(law->decay * (last - to)) * poisson_below(law, law->unit, mean);
}

/* Row of psi(to) of the matrix 1 - K. */
static void fill_row(const struct queue_law *law, int index, double *row)
{
    assert(index >= 0 && index < law->panels * POINTS);
    int count = law->panels * POINTS;
    double to = law->at[index], cut = to - full_service(law);
    for (int panel = 0; panel < law->panels; panel++) {
        if (law->edges[panel + 1] <= cut)
            continue;
        if (law->edges[panel] < cut) {
            fill_cut_panel(law, panel, cut, to, row);
            continue;
        }
        for (int i = panel * POINTS; i < (panel + 1) * POINTS; i++)
            row[i] -= law->weight[i] * kernel(law, law->at[i], to);
    }
    row[count - 1] -= beyond(law, to);
    row[index] += 1;
}

/* Gaussian elimination with pivots; `count` right sides, one after another in sides. */
static void solve(double *matrix, int size, double *sides, int count)
{
    assert(size > 0 && count > 0);
    for (int p = 0; p < size; p++) {
        int best = p;
        for (int row = p + 1; row < size; row++)
            if (fabs(matrix[row * size + p]) > fabs(matrix[best * size + p]))
                best = row;
        for (int i = p; best != p && i < size; i++) {
            double kept = matrix[p * size + i];
            matrix[p * size + i] = matrix[best * size + i];
            matrix[best * size + i] = kept;
        }
        for (int side = 0; best != p && side < count; side++) {
            double kept = sides[side * size + p];
            sides[side * size + p] = sides[side * size + best];
            sides[side * size + best] = kept;
        }
        const double *top = matrix + p * size;
        for (int row = p + 1; row < size; row++) {
            double factor = matrix[row * size + p] / top[p];
            if (factor == 0)
                continue;
            double *entry = matrix + row * size;
            for (int i = p + 1; i < size; i++)
                entry[i] -= factor * top[i];
            for (int side = 0; side < count; side++)
                sides[side * size + row] -= factor * sides[side * size + p];
        }
    }
    for (int side = 0; side < count; side++)
        for (int row = size - 1; row >= 0; row--) {
            double value = sides[side * size + row];
            for (int i = row + 1; i < size; i++)
                value -= matrix[row * size + i] * sides[side * size + i];
            sides[side * size + row] = value / matrix[row * size + row];
        }
}

/* psi for each group's source alone: groups rows of panels x POINTS; owned by the caller.
 * A fresh start adds one arrival before the batch, so its source has one stage more. */
static double *solve_sources(const struct queue_law *law)
{
    int size = law->panels * POINTS;
    bool batches = law->queue.batch_max > 1 || law->queue.procs == 1;
    int stages = batches ? law->unit : law->unit - 1;
    CLEANUP(free_ptr)
    double *matrix = xcalloc((size_t)size * (size_t)size, sizeof *matrix);
    double *sides = xcalloc((size_t)size * (size_t)law->groups, sizeof *sides);
    for (int i = 0; i < size; i++) {
        fill_row(law, i, matrix + (size_t)i * (size_t)size);
        for (int g = 0; g < law->groups; g++)
            sides[g * size + i] =
                law->rate *
                poisson(law, stages, law->rate * (queue_law_service(law, g) - law->at[i]));
    }
    solve(matrix, size, sides, law->groups);
    return sides;
}

/* ---- integrals over a law of r ------------------------------------------------------ */

/* Splits low … high at the breaks; returns how many ends there are, sorted. */
static int split(const struct queue_walk *walk, double low, double high, double *ret_ends)
{
    int count = 0;
    ret_ends[count++] = low;
    for (int i = 0; i < walk->break_count; i++)
        if (walk->breaks[i] > low && walk->breaks[i] < high)
            ret_ends[count++] = walk->breaks[i];
    ret_ends[count++] = high;
    assert(count <= BREAKS_MAX);
    qsort(ret_ends, (size_t)count, sizeof *ret_ends, compare_doubles);
    return count;
}

/* The density at r of one part of the law. */
typedef double part_density(const struct queue_law *law, const struct queue_start *start,
                            int part, double r);

static double fresh_density(const struct queue_law *law, const struct queue_start *start,
                            int group, double r)
{
    assert(group >= 0 && group < law->groups);
    return start->fresh[group] * law->rate *
           exp(-law->rate * (queue_law_service(law, group) - r));
}

static double panel_density(const struct queue_law *law, const struct queue_start *start,
                            int panel, double r)
{
    assert(panel >= 0 && panel < law->panels);
    double shares[POINTS], sum = 0, low = law->edges[panel], high = law->edges[panel + 1];
    interpolate(law, (2 * (r - law->floor) - low - high) / (high - low), shares);
    for (int i = 0; i < POINTS; i++)
        sum += shares[i] * start->density[panel * POINTS + i];
    return sum;
}

static double tail_density(const struct queue_law *law, const struct queue_start *start,
                           int last, double r)
{
    assert(law->has_tail);
    return start->density[last] * exp(-law->decay * (r - law->floor - law->at[last]));
}

struct part {
    part_density *density;
    int index;
    double low, high, step;
};

static void walk_part(const struct queue_law *law, const struct queue_walk *walk,
                      const struct part *part)
{
    assert(part->step > 0);
    double ends[BREAKS_MAX];
    if (part->low >= part->high)
        return;
    int count = split(walk, part->low, part->high, ends);
    for (int i = 0; i + 1 < count; i++) {
        double width = ends[i + 1] - ends[i];
        int panels = (int)(width / part->step) + 1;
        double half = width / panels / 2;
        for (int n = 0; n < panels * POINTS; n++) {
            int panel = n / POINTS;
            double r = ends[i] + half * (2 * panel + 1 + law->points[n % POINTS]);
            double mass = half * law->weights[n % POINTS] *
                          part->density(law, walk->start, part->index, r);
            if (mass != 0)
                walk->visit(walk->context, r, mass);
        }
    }
}

void queue_law_walk(const struct queue_law *law, const struct queue_walk *walk)
{
    assert(walk->start && walk->visit);
    const struct queue_start *start = walk->start;
    double deviation = sqrt(law->unit) / law->rate, atom = start->atom;
    for (int g = 0; g < law->groups; g++) {
        double service = queue_law_service(law, g);
        if (start->fresh[g] == 0)
            continue;
        atom += start->fresh[g] * exp(-law->rate * service);
        struct part part = {fresh_density, g, fmax(0, service - 45 / law->rate), service,
                            3 / law->rate};
        walk_part(law, walk, &part);
    }
    if (atom > 0)
        walk->visit(walk->context, 0, atom);
    for (int p = 0; p < law->panels; p++) {
        struct part part = {panel_density, p, law->floor + law->edges[p],
                            law->floor + law->edges[p + 1], 1.5 * deviation};
        walk_part(law, walk, &part);
    }
    if (!law->has_tail)
        return;
    int last = law->panels * POINTS - 1;
    double low = law->floor + law->edges[law->panels];
    double high = fmin(fmax(low, walk->linear), low + TAIL_LENGTHS / law->decay);
    struct part part = {tail_density, last, low, high, fmin(deviation, 4 / law->decay)};
    walk_part(law, walk, &part);
    /* where f is linear, all the rest counts at its centre */
    walk->visit(walk->context, high + 1 / law->decay,
                tail_density(law, start, last, high) / law->decay);
}

/* ---- the chain of fresh starts ------------------------------------------------------ */

/* Of batches that start after r: which share leaves nobody waiting, by group. */
struct fresh_sums {
    struct queue_law *law;
    double into[QUEUE_LAW_GROUPS_MAX];
};

static void add_fresh(void *context, double r, double mass)
{
    struct fresh_sums *sums = context;
    struct queue_law *law = sums->law;
    int batch = law->unit, k = 0;
    double wait = law->queue.max_wait_ms, partial = 0, early = 0;
    queue_law_poisson(law, law->rate * fmax(r, wait), batch, law->chance);
    for (int g = 0; g < law->groups; g++)
        for (; k < batch - 1 && k < queue_law_group_end(law, g); k++) {
            sums->into[g] += mass * law->chance[k];
            partial += law->chance[k];
        }
    double at_once = poisson(law, batch - 1, law->rate * r);
    if (r < wait) { /* batches that fill while they wait */
        queue_law_poisson(law, law->rate * r, batch, law->chance);
        for (k = 0; k < batch - 1; k++)
            early += law->chance[k];
        at_once += early - partial;
    }
    sums->into[law->groups - 1] += mass * at_once;
}

/* The stationary law of a chain by state reduction (Grassmann, Taksar, Heyman): no
 * subtractions. A state that is never left for a lower one, as that of full batches is when
 * max_wait outlasts any filling, has all that those below it would have. */
static void solve_chain(double into[][QUEUE_LAW_GROUPS_MAX], int count, double *ret_law)
{
    assert(count > 0 && count <= QUEUE_LAW_GROUPS_MAX);
    int least = count - 1;
    for (; least > 0; least--) {
        double leave = 0;
        int n = least;
        for (int j = 0; j < n; j++)
            leave += into[n][j];
        if (leave < NEVER)
            break;
        for (int i = 0; i < n; i++)
            into[i][n] /= leave;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                into[i][j] += into[i][n] * into[n][j];
    }
    for (int n = 0; n < least; n++)
        ret_law[n] = 0;
    ret_law[least] = 1;
    for (int n = least + 1; n < count; n++) {
        ret_law[n] = 0;
        for (int i = 0; i < n; i++)
            ret_law[n] += ret_law[i] * into[i][n];
    }
}

static void solve_batches(struct queue_law *law, double *sources)
{
    assert(law->queue.procs == 1);
    double into[QUEUE_LAW_GROUPS_MAX][QUEUE_LAW_GROUPS_MAX] = {{0}};
    double wait = law->queue.max_wait_ms, linear = queue_law_certain(law) / law->rate;
    int size = law->panels * POINTS;
    for (int h = 0; h < law->groups; h++) {
        struct queue_start start = {.density = sources + h * size};
        start.fresh[h] = 1;
        struct fresh_sums sums = {.law = law};
        queue_law_walk(law, &(struct queue_walk){.start = &start,
                                                 .breaks = &wait,
                                                 .break_count = 1,
                                                 .linear = fmax(linear, wait),
                                                 .visit = add_fresh,
                                                 .context = &sums});
        memcpy(into[h], sums.into, sizeof sums.into);
    }
    solve_chain(into, law->groups, law->start.fresh);
    for (int h = 0; h < law->groups; h++)
        for (int i = 0; i < size; i++)
            law->start.density[i] += law->start.fresh[h] * sources[h * size + i];
}

/* ---- making one ---------------------------------------------------------------------- */

bool queue_law_covers(const struct queue_case *queue)
{
    assert(queue->procs >= 1 && queue->batch_max >= 1);
    bool regular = queue->size_count > 0 && queue->size_count <= QUEUE_LAW_GROUPS_MAX;
    for (int g = 0; regular && g < queue->size_count; g++)
        regular = queue->latency_ms[g] <= 4 * queue->latency_ms[queue->size_count - 1];
    return regular && (queue->procs == 1 || queue->batch_max == 1) &&
           queue->batch_max <= QUEUE_LAW_BATCH_MAX;
}

struct queue_law *queue_law_new(const struct queue_case *queue)
{
    assert(queue_law_covers(queue) && queue->size_count > 0);
    double rate = queue->rate_rps / 1000;
    double full_ms = queue->occupied * queue->latency_ms[queue->size_count - 1];
    int unit = queue->procs * queue->batch_max;
    /* At full load or above there is no steady state to have a law of. */
    if (!(rate > 0) || rate * full_ms >= unit * (1 - 1e-6))
        return NULL;
    struct queue_law *law = xcalloc(1, sizeof *law);
    law->queue = *queue;
    law->rate = rate;
    law->unit = unit;
    law->groups = queue->size_count;
    bool batches = queue->procs == 1;
    law->floor = batches ? full_service(law) : 0;
    size_t row = (size_t)unit + 2;
    law->log_factorial = xcalloc(row, sizeof *law->log_factorial);
    for (size_t k = 1; k < row; k++)
        law->log_factorial[k] = law->log_factorial[k - 1] + log((double)k);
    law->chance = xcalloc(row, sizeof *law->chance);
    law->chance_late = xcalloc(row, sizeof *law->chance_late);
    law->filled = xcalloc(row, sizeof *law->filled);
    make_points(law);
    make_grid(law);
    find_decay(law);
    CLEANUP(free_ptr) double *sources = solve_sources(law);
    law->start.density = xcalloc((size_t)law->panels * POINTS, sizeof(double));
    if (batches) {
        solve_batches(law, sources);
    } else {
        law->start.atom = 1;
        memcpy(law->start.density, sources, (size_t)law->panels * POINTS * sizeof *sources);
    }
    return law;
}

void queue_law_free(struct queue_law *law)
{
    if (!law)
        return;
    free(law->edges);
    free(law->at);
    free(law->weight);
    free(law->log_factorial);
    free(law->chance);
    free(law->chance_late);
    free(law->filled);
    free(law->start.density);
    free(law);
}
