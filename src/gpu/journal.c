/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing and reading the journal of a change; see journal.h.
 */
#include "gpu/journal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"

#define JOURNAL_SCHEMA "tranche.gpu-journal/1"

static char *layout_text(const struct gpu *gpu, const struct gpu_layout *layout)
{
    struct str text = STR_EMPTY;
    gpu_layout_format(&gpu->live->board, layout, &text);
    return str_take(&text);
}

void gpu_journal_make(const struct gpu_inventory *inventory,
                      const struct gpu_target_list *targets, const char *request,
                      struct gpu_journal *ret_journal)
{
    struct gpu_journal journal = {.request = xstrdup(request)};

    assert(request && *request);
    for (size_t i = 0; i < targets->items.count; i++) {
        const struct gpu_target *target = &targets->items.data[i];
        const struct gpu *gpu = &inventory->gpus.data[target->gpu];
        if (!gpu->live)
            continue;
        struct gpu_journal_gpu *record = vec_push(&journal.gpus);
        *record = (struct gpu_journal_gpu){.mig_before = gpu->mode.current,
                                           .mig_target = target->mig_enabled,
                                           .keep_instances = target->keep_instances,
                                           .before = layout_text(gpu, &gpu->layout),
                                           .target = layout_text(gpu, &target->layout)};
        snprintf(record->uuid, sizeof record->uuid, "%s", gpu->identity.uuid);
    }
    *ret_journal = journal;
}

void gpu_journal_done(struct gpu_journal *journal)
{
    for (size_t i = 0; i < journal->gpus.count; i++) {
        free(journal->gpus.data[i].before);
        free(journal->gpus.data[i].target);
    }
    vec_done(&journal->gpus);
    free(journal->request);
    *journal = (struct gpu_journal){0};
}

static json_t *side_to_json(bool enabled, const char *layout)
{
    return json_pack("{s:b, s:s}", "mig_enabled", enabled, "layout", layout);
}

void gpu_journal_path(const char *state_dir, struct str *path)
{
    assert(state_dir);
    str_addf(path, "%s/gpu-journal.json", state_dir);
}

int gpu_journal_write(const struct gpu_journal *journal, const char *path, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    json_t *gpus = json_array();

    assert(journal->request && path);
    for (size_t i = 0; i < journal->gpus.count; i++) {
        const struct gpu_journal_gpu *gpu = &journal->gpus.data[i];
        json_t *json = json_pack("{s:s, s:o, s:o}", "uuid", gpu->uuid, "before",
                                 side_to_json(gpu->mig_before, gpu->before), "target",
                                 side_to_json(gpu->mig_target, gpu->target));
        if (gpu->keep_instances)
            json_object_set_new(json, "keep_instances", json_true());
        json_array_append_new(gpus, json);
    }
    CLEANUP(json_decref_ptr)
    json_t *root = json_pack("{s:s, s:s, s:o}", "schema", JOURNAL_SCHEMA, "request",
                             journal->request, "gpus", gpus);
    json_write_pretty(root, &text);
    return file_write(path, text.bytes, text.length, err);
}

static int read_side(const struct json_place *place, const json_t *object, const char *key,
                     bool *ret_enabled, char **ret_layout, struct error *err)
{
    const json_t *side;
    const char *layout = NULL;
    struct json_place inner = {.file = place->file, .parent = place, .key = key};

    int r = json_get_object(place, object, key, true, &side, err);
    if (r || (r = json_get_bool(&inner, side, "mig_enabled", true, ret_enabled, err)) ||
        (r = json_get_text(&inner, side, "layout", true, &layout, err)))
        return r;
    *ret_layout = xstrdup(layout);
    return 0;
}

static int read_gpu(const struct json_place *place, const json_t *object,
                    struct gpu_journal_gpu *gpu, struct error *err)
{
    const char *uuid = NULL;
    int r = json_get_text(place, object, "uuid", true, &uuid, err);

    if (r || (r = read_side(place, object, "before", &gpu->mig_before, &gpu->before, err)) ||
        (r = read_side(place, object, "target", &gpu->mig_target, &gpu->target, err)) ||
        (r = json_get_bool(place, object, "keep_instances", false, &gpu->keep_instances, err)))
        return r;
    snprintf(gpu->uuid, sizeof gpu->uuid, "%s", uuid);
    return 0;
}

static int read_root(const char *path, const json_t *root, struct gpu_journal *journal,
                     struct error *err)
{
    struct json_place place = {.file = path};
    struct json_place list = {.file = path, .parent = &place, .key = "gpus"};
    const char *schema = NULL, *request = NULL;
    const json_t *gpus;

    int r = json_get_text(&place, root, "schema", true, &schema, err);
    if (!r && strcmp(schema, JOURNAL_SCHEMA))
        r = json_error_at(&place, err, "schema is \"%.60s\", expected %s", schema,
                          JOURNAL_SCHEMA);
    if (r || (r = json_get_text(&place, root, "request", true, &request, err)) ||
        (r = json_get_list(&place, root, "gpus", true, &gpus, err)))
        return r;
    journal->request = xstrdup(request);
    for (size_t i = 0; !r && i < json_array_size(gpus); i++) {
        struct json_place item = {.file = path, .parent = &list, .index = i};
        r = read_gpu(&item, json_array_get(gpus, i), vec_push(&journal->gpus), err);
    }
    return r;
}

int gpu_journal_read(const char *path, struct gpu_journal *ret_journal, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    struct gpu_journal journal = {0};

    if (access(path, F_OK) && errno == ENOENT)
        return error_set(err, E_NOT_FOUND, "%s: no change was cut short", path);
    int r = json_read(path, &root, err);
    if (!r)
        r = read_root(path, root, &journal, err);
    if (r) {
        gpu_journal_done(&journal);
        return error_wrap(err, "the journal of an earlier change is damaged");
    }
    *ret_journal = journal;
    return 0;
}

static int add_target(const struct gpu_journal_gpu *record, enum gpu_journal_side side,
                      const struct gpu_inventory *inventory, struct gpu_target_list *list,
                      struct error *err)
{
    bool before = side == GPU_JOURNAL_BEFORE;

    assert(record->before && record->target);
    struct gpu_target target = {.mig_enabled = before ? record->mig_before : record->mig_target,
                                .keep_instances = !before && record->keep_instances};

    int r = gpu_inventory_find(inventory, record->uuid, &target.gpu, err);
    if (r)
        return r;
    const struct gpu *gpu = &inventory->gpus.data[target.gpu];
    if (target.mig_enabled && gpu->live)
        r = gpu_layout_parse(gpu->live, before ? record->before : record->target,
                             &target.layout, err);
    return r ? r : gpu_target_add(inventory, list, &target, err);
}

int gpu_journal_targets(const struct gpu_journal *journal, enum gpu_journal_side side,
                        const struct gpu_inventory *inventory,
                        struct gpu_target_list *ret_targets, struct error *err)
{
    struct gpu_target_list list;
    int r = 0;

    gpu_target_list_init(&list);
    for (size_t i = 0; !r && i < journal->gpus.count; i++)
        r = add_target(&journal->gpus.data[i], side, inventory, &list, err);
    if (r) {
        gpu_target_list_done(&list);
        return error_wrap(err, "the journal of an earlier change");
    }
    *ret_targets = list;
    return 0;
}
