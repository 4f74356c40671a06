/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices at work at the same time. See instance_group.h. Between this process and a member
 * there is a socket: the member writes "ready\n", reads a byte when all are, and in the end
 * writes its run, or {"error": code, "text": …}, as one line of JSON.
 */
#include "load/instance_group.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/memory.h"
#include "load/arrivals.h"
#include "load/experiment_samples.h"
#include "load/measure_open.h"
#include "load/result_document.h"
#include "load/result_sum.h"

enum { ANSWER_MAX = 64 << 20, LOOK_MS = 100, END_TIMEOUT_S = 60, IN_FLIGHT_MAX = 100000 };

static const char READY[] = "ready\n";

struct member {
    const struct group_instance *instance;
    pid_t pid;
    int fd; /* -1: closed */
    bool ready, ended;
    struct str said; /* after READY */
    size_t ready_bytes;
};

/* In the member. */

static volatile sig_atomic_t told_to_stop;

static void take_signal(int number)
{
    (void)number;
    told_to_stop = 1;
}

static void wait_for_others(void *context)
{
    const int *fd = context;
    char go;
    if (write(*fd, READY, strlen(READY)) != (ssize_t)strlen(READY))
        return;
    while (read(*fd, &go, 1) < 0 && errno == EINTR && !told_to_stop)
        continue;
}

/* The phases that the workload told; where it told none, the step is the model's. */
static void add_phases(json_t *run, const struct measure_result *result)
{
    bool told = false;
    for (int i = 0; i < WORKLOAD_PHASE_COUNT; i++) {
        told |= result->phases.times[i] != NULL;
        result_run_add_times(run, workload_phase_name((enum workload_phase)i),
                             result->phases.times[i]);
    }
    if (!told)
        result_run_add_times(run, workload_phase_name(WORKLOAD_COMPUTE), result->latency);
}

static json_t *run_json(const struct group_instance *instance,
                        const struct measure_result *result)
{
    json_t *run = result_run_new(result->verdict, measurement_status_name(result->status),
                                 result->reason);
    json_object_set_new(run, "how", json_string(result->how.bytes));
    json_object_set_new(run, "runtime", json_string(result->ready.framework));
    json_object_set_new(run, "runtime_version", json_string(result->ready.version));
    json_object_set_new(run, "device_name", json_string(result->ready.device_name));
    if (result->memory_peak_bytes > 0)
        result_run_add_number(run, "memory_mib", (double)result->memory_peak_bytes / (1 << 20));
    if (result->status != STATUS_OK)
        return run;
    result_run_add_number(run, "throughput_rps", result->throughput_rps);
    result_run_add_number(run, "duration_s", (double)result->window_ns / 1e9);
    result_run_add_number(run, "cpu_cores", result->cpu_cores);
    result_run_add_number(run, "throttled_share", result->throttled_share);
    if (instance->settings.device == DEVICE_CPU_SLICE)
        result_run_add_number(run, "cpu_quota_cores", result->cpu_quota_cores);
    result_run_add_gpu(run, &result->gpu);
    result_run_add_times(run, "latency", result->latency);
    add_phases(run, result);
    result_run_add_count(run, "steps", hist_count(result->latency));
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "loss_%d", i);
        result_run_add_number(run, name, result->first_losses[i]);
    }
    return run;
}

static void add_open(json_t *run, const struct open_loop_result *open, int batch)
{
    result_run_add_number(run, "offered_rps", open->offered_rps * batch);
    result_run_add_times(run, "e2e", open->latency);
    result_run_add_times(run, "queue", open->queue);
    result_run_add_times(run, "send_lag", open->send_lag);
    result_run_add_count(run, "scheduled", open->scheduled);
    result_run_add_count(run, "completed", open->completed);
    result_run_add_count(run, "failed", open->failed);
    result_run_add_count(run, "timed_out", open->timed_out);
    result_run_add_count(run, "dropped", open->dropped);
}

static int measure_scheduled(const struct group_instance *instance,
                             const struct measure_settings *settings, json_t **ret_run,
                             struct error *err)
{
    CLEANUP(measure_result_done) struct measure_result result = {.how = STR_EMPTY};
    CLEANUP(open_loop_result_done) struct open_loop_result open = {0};
    CLEANUP(arrivals_done) struct arrivals arrivals = {0};
    bool trace = text_starts_with(instance->load, "trace:");
    int64_t whole_ns = settings->warmup_ns + settings->duration_ns;
    int failure =
        arrivals_parse(instance->load, trace ? 0 : whole_ns, settings->seed, &arrivals, err);
    if (failure)
        return failure;
    struct open_loop_options how = {.arrivals = &arrivals,
                                    .warmup_ns = trace ? 0 : settings->warmup_ns,
                                    .timeout_ns = instance->timeout_ns,
                                    .in_flight_max = IN_FLIGHT_MAX};
    failure = measure_open(&instance->cell, settings, &how, &result, &open, err);
    if (failure)
        return failure;
    *ret_run = run_json(instance, &result);
    if (result.status != STATUS_OK)
        return 0;
    add_open(*ret_run, &open, instance->cell.batch);
    run_samples_put(*ret_run, instance->samples_max, &result, &open);
    return 0;
}

