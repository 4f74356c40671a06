/* SPDX-License-Identifier: Apache-2.0
 *
 * A change that was carried out on a running plan, as it was measured (`tranche apply
 * --json`): when each action began and was done, and what each service had ready against
 * its floor.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "draw/chart.h"
#include "report/action_colours.h"
#include "report/html.h"
#include "report/report.h"

enum { SPANS_MOST = 120, CHARTS_MOST = 16 };
#define SECONDS_MAX 1e9
#define RATE_MAX    1e12

struct measured_change {
    struct arena arena; /* owns what is below; texts are the document's */
    long long number;
    double seconds;
    const char *started;
    size_t count; /* actions */
    const char **names;
    double *begin, *end; /* seconds; NAN: not known */
    enum action_kind *kinds;
    const json_t *services;
};

/* A number, or NAN where it is null. */
static int read_or_gap(const struct json_place *place, const json_t *object, const char *key,
                       double *ret, struct error *err)
{
    *ret = NAN;
    return json_get_number(place, object, key, false, 0, SECONDS_MAX, ret, err);
}

static int find_kind(const char *name)
{
    for (int kind = 0; kind < ACTION_KIND_COUNT; kind++)
        if (strcmp(action_kind_name((enum action_kind)kind), name) == 0)
            return kind;
    return -1;
}

static int read_action(const struct json_place *place, const json_t *json, size_t index,
                       struct measured_change *change, struct error *err)
{
    const char *gpu = "", *slice = "", *kind = "";
    long long start = 0;
    int failed = json_get_text(place, json, "gpu", true, &gpu, err);
    if (!failed)
        failed = json_get_text(place, json, "slice", true, &slice, err);
    if (!failed)
        failed = json_get_int(place, json, "start", true, 0, 1000, &start, err);
    if (!failed)
        failed = json_get_text(place, json, "kind", true, &kind, err);
    if (!failed)
        failed = read_or_gap(place, json, "begun_s", &change->begin[index], err);
    if (!failed)
        failed = read_or_gap(place, json, "done_s", &change->end[index], err);
    if (failed)
        return failed;
    if (find_kind(kind) < 0)
        return json_error_at(place, err, "kind '%.40s' is no kind of action", kind);
    change->kinds[index] = (enum action_kind)find_kind(kind);
    change->names[index] = arena_printf(&change->arena, "%s %s@%lld", gpu, slice, start);
    return 0;
}

static int read_change(const struct json_place *root_place, const json_t *root,
                       struct measured_change *change, struct error *err)
{
    const json_t *actions = NULL;
    struct json_place list = {
        .file = root_place->file, .parent = root_place, .key = "timeline"};
    change->started = "";
    int failed =
        json_get_int(root_place, root, "number", true, 0, 1000000000, &change->number, err);
    if (!failed)
        failed = json_get_number(root_place, root, "seconds", true, 0, SECONDS_MAX,
                                 &change->seconds, err);
    if (!failed)
        failed = json_get_text(root_place, root, "started", false, &change->started, err);
    if (!failed)
        failed = json_get_list(root_place, root, "timeline", true, &actions, err);
    if (!failed)
        failed = json_get_list(root_place, root, "services", true, &change->services, err);
    if (failed)
        return failed;
    change->count = json_array_size(actions);
    change->names = arena_alloc(&change->arena, change->count, sizeof *change->names);
    change->begin = arena_alloc(&change->arena, change->count, sizeof *change->begin);
    change->end = arena_alloc(&change->arena, change->count, sizeof *change->end);
    change->kinds = arena_alloc(&change->arena, change->count, sizeof *change->kinds);
    for (size_t i = 0; i < change->count && !failed; i++) {
        struct json_place place = {.file = list.file, .parent = &list, .index = i};
        failed = read_action(&place, json_array_get(actions, i), i, change, err);
    }
    return failed;
}

static void add_actions(struct measured_change *change, struct str *html)
{
    struct chart_series series[ACTION_KIND_COUNT];
    if (change->count == 0 || change->count > SPANS_MOST)
        return; /* too many to tell apart */
    for (int kind = 0; kind < ACTION_KIND_COUNT; kind++) {
        double *begin = arena_alloc(&change->arena, change->count, sizeof *begin);
        double *end = arena_alloc(&change->arena, change->count, sizeof *end);
        for (size_t i = 0; i < change->count; i++) {
            bool ours = change->kinds[i] == (enum action_kind)kind;
            begin[i] = ours ? change->begin[i] : NAN;
            end[i] = ours ? change->end[i] : NAN;
        }
        series[kind] = (struct chart_series){.label = action_kind_name((enum action_kind)kind),
                                             .colour = action_colours[kind],
                                             .x = begin,
                                             .y = end,
                                             .count = change->count};
    }
    chart_svg(&(struct chart){.kind = CHART_SPANS,
                              .title = "Actions, measured",
                              .x_label = "seconds",
                              .categories = change->names,
                              .category_count = change->count,
                              .series = series,
                              .series_count = ACTION_KIND_COUNT},
              html);
}

