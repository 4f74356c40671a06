/* SPDX-License-Identifier: Apache-2.0
 *
 * From rows of other tools to measurements: formats, flags, keys. See import.h.
 */
#include "load/import.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/option.h"
#include "load/import_format.h"

static const struct import_format *const formats[] = {
    &import_migperf, &import_model_analyzer, &import_perf_analyzer,
    &import_mlperf,  &import_aiperf,         &import_parvagpu,
};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

struct import {
    const struct import_defaults *defaults;
    const struct mig_board *board; /* NULL: not given */
    struct arena arena;
    struct import_rows rows;
};

struct import_row *import_rows_add(struct import_rows *rows, const char *name, unsigned line)
{
    struct import_row *row = vec_push(&rows->list);
    for (int i = 0; i < IMPORT_NUMBER_COUNT; i++)
        row->numbers[i] = NAN;
    row->reason = row->device = "";
    row->name = arena_strdup(rows->arena, name);
    row->line = line;
    return row;
}

int import_error(const struct import_row *row, struct error *err, const char *format, ...)
{
    char text[ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(err, E_INPUT, "%s:%u:1: %s", row->name, row->line, text);
}

int import_new(const struct import_defaults *defaults, struct import **ret_import,
               struct error *err)
{
    CLEANUP(import_free_ptr) struct import *import = xcalloc(1, sizeof *import);
    int profile, failure = 0;
    import->defaults = defaults;
    import->rows.arena = &import->arena;
    if (defaults->board)
        failure = mig_board_get(defaults->board, &import->board, err);
    if (!failure && import->board && defaults->slice)
        failure = mig_profile_get(import->board, defaults->slice, &profile, err);
    if (failure)
        return failure;
    *ret_import = STEAL(import);
    return 0;
}

void import_free(struct import *import)
{
    if (!import)
        return;
    for (size_t i = 0; i < import->rows.list.count; i++)
        vec_done(&import->rows.list.data[i].extras);
    vec_done(&import->rows.list);
    arena_done(&import->arena);
    free(import);
}

static int find_format(const struct import_defaults *defaults, const struct import_input *input,
                       const struct import_format **ret_format, struct error *err)
{
    CLEANUP(str_done) struct str known = STR_EMPTY;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (defaults->format ? strcmp(defaults->format, formats[i]->name) == 0
                             : formats[i]->matches(input)) {
            *ret_format = formats[i];
            return 0;
        }
        str_addf(&known, "\n  %s: %s", formats[i]->name, formats[i]->what);
    }
    return error_set(err, E_INPUT, "%s:1:1: a file of no known format, expected one of%s",
                     input->name, known.bytes);
}

/* "a/bert.csv" → "bert" */
static char *stem_of(struct arena *arena, const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *file = slash ? slash + 1 : name, *dot = strrchr(file, '.');
    return arena_strndup(arena, file, dot && dot > file ? (size_t)(dot - file) : strlen(file));
}

static const char *default_model(struct import *import, const char *name)
{
    const char *model = import->defaults->model, *mark = model ? strstr(model, "{file}") : NULL;
    if (!mark)
        return model;
    return arena_printf(&import->arena, "%.*s%s%s", (int)(mark - model), model,
                        stem_of(&import->arena, name), mark + strlen("{file}"));
}

/* The plain profile of the board with this much memory in its name, the smallest when
 * several have it: MIGPerf's "20" is 3g.20gb, not 4g.20gb. */
static const char *slice_by_memory(const struct mig_board *board, double memory_gb)
{
    char ending[32];
    snprintf(ending, sizeof ending, ".%.0fgb", memory_gb);
    const struct mig_profile *best = NULL;
    for (int i = 0; i < board->profile_count; i++) {
        const struct mig_profile *profile = &board->profiles[i];
        if (profile->group == MIG_GROUP_BASE && text_ends_with(profile->name, ending) &&
            (!best || profile->compute_slices < best->compute_slices))
            best = profile;
    }
    return best ? best->name : NULL;
}

static int missing(const struct import_row *row, const char *column, const char *flag,
                   struct error *err)
{
    return error_set(err, E_INPUT,
                     "%s:1:1: column \"%s\" is missing, expected %s, as the file does not say",
                     row->name, column, flag);
}

