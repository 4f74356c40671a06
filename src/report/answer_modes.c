/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings between sharing modes: slices against processes that share, a slice beside working
 * neighbours, the GPU without MIG.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "report/answer_internal.h"

static bool is_mode(const struct bench_cell *cell, const char *mode)
{
    return strcmp(cell->mode, mode) == 0;
}

/* The same work: model, task, batch, length. */
static bool same_work(const struct bench_cell *a, const struct bench_cell *b)
{
    return a->ok && b->ok && strcmp(a->model, b->model) == 0 && strcmp(a->task, b->task) == 0 &&
           a->batch == b->batch && a->sequence == b->sequence;
}

/* Both closed, or the same rate in all. */
static bool same_load(const struct bench_cell *a, const struct bench_cell *b)
{
    if (isnan(a->rate_rps) || isnan(b->rate_rps))
        return isnan(a->rate_rps) && isnan(b->rate_rps) && strcmp(a->load, b->load) == 0;
    return fabs(a->rate_rps - b->rate_rps) <= 1e-9 * a->rate_rps;
}

/* Processes in all. With thread percentages each process stands for an instance. */
static int workers(const struct bench_cell *cell)
{
    if (is_mode(cell, "mps-percentage"))
        return cell->procs;
    return cell->instances * cell->procs;
}

static const char *tail_figure(const struct bench_cell *cell)
{
    return isnan(cell->rate_rps) ? "latency_ms_p99" : "e2e_ms_p99";
}

/* What two modes are to each other, over all pairs of cells or over those of one group. */
struct contest {
    struct ratio_sum throughput, tail;
};

/* "p99 latency ×0.62 (…), better; throughput ×0.95 (…), not shown to differ" */
static void add_contest(struct answer *answer, const struct contest *contest, struct str *line)
{
    if (contest->tail.pairs > 0) {
        str_add(line, "p99 latency ");
        answer_ratio(answer, &contest->tail, line);
        str_addf(line, ", %s", answer_judgement(&contest->tail, true));
    }
    if (contest->throughput.pairs > 0) {
        str_add(line, contest->tail.pairs > 0 ? "; throughput " : "throughput ");
        answer_ratio(answer, &contest->throughput, line);
        str_addf(line, ", %s", answer_judgement(&contest->throughput, false));
    }
}

/* Groups by which a contest is told apart. */
enum grouping { BY_NOTHING, BY_MODEL, BY_BATCH, BY_WORKERS, BY_RATE, GROUPING_COUNT };

static void group_name(const struct bench_cell *cell, enum grouping grouping, struct str *name)
{
    switch (grouping) {
    case BY_MODEL:
        str_add(name, cell->model);
        break;
    case BY_BATCH:
        str_addf(name, "%d", cell->batch);
        break;
    case BY_WORKERS:
        str_addf(name, "%d", workers(cell));
        break;
    case BY_RATE:
        str_addf(name, "%g/s", cell->rate_rps);
        break;
    case BY_NOTHING:
    case GROUPING_COUNT:
        break;
    }
}

/* What pairs of two modes are made of. */
struct pairing {
    const char *a, *b;
    bool (*fits)(const struct bench_cell *a, const struct bench_cell *b);
    bool by_instance; /* throughput of one slice, not of all */
};

/* The contest over the pairs whose group has this name; BY_NOTHING: over all. */
static struct contest hold(const struct bench_cells *cells, const struct pairing *pairing,
                           enum grouping grouping, const char *group)
{
    struct contest contest = {0};
    for (size_t i = 0; i < cells->list.count; i++)
        for (size_t k = 0; k < cells->list.count; k++) {
            const struct bench_cell *a = &cells->list.data[i], *b = &cells->list.data[k];
            CLEANUP(str_done) struct str name = STR_EMPTY;
            if (!is_mode(a, pairing->a) || !is_mode(b, pairing->b) || !pairing->fits(a, b))
                continue;
            group_name(a, grouping, &name);
            if (grouping != BY_NOTHING && strcmp(name.bytes, group) != 0)
                continue;
            struct ratio_pair pair = {.a = a, .b = b};
            ratio_sum_add(&contest.tail, &pair, tail_figure(a));
            if (pairing->by_instance) {
                pair.a_factor = 1.0 / a->instances;
                pair.b_factor = 1.0 / b->instances;
            }
            ratio_sum_add(&contest.throughput, &pair, "throughput_rps");
        }
    return contest;
}

