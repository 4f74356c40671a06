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
