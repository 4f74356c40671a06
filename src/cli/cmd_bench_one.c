/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench one`: one model on one slice at one batch and process count.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "cli/bench_options.h"
#include "cli/output.h"
#include "load/measure_open.h"
#include "load/result_row.h"

struct one_options {
    struct bench_how how;
    const char *model;
    const char *slice;
    const char *task;
    const char *shapes;
    const char *arrivals;
    long long batch, procs, in_flight;
    double timeout_s;
    const char *output;
    bool append;
    bool allow_invalid;
};

static const struct option_spec options[] = {
    OPTION_TEXT_REQUIRED('m', "model", struct one_options, model, "[NAME=]MODEL",
                         "an ONNX file, or a built-in model such as resnet:depth=50"),
    OPTION_TEXT_REQUIRED('S', "slice", struct one_options, slice, "SLICE",
                         "the slice profile, such as 3g or 3g.20gb"),
    OPTION_INT('b', "batch", struct one_options, batch, "N", "1", 1, 1 << 20,
               "samples of one batch"),
    OPTION_INT('p', "procs", struct one_options, procs, "N", "1", 1, 32,
               "processes that share the slice"),
    OPTION_CHOICE(0, "task", struct one_options, task, "inference|training", "inference",
                  "what to measure"),
    OPTION_TEXT(0, "shape", struct one_options, shapes, "INPUT=SIZES,…", NULL,
                "sizes of inputs that the model leaves open; N is the batch: x=Nx3x320x320"),
    OPTION_TEXT(0, "arrivals", struct one_options, arrivals, "SCHEDULE", NULL,
                "open loop: send batches by constant:RATE, poisson:RATE, burst:RATE,SIZE, "
                "ramp:FROM..TO (batches a second) or trace:FILE, for --duration"),
    OPTION_INT(0, "in-flight", struct one_options, in_flight, "N", "10000", 1, 30000,
               "open loop: batches in flight at most; more are dropped and counted"),
    OPTION_NUMBER(0, "timeout", struct one_options, timeout_s, "S", "30", 0.001, 86400,
                  "open loop: seconds after which an answer counts as timed out"),
    OPTION_TEXT('o', "output", struct one_options, output, "FILE", NULL,
                "write the measurements to FILE instead of standard output"),
    OPTION_FLAG('a', "append", struct one_options, append,
                "keep the rows that FILE has; one of the same model, board, slice, batch, "
                "procs and task is replaced"),
    OPTION_FLAG(0, "allow-invalid", struct one_options, allow_invalid,
                "end with exit status 0 also when the measurement is INVALID"),
    BENCH_HOW_OPTIONS("3", "30", "20"),
};

/* Open loop: the row's contract columns are of one batch without queueing. */
static int measure_by_schedule(const struct one_options *given,
                               const struct measure_settings *settings,
                               const struct measure_cell *cell, struct measurement_set *set,
                               struct verdict *ret_verdict, struct error *err)
{
    CLEANUP(measure_result_done) struct measure_result result = {.how = STR_EMPTY};
    CLEANUP(open_loop_result_done) struct open_loop_result open = {0};
    CLEANUP(arrivals_done) struct arrivals arrivals = {0};
    int64_t whole_ns = settings->warmup_ns + settings->duration_ns;
    bool trace = strncmp(given->arrivals, "trace:", 6) == 0;
    int failure =
        arrivals_parse(given->arrivals, trace ? 0 : whole_ns, settings->seed, &arrivals, err);
    if (failure)
        return failure;
    struct open_loop_options how = {.arrivals = &arrivals,
                                    .warmup_ns = trace ? 0 : settings->warmup_ns,
                                    .timeout_ns = (int64_t)(given->timeout_s * 1e9),
                                    .in_flight_max = (size_t)given->in_flight};
    failure = measure_open(cell, settings, &how, &result, &open, err);
    if (failure)
        return failure;
    result_row_add_open(set, cell, settings, &result, given->arrivals, &open);
    *ret_verdict = result.verdict;
    return 0;
}

/* The words after "--", ended by NULL; NULL when there are none. */
static const char **own_command(struct arguments arguments)
{
    if (arguments.count == 0)
        return NULL;
    const char **words = xcalloc(arguments.count + 1, sizeof *words);
    memcpy(words, arguments.items, arguments.count * sizeof *words);
    return words;
}

static int refuse_invalid(struct verdict verdict, struct error *err)
{
    CLEANUP(str_done) struct str reasons = STR_EMPTY;
    if (verdict_is_valid(verdict))
        return 0;
    verdict_explain(verdict, &reasons);
    return error_set(err, E_NO, "INVALID measurement\n%s", reasons.bytes);
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct one_options *given = raw;
    CLEANUP(measurement_set_done) struct measurement_set set = {0};
    CLEANUP(bench_reference_done) struct bench_reference reference = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(free_ptr) char *name = NULL;
    struct measure_settings settings;
    struct verdict verdict = {0};
    struct measure_cell cell = {.task = *given->task == 't' ? TASK_TRAINING : TASK_INFERENCE,
                                .batch = (int)given->batch,
                                .procs = (int)given->procs,
                                .shapes = given->shapes};
    CLEANUP(free_ptr) const char **command = own_command(arguments);
    int failure = bench_settings(&given->how, &settings, &cell.board, err);
    if (!failure)
        failure = mig_profile_get(cell.board, given->slice, &cell.profile, err);
    if (!failure && !command)
        failure = bench_model(given->model, &cell.model, &name, err);
    if (!failure)
        failure = bench_read_existing(given->output, given->append, &set, err);
    if (failure)
        return failure;
    settings.command = command;
    cell.name = name ? name : given->model;
    if (given->arrivals)
        failure = measure_by_schedule(given, &settings, &cell, &set, &verdict, err);
    else
        failure = bench_measure(&given->how, &settings, &cell, &reference, &set, &verdict, err);
    if (failure)
        return failure;
    measurement_set_format(&set, &text);
    failure = output_write(given->output, &text, err);
    if (failure || given->allow_invalid)
        return failure;
    return refuse_invalid(verdict, err);
}

const struct command cmd_bench_one = {
    .name = "one",
    .summary = "one model on one slice at one batch",
    .positionals = "[-- COMMAND…]",
    .arguments_max = SIZE_MAX,
    .description =
        "Runs the model in the slice, batch after batch (closed loop), and writes one row "
        "of measurements: samples per second, the time of a batch (mean and percentiles), "
        "peak memory, and the CPU time that the slice really got.\n\n"
        "A model that runs out of memory, that cannot do this batch, or that crashes gives "
        "a row that says so in `status` and `reason`. A model that cannot be loaded at all "
        "ends with exit status 4.\n\n"
        "After `--` stands a workload of your own that speaks the protocol of "
        "docs/spec/workload-protocol.md; --model then only names it, and --batch must be what "
        "it does. adapters/ has one for PyTorch.\n\n"
        "Exit status 1 when the measurement is INVALID: too few batches, still moving, less "
        "CPU time than the slice's quota, or outputs that differ from those of a run "
        "outside any slice. The row is written all the same and says so in `verdict` and "
        "`verdict_reasons`.",
    .examples = "tranche bench one --model build/models/ppocr_cls.onnx --slice 3g --batch 4\n"
                "tranche bench one -m resnet:depth=50 -S 7g -o m.csv --append\n"
                "tranche bench one -m cnn -S 3g --arrivals poisson:100 -d 10\n"
                "tranche bench one -m resnet18 -S 3g -- python3 adapters/torch_workload.py "
                "--model resnet18\n"
                "tranche bench one -m cnn --task training -S 2g --batch 16",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct one_options),
    .run = run,
};
