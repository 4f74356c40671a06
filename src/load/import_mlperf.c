/* SPDX-License-Identifier: Apache-2.0
 *
 * mlperf_log_summary.txt of MLPerf LoadGen: lines "name : value" under a banner. The file
 * names the system under test, not the model.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "load/import_format.h"

static const char BANNER[] = "MLPerf Results Summary";

enum scenario { SINGLE_STREAM, MULTI_STREAM, SERVER, OFFLINE, SCENARIO_COUNT };
static const char *const scenario_names[SCENARIO_COUNT] = {"SingleStream", "MultiStream",
                                                           "Server", "Offline"};

/* A line's number: where it goes and in which unit it stands. */
struct summary_field {
    const char *name;
    enum import_number number;
    double scale;
};

/* The percentiles of "Additional Stats"; they stand behind those of the headline. */
static const struct summary_field summary_fields[] = {
    {"Samples per second", NUMBER_THROUGHPUT, 1},
    {"Scheduled samples per second", NUMBER_THROUGHPUT, 1},
    {"Completed samples per second", NUMBER_THROUGHPUT, 1}, /* after the scheduled ones */
    {"QPS w/ loadgen overhead", NUMBER_THROUGHPUT, 1},
    {"QPS w/o loadgen overhead", NUMBER_THROUGHPUT, 1},
    {"Mean latency (ns)", NUMBER_MEAN_MS, 1e-6},
    {"50.00 percentile latency (ns)", NUMBER_P50_MS, 1e-6},
    {"90.00 percentile latency (ns)", NUMBER_P90_MS, 1e-6},
    {"95.00 percentile latency (ns)", NUMBER_P95_MS, 1e-6},
    {"99.00 percentile latency (ns)", NUMBER_P99_MS, 1e-6},
    {"99.90 percentile latency (ns)", NUMBER_P999_MS, 1e-6},
    {"samples_per_query", NUMBER_BATCH, 1},
    {"Samples per query", NUMBER_BATCH, 1},
};

struct summary {
    struct import_rows *rows;
    struct import_row *row;
    enum scenario scenario;
    bool valid;
    struct str reasons;
};

static bool mlperf_matches(const struct import_input *input)
{
    size_t length = input->length < 4096 ? input->length : 4096;
    return memmem(input->bytes, length, BANNER, strlen(BANNER)) != NULL;
}

/* Cuts "name : value" in place; false for other lines. */
static bool split_line(char *line, char **ret_name, char **ret_value)
{
    char *colon = strrchr(line, ':');
    if (!colon)
        return false;
    char *end = colon;
    while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    *ret_name = line + strspn(line, " \t");
    *ret_value = colon + 1 + strspn(colon + 1, " \t");
    (*ret_value)[strcspn(*ret_value, "\r")] = '\0';
    return true;
}

static int take_scenario(struct summary *summary, const char *value, struct error *err)
{
    for (int i = 0; i < SCENARIO_COUNT; i++) {
        if (strcmp(value, scenario_names[i]) == 0) {
            summary->scenario = (enum scenario)i;
            return 0;
        }
    }
    return import_error(summary->row, err,
                        "Scenario is \"%s\", expected SingleStream, MultiStream, Server or "
                        "Offline",
                        value);
}

static int take_number(struct summary *summary, const char *name, const char *value,
                       struct error *err)
{
    for (size_t i = 0; i < sizeof summary_fields / sizeof *summary_fields; i++) {
        double number;
        if (strcmp(name, summary_fields[i].name) != 0)
            continue;
        if (!text_to_double(value, &number) || number < 0)
            return import_error(summary->row, err, "%s is \"%s\", expected a number", name,
                                value);
        summary->row->numbers[summary_fields[i].number] = number * summary_fields[i].scale;
    }
    return 0;
}

static void keep(struct summary *summary, const char *name, const char *value)
{
    *vec_push(&summary->row->extras) = (struct import_extra){
        arena_strdup(summary->rows->arena, name), arena_strdup(summary->rows->arena, value)};
}

static int take_line(struct summary *summary, char *line, struct error *err)
{
    char *name, *value;
    if (!split_line(line, &name, &value))
        return 0;
    if (strcmp(name, "Scenario") == 0) {
        keep(summary, "scenario", value);
        return take_scenario(summary, value, err);
    }
    if (strcmp(name, "SUT name") == 0)
        keep(summary, "sut", value);
    else if (strcmp(name, "Result is") == 0)
        summary->valid = strcmp(value, "VALID") == 0;
    else if (text_ends_with(name, "satisfied") && strcmp(value, "NO") == 0)
        str_addf(&summary->reasons, "%s%s", summary->reasons.length ? ", " : "", name);
    else
        return take_number(summary, name, value, err);
    return 0;
}

/* Throughput where the scenario states a latency instead; no latency of one batch where
 * all samples are sent at once. */
static void derive(struct summary *summary)
{
    double *numbers = summary->row->numbers;
    double samples = isnan(numbers[NUMBER_BATCH]) ? 1 : numbers[NUMBER_BATCH];
    bool stream = summary->scenario == SINGLE_STREAM || summary->scenario == MULTI_STREAM;
    if (stream && numbers[NUMBER_MEAN_MS] > 0)
        numbers[NUMBER_THROUGHPUT] = 1e3 * samples / numbers[NUMBER_MEAN_MS];
    if (summary->scenario == OFFLINE)
        for (int i = NUMBER_MEAN_MS; i <= NUMBER_P999_MS; i++)
            numbers[i] = NAN;
    if (summary->scenario == OFFLINE || summary->scenario == SERVER)
        numbers[NUMBER_BATCH] = NAN; /* how the system batches is not said */
}

static int mlperf_read(const struct import_input *input, struct import_rows *rows,
                       struct error *err)
{
    CLEANUP(str_done) struct str copy = STR_EMPTY;
    struct summary summary = {.rows = rows, .scenario = SCENARIO_COUNT, .reasons = STR_EMPTY};
    int failure = 0;
    if (!mlperf_matches(input))
        return error_set(err, E_INPUT, "%s:1:1: no \"%s\", expected %s", input->name, BANNER,
                         import_mlperf.what);
    if (memchr(input->bytes, '\0', input->length))
        return error_set(err, E_INPUT, "%s:1:1: a NUL byte, expected text", input->name);
    str_add_bytes(&copy, input->bytes, input->length);
    summary.row = import_rows_add(rows, input->name, 1);
    char *rest = copy.bytes, *line;
    while (!failure && (line = strsep(&rest, "\n"))) {
        failure = take_line(&summary, line, err);
        summary.row->line++;
    }
    summary.row->line = 1;
    if (!failure && summary.scenario == SCENARIO_COUNT)
        failure = error_set(err, E_INPUT, "%s:1:1: no line \"Scenario : …\"", input->name);
    if (!failure)
        derive(&summary);
    if (!failure && !summary.valid) {
        summary.row->status = STATUS_ERROR;
        summary.row->reason = arena_printf(rows->arena, "MLPerf result is INVALID%s%s",
                                           summary.reasons.length ? ": not satisfied: " : "",
                                           summary.reasons.bytes);
    }
    str_done(&summary.reasons);
    return failure;
}

const struct import_format import_mlperf = {
    .name = "mlperf",
    .what = "mlperf_log_summary.txt of MLPerf LoadGen",
    .batch = 1,
    .matches = mlperf_matches,
    .read = mlperf_read,
};
