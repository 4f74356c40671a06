/* SPDX-License-Identifier: Apache-2.0
 *
 * Probing of frameworks. See probe.h.
 */
#include "load/probe.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "load/instance_group.h"
#include "slice/slice.h"

enum {
    OUTPUT_MAX = 1 << 20,
    WORDS_MAX = 24,
    LOOK_MS = 100,
    BUILT_IN = 0,
    WINDOW_NS = 300000000
};

static const char *const frameworks[] = {"built-in", "torch",  "tensorflow",
                                         "jax",      "paddle", "onnxruntime"};

size_t probe_framework_count(void)
{
    return sizeof frameworks / sizeof *frameworks;
}

const char *probe_framework_name(size_t index)
{
    assert(index < probe_framework_count());
    return frameworks[index];
}

/* What a child says, and how it ended. */
struct child_output {
    struct str text, errors;
    bool timed_out;
    int wait_status;
};

static void output_done(struct child_output *output)
{
    str_done(&output->text);
    str_done(&output->errors);
}

/* Reads what is there; false at the end of the pipe. */
static bool take(int fd, struct str *text)
{
    char bytes[4096];
    ssize_t length = read(fd, bytes, sizeof bytes);
    if (length <= 0)
        return length < 0 && errno == EINTR;
    if (text->length < OUTPUT_MAX)
        str_add_bytes(text, bytes, (size_t)length);
    return true;
}

static int listen(const struct probe_options *options, struct slice_process *process,
                  struct child_output *output, struct error *err)
{
    int64_t deadline_ns = clock_now_ns(clock_real()) + options->timeout_ns;
    struct pollfd fds[2] = {{.fd = process->stdout_fd, .events = POLLIN},
                            {.fd = process->stderr_fd, .events = POLLIN}};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        if (options->stop && *options->stop)
            return error_set(err, E_INTERRUPTED, "interrupted");
        output->timed_out = clock_now_ns(clock_real()) > deadline_ns;
        if (output->timed_out)
            return 0;
        if (poll(fds, 2, LOOK_MS) <= 0)
            continue;
        if (fds[0].revents && !take(fds[0].fd, &output->text))
            fds[0].fd = -1;
        if (fds[1].revents && !take(fds[1].fd, &output->errors))
            fds[1].fd = -1;
    }
    slice_process_wait(process, deadline_ns);
    output->wait_status = process->reaped ? process->wait_status : 0;
    return 0;
}

static int run_child(const struct probe_options *options, const char *const *words,
                     struct child_output *output, struct error *err)
{
    CLEANUP(slice_free_ptr) struct slice *slice = NULL;
    CLEANUP(slice_process_free_ptr) struct slice_process *process = NULL;
    static const char *const environment[] = {"OMP_NUM_THREADS=1", NULL};
    struct slice_command command = {.words = words, .environment = environment};
    int failure = slice_open(&(struct slice_options){.mig_uuid = options->uuid}, &slice, err);
    if (!failure)
        failure = slice_spawn(slice, &command, &process, err);
    return failure ? failure : listen(options, process, output, err);
}

static void add_check(json_t *checks, const char *check, const char *verdict,
                      const char *detail)
{
    json_t *text = json_string(detail); /* NULL when it is no UTF-8 */
    json_array_append_new(checks, json_pack("{s:s, s:s, s:o}", "check", check, "verdict",
                                            verdict, "detail", text ? text : json_string("?")));
}

/* The last line that is not empty. */
static const char *last_line(struct str *text)
{
    while (text->length > 0 && strchr("\r\n", text->bytes[text->length - 1]))
        text->bytes[--text->length] = '\0';
    const char *newline = strrchr(text->bytes, '\n');
    return newline ? newline + 1 : text->bytes;
}

static void explain_silence(json_t *checks, const char *check, struct child_output *output)
{
    char text[300];
    if (output->timed_out)
        snprintf(text, sizeof text, "no answer in time");
    else
        snprintf(text, sizeof text, "ended with %d: %s", output->wait_status,
                 last_line(&output->errors));
    add_check(checks, check, "fail", text);
}

/* Python frameworks: probe.py says the checks itself. */
static int probe_python(const struct probe_options *options, const char *name, json_t *checks,
                        struct error *err)
{
    CLEANUP(output_done) struct child_output output = {.text = STR_EMPTY, .errors = STR_EMPTY};
    CLEANUP(free_ptr) char *script = xasprintf("%s/probe.py", options->adapters);
    const char *words[] = {options->python, script, name, NULL};
    int failure = run_child(options, words, &output, err);
    char *rest = output.text.bytes, *line;
    while (!failure && output.text.length && (line = strsep(&rest, "\n"))) {
        json_t *check = json_loads(line, 0, NULL);
        if (json_is_string(json_object_get(check, "check")) &&
            json_is_string(json_object_get(check, "verdict")) &&
            json_is_string(json_object_get(check, "detail")))
            json_array_append(checks, check);
        json_decref(check);
    }
    if (!failure && (output.timed_out || json_array_size(checks) == 0))
        explain_silence(checks, "import", &output);
    return failure;
}

