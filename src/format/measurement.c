/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and writing of the measurement CSV. The reader goes over the columns by name
 * once, then over the rows; every complaint carries FILE:LINE:COL of its field.
 */
#include "format/measurement.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/map.h"
#include "base/option.h"

enum { BATCH_MAX = 1 << 20, PROCS_MAX = 1 << 10 };

/* The columns that are not latencies, in the order in which we write them. */
enum column {
    COLUMN_MODEL,
    COLUMN_BOARD,
    COLUMN_SLICE,
    COLUMN_BATCH,
    COLUMN_PROCS,
    COLUMN_THROUGHPUT,
    COLUMN_REQUIRED_COUNT,
    COLUMN_MEMORY = COLUMN_REQUIRED_COUNT,
    COLUMN_STATUS,
    COLUMN_TASK,
    COLUMN_DEVICE,
    COLUMN_POWER,
    COLUMN_REASON,
    COLUMN_COUNT
};

static const char *const column_names[COLUMN_COUNT] = {
    [COLUMN_MODEL] = "model",       [COLUMN_BOARD] = "board",
    [COLUMN_SLICE] = "slice",       [COLUMN_BATCH] = "batch",
    [COLUMN_PROCS] = "procs",       [COLUMN_THROUGHPUT] = "throughput_rps",
    [COLUMN_MEMORY] = "memory_mib", [COLUMN_STATUS] = "status",
    [COLUMN_TASK] = "task",         [COLUMN_DEVICE] = "device",
    [COLUMN_POWER] = "power_w",     [COLUMN_REASON] = "reason",
};

static const char *const latency_names[LATENCY_COLUMN_COUNT] = {
    [LATENCY_MEAN] = "latency_ms_mean", [LATENCY_P50] = "latency_ms_p50",
    [LATENCY_P90] = "latency_ms_p90",   [LATENCY_P95] = "latency_ms_p95",
    [LATENCY_P99] = "latency_ms_p99",   [LATENCY_P999] = "latency_ms_p999",
};
static const double latency_percentiles[LATENCY_COLUMN_COUNT] = {
    [LATENCY_MEAN] = MEASUREMENT_PERCENTILE_MEAN,
    [LATENCY_P50] = 50,
    [LATENCY_P90] = 90,
    [LATENCY_P95] = 95,
    [LATENCY_P99] = 99,
    [LATENCY_P999] = 99.9,
};
static const char *const status_names[MEASUREMENT_STATUS_COUNT] = {"ok", "oom", "unsupported",
                                                                   "timeout", "error"};
static const char *const task_names[TASK_COUNT] = {"inference", "training"};

const char *latency_column_name(enum latency_column column)
{
    assert(column < LATENCY_COLUMN_COUNT);
    return latency_names[column];
}

const char *measurement_status_name(enum measurement_status status)
{
    assert(status < MEASUREMENT_STATUS_COUNT);
    return status_names[status];
}

const char *task_name(enum task task)
{
    assert(task < TASK_COUNT);
    return task_names[task];
}

int measurement_latency_column(const struct measurement *row, double percentile)
{
    assert(percentile == MEASUREMENT_PERCENTILE_MEAN || percentile >= 50);
    assert(percentile <= 100);
    if (percentile == MEASUREMENT_PERCENTILE_MEAN)
        return isnan(row->latency_ms[LATENCY_MEAN]) ? -1 : LATENCY_MEAN;
    for (int column = LATENCY_P50; column < LATENCY_COLUMN_COUNT; column++)
        if (latency_percentiles[column] >= percentile && !isnan(row->latency_ms[column]))
            return column;
    return -1;
}

bool measurement_same_key(const struct measurement *a, const struct measurement *b)
{
    assert(a && b);
    assert(a->model && b->model);
    return strcmp(a->model, b->model) == 0 && a->board == b->board &&
           a->profile == b->profile && a->batch == b->batch && a->procs == b->procs &&
           a->task == b->task;
}

void measurement_set_done(struct measurement_set *set)
{
    vec_done(&set->rows);
    vec_done(&set->extra_columns);
    arena_done(&set->arena);
}

/* Where the columns of one file stand; -1: absent. */
struct reader {
    const struct csv *csv;
    int columns[COLUMN_COUNT];
    int latencies[LATENCY_COLUMN_COUNT];
    VEC(size_t) extra;      /* positions of the columns that we do not know */
    struct map keys;        /* key text → line + 1 as pointer */
    struct map device_rows; /* model → first row whose device is known */
};

