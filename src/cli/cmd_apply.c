/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche apply`: changes the running plan to another one, live.
 */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/running.h"
#include "cli/table.h"
#include "runtime/control.h"

struct apply_options {
    const char *state_dir, *services, *models;
    struct option_list model;
    long long spare;
    double timeout;
    bool json;
};

static const struct option_spec options[] = {
    RUNNING_MODEL_OPTIONS(struct apply_options),
    OPTION_INT(0, "spare", struct apply_options, spare, "N", "0", 0, 10000,
               "GPUs beyond both plans that may be borrowed meanwhile"),
    OPTION_NUMBER(0, "timeout", struct apply_options, timeout, "SECONDS", "3600", 1, 1e6,
                  "how long to wait for the end; the change goes on"),
    OPTION_FLAG(0, "json", struct apply_options, json, "print JSON"),
    RUNNING_STATE_OPTION(struct apply_options),
};

static int begin(const struct apply_options *given, const char *path, const char *folder,
                 json_t **ret_answer, struct error *err)
{
    CLEANUP(service_set_done) struct service_set services = {0};
    CLEANUP(json_decref_ptr) json_t *models = NULL, *question = NULL;
    CLEANUP(plan_done) struct plan plan;
    plan_init(&plan);
    int failed = plan_read(path, &plan, err);
    if (!failed && given->services)
        failed = service_set_read(given->services, &services, err);
    if (failed)
        return failed;
    struct running_models where = {.services = given->services ? &services : NULL,
                                   .folder = given->models,
                                   .files = given->model};
    bool told = given->services || given->models || given->model.count > 0;
    if (told)
        failed = running_models_find(&where, &plan, &models, err);
    if (failed)
        return failed;
    question = json_pack("{s:s, s:o, s:O?, s:i}", "do", "apply", "plan", plan_to_json(&plan),
                         "models", models, "spare", (int)given->spare);
    return control_ask(folder, question, ret_answer, err);
}

/* Follows the change to its end; E_NOT_FOUND where the runtime dies on the way. */
static int follow(const struct apply_options *given, const char *folder, int number,
                  json_t **ret_last, struct error *err)
{
    CLEANUP(progress_done) struct progress progress = {0};
    int64_t deadline_ns = clock_now_ns(clock_real()) + (int64_t)(given->timeout * 1e9);
    running_catch_signals();
    for (;;) {
        CLEANUP(json_decref_ptr) json_t *status = NULL;
        int failed = running_ask(folder, "status", &status, err);
        if (failed)
            return error_wrap(err, "the change is cut short (`tranche up` carries on)");
        json_t *last = json_object_get(status, "last_change");
        const json_t *change = json_object_get(status, "change");
        if (json_integer_value(json_object_get(last, "number")) >= number) {
            *ret_last = json_incref(last);
            return 0;
        }
        progress_show(&progress, "%lld of %lld actions done",
                      json_integer_value(json_object_get(change, "done")),
                      json_integer_value(json_object_get(change, "actions")));
        if (clock_now_ns(clock_real()) > deadline_ns)
            return error_set(err, E_TIMEOUT, "the change is not complete; it goes on");
        if (!running_sleep(0.1))
            return error_set(err, E_INTERRUPTED, "interrupted; the change goes on");
    }
}

static void result_text(const json_t *last, struct str *text)
{
    static const struct table_column COLUMNS[] = {
        {.title = "service"},
        {.title = "floor", .align = TABLE_ALIGN_RIGHT},
        {.title = "least ready", .align = TABLE_ALIGN_RIGHT},
        {.title = "floor held"}};
    CLEANUP(table_free_ptr)
    struct table *table = table_new(COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    size_t index;
    json_t *service;
    str_addf(text, "%lld actions in %.1f s\n\n",
             json_integer_value(json_object_get(last, "actions")),
             json_number_value(json_object_get(last, "seconds")));
    json_array_foreach(json_object_get(last, "services"), index, service)
    {
        double floor = json_number_value(json_object_get(service, "floor_rps"));
        double least = json_number_value(json_object_get(service, "minimum_rps"));
        table_add(table, json_string_value(json_object_get(service, "name")));
        table_add_number(table, floor, 1);
        table_add_number(table, least, 1);
        table_add(table, least >= floor * (1 - 1e-9) ? "yes" : "NO");
    }
    table_write(table, text);
}

static int run(const void *parsed, struct arguments arguments, struct error *err)
{
    const struct apply_options *given = parsed;
    CLEANUP(free_ptr) char *folder = running_folder(given->state_dir);
    CLEANUP(json_decref_ptr) json_t *answer = NULL, *last = NULL;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    int failed = begin(given, arguments.items[0], folder, &answer, err);
    if (!failed)
        failed = follow(given, folder,
                        (int)json_integer_value(json_object_get(answer, "change")), &last, err);
    if (failed)
        return failed;
    if (given->json)
        json_write_pretty(last, &text);
    else
        result_text(last, &text);
    return output_write(NULL, &text, err);
}

const struct command cmd_apply = {
    .name = "apply",
    .summary = "change the running plan to another one while it serves",
    .positionals = "PLAN.json",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "Plans the transition from the running plan, checks that no order of its actions falls "
        "below the floor, and carries it out action by action. Every action is in a journal "
        "before it begins: after a crash `tranche up` finishes the change. Prints for each "
        "service the floor and the least capacity that was ready at any moment.\n\n"
        "-s, --models and --model are needed only for services that were not served before.",
    .examples = "tranche apply night.json\ntranche apply next.json -s services.yaml --spare 1",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct apply_options),
    .run = run,
};