/* The points of "ready": [[seconds, requests/s or null], …], up to the end of the change. */
static int read_ready(const struct json_place *place, const json_t *ready,
                      struct measured_change *change, double *x, double *y, struct error *err)
{
    size_t count = json_array_size(ready);
    for (size_t i = 0; i < count; i++) {
        struct json_place here = {.file = place->file, .parent = place, .index = i};
        const json_t *point = json_array_get(ready, i);
        const json_t *at = json_array_get(point, 0), *rate = json_array_get(point, 1);
        if (!json_is_number(at) || !(json_is_number(rate) || json_is_null(rate)) ||
            json_number_value(at) < 0 || json_number_value(at) > SECONDS_MAX ||
            (json_is_number(rate) && fabs(json_number_value(rate)) > RATE_MAX))
            return json_error_at(&here, err, "expected [seconds, requests/s or null]");
        x[i] = json_number_value(at);
        y[i] = json_is_number(rate) ? json_number_value(rate) : NAN;
    }
    x[count] = change->seconds;
    y[count] = count > 0 ? y[count - 1] : NAN;
    return 0;
}

static int add_service(const struct json_place *place, const json_t *service,
                       struct measured_change *change, struct str *html, struct error *err)
{
    const char *name = "";
    const json_t *ready = NULL;
    double floor_rps = 0;
    struct json_place list = {.file = place->file, .parent = place, .key = "ready"};
    int failed = json_get_text(place, service, "name", true, &name, err);
    if (!failed)
        failed =
            json_get_number(place, service, "floor_rps", true, 0, RATE_MAX, &floor_rps, err);
    if (!failed)
        failed = json_get_list(place, service, "ready", true, &ready, err);
    if (failed)
        return failed;
    size_t count = json_array_size(ready) + 1;
    double *x = arena_alloc(&change->arena, count, sizeof *x);
    double *y = arena_alloc(&change->arena, count, sizeof *y);
    failed = read_ready(&list, ready, change, x, y, err);
    if (failed)
        return failed;
    double ends[] = {0, change->seconds}, floor[] = {floor_rps, floor_rps};
    struct chart_series series[] = {
        {.label = "ready", .colour = CANVAS_SERIES, .x = x, .y = y, .count = count},
        {.label = "floor",
         .colour = CANVAS_BAD,
         .broken = true,
         .x = ends,
         .y = floor,
         .count = 2},
    };
    chart_svg(&(struct chart){.kind = CHART_STEPS,
                              .title = name,
                              .x_label = "seconds",
                              .y_label = "requests/s",
                              .series = series,
                              .series_count = 2},
              html);
    return 0;
}

static int add_change(const struct json_place *place, struct measured_change *change,
                      struct str *html, struct error *err)
{
    CLEANUP(str_done) struct str words = STR_EMPTY;
    struct json_place list = {.file = place->file, .parent = place, .key = "services"};
    int failed = 0;
    str_addf(&words, "Change %lld", change->number);
    html_add_heading(html, 2, words.bytes);
    str_clear(&words);
    str_addf(&words, "As measured: %zu actions in %.4g s%s%s.", change->count, change->seconds,
             *change->started ? ", from " : "", change->started);
    html_add_paragraph(html, NULL, words.bytes);
    html_figures_begin(html);
    add_actions(change, html);
    size_t count = json_array_size(change->services);
    for (size_t i = 0; i < count && i < CHARTS_MOST && !failed; i++) {
        struct json_place here = {.file = list.file, .parent = &list, .index = i};
        failed = add_service(&here, json_array_get(change->services, i), change, html, err);
    }
    html_figures_end(html);
    return failed;
}

static int add(const char *path, const struct str *bytes, struct str *html, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    struct measured_change change = {0};
    struct json_place place = {.file = path};
    int failed = json_parse(path, bytes->bytes, bytes->length, &root, err);
    if (!failed)
        failed = read_change(&place, root, &change, err);
    if (!failed)
        failed = add_change(&place, &change, html, err);
    arena_done(&change.arena);
    return failed;
}

const struct report_section report_change = {
    .name = "change", .schema_prefix = "tranche.change/", .add = add};
