/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows are grouped by model and pair of board and profile, the fastest first. One piece of
 * work is one question (what services of one model, objective and wait ask) on one pair.
 */
#include "plan/promises.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "plan/rule.h"

/* Why a question has no answer on a pair, gathered over its rows. */
struct reasons {
    bool out_of_memory;
    bool fits;
    double nearest_latency_ms; /* NAN: none */
};

struct question {
    int service; /* the first that asks; its row of the table has the answers */
    int model;   /* position in models; -1: not measured */
};

struct builder {
    struct problem *problem;
    struct promise_table *table;
    int *row_pair;     /* pair of each row; -1: a board that the fleet lacks */
    struct map models; /* model → position */
    int *row_model;
    int *order; /* row indices by model, pair, and falling throughput */
    int *first; /* where the rows of model * pairs + pair begin in it; one more at the end */
    VEC(struct question) questions;
    int *question_of;        /* of each service */
    struct reasons *reasons; /* questions rows of pairs */
    struct queue_model *
        *queues; /* memory of the queue rule, one a worker; NULL: another rule */
    int queue_count;
};

static void builder_done(struct builder *builder)
{
    for (int w = 0; w < builder->queue_count; w++)
        queue_model_free(builder->queues[w]);
    free(builder->queues);
    map_done(&builder->models);
    free(builder->row_pair);
    free(builder->row_model);
    free(builder->order);
    free(builder->first);
    vec_done(&builder->questions);
    free(builder->question_of);
    free(builder->reasons);
}

/* ---- rows ------------------------------------------------------------------------- */

static bool in_fleet(const struct problem *problem, const struct mig_board *board)
{
    for (size_t i = 0; i < problem->parts.count; i++)
        if (problem->parts.data[i].board == board)
            return true;
    return false;
}

static int pair_compare(const void *a, const void *b)
{
    const struct problem_slot *x = a, *y = b;
    if (x->board != y->board)
        return x->board < y->board ? -1 : 1;
    return x->profile - y->profile;
}

/* The pairs, and which of them each row has. */
static void collect_pairs(struct builder *builder)
{
    const struct problem *problem = builder->problem;
    struct promise_table *table = builder->table;
    size_t count = problem->rows->rows.count;
    builder->row_pair = xcalloc(count + 1, sizeof *builder->row_pair);
    struct problem_slot *seen = xcalloc(count + 1, sizeof *seen);
    size_t seen_count = 0;
    for (size_t r = 0; r < count; r++) {
        const struct measurement *row = &problem->rows->rows.data[r];
        if (in_fleet(problem, row->board))
            seen[seen_count++] = (struct problem_slot){row->board, row->profile};
    }
    /* Pointers into one constant table: their order is the table's on every machine. */
    qsort(seen, seen_count, sizeof *seen, pair_compare);
    for (size_t i = 0; i < seen_count; i++)
        if (i == 0 || pair_compare(&seen[i - 1], &seen[i]) != 0)
            vec_add(&table->pairs, seen[i]);
    free(seen);
    for (size_t r = 0; r < count; r++) {
        const struct measurement *row = &problem->rows->rows.data[r];
        struct problem_slot key = {row->board, row->profile};
        struct problem_slot *at = table->pairs.count == 0
                                      ? NULL
                                      : bsearch(&key, table->pairs.data, table->pairs.count,
                                                sizeof key, pair_compare);
        builder->row_pair[r] = at ? (int)(at - table->pairs.data) : -1;
    }
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct builder *builder = context;
    int x = *(const int *)a, y = *(const int *)b;
    if (builder->row_model[x] != builder->row_model[y])
        return builder->row_model[x] - builder->row_model[y];
    if (builder->row_pair[x] != builder->row_pair[y])
        return builder->row_pair[x] - builder->row_pair[y];
    double x_rps = builder->problem->rows->rows.data[x].throughput_rps;
    double y_rps = builder->problem->rows->rows.data[y].throughput_rps;
    if (x_rps != y_rps)
        return x_rps > y_rps ? -1 : 1;
    return x - y;
}

/* The fastest rows come first: a promise never exceeds the throughput, so slower rows need
 * not be worked out once a promise is above it. */