static void reader_done(struct reader *reader)
{
    vec_done(&reader->extra);
    map_done(&reader->keys);
    map_done(&reader->device_rows);
}

static bool is_known_column(const char *name)
{
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (strcmp(name, column_names[i]) == 0)
            return true;
    for (int i = 0; i < LATENCY_COLUMN_COUNT; i++)
        if (strcmp(name, latency_names[i]) == 0)
            return true;
    return false;
}

static int find_columns(struct reader *reader, struct measurement_set *set, struct error *err)
{
    const struct csv *csv = reader->csv;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        reader->columns[i] = csv_find_column(csv, column_names[i]);
        if (i < COLUMN_REQUIRED_COUNT && reader->columns[i] < 0)
            return error_set(err, E_INPUT,
                             "%s:1:1: column \"%s\" is missing, expected a header with "
                             "model,board,slice,batch,procs,throughput_rps and at least one "
                             "of latency_ms_mean,latency_ms_p50 … latency_ms_p999",
                             csv_name(csv), column_names[i]);
    }
    for (int i = 0; i < LATENCY_COLUMN_COUNT; i++)
        reader->latencies[i] = csv_find_column(csv, latency_names[i]);
    for (size_t i = 0; i < csv_column_count(csv); i++) {
        const char *name = csv_column_name(csv, i);
        if (is_known_column(name))
            continue;
        vec_add(&reader->extra, i);
        vec_add(&set->extra_columns, arena_strdup(&set->arena, name));
    }
    return 0;
}

static const char *field(const struct reader *reader, size_t row, enum column column)
{
    assert(column < COLUMN_COUNT);
    int position = reader->columns[column];
    return position < 0 ? "" : csv_field(reader->csv, row, (size_t)position);
}

/* csv_error() at a known column. */
#define FIELD_ERROR(reader, row, column, err, ...)                                             \
    csv_error((reader)->csv, row, (size_t)(reader)->columns[column], err, __VA_ARGS__)

static int read_place(const struct reader *reader, size_t row, struct measurement *measurement,
                      struct error *err)
{
    assert(measurement->model);
    struct error inner;
    if (*measurement->model == '\0')
        return FIELD_ERROR(reader, row, COLUMN_MODEL, err,
                           "model is empty, expected the model's name");
    if (mig_board_get(field(reader, row, COLUMN_BOARD), &measurement->board, &inner) < 0)
        return FIELD_ERROR(reader, row, COLUMN_BOARD, err, "%s", inner.text);
    if (mig_profile_get(measurement->board, field(reader, row, COLUMN_SLICE),
                        &measurement->profile, &inner) < 0)
        return FIELD_ERROR(reader, row, COLUMN_SLICE, err, "%s", inner.text);
    return 0;
}

static int read_word(const struct reader *reader, size_t row, enum column column,
                     const char *const *words, int count, int *ret_word, struct error *err)
{
    assert(column < COLUMN_COUNT && count > 0);
    const char *text = field(reader, row, column);
    if (*text == '\0') {
        *ret_word = 0;
        return 0;
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret_word = i;
            return 0;
        }
    }
    struct str expected = STR_EMPTY;
    for (int i = 0; i < count; i++)
        str_addf(&expected, "%s%s", i ? ", " : "", words[i]);
    int rc = FIELD_ERROR(reader, row, column, err, "%s \"%s\" is not known, expected one of %s",
                         column_names[column], text, expected.bytes);
    str_done(&expected);
    return rc;
}

static int read_count(const struct reader *reader, size_t row, enum column column, int maximum,
                      int *ret_value, struct error *err)
{
    assert(column < COLUMN_COUNT && maximum >= 1);
    const char *text = field(reader, row, column);
    long long value;
    if (!text_to_int(text, 1, maximum, &value))
        return FIELD_ERROR(reader, row, column, err,
                           "%s is \"%s\", expected a whole number from 1 to %d",
                           column_names[column], text, maximum);
    *ret_value = (int)value;
    return 0;
}

