/* SPDX-License-Identifier: Apache-2.0
 *
 * See cell_ratio.h.
 */
#include "report/cell_ratio.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "mig/board.h"

#define CONFIDENCE 0.95

static const char *text_of(const json_t *key, const char *name)
{
    const char *text = json_string_value(json_object_get(key, name));
    return text ? text : "";
}

static int whole_of(const json_t *key, const char *name, int otherwise)
{
    const json_t *value = json_object_get(key, name);
    return json_is_integer(value) ? (int)json_integer_value(value) : otherwise;
}

static bool run_counts(const json_t *run, bool valid)
{
    return strcmp(text_of(run, valid ? "verdict" : "status"), valid ? "VALID" : "ok") == 0;
}

static bool any_run(const json_t *runs, bool valid)
{
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (run_counts(json_array_get(runs, i), valid))
            return true;
    return false;
}

int bench_cell_instances(const json_t *cell)
{
    const json_t *runs = json_object_get(cell, "runs");
    size_t most = 1;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        size_t count = json_array_size(json_object_get(json_array_get(runs, i), "instances"));
        most = count > most ? count : most;
    }
    return (int)most;
}

static int compute_slices_of(const json_t *key)
{
    const struct mig_board *board = mig_board_find(text_of(key, "board"));
    int profile = board ? mig_profile_find(board, text_of(key, "slice")) : -1;
    return profile < 0 ? 0 : board->profiles[profile].compute_slices;
}

/* "poisson:40": the first number of a form with a rate; NAN for a trace or a closed loop. */
static double rate_of(const char *load)
{
    const char *colon = strchr(load, ':');
    char *end;
    if (!colon || strncmp(load, "trace", 5) == 0)
        return NAN;
    double rate = strtod(colon + 1, &end);
    return end > colon + 1 && rate > 0 ? rate : NAN;
}

struct bench_cells bench_cells_read(const json_t *document)
{
    struct bench_cells cells = {0};
    const json_t *list = json_object_get(document, "cells");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *json = json_array_get(list, i);
        const json_t *key = json_object_get(json, "key"), *runs = json_object_get(json, "runs");
        struct bench_cell *cell = vec_push(&cells.list);
        *cell = (struct bench_cell){
            .json = json,
            .model = text_of(key, "model"),
            .slice = text_of(key, "slice"),
            .mode = text_of(key, "mode"),
            .load = text_of(key, "load"),
            .task = text_of(key, "task"),
            .device = text_of(key, "device"),
            .batch = whole_of(key, "batch", 1),
            .procs = whole_of(key, "procs", 1),
            .sequence = whole_of(key, "sequence", 0),
            .instances = bench_cell_instances(json),
            .compute_slices = compute_slices_of(key),
            .ok = any_run(runs, false),
            .valid = any_run(runs, true),
        };
        cell->rate_rps = rate_of(cell->load) * cell->instances;
    }
    return cells;
}

void bench_cells_done(struct bench_cells *cells)
{
    vec_done(&cells->list);
}

struct logarithms {
    VEC(double) list;
};

static struct logarithms logarithms_of(const struct bench_cell *cell, const char *figure)
{
    struct logarithms found = {0};
    const json_t *runs = json_object_get(cell->json, "runs");
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        const json_t *value = json_object_get(json_object_get(run, "figures"), figure);
        if (run_counts(run, cell->valid) && json_is_number(value) &&
            json_number_value(value) > 0)
            vec_add(&found.list, log(json_number_value(value)));
    }
    return found;
}

double bench_cell_figure(const struct bench_cell *cell, const char *figure)
{
    struct logarithms found = logarithms_of(cell, figure);
    double value = found.list.count ? exp(stats_mean(found.list.data, found.list.count)) : NAN;
    vec_done(&found.list);
    return value;
}

/* Adds the difference of two means of logarithms, with Welch's variance and freedom. */
static void add_difference(struct ratio_sum *sum, const struct logarithms *a,
                           const struct logarithms *b, double shift)
{
    double difference = stats_mean(a->list.data, a->list.count) -
                        stats_mean(b->list.data, b->list.count) + shift;
    double na = (double)a->list.count, nb = (double)b->list.count;
    double va = stats_variance(a->list.data, a->list.count) / na;
    double vb = stats_variance(b->list.data, b->list.count) / nb;
    bool first = sum->pairs++ == 0;
    assert(na >= 1 && nb >= 1);
    sum->logarithms += difference;
    sum->least = first ? exp(difference) : fmin(sum->least, exp(difference));
    sum->most = first ? exp(difference) : fmax(sum->most, exp(difference));
    if (na < 2 || nb < 2) {
        sum->unsure++;
        return;
    }
    double rest = va * va / (na - 1) + vb * vb / (nb - 1);
    sum->variance += va + vb;
    sum->freedom += rest > 0 ? (va + vb) * (va + vb) / rest : na + nb - 2;
}

void ratio_sum_add(struct ratio_sum *sum, const struct ratio_pair *pair, const char *figure)
{
    struct logarithms a = logarithms_of(pair->a, figure), b = logarithms_of(pair->b, figure);
    double a_factor = pair->a_factor > 0 ? pair->a_factor : 1;
    double b_factor = pair->b_factor > 0 ? pair->b_factor : 1;
    if (a.list.count > 0 && b.list.count > 0) {
        add_difference(sum, &a, &b, log(a_factor / b_factor));
        sum->invalid |= !pair->a->valid || !pair->b->valid;
    }
    vec_done(&a.list);
    vec_done(&b.list);
}

struct ratio ratio_sum_mean(const struct ratio_sum *sum)
{
    struct ratio ratio = {NAN, NAN, NAN, sum->pairs, !sum->invalid};
    if (sum->pairs == 0)
        return ratio;
    double mean = sum->logarithms / sum->pairs;
    ratio.value = exp(mean);
    if (sum->unsure == sum->pairs)
        return ratio;
    double variance = sum->variance * sum->pairs / (sum->pairs - sum->unsure);
    double half =
        stats_t_quantile(0.5 + CONFIDENCE / 2, sum->freedom) * sqrt(variance) / sum->pairs;
    ratio.low = exp(mean - half);
    ratio.high = exp(mean + half);
    return ratio;
}
