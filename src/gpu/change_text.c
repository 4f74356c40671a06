/* SPDX-License-Identifier: Apache-2.0
 *
 * A planned change in words and as JSON.
 */
#include <assert.h>

#include "base/cleanup.h"
#include "gpu/change.h"

static const char *const step_words[GPU_STEP_KIND_COUNT] = {
    [GPU_STEP_DESTROY_CI] = "destroy_ci", [GPU_STEP_DESTROY_GI] = "destroy_gi",
    [GPU_STEP_ENABLE_MIG] = "enable_mig", [GPU_STEP_DISABLE_MIG] = "disable_mig",
    [GPU_STEP_CREATE_GI] = "create_gi",   [GPU_STEP_CREATE_CI] = "create_ci",
};

static void add_instance(const struct gpu *gpu, struct mig_instance instance, struct str *text)
{
    struct mig_layout one = {.count = 1, .instances = {instance}};
    mig_layout_format(&gpu->live->board, &one, text);
}

void gpu_step_describe(const struct gpu_inventory *inventory, const struct gpu_step *step,
                       struct str *text)
{
    const struct gpu *gpu = &inventory->gpus.data[step->gpu];
    bool creates = step->kind == GPU_STEP_CREATE_GI || step->kind == GPU_STEP_CREATE_CI;

    assert(step->kind < GPU_STEP_KIND_COUNT);
    if (step->kind == GPU_STEP_ENABLE_MIG || step->kind == GPU_STEP_DISABLE_MIG) {
        str_addf(text, "%s MIG", step->kind == GPU_STEP_ENABLE_MIG ? "enable" : "disable");
    } else {
        str_add(text, creates ? "create " : "destroy ");
        if (step->kind == GPU_STEP_CREATE_CI || step->kind == GPU_STEP_DESTROY_CI)
            str_addf(text, "compute instance %dc in ", step->ci_slices);
        add_instance(gpu, step->instance, text);
    }
    str_addf(text, " on GPU %d (%s)", gpu->identity.index, gpu->identity.uuid);
}

static void add_layout(const struct gpu *gpu, const char *word, const struct mig_layout *layout,
                       struct str *text)
{
    if (!layout->count)
        return;
    str_addf(text, "%s ", word);
    mig_layout_format(&gpu->live->board, layout, text);
}

static void describe_mode(const struct gpu *gpu, const struct gpu_effect *effect,
                          struct str *text)
{
    str_addf(text, "MIG is %s", effect->mig_enabled ? "enabled" : "disabled");
    if (effect->needs_reset)
        str_addf(text,
                 ", which needs a reset of this GPU alone (all its clients gone, else the "
                 "change stays pending until nvidia-smi --gpu-reset -i %s or a reboot)",
                 gpu->identity.pci_bus_id);
    str_add(text, "; ");
}

static void describe_effect(const struct gpu *gpu, const struct gpu_effect *effect,
                            struct str *text)
{
    if (!gpu_effect_disturbs(effect)) {
        str_add(text, "is as wanted, not touched");
        return;
    }
    str_add(text, effect->mode_change ? "mode change: " : "instances only: ");
    if (effect->mode_change)
        describe_mode(gpu, effect, text);
    if (effect->keep.count)
        add_layout(gpu, "keeps", &effect->keep, text);
    else
        str_add(text, "keeps nothing");
    add_layout(gpu, ", destroys", &effect->remove, text);
    add_layout(gpu, ", creates", &effect->create, text);
    if (effect->compute_changes)
        str_addf(text, ", changes %d compute instances inside kept ones",
                 effect->compute_changes);
    if (effect->enabled_and_empty)
        str_add(text, effect->result.count
                          ? "; for a moment MIG is on without an instance, which stops device "
                            "plugins that are running"
                          : "; MIG stays on without an instance, which stops device plugins "
                            "and Slurm (AutoDetect=nvml)");
}

static const struct gpu_effect *effect_of(const struct gpu_change *change, size_t gpu)
{
    for (size_t i = 0; i < change->effects.count; i++)
        if (change->effects.data[i].gpu == gpu)
            return &change->effects.data[i];
    return NULL;
}