/* A number that must be above zero when it is there at all. */
static int read_positive(const struct reader *reader, size_t row, int column, const char *name,
                         double *ret_value, struct error *err)
{
    assert(column < (int)csv_column_count(reader->csv));
    *ret_value = NAN;
    if (column < 0)
        return 0;
    int rc = csv_number(reader->csv, row, (size_t)column, 0, DBL_MAX, ret_value, err);
    if (rc < 0)
        return rc;
    if (*ret_value == 0)
        return csv_error(reader->csv, row, (size_t)column, err,
                         "%s is 0, expected a number above 0 or an empty field for unknown",
                         name);
    return 0;
}

static int read_figures(const struct reader *reader, size_t row,
                        struct measurement *measurement, struct error *err)
{
    int rc = read_count(reader, row, COLUMN_BATCH, BATCH_MAX, &measurement->batch, err);
    if (rc == 0)
        rc = read_count(reader, row, COLUMN_PROCS, PROCS_MAX, &measurement->procs, err);
    for (int i = 0; rc == 0 && i < LATENCY_COLUMN_COUNT; i++)
        rc = read_positive(reader, row, reader->latencies[i], latency_names[i],
                           &measurement->latency_ms[i], err);
    if (rc == 0)
        rc = read_positive(reader, row, reader->columns[COLUMN_MEMORY], "memory_mib",
                           &measurement->memory_mib, err);
    if (rc < 0)
        return rc;
    measurement->power_w = NAN;
    if (reader->columns[COLUMN_POWER] >= 0)
        return csv_number(reader->csv, row, (size_t)reader->columns[COLUMN_POWER], 0, DBL_MAX,
                          &measurement->power_w, err);
    return 0;
}

/* A row that is not ok has no throughput, whatever its field says (often 0). */
static int read_throughput(const struct reader *reader, size_t row,
                           struct measurement *measurement, struct error *err)
{
    assert(reader->columns[COLUMN_THROUGHPUT] >= 0);
    double throughput_rps = NAN;
    size_t column = (size_t)reader->columns[COLUMN_THROUGHPUT];
    int rc = csv_number(reader->csv, row, column, 0, DBL_MAX, &throughput_rps, err);
    if (rc < 0)
        return rc;
    if (measurement->status != STATUS_OK)
        return 0;
    if (isnan(throughput_rps) || throughput_rps == 0)
        return csv_error(
            reader->csv, row, column, err,
            "throughput_rps is %s in a row of status ok, expected a number above 0",
            isnan(throughput_rps) ? "empty" : "0");
    measurement->throughput_rps = throughput_rps;
    return 0;
}

static int check_latency_known(const struct reader *reader, size_t row,
                               const struct measurement *measurement, struct error *err)
{
    assert(measurement->status < MEASUREMENT_STATUS_COUNT && measurement->task < TASK_COUNT);
    if (measurement->status != STATUS_OK || measurement->task != TASK_INFERENCE)
        return 0;
    for (int i = 0; i < LATENCY_COLUMN_COUNT; i++)
        if (reader->latencies[i] >= 0)
            return 0;
    return csv_error(reader->csv, row, 0, err,
                     "an inference row in a file without any latency column, expected at least "
                     "one of latency_ms_mean, latency_ms_p50 … latency_ms_p999 in the header");
}

static int check_unique(struct reader *reader, size_t row,
                        const struct measurement *measurement, struct error *err)
{
    assert(measurement->model && measurement->board && measurement->profile >= 0);
    struct str key = STR_EMPTY;
    str_addf(&key, "%s\n%s\n%d\n%d\n%d\n%d", measurement->model, measurement->board->slug,
             measurement->profile, measurement->batch, measurement->procs,
             (int)measurement->task);
    ptrdiff_t earlier = map_find(&reader->keys, key.bytes);
    map_put(&reader->keys, key.bytes, NULL);
    str_done(&key);
    if (earlier < 0)
        return 0;
    /* Every row puts exactly one key, so positions in the map are rows. */
    return csv_error(reader->csv, row, 0, err,
                     "the same model, board, slice, batch, procs and task as in line %u, "
                     "expected one row for each",
                     csv_line(reader->csv, (size_t)earlier));
}