static void group_rows(struct builder *builder)
{
    const struct measurement_set *rows = builder->problem->rows;
    size_t count = rows->rows.count, pairs = builder->table->pairs.count;
    size_t used = 0;
    builder->row_model = xcalloc(count + 1, sizeof *builder->row_model);
    builder->order = xcalloc(count + 1, sizeof *builder->order);
    for (size_t r = 0; r < count; r++) {
        ptrdiff_t at = map_find(&builder->models, rows->rows.data[r].model);
        builder->row_model[r] =
            at >= 0 ? (int)at : (int)map_put(&builder->models, rows->rows.data[r].model, NULL);
        if (builder->row_pair[r] >= 0)
            builder->order[used++] = (int)r;
    }
    qsort_r(builder->order, used, sizeof *builder->order, compare_rows, builder);
    builder->first = xcalloc(builder->models.count * pairs + 1, sizeof *builder->first);
    for (size_t i = 0, cell = 0; cell <= builder->models.count * pairs; cell++) {
        builder->first[cell] = (int)i;
        while (i < used && (size_t)builder->row_model[builder->order[i]] * pairs +
                                   (size_t)builder->row_pair[builder->order[i]] ==
                               cell)
            i++;
    }
}

/* ---- questions -------------------------------------------------------------------- */

/* Services that differ in nothing the rule reads ask the same. */
static void collect_questions(struct builder *builder)
{
    const struct problem *problem = builder->problem;
    struct map known = {0};
    CLEANUP(str_done) struct str key = STR_EMPTY;
    builder->question_of =
        xcalloc((size_t)problem->service_count + 1, sizeof *builder->question_of);
    for (int i = 0; i < problem->service_count; i++) {
        const struct service *service = &problem->services->services.data[i];
        str_clear(&key);
        str_addf(&key, "%d %a %a %a %s", service->task, service->latency_ms,
                 service->percentile, service->max_wait_ms, service->model);
        ptrdiff_t at = map_find(&known, key.bytes);
        if (at < 0) {
            at = (ptrdiff_t)map_put(&known, key.bytes, NULL);
            vec_add(
                &builder->questions,
                ((struct question){.service = i,
                                   .model = (int)map_find(&builder->models, service->model)}));
        }
        builder->question_of[i] = (int)at;
    }
    map_done(&known);
}

/* Which is the better of two ways to run on one slot kind: the higher promise, then the
 * lower latency, then the smaller batch and fewer processes. */
static bool is_better(const struct problem_option *a, const struct problem_option *b)
{
    if (b->row < 0 || a->rate_rps != b->rate_rps)
        return b->row < 0 || a->rate_rps > b->rate_rps;
    if (!isnan(a->latency_ms) && a->latency_ms != b->latency_ms)
        return a->latency_ms < b->latency_ms;
    return a->batch != b->batch ? a->batch < b->batch : a->procs < b->procs;
}

/* Fills in the latency of an option where the rule leaves it to be predicted. */
static void predict(const struct rule *rule, const struct rule_query *query,
                    struct problem_option *option)
{
    struct rule_query of = *query;
    of.row = option->row;
    if (rule->queue && query->service->task == TASK_INFERENCE && isnan(option->latency_ms))
        option->latency_ms = rule_predict_ms(rule, &of, option->rate_rps);
}

static void note_reason(struct reasons *reasons, const struct rule_promise *promise)
{
    reasons->out_of_memory |= promise->verdict == RULE_OUT_OF_MEMORY;
    if (promise->verdict != RULE_TOO_SLOW)
        return;
    reasons->fits = true;
    if (!isnan(promise->latency_ms) && !(reasons->nearest_latency_ms <= promise->latency_ms))
        reasons->nearest_latency_ms = promise->latency_ms;
}

/* Why no row serves. */
static struct reasons find_reasons(const struct rule *rule, struct rule_query *query)
{
    struct reasons reasons = {.nearest_latency_ms = NAN};
    for (int i = 0; i < query->sibling_count; i++) {
        query->row = query->siblings[i];
        struct rule_promise promise = rule_apply(rule, query);
        struct problem_option option = {.row = query->row, .latency_ms = promise.latency_ms};
        if (promise.verdict == RULE_TOO_SLOW)
            predict(rule, query, &option);
        promise.latency_ms = option.latency_ms;
        note_reason(&reasons, &promise);
    }
    return reasons;
}

/* Puts the best promise of the rows into *best, and why the others fell short when there is
 * none. Predicted latencies are dear: only those that are shown or decide are worked out. */
