/* SPDX-License-Identifier: Apache-2.0
 *
 * What measuring costs: the throughput that `tranche bench` reports for the built-in
 * workload against a bare loop over the same library, model and inputs, in rounds that
 * alternate; the median of the rounds' ratios is printed beside its floor of 0.99. Both are
 * runs a second of CPU time, which on a quiet machine is the same as by the wall clock, and
 * on a busy one does not depend on the neighbours.
 *
 *     bench_load TRANCHE BUILD     (library and models as tools/fetch_packages.sh laid them;
 *                                   silero_vad is the hardest: 0.1 ms a run)
 *
 * And the spread of send lag at 10,000 requests a second to an engine that costs nothing.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/stats.h"
#include "engine/made_inputs.h"
#include "engine/onnx_runtime_internal.h"
#include "load/engine_null.h"
#include "load/measure.h"
#include "load/open_loop.h"

enum { ROUNDS = 11, WARM_RUNS = 50, INPUTS_MAX = 16 };
#define ROUND_NS  ((int64_t)600000000)
#define SECOND_NS ((int64_t)1000000000)

static void die(const struct error *err)
{
    fprintf(stderr, "%s\n", err->text);
    exit(4);
}

/* CPU time of this process. */
static int64_t cpu_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* A round of nothing but Run and ReleaseValue in this process: runs a CPU second. */
static double bare_rps(const char *library, const char *model)
{
    struct onnx_runtime *runtime = NULL;
    struct session *session = NULL;
    struct made_inputs *inputs = NULL;
    struct error err;
    struct session_options options = {.threads = 1};
    const char *in_names[INPUTS_MAX], *out_names[INPUTS_MAX];
    struct ort_value *in[INPUTS_MAX] = {NULL}, *out[INPUTS_MAX] = {NULL};
    if (onnx_runtime_open(library, &runtime, &err) ||
        session_open_file(runtime, model, &options, &session, &err) ||
        made_inputs_new(session, 1, NULL, 1, &inputs, &err))
        die(&err);
    const struct ort_table *ort = &runtime->table;
    size_t in_count = session_input_count(session), out_count = session_output_count(session);
    for (size_t i = 0; i < in_count; i++) {
        const struct tensor *tensor = &inputs->tensors[i];
        in_names[i] = session_input(session, i)->name;
        if (ort_check(runtime,
                      ort->CreateTensorWithDataAsOrtValue(
                          runtime->memory, tensor->data, tensor->size_bytes, tensor->shape.size,
                          (size_t)tensor->shape.rank, (int)tensor->element, &in[i]),
                      E_IO, &err))
            die(&err);
    }
    for (size_t i = 0; i < out_count; i++)
        out_names[i] = session_output(session, i)->name;
    int64_t start_ns = 0, now_ns = 0;
    long runs = -WARM_RUNS;
    while (now_ns - start_ns < ROUND_NS || runs < 1) {
        if (runs++ == 0)
            start_ns = cpu_now_ns();
        if (ort_check(runtime,
                      ort->Run(session_handle(session), NULL, in_names,
                               (const struct ort_value *const *)in, in_count, out_names,
                               out_count, out),
                      E_IO, &err))
            die(&err);
        for (size_t i = 0; i < out_count; i++) {
            ort->ReleaseValue(out[i]);
            out[i] = NULL;
        }
        now_ns = cpu_now_ns();
    }
    return (double)(runs - 1) * 1e9 / (double)(now_ns - start_ns);
}

/* The same in a process of its own, as the worker has. */
static double bare_in_child(const char *library, const char *model)
{
    int ends[2];
    double rps = 0;
    if (pipe(ends))
        exit(4);
    pid_t child = fork();
    if (child == 0) {
        rps = bare_rps(library, model);
        _exit(write(ends[1], &rps, sizeof rps) != sizeof rps);
    }
    if (read(ends[0], &rps, sizeof rps) != sizeof rps)
        exit(4);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    return rps;
}

static double measured_rps(const char *tranche, const char *library, const char *model)
{
    const char *const words[] = {tranche,         "worker", "--model", model,
                                 "--ort-library", library,  NULL};
    CLEANUP(measure_result_done) struct measure_result result = {.how = STR_EMPTY};
    struct error err;
    struct measure_cell cell = {.name = model,
                                .model = model,
                                .board = mig_board_find("t4-16gb"),
                                .batch = 1,
                                .procs = 1};
    struct measure_settings settings = {.command = words,
                                        .method = SLICE_PACED,
                                        .cpu_full_slice = 1, /* not enforced */
                                        .warmup_steps = WARM_RUNS,
                                        .duration_ns = ROUND_NS,
                                        .longest_ns = 2 * ROUND_NS,
                                        .ready_timeout_ns = 60 * SECOND_NS,
                                        .silence_timeout_ns = 60 * SECOND_NS};
    if (measure_closed(&cell, &settings, &result, &err))
        die(&err);
    return 1e9 / result.cpu_ns_per_step;
}

static void compare(const char *tranche, const char *library, const char *model)
{
    double ratios[ROUNDS];
    const char *slash = strrchr(model, '/');
    for (int i = 0; i < ROUNDS; i++) {
        double before = bare_in_child(library, model);
        double measured = measured_rps(tranche, library, model);
        double after = bare_in_child(library, model);
        ratios[i] = measured * 2 / (before + after);
        fprintf(stderr, "%s: bare %.1f, measured %.1f, bare %.1f runs a CPU second\n",
                slash ? slash + 1 : model, before, measured, after);
    }
    printf("load/overhead %-16s measured / bare = %.4f (floor 0.99)\n",
           slash ? slash + 1 : model, stats_median(ratios, ROUNDS));
}

static void send_lag(void)
{
    struct null_engine_options null = {.servers = 1, .clock = clock_real()};
    struct load_target target;
    struct arrivals arrivals;
    struct open_loop_result result;
    struct error err;
    if (arrivals_parse("constant:10000", 3 * SECOND_NS, 1, &arrivals, &err))
        die(&err);
    struct open_loop_options options = {
        .arrivals = &arrivals, .timeout_ns = SECOND_NS, .in_flight_max = 10000};
    null_engine_open(&null, &target);
    if (open_loop_run(&target, &options, &result, &err))
        die(&err);
    printf("load/send lag at 10,000/s: p50 %.1f us, p99 %.1f us, p99.9 %.1f us\n",
           (double)hist_percentile_ns(result.send_lag, 50) / 1e3,
           (double)hist_percentile_ns(result.send_lag, 99) / 1e3,
           (double)hist_percentile_ns(result.send_lag, 99.9) / 1e3);
    open_loop_result_done(&result);
    null_engine_close(&target);
    arrivals_done(&arrivals);
}

int main(int argc, char **argv)
{
    static const char *const models[] = {"silero_vad", "ppocr_cls"};
    glob_t found = {0};
    send_lag();
    CLEANUP(free_ptr)
    char *pattern = xasprintf("%s/ort/libonnxruntime.so*", argc > 2 ? argv[2] : "");
    if (glob(pattern, 0, NULL, &found)) {
        printf("load/overhead: not run, no %s\n", pattern);
        return 0;
    }
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        CLEANUP(free_ptr) char *model = xasprintf("%s/models/%s.onnx", argv[2], models[i]);
        compare(argv[1], found.gl_pathv[0], model);
    }
    globfree(&found);
    return 0;
}