static int measure_instance(const struct group_instance *instance, int fd, json_t **ret_run,
                            struct error *err)
{
    CLEANUP(measure_result_done) struct measure_result result = {.how = STR_EMPTY};
    struct measure_settings settings = instance->settings;
    settings.stop = &told_to_stop;
    settings.barrier = wait_for_others;
    settings.barrier_context = &fd;
    if (instance->background) /* until it is told to stop */
        settings.duration_ns = settings.longest_ns = INT64_MAX / 4;
    if (strcmp(instance->load, "closed") != 0 && !instance->background)
        return measure_scheduled(instance, &settings, ret_run, err);
    int failure = measure_closed(&instance->cell, &settings, &result, err);
    if (failure)
        return failure;
    *ret_run = run_json(instance, &result);
    run_samples_put(*ret_run, instance->samples_max, &result, NULL);
    return 0;
}

static void write_line(int fd, const json_t *json)
{
    CLEANUP(str_done) struct str line = STR_EMPTY;
    json_write_line(json, &line);
    str_add_char(&line, '\n');
    for (size_t sent = 0; sent < line.length;) {
        ssize_t count = send(fd, line.bytes + sent, line.length - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR)
            return;
        sent += count > 0 ? (size_t)count : 0;
    }
}

__attribute__((noreturn)) static void be_member(const struct group_instance *instance, int fd)
{
    CLEANUP(json_decref_ptr) json_t *run = NULL;
    struct sigaction action = {.sa_handler = take_signal};
    struct error err = {0};
    char percentage[16];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGINT, SIG_IGN); /* the group tells its members itself */
    snprintf(percentage, sizeof percentage, "%d", instance->mps_percentage);
    if (instance->mps_percentage > 0)
        setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percentage, 1);
    if (measure_instance(instance, fd, &run, &err) < 0)
        run = json_pack("{s:i, s:s}", "error", (int)err.code, "text", err.text);
    write_line(fd, run);
    _exit(0);
}

/* In the group. */

static int start_member(const struct group_instance *instance, struct member *member,
                        struct error *err)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return error_set_errno(err, E_IO, "cannot make a socket");
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        close(fds[0]);
        close(fds[1]);
        return error_set_errno(err, E_IO, "cannot start a process");
    }
    if (pid == 0) {
        close(fds[0]);
        be_member(instance, fds[1]);
    }
    close(fds[1]);
    *member =
        (struct member){.instance = instance, .pid = pid, .fd = fds[0], .said = STR_EMPTY};
    return 0;
}

static void take_bytes(struct member *member)
{
    char bytes[4096];
    ssize_t length = read(member->fd, bytes, sizeof bytes);
    if (length < 0 && errno == EINTR)
        return;
    if (length <= 0 || member->said.length > ANSWER_MAX) {
        member->ended = true;
        close(member->fd);
        member->fd = -1;
        return;
    }
    str_add_bytes(&member->said, bytes, (size_t)length);
    if (!member->ready && text_starts_with(member->said.bytes, READY)) {
        member->ready = true;
        member->ready_bytes = strlen(READY);
    }
}

struct group {
    struct member members[GROUP_INSTANCES_MAX];
    size_t count;
    const volatile sig_atomic_t *stop;
};

static void listen_once(struct group *group)
{
    struct pollfd fds[GROUP_INSTANCES_MAX];
    for (size_t i = 0; i < group->count; i++)
        fds[i] = (struct pollfd){.fd = group->members[i].fd, .events = POLLIN};
    if (poll(fds, (nfds_t)group->count, LOOK_MS) <= 0)
        return;
    for (size_t i = 0; i < group->count; i++)
        if (fds[i].fd >= 0 && fds[i].revents)
            take_bytes(&group->members[i]);
}

static bool is_stopped(const struct group *group)
{
    return group->stop && *group->stop;
}

static bool any_ended(const struct group *group, bool background)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->members[i].instance->background == background && group->members[i].ended)
            return true;
    return false;
}

