/* SPDX-License-Identifier: Apache-2.0
 *
 * Verification: the parts that need no order (GPUs, match, figures), and the report.
 */
#include "transition/verify.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "transition/verify_internal.h"

static const double TOLERANCE = 1e-9;
enum { TEXT_VIOLATIONS_MAX = 5 };

void verifier_violation(struct verifier *verifier, const char *rule, const char *place,
                        const char *format, ...)
{
    assert(rule && place);
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct arena *arena = &verifier->report->arena;
    struct transition_violation violation = {
        .rule = rule, .place = arena_strdup(arena, place), .text = arena_strdup(arena, text)};
    vec_add(&verifier->report->violations, violation);
}

const char *verifier_slot_text(struct verifier *verifier, int gpu, int profile, int start)
{
    assert(gpu >= 0 && (size_t)gpu < verifier->transition->gpus.count);
    const struct transition_gpu *here = &verifier->transition->gpus.data[gpu];
    return arena_printf(&verifier->report->arena, "%s %s@%d", here->id,
                        here->board->profiles[profile].name, start);
}

double verifier_tolerance(double reference)
{
    return TOLERANCE * fabs(reference);
}

static struct map ids_of(const struct plan *plan)
{
    struct map ids = {0};
    for (size_t i = 0; i < plan->gpus.count; i++)
        map_put(&ids, plan->gpus.data[i].id, NULL);
    return ids;
}

static bool is_added_id(const char *id, const char *prefix)
{
    return text_starts_with(id, prefix) && id[strlen(prefix)] >= '0' &&
           id[strlen(prefix)] <= '9';
}

/* Each GPU here is one of from, or a new or borrowed one. Returns how many are borrowed. */
static int check_gpus(struct verifier *verifier)
{
    const struct transition *transition = verifier->transition;
    CLEANUP(map_done) struct map from_ids = ids_of(&transition->from);
    int borrowed = 0;
    for (size_t i = 0; i < transition->gpus.count; i++) {
        const struct transition_gpu *gpu = &transition->gpus.data[i];
        int index = verifier->from_gpu[i] = (int)map_find(&from_ids, gpu->id);
        if (index >= 0 && transition->from.gpus.data[index].board != gpu->board) {
            verifier_violation(verifier, "gpus", gpu->id, "is a %s here and a %s in from",
                               gpu->board->slug, transition->from.gpus.data[index].board->slug);
            verifier->from_gpu[i] = -1;
        }
        if (index >= 0)
            continue;
        if (!is_added_id(gpu->id, "new") && !is_added_id(gpu->id, "spare"))
            verifier_violation(verifier, "gpus", gpu->id,
                               "is neither in from nor a new or borrowed GPU");
        borrowed += is_added_id(gpu->id, "spare");
        if (is_added_id(gpu->id, "spare") && verifier->to_gpu[i] >= 0)
            verifier_violation(verifier, "gpus", gpu->id,
                               "is borrowed and yet carries %s of to",
                               transition->to.gpus.data[verifier->to_gpu[i]].id);
    }
    return borrowed;
}

/* The board of a GPU named here, or NULL. */
static const struct mig_board *board_of(const struct transition *transition,
                                        const struct map *here, const struct map *from_ids,
                                        const char *id)
{
    assert(id);
    ptrdiff_t index = map_find(here, id);
    if (index >= 0)
        return transition->gpus.data[index].board;
    index = map_find(from_ids, id);
    return index < 0 ? NULL : transition->from.gpus.data[index].board;
}

/* An untouched GPU keeps what it has: that must be what to wants there. */
static void check_untouched(struct verifier *verifier, const struct plan_gpu *before,
                            const struct plan_gpu *after)
{
    assert(before->instances.count <= MIG_INSTANCES_MAX);
    const struct transition *transition = verifier->transition;
    bool equal = before->instances.count == (after ? after->instances.count : 0);
    struct mig_layout layout;
    plan_gpu_layout(before, &layout);
    if (mig_layout_check(before->board, &layout, NULL) < 0)
        verifier_violation(verifier, "slots", before->id, "has an illegal layout in from");
    for (size_t i = 0; equal && i < before->instances.count; i++) {
        const struct plan_instance *a = &before->instances.data[i];
        const struct plan_instance *b = &after->instances.data[i];
        equal = a->profile == b->profile && a->start == b->start &&
                (a->service < 0) == (b->service < 0);
        if (!equal || a->service < 0)
            continue;
        equal = strcmp(transition->from.services.data[a->service].name,
                       transition->to.services.data[b->service].name) == 0 &&
                a->batch == b->batch && a->procs == b->procs &&
                fabs(a->rate_rps - b->rate_rps) <= verifier_tolerance(b->rate_rps);
    }
    if (!equal)
        verifier_violation(verifier, "end", before->id,
                           after ? "is not touched, and is not what to has as %s"
                                 : "is not touched, holds instances and is not in to",
                           after ? after->id : "");
}

/* What check_match() looks names up in. */
struct match_check {
    struct map from_ids, to_ids, here, used;
    int *to_of_from; /* of each GPU of from: GPU of to, -1: none */
    bool *matched;   /* of each GPU of to */
};

static void match_check_done(struct match_check *check)
{
    map_done(&check->from_ids);
    map_done(&check->to_ids);
    map_done(&check->here);
    map_done(&check->used);
    free(check->to_of_from);
    free(check->matched);
}

