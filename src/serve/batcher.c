/* SPDX-License-Identifier: Apache-2.0
 *
 * One mutex guards the queue; workers wait on one condition with the deadline of the
 * oldest request. The model runs outside the lock, each worker with a call of its own and
 * buffers that it keeps, so that a warm server allocates nothing for inputs.
 */
#include "serve/batcher.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"

struct worker {
    struct batcher *batcher;
    pthread_t thread;
    struct session_call *call;
    char *buffers[KSERVE_TENSORS_MAX]; /* joined inputs */
    size_t capacities[KSERVE_TENSORS_MAX];
};

struct batcher {
    struct session *session;
    struct batcher_options options;
    bool batchable;
    pthread_mutex_t lock;
    pthread_cond_t changed;  /* queue, draining or stopping changed */
    pthread_cond_t idle;     /* nothing waits or runs */
    struct batch_item *head; /* oldest first */
    struct batch_item **tail;
    int queued_rows, running;
    uint64_t batches, rows;
    bool draining, stopping;
    struct worker *workers;
};

/* ---- forming a batch -------------------------------------------------------------- */

static bool same_but_rows(const struct kserve_request *a, const struct kserve_request *b)
{
    for (int i = 0; i < a->input_count; i++) {
        const struct tensor_shape *x = &a->inputs[i].tensor.shape;
        const struct tensor_shape *y = &b->inputs[i].tensor.shape;
        if (memcmp(&x->size[1], &y->size[1], (size_t)(x->rank - 1) * sizeof x->size[0]) != 0)
            return false;
    }
    return true;
}

/* Rows that would join the oldest request, and whether the batch is full: no later
 * request of its shape would still fit. */
static int batch_rows_ready(const struct batcher *batcher, bool *ret_full)
{
    int rows = (int)batcher->head->request->rows;
    *ret_full = !batcher->batchable || rows >= batcher->options.batch_max;
    for (struct batch_item *item = batcher->head->next; item && !*ret_full; item = item->next) {
        if (!same_but_rows(batcher->head->request, item->request))
            continue;
        if (rows + item->request->rows <= batcher->options.batch_max)
            rows += (int)item->request->rows;
        else
            *ret_full = true;
        if (rows >= batcher->options.batch_max)
            *ret_full = true;
    }
    return rows;
}

/* Takes the oldest request and those that join it off the queue, in their order. */
static struct batch_item *take_batch(struct batcher *batcher, int *ret_rows)
{
    struct batch_item *first = batcher->head;
    struct batch_item *batch = NULL;
    struct batch_item **batch_tail = &batch;
    int rows = 0;
    for (struct batch_item **at = &batcher->head; *at;) {
        struct batch_item *item = *at;
        bool joins = item == first ||
                     (batcher->batchable && same_but_rows(first->request, item->request));
        if (joins && rows > 0 && rows + item->request->rows > batcher->options.batch_max)
            break;
        if (!joins) {
            at = &item->next;
            continue;
        }
        *at = item->next;
        item->next = NULL;
        *batch_tail = item;
        batch_tail = &item->next;
        rows += (int)item->request->rows;
        if (!batcher->batchable || rows >= batcher->options.batch_max)
            break;
    }
    batcher->tail = &batcher->head;
    while (*batcher->tail)
        batcher->tail = &(*batcher->tail)->next;
    batcher->queued_rows -= rows;
    *ret_rows = rows;
    return batch;
}

/* ---- running a batch -------------------------------------------------------------- */

static void join_input(struct worker *worker, const struct batch_item *batch, int rows,
                       int index, struct tensor *ret_tensor)
{
    const struct tensor *first = &batch->request->inputs[index].tensor;
    *ret_tensor = *first;
    if (!batch->next)
        return;
    size_t row_bytes = first->size_bytes / (size_t)first->shape.size[0];
    size_t needed = row_bytes * (size_t)rows;
    if (worker->capacities[index] < needed) {
        worker->buffers[index] = xrealloc(worker->buffers[index], needed, 1);
        worker->capacities[index] = needed;
    }
    char *at = worker->buffers[index];
    for (const struct batch_item *item = batch; item; item = item->next) {
        const struct tensor *part = &item->request->inputs[index].tensor;
        memcpy(at, part->data, part->size_bytes);
        at += part->size_bytes;
    }
    ret_tensor->shape.size[0] = rows;
    ret_tensor->data = worker->buffers[index];
    ret_tensor->size_bytes = needed;
}

