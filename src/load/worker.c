/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in workload. See worker.h.
 *
 * Steps are said in groups, at most every 20 ms or 512 steps, so that saying them costs a
 * fast model next to nothing.
 */
#include "load/worker.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "engine/made_inputs.h"
#include "engine/trainer.h"
#include "load/workload_protocol.h"

enum {
    EXIT_START = 2,
    EXIT_RUN = 3,
    FLUSH_NS = 20 * 1000000,
    STATUS_FILE_LIMIT = 1 << 16,
    CHECKPOINT_LIMIT = INT_MAX,
    REQUEST_LINE_MAX = 64,
};

struct worker {
    const struct worker_options *options;
    struct onnx_runtime *runtime;
    struct session *session;
    struct session_call *call;
    struct made_inputs *inputs;
    struct trainer *trainer;  /* training in place of the three above */
    struct steps_event steps; /* not yet said */
    int64_t done_steps;
    int64_t resumed_steps; /* done before, by the checkpoint */
    int64_t next_checkpoint_ns;
    struct str out;
};

static volatile sig_atomic_t stopping;

static void stop(int signal_number)
{
    (void)signal_number;
    stopping = 1;
}

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Writes all that was appended; a parent that is gone ends the worker. */
static void flush_out(struct worker *worker)
{
    if (file_write_all(STDOUT_FILENO, worker->out.bytes, worker->out.length) < 0)
        _exit(EXIT_RUN);
    str_clear(&worker->out);
}

static void flush_steps(struct worker *worker)
{
    if (worker->steps.count == 0)
        return;
    worker->steps.cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    protocol_add_steps(&worker->steps, &worker->out);
    flush_out(worker);
    worker->steps.first += worker->steps.count;
    worker->steps.count = 0;
}

/* Says what went wrong and gives the exit status. */
static int say_error(struct worker *worker, enum error_class error_class,
                     const struct error *err)
{
    if (onnx_runtime_text_is_oom(err->text))
        error_class = CLASS_OOM;
    else if (error_class == CLASS_INIT && err->code == E_UNSUPPORTED)
        error_class = CLASS_UNSUPPORTED;
    protocol_add_error(error_class, err->text, &worker->out);
    flush_out(worker);
    return worker->done_steps > 0 ? EXIT_RUN : EXIT_START;
}

/* Peak resident memory of the process, from /proc; -1: unknown. */
static int64_t memory_peak_bytes(void)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (file_read("/proc/self/status", STATUS_FILE_LIMIT, &text, NULL))
        return -1;
    const char *line = strstr(text.bytes, "VmHWM:");
    return line ? strtoll(line + strlen("VmHWM:"), NULL, 10) * 1024 : -1;
}

/* Starts the peak anew, so that writing a built-in model does not count. */
static void reset_memory_peak(void)
{
    malloc_trim(0);
    CLEANUP(close_file) FILE *file = fopen("/proc/self/clear_refs", "we");
    if (file)
        fputs("5", file);
}

static int load_inference(struct worker *worker, const struct session_options *options,
                          struct error *err)
{
    const struct worker_options *want = worker->options;
    int failure;
    if (model_is_builtin(want->model)) {
        CLEANUP(str_done) struct str model = STR_EMPTY;
        struct model_choice choice;
        failure = model_choose(want->model, &choice, err);
        if (failure)
            return failure;
        model_write(&choice, (int)want->batch, &model);
        failure = session_open_bytes(worker->runtime, want->model, &model, options,
                                     &worker->session, err);
    } else {
        failure =
            session_open_file(worker->runtime, want->model, options, &worker->session, err);
    }
    reset_memory_peak();
    if (!failure)
        failure = made_inputs_new(worker->session, (int)want->batch, want->shapes,
                                  (uint64_t)want->seed, &worker->inputs, err);
    if (failure)
        return failure;
    worker->call = session_call_new(worker->session);
    for (size_t i = 0; i < worker->inputs->count && !failure; i++)
        failure = session_call_bind(worker->call, i, &worker->inputs->tensors[i], err);
    return failure;
}