/* Until all are ready, or one has ended before that. */
static bool all_ready(struct group *group)
{
    for (;;) {
        size_t ready = 0;
        for (size_t i = 0; i < group->count; i++)
            ready += group->members[i].ready;
        if (ready == group->count)
            return true;
        if (is_stopped(group) || any_ended(group, false) || any_ended(group, true))
            return false;
        listen_once(group);
    }
}

static void tell_go(struct group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->members[i].fd >= 0)
            send(group->members[i].fd, "g", 1, MSG_NOSIGNAL);
}

static bool measured_ended(const struct group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (!group->members[i].instance->background && !group->members[i].ended)
            return false;
    return true;
}

/* Tells members to stop, waits for what they still say, and reaps them. */
static void end_members(struct group *group)
{
    int64_t deadline_ns = clock_now_ns(clock_real()) + (int64_t)END_TIMEOUT_S * 1000000000;
    for (size_t i = 0; i < group->count; i++)
        if (!group->members[i].ended) {
            kill(group->members[i].pid, SIGTERM);
            /* The signal may come just before it waits for the others; this ends the wait. */
            shutdown(group->members[i].fd, SHUT_WR);
        }
    for (;;) {
        size_t ended = 0;
        for (size_t i = 0; i < group->count; i++)
            ended += group->members[i].ended;
        if (ended == group->count || clock_now_ns(clock_real()) > deadline_ns)
            break;
        listen_once(group);
    }
    for (size_t i = 0; i < group->count; i++) {
        if (!group->members[i].ended)
            kill(group->members[i].pid, SIGKILL);
        while (waitpid(group->members[i].pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        close_fd(&group->members[i].fd);
    }
}

/* The member's run; an error it had is the group's. */
static int read_run(const struct member *member, json_t **ret_run, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *json = NULL;
    const char *bytes = member->said.bytes + member->ready_bytes;
    if (json_parse("instance", bytes, strlen(bytes), &json, NULL) < 0)
        return error_set(err, E_IO, "the process that measured %s ended without a result",
                         member->instance->cell.name);
    const json_t *code = json_object_get(json, "error");
    if (json_is_integer(code))
        return error_set(err, (enum error_code)json_integer_value(code), "%s",
                         json_string_value(json_object_get(json, "text")));
    *ret_run = STEAL(json);
    return 0;
}

static int collect(const struct group *group, bool neighbour_ended, json_t **ret_run,
                   struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *runs = json_array();
    for (size_t i = 0; i < group->count; i++) {
        json_t *run = NULL;
        if (group->members[i].instance->background)
            continue;
        int failure = read_run(&group->members[i], &run, err);
        if (failure)
            return failure;
        json_array_append_new(runs, run);
    }
    *ret_run = json_array_size(runs) == 1 ? json_incref(json_array_get(runs, 0))
                                          : result_runs_sum(runs);
    if (neighbour_ended) {
        json_object_set_new(*ret_run, "status", json_string("error"));
        json_object_set_new(*ret_run, "verdict", json_string("INVALID"));
        json_object_set_new(*ret_run, "reason",
                            json_string("a neighbour ended before the measured slice"));
    }
    return 0;
}

/* A background member that could not even load: why. */
static int explain_background(const struct group *group, struct error *err)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct member *member = &group->members[i];
        json_t *run = NULL;
        if (!member->instance->background || member->ready || !member->ended)
            continue;
        if (!read_run(member, &run, err))
            error_set(err, E_MISSING, "%s", json_string_value(json_object_get(run, "reason")));
        json_decref(run);
        return error_wrap(err, "neighbour %s", member->instance->cell.name);
    }
    return 0;
}

int group_run(const struct group_instance *instances, size_t count,
              const volatile sig_atomic_t *stop, json_t **ret_run, struct error *err)
{
    CLEANUP(free_ptr) struct group *group = xcalloc(1, sizeof *group);
    int failure = 0;
    bool neighbour_ended = false;
    assert(count > 0 && count <= GROUP_INSTANCES_MAX);
    group->stop = stop;
    for (size_t i = 0; i < count && !failure; i++) {
        failure = start_member(&instances[i], &group->members[i], err);
        group->count += !failure;
    }
    if (!failure && all_ready(group)) {
        tell_go(group);
        while (!is_stopped(group) && !measured_ended(group)) {
            listen_once(group);
            neighbour_ended |= !measured_ended(group) && any_ended(group, true);
        }
    }
    end_members(group);
    if (!failure && is_stopped(group))
        failure = error_set(err, E_INTERRUPTED, "interrupted");
    if (!failure)
        failure = explain_background(group, err);
    if (!failure)
        failure = collect(group, neighbour_ended, ret_run, err);
    for (size_t i = 0; i < group->count; i++)
        str_done(&group->members[i].said);
    return failure;
}