/* Copies an item's rows of every output it asked for into its arena. */
static int split_outputs(struct worker *worker, struct batch_item *item, int64_t first_row,
                         int rows, struct error *err)
{
    struct kserve_request *request = item->request;
    for (int i = 0; i < request->output_count; i++) {
        struct tensor whole;
        int failed =
            session_call_output(worker->call, (size_t)request->outputs[i].index, &whole, err);
        if (failed)
            return failed;
        struct tensor *part = &request->outputs[i].tensor;
        *part = whole;
        const char *from = whole.data;
        if (request->rows != rows) {
            if (whole.shape.rank < 1 || whole.shape.size[0] != rows)
                return error_set(err, E_UNSUPPORTED, "output %d is not divided by rows",
                                 request->outputs[i].index);
            size_t row_bytes = whole.size_bytes / (size_t)rows;
            part->shape.size[0] = request->rows;
            part->size_bytes = row_bytes * (size_t)request->rows;
            from += row_bytes * (size_t)first_row;
        }
        part->data = arena_alloc(&request->arena, part->size_bytes, 1);
        memcpy(part->data, from, part->size_bytes);
    }
    return 0;
}

static int bind_inputs(struct worker *worker, const struct batch_item *batch, int rows,
                       struct error *err)
{
    for (int i = 0; i < batch->request->input_count; i++) {
        struct tensor input;
        join_input(worker, batch, rows, i, &input);
        int failed = session_call_bind(worker->call, (size_t)i, &input, err);
        if (failed)
            return failed;
    }
    return 0;
}

static void run_batch(struct worker *worker, struct batch_item *batch, int rows)
{
    struct error err = {.code = E_NONE};
    int64_t started_ns = clock_now_ns(clock_real());
    int failed = bind_inputs(worker, batch, rows, &err);
    int64_t bound_ns = clock_now_ns(clock_real());
    if (!failed)
        failed = session_call_run(worker->call, &err);
    int64_t computed_ns = clock_now_ns(clock_real());
    int64_t row = 0;
    for (struct batch_item *item = batch, *next; item; item = next) {
        next = item->next;
        item->started_ns = started_ns;
        item->bound_ns = bound_ns;
        item->computed_ns = computed_ns;
        item->batch_rows = rows;
        int item_failed = failed ? failed : split_outputs(worker, item, row, rows, &err);
        item->finished_ns = clock_now_ns(clock_real());
        row += item->request->rows;
        item->complete(item, item_failed, &err); /* the item may be gone now */
    }
}

/* ---- threads ---------------------------------------------------------------------- */

static int64_t deadline_ns(const struct batcher *batcher)
{
    return batcher->head->submitted_ns + (int64_t)(batcher->options.max_wait_ms * 1e6);
}

/* Waits, with the lock held, until a batch may start; false when the worker must end. */
static bool wait_for_batch(struct batcher *batcher)
{
    for (;;) {
        if (!batcher->head) {
            if (batcher->stopping)
                return false;
            pthread_cond_wait(&batcher->changed, &batcher->lock);
            continue;
        }
        bool full = false;
        (void)batch_rows_ready(batcher, &full);
        int64_t due_ns = deadline_ns(batcher);
        if (full || batcher->draining || clock_now_ns(clock_real()) >= due_ns)
            return true;
        struct timespec due = {.tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000};
        pthread_cond_timedwait(&batcher->changed, &batcher->lock, &due);
    }
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct batcher *batcher = worker->batcher;
    pthread_mutex_lock(&batcher->lock);
    while (wait_for_batch(batcher)) {
        int rows = 0;
        struct batch_item *batch = take_batch(batcher, &rows);
        batcher->running++;
        if (batcher->head) /* another worker may have a batch to start or wait for */
            pthread_cond_signal(&batcher->changed);
        pthread_mutex_unlock(&batcher->lock);
        run_batch(worker, batch, rows);
        pthread_mutex_lock(&batcher->lock);
        batcher->running--;
        batcher->batches++;
        batcher->rows += (uint64_t)rows;
        if (!batcher->head && batcher->running == 0)
            pthread_cond_broadcast(&batcher->idle);
    }
    pthread_mutex_unlock(&batcher->lock);
    return NULL;
}

static bool is_batchable(const struct session *session)
{
    for (size_t i = 0; i < session_input_count(session); i++) {
        const struct tensor_shape *shape = &session_input(session, i)->shape;
        if (shape->rank < 1 || shape->size[0] != TENSOR_OPEN)
            return false;
    }
    for (size_t i = 0; i < session_output_count(session); i++) {
        const struct tensor_shape *shape = &session_output(session, i)->shape;
        if (shape->rank < 1 || shape->size[0] != TENSOR_OPEN)
            return false;
    }
    return true;
}

