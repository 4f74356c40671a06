/* SPDX-License-Identifier: Apache-2.0
 *
 * See runtime_main.h.
 */
#include "runtime/runtime_main.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "runtime/control.h"
#include "runtime/state_folder.h"

enum { TICK_MS = 50 };

static int take_signals(int *ret_fd, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd >= 0 ? 0 : error_set_errno(err, E_IO, "signalfd");
}

/* False when the process is to end. */
static bool heed_signal(int fd, struct runtime *runtime)
{
    struct signalfd_siginfo info;
    if (read(fd, &info, sizeof info) != (ssize_t)sizeof info)
        return true;
    if (info.ssi_signo == SIGINT)
        runtime_down(runtime);
    return info.ssi_signo == SIGINT;
}

static void loop(struct runtime *runtime, int control_fd, int signal_fd)
{
    int64_t next_ns = 0;
    while (runtime->phase != PHASE_ENDED) {
        int64_t now_ns = clock_now_ns(clock_real());
        if (now_ns >= next_ns) {
            runtime_tick(runtime);
            now_ns = clock_now_ns(clock_real());
            next_ns = now_ns + (int64_t)TICK_MS * 1000000;
        }
        struct pollfd fds[] = {{.fd = control_fd, .events = POLLIN},
                               {.fd = signal_fd, .events = POLLIN}};
        int wait_ms = (int)((next_ns - now_ns) / 1000000) + 1;
        if (runtime->phase == PHASE_ENDED || poll(fds, 2, wait_ms) <= 0)
            continue;
        if (fds[0].revents)
            control_serve(control_fd, runtime);
        if (fds[1].revents && !heed_signal(signal_fd, runtime))
            return;
    }
}

static void leave_failure(const char *folder, const struct error *err)
{
    CLEANUP(free_ptr) char *path = state_folder_file(folder, "failure");
    CLEANUP(json_decref_ptr)
    json_t *json = json_pack("{s:i, s:s}", "code", (int)err->code, "text", err->text);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct error ignored;
    json_write_line(json, &text);
    file_write(path, text.bytes, text.length, &ignored);
}

int runtime_main(const char *folder, struct error *err)
{
    CLEANUP(runtime_free_ptr) struct runtime *runtime = NULL;
    CLEANUP(close_fd) int control_fd = -1;
    CLEANUP(close_fd) int signal_fd = -1;
    CLEANUP(free_ptr) char *socket_path = state_folder_file(folder, "control.sock");
    int failed = take_signals(&signal_fd, err);
    if (!failed)
        failed = runtime_open(folder, &runtime, err);
    if (failed) {
        leave_failure(folder, err);
        return failed;
    }
    bool first = runtime_is_first_start(runtime);
    failed = runtime_start(runtime, err);
    if (!failed)
        failed = control_listen(folder, &control_fd, err);
    if (failed) {
        if (first)
            runtime_abandon(runtime);
        leave_failure(folder, err);
        return failed;
    }
    loop(runtime, control_fd, signal_fd);
    unlink(socket_path);
    (void)steal_fd(&runtime->lock_fd); /* it ends with the process: `tranche down` waits */
    return 0;
}
