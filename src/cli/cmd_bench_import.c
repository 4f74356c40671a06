/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench import`: other tools' results as measurements.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/bench_options.h"
#include "cli/output.h"
#include "load/import.h"

struct import_command_options {
    const char *format, *model, *board, *slice, *device, *task, *output;
    long long batch, procs;
};

static const struct option_spec options[] = {
    OPTION_CHOICE('f', "format", struct import_command_options, format,
                  "migperf|model-analyzer|perf-analyzer|mlperf|aiperf|parvagpu", NULL,
                  "what the files are (default: found out for each file)"),
    OPTION_TEXT('m', "model", struct import_command_options, model, "MODEL", NULL,
                "the model, where a file names none; {file} stands for the file's name"),
    OPTION_TEXT('B', "board", struct import_command_options, board, "BOARD", NULL,
                "the GPU model, where a file names none"),
    OPTION_TEXT('S', "slice", struct import_command_options, slice, "SLICE", NULL,
                "the slice profile, where a file names none"),
    OPTION_INT('b', "batch", struct import_command_options, batch, "N", "0", 0, 1 << 20,
               "samples of one batch, where a file does not say (0: the tool's own default)"),
    OPTION_INT('p', "procs", struct import_command_options, procs, "N", "0", 0, 1 << 10,
               "processes, where a file does not say (0: one)"),
    OPTION_CHOICE(0, "task", struct import_command_options, task, "inference|training",
                  "inference", "what was measured"),
    OPTION_TEXT(0, "device", struct import_command_options, device, "DEVICE", NULL,
                "cuda, cpu-slice, …, where the format does not imply it"),
    OPTION_TEXT('o', "output", struct import_command_options, output, "FILE", NULL,
                "write the measurements to FILE instead of standard output"),
};

static void tell(const struct import_counts *counts)
{
    if (counts->recomputed)
        log_write(LOG_INFO, "throughput computed anew from latency and batch", "rows=%zu",
                  counts->recomputed);
    if (counts->superseded)
        log_write(LOG_WARN, "rows of the same key: the last counts", "replaced=%zu",
                  counts->superseded);
    if (counts->other_loads)
        log_write(LOG_WARN, "rows with more requests in flight than processes left out",
                  "rows=%zu", counts->other_loads);
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct import_command_options *given = raw;
    struct import_defaults defaults = {.format = given->format,
                                       .model = given->model,
                                       .board = given->board,
                                       .slice = given->slice,
                                       .device = given->device,
                                       .batch = (int)given->batch,
                                       .procs = (int)given->procs,
                                       .task = *given->task == 't' ? TASK_TRAINING
                                                                   : TASK_INFERENCE};
    CLEANUP(import_free_ptr) struct import *import = NULL;
    CLEANUP(measurement_set_done) struct measurement_set set = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct import_counts counts;
    int failure = import_new(&defaults, &import, err);
    for (size_t i = 0; !failure && i < arguments.count; i++)
        failure = import_file(import, arguments.items[i], err);
    if (failure)
        return failure;
    import_finish(import, &set, &counts);
    measurement_set_format(&set, &text);
    failure = output_write(given->output, &text, err);
    if (!failure)
        tell(&counts);
    return failure;
}

const struct command cmd_bench_import = {
    .name = "import",
    .summary = "other tools' results as measurements",
    .positionals = "FILE…",
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .description =
        "Reads results of MIGPerf (CSV), Triton Model Analyzer (CSV), perf_analyzer (CSV), "
        "MLPerf LoadGen (summary), AIPerf (JSON) and ParvaGPU (prof_data) and writes "
        "measurements that `tranche plan` reads. An option fills a column that a file lacks; "
        "what is still missing ends with exit status 3, naming the column.\n\n"
        "MIGPerf's throughput is computed anew where it lost the batch size; ParvaGPU's, of "
        "one process, becomes that of the instance; rows of zeros become status oom. A model "
        "measured at several sequence lengths becomes as many models (bert-base-seq128).",
    .examples = "tranche bench import --board a100-80gb integrated_result.csv -o m.csv\n"
                "tranche bench import --model '{file}' --board a100-80gb prof_data/*.csv -o "
                "m.csv\n"
                "tranche bench import -m bert -B a30-24gb -S 1g mlperf_log_summary.txt",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct import_command_options),
    .run = run,
};
