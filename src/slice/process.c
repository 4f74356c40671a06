/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes in a slice. See slice.h.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "slice/slice_internal.h"

enum { WAIT_POLL_NS = 1000000, ENVIRONMENT_MAX = 1024 };

/* All that the child needs between fork and exec, made before: after fork in a program
 * with threads only async-signal-safe calls are allowed. */
struct launch {
    const char *const *words;
    char **environment;
    int stdin_fd, stdout_fd, stderr_fd; /* the child's ends */
    int group_fds[CGROUP_FOLDERS_MAX];  /* cgroup.procs of each folder, or -1 */
    int report_fd;                      /* closed by exec: a silent end is success */
    rlim_t address_space;               /* 0: no limit */
    pid_t parent;
};

struct launch_report {
    enum { LAUNCH_JOIN, LAUNCH_LIMIT, LAUNCH_EXEC } step;
    int error_number;
};

static void report_and_exit(const struct launch *launch, int step)
{
    struct launch_report report = {.step = step, .error_number = errno};
    ssize_t written = write(launch->report_fd, &report, sizeof report);
    (void)written;
    _exit(127);
}

static void run_child(const struct launch *launch)
{
    sigset_t none;
    assert(launch->words[0]);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launch->parent)
        _exit(127); /* the parent died before the line above */
    for (int i = 0; i < CGROUP_FOLDERS_MAX; i++)
        if (launch->group_fds[i] >= 0 && write(launch->group_fds[i], "0", 1) != 1)
            report_and_exit(launch, LAUNCH_JOIN);
    struct rlimit limit = {launch->address_space, launch->address_space};
    if (launch->address_space && setrlimit(RLIMIT_AS, &limit))
        report_and_exit(launch, LAUNCH_LIMIT);
    dup2(launch->stdin_fd, STDIN_FILENO);
    dup2(launch->stdout_fd, STDOUT_FILENO);
    dup2(launch->stderr_fd, STDERR_FILENO);
    for (int s = 1; s < SIGRTMAX; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvpe(launch->words[0], (char *const *)launch->words, launch->environment);
    report_and_exit(launch, LAUNCH_EXEC);
}

/* Our environment with additions that replace what has their name; pointers borrowed. */
static char **make_environment(const char *const *additions, const char *mig)
{
    char **list = xcalloc(ENVIRONMENT_MAX + 1, sizeof *list);
    size_t count = 0;
    if (mig)
        list[count++] = (char *)mig;
    for (size_t i = 0; additions && additions[i]; i++) {
        assert(count < ENVIRONMENT_MAX / 2);
        list[count++] = (char *)additions[i];
    }
    size_t added = count;
    for (char **old = environ; *old && count < ENVIRONMENT_MAX; old++) {
        size_t name_length = strcspn(*old, "=") + 1;
        bool replaced = false;
        for (size_t i = 0; i < added; i++)
            replaced = replaced || strncmp(list[i], *old, name_length) == 0;
        if (!replaced)
            list[count++] = *old;
    }
    return list;
}

struct pipes {
    int child[3], ours[3]; /* stdin, stdout, stderr */
    int report[2];
    int group_fds[CGROUP_FOLDERS_MAX];
};

static void pipes_done(struct pipes *pipes)
{
    for (int i = 0; i < 3; i++) {
        close_fd(&pipes->child[i]);
        close_fd(&pipes->ours[i]);
    }
    close_fd(&pipes->report[0]);
    close_fd(&pipes->report[1]);
    for (int i = 0; i < CGROUP_FOLDERS_MAX; i++)
        close_fd(&pipes->group_fds[i]);
}

static int pipes_open(const struct slice *slice, struct pipes *pipes, struct error *err)
{
    for (int i = 0; i < 3; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC))
            return error_set_errno(err, E_IO, "cannot make a pipe");
        pipes->child[i] = ends[i != 0];
        pipes->ours[i] = ends[i == 0];
    }
    if (pipe2(pipes->report, O_CLOEXEC))
        return error_set_errno(err, E_IO, "cannot make a pipe");
    for (int i = 0; i < CGROUP_FOLDERS_MAX && slice->group.version; i++) {
        if (!slice->group.folders[i])
            continue;
        CLEANUP(free_ptr) char *path = xasprintf("%s/cgroup.procs", slice->group.folders[i]);
        pipes->group_fds[i] = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (pipes->group_fds[i] < 0)
            return error_set_errno(err, E_IO, "%s: cannot join", path);
    }
    return 0;
}

/* Waits for exec or for the report of what failed. */
static int read_report(int fd, const char *program, struct error *err)
{
    struct launch_report report;
    ssize_t got;
    assert(fd >= 0);
    do
        got = read(fd, &report, sizeof report);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof report)
        return 0;
    errno = report.error_number;
    switch (report.step) {
    case LAUNCH_JOIN:
        return error_set_errno(err, E_IO, "%s: cannot join the control group of the slice",
                               program);
    case LAUNCH_LIMIT:
        return error_set_errno(err, E_IO, "%s: cannot limit its memory", program);
    case LAUNCH_EXEC:
        break;
    }
    return error_set_errno(err, E_MISSING, "%s: cannot start this program", program);
}