/* One entry: both ends exist, are of one board, and are matched once. */
static void check_entry(struct verifier *verifier, struct match_check *check,
                        const struct transition_match *match)
{
    const struct transition *transition = verifier->transition;
    ptrdiff_t to = map_find(&check->to_ids, match->to_id);
    ptrdiff_t at = map_find(&check->here, match->id),
              from = map_find(&check->from_ids, match->id);
    const struct mig_board *board =
        board_of(transition, &check->here, &check->from_ids, match->id);
    if (to < 0 || !board) {
        verifier_violation(verifier, "match", match->to_id, "to \"%s\": no such GPU in %s",
                           match->id, to < 0 ? "to" : "from or gpus");
        return;
    }
    check->matched[to] = true;
    if (transition->to.gpus.data[to].board != board) {
        verifier_violation(verifier, "match", match->to_id, "is a %s and %s is a %s",
                           transition->to.gpus.data[to].board->slug, match->id, board->slug);
        return;
    }
    if (map_find(&check->used, match->id) >= 0)
        verifier_violation(verifier, "match", match->to_id, "%s is matched twice", match->id);
    map_put(&check->used, match->id, NULL);
    if (at >= 0)
        verifier->to_gpu[at] = (int)to;
    if (from >= 0)
        check->to_of_from[from] = (int)to;
}

/* Every GPU of to has one GPU here, no two the same, of the same board. */
static void check_match(struct verifier *verifier)
{
    const struct transition *transition = verifier->transition;
    CLEANUP(match_check_done)
    struct match_check check = {.from_ids = ids_of(&transition->from),
                                .to_ids = ids_of(&transition->to),
                                .to_of_from = xcalloc(transition->from.gpus.count, sizeof(int)),
                                .matched = xcalloc(transition->to.gpus.count, sizeof(bool))};
    memset(check.to_of_from, 0xff, transition->from.gpus.count * sizeof(int));
    for (size_t i = 0; i < transition->gpus.count; i++)
        map_put(&check.here, transition->gpus.data[i].id, NULL);
    for (size_t i = 0; i < transition->match.count; i++)
        check_entry(verifier, &check, &transition->match.data[i]);
    for (size_t i = 0; i < transition->to.gpus.count; i++)
        if (!check.matched[i])
            verifier_violation(verifier, "match", transition->to.gpus.data[i].id,
                               "is not matched");
    for (size_t i = 0; i < transition->from.gpus.count; i++) {
        const struct plan_gpu *gpu = &transition->from.gpus.data[i];
        int to = check.to_of_from[i];
        if (map_find(&check.here, gpu->id) < 0)
            check_untouched(verifier, gpu, to < 0 ? NULL : &transition->to.gpus.data[to]);
    }
}

static void check_figures(struct verifier *verifier, int borrowed)
{
    assert(borrowed >= 0);
    const struct transition *transition = verifier->transition;
    double makespan = transition_makespan(transition);
    if (borrowed != transition->extra_gpus)
        verifier_violation(verifier, "figures", "extra_gpus", "is %d, %d GPUs are borrowed",
                           transition->extra_gpus, borrowed);
    if (fabs(makespan - transition->makespan_seconds) > verifier_tolerance(makespan))
        verifier_violation(verifier, "figures", "makespan_seconds",
                           "is %.9g, the longest path takes %.9g", transition->makespan_seconds,
                           makespan);
    for (size_t i = 0; i < transition->services.count; i++) {
        const struct transition_service *service = &transition->services.data[i];
        double floor_rps =
            transition_floor_rps(&transition->from, &transition->to, service->name);
        if (fabs(floor_rps - service->floor_rps) > verifier_tolerance(floor_rps))
            verifier_violation(verifier, "floor", service->name,
                               "floor_rps is %.9g, the plans require %.9g", service->floor_rps,
                               floor_rps);
    }
}

void transition_verify(const struct transition *transition,
                       struct transition_report *ret_report)
{
    assert(transition && ret_report);
    size_t gpus = transition->gpus.count;
    *ret_report = (struct transition_report){0};
    struct verifier verifier = {.transition = transition,
                                .report = ret_report,
                                .from_gpu = xcalloc(gpus, sizeof(int)),
                                .to_gpu = xcalloc(gpus, sizeof(int))};
    memset(verifier.to_gpu, 0xff, gpus * sizeof(int));
    check_match(&verifier);
    int borrowed = check_gpus(&verifier);
    check_figures(&verifier, borrowed);
    verify_lives(&verifier);
    verify_slots(&verifier);
    verify_floor(&verifier);
    vec_done(&verifier.lives);
    vec_done(&verifier.periods);
    free(verifier.from_gpu);
    free(verifier.to_gpu);
}

void transition_report_done(struct transition_report *report)
{
    vec_done(&report->violations);
    vec_done(&report->minima);
    arena_done(&report->arena);
}

int transition_report_error(const struct transition_report *report, struct error *err)
{
    assert(report);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    size_t count = report->violations.count;
    if (count == 0)
        return 0;
    for (size_t i = 0; i < count && i < TEXT_VIOLATIONS_MAX; i++) {
        const struct transition_violation *violation = &report->violations.data[i];
        str_addf(&text, "%s%s: %s: %s", i ? "\n" : "", violation->rule, violation->place,
                 violation->text);
    }
    if (count > TEXT_VIOLATIONS_MAX)
        str_addf(&text, "\n… and %zu more", count - TEXT_VIOLATIONS_MAX);
    return error_set(err, E_NO, "%s", text.bytes);
}
