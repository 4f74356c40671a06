/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that are CSV: MIGPerf, Triton Model Analyzer, perf_analyzer, ParvaGPU. Each is a
 * table of columns and a function that sets right what the tool got wrong.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "load/import_format.h"

/* How a field is read. */
enum column_kind {
    COLUMN_NUMBER,
    COLUMN_MODEL,
    COLUMN_SLICE,
    COLUMN_INSTANCES, /* "2:GPU/Relaxed", "2/GPU": two processes */
    COLUMN_PER_GPU,   /* "GPU-…:42.5;": numbers of GPUs; the first counts */
    COLUMN_IGNORED,   /* row numbers and the like */
};

struct csv_column {
    const char *name;
    enum column_kind kind;
    enum import_number number;
    double scale;   /* to our unit */
    bool signature; /* a file of this format has it */
    bool kept;      /* as a column of its own beside */
};

struct csv_format {
    const struct import_format *format;
    const struct csv_column *columns;
    size_t column_count;
    const char *device;
    int (*correct)(struct import_rows *rows, struct import_row *row, struct error *err);
};

#define SIGNATURE(n, k, t, s)                                                                  \
    {                                                                                          \
        .name = (n), .kind = COLUMN_##k, .number = NUMBER_##t, .scale = (s), .signature = true \
    }
#define COLUMN(n, k, t, s)                                                                     \
    {                                                                                          \
        .name = (n), .kind = COLUMN_##k, .number = NUMBER_##t, .scale = (s)                    \
    }
#define KEPT(n, t)                                                                             \
    {                                                                                          \
        .name = (n), .kind = COLUMN_NUMBER, .number = NUMBER_##t, .scale = 1, .kept = true     \
    }

static const struct csv_column migperf_columns[] = {
    SIGNATURE("model_name", MODEL, BATCH, 1),
    SIGNATURE("batch_size", NUMBER, BATCH, 1),
    SIGNATURE("latency", NUMBER, MEAN_MS, 1),
    SIGNATURE("throughput", NUMBER, THROUGHPUT, 1),
    COLUMN("mig_profile", SLICE, BATCH, 1),
    COLUMN("instance_memory", NUMBER, SLICE_GB, 1),
    COLUMN("mig", NUMBER, SLICE_GB, 1),
    COLUMN("fb_used_mean", NUMBER, MEMORY_MIB, 1),
    KEPT("seq_length", SEQUENCE),
    COLUMN("", IGNORED, BATCH, 1),
    COLUMN("Unnamed: 0", IGNORED, BATCH, 1),
};

/* Names as the tool prints them, and as its configuration calls them. */
static const struct csv_column model_analyzer_columns[] = {
    COLUMN("Model", MODEL, BATCH, 1),
    COLUMN("model_name", MODEL, BATCH, 1),
    COLUMN("Batch", NUMBER, BATCH, 1),
    COLUMN("batch_size", NUMBER, BATCH, 1),
    KEPT("Concurrency", IN_FLIGHT),
    KEPT("concurrency", IN_FLIGHT),
    COLUMN("Instance Group", INSTANCES, PROCS, 1),
    COLUMN("instance_group", INSTANCES, PROCS, 1),
    COLUMN("Throughput (infer/sec)", NUMBER, THROUGHPUT, 1),
    COLUMN("perf_throughput", NUMBER, THROUGHPUT, 1),
    COLUMN("Average Latency (ms)", NUMBER, MEAN_MS, 1),
    COLUMN("perf_latency_avg", NUMBER, MEAN_MS, 1),
    COLUMN("p90 Latency (ms)", NUMBER, P90_MS, 1),
    COLUMN("perf_latency_p90", NUMBER, P90_MS, 1),
    COLUMN("p95 Latency (ms)", NUMBER, P95_MS, 1),
    COLUMN("perf_latency_p95", NUMBER, P95_MS, 1),
    COLUMN("p99 Latency (ms)", NUMBER, P99_MS, 1),
    COLUMN("perf_latency_p99", NUMBER, P99_MS, 1),
    COLUMN("Max GPU Memory Usage (MB)", NUMBER, MEMORY_MIB, 1),
    COLUMN("gpu_used_memory", NUMBER, MEMORY_MIB, 1),
    COLUMN("Average GPU Power Usage (W)", NUMBER, POWER_W, 1),
    COLUMN("gpu_power_usage", NUMBER, POWER_W, 1),
};

