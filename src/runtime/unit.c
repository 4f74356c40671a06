/* SPDX-License-Identifier: Apache-2.0
 *
 * See unit.h.
 */
#include "runtime/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/str.h"

#define KILL_WAIT_NS INT64_C(5000000000)
/* Servers are told microseconds. */
static const double TUNED_WITHIN_MS = 0.001;

static char *unit_file(const struct unit *unit, const char *folder, const char *suffix)
{
    return xasprintf("%s/units/%s.%s", folder, unit->key, suffix);
}

bool unit_runs(const struct unit *unit, const json_t *spec)
{
    return strcmp(json_string_value(json_object_get(spec, "identity")), unit->identity) == 0;
}

/* In the child: a session of its own, so that neither Ctrl-C nor our end reaches it. */
static void run_keeper(const char *program, const char *folder, const char *key, int log_fd)
{
    sigset_t none;
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null_fd = open("/dev/null", O_RDWR);
    dup2(null_fd, STDIN_FILENO);
    dup2(null_fd, STDOUT_FILENO);
    dup2(log_fd, STDERR_FILENO);
    execl(program, program, "keeper", folder, key, (char *)NULL);
    dprintf(STDERR_FILENO, "%s: %s\n", program, strerror(errno));
    _exit(127);
}

static int write_spec(const struct unit *unit, const char *folder, const json_t *spec,
                      struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(free_ptr) char *path = unit_file(unit, folder, "json");
    json_write_line(spec, &text);
    return file_write(path, text.bytes, text.length, err);
}

int unit_launch(struct unit *unit, const char *folder, const json_t *spec, struct error *err)
{
    CLEANUP(free_ptr) char *log = xasprintf("%s/log/%s.log", folder, unit->key);
    const char *program = json_string_value(json_object_get(spec, "program"));
    int failed = write_spec(unit, folder, spec, err);
    if (failed)
        return failed;
    CLEANUP(close_fd) int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(err, E_IO, "%s: cannot write", log);
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, E_IO, "cannot start a process");
    if (pid == 0)
        run_keeper(program, folder, unit->key, fd);
    unit->keeper = (struct process_id){.pid = pid};
    process_id_of(pid, &unit->keeper);
    unit->server = (struct process_id){0};
    unit->ready = false;
    unit->started_ns = clock_now_ns(clock_real());
    unit->adopted = true;
    return 0;
}

int unit_retune(struct unit *unit, const char *folder, const json_t *spec, struct error *err)
{
    int failed = write_spec(unit, folder, spec, err);
    if (!failed)
        process_id_signal(&unit->keeper, SIGHUP);
    return failed;
}

bool unit_is_tuned(const struct unit *unit)
{
    if (unit->training)
        return true;
    double wanted_ms = isnan(unit->max_wait_ms) ? 0 : unit->max_wait_ms;
    return fabs(unit->live_max_wait_ms - wanted_ms) < TUNED_WITHIN_MS;
}

static void read_progress(struct unit *unit, const json_t *training)
{
    const json_t *loss = json_object_get(training, "loss");
    unit->progress = (struct unit_progress){
        .steps = json_integer_value(json_object_get(training, "steps")),
        .steps_per_s = json_number_value(json_object_get(training, "steps_per_s")),
        .rate_rps = json_number_value(json_object_get(training, "rate_rps")),
        .loss = json_is_number(loss) ? json_number_value(loss) : NAN};
}

bool unit_look(struct unit *unit, const char *folder)
{
    CLEANUP(free_ptr) char *path = unit_file(unit, folder, "live");
    CLEANUP(json_decref_ptr) json_t *live = NULL;
    struct error ignored;
    bool launched = process_id_alive(&unit->keeper);
    if (access(path, F_OK) != 0 || json_read(path, &live, &ignored) != 0)
        return launched; /* just begun, or just ended */
    struct process_id keeper = process_id_from_json(live);
    if (!process_id_alive(&keeper))
        return launched;
    const char *identity = json_string_value(json_object_get(live, "identity"));
    unit->keeper = keeper;
    unit->server = process_id_from_json(json_object_get(live, "server"));
    unit->port = (int)json_integer_value(json_object_get(live, "port"));
    unit->ready = json_is_true(json_object_get(live, "ready"));
    const json_t *wait = json_object_get(live, "max_wait_ms");
    unit->live_max_wait_ms = json_is_number(wait) ? json_number_value(wait) : NAN;
    read_progress(unit, json_object_get(live, "training"));
    snprintf(unit->identity, sizeof unit->identity, "%s", identity ? identity : "");
    return true;
}

void unit_end(struct unit *unit, bool at_once)
{
    process_id_signal(&unit->keeper, at_once ? SIGKILL : SIGTERM);
    if (!at_once)
        return;
    process_id_signal(&unit->server, SIGKILL);
    process_id_wait(&unit->keeper, KILL_WAIT_NS);
    process_id_wait(&unit->server, KILL_WAIT_NS);
}

void unit_clean(const struct unit *unit, const char *folder)
{
    static const char *const SUFFIXES[] = {"live", "json", "lock"};
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
        CLEANUP(free_ptr) char *path = unit_file(unit, folder, SUFFIXES[i]);
        unlink(path);
    }
}
