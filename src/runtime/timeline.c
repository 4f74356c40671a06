/* SPDX-License-Identifier: Apache-2.0
 *
 * See timeline.h.
 */
#include "runtime/timeline.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"

enum { POINTS_MAX = 100000 };

double timeline_wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void timeline_init(struct timeline *timeline, const struct transition *transition,
                   double started_unix_s)
{
    size_t actions = transition->actions.count, services = transition->services.count;
    *timeline = (struct timeline){.started_unix_s = started_unix_s,
                                  .action_count = actions,
                                  .service_count = services,
                                  .begun_s = xcalloc(actions, sizeof *timeline->begun_s),
                                  .done_s = xcalloc(actions, sizeof *timeline->done_s),
                                  .ready = xcalloc(services, sizeof *timeline->ready)};
    for (size_t a = 0; a < actions; a++)
        timeline->begun_s[a] = timeline->done_s[a] = NAN;
    for (size_t s = 0; s < services; s++)
        timeline->ready[s].minimum_rps = INFINITY;
}

void timeline_done(struct timeline *timeline)
{
    for (size_t s = 0; s < timeline->service_count; s++)
        vec_done(&timeline->ready[s].points);
    free(timeline->begun_s);
    free(timeline->done_s);
    free(timeline->ready);
    *timeline = (struct timeline){0};
}

double timeline_now_s(const struct timeline *timeline)
{
    return fmax(0, timeline_wall_s() - timeline->started_unix_s); /* a clock may be set back */
}

static void add_point(struct timeline *timeline, size_t service, double ready_rps)
{
    struct timeline_series *series = &timeline->ready[service];
    if (series->points.count < POINTS_MAX)
        vec_add(&series->points,
                ((struct timeline_point){timeline_now_s(timeline), ready_rps}));
}

void timeline_note_ready(struct timeline *timeline, size_t service, double ready_rps)
{
    assert(service < timeline->service_count && ready_rps >= 0);
    struct timeline_series *series = &timeline->ready[service];
    size_t count = series->points.count;
    if (count == 0 || series->points.data[count - 1].ready_rps != ready_rps)
        add_point(timeline, service, ready_rps);
    series->minimum_rps = fmin(series->minimum_rps, ready_rps);
}

void timeline_note_gap(struct timeline *timeline)
{
    for (size_t s = 0; s < timeline->service_count; s++)
        add_point(timeline, s, NAN);
}

/* ---- writing ---------------------------------------------------------------------- */

/* Milliseconds are what ticks can tell. */
static json_t *seconds_json(double seconds)
{
    return isfinite(seconds) ? json_real(round(seconds * 1e3) / 1e3) : json_null();
}

static json_t *action_json(const struct timeline *timeline, const struct transition *transition,
                           size_t index)
{
    const struct transition_action *action = &transition->actions.data[index];
    const struct transition_gpu *gpu = &transition->gpus.data[action->gpu];
    const char *service =
        action->service >= 0 ? transition->services.data[action->service].name : NULL;
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s?, s:o, s:o}", "id", action->id, "kind",
                     action_kind_name(action->kind), "gpu", gpu->id, "slice",
                     gpu->board->profiles[action->profile].name, "start", action->start,
                     "service", service, "begun_s", seconds_json(timeline->begun_s[index]),
                     "done_s", seconds_json(timeline->done_s[index]));
}

static json_t *service_json(const struct timeline_series *series,
                            const struct transition_service *service)
{
    json_t *ready = json_array();
    for (size_t i = 0; i < series->points.count; i++) {
        const struct timeline_point *point = &series->points.data[i];
        json_array_append_new(
            ready,
            json_pack("[o, o]", seconds_json(point->at_s),
                      isfinite(point->ready_rps) ? json_real(point->ready_rps) : json_null()));
    }
    return json_pack("{s:s, s:f, s:f, s:o}", "name", service->name, "floor_rps",
                     service->floor_rps, "minimum_rps",
                     isfinite(series->minimum_rps) ? series->minimum_rps : 0.0, "ready", ready);
}

static json_t *started_json(double unix_s)
{
    char text[21];

    clock_utc_text((int64_t)unix_s, text);
    return json_string(text);
}

json_t *timeline_to_json(const struct timeline *timeline, const struct transition *transition,
                         int number)
{
    json_t *actions = json_array(), *services = json_array();
    assert(timeline->action_count == transition->actions.count);
    for (size_t a = 0; a < timeline->action_count; a++)
        json_array_append_new(actions, action_json(timeline, transition, a));
    for (size_t s = 0; s < timeline->service_count; s++)
        json_array_append_new(services,
                              service_json(&timeline->ready[s], &transition->services.data[s]));
    return json_pack("{s:s, s:i, s:o, s:o, s:I, s:o, s:o}", "schema", "tranche.change/1",
                     "number", number, "started", started_json(timeline->started_unix_s),
                     "seconds", seconds_json(timeline_now_s(timeline)), "actions",
                     (json_int_t)timeline->action_count, "timeline", actions, "services",
                     services);
}
