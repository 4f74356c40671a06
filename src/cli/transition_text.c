/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transition_text.h"

#include <assert.h>
#include <math.h>

#include "base/cleanup.h"
#include "cli/table.h"

enum { SERVICES_SHOWN = 60 };

static void add_number(struct str *text, double value)
{
    str_add_number(text, round(value * 1e3) / 1e3);
}

static void add_summary(const struct transition *transition, struct str *text)
{
    int kinds[ACTION_KIND_COUNT] = {0};
    for (size_t i = 0; i < transition->actions.count; i++)
        kinds[transition->actions.data[i].kind]++;
    str_addf(text, "%zu actions in ", transition->actions.count);
    add_number(text, transition->makespan_seconds);
    str_addf(text, " s, %d borrowed GPU%s", transition->extra_gpus,
             transition->extra_gpus == 1 ? "" : "s");
    const char *separator = " (";
    for (int k = 0; k < ACTION_KIND_COUNT; k++) {
        if (kinds[k] == 0)
            continue;
        str_addf(text, "%s%d %s", separator, kinds[k], action_kind_name((enum action_kind)k));
        separator = ", ";
    }
    str_add(text, *separator == ',' ? ")\n" : "\n");
}

static void add_action(struct table *table, const struct transition *transition, size_t index,
                       double begin)
{
    const struct transition_action *action = &transition->actions.data[index];
    const struct transition_gpu *gpu = &transition->gpus.data[action->gpu];
    CLEANUP(str_done) struct str after = STR_EMPTY;
    CLEANUP(str_done) struct str rate = STR_EMPTY;
    for (size_t j = 0; j < action->after.count; j++)
        str_addf(&after, "%s%s", j ? " " : "",
                 transition->actions.data[action->after.data[j]].id);
    if (action->service >= 0)
        add_number(&rate, action->rate_rps);
    table_add(table, action->id);
    table_add_number(table, begin, 1);
    table_add_number(table, action->seconds, 1);
    table_add(table, action_kind_name(action->kind));
    table_add(table, gpu->id);
    table_addf(table, "%s@%d", gpu->board->profiles[action->profile].name, action->start);
    table_add(table,
              action->service < 0 ? "" : transition->services.data[action->service].name);
    table_add(table, rate.bytes);
    table_add(table, action_group_name(action->group));
    table_add(table, after.bytes);
}

static void add_actions(const struct transition *transition, size_t actions_shown,
                        struct str *text)
{
    static const struct table_column columns[] = {
        {"id", TABLE_ALIGN_LEFT},       {"at_s", TABLE_ALIGN_RIGHT},
        {"takes_s", TABLE_ALIGN_RIGHT}, {"action", TABLE_ALIGN_LEFT},
        {"gpu", TABLE_ALIGN_LEFT},      {"instance", TABLE_ALIGN_LEFT},
        {"service", TABLE_ALIGN_LEFT},  {"rate_rps", TABLE_ALIGN_RIGHT},
        {"group", TABLE_ALIGN_LEFT},    {"after", TABLE_ALIGN_LEFT}};
    CLEANUP(table_free_ptr)
    struct table *table = table_new(columns, sizeof columns / sizeof *columns);
    CLEANUP(free_ptr) double *end = xcalloc(transition->actions.count, sizeof *end);
    size_t count = transition->actions.count;
    for (size_t i = 0; i < count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        double begin = 0;
        for (size_t j = 0; j < action->after.count; j++)
            begin = fmax(begin, end[action->after.data[j]]);
        end[i] = begin + action->seconds;
        if (i < actions_shown)
            add_action(table, transition, i, begin);
    }
    if (count > 0)
        table_write(table, text);
    if (count > actions_shown)
        str_addf(text, "… and %zu more actions\n", count - actions_shown);
}

