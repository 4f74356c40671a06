/* SPDX-License-Identifier: Apache-2.0
 *
 * Closed-loop measurement. See measure.h.
 */
#include "load/measure.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "load/measure_internal.h"
#include "load/workload_command.h"

enum { STEPS_MAX = 4000000, LISTEN_NS = 10000000, FIRST_LOSSES = 4 };
#define FINISH_TIMEOUT_NS ((int64_t)20 * 1000000000)
#define MIB               ((uint64_t)1 << 20)

static const char *const device_names[MEASURE_DEVICE_COUNT] = {
    [DEVICE_CPU_SLICE] = "cpu-slice",
    [DEVICE_CUDA] = "cuda",
    [DEVICE_TENSORRT] = "tensorrt",
};

const char *measure_device_name(enum measure_device device)
{
    assert(device < MEASURE_DEVICE_COUNT);
    return device_names[device];
}

double measure_cpu_quota(const struct mig_board *board, int profile, double cpu_full_slice)
{
    assert(profile >= 0 && profile < board->profile_count);
    if (!board->has_mig)
        return cpu_full_slice;
    return cpu_full_slice * board->profiles[profile].compute_slices / board->compute_slices;
}

static int64_t now_ns(void)
{
    return clock_now_ns(clock_real());
}

/* CPU time from the end of the first counted group to the end of the last. */
static void count_cpu(struct run *run, const struct steps_event *steps)
{
    if (!run->measuring || steps->cpu_ns < 0)
        return;
    if (run->cpu_first_ns == 0) {
        run->cpu_first_ns = steps->cpu_ns;
    } else {
        run->cpu_last_ns = steps->cpu_ns;
        run->cpu_steps += steps->count;
    }
}

static void take_steps(void *context, int child, const struct steps_event *steps)
{
    struct run *run = context;
    struct measure_result *result = run->result;
    assert(child < CHILDREN_MAX);
    run->warm_steps[child] += steps->count;
    if (child == 0)
        count_cpu(run, steps);
    if (child >= run->cell->procs)
        return; /* the companion */
    for (int i = 0; i < steps->count; i++) {
        int64_t number = steps->first + i;
        if (child == 0 && number < FIRST_LOSSES)
            result->first_losses[number] = steps->loss[i];
        if (!run->measuring || steps->start_ns[i] < result->window_start_ns ||
            result->steps.count >= STEPS_MAX)
            continue;
        *vec_push(&result->steps) =
            (struct measured_step){steps->start_ns[i], steps->duration_ns[i], child};
    }
}

/* Starts the processes of the cell: this program again, or the user's own command. */
int run_start(struct run *run, const char *mode, struct error *err)
{
    CLEANUP(free_ptr) struct workload_command *command = xcalloc(1, sizeof *command);
    workload_command_fill(command, run->cell, run->settings, run->result->cpu_quota_cores);
    if (mode && !run->settings->command)
        workload_command_add(command, mode);
    int failure = 0;
    for (int i = 0; i < run->cell->procs && !failure; i++)
        failure = children_start(&run->children, &command->command, err);
    if (failure || !run->settings->companion)
        return failure;
    *command = (struct workload_command){0};
    workload_command_fill(command, run->settings->companion, run->settings,
                          run->result->cpu_quota_cores);
    return children_start(&run->children, &command->command, err);
}

static int open_slice(struct run *run, struct slice **ret_slice, struct error *err)
{
    const struct measure_settings *settings = run->settings;
    const struct mig_profile *profile = &run->cell->board->profiles[run->cell->profile];
    struct slice_options options = {.mig_uuid = settings->uuid,
                                    .period_ns = settings->period_ns,
                                    .method = settings->method};
    if (settings->device == DEVICE_CPU_SLICE) {
        options.cpu_cores = run->result->cpu_quota_cores;
        options.memory_bytes = settings->memory_bytes;
        if (options.memory_bytes == 0 && profile->memory_mib > 0)
            options.memory_bytes = (uint64_t)profile->memory_mib * MIB;
    }
    int failure = slice_open(&options, ret_slice, err);
    if (failure)
        return failure;
    run->result->method = slice_method_used(*ret_slice);
    slice_describe(*ret_slice, &run->result->how);
    return 0;
}

