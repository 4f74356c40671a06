/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread lives as long as its round: rounds are few a second and take milliseconds at least.
 */
#include "control/rounds.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/memory.h"

struct running {
    struct rounds *rounds;
    struct round round;
    pthread_t thread;
    bool threaded; /* else it ran where it was started */
    struct running *next;
};

struct rounds {
    struct rounds_options options;
    struct running *running; /* in the loop's thread alone */
    unsigned count;
    int event;
    struct kube_timer timer; /* hands back what ran in the calling thread */
    pthread_mutex_t lock;
    pthread_cond_t ended_changed;
    VEC(struct running *) ended; /* under the lock */
};

static void running_free(struct running *running)
{
    struct round *round = &running->round;

    if (running->threaded)
        pthread_join(running->thread, NULL);
    free(round->pool);
    snapshot_done(&round->snapshot);
    effects_done(&round->effects);
    free(running);
}

/* Takes ended rounds over to the caller; the lock is held. */
static struct running *take_ended(struct rounds *rounds)
{
    return rounds->ended.count ? rounds->ended.data[--rounds->ended.count] : NULL;
}

static void hand_back(void *context)
{
    struct rounds *rounds = context;
    uint64_t count;

    while (read(rounds->event, &count, sizeof count) < 0 && errno == EINTR)
        ;
    for (;;) {
        pthread_mutex_lock(&rounds->lock);
        struct running *running = take_ended(rounds);
        pthread_mutex_unlock(&rounds->lock);
        if (!running)
            return;
        struct running **link = &rounds->running;
        while (*link != running)
            link = &(*link)->next;
        *link = running->next;
        rounds->count--;
        rounds->options.done(rounds->options.context, &running->round);
        running_free(running);
    }
}

int rounds_new(const struct rounds_options *options, struct rounds **ret_rounds,
               struct error *err)
{
    int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    assert(options->loop && options->reconcile && options->done);
    if (event < 0)
        return error_set_errno(err, E_IO, "cannot make an event descriptor");
    struct rounds *rounds = xcalloc(1, sizeof *rounds);
    rounds->options = *options;
    rounds->event = event;
    pthread_mutex_init(&rounds->lock, NULL);
    pthread_cond_init(&rounds->ended_changed, NULL);
    rounds->timer = (struct kube_timer){.fire = hand_back, .context = rounds};
    kube_loop_add_descriptor(options->loop, &(struct kube_descriptor){.fd = event,
                                                                      .events = POLLIN,
                                                                      .ready = hand_back,
                                                                      .context = rounds});
    *ret_rounds = rounds;
    return 0;
}

void rounds_free(struct rounds *rounds)
{
    if (!rounds)
        return;
    kube_timer_stop(&rounds->timer);
    while (rounds->running) {
        struct running *running = rounds->running;
        rounds->running = running->next;
        running_free(running);
    }
    kube_loop_remove_descriptor(rounds->options.loop, rounds->event);
    close(rounds->event);
    vec_done(&rounds->ended);
    pthread_mutex_destroy(&rounds->lock);
    pthread_cond_destroy(&rounds->ended_changed);
    free(rounds);
}

bool rounds_have_room(const struct rounds *rounds)
{
    unsigned most = rounds->options.threads ? rounds->options.threads : 1;

    return rounds->count < most;
}

/* The round itself. */
static void *run(void *context)
{
    struct running *running = context;
    struct rounds *rounds = running->rounds;
    struct round *round = &running->round;
    struct reconcile_options options = rounds->options.reconcile_options;
    int64_t began_ns = clock_now_ns(clock_real());

    options.pool = round->pool;
    int rc = rounds->options.reconcile(&round->snapshot.world, &options, &round->effects,
                                       &round->figures, &round->error);
    if (rc == 0)
        round->error.code = E_NONE;
    round->took_ns = clock_now_ns(clock_real()) - began_ns;
    pthread_mutex_lock(&rounds->lock);
    vec_add(&rounds->ended, running);
    pthread_cond_broadcast(&rounds->ended_changed);
    /* Under the lock: who has seen the round in `ended` may free what we would write to. */
    uint64_t one = 1;
    if (write(rounds->event, &one, sizeof one) < 0)
        assert(errno == EAGAIN);
    pthread_mutex_unlock(&rounds->lock);
    return NULL;
}

void rounds_start(struct rounds *rounds, const char *pool, struct snapshot *snapshot,
                  unsigned long moved)
{
    struct running *running = xcalloc(1, sizeof *running);

    assert(rounds_have_room(rounds));
    running->rounds = rounds;
    running->round =
        (struct round){.pool = xstrdup(pool), .snapshot = *snapshot, .moved = moved};
    *snapshot = (struct snapshot){0};
    effects_init(&running->round.effects);
    running->next = rounds->running;
    rounds->running = running;
    rounds->count++;
    running->threaded = rounds->options.threads > 0 &&
                        pthread_create(&running->thread, NULL, run, running) == 0;
    if (running->threaded)
        return;
    run(running);
    /* In the next turn, as a thread's would be. */
    kube_timer_set(&rounds->timer, rounds->options.loop,
                   kube_loop_now_ns(rounds->options.loop) + 1);
}

bool rounds_wait(struct rounds *rounds, int64_t wait_ns)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(wait_ns / 1000000000);
    pthread_mutex_lock(&rounds->lock);
    while (rounds->ended.count < rounds->count &&
           pthread_cond_timedwait(&rounds->ended_changed, &rounds->lock, &until) == 0)
        ;
    bool all = rounds->ended.count == rounds->count;
    pthread_mutex_unlock(&rounds->lock);
    return all;
}