static int load_training(struct worker *worker, const struct session_options *options,
                         struct error *err)
{
    struct model_choice choice;
    if (!model_is_builtin(worker->options->model))
        return error_set(
            err, E_UNSUPPORTED,
            "%s: only built-in models train (cnn, transformer, resnet, bert), or a "
            "workload of your own",
            worker->options->model);
    int failure = model_choose(worker->options->model, &choice, err);
    if (!failure)
        failure = trainer_new(worker->runtime, &choice, (int)worker->options->batch, options,
                              &worker->trainer, err);
    return failure;
}

/* ---- checkpoints of training ------------------------------------------------------ */

/* One that does not fit is told and passed over: training begins anew. */
static void resume(struct worker *worker)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    const char *path = worker->options->resume;
    struct error err = {0};
    if (!worker->trainer || !path || access(path, F_OK) != 0)
        return;
    int failure = file_read(path, CHECKPOINT_LIMIT, &bytes, &err);
    if (!failure)
        failure = trainer_restore(worker->trainer, &bytes, &worker->resumed_steps, &err);
    if (failure)
        fprintf(stderr, "%s: %s; training begins anew\n", path, err.text);
}

static void save_checkpoint(struct worker *worker)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    const char *path = worker->options->checkpoint;
    struct error err = {0};
    if (!worker->trainer || !path)
        return;
    int failure =
        trainer_save(worker->trainer, worker->resumed_steps + worker->done_steps, &bytes, &err);
    if (!failure)
        failure = file_write(path, bytes.bytes, bytes.length, &err);
    if (failure) /* a full disk does not end the training */
        fprintf(stderr, "no checkpoint: %s\n", err.text);
    worker->next_checkpoint_ns =
        now_ns(CLOCK_MONOTONIC) + (int64_t)(worker->options->checkpoint_every_s * 1e9);
}

static int load(struct worker *worker, struct error *err)
{
    const struct worker_options *want = worker->options;
    struct session_options options = {.threads = (int)want->threads};
    assert(want->provider);
    if (!session_provider_find(want->provider, &options.provider))
        return error_set(err, E_USAGE, "no provider %s", want->provider);
    int failure = onnx_runtime_open(want->ort_library, &worker->runtime, err);
    if (failure)
        return failure;
    return strcmp(want->task, "training") == 0 ? load_training(worker, &options, err)
                                               : load_inference(worker, &options, err);
}

/* One step; *ret_loss is NAN for inference. */
static int run_step(struct worker *worker, double *ret_loss, struct error *err)
{
    float loss = NAN;
    int failure = worker->trainer ? trainer_step(worker->trainer, &loss, err)
                                  : session_call_run(worker->call, err);
    *ret_loss = loss;
    return failure;
}

/* Sums over an output of floats, or of bytes of any other type. */
static struct output_summary summarise(const struct tensor *tensor)
{
    struct output_summary summary = {0};
    bool floats = tensor->element == TENSOR_F32;
    size_t count = floats ? tensor->size_bytes / sizeof(float) : tensor->size_bytes;
    for (size_t i = 0; i < count; i++) {
        double value = floats ? (double)((const float *)tensor->data)[i]
                              : (double)((const unsigned char *)tensor->data)[i];
        summary.sum += value;
        summary.absolute_sum += fabs(value);
    }
    summary.count = (int64_t)count;
    return summary;
}

static void summarise_outputs(struct worker *worker, struct ready_event *ready)
{
    size_t count = worker->session ? session_output_count(worker->session) : 0;
    for (size_t i = 0; i < count && i < PROTOCOL_OUTPUTS_MAX; i++) {
        struct tensor tensor;
        if (session_call_output(worker->call, i, &tensor, NULL) == 0)
            ready->outputs[ready->output_count++] = summarise(&tensor);
    }
}