/* All ready, the quota in force, all told to go. */
int run_pass_barrier(struct run *run, struct error *err)
{
    struct children *children = &run->children;
    while (!children_are_ready(children) && children_failed(children) < 0) {
        int failure = children_listen(children, LISTEN_NS, err);
        if (failure)
            return failure;
    }
    if (children_failed(children) >= 0)
        return 0;
    run->result->ready = children->list[0].ready;
    if (run->settings->barrier)
        run->settings->barrier(run->settings->barrier_context);
    int failure = slice_limit(children->slice, true, err);
    if (failure)
        return failure;
    run->go_ns = now_ns();
    for (int i = 0; i < children->count; i++)
        if (children->list[i].ready.waits)
            child_write(&children->list[i], "go\n");
    return 0;
}

static bool is_warm(const struct run *run)
{
    if (now_ns() - run->go_ns < run->settings->warmup_ns)
        return false;
    for (int i = 0; i < run->children.count; i++)
        if (run->warm_steps[i] < run->settings->warmup_steps)
            return false;
    return true;
}

/* A GPU is watched where its driver can be opened; else the result says why not. Before the
 * workload starts: idle power is read here. */
static void open_gpu(struct run *run)
{
    struct gpu_driver_options options = {0};
    struct error err;
    if (run->settings->device == DEVICE_CPU_SLICE)
        return;
    int failure = gpu_driver_kind_get(NULL, &options.kind, &err);
    if (!failure)
        failure = gpu_driver_open(&options, &run->gpu_driver, &err);
    if (!failure)
        failure = gpu_watch_new(&run->gpu_driver, run->settings->uuid, &run->gpu_watch, &err);
    if (failure)
        snprintf(run->result->gpu.reason, sizeof run->result->gpu.reason, "%s", err.text);
}

static void close_gpu(struct run *run)
{
    gpu_watch_free(run->gpu_watch);
    run->gpu_watch = NULL;
    if (run->gpu_driver.ops)
        gpu_driver_close(&run->gpu_driver);
}

void run_start_window(struct run *run)
{
    struct error ignored; /* no thread: the figures are of two samples */
    if (run->gpu_watch)
        gpu_watch_start(run->gpu_watch, &ignored);
    run->measuring = true;
    slice_read_usage(run->children.slice, &run->usage_at_start);
    run->result->window_start_ns = now_ns();
    run->result->phases.from_ns = run->result->window_start_ns;
    run->result->phases.children = run->cell->procs;
    run->children.phases = &run->result->phases;
}

static bool window_is_full(const struct run *run)
{
    int64_t passed_ns = now_ns() - run->result->window_start_ns;
    size_t steps = run->result->steps.count;
    int64_t longest_ns = run->settings->longest_ns;
    if (passed_ns >= longest_ns + (steps ? 0 : run->settings->silence_timeout_ns))
        return true;
    return steps >= STEPS_MAX || (passed_ns >= run->settings->duration_ns &&
                                  steps >= (size_t)run->settings->min_steps);
}

void run_end_window(struct run *run)
{
    struct measure_result *result = run->result;
    struct slice_usage usage;
    assert(run->result->window_start_ns > 0);
    slice_read_usage(run->children.slice, &usage);
    if (run->gpu_watch)
        gpu_watch_stop(run->gpu_watch, &result->gpu);
    result->window_ns = now_ns() - result->window_start_ns;
    double window = (double)result->window_ns;
    result->cpu_cores = (double)(usage.cpu_ns - run->usage_at_start.cpu_ns) / window;
    result->throttled_share = NAN;
    if (usage.throttled_ns >= 0)
        result->throttled_share =
            (double)(usage.throttled_ns - run->usage_at_start.throttled_ns) / window;
}

