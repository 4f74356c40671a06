/* SPDX-License-Identifier: Apache-2.0
 *
 * fork, exec, feed, read, reap; see program.h. What the program leaves behind (a daemon) may
 * keep its output open: once the program itself has ended, waiting is over.
 */
#include "gpu/program.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { POLL_MS = 20, EXIT_NO_PROGRAM = 127, EXIT_SIGNAL = 128 };

struct pipes {
    int in[2], out[2];
};

static void close_pipes(struct pipes *pipes)
{
    close_fd(&pipes->in[0]);
    close_fd(&pipes->in[1]);
    close_fd(&pipes->out[0]);
    close_fd(&pipes->out[1]);
}

static void close_now(int *fd)
{
    close_fd(fd);
    *fd = -1;
}

static _Noreturn void child(const struct program *program, const struct pipes *pipes)
{
    dup2(pipes->in[0], STDIN_FILENO);
    dup2(pipes->out[1], STDOUT_FILENO);
    dup2(pipes->out[1], STDERR_FILENO);
    for (size_t i = 0; program->environment && program->environment[i]; i++)
        putenv((char *)(uintptr_t)program->environment[i]);
    execvp(program->words[0], (char **)(uintptr_t)program->words);
    _exit(EXIT_NO_PROGRAM);
}

/* Reads what is there; false at the end of the output. */
static bool take_output(int fd, struct str *output)
{
    char bytes[4096];
    ssize_t length = read(fd, bytes, sizeof bytes);

    if (length > 0 && output->length < PROGRAM_OUTPUT_MAX)
        str_add_bytes(output, bytes, (size_t)length);
    return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Until the child ends; false when time ran out and it was killed. */
static bool converse(struct pipes *pipes, pid_t pid, const struct program *program,
                     struct str *output, int *ret_status)
{
    int64_t deadline_ns = clock_now_ns(clock_real()) + program->timeout_s * INT64_C(1000000000);
    bool open = true;

    while (clock_now_ns(clock_real()) < deadline_ns) {
        struct pollfd poll_fd = {.fd = open ? pipes->out[0] : -1, .events = POLLIN};
        if (poll(&poll_fd, 1, POLL_MS) > 0)
            open = take_output(pipes->out[0], output);
        pid_t ended = waitpid(pid, ret_status, WNOHANG);
        if (ended != pid)
            continue;
        while (open && poll(&poll_fd, 1, 0) > 0)
            open = take_output(pipes->out[0], output);
        return true;
    }
    kill(pid, SIGKILL);
    waitpid(pid, ret_status, 0);
    return false;
}

static int run_forked(const struct program *program, struct pipes *pipes, struct str *output,
                      int *ret_status, struct error *err)
{
    pid_t pid = fork();

    if (pid < 0)
        return error_set_errno(err, E_IO, "cannot start %s", program->words[0]);
    if (!pid)
        child(program, pipes);
    close_now(&pipes->in[0]);
    close_now(&pipes->out[1]);
    fcntl(pipes->out[0], F_SETFL, O_NONBLOCK);
    /* Commands are a few hundred bytes, less than a pipe holds. */
    size_t length = program->input ? strlen(program->input) : 0;
    if (length && write(pipes->in[1], program->input, length) != (ssize_t)length)
        str_clear(output); /* it ended at once; its status tells */
    close_now(&pipes->in[1]);
    if (!converse(pipes, pid, program, output, ret_status))
        return error_set(err, E_TIMEOUT, "%s did not end within %d s", program->words[0],
                         program->timeout_s);
    return 0;
}

int program_run(const struct program *program, struct str *output, int *ret_status,
                struct error *err)
{
    CLEANUP(close_pipes) struct pipes pipes = {.in = {-1, -1}, .out = {-1, -1}};
    int status = 0;

    assert(program->words && program->words[0] && program->timeout_s > 0);
    if (pipe2(pipes.in, O_CLOEXEC) || pipe2(pipes.out, O_CLOEXEC))
        return error_set_errno(err, E_IO, "cannot make a pipe");
    int r = run_forked(program, &pipes, output, &status, err);
    if (r)
        return r;
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
    if (*ret_status == EXIT_NO_PROGRAM)
        return error_set(err, E_MISSING, "cannot run %s: it comes with NVIDIA's driver",
                         program->words[0]);
    return 0;
}