static int check_device(struct reader *reader, size_t row,
                        const struct measurement *measurement, struct measurement_set *set,
                        struct error *err)
{
    if (*measurement->device == '\0')
        return 0;
    const struct measurement *first = NULL;
    /* Each model is judged by its first row with a known device: rows that leave it empty agree
     * with any. */
    ptrdiff_t position = map_find(&reader->device_rows, measurement->model);
    if (position < 0) {
        map_put(&reader->device_rows, measurement->model,
                (void *)(uintptr_t)(set->rows.count)); /* index + 1 of this row */
        return 0;
    }
    assert(reader->device_rows.entries);
    size_t index = (size_t)(uintptr_t)reader->device_rows.entries[position].value;
    assert(index > 0 && index <= set->rows.count);
    first = &set->rows.data[index - 1];
    if (strcmp(first->device, measurement->device) == 0)
        return 0;
    return FIELD_ERROR(
        reader, row, COLUMN_DEVICE, err,
        "device \"%s\", but model %s was measured on \"%s\" in line %u; expected "
        "one device a model",
        measurement->device, measurement->model, first->device, first->line);
}

static void read_texts(const struct reader *reader, size_t row, struct measurement *measurement,
                       struct measurement_set *set)
{
    measurement->model = arena_strdup(&set->arena, field(reader, row, COLUMN_MODEL));
    measurement->device = arena_strdup(&set->arena, field(reader, row, COLUMN_DEVICE));
    measurement->reason = arena_strdup(&set->arena, field(reader, row, COLUMN_REASON));
    measurement->line = csv_line(reader->csv, row);
    if (reader->extra.count == 0)
        return;
    const char **extra = arena_alloc(&set->arena, reader->extra.count, sizeof *extra);
    for (size_t i = 0; i < reader->extra.count; i++)
        extra[i] =
            arena_strdup(&set->arena, csv_field(reader->csv, row, reader->extra.data[i]));
    measurement->extra = extra;
}

static int read_row(struct reader *reader, size_t row, struct measurement_set *set,
                    struct error *err)
{
    assert(row == set->rows.count);
    struct measurement *measurement = vec_push(&set->rows);
    read_texts(reader, row, measurement, set);
    int status = 0, task = 0;
    int rc = read_place(reader, row, measurement, err);
    if (rc == 0)
        rc = read_word(reader, row, COLUMN_STATUS, status_names, MEASUREMENT_STATUS_COUNT,
                       &status, err);
    if (rc == 0)
        rc = read_word(reader, row, COLUMN_TASK, task_names, TASK_COUNT, &task, err);
    if (rc < 0)
        return rc;
    measurement->status = (enum measurement_status)status;
    measurement->task = (enum task)task;
    rc = read_figures(reader, row, measurement, err);
    if (rc == 0)
        rc = read_throughput(reader, row, measurement, err);
    if (rc == 0)
        rc = check_latency_known(reader, row, measurement, err);
    if (rc == 0)
        rc = check_unique(reader, row, measurement, err);
    return rc < 0 ? rc : check_device(reader, row, measurement, set, err);
}

static int read_rows(const struct csv *csv, struct measurement_set *set, struct error *err)
{
    CLEANUP(reader_done) struct reader reader = {.csv = csv};
    int rc = find_columns(&reader, set, err);
    for (size_t row = 0; rc == 0 && row < csv_row_count(csv); row++)
        rc = read_row(&reader, row, set, err);
    return rc;
}

int measurement_set_parse(const char *name, const char *bytes, size_t length,
                          struct measurement_set *ret_set, struct error *err)
{
    assert(name && ret_set);
    CLEANUP(csv_free_ptr) struct csv *csv = NULL;
    int rc = csv_parse(name, bytes, length, &csv, err);
    if (rc < 0)
        return rc;
    struct measurement_set set = {0};
    rc = read_rows(csv, &set, err);
    if (rc < 0) {
        measurement_set_done(&set);
        return rc;
    }
    file_sha256(bytes, length, set.sha256);
    *ret_set = set;
    return 0;
}

int measurement_set_read(const char *path, struct measurement_set *ret_set, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    int rc = file_read(path, FILE_SIZE_LIMIT, &bytes, err);
    if (rc < 0)
        return rc;
    return measurement_set_parse(path, bytes.bytes, bytes.length, ret_set, err);
}

/* Which optional columns any row fills. */
struct filled {
    bool columns[COLUMN_COUNT];
    bool latencies[LATENCY_COLUMN_COUNT];
};