static const struct csv_column perf_analyzer_columns[] = {
    SIGNATURE("Inferences/Second", NUMBER, THROUGHPUT, 1),
    KEPT("Concurrency", IN_FLIGHT),
    COLUMN("Avg latency", NUMBER, MEAN_MS, 1e-3),
    COLUMN("p50 latency", NUMBER, P50_MS, 1e-3),
    COLUMN("p90 latency", NUMBER, P90_MS, 1e-3),
    COLUMN("p95 latency", NUMBER, P95_MS, 1e-3),
    COLUMN("p99 latency", NUMBER, P99_MS, 1e-3),
    COLUMN("Client Send", NUMBER, PART_MS, 1e-3),
    COLUMN("Network+Server Send/Recv", NUMBER, PART_MS, 1e-3),
    COLUMN("Server Queue", NUMBER, PART_MS, 1e-3),
    COLUMN("Server Compute Input", NUMBER, PART_MS, 1e-3),
    COLUMN("Server Compute Infer", NUMBER, PART_MS, 1e-3),
    COLUMN("Server Compute Output", NUMBER, PART_MS, 1e-3),
    COLUMN("Client Recv", NUMBER, PART_MS, 1e-3),
    COLUMN("Avg GPU Power Usage", PER_GPU, POWER_W, 1),
    COLUMN("Max GPU Memory Usage", PER_GPU, MEMORY_MIB, 1.0 / (1 << 20)),
};

static const struct csv_column parvagpu_columns[] = {
    SIGNATURE("Mig instance", NUMBER, COMPUTE_SLICES, 1),
    SIGNATURE("Batch size", NUMBER, BATCH, 1),
    SIGNATURE("Workload Number", NUMBER, PROCS, 1),
    SIGNATURE("Throughput", NUMBER, THROUGHPUT, 1), /* of one process: corrected */
    SIGNATURE("Latency", NUMBER, MEAN_MS, 1e3),     /* seconds, one a row */
};

/* Rows of zeros stand for combinations that could not run. */
static bool is_blank_result(const struct import_row *row)
{
    return row->numbers[NUMBER_MEAN_MS] == 0 && row->numbers[NUMBER_THROUGHPUT] == 0;
}

static void mark_oom(struct import_rows *rows, struct import_row *row, const char *reason)
{
    row->status = STATUS_OOM;
    row->reason = arena_strdup(rows->arena, reason);
    for (int i = NUMBER_THROUGHPUT; i <= NUMBER_MEMORY_MIB; i++)
        row->numbers[i] = NAN;
}

/* Some of MIGPerf's files lost the batch size in the throughput (3000 ÷ latency): wherever
 * throughput × latency is not the batch it is computed anew. */
static int correct_migperf(struct import_rows *rows, struct import_row *row, struct error *err)
{
    double latency_ms = row->numbers[NUMBER_MEAN_MS], batch = row->numbers[NUMBER_BATCH];
    if (is_blank_result(row)) {
        mark_oom(rows, row, "a row of zeros: out of memory");
        return 0;
    }
    if (!(latency_ms > 0))
        return import_error(row, err, "latency is %g, expected milliseconds above 0",
                            latency_ms);
    double throughput = 1e3 * batch / latency_ms;
    if (!(fabs(row->numbers[NUMBER_THROUGHPUT] / throughput - 1) < 0.02)) {
        row->numbers[NUMBER_THROUGHPUT] = throughput;
        row->recomputed = true;
    }
    return 0;
}

static int correct_perf_analyzer(struct import_rows *rows, struct import_row *row,
                                 struct error *err)
{
    (void)rows, (void)err;
    if (isnan(row->numbers[NUMBER_MEAN_MS]))
        row->numbers[NUMBER_MEAN_MS] = row->numbers[NUMBER_PART_MS];
    return 0;
}

/* Throughput is that of one process: throughput × latency is the batch on every row. */
static int correct_parvagpu(struct import_rows *rows, struct import_row *row, struct error *err)
{
    (void)err;
    if (is_blank_result(row))
        mark_oom(rows, row, "a row of zeros: cannot run");
    else
        row->numbers[NUMBER_THROUGHPUT] *= row->numbers[NUMBER_PROCS];
    return 0;
}

