/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports for people; the work is in control/preflight.h and control/clean_up.h.
 */
#include "cli/controller_tools.h"

#include <stdio.h>

#include "base/json.h"
#include "cli/output.h"
#include "control/clean_up.h"
#include "control/preflight.h"

static void add_findings(const struct preflight_report *report, struct str *text)
{
    static const enum output_style styles[FINDING_LEVEL_COUNT] = {
        [FINDING_GOOD] = OUTPUT_STYLE_GOOD,
        [FINDING_NOTE] = OUTPUT_STYLE_WARN,
        [FINDING_BAD] = OUTPUT_STYLE_BAD,
    };

    for (size_t i = 0; i < report->findings.count; i++) {
        const struct preflight_finding *finding = &report->findings.data[i];
        output_add_styled(text, styles[finding->level], output_has_colour(),
                          finding_level_name(finding->level));
        str_addf(text, " %s: %s\n", finding->subject, finding->text);
    }
}

int controller_check(const struct controller_check *check, struct error *err)
{
    CLEANUP(preflight_report_done) struct preflight_report report = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    const struct preflight_options options = {
        .client = check->client, .namespace = check->namespace, .lease = check->lease};
    int failed = preflight_run(&options, &report, err);

    if (failed)
        return failed;
    if (check->json) {
        CLEANUP(json_decref_ptr) json_t *json = preflight_to_json(&report);
        json_write_pretty(json, &text);
    } else {
        add_findings(&report, &text);
    }
    failed = output_write(NULL, &text, err);
    if (!failed && !report.ok)
        failed = error_set(err, E_NO, "the cluster is not ready for the controller");
    return failed;
}

int controller_clean_up(struct kube_client *client, double wait_s, struct error *err)
{
    CLEANUP(clean_up_report_done) struct clean_up_report report = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    const struct clean_up_options options = {.client = client,
                                             .wait_ns = (int64_t)(wait_s * 1e9)};
    int failed = clean_up_run(&options, &report, err);

    if (failed)
        return failed;
    str_addf(&text, "%d objects deleted, %d of them freed of the finalizer\n", report.deleted,
             report.released);
    for (size_t i = 0; i < report.left.count; i++)
        str_addf(&text, "left: %s\n", report.left.data[i]);
    failed = output_write(NULL, &text, err);
    if (!failed && report.left.count > 0)
        failed =
            error_set(err, E_NO, "%zu objects are left: others hold them", report.left.count);
    return failed;
}
