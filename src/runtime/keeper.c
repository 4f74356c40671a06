/* SPDX-License-Identifier: Apache-2.0
 *
 * See keeper.h. One thread, polling: the server's output, and signals.
 */
#include "runtime/keeper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/str.h"
#include "runtime/keeper_internal.h"
#include "runtime/process_id.h"
#include "runtime/state_folder.h"
#include "slice/slice.h"

enum { POLL_MS = 50, LOG_LIMIT_BYTES = 1 << 20, SPEC_LIMIT_BYTES = 1 << 20, WORDS_MAX = 32 };
#define DRAIN_TIMEOUT_NS INT64_C(30000000000)

static void keeper_done(struct keeper *keeper)
{
    slice_process_free(keeper->server);
    slice_free(keeper->slice);
    if (keeper->lock_fd >= 0 && keeper->live_path)
        unlink(keeper->live_path);
    close_fd(&keeper->signal_fd);
    close_fd(&keeper->lock_fd);
    json_decref(keeper->spec);
    json_decref(keeper->training_live);
    str_done(&keeper->output);
    free(keeper->live_path);
    free(keeper->log_path);
}

const char *keeper_text(const struct keeper *keeper, const char *key)
{
    return json_string_value(json_object_get(keeper->spec, key)); /* NULL: null or absent */
}

double keeper_number(const struct keeper *keeper, const char *key)
{
    return json_number_value(json_object_get(keeper->spec, key));
}

int keeper_say_live(const struct keeper *keeper, struct error *err)
{
    struct process_id self = {0}, server = {0};
    process_id_of(getpid(), &self);
    if (keeper->server_pid)
        process_id_of(keeper->server_pid, &server);
    CLEANUP(json_decref_ptr) json_t *live = process_id_to_json(&self);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    json_object_set_new(live, "identity", json_string(keeper_text(keeper, "identity")));
    json_object_set_new(live, "ready", json_boolean(keeper->ready));
    json_object_set_new(live, "port", json_integer(keeper->port));
    json_object_set_new(live, "max_wait_ms", json_real(keeper_number(keeper, "max_wait_ms")));
    json_object_set_new(live, "server", process_id_to_json(&server));
    if (keeper->training_live)
        json_object_set(live, "training", keeper->training_live);
    json_write_line(live, &text);
    return file_write(keeper->live_path, text.bytes, text.length, err);
}

static int read_spec(struct keeper *keeper, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/units/%s.json", keeper->folder, keeper->key);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    int failed = file_read(path, SPEC_LIMIT_BYTES, &text, err);
    if (!failed)
        failed = json_parse(path, text.bytes, text.length, &keeper->spec, err);
    if (failed)
        return failed;
    static const char *const NEEDED[] = {"service", "model",  "provider",
                                         "program", "method", "identity"};
    for (size_t i = 0; i < sizeof NEEDED / sizeof *NEEDED; i++)
        if (!keeper_text(keeper, NEEDED[i]))
            return error_set(err, E_INPUT, "%s: %s: expected text", path, NEEDED[i]);
    return 0;
}

static enum slice_method find_method(const char *name)
{
    for (int m = 0; m < SLICE_METHOD_COUNT; m++)
        if (strcmp(slice_method_name((enum slice_method)m), name) == 0)
            return (enum slice_method)m;
    return SLICE_AUTO;
}

static int open_slice(struct keeper *keeper, struct error *err)
{
    struct slice_options options = {
        .mig_uuid = keeper_text(keeper, "uuid"),
        .cpu_cores = keeper_number(keeper, "cpu_cores"),
        .period_ns = (int64_t)(keeper_number(keeper, "period_ms") * 1e6),
        .memory_bytes = (uint64_t)keeper_number(keeper, "memory_mib") << 20,
        .method = find_method(keeper_text(keeper, "method")),
    };
    return slice_open(&options, &keeper->slice, err);
}

static int start_server(struct keeper *keeper, struct error *err)
{
    char batch[16], procs[16], threads[16], wait[32], omp[40];
    snprintf(batch, sizeof batch, "%d", (int)keeper_number(keeper, "batch"));
    snprintf(procs, sizeof procs, "%d", (int)keeper_number(keeper, "procs"));
    snprintf(threads, sizeof threads, "%d", (int)keeper_number(keeper, "threads"));
    snprintf(wait, sizeof wait, "%.3f", keeper_number(keeper, "max_wait_ms"));
    snprintf(omp, sizeof omp, "OMP_NUM_THREADS=%s", threads);
    const char *words[WORDS_MAX] = {keeper_text(keeper, "program"),
                                    "serve",
                                    keeper_text(keeper, "model"),
                                    "--name",
                                    keeper_text(keeper, "service"),
                                    "--commands",
                                    "--port",
                                    "0",
                                    "--batch",
                                    batch,
                                    "--procs",
                                    procs,
                                    "--max-wait-ms",
                                    wait,
                                    "--threads",
                                    threads,
                                    "--provider",
                                    keeper_text(keeper, "provider")};
    size_t count = 18;
    if (keeper_text(keeper, "ort_library")) {
        words[count++] = "--ort-library";
        words[count++] = keeper_text(keeper, "ort_library");
    }
    assert(count < WORDS_MAX && !words[count]);
    const char *environment[] = {omp, "OMP_WAIT_POLICY=passive", NULL};
    struct slice_command command = {.words = words, .environment = environment};
    int failed = slice_spawn(keeper->slice, &command, &keeper->server, err);
    if (!failed)
        keeper->server_pid = keeper->server->pid;
    return failed;
}

/* ---- what the server says --------------------------------------------------------- */

