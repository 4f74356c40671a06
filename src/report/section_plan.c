/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan: what it costs and how near the proved bound, services against their rates, the
 * picture.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "draw/chart.h"
#include "format/plan_document.h"
#include "report/html.h"
#include "report/plan_picture.h"
#include "report/report.h"

static void add_summary(const struct plan *plan, struct str *html)
{
    CLEANUP(str_done) struct str words = STR_EMPTY;
    str_addf(&words, "%d GPU%s, cost ", plan->gpus_used, plan->gpus_used == 1 ? "" : "s");
    str_add_number(&words, plan->cost);
    str_addf(&words, ", by %s", plan->algorithm);
    if (plan->status == PLAN_OPTIMAL)
        str_add(&words, ", proved optimal");
    if (!isnan(plan->bound_cost)) {
        str_add(&words, " (no plan costs less than ");
        str_add_number(&words, plan->bound_cost);
        str_add(&words, ")");
    }
    str_add(&words, ".");
    html_add_paragraph(html, NULL, words.bytes);
    if (plan->emulated)
        html_add_paragraph(html, "muted",
                           "Emulated: it rests on measurements of CPU slices, not of GPUs.");
    for (size_t i = 0; i < plan->infeasible.count; i++) {
        const struct plan_infeasible *why = &plan->infeasible.data[i];
        str_clear(&words);
        str_addf(&words, "Cannot be met: %s (%s)", why->service, why->reason);
        html_add_paragraph(html, "bad", words.bytes);
    }
}

static void add_services(const struct plan *plan, struct str *html)
{
    static const char *const HEADERS[] = {"service", "required, requests/s",
                                          "promised, requests/s", "instances", NULL};
    html_table_begin(html, HEADERS);
    for (size_t s = 0; s < plan->services.count; s++) {
        const struct plan_service *service = &plan->services.data[s];
        int instances = 0;
        for (size_t g = 0; g < plan->gpus.count; g++)
            for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++)
                instances += plan->gpus.data[g].instances.data[i].service == (int)s;
        html_row_begin(html, service->provided_rps < service->required_rps * (1 - 1e-9) ? "bad"
                                                                                        : NULL);
        html_cell(html, service->name);
        html_cell_number(html, service->required_rps);
        html_cell_number(html, service->provided_rps);
        html_cell_number(html, instances);
        html_row_end(html);
    }
    html_table_end(html);
}

static int add(const char *path, const struct str *bytes, struct str *html, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    CLEANUP(plan_done) struct plan plan;
    plan_init(&plan);
    int failed = json_parse(path, bytes->bytes, bytes->length, &root, err);
    if (!failed)
        failed = plan_from_json(path, root, &plan, err);
    if (failed)
        return failed;
    CLEANUP(str_done) struct str heading = STR_EMPTY;
    str_addf(&heading, "Plan %s", path);
    html_add_heading(html, 2, heading.bytes);
    add_summary(&plan, html);
    add_services(&plan, html);
    if (plan.gpus.count > 0)
        plan_picture_svg(&plan, html);
    return 0;
}

const struct report_section report_plan = {
    .name = "plan", .schema_prefix = "tranche.plan/", .add = add};
