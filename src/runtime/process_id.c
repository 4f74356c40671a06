/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes by pid and start time; see proc(5).
 */
#include "runtime/process_id.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { STAT_SIZE = 1024, STATE_TO_START_FIELDS = 19, POLL_NS = 2000000 };

bool process_id_of(pid_t pid, struct process_id *ret_id)
{
    char path[64], text[STAT_SIZE];
    assert(ret_id);
    if (pid <= 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CLEANUP(close_file) FILE *file = fopen(path, "re");
    if (!file)
        return false;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    const char *at = strrchr(text, ')'); /* the name may hold anything */
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return false;
    at += 2;
    for (int i = 0; i < STATE_TO_START_FIELDS && at; i++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    if (!at)
        return false;
    *ret_id = (struct process_id){.pid = pid, .start_ticks = strtoll(at, NULL, 10)};
    return true;
}

bool process_id_alive(const struct process_id *id)
{
    struct process_id now;
    return id->pid > 0 && process_id_of(id->pid, &now) && now.start_ticks == id->start_ticks;
}

void process_id_signal(const struct process_id *id, int signal_number)
{
    if (process_id_alive(id))
        kill(id->pid, signal_number);
}

bool process_id_wait(const struct process_id *id, int64_t timeout_ns)
{
    int64_t deadline_ns = clock_now_ns(clock_real()) + timeout_ns;
    struct timespec pause = {.tv_nsec = POLL_NS};
    while (process_id_alive(id)) {
        if (clock_now_ns(clock_real()) >= deadline_ns)
            return false;
        nanosleep(&pause, NULL);
    }
    if (id->pid > 0)
        waitpid(id->pid, NULL, WNOHANG);
    return true;
}

json_t *process_id_to_json(const struct process_id *id)
{
    return json_pack("{s:i, s:I}", "pid", (int)id->pid, "start", (json_int_t)id->start_ticks);
}

struct process_id process_id_from_json(const json_t *json)
{
    json_int_t pid = json_integer_value(json_object_get(json, "pid"));
    json_int_t start = json_integer_value(json_object_get(json, "start"));
    if (pid <= 1 || pid > INT32_MAX || start < 0)
        return (struct process_id){0};
    return (struct process_id){.pid = (pid_t)pid, .start_ticks = start};
}
