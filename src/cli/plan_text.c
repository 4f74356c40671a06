/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_text.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "cli/table.h"

static void add_boards(const struct plan *plan, struct str *text)
{
    const char *separator = " (";
    for (size_t b = 0; b < mig_board_count(); b++) {
        int used = 0;
        for (size_t g = 0; g < plan->gpus.count; g++)
            used += plan->gpus.data[g].board == mig_board_at(b);
        if (used == 0)
            continue;
        str_addf(text, "%s%d x %s", separator, used, mig_board_at(b)->slug);
        separator = ", ";
    }
    if (*separator == ',')
        str_add_char(text, ')');
}

static void add_proof(const struct plan *plan, struct str *text)
{
    if (plan->status == PLAN_OPTIMAL) {
        str_add(text, "proved optimal: no plan costs less than ");
        str_add_number(text, round(plan->bound_cost * 1e4) / 1e4);
    } else if (isnan(plan->bound_cost)) {
        str_add(text, "no bound was proved");
    } else {
        str_add(text, "no plan costs less than ");
        str_add_number(text, round(plan->bound_cost * 1e4) / 1e4);
        str_addf(text, " (gap %.2f%%)",
                 100 * (plan->cost - plan->bound_cost) / fmax(plan->bound_cost, 1e-9));
    }
    if (plan->stopped_by)
        str_addf(text, "; stopped by %s", plan->stopped_by);
    str_add_char(text, '\n');
}

static void add_services(const struct plan *plan, struct str *text)
{
    static const struct table_column columns[] = {{"service", TABLE_ALIGN_LEFT},
                                                  {"required_rps", TABLE_ALIGN_RIGHT},
                                                  {"provided_rps", TABLE_ALIGN_RIGHT},
                                                  {"instances", TABLE_ALIGN_RIGHT}};
    CLEANUP(table_free_ptr) struct table *table = table_new(columns, 4);
    int *instances = xcalloc(plan->services.count + 1, sizeof *instances);
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++)
            if (plan->gpus.data[g].instances.data[i].service >= 0)
                instances[plan->gpus.data[g].instances.data[i].service]++;
    for (size_t i = 0; i < plan->services.count; i++) {
        table_add(table, plan->services.data[i].name);
        table_add_number(table, plan->services.data[i].required_rps, 1);
        table_add_number(table, plan->services.data[i].provided_rps, 1);
        table_addf(table, "%d", instances[i]);
    }
    free(instances);
    if (plan->services.count > 0)
        table_write(table, text);
}

static void add_gpus(const struct plan *plan, size_t gpus_shown, struct str *text)
{
    static const struct table_column columns[] = {{"gpu", TABLE_ALIGN_LEFT},
                                                  {"board", TABLE_ALIGN_LEFT},
                                                  {"instances", TABLE_ALIGN_LEFT}};
    CLEANUP(table_free_ptr) struct table *table = table_new(columns, 3);
    size_t shown = plan->gpus.count < gpus_shown ? plan->gpus.count : gpus_shown;
    if (shown == 0)
        return;
    str_add_char(text, '\n');
    for (size_t g = 0; g < shown; g++) {
        const struct plan_gpu *gpu = &plan->gpus.data[g];
        CLEANUP(str_done) struct str cell = STR_EMPTY;
        for (size_t i = 0; i < gpu->instances.count; i++) {
            const struct plan_instance *instance = &gpu->instances.data[i];
            str_addf(&cell, "%s%s@%d=%s", i ? " " : "",
                     gpu->board->profiles[instance->profile].name, instance->start,
                     instance->service < 0 ? "-" : plan->services.data[instance->service].name);
        }
        table_add(table, gpu->id);
        table_add(table, gpu->board->slug);
        table_add(table, cell.bytes);
    }
    table_write(table, text);
    if (shown < plan->gpus.count)
        str_addf(text, "… and %zu more GPUs\n", plan->gpus.count - shown);
}

static void add_infeasible(const struct plan *plan, struct str *text)
{
    for (size_t i = 0; i < plan->infeasible.count; i++) {
        const struct plan_infeasible *entry = &plan->infeasible.data[i];
        str_addf(text, "not served: %s (%s", entry->service, entry->reason);
        if (!isnan(entry->nearest_latency_ms)) {
            str_add(text, "; the nearest latency is ");
            str_add_number(text, round(entry->nearest_latency_ms * 1e3) / 1e3);
            str_add(text, " ms");
        }
        str_add(text, ")\n");
    }
}

void plan_text(const struct plan *plan, size_t gpus_shown, struct str *text)
{
    assert(plan->status < PLAN_STATUS_COUNT);
    if (plan->status == PLAN_INFEASIBLE) {
        str_add(text, "infeasible\n");
        add_infeasible(plan, text);
        return;
    }
    str_addf(text, "%d GPU%s", plan->gpus_used, plan->gpus_used == 1 ? "" : "s");
    add_boards(plan, text);
    str_add(text, ", cost ");
    str_add_number(text, plan->cost);
    str_add(text, ", ");
    add_proof(plan, text);
    if (plan->emulated)
        str_add(text, "emulated: it rests on measurements of CPU slices, not of GPUs\n");
    add_infeasible(plan, text);
    add_services(plan, text);
    add_gpus(plan, gpus_shown, text);
}