#define FORMAT(name, given_device, correction)                                                 \
    static const struct csv_format name = {.format = &import_##name,                           \
                                           .columns = name##_columns,                          \
                                           .column_count =                                     \
                                               sizeof name##_columns / sizeof *name##_columns, \
                                           .device = (given_device),                           \
                                           .correct = (correction)}

FORMAT(migperf, "cuda", correct_migperf);
FORMAT(model_analyzer, "", NULL);
FORMAT(perf_analyzer, "", correct_perf_analyzer);
FORMAT(parvagpu, "cuda", correct_parvagpu);

/* csv_parse() wants a name for every column; pandas leaves that of row numbers empty. */
static int parse_named(const struct import_input *input, struct csv **ret_csv,
                       struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    if (input->length == 0 || *input->bytes != ',')
        return csv_parse(input->name, input->bytes, input->length, ret_csv, err);
    str_add(&bytes, "\"Unnamed: row\"");
    str_add_bytes(&bytes, input->bytes, input->length);
    return csv_parse(input->name, bytes.bytes, bytes.length, ret_csv, err);
}

static const struct csv_column *find_column(const struct csv_format *format, const char *name)
{
    for (size_t i = 0; i < format->column_count; i++)
        if (strcmp(format->columns[i].name, name) == 0)
            return &format->columns[i];
    return NULL;
}

/* "2:GPU/Relaxed" → 2; several groups add up. */
static double read_instances(const char *text)
{
    double total = 0;
    while (*text) {
        char *end;
        double count = strtod(text, &end);
        if (end == text || !isfinite(count))
            return NAN;
        total += count;
        text = end + strcspn(end, ",;");
        text += *text != '\0';
    }
    return total > 0 ? total : NAN;
}

/* "GPU-12…:42.5;" → 42.5 */
static double read_per_gpu(const char *text)
{
    const char *colon = strchr(text, ':');
    double value = colon ? strtod(colon + 1, NULL) : NAN;
    return isfinite(value) ? value : NAN;
}

/* Where a row is read from. */
struct field_place {
    const struct csv *csv;
    size_t row, column;
};

static int read_number(const struct field_place *place, const struct csv_column *column,
                       struct import_row *row, struct error *err)
{
    double value = NAN;
    const char *text = csv_field(place->csv, place->row, place->column);
    if (column->kind == COLUMN_INSTANCES) {
        value = read_instances(text);
    } else if (column->kind == COLUMN_PER_GPU) {
        value = read_per_gpu(text);
    } else {
        int failure = csv_number(place->csv, place->row, place->column, 0, 1e15, &value, err);
        if (failure)
            return failure;
    }
    double *number = &row->numbers[column->number];
    if (column->number == NUMBER_PART_MS && !isnan(*number) && !isnan(value))
        *number += value * column->scale;
    else if (!isnan(value))
        *number = value * column->scale;
    return 0;
}

static void keep(struct import_rows *rows, struct import_row *row, const char *name,
                 const char *text)
{
    if (*text)
        *vec_push(&row->extras) = (struct import_extra){arena_strdup(rows->arena, name),
                                                        arena_strdup(rows->arena, text)};
}

static int read_field(const struct csv_format *format, const struct field_place *place,
                      struct import_rows *rows, struct import_row *row, struct error *err)
{
    const char *name = csv_column_name(place->csv, place->column);
    const char *text = csv_field(place->csv, place->row, place->column);
    const struct csv_column *column = find_column(format, name);
    if (!column) {
        if (strncmp(name, "Unnamed:", 8) != 0)
            keep(rows, row, name, text);
        return 0;
    }
    if (column->kept)
        keep(rows, row, name, text);
    if (column->kind == COLUMN_IGNORED || !*text)
        return 0;
    if (column->kind == COLUMN_MODEL)
        row->model = arena_strdup(rows->arena, text);
    else if (column->kind == COLUMN_SLICE)
        row->slice = arena_strdup(rows->arena, text);
    else
        return read_number(place, column, row, err);
    return 0;
}