static void add_minima(const struct transition_report *report, struct str *text)
{
    static const struct table_column columns[] = {{"service", TABLE_ALIGN_LEFT},
                                                  {"floor_rps", TABLE_ALIGN_RIGHT},
                                                  {"least_ready_rps", TABLE_ALIGN_RIGHT}};
    CLEANUP(table_free_ptr) struct table *table = table_new(columns, 3);
    for (size_t i = 0; i < report->minima.count && i < SERVICES_SHOWN; i++) {
        const struct transition_minimum *minimum = &report->minima.data[i];
        CLEANUP(str_done) struct str floor_rps = STR_EMPTY;
        CLEANUP(str_done) struct str least = STR_EMPTY;
        add_number(&floor_rps, minimum->floor_rps);
        add_number(&least, minimum->minimum_rps);
        table_add(table, minimum->service);
        table_add(table, floor_rps.bytes);
        table_add(table, least.bytes);
    }
    if (report->minima.count > 0)
        table_write(table, text);
    if (report->minima.count > SERVICES_SHOWN)
        str_addf(text, "… and %zu more services\n", report->minima.count - SERVICES_SHOWN);
}

void transition_text(const struct transition *transition,
                     const struct transition_report *report, size_t actions_shown,
                     struct str *text)
{
    add_summary(transition, text);
    add_minima(report, text);
    add_actions(transition, actions_shown, text);
}

void transition_report_text(const struct transition *transition,
                            const struct transition_report *report, struct str *text)
{
    for (size_t i = 0; i < report->violations.count; i++)
        str_addf(text, "%s: %s: %s\n", report->violations.data[i].rule,
                 report->violations.data[i].place, report->violations.data[i].text);
    if (report->violations.count == 0)
        str_addf(text,
                 "safe in every order: %zu actions, %zu services at or above the floor, every "
                 "layout legal, ends in `to`\n",
                 transition->actions.count, transition->services.count);
    add_minima(report, text);
}

json_t *transition_report_json(const struct transition_report *report)
{
    json_t *violations = json_array(), *services = json_array();
    for (size_t i = 0; i < report->violations.count; i++) {
        const struct transition_violation *violation = &report->violations.data[i];
        json_array_append_new(violations,
                              json_pack("{s:s, s:s, s:s}", "rule", violation->rule, "place",
                                        violation->place, "text", violation->text));
    }
    for (size_t i = 0; i < report->minima.count; i++) {
        const struct transition_minimum *minimum = &report->minima.data[i];
        json_array_append_new(services, json_pack("{s:s, s:f, s:f}", "name", minimum->service,
                                                  "floor_rps", minimum->floor_rps,
                                                  "minimum_rps", minimum->minimum_rps));
    }
    return json_pack("{s:b, s:o, s:o}", "valid", json_array_size(violations) == 0, "violations",
                     violations, "services", services);
}

static void add_losses(const struct simulation *simulation, struct str *text)
{
    for (size_t i = 0; i < simulation->losses.count; i++) {
        const struct simulated_loss *loss = &simulation->losses.data[i];
        str_addf(text, "%s was lost at ", loss->gpu);
        add_number(text, loss->at_seconds);
        str_add(text, " s; planned on from there\n");
        for (size_t u = 0; u < loss->recovery.unavoidable.count; u++) {
            const struct unavoidable *unavoidable = &loss->recovery.unavoidable.data[u];
            str_addf(text, "  unavoidable: %s had ", unavoidable->service);
            add_number(text, unavoidable->lost_rps);
            str_add(text, " rps there and is left with ");
            add_number(text, unavoidable->left_rps);
            str_add(text, ", below its floor of ");
            add_number(text, unavoidable->floor_rps);
            str_add(text, "; it does not fall further\n");
        }
        if (loss->recovery.unavoidable.count == 0)
            str_add(text, "  no service fell below its floor by that\n");
    }
}

