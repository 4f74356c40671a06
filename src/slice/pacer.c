/* SPDX-License-Identifier: Apache-2.0
 *
 * Pacing by signals. See pacer.h.
 */
#include "slice/pacer.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"

enum { POLL_NS = 500000, PACER_NICE = -10, CREDIT_PERIODS = 4 };

struct paced {
    pid_t pid;
    clockid_t clock;
    int64_t cpu_ns; /* at the last look */
};

struct pacer {
    double cores;
    int64_t period_ns;
    pthread_t thread;
    pthread_mutex_t lock; /* guards everything below */
    VEC(struct paced) processes;
    bool enabled, stopped, ending;
    double credit_ns;
    int64_t looked_ns, stopped_at_ns, stopped_total_ns;
};

/* CPU time of the processes since the last look. */
static int64_t spent_ns(struct pacer *pacer)
{
    int64_t total = 0;
    for (size_t i = 0; i < pacer->processes.count; i++) {
        struct paced *process = &pacer->processes.data[i];
        struct timespec now;
        if (clock_gettime(process->clock, &now))
            continue; /* it has ended */
        int64_t cpu_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        total += cpu_ns - process->cpu_ns;
        process->cpu_ns = cpu_ns;
    }
    return total;
}

static void set_stopped(struct pacer *pacer, bool stopped, int64_t now_ns)
{
    assert(pacer->stopped != stopped);
    for (size_t i = 0; i < pacer->processes.count; i++)
        kill(-pacer->processes.data[i].pid, stopped ? SIGSTOP : SIGCONT);
    if (stopped)
        pacer->stopped_at_ns = now_ns;
    else
        pacer->stopped_total_ns += now_ns - pacer->stopped_at_ns;
    pacer->stopped = stopped;
}

static void look(struct pacer *pacer)
{
    int64_t now_ns = clock_now_ns(clock_real());
    double worth = pacer->cores * (double)pacer->period_ns; /* of a period */
    double earned = pacer->cores * (double)(now_ns - pacer->looked_ns);
    assert(pacer->cores > 0);
    pacer->credit_ns += earned - (double)spent_ns(pacer);
    pacer->looked_ns = now_ns;
    if (pacer->credit_ns > CREDIT_PERIODS * worth)
        pacer->credit_ns = CREDIT_PERIODS * worth;
    if (!pacer->stopped && pacer->enabled && pacer->credit_ns <= 0)
        set_stopped(pacer, true, now_ns);
    else if (pacer->stopped && (!pacer->enabled || pacer->credit_ns >= worth / 2))
        set_stopped(pacer, false, now_ns);
}

static void *pace(void *context)
{
    struct pacer *pacer = context;
    struct timespec wait = {.tv_nsec = POLL_NS};
    /* More exact where that is allowed, harmless where not. */
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), PACER_NICE);
    for (bool ending = false; !ending;) {
        pthread_mutex_lock(&pacer->lock);
        look(pacer);
        ending = pacer->ending;
        pthread_mutex_unlock(&pacer->lock);
        nanosleep(&wait, NULL);
    }
    return NULL;
}

int pacer_new(double cores, int64_t period_ns, struct pacer **ret_pacer, struct error *err)
{
    struct pacer *pacer = xcalloc(1, sizeof *pacer);
    assert(cores > 0 && period_ns > 0);
    pacer->cores = cores;
    pacer->period_ns = period_ns;
    pacer->looked_ns = clock_now_ns(clock_real());
    pthread_mutex_init(&pacer->lock, NULL);
    /* Signals are for the main thread. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failure = pthread_create(&pacer->thread, NULL, pace, pacer);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failure) {
        pthread_mutex_destroy(&pacer->lock);
        free(pacer);
        return error_set(err, E_IO, "cannot start a thread to pace a CPU slice");
    }
    *ret_pacer = pacer;
    return 0;
}

void pacer_free(struct pacer *pacer)
{
    if (!pacer)
        return;
    pthread_mutex_lock(&pacer->lock);
    pacer->enabled = false;
    pacer->ending = true;
    pthread_mutex_unlock(&pacer->lock);
    pthread_join(pacer->thread, NULL);
    pthread_mutex_destroy(&pacer->lock);
    vec_done(&pacer->processes);
    free(pacer);
}

void pacer_add(struct pacer *pacer, pid_t pid)
{
    struct paced process = {.pid = pid};
    assert(pid > 0);
    if (clock_getcpuclockid(pid, &process.clock))
        return; /* it has ended already */
    pthread_mutex_lock(&pacer->lock);
    vec_add(&pacer->processes, process);
    pthread_mutex_unlock(&pacer->lock);
}

void pacer_remove(struct pacer *pacer, pid_t pid)
{
    assert(pid > 0);
    pthread_mutex_lock(&pacer->lock);
    for (size_t i = 0; i < pacer->processes.count; i++)
        if (pacer->processes.data[i].pid == pid)
            pacer->processes.data[i--] = pacer->processes.data[--pacer->processes.count];
    pthread_mutex_unlock(&pacer->lock);
}

void pacer_enable(struct pacer *pacer, bool enabled)
{
    pthread_mutex_lock(&pacer->lock);
    pacer->enabled = enabled;
    look(pacer);
    pthread_mutex_unlock(&pacer->lock);
}

int64_t pacer_stopped_ns(struct pacer *pacer)
{
    pthread_mutex_lock(&pacer->lock);
    int64_t total = pacer->stopped_total_ns;
    if (pacer->stopped)
        total += clock_now_ns(clock_real()) - pacer->stopped_at_ns;
    pthread_mutex_unlock(&pacer->lock);
    return total;
}