static int check_signature(const struct csv_format *format, const struct csv *csv,
                           struct error *err)
{
    for (size_t i = 0; i < format->column_count; i++) {
        const struct csv_column *column = &format->columns[i];
        if (column->signature && csv_find_column(csv, column->name) < 0)
            return error_set(err, E_INPUT,
                             "%s:1:1: column \"%s\" is missing, expected it in a file of "
                             "format %s (%s)",
                             csv_name(csv), column->name, format->format->name,
                             format->format->what);
    }
    return 0;
}

static int read_csv(const struct csv_format *format, const struct import_input *input,
                    struct import_rows *rows, struct error *err)
{
    CLEANUP(csv_free_ptr) struct csv *csv = NULL;
    int failure = parse_named(input, &csv, err);
    if (!failure)
        failure = check_signature(format, csv, err);
    for (size_t r = 0; !failure && r < csv_row_count(csv); r++) {
        struct import_row *row = import_rows_add(rows, input->name, csv_line(csv, r));
        row->device = format->device;
        for (size_t c = 0; !failure && c < csv_column_count(csv); c++)
            failure = read_field(format, &(struct field_place){csv, r, c}, rows, row, err);
        if (!failure && format->correct)
            failure = format->correct(rows, row, err);
    }
    return failure;
}

static bool has_signature(const struct csv_format *format, const struct import_input *input)
{
    CLEANUP(csv_free_ptr) struct csv *csv = NULL;
    const char *newline = memchr(input->bytes, '\n', input->length);
    struct import_input header = *input;
    if (newline)
        header.length = (size_t)(newline - input->bytes) + 1;
    return parse_named(&header, &csv, NULL) == 0 && check_signature(format, csv, NULL) == 0;
}

/* Either form of the Model Analyzer's names: none is a signature by itself. */
static bool is_model_analyzer(const struct import_input *input)
{
    CLEANUP(csv_free_ptr) struct csv *csv = NULL;
    const char *newline = memchr(input->bytes, '\n', input->length);
    struct import_input header = *input;
    if (newline)
        header.length = (size_t)(newline - input->bytes) + 1;
    return parse_named(&header, &csv, NULL) == 0 &&
           (csv_find_column(csv, "perf_throughput") >= 0 ||
            csv_find_column(csv, "Throughput (infer/sec)") >= 0);
}

#define CSV_FORMAT_FUNCTIONS(name)                                                             \
    static bool name##_matches(const struct import_input *input)                               \
    {                                                                                          \
        return has_signature(&(name), input);                                                  \
    }                                                                                          \
    static int name##_read(const struct import_input *input, struct import_rows *rows,         \
                           struct error *err)                                                  \
    {                                                                                          \
        return read_csv(&(name), input, rows, err);                                            \
    }

CSV_FORMAT_FUNCTIONS(migperf)
CSV_FORMAT_FUNCTIONS(perf_analyzer)
CSV_FORMAT_FUNCTIONS(parvagpu)

static int model_analyzer_read(const struct import_input *input, struct import_rows *rows,
                               struct error *err)
{
    if (!is_model_analyzer(input))
        return error_set(err, E_INPUT,
                         "%s:1:1: column \"perf_throughput\" or \"Throughput (infer/sec)\" is "
                         "missing, expected %s",
                         input->name, import_model_analyzer.what);
    return read_csv(&model_analyzer, input, rows, err);
}

const struct import_format import_migperf = {
    .name = "migperf",
    .what = "a CSV with model_name, batch_size, latency and throughput",
    .batch = NAN,
    .matches = migperf_matches,
    .read = migperf_read,
};
const struct import_format import_model_analyzer = {
    .name = "model-analyzer",
    .what = "Triton Model Analyzer's metrics-model-inference.csv",
    .batch = NAN,
    .matches = is_model_analyzer,
    .read = model_analyzer_read,
};
const struct import_format import_perf_analyzer = {
    .name = "perf-analyzer",
    .what = "the CSV of perf_analyzer -f, with Inferences/Second",
    .batch = 1,
    .matches = perf_analyzer_matches,
    .read = perf_analyzer_read,
};
const struct import_format import_parvagpu = {
    .name = "parvagpu",
    .what = "ParvaGPU's prof_data, with Mig instance and Workload Number",
    .batch = NAN,
    .matches = parvagpu_matches,
    .read = parvagpu_read,
};