static struct slice_process *add_process(struct slice *slice, pid_t pid, struct pipes *pipes)
{
    struct slice_process *process = xcalloc(1, sizeof *process);
    assert(pid > 0);
    process->pid = pid;
    process->slice = slice;
    process->stdin_fd = pipes->ours[0];
    process->stdout_fd = pipes->ours[1];
    process->stderr_fd = pipes->ours[2];
    pipes->ours[0] = pipes->ours[1] = pipes->ours[2] = -1;
    slice->processes[slice->process_count++] = process;
    if (slice->pacer)
        pacer_add(slice->pacer, pid);
    return process;
}

int slice_spawn(struct slice *slice, const struct slice_command *command,
                struct slice_process **ret_process, struct error *err)
{
    CLEANUP(pipes_done)
    struct pipes pipes = {{-1, -1, -1}, {-1, -1, -1}, {-1, -1}, {-1, -1, -1}};
    CLEANUP(free_ptr)
    char *mig = slice->mig_uuid ? xasprintf("CUDA_VISIBLE_DEVICES=%s", slice->mig_uuid) : NULL;
    CLEANUP(free_ptr) char **environment = make_environment(command->environment, mig);
    bool by_address_space =
        slice->memory_bytes && !(slice->group.version && slice->group.has_memory);
    assert(command->words && command->words[0]);
    if (slice->process_count == SLICE_PROCESSES_MAX)
        return error_set(err, E_UNSUPPORTED, "more than %d processes in one slice",
                         SLICE_PROCESSES_MAX);
    int failure = pipes_open(slice, &pipes, err);
    if (failure)
        return failure;
    struct launch launch = {.words = command->words,
                            .environment = environment,
                            .stdin_fd = pipes.child[0],
                            .stdout_fd = pipes.child[1],
                            .stderr_fd = pipes.child[2],
                            .report_fd = pipes.report[1],
                            .address_space = by_address_space ? slice->memory_bytes : 0,
                            .parent = getpid()};
    memcpy(launch.group_fds, pipes.group_fds, sizeof launch.group_fds);
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, E_IO, "cannot start a process");
    if (pid == 0)
        run_child(&launch);
    setpgid(pid, pid); /* whoever comes first */
    close_fd(&pipes.report[1]);
    pipes.report[1] = -1;
    failure = read_report(pipes.report[0], command->words[0], err);
    struct slice_process *process = add_process(slice, pid, &pipes);
    if (failure) {
        slice_process_free(process);
        return failure;
    }
    *ret_process = process;
    return 0;
}

static int64_t timeval_ns(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

/* One look, or a blocking wait. */
static bool reap(struct slice_process *process, int flags)
{
    siginfo_t ended = {0};
    struct rusage usage;
    assert(process->pid > 0);
    if (process->reaped)
        return true;
    /* Look first without reaping: the pacer must forget the number before it is free. */
    if (waitid(P_PID, (id_t)process->pid, &ended, WEXITED | WNOWAIT | flags) ||
        ended.si_pid == 0)
        return false;
    if (process->slice->pacer)
        pacer_remove(process->slice->pacer, process->pid);
    kill(-process->pid, SIGKILL); /* what it started and left, while the number is ours */
    if (wait4(process->pid, &process->wait_status, 0, &usage) != process->pid)
        return false;
    process->reaped = true;
    process->memory_peak_kib = usage.ru_maxrss;
    process->slice->reaped_cpu_ns += timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
    return true;
}

bool slice_process_wait(struct slice_process *process, int64_t deadline_ns)
{
    struct timespec wait = {.tv_nsec = WAIT_POLL_NS};
    assert(process);
    while (!reap(process, WNOHANG)) {
        if (clock_now_ns(clock_real()) >= deadline_ns)
            return false;
        nanosleep(&wait, NULL);
    }
    return true;
}

void slice_process_signal(struct slice_process *process, int signal_number)
{
    if (!process->reaped)
        kill(-process->pid, signal_number);
}

void slice_process_free(struct slice_process *process)
{
    if (!process)
        return;
    struct slice *slice = process->slice;
    slice_process_signal(process, SIGKILL);
    while (!reap(process, 0) && errno == EINTR)
        ;
    close_fd(&process->stdin_fd);
    close_fd(&process->stdout_fd);
    close_fd(&process->stderr_fd);
    for (int i = 0; i < slice->process_count; i++)
        if (slice->processes[i] == process)
            slice->processes[i--] = slice->processes[--slice->process_count];
    free(process);
}

int64_t processes_cpu_ns(const struct slice *slice)
{
    int64_t total = slice->reaped_cpu_ns;
    for (int i = 0; i < slice->process_count; i++) {
        clockid_t clock;
        struct timespec now;
        if (!slice->processes[i]->reaped &&
            clock_getcpuclockid(slice->processes[i]->pid, &clock) == 0 &&
            clock_gettime(clock, &now) == 0)
            total += (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    }
    return total;
}