/* Containers name MIG devices by a CDI specification that somebody wrote before; nothing
 * writes it anew when devices come and go (user report R12). */
static void describe_what_follows(const struct gpu_change *change, struct str *text)
{
    if (change->steps.count > 0)
        str_add(
            text,
            "then MIG devices are others: regenerate the CDI specification where containers "
            "use one (nvidia-ctk cdi generate)\n");
}

void gpu_change_describe(const struct gpu_inventory *inventory, const struct gpu_change *change,
                         struct str *text)
{
    for (size_t i = 0; i < inventory->gpus.count; i++) {
        const struct gpu *gpu = &inventory->gpus.data[i];
        const struct gpu_effect *effect = effect_of(change, i);
        gpu_describe(gpu, text);
        str_add(text, ": ");
        if (effect)
            describe_effect(gpu, effect, text);
        else
            str_add(text, "not named, not touched");
        str_add_char(text, '\n');
    }
    for (size_t i = 0; i < change->steps.count; i++) {
        str_addf(text, "%3zu  ", i + 1);
        gpu_step_describe(inventory, &change->steps.data[i], text);
        str_add_char(text, '\n');
    }
    describe_what_follows(change, text);
}

static json_t *layout_to_json(const struct gpu *gpu, const struct mig_layout *layout)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    mig_layout_format(&gpu->live->board, layout, &text);
    return json_string(text.bytes);
}

static json_t *effect_to_json(const struct gpu *gpu, const struct gpu_effect *effect)
{
    CLEANUP(str_done) struct str result = STR_EMPTY;
    json_t *json =
        json_pack("{s:s, s:i, s:b, s:b, s:b}", "gpu", gpu->identity.uuid, "index",
                  gpu->identity.index, "disturbed", gpu_effect_disturbs(effect), "mode_change",
                  effect->mode_change, "needs_reset", effect->needs_reset);

    if (!gpu->live)
        return json;
    gpu_layout_format(&gpu->live->board, &effect->result, &result);
    json_object_set_new(json, "mig_enabled", json_boolean(effect->mig_enabled));
    json_object_set_new(json, "keep", layout_to_json(gpu, &effect->keep));
    json_object_set_new(json, "remove", layout_to_json(gpu, &effect->remove));
    json_object_set_new(json, "create", layout_to_json(gpu, &effect->create));
    json_object_set_new(json, "layout", json_string(result.bytes));
    return json;
}

static json_t *step_to_json(const struct gpu *gpu, const struct gpu_step *step)
{
    json_t *json =
        json_pack("{s:s, s:s}", "kind", step_words[step->kind], "gpu", gpu->identity.uuid);

    if (step->kind == GPU_STEP_ENABLE_MIG || step->kind == GPU_STEP_DISABLE_MIG)
        return json;
    json_object_set_new(json, "slice",
                        json_string(gpu->live->profiles[step->instance.profile].name));
    json_object_set_new(json, "start", json_integer(step->instance.start));
    if (step->kind == GPU_STEP_CREATE_CI || step->kind == GPU_STEP_DESTROY_CI)
        json_object_set_new(json, "compute_slices", json_integer(step->ci_slices));
    return json;
}

json_t *gpu_change_to_json(const struct gpu_inventory *inventory,
                           const struct gpu_change *change)
{
    json_t *effects = json_array(), *steps = json_array();

    for (size_t i = 0; i < change->effects.count; i++)
        json_array_append_new(effects,
                              effect_to_json(&inventory->gpus.data[change->effects.data[i].gpu],
                                             &change->effects.data[i]));
    for (size_t i = 0; i < change->steps.count; i++)
        json_array_append_new(steps,
                              step_to_json(&inventory->gpus.data[change->steps.data[i].gpu],
                                           &change->steps.data[i]));
    return json_pack("{s:s, s:o, s:o}", "schema", "tranche.gpu-change/1", "gpus", effects,
                     "steps", steps);
}
