/* SPDX-License-Identifier: Apache-2.0
 *
 * See server_watch.h.
 */
#include "load/server_watch.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "load/http_request.h"

struct server_watch {
    struct server_pages pages;
    int64_t first_look_ns;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
    struct server_sums before;
    struct error problem; /* E_NONE: none yet */
};

static void look(struct server_watch *watch, struct server_sums *sums)
{
    struct error *err = &watch->problem;
    for (size_t i = 0; i < watch->pages.count && err->code == E_NONE; i++) {
        CLEANUP(str_done) struct str page = STR_EMPTY;
        int failure = http_fetch(watch->pages.addresses[i], &page, err);
        if (!failure)
            failure = server_sums_add(page.bytes, page.length, watch->pages.model, sums, err);
        if (failure == -E_UNSUPPORTED)
            error_wrap(err, "%s", watch->pages.addresses[i]);
    }
}

/* Waits until the time of the first look; false when the watch ended before. */
static bool wait_for_time(struct server_watch *watch)
{
    struct timespec due = {watch->first_look_ns / 1000000000,
                           watch->first_look_ns % 1000000000};
    pthread_mutex_lock(&watch->lock);
    int problem = 0;
    while (!watch->stopping && problem == 0)
        problem = pthread_cond_timedwait(&watch->wake, &watch->lock, &due);
    bool stopped = watch->stopping;
    pthread_mutex_unlock(&watch->lock);
    return !stopped;
}

static void *run_thread(void *context)
{
    struct server_watch *watch = context;
    if (wait_for_time(watch))
        look(watch, &watch->before);
    else
        error_set(&watch->problem, E_INTERRUPTED, "the run ended before it was asked");
    return NULL;
}

struct server_watch *server_watch_start(const struct server_pages *pages, int64_t first_look_ns)
{
    struct server_watch *watch = xcalloc(1, sizeof *watch);
    pthread_condattr_t monotonic;
    assert(pages->count > 0);
    watch->pages = *pages;
    watch->first_look_ns = first_look_ns;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int failed = pthread_create(&watch->thread, NULL, run_thread, watch);
    assert(!failed);
    return watch;
}

struct server_phases server_watch_finish(struct server_watch *watch)
{
    struct server_sums after = {0};
    pthread_mutex_lock(&watch->lock);
    watch->stopping = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    if (watch->problem.code == E_NONE)
        look(watch, &after);
    struct server_phases phases = server_phases_between(&watch->before, &after);
    if (watch->problem.code != E_NONE) {
        phases.requests = 0;
        snprintf(phases.reason, sizeof phases.reason, "%s", watch->problem.text);
    }
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
    return phases;
}