static int run_window(struct run *run, struct error *err)
{
    while (children_failed(&run->children) < 0) {
        int failure = children_listen(&run->children, LISTEN_NS, err);
        if (failure)
            return failure;
        if (!run->measuring && is_warm(run))
            run_start_window(run);
        else if (run->measuring && window_is_full(run))
            break;
        for (int i = 0; i < run->children.count; i++)
            if (run->children.list[i].state == CHILD_DONE) /* a command that ends by itself */
                return run_end_window(run), 0;
    }
    run_end_window(run);
    return 0;
}

/* Sum over the processes of samples ÷ time from the first start to the last end. */
static double throughput(const struct run *run)
{
    const struct measure_result *result = run->result;
    double total = 0;
    assert(run->cell->batch >= 1);
    for (int c = 0; c < run->children.count; c++) {
        int64_t first_ns = INT64_MAX, last_ns = 0, count = 0;
        for (size_t i = 0; i < result->steps.count; i++) {
            const struct measured_step *step = &result->steps.data[i];
            if (step->child != c)
                continue;
            int64_t end_ns = step->start_ns + step->duration_ns;
            first_ns = step->start_ns < first_ns ? step->start_ns : first_ns;
            last_ns = end_ns > last_ns ? end_ns : last_ns;
            count++;
        }
        if (count > 0 && last_ns > first_ns)
            total += (double)count * run->cell->batch * 1e9 / (double)(last_ns - first_ns);
    }
    return total;
}

/* Steady state over the time in which every process was within its counted steps. */
static void check_steady(struct run *run)
{
    struct measure_result *result = run->result;
    int64_t first_ns[CHILDREN_MAX], last_ns[CHILDREN_MAX];
    int64_t start_ns = 0, end_ns = INT64_MAX;
    CLEANUP(free_ptr)
    struct steady_work *work = xcalloc(result->steps.count, sizeof *work);
    assert(run->cell->procs <= CHILDREN_MAX);
    for (int c = 0; c < run->cell->procs; c++) {
        first_ns[c] = INT64_MAX;
        last_ns[c] = 0;
    }
    for (size_t i = 0; i < result->steps.count; i++) {
        const struct measured_step *step = &result->steps.data[i];
        work[i] = (struct steady_work){step->start_ns, step->start_ns + step->duration_ns};
        if (work[i].start_ns < first_ns[step->child])
            first_ns[step->child] = work[i].start_ns;
        if (work[i].end_ns > last_ns[step->child])
            last_ns[step->child] = work[i].end_ns;
    }
    for (int c = 0; c < run->cell->procs; c++) {
        start_ns = first_ns[c] > start_ns ? first_ns[c] : start_ns;
        end_ns = last_ns[c] < end_ns ? last_ns[c] : end_ns;
    }
    result->steady.steady = true;
    if (end_ns > start_ns)
        result->steady =
            steady_check(work, result->steps.count, start_ns, end_ns, steady_rule_standard);
}

void run_add_up_memory(struct run *run)
{
    struct measure_result *result = run->result;
    result->memory_peak_bytes = 0;
    for (int i = 0; i < run->children.count; i++) {
        const struct child *child = &run->children.list[i];
        int64_t peak = child->done.memory_peak_bytes;
        if (!child->said_done || peak < 0)
            peak = child->process->reaped ? child->process->memory_peak_kib * 1024 : 0;
        result->memory_peak_bytes += peak;
    }
}

static void sum_up(struct run *run)
{
    struct measure_result *result = run->result;
    for (size_t i = 0; i < result->steps.count; i++)
        hist_record(result->latency, result->steps.data[i].duration_ns);
    result->throughput_rps = throughput(run);
    if (run->cpu_steps > 0)
        result->cpu_ns_per_step =
            (double)(run->cpu_last_ns - run->cpu_first_ns) / (double)run->cpu_steps;
    run_add_up_memory(run);
}