/* What the worker's events come to. */
static void judge_events(json_t *checks, const char *check, struct child_output *output)
{
    CLEANUP(free_ptr) char *copy = xstrdup(output->text.bytes);
    bool done = false;
    char detail[300] = "", failed[300] = "";
    for (char *rest = copy, *line; (line = strsep(&rest, "\n"));) {
        CLEANUP(json_decref_ptr) json_t *event = json_loads(line, 0, NULL);
        const char *kind = json_string_value(json_object_get(event, "event"));
        const char *version = json_string_value(json_object_get(event, "version"));
        const char *text = json_string_value(json_object_get(event, "text"));
        if (kind && strcmp(kind, "ready") == 0)
            snprintf(detail, sizeof detail, "ONNX Runtime %s", version ? version : "");
        else if (kind && strcmp(kind, "error") == 0)
            snprintf(failed, sizeof failed, "%.*s", (int)strcspn(text ? text : "", "\n"),
                     text ? text : "");
        else if (kind && strcmp(kind, "done") == 0)
            done = true;
    }
    if (*failed)
        add_check(checks, check, strstr(failed, "not installed") ? "absent" : "fail", failed);
    else if (!done)
        explain_silence(checks, check, output);
    else
        add_check(checks, check, "pass", detail);
}

static int probe_built_in(const struct probe_options *options, const char *task, json_t *checks,
                          struct error *err)
{
    CLEANUP(output_done) struct child_output output = {.text = STR_EMPTY, .errors = STR_EMPTY};
    const char *words[WORDS_MAX] = {
        "/proc/self/exe", "worker", "--model",    "cnn",
        "--task",         task,     "--batch",    "4",
        "--steps",        "5",      "--provider", options->uuid ? "cuda" : "cpu"};
    if (options->ort_library) {
        words[12] = "--ort-library";
        words[13] = options->ort_library;
    }
    int failure = run_child(options, words, &output, err);
    if (!failure)
        judge_events(checks, strcmp(task, "inference") == 0 ? "infer" : "train", &output);
    return failure;
}

/* Two processes that infer at the same time, each with half a core on the CPU. */
static int probe_two_processes(const struct probe_options *options, json_t *checks,
                               struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *run = NULL;
    struct group_instance one = {
        .cell = {.name = "cnn",
                 .model = "cnn",
                 .board = mig_board_find("t4-16gb"), /* any without MIG: one slice */
                 .batch = 4,
                 .procs = 1},
        .settings = {.device = options->uuid ? DEVICE_CUDA : DEVICE_CPU_SLICE,
                     .uuid = options->uuid,
                     .ort_library = options->ort_library,
                     .cpu_full_slice = 0.5,
                     .duration_ns = WINDOW_NS,
                     .longest_ns = WINDOW_NS,
                     .min_steps = 1,
                     .ready_timeout_ns = options->timeout_ns,
                     .silence_timeout_ns = options->timeout_ns},
        .load = "closed",
    };
    struct group_instance two[] = {one, one};
    int failure = group_run(two, 2, options->stop, &run, err);
    if (failure == -E_INTERRUPTED)
        return failure;
    const char *status = json_string_value(json_object_get(run, "status"));
    const char *reason = json_string_value(json_object_get(run, "reason"));
    if (failure)
        add_check(checks, "multi-process", "fail", "the processes could not be started");
    else if (!status || strcmp(status, "ok") != 0)
        add_check(checks, "multi-process", "fail", reason ? reason : "failed");
    else
        add_check(checks, "multi-process", "pass", "two processes ran");
    return 0;
}

/* Whether the last check was passed. */
static bool passed(const json_t *checks)
{
    const json_t *last = json_array_get(checks, json_array_size(checks) - 1);
    const char *verdict = json_string_value(json_object_get(last, "verdict"));
    return verdict && strcmp(verdict, "pass") == 0;
}

int probe_framework(const struct probe_options *options, size_t index, json_t **ret_json,
                    struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *framework = json_object();
    json_t *checks = json_array();
    json_object_set_new(framework, "name", json_string(probe_framework_name(index)));
    json_object_set_new(framework, "checks", checks);
    int failure = 0;
    if (index == BUILT_IN) {
        failure = probe_built_in(options, "inference", checks, err);
        if (!failure)
            failure = probe_built_in(options, "training", checks, err);
        if (!failure && passed(checks))
            failure = probe_two_processes(options, checks, err);
    } else {
        failure = probe_python(options, frameworks[index], checks, err);
    }
    if (!failure)
        *ret_json = STEAL(framework);
    return failure;
}