void keeper_write_log(const struct keeper *keeper, const char *bytes, size_t length)
{
    struct stat status;
    CLEANUP(close_fd)
    int fd = open(keeper->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && status.st_size > LOG_LIMIT_BYTES && ftruncate(fd, 0) != 0)
        return;
    ssize_t wrote = write(fd, bytes, length); /* a full disk loses log lines, nothing more */
    (void)wrote;
}

/* The one line of standard output that counts. */
static int hear_ready(struct keeper *keeper, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *event = NULL;
    struct error ignored;
    char *end = strchr(keeper->output.bytes, '\n');
    if (keeper->ready || !end ||
        json_parse("server", keeper->output.bytes, (size_t)(end - keeper->output.bytes), &event,
                   &ignored) != 0)
        return 0;
    keeper->port = (int)json_integer_value(json_object_get(event, "port"));
    keeper->ready = keeper->port > 0;
    int failed = slice_limit(keeper->slice, true, err);
    return failed ? failed : keeper_say_live(keeper, err);
}

static int read_output(struct keeper *keeper, int *fd, bool is_stdout, struct error *err)
{
    char bytes[4096];
    ssize_t got = read(*fd, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got <= 0) {
        close_fd(fd);
        *fd = -1;
        return 0;
    }
    keeper_write_log(keeper, bytes, (size_t)got);
    if (!is_stdout || keeper->output.length > sizeof bytes)
        return 0;
    str_add_bytes(&keeper->output, bytes, (size_t)got);
    return hear_ready(keeper, err);
}

/* ---- life ------------------------------------------------------------------------- */

/* What can be changed in a running server: how long requests wait for their batch. */
static int retune(struct keeper *keeper, struct error *err)
{
    json_t *before = keeper->spec;
    char line[64];
    keeper->spec = NULL;
    if (read_spec(keeper, err) != 0) { /* the one in force stays */
        json_decref(keeper->spec);
        keeper->spec = before;
        return 0;
    }
    json_decref(before);
    int length =
        snprintf(line, sizeof line, "max-wait-ms %.3f\n", keeper_number(keeper, "max_wait_ms"));
    if (write(keeper->server->stdin_fd, line, (size_t)length) != length)
        return error_set_errno(err, E_IO, "%s: the server takes no commands", keeper->key);
    return keeper_say_live(keeper, err);
}

static int heed_signal(struct keeper *keeper, struct error *err)
{
    struct signalfd_siginfo info;
    if (read(keeper->signal_fd, &info, sizeof info) != (ssize_t)sizeof info || keeper->ending)
        return 0;
    if (info.ssi_signo == SIGHUP)
        return retune(keeper, err);
    keeper->ending = true;
    keeper->deadline_ns = clock_now_ns(clock_real()) + DRAIN_TIMEOUT_NS;
    slice_process_signal(keeper->server, SIGTERM);
    slice_process_signal(keeper->server, SIGCONT);
    return 0;
}

static int end_of_server(const struct keeper *keeper, struct error *err)
{
    int status = keeper->server->wait_status;
    if (keeper->ending)
        return 0;
    if (WIFSIGNALED(status))
        return error_set(err, E_IO, "%s: the server was killed by signal %d", keeper->key,
                         WTERMSIG(status));
    return error_set(err, E_IO, "%s: the server ended with status %d (see %s)", keeper->key,
                     WEXITSTATUS(status), keeper->log_path);
}

static int watch(struct keeper *keeper, struct error *err)
{
    while (!slice_process_wait(keeper->server, 0)) {
        struct pollfd fds[] = {{.fd = keeper->signal_fd, .events = POLLIN},
                               {.fd = keeper->server->stdout_fd, .events = POLLIN},
                               {.fd = keeper->server->stderr_fd, .events = POLLIN}};
        int failed = 0;
        if (poll(fds, 3, POLL_MS) > 0) {
            if (fds[0].revents)
                failed = heed_signal(keeper, err);
            if (fds[1].revents && !failed)
                failed = read_output(keeper, &keeper->server->stdout_fd, true, err);
            if (fds[2].revents && !failed)
                failed = read_output(keeper, &keeper->server->stderr_fd, false, err);
        }
        if (failed)
            return failed;
        if (keeper->ending && clock_now_ns(clock_real()) > keeper->deadline_ns)
            slice_process_signal(keeper->server, SIGKILL);
    }
    return end_of_server(keeper, err);
}

static int take_signals(struct keeper *keeper, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    keeper->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return keeper->signal_fd >= 0 ? 0 : error_set_errno(err, E_IO, "signalfd");
}

int keeper_run(const char *folder, const char *key, struct error *err)
{
    CLEANUP(keeper_done)
    struct keeper keeper = {.folder = folder,
                            .key = key,
                            .output = STR_EMPTY,
                            .lock_fd = -1,
                            .signal_fd = -1,
                            .log_path = xasprintf("%s/log/%s.log", folder, key)};
    CLEANUP(free_ptr) char *lock_path = xasprintf("%s/units/%s.lock", folder, key);
    /* The lock before all else: whoever holds it is this unit's one keeper. */
    int failed = file_lock(lock_path, &keeper.lock_fd, err);
    if (failed)
        return failed;
    keeper.live_path = xasprintf("%s/units/%s.live", folder, key);
    failed = read_spec(&keeper, err);
    if (!failed)
        failed = take_signals(&keeper, err);
    if (!failed)
        failed = keeper_say_live(&keeper, err);
    if (!failed)
        failed = open_slice(&keeper, err);
    const char *task = failed ? NULL : keeper_text(&keeper, "task");
    if (task && strcmp(task, "training") == 0)
        return keeper_train(&keeper, err);
    if (!failed)
        failed = start_server(&keeper, err);
    if (!failed)
        failed = keeper_say_live(&keeper, err);
    return failed ? failed : watch(&keeper, err);
}
