/* SPDX-License-Identifier: Apache-2.0
 *
 * See status_text.h.
 */
#include "cli/status_text.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/table.h"

enum { EVENTS_SHOWN = 8 };

static double number_of(const json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

static void add_optional(struct table *table, const json_t *json, const char *key, double scale,
                         int decimals)
{
    if (json_is_number(json_object_get(json, key)))
        table_add_number(table, number_of(json, key) * scale, decimals);
    else
        table_add(table, "-");
}

static void head_text(const json_t *status, struct str *text)
{
    const json_t *change = json_object_get(status, "change");
    str_addf(text, "%s at http://%s:%d%s\n", json_text(status, "phase"),
             json_text(status, "address"), (int)number_of(status, "port"),
             json_is_true(json_object_get(status, "emulated")) ? ", cpu-slice (emulated)" : "");
    if (json_is_object(change))
        str_addf(text, "change %d: %d of %d actions done, %zu under way\n",
                 (int)number_of(change, "number"), (int)number_of(change, "done"),
                 (int)number_of(change, "actions"),
                 json_array_size(json_object_get(change, "running")));
}

static void instances_text(const json_t *status, struct str *text)
{
    static const struct table_column COLUMNS[] = {
        {.title = "GPU"},
        {.title = "instance"},
        {.title = "service"},
        {.title = "state"},
        {.title = "promised", .align = TABLE_ALIGN_RIGHT},
        {.title = "weight", .align = TABLE_ALIGN_RIGHT},
        {.title = "waiting", .align = TABLE_ALIGN_RIGHT},
        {.title = "pid", .align = TABLE_ALIGN_RIGHT}};
    CLEANUP(table_free_ptr)
    struct table *table = table_new(COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    size_t g, i;
    json_t *gpu, *instance;
    json_array_foreach(json_object_get(status, "gpus"), g, gpu)
    {
        json_array_foreach(json_object_get(gpu, "instances"), i, instance)
        {
            table_add(table, json_text(gpu, "id"));
            table_addf(table, "%s@%d", json_text(instance, "slice"),
                       (int)number_of(instance, "start"));
            table_add(table, json_text(instance, "service"));
            table_add(table, json_text(instance, "state"));
            table_add_number(table, number_of(instance, "rate_rps"), 1);
            table_add_number(table, number_of(instance, "weight"), 0);
            table_add_number(table, number_of(instance, "outstanding"), 0);
            table_add_number(table, number_of(instance, "pid"), 0);
        }
    }
    table_write(table, text);
}

static void services_text(const json_t *status, struct str *text)
{
    static const struct table_column COLUMNS[] = {
        {.title = "service"},
        {.title = "required", .align = TABLE_ALIGN_RIGHT},
        {.title = "ready", .align = TABLE_ALIGN_RIGHT},
        {.title = "rate", .align = TABLE_ALIGN_RIGHT},
        {.title = "p50 ms", .align = TABLE_ALIGN_RIGHT},
        {.title = "p90 ms", .align = TABLE_ALIGN_RIGHT},
        {.title = "p99 ms", .align = TABLE_ALIGN_RIGHT},
        {.title = "objective", .align = TABLE_ALIGN_RIGHT},
        {.title = "within", .align = TABLE_ALIGN_RIGHT},
        {.title = "requests", .align = TABLE_ALIGN_RIGHT},
        {.title = "failed", .align = TABLE_ALIGN_RIGHT}};
    CLEANUP(table_free_ptr)
    struct table *table = table_new(COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    size_t index;
    json_t *service;
    json_array_foreach(json_object_get(status, "services"), index, service)
    {
        table_add(table, json_text(service, "name"));
        table_add_number(table, number_of(service, "required_rps"), 1);
        table_add_number(table, number_of(service, "ready_rps"), 1);
        table_add_number(table, number_of(service, "rate_rps"), 1);
        add_optional(table, service, "latency_ms_p50", 1, 0);
        add_optional(table, service, "latency_ms_p90", 1, 0);
        add_optional(table, service, "latency_ms_p99", 1, 0);
        add_optional(table, service, "latency_ms", 1, 0);
        add_optional(table, service, "attainment", 100, 2);
        table_add_number(table, number_of(service, "requests"), 0);
        table_add_number(table, number_of(service, "failed"), 0);
    }
    table_write(table, text);
}

static void training_text(const json_t *status, struct str *text)
{
    size_t index;
    json_t *service;
    json_array_foreach(json_object_get(status, "services"), index, service)
    {
        if (strcmp(json_text(service, "task"), "training") != 0)
            continue;
        str_addf(text, "%s trains: %.2f steps/s, %.1f samples/s, %.0f steps so far",
                 json_text(service, "name"), number_of(service, "steps_per_s"),
                 number_of(service, "samples_per_s"), number_of(service, "steps"));
        if (json_is_number(json_object_get(service, "loss")))
            str_addf(text, ", loss %.4g", number_of(service, "loss"));
        str_add_char(text, '\n');
    }
}

static void events_text(const json_t *status, struct str *text)
{
    const json_t *events = json_object_get(status, "events");
    size_t count = json_array_size(events);
    for (size_t i = count > EVENTS_SHOWN ? count - EVENTS_SHOWN : 0; i < count; i++) {
        const json_t *event = json_array_get(events, i);
        str_addf(text, "%s %s%s\n", json_text(event, "time"),
                 strcmp(json_text(event, "level"), "info") == 0 ? "" : "! ",
                 json_text(event, "text"));
    }
}

void status_text(const json_t *status, struct str *text)
{
    head_text(status, text);
    str_add_char(text, '\n');
    instances_text(status, text);
    str_add_char(text, '\n');
    services_text(status, text);
    training_text(status, text);
    if (json_array_size(json_object_get(status, "events")) > 0)
        str_add_char(text, '\n');
    events_text(status, text);
}

int status_print(const json_t *status, bool json, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (json)
        json_write_pretty(status, &text);
    else
        status_text(status, &text);
    return output_write(NULL, &text, err);
}