/* The tail (training: throughput) group by group, where there is more than one. */
static void add_groups(struct answer *answer, const struct pairing *pairing,
                       enum grouping grouping, struct str *line)
{
    static const char *const words[GROUPING_COUNT] = {[BY_MODEL] = "model",
                                                      [BY_BATCH] = "batch",
                                                      [BY_WORKERS] = "workers",
                                                      [BY_RATE] = "rate"};
    struct map names = {0};
    const char *before = "";
    CLEANUP(str_done) struct str parts = STR_EMPTY;
    for (size_t i = 0; i < answer->cells.list.count; i++) {
        CLEANUP(str_done) struct str name = STR_EMPTY;
        const struct bench_cell *cell = &answer->cells.list.data[i];
        if (!is_mode(cell, pairing->a) || (grouping == BY_RATE && isnan(cell->rate_rps)))
            continue;
        group_name(cell, grouping, &name);
        if (map_find(&names, name.bytes) >= 0)
            continue;
        struct contest contest = hold(&answer->cells, pairing, grouping, name.bytes);
        const struct ratio_sum *sum =
            contest.tail.pairs > 0 ? &contest.tail : &contest.throughput;
        if (sum->pairs == 0)
            continue;
        map_put(&names, name.bytes, NULL);
        str_addf(&parts, "%s%s ", before, name.bytes);
        answer_ratio(answer, sum, &parts);
        before = ", ";
    }
    if (names.count > 1)
        str_addf(line, " p99 by %s: %s.", words[grouping], parts.bytes);
    map_done(&names);
}

static void say_contest(struct answer *answer, const struct pairing *pairing,
                        const char *opening)
{
    CLEANUP(str_done) struct str line = STR_EMPTY;
    struct contest contest = hold(&answer->cells, pairing, BY_NOTHING, "");
    int pairs = contest.throughput.pairs;
    if (pairs == 0)
        return;
    str_addf(&line, "%s, over %d pair%s of cells: ", opening, pairs, pairs > 1 ? "s" : "");
    add_contest(answer, &contest, &line);
    str_add_char(&line, '.');
    for (int grouping = BY_MODEL; grouping < GROUPING_COUNT; grouping++)
        add_groups(answer, pairing, (enum grouping)grouping, &line);
    answer_say(answer, &line);
}

/* As many processes, in slices of their own and in one that they share. */
static bool fits_sharing(const struct bench_cell *a, const struct bench_cell *b)
{
    return same_work(a, b) && same_load(a, b) && workers(a) == workers(b) && workers(a) > 1;
}

void answer_sharing(struct answer *answer)
{
    static const struct {
        const char *mode, *opening;
    } shared[] = {
        {"mps", "Slices of their own against MPS processes that share (slices \u00f7 MPS)"},
        {"mps-percentage",
         "Slices against MPS with equal thread percentages (slices \u00f7 MPS)"},
        {"time-slicing", "Slices against time slicing (slices \u00f7 time slicing)"},
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        say_contest(answer, &(struct pairing){"busy", shared[i].mode, fits_sharing, false},
                    shared[i].opening);
}

static bool fits_neighbours(const struct bench_cell *a, const struct bench_cell *b)
{
    bool same_rate = strcmp(a->load, b->load) == 0;
    return same_work(a, b) && same_rate && strcmp(a->slice, b->slice) == 0 &&
           a->procs == b->procs;
}

void answer_neighbours(struct answer *answer)
{
    static const struct {
        const char *mode, *opening;
    } beside[] = {
        {"busy", "A slice while all others of its kind do the same, against itself alone"},
        {"neighbours", "A slice beside unlike neighbours, against itself alone"},
        {"training-beside", "A slice while another one trains, against itself alone"},
        {"training-within", "A slice that also trains itself, against itself alone"},
        {"compute-instances", "Compute instances at work together, against one alone"},
    };
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        say_contest(answer, &(struct pairing){beside[i].mode, "alone", fits_neighbours, true},
                    beside[i].opening);
}

void answer_whole(struct answer *answer)
{
    say_contest(answer, &(struct pairing){"whole", "alone", fits_neighbours, false},
                "The whole GPU without MIG, against its largest slice");
}