static void say_ready(struct worker *worker)
{
    struct ready_event ready = {
        .framework = "onnxruntime", .resumed_steps = worker->resumed_steps, .waits = true};
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    bool cpu = strcmp(worker->options->provider, "cpu") == 0;
    snprintf(ready.version, sizeof ready.version, "%s", onnx_runtime_version(worker->runtime));
    snprintf(ready.device, sizeof ready.device, "%s", cpu ? "cpu" : "cuda");
    snprintf(ready.device_name, sizeof ready.device_name, "%s", worker->options->provider);
    snprintf(ready.visible, sizeof ready.visible, "%s", visible ? visible : "");
    summarise_outputs(worker, &ready);
    protocol_add_ready(&ready, worker->options->model, worker->options->task,
                       (int)worker->options->batch, &worker->out);
    flush_out(worker);
}

static int timed_step(struct worker *worker, int64_t *next_flush_ns, struct error *err)
{
    struct steps_event *steps = &worker->steps;
    int64_t start_ns = now_ns(CLOCK_MONOTONIC);
    int failure = run_step(worker, &steps->loss[steps->count], err);
    int64_t end_ns = now_ns(CLOCK_MONOTONIC);
    assert(worker->steps.count < PROTOCOL_STEPS_MAX);
    if (failure)
        return failure;
    steps->start_ns[steps->count] = start_ns;
    steps->duration_ns[steps->count] = end_ns - start_ns;
    steps->count++;
    worker->done_steps++;
    if (steps->count == PROTOCOL_STEPS_MAX || end_ns >= *next_flush_ns) {
        flush_steps(worker);
        *next_flush_ns = end_ns + FLUSH_NS;
    }
    return 0;
}

/* One line of standard input; false at its end, or when told to stop. */
static bool read_request(void)
{
    char c;
    for (int length = 0; length < REQUEST_LINE_MAX; length++) {
        ssize_t got;
        do
            got = read(STDIN_FILENO, &c, 1);
        while (got < 0 && errno == EINTR && !stopping);
        if (got != 1)
            return false;
        if (c == '\n')
            return true;
    }
    return false;
}

/* Whether another line is waiting: if not, what was measured is said before waiting. */
static bool request_is_waiting(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

static int run(struct worker *worker, struct error *err)
{
    int64_t next_flush_ns = now_ns(CLOCK_MONOTONIC) + FLUSH_NS;
    worker->next_checkpoint_ns =
        now_ns(CLOCK_MONOTONIC) + (int64_t)(worker->options->checkpoint_every_s * 1e9);
    long long steps = worker->options->steps;
    int failure = 0;
    worker->steps.items = (int)worker->options->batch;
    while (!failure && !stopping && (steps == 0 || worker->done_steps < steps)) {
        if (worker->options->requests) {
            if (!request_is_waiting())
                flush_steps(worker);
            if (!read_request())
                break;
        }
        failure = timed_step(worker, &next_flush_ns, err);
        if (worker->trainer && now_ns(CLOCK_MONOTONIC) >= worker->next_checkpoint_ns)
            save_checkpoint(worker);
    }
    if (!failure)
        save_checkpoint(worker);
    flush_steps(worker);
    return failure;
}

static void worker_done(struct worker *worker)
{
    session_call_free(worker->call);
    made_inputs_free(worker->inputs);
    session_free(worker->session);
    trainer_free(worker->trainer);
    onnx_runtime_free(worker->runtime);
    str_done(&worker->out);
}

/* Without SA_RESTART: a wait for input ends at a signal. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

int worker_main(const struct worker_options *options)
{
    CLEANUP(worker_done) struct worker worker = {.options = options, .out = STR_EMPTY};
    struct error err = {0};
    double loss;
    assert(options->model && options->batch >= 1);
    catch_signals();
    if (load(&worker, &err))
        return say_error(&worker, CLASS_INIT, &err);
    /* A training step changes the model, so only inference runs once before. */
    if (!worker.trainer && run_step(&worker, &loss, &err))
        return say_error(&worker, CLASS_CRASH, &err);
    resume(&worker);
    say_ready(&worker);
    if (options->steps == 0 && !read_request()) /* "go" */
        return 0;
    if (run(&worker, &err))
        return say_error(&worker, CLASS_CRASH, &err);
    struct done_event done = {.steps = worker.done_steps,
                              .memory_peak_bytes = memory_peak_bytes()};
    protocol_add_done(&done, &worker.out);
    flush_out(&worker);
    return 0;
}
