/* SPDX-License-Identifier: Apache-2.0
 *
 * Running experiments with a journal. See experiment_run.h.
 *
 * The journal is JSON, one object a line: first {"schema": "tranche.journal/1",
 * "experiment": sha256 of the file}, then {"cell": index, "repetition": number, "run": …}
 * for each finished run, with "samples_bytes": where its samples end in their file. A last line
 * without its end, left by a crash, is cut off.
 */
#include "load/experiment_run.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/rng.h"
#include "load/experiment_cell.h"
#include "load/experiment_samples.h"
#include "load/result_document.h"

#define JOURNAL_SCHEMA "tranche.journal/1"

/* Outputs of a model outside any slice, made once. */
struct known_reference {
    size_t model;
    int batch, sequence;
    uint64_t seed; /* of its inputs: another one in each repetition */
    bool found;
    struct ready_event ready;
};

struct runner {
    struct experiment *experiment;
    const struct experiment_options *options;
    json_t **runs; /* [repetition × cells + cell]; NULL: not done */
    size_t total, done;
    int journal_fd, lock_fd;
    struct sample_file samples;
    VEC(struct known_reference *) references;
    int64_t start_ns;
    size_t done_before;
};

static size_t run_count(const struct experiment *experiment)
{
    return experiment->cells.count * (size_t)experiment->repetitions;
}

static int journal_error(const char *path, size_t line, const char *what, struct error *err)
{
    return error_set(err, E_INPUT, "%s:%zu:1: %s", path, line, what);
}

static int check_first_line(const struct experiment *experiment, const char *path,
                            const json_t *json, struct error *err)
{
    const char *schema = json_string_value(json_object_get(json, "schema"));
    const char *sha256 = json_string_value(json_object_get(json, "experiment"));
    if (!schema || strcmp(schema, JOURNAL_SCHEMA) != 0)
        return journal_error(path, 1, "expected a journal (\"" JOURNAL_SCHEMA "\")", err);
    if (!sha256 || strcmp(sha256, experiment->sha256) != 0)
        return journal_error(path, 1,
                             "the journal of another experiment, or of an earlier version of "
                             "this one; expected another folder (-o), or --restart",
                             err);
    return 0;
}

static int take_line(struct runner *runner, size_t line, const json_t *json, struct error *err)
{
    const struct experiment *experiment = runner->experiment;
    const json_t *cell = json_object_get(json, "cell");
    const json_t *repetition = json_object_get(json, "repetition");
    json_t *run = json_object_get(json, "run");
    if (!json_is_integer(cell) || !json_is_integer(repetition) || !json_is_object(run) ||
        json_integer_value(cell) < 0 || json_integer_value(repetition) < 0 ||
        (size_t)json_integer_value(cell) >= experiment->cells.count ||
        json_integer_value(repetition) >= experiment->repetitions)
        return journal_error(runner->options->journal, line, "expected cell, repetition, run",
                             err);
    size_t place = (size_t)json_integer_value(repetition) * experiment->cells.count +
                   (size_t)json_integer_value(cell);
    json_int_t samples_bytes = json_integer_value(json_object_get(json, "samples_bytes"));
    if (samples_bytes > runner->samples.length)
        runner->samples.length = samples_bytes;
    if (!runner->runs[place]) {
        runner->runs[place] = json_incref(run);
        runner->done++;
    }
    return 0;
}

/* Reads whole lines; *ret_length is where they end. */
static int read_journal(struct runner *runner, size_t *ret_length, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    const char *path = runner->options->journal;
    struct stat status;
    *ret_length = 0;
    if (stat(path, &status) < 0 && errno == ENOENT)
        return 0;
    int failure = file_read(path, FILE_SIZE_LIMIT, &bytes, err);
    size_t line = 0;
    for (const char *at = bytes.bytes, *end; !failure && (end = strchr(at, '\n'));
         at = end + 1) {
        CLEANUP(json_decref_ptr) json_t *json = NULL;
        line++;
        failure = json_parse(path, at, (size_t)(end - at), &json, err);
        if (failure)
            return journal_error(path, line, "not JSON, expected a line of the journal", err);
        failure = line == 1 ? check_first_line(runner->experiment, path, json, err)
                            : take_line(runner, line, json, err);
        *ret_length = (size_t)(end + 1 - bytes.bytes);
    }
    return failure;
}