static struct filled find_filled(const struct measurement_set *set)
{
    struct filled filled = {0};
    bool any_latency = false;
    /* Columns that no row fills are left out, so that a small file stays readable. */
    for (int i = 0; i < COLUMN_REQUIRED_COUNT; i++)
        filled.columns[i] = true;
    for (size_t r = 0; r < set->rows.count; r++) {
        const struct measurement *row = &set->rows.data[r];
        filled.columns[COLUMN_MEMORY] |= !isnan(row->memory_mib);
        filled.columns[COLUMN_STATUS] |= row->status != STATUS_OK;
        filled.columns[COLUMN_TASK] |= row->task != TASK_INFERENCE;
        filled.columns[COLUMN_DEVICE] |= row->device && *row->device;
        filled.columns[COLUMN_POWER] |= !isnan(row->power_w);
        filled.columns[COLUMN_REASON] |= row->reason && *row->reason;
        for (int i = 0; i < LATENCY_COLUMN_COUNT; i++)
            filled.latencies[i] |= !isnan(row->latency_ms[i]);
    }
    for (int i = 0; i < LATENCY_COLUMN_COUNT; i++)
        any_latency |= filled.latencies[i];
    if (!any_latency) /* the form asks for one */
        filled.latencies[LATENCY_P99] = true;
    return filled;
}

static void add_header(const struct measurement_set *set, const struct filled *filled,
                       struct str *text)
{
    for (int i = 0; i < COLUMN_REQUIRED_COUNT; i++)
        str_addf(text, "%s%s", i ? "," : "", column_names[i]);
    for (int i = 0; i < LATENCY_COLUMN_COUNT; i++)
        if (filled->latencies[i])
            str_addf(text, ",%s", latency_names[i]);
    for (int i = COLUMN_REQUIRED_COUNT; i < COLUMN_COUNT; i++)
        if (filled->columns[i])
            str_addf(text, ",%s", column_names[i]);
    for (size_t i = 0; i < set->extra_columns.count; i++) {
        str_add_char(text, ',');
        csv_add_field(text, set->extra_columns.data[i]);
    }
    str_add_char(text, '\n');
}

static void add_number_field(struct str *text, double value)
{
    assert(isnan(value) || isfinite(value));
    if (!isnan(value))
        str_add_number(text, value);
}

static void add_optional(const struct measurement *row, enum column column, struct str *text)
{
    assert(column >= COLUMN_REQUIRED_COUNT && column < COLUMN_COUNT);
    if (column == COLUMN_MEMORY)
        add_number_field(text, row->memory_mib);
    else if (column == COLUMN_POWER)
        add_number_field(text, row->power_w);
    else if (column == COLUMN_STATUS)
        str_add(text, status_names[row->status]);
    else if (column == COLUMN_TASK)
        str_add(text, task_names[row->task]);
    else if (column == COLUMN_DEVICE)
        csv_add_field(text, row->device ? row->device : "");
    else if (column == COLUMN_REASON)
        csv_add_field(text, row->reason ? row->reason : "");
}

static void add_row(const struct measurement_set *set, const struct filled *filled,
                    const struct measurement *row, struct str *text)
{
    assert(row->model && row->board && row->profile >= 0);
    assert(row->profile < row->board->profile_count);
    csv_add_field(text, row->model);
    str_addf(text, ",%s,%s,%d,%d,", row->board->slug, row->board->profiles[row->profile].name,
             row->batch, row->procs);
    if (row->status == STATUS_OK)
        str_add_number(text, row->throughput_rps);
    for (int i = 0; i < LATENCY_COLUMN_COUNT; i++) {
        if (!filled->latencies[i])
            continue;
        str_add_char(text, ',');
        add_number_field(text, row->latency_ms[i]);
    }
    for (int i = COLUMN_REQUIRED_COUNT; i < COLUMN_COUNT; i++) {
        if (!filled->columns[i])
            continue;
        str_add_char(text, ',');
        add_optional(row, (enum column)i, text);
    }
    for (size_t i = 0; i < set->extra_columns.count; i++) {
        str_add_char(text, ',');
        csv_add_field(text, row->extra ? row->extra[i] : "");
    }
    str_add_char(text, '\n');
}

void measurement_set_format(const struct measurement_set *set, struct str *text)
{
    assert(set && text);
    struct filled filled = find_filled(set);
    add_header(set, &filled, text);
    for (size_t i = 0; i < set->rows.count; i++)
        add_row(set, &filled, &set->rows.data[i], text);
}