static void answer(const struct rule *rule, struct rule_query *query,
                   struct problem_option *best, struct reasons *reasons)
{
    *reasons = (struct reasons){.nearest_latency_ms = NAN};
    best->row = -1;
    for (int i = 0; i < query->sibling_count; i++) {
        query->row = query->siblings[i];
        query->enough_rps = best->rate_rps;
        const struct measurement *row = &rule->rows->rows.data[query->row];
        struct rule_promise promise = rule_apply(rule, query);
        if (promise.verdict != RULE_USABLE)
            continue;
        struct problem_option option = {.row = query->row,
                                        .batch = row->batch,
                                        .procs = row->procs,
                                        .rate_rps = promise.rate_rps,
                                        .latency_ms = promise.latency_ms,
                                        .max_wait_ms = query->service->max_wait_ms};
        if (best->row >= 0 && option.rate_rps == best->rate_rps) {
            predict(rule, query, &option);
            predict(rule, query, best);
        }
        if (is_better(&option, best))
            *best = option;
    }
    if (best->row >= 0)
        predict(rule, query, best);
    else
        *reasons = find_reasons(rule, query);
}

/* A piece of work: one question on one pair. It writes to its own cells alone. */
static void answer_piece(void *context, size_t piece, int worker)
{
    struct builder *builder = context;
    const struct problem *problem = builder->problem;
    size_t pairs = builder->table->pairs.count;
    const struct question *question = &builder->questions.data[piece / pairs];
    size_t pair = piece % pairs;
    struct rule rule = {.services = problem->services, .rows = problem->rows};
    if (builder->queues) {
        if (!builder->queues[worker])
            builder->queues[worker] = queue_model_new();
        rule.queue = builder->queues[worker];
    }
    struct rule_query query = {.service = &problem->services->services.data[question->service]};
    if (question->model >= 0) {
        size_t cell = (size_t)question->model * pairs + pair;
        query.siblings = &builder->order[builder->first[cell]];
        query.sibling_count = builder->first[cell + 1] - builder->first[cell];
    }
    answer(&rule, &query, &builder->table->options[(size_t)question->service * pairs + pair],
           &builder->reasons[piece]);
}

/* Gives every service its question's answers. */
static void spread_answers(struct builder *builder)
{
    struct promise_table *table = builder->table;
    size_t pairs = table->pairs.count;
    for (int i = 0; i < builder->problem->service_count; i++) {
        int first = builder->questions.data[builder->question_of[i]].service;
        assert(first <= i);
        if (first != i)
            memcpy(&table->options[(size_t)i * pairs], &table->options[(size_t)first * pairs],
                   pairs * sizeof *table->options);
    }
}

static struct reasons merge_reasons(const struct reasons *cells, size_t count)
{
    struct reasons all = {.nearest_latency_ms = NAN};
    for (size_t p = 0; p < count; p++) {
        all.out_of_memory |= cells[p].out_of_memory;
        all.fits |= cells[p].fits;
        all.nearest_latency_ms = fmin(all.nearest_latency_ms, cells[p].nearest_latency_ms);
    }
    return all;
}

static void list_unserved(struct builder *builder)
{
    struct problem *problem = builder->problem;
    size_t pairs = builder->table->pairs.count;
    for (int i = 0; i < problem->service_count; i++) {
        bool served = false;
        for (size_t p = 0; p < pairs; p++)
            served |= builder->table->options[(size_t)i * pairs + p].row >= 0;
        if (served)
            continue;
        struct reasons reasons =
            merge_reasons(&builder->reasons[(size_t)builder->question_of[i] * pairs], pairs);
        vec_add(&problem->infeasible,
                ((struct plan_infeasible){
                    .service = problem->services->services.data[i].name,
                    .reason = reasons.fits            ? "latency"
                              : reasons.out_of_memory ? "memory"
                                                      : "no_measurement",
                    .nearest_latency_ms = reasons.fits ? reasons.nearest_latency_ms : NAN}));
    }
}

void promise_table_init(struct promise_table *table, struct problem *problem,
                        const struct executor *executor)
{
    CLEANUP(builder_done) struct builder builder = {.problem = problem, .table = table};
    *table = (struct promise_table){0};
    collect_pairs(&builder);
    group_rows(&builder);
    collect_questions(&builder);
    size_t pairs = table->pairs.count, pieces = builder.questions.count * pairs;
    table->options =
        xcalloc((size_t)problem->service_count * pairs + 1, sizeof *table->options);
    builder.reasons = xcalloc(pieces + 1, sizeof *builder.reasons);
    if (problem->services->latency_rule == RULE_QUEUE) {
        builder.queue_count = executor_workers(executor);
        builder.queues = xcalloc((size_t)builder.queue_count, sizeof(struct queue_model *));
    }
    executor_run(executor, pieces, answer_piece, &builder);
    spread_answers(&builder);
    list_unserved(&builder);
}

void promise_table_done(struct promise_table *table)
{
    vec_done(&table->pairs);
    free(table->options);
    *table = (struct promise_table){0};
}