static int fill_slice(struct import *import, struct import_row *row, struct error *err)
{
    const double *numbers = row->numbers;
    struct error inner;
    int profile;
    if (!row->slice && !isnan(numbers[NUMBER_SLICE_GB]))
        row->slice = slice_by_memory(import->board, numbers[NUMBER_SLICE_GB]);
    else if (!row->slice && !isnan(numbers[NUMBER_COMPUTE_SLICES]))
        row->slice = arena_printf(&import->arena, "%.0fg", numbers[NUMBER_COMPUTE_SLICES]);
    if (!row->slice && !isnan(numbers[NUMBER_SLICE_GB]))
        return import_error(row, err, "no slice of %s has %g GB, expected another --board",
                            import->board->slug, numbers[NUMBER_SLICE_GB]);
    if (!row->slice)
        row->slice = import->defaults->slice;
    if (!row->slice && import->board->profile_count == 1)
        row->slice = import->board->profiles[0].name; /* a board without MIG */
    if (!row->slice)
        return missing(row, "slice", "--slice SLICE", err);
    if (mig_profile_get(import->board, row->slice, &profile, &inner) < 0)
        return import_error(row, err, "%s", inner.text);
    return 0;
}

static int check_count(const struct import_row *row, enum import_number which, const char *name,
                       struct error *err)
{
    double value = row->numbers[which];
    if (value >= 1 && value <= 1 << 20 && value == floor(value))
        return 0;
    return import_error(row, err, "%s is %g, expected a whole number of at least 1", name,
                        value);
}

/* Fills what the file lacks from flags, then from what the tool does unless told. */
static int fill_row(struct import *import, const struct import_format *format,
                    struct import_row *row, struct error *err)
{
    const struct import_defaults *defaults = import->defaults;
    double *numbers = row->numbers;
    if (!row->model)
        row->model = default_model(import, row->name);
    if (!row->model || !*row->model)
        return missing(row, "model", "--model MODEL", err);
    if (!import->board)
        return missing(row, "board", "--board BOARD", err);
    int failure = fill_slice(import, row, err);
    if (failure)
        return failure;
    if (isnan(numbers[NUMBER_BATCH]))
        numbers[NUMBER_BATCH] = defaults->batch > 0 ? defaults->batch : format->batch;
    if (isnan(numbers[NUMBER_BATCH]))
        return missing(row, "batch", "--batch N", err);
    if (isnan(numbers[NUMBER_PROCS]))
        numbers[NUMBER_PROCS] = defaults->procs > 0 ? defaults->procs : 1;
    failure = check_count(row, NUMBER_BATCH, "batch", err);
    if (!failure)
        failure = check_count(row, NUMBER_PROCS, "procs", err);
    if (!failure && row->status == STATUS_OK && !(numbers[NUMBER_THROUGHPUT] > 0))
        failure = import_error(row, err, "no throughput, expected a number above 0");
    return failure;
}

int import_bytes(struct import *import, const char *name, const char *bytes, size_t length,
                 struct error *err)
{
    struct import_input input = {name, bytes, length};
    const struct import_format *format = NULL;
    size_t first = import->rows.list.count;
    int failure = find_format(import->defaults, &input, &format, err);
    if (!failure)
        failure = format->read(&input, &import->rows, err);
    for (size_t i = first; !failure && i < import->rows.list.count; i++)
        failure = fill_row(import, format, &import->rows.list.data[i], err);
    if (!failure && import->rows.list.count == first)
        failure = error_set(err, E_INPUT, "%s:1:1: no result in it, expected at least one (%s)",
                            name, format->what);
    return failure;
}

int import_file(struct import *import, const char *path, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    int failure = file_read(path, FILE_SIZE_LIMIT, &bytes, err);
    return failure ? failure : import_bytes(import, path, bytes.bytes, bytes.length, err);
}

/* A model measured at several sequence lengths is as many models to a planner: the
 * contract's key has no place for the length. */
static void name_sequences(struct import *import)
{
    struct map first = {0};
    struct import_rows *rows = &import->rows;
    bool *several = arena_alloc(&import->arena, rows->list.count + 1, sizeof *several);
    for (size_t i = 0; i < rows->list.count; i++) {
        struct import_row *row = &rows->list.data[i];
        struct import_row *other = map_get(&first, row->model);
        if (isnan(row->numbers[NUMBER_SEQUENCE]))
            continue;
        if (!other)
            map_put(&first, row->model, row);
        else if (other->numbers[NUMBER_SEQUENCE] != row->numbers[NUMBER_SEQUENCE])
            several[other - rows->list.data] = true;
    }
    for (size_t i = 0; i < rows->list.count; i++) {
        struct import_row *row = &rows->list.data[i];
        struct import_row *other = map_get(&first, row->model);
        if (other && several[other - rows->list.data] && !isnan(row->numbers[NUMBER_SEQUENCE]))
            row->model = arena_printf(&import->arena, "%s-seq%.0f", row->model,
                                      row->numbers[NUMBER_SEQUENCE]);
    }
    map_done(&first);
}

/* A number to twelve digits: what unit conversion adds beyond is noise. */
static double settled(double value)
{
    char text[32];
    if (isnan(value))
        return value;
    snprintf(text, sizeof text, "%.12g", value);
    return strtod(text, NULL);
}

