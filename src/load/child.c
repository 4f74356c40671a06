/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload processes. See child.h.
 */
#include "load/child.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/onnx_runtime.h"

enum { LOG_KEPT = 4096, POLL_SLICE_NS = 50000000, REAP_NS = 2000000000 };

static int64_t now_ns(void)
{
    return clock_now_ns(clock_real());
}

static void fail(struct child *child, enum child_failure failure, const char *reason)
{
    assert(reason);
    if (child->state == CHILD_FAILED)
        return; /* the first reason counts */
    child->state = CHILD_FAILED;
    child->failure = failure;
    snprintf(child->reason, sizeof child->reason, "%s", reason);
}

int children_start(struct children *children, const struct slice_command *command,
                   struct error *err)
{
    assert(command);
    assert(children->count < CHILDREN_MAX);
    struct child *child = &children->list[children->count];
    *child = (struct child){.lines = {.buffer = STR_EMPTY},
                            .log_lines = {.buffer = STR_EMPTY},
                            .log = STR_EMPTY,
                            .heard_ns = now_ns()};
    int failure = slice_spawn(children->slice, command, &child->process, err);
    if (!failure)
        children->count++;
    return failure;
}

static void keep_log(struct child *child, const char *line, size_t length)
{
    assert(line);
    str_add_bytes(&child->log, line, length);
    str_add_char(&child->log, '\n');
    if (child->log.length > 2 * LOG_KEPT) {
        size_t cut = child->log.length - LOG_KEPT;
        memmove(child->log.bytes, child->log.bytes + cut, LOG_KEPT + 1);
        child->log.length = LOG_KEPT;
    }
}

static enum child_failure failure_of(enum error_class error_class)
{
    static const enum child_failure failures[ERROR_CLASS_COUNT] = {
        [CLASS_INIT] = FAILURE_INIT,
        [CLASS_OOM] = FAILURE_OOM,
        [CLASS_UNSUPPORTED] = FAILURE_UNSUPPORTED,
        [CLASS_CRASH] = FAILURE_CRASH,
    };
    assert(error_class < ERROR_CLASS_COUNT);
    return failures[error_class];
}

static void record_phases(struct phase_times *phases, const struct steps_event *steps)
{
    for (int phase = 0; phase < WORKLOAD_PHASE_COUNT; phase++) {
        if (!(steps->phases >> phase & 1))
            continue;
        if (!phases->times[phase])
            phases->times[phase] = hist_new();
        for (int i = 0; i < steps->count; i++)
            if (steps->start_ns[i] >= phases->from_ns)
                hist_record(phases->times[phase], steps->phase_ns[phase][i]);
    }
}

static void handle_event(struct children *children, int index, const char *line, size_t length)
{
    struct child *child = &children->list[index];
    struct workload_event *event = &children->event;
    struct error err;
    assert(index < children->count);
    if (workload_event_parse(line, length, event, &err)) {
        fail(child, FAILURE_CRASH, err.text);
        return;
    }
    switch (event->kind) {
    case EVENT_LOG:
        keep_log(child, line, length);
        break;
    case EVENT_READY:
        child->ready = event->ready;
        if (child->state == CHILD_STARTING)
            child->state = CHILD_READY;
        break;
    case EVENT_STEPS:
        if (children->on_steps)
            children->on_steps(children->context, index, &event->steps);
        if (children->phases && index < children->phases->children)
            record_phases(children->phases, &event->steps);
        break;
    case EVENT_DONE:
        child->done = event->done;
        child->said_done = true;
        break;
    case EVENT_ERROR:
        fail(child, failure_of(event->error.error_class), event->error.text);
        break;
    }
}

/* Reads what is there; false at the end of the stream. */
static bool read_events(struct children *children, int index)
{
    struct child *child = &children->list[index];
    const char *line;
    size_t length;
    bool too_long;
    ssize_t got = line_reader_fill(&child->lines, child->process->stdout_fd);
    child->heard_ns = now_ns();
    while (line_reader_next(&child->lines, &line, &length, &too_long))
        if (too_long)
            fail(child, FAILURE_CRASH, "the workload wrote a line over 64 KiB");
        else
            handle_event(children, index, line, length);
    return got > 0 || (got < 0 && errno == EINTR);
}

static bool read_log(struct child *child)
{
    const char *line;
    size_t length;
    bool too_long;
    ssize_t got = line_reader_fill(&child->log_lines, child->process->stderr_fd);
    while (line_reader_next(&child->log_lines, &line, &length, &too_long))
        keep_log(child, line, length);
    return got > 0 || (got < 0 && errno == EINTR);
}

