/* SPDX-License-Identifier: Apache-2.0
 *
 * A keeper whose instance trains: it starts the built-in worker, once for each process of
 * the instance, counts its steps, and ends it after the current step with a checkpoint.
 */
#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "load/child.h"
#include "runtime/keeper_internal.h"

#define LISTEN_NS          INT64_C(50000000)
#define SAY_NS             INT64_C(1000000000)
#define READY_TIMEOUT_NS   INT64_C(170000000000)
#define SILENCE_TIMEOUT_NS INT64_C(120000000000)
#define FINISH_TIMEOUT_NS  INT64_C(30000000000)
enum { WINDOW = 10 }; /* seconds over which the rate is told */

struct training {
    struct keeper *keeper;
    struct children children;
    long long steps, resumed_steps;
    double loss;
    int64_t said_ns;
    struct {
        int64_t time_ns;
        long long steps;
    } marks[WINDOW]; /* a second apart, oldest at mark_count % WINDOW once it is full */
    size_t mark_count;
};

static void take_steps(void *context, int child, const struct steps_event *steps)
{
    struct training *training = context;
    (void)child;
    training->steps += steps->count;
    for (int i = 0; i < steps->count; i++)
        if (isfinite(steps->loss[i]))
            training->loss = steps->loss[i];
}

/* ---- starting --------------------------------------------------------------------- */

static int start_worker(struct training *training, int index, struct error *err)
{
    const struct keeper *keeper = training->keeper;
    char batch[16], threads[16], omp[40];
    snprintf(batch, sizeof batch, "%d", (int)keeper_number(keeper, "batch"));
    snprintf(threads, sizeof threads, "%d", (int)keeper_number(keeper, "threads"));
    snprintf(omp, sizeof omp, "OMP_NUM_THREADS=%s", threads);
    CLEANUP(free_ptr)
    char *checkpoint = xasprintf("%s.%d", keeper_text(keeper, "checkpoint"), index);
    const char *resume = keeper_text(keeper, "resume");
    const char *words[24] = {keeper_text(keeper, "program"),
                             "worker",
                             "--model",
                             keeper_text(keeper, "model"),
                             "--task",
                             "training",
                             "--batch",
                             batch,
                             "--threads",
                             threads,
                             "--provider",
                             keeper_text(keeper, "provider"),
                             "--checkpoint",
                             checkpoint};
    size_t count = 14;
    if (resume) {
        words[count++] = "--resume";
        words[count++] = resume;
    }
    if (keeper_text(keeper, "ort_library")) {
        words[count++] = "--ort-library";
        words[count++] = keeper_text(keeper, "ort_library");
    }
    assert(count < sizeof words / sizeof *words && !words[count]);
    const char *environment[] = {omp, "OMP_WAIT_POLICY=passive", NULL};
    struct slice_command command = {.words = words, .environment = environment};
    return children_start(&training->children, &command, err);
}

static int begin_steps(struct training *training, struct error *err)
{
    struct keeper *keeper = training->keeper;
    struct children *children = &training->children;
    int failed = slice_limit(keeper->slice, true, err);
    if (failed)
        return failed;
    for (int i = 0; i < children->count; i++) {
        training->resumed_steps += children->list[i].ready.resumed_steps;
        child_write(&children->list[i], "go\n");
    }
    keeper->ready = true;
    return keeper_say_live(keeper, err);
}

/* ---- telling ---------------------------------------------------------------------- */

static double steps_per_s(const struct training *training, int64_t now_ns)
{
    size_t oldest = training->mark_count >= WINDOW ? training->mark_count % WINDOW : 0;
    if (training->mark_count == 0)
        return 0;
    double seconds = (double)(now_ns - training->marks[oldest].time_ns) / 1e9;
    return seconds > 0 ? (double)(training->steps - training->marks[oldest].steps) / seconds
                       : 0;
}

/* Once a second. */
static int say(struct training *training, int64_t now_ns, struct error *err)
{
    struct keeper *keeper = training->keeper;
    if (now_ns - training->said_ns < SAY_NS)
        return 0;
    double rate = steps_per_s(training, now_ns);
    json_decref(keeper->training_live);
    keeper->training_live = json_pack(
        "{s:I, s:f, s:f}", "steps", (json_int_t)(training->steps + training->resumed_steps),
        "steps_per_s", rate, "rate_rps", rate * keeper_number(keeper, "batch"));
    if (isfinite(training->loss))
        json_object_set_new(keeper->training_live, "loss", json_real(training->loss));
    training->marks[training->mark_count % WINDOW].time_ns = now_ns;
    training->marks[training->mark_count % WINDOW].steps = training->steps;
    training->mark_count++;
    training->said_ns = now_ns;
    return keeper_say_live(keeper, err);
}

/* ---- life ------------------------------------------------------------------------- */

static bool is_told_to_end(const struct keeper *keeper)
{
    struct signalfd_siginfo info;
    return read(keeper->signal_fd, &info, sizeof info) == (ssize_t)sizeof info &&
           info.ssi_signo != SIGHUP; /* there is nothing to change while it trains */
}

static int failure_of(const struct training *training, struct error *err)
{
    const struct children *children = &training->children;
    int failed = children_failed(children);
    for (int i = 0; i < children->count && failed < 0; i++)
        if (children->list[i].state == CHILD_DONE)
            return error_set(err, E_IO, "%s: training ended by itself", training->keeper->key);
    if (failed < 0)
        return 0;
    const struct child *child = &children->list[failed];
    keeper_write_log(training->keeper, child->log.bytes, child->log.length);
    return error_set(err, E_IO, "%s: training: %s", training->keeper->key, child->reason);
}

static int watch(struct training *training, struct error *err)
{
    struct keeper *keeper = training->keeper;
    for (;;) {
        int failed = children_listen(&training->children, LISTEN_NS, err);
        if (!failed)
            failed = failure_of(training, err);
        if (!failed && !keeper->ready && children_are_ready(&training->children))
            failed = begin_steps(training, err);
        if (!failed && keeper->ready)
            failed = say(training, clock_now_ns(clock_real()), err);
        if (failed)
            return failed;
        if (is_told_to_end(keeper)) {
            children_finish(&training->children, FINISH_TIMEOUT_NS);
            return 0;
        }
    }
}

int keeper_train(struct keeper *keeper, struct error *err)
{
    CLEANUP(free_ptr) struct training *training = xcalloc(1, sizeof *training);
    int procs = (int)keeper_number(keeper, "procs");
    int failed = 0;
    training->keeper = keeper;
    training->loss = NAN;
    training->children = (struct children){.slice = keeper->slice,
                                           .ready_timeout_ns = READY_TIMEOUT_NS,
                                           .silence_timeout_ns = SILENCE_TIMEOUT_NS,
                                           .on_steps = take_steps,
                                           .context = training};
    for (int i = 0; i < procs && i < CHILDREN_MAX && !failed; i++)
        failed = start_worker(training, i, err);
    if (!failed) {
        keeper->server_pid = training->children.list[0].process->pid;
        failed = keeper_say_live(keeper, err);
    }
    if (!failed)
        failed = watch(training, err);
    children_done(&training->children);
    return failed;
}
