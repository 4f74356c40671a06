/* SPDX-License-Identifier: Apache-2.0
 *
 * The node agent's worker thread; see agent_worker.h.
 */
#include "control/agent_worker.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum worker_state { WORKER_IDLE, WORKER_ORDERED, WORKER_DONE };

struct agent_worker {
    struct agent_gpus *gpus; /* the thread's alone */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum worker_state state;
    bool ending;
    struct agent_order order;
    struct agent_findings findings;
    int descriptor;
};

static void *run(void *context)
{
    struct agent_worker *worker = context;

    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (worker->state != WORKER_ORDERED && !worker->ending)
            pthread_cond_wait(&worker->changed, &worker->lock);
        if (worker->ending)
            break;
        struct agent_order order = worker->order;
        struct agent_findings findings;
        pthread_mutex_unlock(&worker->lock);
        agent_gpus_work(worker->gpus, &order, &findings);
        agent_order_done(&order);
        pthread_mutex_lock(&worker->lock);
        worker->findings = findings;
        worker->state = WORKER_DONE;
        /* One more in a counter of 64 bits always fits. */
        if (eventfd_write(worker->descriptor, 1))
            break;
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

int agent_worker_new(const struct agent_gpus_options *options, struct agent_worker **ret_worker,
                     struct error *err)
{
    int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (descriptor < 0)
        return error_set_errno(err, E_IO, "no descriptor for the worker");
    struct agent_worker *worker = xcalloc(1, sizeof *worker);
    worker->gpus = agent_gpus_new(options);
    worker->descriptor = descriptor;
    worker->findings.message = STR_EMPTY;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    errno = pthread_create(&worker->thread, NULL, run, worker);
    if (errno) {
        error_set_errno(err, E_IO, "no thread for the worker");
        agent_gpus_free(worker->gpus);
        close(descriptor);
        free(worker);
        return -E_IO;
    }
    *ret_worker = worker;
    return 0;
}

void agent_worker_free(struct agent_worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->ending = true;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    if (worker->state == WORKER_ORDERED)
        agent_order_done(&worker->order);
    agent_findings_done(&worker->findings);
    agent_gpus_free(worker->gpus);
    pthread_mutex_destroy(&worker->lock);
    pthread_cond_destroy(&worker->changed);
    close(worker->descriptor);
    free(worker);
}

int agent_worker_descriptor(const struct agent_worker *worker)
{
    return worker->descriptor;
}

bool agent_worker_is_busy(struct agent_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool busy = worker->state == WORKER_ORDERED;
    pthread_mutex_unlock(&worker->lock);
    return busy;
}

void agent_worker_give(struct agent_worker *worker, const struct agent_order *order)
{
    pthread_mutex_lock(&worker->lock);
    assert(worker->state != WORKER_ORDERED);
    if (worker->state == WORKER_DONE)
        agent_findings_done(&worker->findings);
    worker->order = *order;
    worker->state = WORKER_ORDERED;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

bool agent_worker_take(struct agent_worker *worker, struct agent_findings *ret_findings)
{
    eventfd_t count;

    (void)eventfd_read(worker->descriptor, &count);
    pthread_mutex_lock(&worker->lock);
    bool done = worker->state == WORKER_DONE;
    if (done) {
        *ret_findings = worker->findings;
        worker->findings = (struct agent_findings){.message = STR_EMPTY};
        worker->state = WORKER_IDLE;
    }
    pthread_mutex_unlock(&worker->lock);
    return done;
}