/* What a child that ended without "done" died of. */
static void judge_death(struct children *children, struct child *child)
{
    struct slice_usage usage;
    char reason[PROTOCOL_TEXT_MAX];
    int status = child->process->wait_status;
    slice_read_usage(children->slice, &usage);
    if (usage.oom_killed)
        fail(child, FAILURE_OOM, "killed by the kernel: over the memory of the slice");
    if (onnx_runtime_text_is_oom(child->log.bytes))
        fail(child, FAILURE_OOM, "out of memory (see its log)");
    if (WIFSIGNALED(status))
        snprintf(reason, sizeof reason, "crashed: signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(reason, sizeof reason, "ended early with exit status %d", WEXITSTATUS(status));
    size_t used = strlen(reason);
    if (child->log.length > 0) { /* the last line it wrote */
        const char *end = child->log.bytes + child->log.length - 1, *start = end;
        while (start > child->log.bytes && start[-1] != '\n')
            start--;
        snprintf(reason + used, sizeof reason - used, ": %.*s", (int)(end - start), start);
    }
    fail(child,
         child->state == CHILD_STARTING && WIFEXITED(status) ? FAILURE_INIT : FAILURE_CRASH,
         reason);
}

static void close_child(struct children *children, struct child *child)
{
    if (!slice_process_wait(child->process, now_ns() + REAP_NS)) {
        slice_process_signal(child->process, SIGKILL);
        slice_process_wait(child->process, now_ns() + REAP_NS);
    }
    while (!child->log_closed && read_log(child))
        ;
    child->log_closed = true;
    if (child->state != CHILD_FAILED && child->said_done)
        child->state = CHILD_DONE;
    else
        judge_death(children, child);
}

static void check_silence(struct children *children, struct child *child)
{
    bool starting = child->state == CHILD_STARTING;
    int64_t limit = starting ? children->ready_timeout_ns : children->silence_timeout_ns;
    char reason[PROTOCOL_TEXT_MAX];
    if (child->out_closed || now_ns() - child->heard_ns < limit)
        return;
    snprintf(reason, sizeof reason, "%s for %.0f s", starting ? "not ready" : "silent",
             (double)limit / 1e9);
    fail(child, FAILURE_TIMEOUT, reason);
    slice_process_signal(child->process, SIGKILL);
}

static bool is_stopped(const struct children *children)
{
    return children->stop && *children->stop;
}

int children_listen(struct children *children, int64_t timeout_ns, struct error *err)
{
    struct pollfd fds[2 * CHILDREN_MAX];
    int64_t deadline_ns = now_ns() + timeout_ns;
    int ready = 0;
    assert(children->count <= CHILDREN_MAX);
    for (int i = 0; i < children->count; i++) {
        const struct child *child = &children->list[i];
        fds[2 * i] = (struct pollfd){.fd = child->out_closed ? -1 : child->process->stdout_fd,
                                     .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){
            .fd = child->log_closed ? -1 : child->process->stderr_fd, .events = POLLIN};
    }
    do {
        int64_t left_ns = deadline_ns - now_ns();
        /* In short waits: a request to stop that comes just before ppoll does not wake it. */
        if (left_ns > POLL_SLICE_NS)
            left_ns = POLL_SLICE_NS;
        struct timespec wait = {.tv_nsec = left_ns > 0 ? left_ns : 0};
        if (is_stopped(children))
            return error_set(err, E_INTERRUPTED, "interrupted");
        ready = ppoll(fds, (nfds_t)(2 * children->count), &wait, NULL);
    } while (ready <= 0 && now_ns() < deadline_ns);
    for (int i = 0; i < children->count; i++) {
        struct child *child = &children->list[i];
        if (fds[2 * i + 1].revents && !read_log(child))
            child->log_closed = true;
        if (fds[2 * i].revents && !read_events(children, i)) {
            child->out_closed = true;
            close_child(children, child);
        }
        check_silence(children, child);
    }
    return 0;
}

bool children_are_ready(const struct children *children)
{
    for (int i = 0; i < children->count; i++)
        if (children->list[i].state == CHILD_STARTING)
            return false;
    return true;
}

int children_failed(const struct children *children)
{
    for (int i = 0; i < children->count; i++)
        if (children->list[i].state == CHILD_FAILED)
            return i;
    return -1;
}

bool child_write(struct child *child, const char *text)
{
    size_t length = strlen(text);
    assert(text && *text);
    return write(child->process->stdin_fd, text, length) == (ssize_t)length;
}

static bool all_closed(const struct children *children)
{
    for (int i = 0; i < children->count; i++)
        if (!children->list[i].out_closed)
            return false;
    return true;
}

void children_finish(struct children *children, int64_t timeout_ns)
{
    int64_t deadline_ns = now_ns() + timeout_ns;
    assert(timeout_ns > 0);
    children->on_steps = NULL;
    children->phases = NULL;
    children->stop = NULL;
    slice_limit(children->slice, false, NULL);
    for (int i = 0; i < children->count; i++)
        slice_process_signal(children->list[i].process, SIGTERM);
    while (!all_closed(children) && now_ns() < deadline_ns)
        children_listen(children, deadline_ns - now_ns(), NULL);
    for (int i = 0; i < children->count; i++)
        if (!children->list[i].out_closed) {
            slice_process_signal(children->list[i].process, SIGKILL);
            fail(&children->list[i], FAILURE_TIMEOUT, "did not finish when asked to");
        }
}

void children_done(struct children *children)
{
    for (int i = 0; i < children->count; i++) {
        struct child *child = &children->list[i];
        slice_process_free(child->process);
        line_reader_done(&child->lines);
        line_reader_done(&child->log_lines);
        str_done(&child->log);
    }
    children->count = 0;
}