static void add_simulated_services(const struct simulation *simulation, struct str *text)
{
    static const struct table_column columns[] = {
        {"service", TABLE_ALIGN_LEFT},    {"floor_rps", TABLE_ALIGN_RIGHT},
        {"least_rps", TABLE_ALIGN_RIGHT}, {"below_s", TABLE_ALIGN_RIGHT},
        {"requests", TABLE_ALIGN_RIGHT},  {"late", TABLE_ALIGN_RIGHT}};
    CLEANUP(table_free_ptr)
    struct table *table = table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < simulation->services.count && i < SERVICES_SHOWN; i++) {
        const struct simulated_service *service = &simulation->services.data[i];
        CLEANUP(str_done) struct str floor_rps = STR_EMPTY;
        CLEANUP(str_done) struct str least = STR_EMPTY;
        add_number(&floor_rps, service->floor_rps);
        add_number(&least, service->minimum_rps);
        table_add(table, service->name);
        table_add(table, floor_rps.bytes);
        table_add(table, least.bytes);
        table_add_number(table, service->below_seconds, 1);
        table_addf(table, "%llu", (unsigned long long)service->requests);
        table_addf(table, "%llu", (unsigned long long)service->late);
    }
    if (simulation->services.count > 0)
        table_write(table, text);
    if (simulation->services.count > SERVICES_SHOWN)
        str_addf(text, "… and %zu more services\n",
                 simulation->services.count - SERVICES_SHOWN);
}

void simulation_text(const struct simulation *simulation, struct str *text)
{
    int actions = 0;
    for (int k = 0; k < ACTION_KIND_COUNT; k++)
        actions += simulation->actions[k];
    str_addf(text, "%d actions in ", actions);
    add_number(text, simulation->makespan_seconds);
    str_add(text, " s, borrowed GPUs for ");
    add_number(text, simulation->extra_gpu_seconds);
    str_addf(text, " GPU seconds, %d failure%s repeated\n", simulation->failures,
             simulation->failures == 1 ? "" : "s");
    for (int k = 0; k < ACTION_KIND_COUNT; k++)
        str_addf(text, "%s%d %s", k ? ", " : "", simulation->actions[k],
                 action_kind_name((enum action_kind)k));
    str_add_char(text, '\n');
    add_losses(simulation, text);
    add_simulated_services(simulation, text);
}

static json_t *losses_json(const struct simulation *simulation)
{
    json_t *losses = json_array();
    for (size_t i = 0; i < simulation->losses.count; i++) {
        const struct simulated_loss *loss = &simulation->losses.data[i];
        json_t *list = json_array();
        for (size_t u = 0; u < loss->recovery.unavoidable.count; u++) {
            const struct unavoidable *unavoidable = &loss->recovery.unavoidable.data[u];
            json_array_append_new(
                list, json_pack("{s:s, s:f, s:f, s:f}", "service", unavoidable->service,
                                "floor_rps", unavoidable->floor_rps, "lost_rps",
                                unavoidable->lost_rps, "left_rps", unavoidable->left_rps));
        }
        json_array_append_new(losses,
                              json_pack("{s:s, s:f, s:o}", "gpu", loss->gpu, "at_seconds",
                                        loss->at_seconds, "unavoidable", list));
    }
    return losses;
}

json_t *simulation_json(const struct simulation *simulation)
{
    json_t *actions = json_object(), *services = json_array();
    for (int k = 0; k < ACTION_KIND_COUNT; k++)
        json_object_set_new(actions, action_kind_name((enum action_kind)k),
                            json_integer(simulation->actions[k]));
    for (size_t i = 0; i < simulation->services.count; i++) {
        const struct simulated_service *service = &simulation->services.data[i];
        json_array_append_new(
            services,
            json_pack("{s:s, s:f, s:f, s:f, s:I, s:I}", "name", service->name, "floor_rps",
                      service->floor_rps, "minimum_rps", service->minimum_rps, "below_seconds",
                      service->below_seconds, "requests", (json_int_t)service->requests, "late",
                      (json_int_t)service->late));
    }
    return json_pack(
        "{s:f, s:f, s:o, s:i, s:o, s:o}", "makespan_seconds", simulation->makespan_seconds,
        "extra_gpu_seconds", simulation->extra_gpu_seconds, "actions", actions, "failures",
        simulation->failures, "lost_gpus", losses_json(simulation), "services", services);
}
