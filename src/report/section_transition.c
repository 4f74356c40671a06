/* SPDX-License-Identifier: Apache-2.0
 *
 * A transition: its actions over time, each starting as soon as those it waits for are done,
 * and what each service can do meanwhile against its floor.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "draw/chart.h"
#include "report/action_colours.h"
#include "report/html.h"
#include "report/report.h"
#include "transition/document.h"

enum { SPANS_MOST = 120, CHARTS_MOST = 16 };

/* When each action runs if nothing holds it up. */
struct schedule {
    struct arena arena;
    double *begin, *end; /* one for each action, seconds */
};

static void schedule_init(const struct transition *transition, struct schedule *schedule)
{
    size_t count = transition->actions.count;
    *schedule = (struct schedule){0};
    schedule->begin = arena_alloc(&schedule->arena, count, sizeof *schedule->begin);
    schedule->end = arena_alloc(&schedule->arena, count, sizeof *schedule->end);
    for (size_t i = 0; i < count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        for (size_t k = 0; k < action->after.count; k++) {
            assert(action->after.data[k] < (int)i); /* the list is in order */
            schedule->begin[i] = fmax(schedule->begin[i], schedule->end[action->after.data[k]]);
        }
        schedule->end[i] = schedule->begin[i] + action->seconds;
    }
}

static void add_summary(const struct transition *transition, struct str *html)
{
    CLEANUP(str_done) struct str words = STR_EMPTY;
    str_addf(&words, "%zu actions by %s, %.4g s when nothing fails, %d GPU%s borrowed.",
             transition->actions.count, transition->algorithm, transition->makespan_seconds,
             transition->extra_gpus, transition->extra_gpus == 1 ? "" : "s");
    html_add_paragraph(html, NULL, words.bytes);
}

static const char *action_label(const struct transition *transition, size_t index,
                                struct arena *arena)
{
    const struct transition_action *action = &transition->actions.data[index];
    const struct transition_gpu *gpu = &transition->gpus.data[action->gpu];
    return arena_printf(arena, "%s %s@%d", gpu->id, gpu->board->profiles[action->profile].name,
                        action->start);
}

static void add_actions(const struct transition *transition, struct schedule *schedule,
                        struct str *html)
{
    size_t count = transition->actions.count;
    if (count > SPANS_MOST)
        return; /* too many to tell apart */
    struct chart_series series[ACTION_KIND_COUNT];
    const char **names = arena_alloc(&schedule->arena, count, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = action_label(transition, i, &schedule->arena);
    for (int kind = 0; kind < ACTION_KIND_COUNT; kind++) {
        double *begin = arena_alloc(&schedule->arena, count, sizeof *begin);
        double *end = arena_alloc(&schedule->arena, count, sizeof *end);
        for (size_t i = 0; i < count; i++) {
            bool ours = transition->actions.data[i].kind == (enum action_kind)kind;
            begin[i] = ours ? schedule->begin[i] : NAN;
            end[i] = ours ? schedule->end[i] : NAN;
        }
        series[kind] = (struct chart_series){.label = action_kind_name((enum action_kind)kind),
                                             .colour = action_colours[kind],
                                             .x = begin,
                                             .y = end,
                                             .count = count};
    }
    chart_svg(&(struct chart){.kind = CHART_SPANS,
                              .title = "Actions",
                              .x_label = "seconds",
                              .categories = names,
                              .category_count = count,
                              .series = series,
                              .series_count = ACTION_KIND_COUNT},
              html);
}

struct capacity_change {
    double at, rate_rps;
};

static int compare_changes(const void *a, const void *b)
{
    const struct capacity_change *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Capacity of one service over the schedule: `start` gives at its end, `drain` takes at its
 * beginning. */
static void add_capacity(const struct transition *transition, const struct schedule *schedule,
                         int service, struct str *html)
{
    const struct transition_service *named = &transition->services.data[service];
    VEC(struct capacity_change) changes = {0};
    VEC(double) x = {0};
    VEC(double) y = {0};
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        struct capacity_change change = {schedule->end[i], action->rate_rps};
        if (action->service != service)
            continue;
        if (action->kind == ACTION_DRAIN)
            change = (struct capacity_change){schedule->begin[i], -action->rate_rps};
        if (action->kind == ACTION_DRAIN || action->kind == ACTION_START)
            vec_add(&changes, change);
    }
    if (changes.count > 1)
        qsort(changes.data, changes.count, sizeof *changes.data, compare_changes);
    int before = plan_find_service(&transition->from, named->name);
    double capacity = before < 0 ? 0 : transition->from.services.data[before].provided_rps;
    vec_add(&x, 0.0);
    vec_add(&y, capacity);
    for (size_t i = 0; i < changes.count; i++) {
        capacity += changes.data[i].rate_rps;
        vec_add(&x, changes.data[i].at);
        vec_add(&y, capacity);
    }
    vec_add(&x, transition->makespan_seconds);
    vec_add(&y, capacity);
    double ends[] = {0, transition->makespan_seconds};
    double floor[] = {named->floor_rps, named->floor_rps};
    struct chart_series series[] = {
        {.label = "capacity",
         .colour = CANVAS_SERIES,
         .x = x.data,
         .y = y.data,
         .count = x.count},
        {.label = "floor",
         .colour = CANVAS_BAD,
         .broken = true,
         .x = ends,
         .y = floor,
         .count = 2},
    };
    chart_svg(&(struct chart){.kind = CHART_STEPS,
                              .title = named->name,
                              .x_label = "seconds",
                              .y_label = "requests/s",
                              .series = series,
                              .series_count = 2},
              html);
    vec_done(&changes);
    vec_done(&x);
    vec_done(&y);
}

static int add(const char *path, const struct str *bytes, struct str *html, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    CLEANUP(transition_done) struct transition transition;
    transition_init(&transition);
    int failed = json_parse(path, bytes->bytes, bytes->length, &root, err);
    if (!failed)
        failed = transition_from_json(path, root, &transition, err);
    if (failed)
        return failed;
    CLEANUP(str_done) struct str heading = STR_EMPTY;
    struct schedule schedule;
    schedule_init(&transition, &schedule);
    str_addf(&heading, "Transition %s", path);
    html_add_heading(html, 2, heading.bytes);
    add_summary(&transition, html);
    html_figures_begin(html);
    add_actions(&transition, &schedule, html);
    for (size_t i = 0; i < transition.services.count && i < CHARTS_MOST; i++)
        add_capacity(&transition, &schedule, (int)i, html);
    html_figures_end(html);
    arena_done(&schedule.arena);
    return 0;
}

const struct report_section report_transition = {
    .name = "transition", .schema_prefix = "tranche.transition/", .add = add};
