/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench one`: one model on one slice at one batch and process count.
 */
#include "base/cleanup.h"
#include "cli/bench_options.h"
#include "cli/output.h"
#include "load/result_row.h"

struct one_options {
    struct bench_how how;
    const char *model;
    const char *slice;
    const char *task;
    const char *shapes;
    long long batch, procs;
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
    OPTION_TEXT('o', "output", struct one_options, output, "FILE", NULL,
                "write the measurements to FILE instead of standard output"),
    OPTION_FLAG('a', "append", struct one_options, append,
                "keep the rows that FILE has; one of the same model, board, slice, batch, "
                "procs and task is replaced"),
    OPTION_FLAG(0, "allow-invalid", struct one_options, allow_invalid,
                "end with exit status 0 also when the measurement is INVALID"),
    BENCH_HOW_OPTIONS("3", "30", "20"),
};

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
    (void)arguments;
    int failure = bench_settings(&given->how, &settings, &cell.board, err);
    if (!failure)
        failure = mig_profile_get(cell.board, given->slice, &cell.profile, err);
    if (!failure)
        failure = bench_model(given->model, &cell.model, &name, err);
    if (!failure)
        failure = bench_read_existing(given->output, given->append, &set, err);
    if (failure)
        return failure;
    cell.name = name;
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
    .description =
        "Runs the model in the slice, batch after batch (closed loop), and writes one row "
        "of measurements: samples per second, the time of a batch (mean and percentiles), "
        "peak memory, and the CPU time that the slice really got.\n\n"
        "A model that runs out of memory, that cannot do this batch, or that crashes gives "
        "a row that says so in `status` and `reason`. A model that cannot be loaded at all "
        "ends with exit status 4.\n\n"
        "Exit status 1 when the measurement is INVALID: too few batches, still moving, less "
        "CPU time than the slice's quota, or outputs that differ from those of a run "
        "outside any slice. The row is written all the same and says so in `verdict` and "
        "`verdict_reasons`.",
    .examples = "tranche bench one --model build/models/ppocr_cls.onnx --slice 3g --batch 4\n"
                "tranche bench one -m resnet:depth=50 -S 7g -o m.csv --append\n"
                "tranche bench one -m cnn --task training -S 2g --batch 16",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct one_options),
    .run = run,
};