/* The failure of a child as a row, or as the end of the run. */
int run_judge_failure(struct run *run, const struct child *child, struct error *err)
{
    static const enum measurement_status statuses[] = {
        [FAILURE_INIT] = STATUS_ERROR,
        [FAILURE_OOM] = STATUS_OOM,
        [FAILURE_UNSUPPORTED] = STATUS_UNSUPPORTED,
        [FAILURE_TIMEOUT] = STATUS_TIMEOUT,
        [FAILURE_CRASH] = STATUS_ERROR,
    };
    assert(child->state == CHILD_FAILED);
    run->result->status = statuses[child->failure];
    snprintf(run->result->reason, sizeof run->result->reason, "%s", child->reason);
    if (child->failure == FAILURE_INIT)
        return error_set(err, E_MISSING, "%s", child->reason);
    return 0;
}

static int run_all(struct run *run, struct error *err)
{
    struct children *children = &run->children;
    int failure = run_start(run, NULL, err);
    if (!failure)
        failure = run_pass_barrier(run, err);
    if (!failure && children_failed(children) < 0)
        failure = run_window(run, err);
    if (failure)
        return failure;
    int failed = children_failed(children);
    if (failed >= 0)
        return run_judge_failure(run, &children->list[failed], err);
    children_finish(children, FINISH_TIMEOUT_NS);
    sum_up(run);
    if (run->result->steps.count == 0) {
        run->result->status = STATUS_ERROR;
        snprintf(run->result->reason, sizeof run->result->reason,
                 "ended before anything was measured");
        return 0;
    }
    check_steady(run);
    run->result->verdict = measure_judge(run->cell, run->settings, run->result);
    vec_add(&run->result->repetitions_rps, run->result->throughput_rps);
    return 0;
}

int run_in_slice(struct run *run, int (*body)(struct run *run, struct error *err),
                 struct error *err)
{
    CLEANUP(slice_free_ptr) struct slice *slice = NULL;
    const struct measure_cell *cell = run->cell;
    const struct measure_settings *settings = run->settings;
    struct measure_result *result = run->result;
    assert(cell->procs >= 1 && cell->procs <= CHILDREN_MAX && cell->batch >= 1);
    *result = (struct measure_result){.latency = hist_new(),
                                      .how = STR_EMPTY,
                                      .memory_peak_bytes = -1,
                                      .throttled_share = NAN,
                                      .cpu_ns_per_step = NAN};
    gpu_figures_clear(&result->gpu);
    for (int i = 0; i < FIRST_LOSSES; i++)
        result->first_losses[i] = NAN;
    if (settings->device == DEVICE_CPU_SLICE)
        result->cpu_quota_cores =
            measure_cpu_quota(cell->board, cell->profile, settings->cpu_full_slice);
    int failure = open_slice(run, &slice, err);
    if (failure)
        return failure;
    run->children.slice = slice;
    run->children.stop = settings->stop;
    run->children.ready_timeout_ns = settings->ready_timeout_ns;
    run->children.silence_timeout_ns = settings->silence_timeout_ns;
    open_gpu(run);
    failure = body(run, err);
    children_done(&run->children);
    close_gpu(run);
    return failure;
}

int measure_closed(const struct measure_cell *cell, const struct measure_settings *settings,
                   struct measure_result *ret_result, struct error *err)
{
    CLEANUP(free_ptr) struct run *run = xcalloc(1, sizeof *run);
    *run = (struct run){.cell = cell, .settings = settings, .result = ret_result};
    run->children.on_steps = take_steps;
    run->children.context = run;
    return run_in_slice(run, run_all, err);
}

void measure_result_done(struct measure_result *result)
{
    hist_free(result->latency);
    for (int i = 0; i < WORKLOAD_PHASE_COUNT; i++)
        hist_free(result->phases.times[i]);
    result->phases = (struct phase_times){0};
    vec_done(&result->steps);
    vec_done(&result->repetitions_rps);
    str_done(&result->how);
    result->latency = NULL;
}