static int write_line(struct runner *runner, const json_t *json, struct error *err)
{
    CLEANUP(str_done) struct str line = STR_EMPTY;
    json_write_line(json, &line);
    str_add_char(&line, '\n');
    if (file_write_all(runner->journal_fd, line.bytes, line.length) < 0)
        return error_set_errno(err, E_IO, "%s: cannot write", runner->options->journal);
    if (fsync(runner->journal_fd) < 0 && errno != EINVAL)
        return error_set_errno(err, E_IO, "%s: cannot write", runner->options->journal);
    return 0;
}

/* Opens the journal for writing behind its last whole line. */
static int open_journal(struct runner *runner, struct error *err)
{
    const char *path = runner->options->journal;
    CLEANUP(free_ptr) char *lock = xasprintf("%s.lock", path);
    size_t length;
    int failure = file_lock(lock, &runner->lock_fd, err);
    if (failure)
        return failure;
    runner->journal_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (runner->journal_fd < 0)
        return error_set_errno(err, E_IO, "%s: cannot open", path);
    failure = read_journal(runner, &length, err);
    if (failure)
        return failure;
    if (ftruncate(runner->journal_fd, (off_t)length) < 0 ||
        lseek(runner->journal_fd, 0, SEEK_END) < 0)
        return error_set_errno(err, E_IO, "%s: cannot write", path);
    if (length > 0)
        return 0;
    CLEANUP(json_decref_ptr)
    json_t *first = json_pack("{s:s, s:s, s:s}", "schema", JOURNAL_SCHEMA, "experiment",
                              runner->experiment->sha256, "name", runner->experiment->name);
    return write_line(runner, first, err);
}

/* The reference of the cell's outputs, made when it is not known yet. */
static int find_reference(struct runner *runner, const struct experiment_cell *cell,
                          const struct group_instance *instance,
                          const struct ready_event **ret_reference, struct error *err)
{
    struct known_reference *reference = NULL;
    *ret_reference = NULL;
    if (!runner->options->check_outputs || cell->task != TASK_INFERENCE ||
        instance->settings.command)
        return 0;
    for (size_t i = 0; i < runner->references.count && !reference; i++) {
        struct known_reference *known = runner->references.data[i];
        if (known->model == cell->model && known->batch == cell->batch &&
            known->sequence == cell->sequence && known->seed == instance->settings.seed)
            reference = known;
    }
    if (!reference) {
        reference = xcalloc(1, sizeof *reference);
        vec_add(&runner->references, reference);
        reference->model = cell->model;
        reference->batch = cell->batch;
        reference->sequence = cell->sequence;
        reference->seed = instance->settings.seed;
        struct measure_settings settings = instance->settings;
        settings.stop = runner->options->stop;
        settings.companion = NULL;
        int failure = measure_reference(&instance->cell, &settings, &reference->ready,
                                        &reference->found, err);
        if (failure)
            return failure;
    }
    *ret_reference = reference->found ? &reference->ready : NULL;
    return 0;
}

static int run_cell(struct runner *runner, const struct experiment_cell *cell, json_t **ret_run,
                    struct error *err)
{
    CLEANUP(free_ptr) struct cell_instances *instances = xcalloc(1, sizeof *instances);
    const struct ready_event *reference = NULL;
    cell_instances_make(runner->experiment, cell, instances);
    if (*instances->impossible) {
        *ret_run = result_run_new((struct verdict){0}, "unsupported", instances->impossible);
        return 0;
    }
    for (size_t i = 0; i < instances->count; i++)
        instances->list[i].settings.ort_library = runner->options->ort_library;
    for (size_t i = 0; i < instances->count && runner->options->samples; i++)
        instances->list[i].samples_max = runner->options->samples_max;
    int failure = find_reference(runner, cell, &instances->list[0], &reference, err);
    if (failure)
        return failure;
    for (size_t i = 0; i < instances->count; i++)
        if (!instances->list[i].background)
            instances->list[i].settings.reference = reference;
    return group_run(instances->list, instances->count, runner->options->stop, ret_run, err);
}

static void tell(const struct runner *runner, const struct experiment_cell *cell)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *key = experiment_cell_key(runner->experiment, cell);
    const struct experiment_options *options = runner->options;
    size_t measured = runner->done - runner->done_before;
    double left_s = experiment_estimate_s(runner->experiment) / (double)runner->total;
    if (!options->progress)
        return;
    if (measured > 0)
        left_s =
            (double)(clock_now_ns(clock_real()) - runner->start_ns) / 1e9 / (double)measured;
    result_key_text(key, &text);
    options->progress(options->context, text.bytes, runner->done, runner->total,
                      left_s * (double)(runner->total - runner->done));
}

