/* SPDX-License-Identifier: Apache-2.0
 *
 * Lays a plan out as the grid of GPUs that draw/layout_picture.h draws. Text for the pointer
 * and the remarks live in one arena until the picture is done.
 */
#include "report/plan_picture.h"

#include <assert.h>
#include <math.h>

#include "draw/layout_picture.h"

struct plan_drawing {
    struct arena arena;
    VEC(struct draw_gpu) gpus;
    VEC(struct draw_key) keys;
    struct layout_picture picture;
};

static enum canvas_colour service_colour(int service)
{
    return (enum canvas_colour)(CANVAS_SERIES + service % CANVAS_SERIES_COUNT);
}

static const char *instance_details(struct plan_drawing *drawing,
                                    const struct plan_instance *instance)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    str_add_number(&text, instance->rate_rps);
    str_addf(&text, " requests/s, batch %d", instance->batch);
    if (instance->procs > 1)
        str_addf(&text, ", %d processes", instance->procs);
    if (!isnan(instance->latency_ms)) {
        str_add(&text, ", ");
        str_add_number(&text, instance->latency_ms);
        str_add(&text, " ms");
    }
    return arena_strdup(&drawing->arena, text.bytes);
}

static void add_gpu(struct plan_drawing *drawing, const struct plan *plan,
                    const struct plan_gpu *gpu)
{
    struct draw_gpu *drawn = vec_push(&drawing->gpus);
    assert(gpu->instances.count <= MIG_INSTANCES_MAX);
    plan_gpu_layout(gpu, &drawn->layout);
    drawn->title = gpu->id;
    drawn->remark = gpu->node[0]
                        ? arena_printf(&drawing->arena, "%s on %s", gpu->board->slug, gpu->node)
                        : gpu->board->slug;
    drawn->board = gpu->board;
    for (size_t i = 0; i < gpu->instances.count; i++) {
        const struct plan_instance *instance = &gpu->instances.data[i];
        if (instance->service < 0) {
            drawn->labels[i] = "unused";
            drawn->colours[i] = CANVAS_NEUTRAL;
            continue;
        }
        drawn->labels[i] = plan->services.data[instance->service].name;
        drawn->colours[i] = (int)service_colour(instance->service);
        drawn->details[i] = instance_details(drawing, instance);
    }
}

static const char *title_of(struct plan_drawing *drawing, const struct plan *plan)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    str_addf(&text, "%d GPU%s for %zu service%s", plan->gpus_used,
             plan->gpus_used == 1 ? "" : "s", plan->services.count,
             plan->services.count == 1 ? "" : "s");
    if (plan->status == PLAN_OPTIMAL)
        str_add(&text, ", proved optimal");
    if (plan->emulated)
        str_add(&text, " (emulated)");
    return arena_strdup(&drawing->arena, text.bytes);
}

static void drawing_init(struct plan_drawing *drawing, const struct plan *plan)
{
    *drawing = (struct plan_drawing){0};
    for (size_t i = 0; i < plan->gpus.count; i++)
        add_gpu(drawing, plan, &plan->gpus.data[i]);
    for (size_t i = 0; i < plan->services.count; i++)
        *vec_push(&drawing->keys) = (struct draw_key){.label = plan->services.data[i].name,
                                                      .colour = service_colour((int)i)};
    drawing->picture = (struct layout_picture){.title = title_of(drawing, plan),
                                               .gpus = drawing->gpus.data,
                                               .gpu_count = drawing->gpus.count,
                                               .keys = drawing->keys.data,
                                               .key_count = drawing->keys.count};
}

/* No GPU, no grid: a plan that needs none, or one that is infeasible. */
static bool add_empty(const struct plan *plan, const char *before, const char *after,
                      struct str *text)
{
    if (plan->gpus.count > 0)
        return false;
    str_addf(text, "%s%s%s", before,
             plan->status == PLAN_INFEASIBLE ? "no plan: infeasible" : "no GPU is needed",
             after);
    return true;
}

static void drawing_done(struct plan_drawing *drawing)
{
    vec_done(&drawing->gpus);
    vec_done(&drawing->keys);
    arena_done(&drawing->arena);
}

void plan_picture_svg(const struct plan *plan, struct str *svg)
{
    struct plan_drawing drawing;
    if (add_empty(plan,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"320\" height=\"40\">"
                  "<text x=\"16\" y=\"25\" font-family=\"sans-serif\" fill=\"#5c6670\">",
                  "</text></svg>\n", svg))
        return;
    drawing_init(&drawing, plan);
    layout_picture_svg(&drawing.picture, svg);
    drawing_done(&drawing);
}

void plan_picture_text(const struct plan *plan, bool colour, struct str *text)
{
    struct plan_drawing drawing;
    if (add_empty(plan, "", "\n", text))
        return;
    drawing_init(&drawing, plan);
    layout_picture_text(&drawing.picture, colour, text);
    drawing_done(&drawing);
}
