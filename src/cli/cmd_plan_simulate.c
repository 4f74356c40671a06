/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche plan simulate`: requests replayed against a plan.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/csv.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "cli/plan_inputs.h"
#include "cli/table.h"
#include "plan/simulate.h"

struct simulate_options {
    const char *services;
    const char *measurements;
    const char *fleet;
    const char *trace;
    const char *rates;
    const char *routing;
    long long seed;
    double duration;
    long long requests;
    double load;
    bool json;
    const char *output;
};

static const struct option_spec specs[] = {
    PLAN_INPUT_OPTIONS(struct simulate_options),
    OPTION_TEXT('o', "output", struct simulate_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
    OPTION_INT(0, "seed", struct simulate_options, seed, "N", "1", 0, 9e18, "seed"),
    OPTION_NUMBER(0, "duration", struct simulate_options, duration, "SECONDS", "60", 0.001, 1e7,
                  "simulated time in which requests arrive"),
    OPTION_INT(0, "requests", struct simulate_options, requests, "N", "0", 0, 1e9,
               "so many requests a service instead of --duration"),
    OPTION_NUMBER(0, "load", struct simulate_options, load, "X", "1", 0, 1000,
                  "multiplies all rates"),
    OPTION_CHOICE(0, "rates", struct simulate_options, rates, "required|promised", "required",
                  "offer what the services require, or all that the plan provides"),
    OPTION_CHOICE(0, "routing", struct simulate_options, routing, "leastconn|random",
                  "leastconn",
                  "HAProxy's leastconn by promised rate, or at random in proportion to it"),
    OPTION_TEXT(0, "trace", struct simulate_options, trace, "FILE", NULL,
                "rates over time, CSV: time_s, then a column of requests per second for each "
                "service named"),
};

/* --- the trace ------------------------------------------------------------------- */

struct trace_file {
    struct simulate_trace trace;
    double *start_s, *rates_rps;
};

static void trace_file_done(struct trace_file *file)
{
    free(file->start_s);
    free(file->rates_rps);
}

static int read_times(const struct csv *csv, int column, double *start_s, struct error *err)
{
    int rc = 0;
    for (size_t k = 0; k < csv_row_count(csv) && rc == 0; k++) {
        start_s[k] = NAN;
        rc = csv_number(csv, k, (size_t)column, 0, 1e9, &start_s[k], err);
        if (rc == 0 && (isnan(start_s[k]) || (k > 0 && start_s[k] <= start_s[k - 1]) ||
                        (k == 0 && start_s[0] != 0)))
            rc = csv_error(csv, k, (size_t)column, err,
                           "time_s must begin at 0 and rise from row to row");
    }
    return rc;
}

static int read_rates(const struct csv *csv, const struct plan *plan, double *rates_rps,
                      struct error *err)
{
    size_t services = plan->services.count;
    int rc = 0;
    for (size_t k = 0; k < csv_row_count(csv) * services; k++)
        rates_rps[k] = NAN;
    for (size_t c = 0; c < csv_column_count(csv) && rc == 0; c++) {
        int service = plan_find_service(plan, csv_column_name(csv, c));
        if (strcmp(csv_column_name(csv, c), "time_s") == 0)
            continue;
        if (service < 0)
            return error_set(err, E_INPUT,
                             "%s: column \"%s\" is neither time_s nor a service of the plan",
                             csv_name(csv), csv_column_name(csv, c));
        for (size_t k = 0; k < csv_row_count(csv) && rc == 0; k++)
            rc =
                csv_number(csv, k, c, 0, 1e12, &rates_rps[k * services + (size_t)service], err);
    }
    return rc;
}

static int trace_read(const char *path, const struct plan *plan, struct trace_file *file,
                      struct error *err)
{
    CLEANUP(csv_free_ptr) struct csv *csv = NULL;
    int rc = csv_read(path, &csv, err);
    if (rc < 0)
        return rc;
    int column = csv_find_column(csv, "time_s");
    size_t steps = csv_row_count(csv);
    if (column < 0 || steps == 0)
        return error_set(err, E_INPUT, "%s: expected a column time_s and at least one row",
                         path);
    file->start_s = xcalloc(steps, sizeof *file->start_s);
    file->rates_rps = xcalloc(steps * plan->services.count + 1, sizeof *file->rates_rps);
    file->trace = (struct simulate_trace){steps, file->start_s, file->rates_rps};
    rc = read_times(csv, column, file->start_s, err);
    return rc == 0 ? read_rates(csv, plan, file->rates_rps, err) : rc;
}

/* --- the result -------------------------------------------------------------------- */

static void write_text(const struct simulate_result *result, struct str *text)
{
    static const struct table_column columns[] = {
        {"service", TABLE_ALIGN_LEFT},      {"instances", TABLE_ALIGN_RIGHT},
        {"offered_rps", TABLE_ALIGN_RIGHT}, {"served_rps", TABLE_ALIGN_RIGHT},
        {"mean_ms", TABLE_ALIGN_RIGHT},     {"p50", TABLE_ALIGN_RIGHT},
        {"p90", TABLE_ALIGN_RIGHT},         {"p95", TABLE_ALIGN_RIGHT},
        {"p99", TABLE_ALIGN_RIGHT},         {"p99.9", TABLE_ALIGN_RIGHT},
        {"objective", TABLE_ALIGN_RIGHT},   {"within", TABLE_ALIGN_RIGHT},
        {"met", TABLE_ALIGN_LEFT}};
    CLEANUP(table_free_ptr) struct table *table = table_new(columns, 13);
    for (size_t i = 0; i < result->services.count; i++) {
        const struct simulate_service *service = &result->services.data[i];
        table_add(table, service->name);
        if (service->training) {
            for (int c = 1; c < 12; c++)
                table_add(table, NULL);
            table_add(table, "training: not simulated");
            continue;
        }
        table_addf(table, "%d", service->instances);
        table_add_number(table, service->offered_rps, 1);
        table_add_number(table, service->served_rps, 1);
        table_add_number(table, service->mean_ms, 2);
        for (int p = 0; p < SIMULATE_PERCENTILES; p++)
            table_add_number(table, service->percentiles_ms[p], 2);
        if (service->percentile == MEASUREMENT_PERCENTILE_MEAN)
            table_addf(table, "mean %g", service->objective_ms);
        else
            table_addf(table, "p%g %g", service->percentile, service->objective_ms);
        table_addf(table, "%.2f%%", 100 * service->attainment);
        table_add(table, service->met ? "yes" : "no");
    }
    table_write(table, text);
}

static json_t *service_json(const struct simulate_service *service)
{
    if (service->training)
        return json_pack("{s:s, s:s}", "name", service->name, "task", "training");
    json_t *percentiles = json_object();
    for (int p = 0; p < SIMULATE_PERCENTILES; p++) {
        CLEANUP(str_done) struct str key = STR_EMPTY;
        str_addf(&key, "p%g", simulate_percentiles[p]);
        json_object_set_new(percentiles, key.bytes, json_real(service->percentiles_ms[p]));
    }
    json_t *percentile = service->percentile == MEASUREMENT_PERCENTILE_MEAN
                             ? json_string("mean")
                             : json_real(service->percentile);
    return json_pack("{s:s, s:i, s:I, s:f, s:f, s:f, s:o, s:f, s:o, s:f, s:b, s:f, s:f}",
                     "name", service->name, "instances", service->instances, "requests",
                     (json_int_t)service->requests, "offered_rps", service->offered_rps,
                     "served_rps", service->served_rps, "mean_ms", service->mean_ms,
                     "latency_ms", percentiles, "objective_ms", service->objective_ms,
                     "percentile", percentile, "attainment", service->attainment, "met",
                     service->met, "batch_mean", service->batch_mean, "busy_share",
                     service->busy_share);
}

static void write_json(const struct simulate_options *given,
                       const struct simulate_result *result, struct str *text)
{
    CLEANUP(json_decref_ptr)
    json_t *root =
        json_pack("{s:I, s:s, s:s, s:f, s:[]}", "seed", (json_int_t)given->seed, "routing",
                  given->routing, "rates", given->trace ? given->trace : given->rates, "load",
                  given->load, "services");
    json_t *list = json_object_get(root, "services");
    for (size_t i = 0; i < result->services.count; i++)
        json_array_append_new(list, service_json(&result->services.data[i]));
    json_write_pretty(root, text);
}

/* The answer is no when some service misses its objective. */
static int judge(const struct simulate_result *result, struct error *err)
{
    size_t missed = 0;
    const char *first = NULL;
    for (size_t i = 0; i < result->services.count; i++) {
        const struct simulate_service *service = &result->services.data[i];
        if (service->training || service->met)
            continue;
        missed++;
        first = first ? first : service->name;
    }
    if (missed == 0)
        return 0;
    return error_set(err, E_NO, "%zu of %zu services miss their objective, the first is \"%s\"",
                     missed, result->services.count, first);
}

static int simulate_and_write(const struct simulate_options *given, const struct plan *plan,
                              const struct plan_inputs *inputs,
                              const struct simulate_trace *trace, struct error *err)
{
    CLEANUP(simulate_result_done) struct simulate_result result = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct simulate_settings settings = {.seed = (uint64_t)given->seed,
                                         .duration_s = given->duration,
                                         .requests = given->requests,
                                         .load = given->load,
                                         .promised = strcmp(given->rates, "promised") == 0,
                                         .routing = strcmp(given->routing, "random") == 0
                                                        ? ROUTE_RANDOM
                                                        : ROUTE_LEAST_OUTSTANDING,
                                         .trace = trace};
    int rc = simulate_run(plan, &inputs->services, &inputs->rows, &settings, &result, err);
    if (rc < 0)
        return rc;
    if (given->json)
        write_json(given, &result, &text);
    else
        write_text(&result, &text);
    rc = output_write(given->output, &text, err);
    return rc < 0 ? rc : judge(&result, err);
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct simulate_options *given = raw;
    CLEANUP(plan_inputs_done) struct plan_inputs inputs = {0};
    CLEANUP(trace_file_done) struct trace_file trace = {0};
    CLEANUP(plan_done) struct plan plan;
    plan_init(&plan);
    int rc = plan_read(arguments.items[0], &plan, err);
    if (rc == 0 && plan.status == PLAN_INFEASIBLE)
        rc = error_set(err, E_NO, "%s: the plan is infeasible: there is nothing to simulate",
                       arguments.items[0]);
    if (rc == 0)
        rc = plan_inputs_read(&inputs, given->services, given->measurements, given->fleet, err);
    if (rc == 0 && given->trace)
        rc = trace_read(given->trace, &plan, &trace, err);
    if (rc < 0)
        return rc;
    return simulate_and_write(given, &plan, &inputs, given->trace ? &trace.trace : NULL, err);
}

const struct command cmd_plan_simulate = {
    .name = "simulate",
    .summary = "replay requests against a plan: rates, percentiles, attainment",
    .positionals = "PLAN.json",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "Simulates every service of a plan event by event: Poisson requests, routed to the "
        "instances as the load balancer does it, batched and served as the contract's "
        "`queue` rule says; the time of a batch is the measured one that the service's "
        "percentile reads. Prints what was offered and served, the end-to-end times and the "
        "share of requests within the objective. The first 5 % of the time is not counted. "
        "Exit 1 when a "
        "service misses its objective, or the plan is infeasible.\n\n"
        "The same seed gives the same result.",
    .examples =
        "tranche plan simulate plan.json -s services.yaml -m measurements.csv\n"
        "tranche plan simulate plan.json -s services.yaml -m measurements.csv --rates promised "
        "--routing random",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .options_size = sizeof(struct simulate_options),
    .run = run,
};