static int run_one(struct runner *runner, int repetition, size_t index, struct error *err)
{
    struct experiment *experiment = runner->experiment;
    const struct experiment_cell *cell = &experiment->cells.data[index];
    size_t place = (size_t)repetition * experiment->cells.count + index;
    json_t *run = NULL;
    if (runner->runs[place])
        return 0;
    tell(runner, cell);
    uint64_t seed = experiment->settings.seed;
    experiment->settings.seed = seed + (uint64_t)repetition;
    int failure = run_cell(runner, cell, &run, err);
    experiment->settings.seed = seed;
    if (failure)
        return failure;
    runner->runs[place] = run;
    failure = sample_file_move(&runner->samples, run, index, repetition, err);
    if (failure)
        return failure;
    runner->done++;
    CLEANUP(json_decref_ptr)
    json_t *line =
        json_pack("{s:I, s:i, s:I, s:O}", "cell", (json_int_t)index, "repetition", repetition,
                  "samples_bytes", (json_int_t)runner->samples.length, "run", run);
    return write_line(runner, line, err);
}

static void shuffle(size_t *order, size_t count, struct rng *rng)
{
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)rng_below(rng, i), moved = order[i - 1];
        order[i - 1] = order[other];
        order[other] = moved;
    }
}

static int run_all(struct runner *runner, struct error *err)
{
    struct experiment *experiment = runner->experiment;
    size_t count = experiment->cells.count;
    CLEANUP(free_ptr) size_t *order = xcalloc(count, sizeof *order);
    int failure = 0;
    runner->start_ns = clock_now_ns(clock_real());
    runner->done_before = runner->done;
    for (int repetition = 0; repetition < experiment->repetitions && !failure; repetition++) {
        struct rng rng = rng_seed_stream(experiment->settings.seed, (uint64_t)repetition);
        shuffle(order, count, &rng);
        for (size_t i = 0; i < count && !failure; i++) {
            if (runner->options->stop && *runner->options->stop)
                failure = error_set(err, E_INTERRUPTED, "interrupted");
            else
                failure = run_one(runner, repetition, order[i], err);
        }
    }
    return failure;
}

static void fill_document(struct runner *runner, json_t *document)
{
    const struct experiment *experiment = runner->experiment;
    size_t count = experiment->cells.count;
    struct result_index index;
    result_index_init(&index, document);
    for (size_t cell = 0; cell < count; cell++)
        for (int repetition = 0; repetition < experiment->repetitions; repetition++) {
            json_t *run = runner->runs[(size_t)repetition * count + cell];
            if (run)
                result_index_add(&index, document,
                                 experiment_cell_key(experiment, &experiment->cells.data[cell]),
                                 json_incref(run));
        }
    result_index_done(&index);
    result_document_finish(document);
}

static void runner_done(struct runner *runner)
{
    for (size_t i = 0; i < runner->total; i++)
        json_decref(runner->runs[i]);
    for (size_t i = 0; i < runner->references.count; i++)
        free(runner->references.data[i]);
    vec_done(&runner->references);
    close_fd(&runner->journal_fd);
    close_fd(&runner->lock_fd);
    sample_file_close(&runner->samples);
    free(runner->runs);
}

static struct runner new_runner(struct experiment *experiment,
                                const struct experiment_options *options)
{
    size_t total = run_count(experiment);
    assert(total > 0);
    return (struct runner){.experiment = experiment,
                           .options = options,
                           .runs = xcalloc(total, sizeof(json_t *)),
                           .total = total,
                           .journal_fd = -1,
                           .lock_fd = -1,
                           .samples = {.fd = -1}};
}

int experiment_run(struct experiment *experiment, const struct experiment_options *options,
                   json_t *document, struct error *err)
{
    CLEANUP(runner_done) struct runner runner = new_runner(experiment, options);
    int failure = open_journal(&runner, err);
    if (!failure && options->samples)
        failure =
            sample_file_open(&runner.samples, options->samples, runner.samples.length, err);
    if (failure)
        return failure;
    failure = run_all(&runner, err);
    fill_document(&runner, document);
    return failure;
}

int experiment_finished(const struct experiment *experiment, const char *journal,
                        size_t *ret_finished, struct error *err)
{
    struct experiment_options options = {.journal = journal};
    CLEANUP(runner_done)
    struct runner runner = new_runner((struct experiment *)experiment, &options);
    size_t length;
    int failure = read_journal(&runner, &length, err);
    *ret_finished = runner.done;
    return failure;
}
