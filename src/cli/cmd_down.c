/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche down`: ends the running plan and restores the layout found.
 */
#include <signal.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/running.h"
#include "runtime/runtime.h"
#include "runtime/state_folder.h"

struct down_options {
    const char *state_dir;
    double timeout;
};

static const struct option_spec options[] = {
    OPTION_NUMBER(0, "timeout", struct down_options, timeout, "SECONDS", "120", 1, 86400,
                  "how long to wait for the end"),
    RUNNING_STATE_OPTION(struct down_options),
};

/* The runtime is gone: its work is done here. */
static int take_down_here(const char *folder, double timeout, struct error *err)
{
    CLEANUP(runtime_free_ptr) struct runtime *runtime = NULL;
    int64_t deadline_ns = clock_now_ns(clock_real()) + (int64_t)(timeout * 1e9);
    int failed = runtime_open(folder, &runtime, err);
    if (failed)
        return failed;
    signal(SIGPIPE, SIG_IGN);
    failed = runtime_start(runtime, err);
    if (failed)
        return failed;
    runtime_down(runtime);
    while (runtime->phase != PHASE_ENDED) {
        runtime_tick(runtime);
        if (clock_now_ns(clock_real()) > deadline_ns)
            return error_set(err, E_TIMEOUT, "not everything has ended; try again");
        running_sleep(0.05);
    }
    return 0;
}

/* The process that steers goes a moment after its files, and its lock with it: the next one
 * needs the lock. */
static bool has_ended(const char *folder)
{
    CLEANUP(free_ptr) char *journal = state_folder_file(folder, "journal.jsonl");
    CLEANUP(free_ptr) char *control = state_folder_file(folder, "control.sock");
    CLEANUP(free_ptr) char *lock = state_folder_file(folder, "runtime.lock");
    CLEANUP(close_fd) int fd = -1;
    struct error ignored;
    return access(journal, F_OK) != 0 && access(control, F_OK) != 0 &&
           file_lock(lock, &fd, &ignored) != -E_BUSY;
}

static int wait_for_end(const char *folder, double timeout, struct error *err)
{
    int64_t deadline_ns = clock_now_ns(clock_real()) + (int64_t)(timeout * 1e9);
    while (!has_ended(folder)) {
        if (clock_now_ns(clock_real()) > deadline_ns)
            return error_set(err, E_TIMEOUT,
                             "not everything has ended; see `tranche status` and %s/log",
                             folder);
        if (!running_sleep(0.05))
            return error_set(err, E_INTERRUPTED, "interrupted; the end goes on");
    }
    return 0;
}

static int run(const void *parsed, struct arguments arguments, struct error *err)
{
    const struct down_options *given = parsed;
    CLEANUP(free_ptr) char *folder = running_folder(given->state_dir);
    CLEANUP(json_decref_ptr) json_t *answer = NULL;
    (void)arguments;
    running_catch_signals();
    int failed = running_ask(folder, "down", &answer, err);
    if (!failed)
        return wait_for_end(folder, given->timeout, err);
    return err->code == E_NOT_FOUND ? take_down_here(folder, given->timeout, err) : failed;
}

const struct command cmd_down = {
    .name = "down",
    .summary = "end the running plan and restore the layout found",
    .arguments_max = 0,
    .description =
        "Answers what was accepted, then ends every server and HAProxy, and brings each GPU "
        "back to the layout that it had before `tranche up`. After a crash of the process that "
        "steers, this command does the same by itself.",
    .examples = "tranche down",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct down_options),
    .run = run,
};