static struct measurement to_measurement(const struct import *import,
                                         const struct import_row *row, struct arena *arena)
{
    struct measurement result = {
        .model = arena_strdup(arena, row->model),
        .board = import->board,
        .profile = mig_profile_find(import->board, row->slice),
        .task = import->defaults->task,
        .status = row->status,
        .batch = (int)row->numbers[NUMBER_BATCH],
        .procs = (int)row->numbers[NUMBER_PROCS],
        .memory_mib = settled(row->numbers[NUMBER_MEMORY_MIB]),
        .power_w = settled(row->numbers[NUMBER_POWER_W]),
        .device = arena_strdup(arena, *row->device || !import->defaults->device
                                          ? row->device
                                          : import->defaults->device),
        .reason = arena_strdup(arena, row->reason),
        .line = row->line,
    };
    assert(result.profile >= 0);
    for (int i = 0; i < LATENCY_COLUMN_COUNT; i++) {
        double latency_ms = row->numbers[NUMBER_MEAN_MS + i];
        result.latency_ms[i] =
            row->status == STATUS_OK && latency_ms > 0 ? settled(latency_ms) : NAN;
    }
    if (row->status == STATUS_OK)
        result.throughput_rps = settled(row->numbers[NUMBER_THROUGHPUT]);
    if (!(result.memory_mib > 0))
        result.memory_mib = NAN;
    return result;
}

/* Requests that wait behind others beyond the first of each process. */
static double waiting(const struct import_row *row)
{
    double in_flight = row->numbers[NUMBER_IN_FLIGHT];
    return isnan(in_flight) ? 0 : fabs(in_flight - row->numbers[NUMBER_PROCS]);
}

static const char *row_key(struct arena *arena, const struct import_row *row, int profile)
{
    return arena_printf(arena, "%s\n%d\n%.0f\n%.0f", row->model, profile,
                        row->numbers[NUMBER_BATCH], row->numbers[NUMBER_PROCS]);
}

/* Which rows stay: of one key the one with one request in flight a process, else the
 * last. */
static void choose_rows(struct import *import, const struct import_row **ret_rows,
                        size_t *ret_count, struct import_counts *counts)
{
    struct map places = {0};
    size_t count = 0;
    for (size_t i = 0; i < import->rows.list.count; i++) {
        const struct import_row *row = &import->rows.list.data[i];
        const char *key =
            row_key(&import->arena, row, mig_profile_find(import->board, row->slice));
        ptrdiff_t place = map_find(&places, key);
        if (place < 0) {
            map_put(&places, key, NULL);
            ret_rows[count++] = row;
            continue;
        }
        bool same_load = waiting(row) == waiting(ret_rows[place]);
        *(same_load ? &counts->superseded : &counts->other_loads) += 1;
        if (waiting(row) <= waiting(ret_rows[place]))
            ret_rows[place] = row;
    }
    map_done(&places);
    *ret_count = count;
}

static void add_extras(const struct import_row *row, struct map *columns,
                       struct measurement *measurement, struct arena *arena)
{
    const char **texts = arena_alloc(arena, columns->count + 1, sizeof *texts);
    for (size_t i = 0; i < columns->count; i++)
        texts[i] = "";
    for (size_t i = 0; i < row->extras.count; i++) {
        ptrdiff_t place = map_find(columns, row->extras.data[i].name);
        assert(place >= 0);
        texts[place] = arena_strdup(arena, row->extras.data[i].text);
    }
    measurement->extra = texts;
}

void import_finish(struct import *import, struct measurement_set *ret_set,
                   struct import_counts *ret_counts)
{
    *ret_counts = (struct import_counts){0};
    *ret_set = (struct measurement_set){0};
    if (import->rows.list.count == 0)
        return;
    size_t count = 0;
    struct map columns = {0};
    const struct import_row **rows =
        arena_alloc(&import->arena, import->rows.list.count, sizeof *rows);
    name_sequences(import);
    choose_rows(import, rows, &count, ret_counts);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < rows[i]->extras.count; k++)
            if (map_find(&columns, rows[i]->extras.data[k].name) < 0)
                map_put(&columns, rows[i]->extras.data[k].name, NULL);
    for (size_t i = 0; i < columns.count; i++)
        vec_add(&ret_set->extra_columns, arena_strdup(&ret_set->arena, columns.entries[i].key));
    for (size_t i = 0; i < count; i++) {
        struct measurement row = to_measurement(import, rows[i], &ret_set->arena);
        add_extras(rows[i], &columns, &row, &ret_set->arena);
        vec_add(&ret_set->rows, row);
        ret_counts->recomputed += rows[i]->recomputed;
    }
    ret_counts->rows = count;
    map_done(&columns);
}
