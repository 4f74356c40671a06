/* SPDX-License-Identifier: Apache-2.0
 *
 * What came of a run of load on a running plan, counted from outside (the demo's
 * summary.json): requests, failures, the share within the objective, the floor.
 */
#include <assert.h>
#include <math.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "report/html.h"
#include "report/report.h"

#define COUNT_MAX 9e15

static const struct {
    const char *key, *title;
    bool required;
} COLUMNS[] = {
    {"required_rps", "required/s", true},
    {"promised_rps", "promised/s", true},
    {"requests", "requests", false},
    {"failed", "failed", false},
    {"attainment", "within the objective", true},
    {"attainment_before", "before the changes", false},
    {"attainment_during", "during", false},
    {"attainment_after", "after", false},
};
enum { COLUMN_COUNT = sizeof COLUMNS / sizeof *COLUMNS };

static int add_service(const struct json_place *place, const json_t *service, struct str *html,
                       struct error *err)
{
    const char *name = "";
    double values[COLUMN_COUNT];
    int failed = json_get_text(place, service, "name", true, &name, err);
    for (int i = 0; i < COLUMN_COUNT && !failed; i++) {
        values[i] = NAN;
        failed = json_get_number(place, service, COLUMNS[i].key, COLUMNS[i].required, 0,
                                 COUNT_MAX, &values[i], err);
    }
    if (failed)
        return failed;
    html_row_begin(html, NULL);
    html_cell(html, name);
    for (int i = 0; i < COLUMN_COUNT; i++)
        html_cell_number(html, values[i]);
    html_row_end(html);
    return 0;
}

static int add_services(const struct json_place *place, const json_t *services,
                        struct str *html, struct error *err)
{
    const char *headers[COLUMN_COUNT + 2] = {"service"};
    int failed = 0;
    for (int i = 0; i < COLUMN_COUNT; i++)
        headers[i + 1] = COLUMNS[i].title;
    html_table_begin(html, headers);
    for (size_t i = 0; i < json_array_size(services) && !failed; i++) {
        struct json_place here = {.file = place->file, .parent = place, .index = i};
        failed = add_service(&here, json_array_get(services, i), html, err);
    }
    html_table_end(html);
    return failed;
}

static int add(const char *path, const struct str *bytes, struct str *html, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    CLEANUP(str_done) struct str words = STR_EMPTY;
    const json_t *services = NULL;
    long long requests = 0, failures = 0;
    bool held = false;
    struct json_place place = {.file = path};
    struct json_place list = {.file = path, .parent = &place, .key = "services"};
    int failed = json_parse(path, bytes->bytes, bytes->length, &root, err);
    if (!failed)
        failed = json_get_int(&place, root, "requests", true, 0, (long long)COUNT_MAX,
                              &requests, err);
    if (!failed)
        failed =
            json_get_int(&place, root, "failed", true, 0, (long long)COUNT_MAX, &failures, err);
    if (!failed)
        failed = json_get_bool(&place, root, "floor_held", true, &held, err);
    if (!failed)
        failed = json_get_list(&place, root, "services", true, &services, err);
    if (failed)
        return failed;
    html_add_heading(html, 2, "Served");
    str_addf(&words, "%lld requests, %lld failed; the floor was %s.", requests, failures,
             held ? "held" : "NOT held");
    html_add_paragraph(html, NULL, words.bytes);
    return add_services(&list, services, html, err);
}

const struct report_section report_summary = {
    .name = "summary", .schema_prefix = "tranche.summary/", .add = add};
