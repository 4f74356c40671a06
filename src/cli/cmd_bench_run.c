/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench run`: a whole experiment from one YAML file.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/bench_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "load/experiment_run.h"
#include "load/result_document.h"
#include "load/result_export.h"

struct run_options {
    const char *output, *ort_library;
    long long samples;
    bool dry_run, restart, no_output_check, json;
};

static const struct option_spec options[] = {
    OPTION_TEXT('o', "output", struct run_options, output, "FOLDER", NULL,
                "where results go (default: the experiment's name with .results)"),
    OPTION_FLAG('n', "dry-run", struct run_options, dry_run,
                "say what would be measured and how long it takes"),
    OPTION_FLAG(0, "restart", struct run_options, restart,
                "measure everything anew, even what the folder already has"),
    OPTION_INT(0, "samples", struct run_options, samples, "N", "1000", 0, 500000,
               "single steps or requests of each run in samples.jsonl, evenly chosen; 0: none"),
    OPTION_FLAG(0, "no-output-check", struct run_options, no_output_check,
                "do not compare outputs with those of a run outside any slice"),
    OPTION_FLAG(0, "json", struct run_options, json,
                "print the result document instead of a table"),
    OPTION_TEXT(0, "ort-library", struct run_options, ort_library, "FILE", NULL,
                "the ONNX Runtime library"),
};

struct session {
    const struct run_options *given;
    struct experiment experiment;
    char *folder;
    struct progress progress;
    json_t *document;
};

static void session_done(struct session *session)
{
    experiment_done(&session->experiment);
    free(session->folder);
    json_decref(session->document);
}

static void show(void *context, const char *cell, size_t done, size_t total, double left_s)
{
    struct session *session = context;
    progress_show(&session->progress, "%zu/%zu, %.0f s left: %s", done + 1, total, left_s,
                  cell);
}

static double mean_of(const json_t *cell, const char *figure)
{
    return json_number_value(
        json_object_get(json_object_get(json_object_get(cell, "summary"), figure), "mean"));
}

static void add_interval(struct table *table, const json_t *cell, const char *figure)
{
    const json_t *summary = json_object_get(json_object_get(cell, "summary"), figure);
    const json_t *high = json_object_get(summary, "high");
    double mean = json_number_value(json_object_get(summary, "mean"));
    if (!summary)
        table_add(table, "");
    else if (high)
        table_addf(table, "%.4g ± %.2g", mean, json_number_value(high) - mean);
    else
        table_addf(table, "%.4g", mean);
}

/* "VALID", "2 of 3 VALID", "oom", "INVALID: unsteady" */
static void add_verdict(struct table *table, const json_t *cell)
{
    const json_t *runs = json_object_get(cell, "runs"), *run, *bad = NULL;
    size_t index, valid = 0, count = json_array_size(runs);
    json_array_foreach(runs, index, run)
    {
        const char *verdict = json_string_value(json_object_get(run, "verdict"));
        bool is_valid = verdict && *verdict == 'V';
        valid += is_valid;
        if (!is_valid && !bad)
            bad = run;
    }
    const char *status = json_string_value(json_object_get(bad, "status"));
    const char *reason =
        json_string_value(json_array_get(json_object_get(bad, "verdict_reasons"), 0));
    if (!bad)
        table_add(table, "VALID");
    else
        table_addf(table, "%zu of %zu VALID: %s", valid, count,
                   reason ? reason : (status ? status : ""));
}

static void add_text(const json_t *document, struct str *text)
{
    static const struct table_column columns[] = {
        {"cell", TABLE_ALIGN_LEFT},         {"samples/s", TABLE_ALIGN_RIGHT},
        {"mean, ms", TABLE_ALIGN_RIGHT},    {"p99, ms", TABLE_ALIGN_RIGHT},
        {"memory, MiB", TABLE_ALIGN_RIGHT}, {"verdict", TABLE_ALIGN_LEFT},
    };
    CLEANUP(table_free_ptr)
    struct table *table = table_new(columns, sizeof columns / sizeof *columns);
    size_t index;
    const json_t *cell;
    json_array_foreach(json_object_get(document, "cells"), index, cell)
    {
        CLEANUP(str_done) struct str key = STR_EMPTY;
        result_key_text(json_object_get(cell, "key"), &key);
        table_add(table, key.bytes);
        add_interval(table, cell, "throughput_rps");
        add_interval(table, cell, "latency_ms_mean");
        add_interval(table, cell, "latency_ms_p99");
        table_addf(table, "%.0f", mean_of(cell, "memory_mib"));
        add_verdict(table, cell);
    }
    table_write(table, text);
}

static int write_one(const struct session *session, const char *name, const struct str *text,
                     struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", session->folder, name);
    return file_write(path, text->bytes, text->length, err);
}

static int write_measurements(const struct session *session, struct error *err)
{
    CLEANUP(measurement_set_done) struct measurement_set set = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    int failure = result_export_measurements(session->document, &set, err);
    if (failure)
        return failure;
    measurement_set_format(&set, &text);
    return write_one(session, "measurements.csv", &text, err);
}

static int write_results(const struct session *session, struct error *err)
{
    static const struct {
        const char *name;
        void (*write)(const json_t *document, struct str *text);
    } files[] = {{"migperf.csv", result_export_migperf},
                 {"summary.txt", result_export_mlperf},
                 {"metrics.prom", result_export_prometheus},
                 {"runs.jsonl", result_export_lines},
                 {"result.json", json_write_pretty}};
    int failure = write_measurements(session, err);
    for (size_t i = 0; i < sizeof files / sizeof *files && !failure; i++) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        files[i].write(session->document, &text);
        failure = write_one(session, files[i].name, &text, err);
    }
    return failure;
}

static int print(const struct session *session, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (session->given->json)
        json_write_pretty(session->document, &text);
    else
        add_text(session->document, &text);
    return output_write(NULL, &text, err);
}

static int plan_only(const struct session *session, size_t finished, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    const struct experiment *experiment = &session->experiment;
    for (size_t i = 0; i < experiment->cells.count; i++) {
        CLEANUP(json_decref_ptr)
        json_t *key = experiment_cell_key(experiment, &experiment->cells.data[i]);
        CLEANUP(str_done) struct str line = STR_EMPTY;
        result_key_text(key, &line);
        str_addf(&text, "%s\n", line.bytes);
    }
    size_t total = experiment->cells.count * (size_t)experiment->repetitions;
    double estimate_s = experiment_estimate_s(experiment);
    str_addf(&text, "%zu cells, %d repetitions, %zu of %zu runs done, about %.0f s to go\n",
             experiment->cells.count, experiment->repetitions, finished, total,
             estimate_s * (double)(total - finished) / (double)total);
    return output_write(NULL, &text, err);
}

static json_t *new_document(const struct session *session)
{
    const struct experiment *experiment = &session->experiment;
    json_t *document =
        result_document_new("experiment", TRANCHE_VERSION, experiment->settings.seed);
    json_object_set_new(document, "experiment",
                        json_pack("{s:s, s:s, s:s, s:i}", "name", experiment->name, "question",
                                  experiment->question, "sha256", experiment->sha256,
                                  "repetitions", experiment->repetitions));
    return document;
}

static int measure(struct session *session, const char *journal, size_t finished,
                   struct error *err)
{
    const struct experiment *experiment = &session->experiment;
    size_t total = experiment->cells.count * (size_t)experiment->repetitions;
    CLEANUP(free_ptr) char *samples = xasprintf("%s/samples.jsonl", session->folder);
    struct experiment_options how = {.journal = journal,
                                     .ort_library = session->given->ort_library,
                                     .samples = session->given->samples ? samples : NULL,
                                     .samples_max = (size_t)session->given->samples,
                                     .check_outputs = !session->given->no_output_check,
                                     .stop = bench_interrupts(),
                                     .progress = show,
                                     .context = session};
    log_write(LOG_INFO, "experiment begins", "runs=%zu done=%zu estimate_s=%.0f", total,
              finished,
              experiment_estimate_s(experiment) * (double)(total - finished) / (double)total);
    session->document = new_document(session);
    int failure = experiment_run(&session->experiment, &how, session->document, err);
    progress_done(&session->progress);
    return failure;
}

static bool any_valid(const json_t *document)
{
    size_t index;
    const json_t *cell;
    json_array_foreach(json_object_get(document, "cells"), index, cell)
    {
        const char *verdict = json_string_value(json_object_get(cell, "verdict"));
        if (verdict && *verdict == 'V')
            return true;
    }
    return false;
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct run_options *given = raw;
    CLEANUP(session_done) struct session session = {.given = given};
    size_t finished = 0;
    int failure = experiment_read(arguments.items[0], &session.experiment, err);
    if (failure)
        return failure;
    session.folder = given->output ? xstrdup(given->output)
                                   : xasprintf("%s.results", session.experiment.name);
    CLEANUP(free_ptr) char *journal = xasprintf("%s/journal.jsonl", session.folder);
    if (given->restart && !given->dry_run)
        unlink(journal);
    failure = experiment_finished(&session.experiment, journal, &finished, err);
    if (failure || given->dry_run)
        return failure ? failure : plan_only(&session, finished, err);
    failure = file_make_dirs(session.folder, 0755, err);
    if (!failure)
        failure = measure(&session, journal, finished, err);
    if (failure && failure != -E_INTERRUPTED)
        return failure;
    int written = write_results(&session, err);
    if (!written && !failure)
        written = print(&session, err);
    if (written || failure)
        return written ? written : failure;
    return any_valid(session.document) ? 0
                                       : error_set(err, E_NO, "no run of any cell is VALID");
}

const struct command cmd_bench_run = {
    .name = "run",
    .summary = "a whole experiment from one YAML file",
    .positionals = "EXPERIMENT.yaml",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "Measures the product of the file's models, slices, batches, sequence lengths, "
        "process counts, loads, tasks and sharing modes (docs/spec/experiments.md), each "
        "repetition in random order, and writes into the folder: result.json (everything, "
        "tranche.result/1), measurements.csv for `tranche plan`, migperf.csv, summary.txt in "
        "MLPerf's form, metrics.prom, runs.jsonl, samples.jsonl.\n\n"
        "Every finished run is in journal.jsonl before the next begins; run again after an "
        "interruption, only what is missing is measured. Exit status 1 when no run is VALID.",
    .examples = "tranche bench run experiments/inference-batch.yaml --dry-run\n"
                "tranche bench run experiments/inference-batch.yaml -o results",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct run_options),
    .run = run,
};