struct batcher *batcher_new(struct session *session, const struct batcher_options *options)
{
    assert(options->batch_max >= 1 && options->procs >= 1 && options->queue_rows_max >= 1);
    struct batcher *batcher = xcalloc(1, sizeof *batcher);
    batcher->session = session;
    batcher->options = *options;
    batcher->batchable = is_batchable(session);
    batcher->tail = &batcher->head;
    pthread_mutex_init(&batcher->lock, NULL);
    /* Waits are spans of time: setting the wall clock must not stretch or end them. */
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&batcher->changed, &monotonic);
    pthread_cond_init(&batcher->idle, NULL);
    pthread_condattr_destroy(&monotonic);
    batcher->workers = xcalloc((size_t)options->procs, sizeof *batcher->workers);
    for (int i = 0; i < options->procs; i++) {
        struct worker *worker = &batcher->workers[i];
        worker->batcher = batcher;
        worker->call = session_call_new(session);
        int failed = pthread_create(&worker->thread, NULL, worker_main, worker);
        assert(!failed);
    }
    return batcher;
}

void batcher_free(struct batcher *batcher)
{
    if (!batcher)
        return;
    batcher_drain(batcher);
    pthread_mutex_lock(&batcher->lock);
    batcher->stopping = true;
    pthread_cond_broadcast(&batcher->changed);
    pthread_mutex_unlock(&batcher->lock);
    for (int i = 0; i < batcher->options.procs; i++) {
        struct worker *worker = &batcher->workers[i];
        pthread_join(worker->thread, NULL);
        session_call_free(worker->call);
        for (int k = 0; k < KSERVE_TENSORS_MAX; k++)
            free(worker->buffers[k]);
    }
    pthread_cond_destroy(&batcher->changed);
    pthread_cond_destroy(&batcher->idle);
    pthread_mutex_destroy(&batcher->lock);
    free(batcher->workers);
    free(batcher);
}

int batcher_submit(struct batcher *batcher, struct batch_item *item, struct error *err)
{
    if (!batcher->batchable)
        item->request->rows = 1; /* its first size is no row count */
    int64_t rows = item->request->rows;
    if (rows > batcher->options.batch_max)
        return error_set(err, E_INPUT, "a request of %lld rows; at most %d fit in a batch",
                         (long long)rows, batcher->options.batch_max);
    int failed = 0;
    pthread_mutex_lock(&batcher->lock);
    if (batcher->draining) {
        failed = error_set(err, E_BUSY, "the server is draining");
    } else if (batcher->queued_rows + rows > batcher->options.queue_rows_max) {
        failed =
            error_set(err, E_BUSY, "the queue is full: %d rows wait", batcher->queued_rows);
    } else {
        item->submitted_ns = clock_now_ns(clock_real());
        item->next = NULL;
        *batcher->tail = item;
        batcher->tail = &item->next;
        batcher->queued_rows += (int)rows;
        pthread_cond_signal(&batcher->changed);
    }
    pthread_mutex_unlock(&batcher->lock);
    return failed;
}

void batcher_drain(struct batcher *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    batcher->draining = true;
    pthread_cond_broadcast(&batcher->changed);
    while (batcher->head || batcher->running > 0)
        pthread_cond_wait(&batcher->idle, &batcher->lock);
    pthread_mutex_unlock(&batcher->lock);
}

void batcher_set_max_wait(struct batcher *batcher, double max_wait_ms)
{
    assert(max_wait_ms >= 0);
    pthread_mutex_lock(&batcher->lock);
    batcher->options.max_wait_ms = max_wait_ms;
    pthread_cond_broadcast(&batcher->changed); /* what waits may be due now */
    pthread_mutex_unlock(&batcher->lock);
}

struct batcher_options batcher_options_now(struct batcher *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    struct batcher_options options = batcher->options;
    pthread_mutex_unlock(&batcher->lock);
    return options;
}

struct batcher_stats batcher_stats(struct batcher *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    struct batcher_stats stats = {.batches = batcher->batches,
                                  .rows = batcher->rows,
                                  .queued_rows = batcher->queued_rows,
                                  .running = batcher->running};
    pthread_mutex_unlock(&batcher->lock);
    return stats;
}
