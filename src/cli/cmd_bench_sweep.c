/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench sweep`: models × slices × batches × process counts, as measurements.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/vec.h"
#include "cli/bench_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "load/result_row.h"

enum { PROCS_MAX = 32, BATCH_MAX = 1 << 20, NUMBERS_MAX = 64 };

struct sweep_options {
    struct bench_how how;
    struct option_list models;
    struct option_list shapes;
    const char *slices;
    const char *batches;
    const char *procs;
    const char *task;
    const char *output;
    bool append;
    bool allow_invalid;
    bool served;
};

static const struct option_spec options[] = {
    OPTION_LIST_REQUIRED('m', "model", struct sweep_options, models, "[NAME=]MODEL",
                         "an ONNX file or a built-in model; may be repeated"),
    OPTION_TEXT('S', "slices", struct sweep_options, slices, "LIST", NULL,
                "slice profiles, such as 1g,2g,3g (default: the board's plain ones)"),
    OPTION_TEXT('b', "batches", struct sweep_options, batches, "LIST", "1",
                "batch sizes, such as 1,4"),
    OPTION_TEXT('p', "procs", struct sweep_options, procs, "LIST", "1",
                "process counts, such as 1,2"),
    OPTION_CHOICE(0, "task", struct sweep_options, task, "inference|training", "inference",
                  "what to measure"),
    OPTION_LIST(0, "shape", struct sweep_options, shapes, "NAME/INPUT=SIZES,…",
                "sizes of inputs that model NAME leaves open; may be repeated"),
    OPTION_TEXT('o', "output", struct sweep_options, output, "FILE", NULL,
                "write the measurements to FILE instead of standard output"),
    OPTION_FLAG('a', "append", struct sweep_options, append,
                "keep the rows that FILE has; those measured again are replaced"),
    OPTION_FLAG(0, "allow-invalid", struct sweep_options, allow_invalid,
                "end with exit status 0 also when a measurement is INVALID"),
    OPTION_FLAG(0, "served", struct sweep_options, served,
                "measure through the model server, as `tranche up` serves: rows hold what HTTP "
                "and batching cost"),
    BENCH_HOW_OPTIONS("1.2", "3", "4"),
};

struct sweep_model {
    const char *model; /* borrowed */
    char *name;
    const char *shapes; /* borrowed; NULL: guessed */
};

struct sweep {
    const struct sweep_options *given;
    struct measure_settings settings;
    const struct mig_board *board;
    VEC(struct sweep_model) models;
    VEC(int) profiles;
    VEC(int) batches;
    VEC(int) procs;
    struct measurement_set set;
    struct progress progress;
    struct bench_reference reference;
    struct str invalid; /* cells and reasons, one a line */
    size_t done, total, invalid_count;
};

static void sweep_done(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->models.count; i++)
        free(sweep->models.data[i].name);
    vec_done(&sweep->models);
    vec_done(&sweep->profiles);
    vec_done(&sweep->batches);
    vec_done(&sweep->procs);
    measurement_set_done(&sweep->set);
    bench_reference_done(&sweep->reference);
    str_done(&sweep->invalid);
}

static int read_models(struct sweep *sweep, struct error *err)
{
    const struct option_list *texts = &sweep->given->models;
    for (size_t i = 0; i < texts->count; i++) {
        struct sweep_model model = {0};
        int failure = bench_model(texts->items[i], &model.model, &model.name, err);
        if (failure)
            return failure;
        for (size_t k = 0; k < sweep->models.count; k++)
            if (strcmp(sweep->models.data[k].name, model.name) == 0)
                failure = error_set(err, E_USAGE,
                                    "two models named %s: give one another name "
                                    "with NAME=MODEL",
                                    model.name);
        vec_add(&sweep->models, model);
        if (failure)
            return failure;
    }
    return 0;
}

/* Each "NAME/INPUT=SIZES,…" goes to the model of that name. */
static int read_shapes(struct sweep *sweep, struct error *err)
{
    const struct option_list *texts = &sweep->given->shapes;
    for (size_t i = 0; i < texts->count; i++) {
        const char *text = texts->items[i], *slash = strchr(text, '/');
        bool found = false;
        for (size_t k = 0; slash && k < sweep->models.count; k++) {
            struct sweep_model *model = &sweep->models.data[k];
            if (strlen(model->name) != (size_t)(slash - text) ||
                strncmp(model->name, text, (size_t)(slash - text)) != 0)
                continue;
            model->shapes = slash + 1;
            found = true;
        }
        if (!found)
            return error_set(
                err, E_USAGE,
                "--shape \"%s\": expected NAME/INPUT=SIZES with the name of a model", text);
    }
    return 0;
}

static int read_profiles(struct sweep *sweep, struct error *err)
{
    const char *at = sweep->given->slices;
    for (int i = 0; !at && i < sweep->board->profile_count; i++)
        if (sweep->board->profiles[i].group == MIG_GROUP_BASE)
            vec_add(&sweep->profiles, i);
    while (at && *at) {
        CLEANUP(free_ptr) char *name = xstrndup(at, strcspn(at, ","));
        int profile;
        int failure = mig_profile_get(sweep->board, name, &profile, err);
        if (failure)
            return failure;
        vec_add(&sweep->profiles, profile);
        at += strlen(name);
        at += *at == ',';
    }
    return sweep->profiles.count ? 0 : error_set(err, E_USAGE, "--slices names no slice");
}

/* "1,4,16" into numbers; returns how many, or a negative error code. */
static int read_numbers(const char *option, const char *text, int maximum, int *ret_numbers,
                        struct error *err)
{
    int count = 0;
    while (*text) {
        long long number;
        CLEANUP(free_ptr) char *item = xstrndup(text, strcspn(text, ","));
        if (!text_to_int(item, 1, maximum, &number) || count == NUMBERS_MAX)
            return error_set(err, E_USAGE,
                             "%s \"%s\": expected whole numbers from 1 to %d, such "
                             "as 1,4 (at most %d)",
                             option, text, maximum, NUMBERS_MAX);
        ret_numbers[count++] = (int)number;
        text += strlen(item);
        text += *text == ',';
    }
    return count ? count : error_set(err, E_USAGE, "%s is empty", option);
}

static int read_all(struct sweep *sweep, struct error *err)
{
    const struct sweep_options *given = sweep->given;
    int batches[NUMBERS_MAX] = {0}, procs[NUMBERS_MAX] = {0};
    int failure = bench_settings(&given->how, &sweep->settings, &sweep->board, err);
    sweep->settings.served = given->served;
    if (!failure)
        failure = read_models(sweep, err);
    if (!failure)
        failure = read_shapes(sweep, err);
    if (!failure)
        failure = read_profiles(sweep, err);
    if (failure)
        return failure;
    int batch_count = read_numbers("--batches", given->batches, BATCH_MAX, batches, err);
    if (batch_count < 0)
        return batch_count;
    int procs_count = read_numbers("--procs", given->procs, PROCS_MAX, procs, err);
    if (procs_count < 0)
        return procs_count;
    for (int i = 0; i < batch_count; i++)
        vec_add(&sweep->batches, batches[i]);
    for (int i = 0; i < procs_count; i++)
        vec_add(&sweep->procs, procs[i]);
    sweep->total =
        sweep->models.count * sweep->profiles.count * sweep->batches.count * sweep->procs.count;
    return bench_read_existing(given->output, given->append, &sweep->set, err);
}

static void note_invalid(struct sweep *sweep, const struct measure_cell *cell,
                         struct verdict verdict)
{
    if (verdict_is_valid(verdict))
        return;
    sweep->invalid_count++;
    str_addf(&sweep->invalid, "\n  %s on %s, batch %d, procs %d: ", cell->name,
             cell->board->profiles[cell->profile].name, cell->batch, cell->procs);
    verdict_words(verdict, ", ", &sweep->invalid);
}

static int measure_cell(struct sweep *sweep, const struct measure_cell *cell, struct error *err)
{
    struct verdict verdict = {0};
    progress_show(&sweep->progress, "%zu/%zu: %s on %s, batch %d, %d process%s",
                  sweep->done + 1, sweep->total, cell->name,
                  cell->board->profiles[cell->profile].name, cell->batch, cell->procs,
                  cell->procs == 1 ? "" : "es");
    int failure = bench_measure(&sweep->given->how, &sweep->settings, cell, &sweep->reference,
                                &sweep->set, &verdict, err);
    if (failure)
        return failure;
    note_invalid(sweep, cell, verdict);
    sweep->done++;
    return 0;
}

/* Slices in the innermost loop: a board's row of slices is measured close in time. */
static int measure_all(struct sweep *sweep, struct error *err)
{
    int failure = 0;
    for (size_t i = 0; i < sweep->total && !failure; i++) {
        size_t rest = i;
        struct measure_cell cell = {.board = sweep->board,
                                    .task = *sweep->given->task == 't' ? TASK_TRAINING
                                                                       : TASK_INFERENCE};
        cell.profile = sweep->profiles.data[rest % sweep->profiles.count];
        rest /= sweep->profiles.count;
        cell.procs = sweep->procs.data[rest % sweep->procs.count];
        rest /= sweep->procs.count;
        cell.batch = sweep->batches.data[rest % sweep->batches.count];
        const struct sweep_model *model = &sweep->models.data[rest / sweep->batches.count];
        cell.name = model->name;
        cell.model = model->model;
        cell.shapes = model->shapes;
        failure = measure_cell(sweep, &cell, err);
    }
    progress_done(&sweep->progress);
    return failure;
}

/* Rows carry their verdicts; people are told which to look at. */
static int report_invalid(const struct sweep *sweep, struct error *err)
{
    if (sweep->invalid_count == 0)
        return 0;
    if (!sweep->given->allow_invalid)
        return error_set(err, E_NO, "%zu of %zu measurements are INVALID:%s",
                         sweep->invalid_count, sweep->total, sweep->invalid.bytes);
    fprintf(stderr, "%zu of %zu measurements are INVALID:%s\n", sweep->invalid_count,
            sweep->total, sweep->invalid.bytes);
    return 0;
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    CLEANUP(sweep_done) struct sweep sweep = {.given = raw, .invalid = STR_EMPTY};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    (void)arguments;
    int failure = read_all(&sweep, err);
    if (failure)
        return failure;
    failure = measure_all(&sweep, err);
    if (failure && (failure != -E_INTERRUPTED || sweep.done == 0))
        return failure;
    /* Ctrl-C keeps what was measured. */
    measurement_set_format(&sweep.set, &text);
    int written = output_write(sweep.given->output, &text, err);
    if (written || failure)
        return written ? written : failure;
    return report_invalid(&sweep, err);
}

const struct command cmd_bench_sweep = {
    .name = "sweep",
    .summary = "models on every slice at every batch",
    .description =
        "Measures each model on each slice at each batch size and process count, one after "
        "the other, and writes the rows that `tranche plan` reads. Cells that run out of "
        "memory or cannot be done are rows that say so; a model that cannot be loaded at "
        "all ends the sweep with exit status 4. Ctrl-C writes what was measured. INVALID "
        "measurements are rows too, with the reasons in `verdict_reasons`.",
    .examples =
        "tranche bench sweep -m build/models/ppocr_cls.onnx -m build/models/ppocr_det.onnx "
        "-S 1g,2g,3g,4g,7g -b 1,4 -o m.csv\n"
        "tranche bench sweep -m resnet -m bert -B a30-24gb -o m.csv",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct sweep_options),
    .run = run,
};
