/* SPDX-License-Identifier: Apache-2.0
 *
 * See machine.h.
 */
#include "runtime/machine.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/memory.h"
#include "gpu/apply.h"

static void gpu_done(struct machine_gpu *gpu)
{
    free(gpu->id);
    free(gpu->found);
}

void machine_done(struct machine *machine)
{
    for (size_t i = 0; i < machine->gpus.count; i++)
        gpu_done(&machine->gpus.data[i]);
    vec_done(&machine->gpus);
    free(machine->gpu_state_folder);
    gpu_driver_close(&machine->driver);
    *machine = (struct machine){0};
}

int machine_open(struct machine *machine, const char *driver, const char *library,
                 struct error *err)
{
    CLEANUP(str_done) struct str folder = STR_EMPTY;
    *machine = (struct machine){0};
    int failed = gpu_driver_kind_get(driver, &machine->kind, err);
    if (failed)
        return failed;
    struct gpu_driver_options options = {.kind = machine->kind, .library = library};
    failed = gpu_driver_open(&options, &machine->driver, err);
    if (failed)
        return failed;
    gpu_state_dir(machine->kind, &folder);
    machine->gpu_state_folder = str_take(&folder);
    return 0;
}

int machine_find(const struct machine *machine, const char *id)
{
    for (size_t i = 0; i < machine->gpus.count; i++)
        if (machine->gpus.data[i].id && strcmp(machine->gpus.data[i].id, id) == 0)
            return (int)i;
    return -1;
}

/* ---- taking GPUs ------------------------------------------------------------------ */

static const struct mig_board *board_of(const struct gpu *gpu)
{
    if (gpu->live && gpu->live->table)
        return gpu->live->table;
    return mig_board_by_pci(gpu->identity.pci_device_id);
}

static bool is_taken(const struct machine *machine, const char *uuid)
{
    for (size_t i = 0; i < machine->gpus.count; i++)
        if (strcmp(machine->gpus.data[i].uuid, uuid) == 0)
            return true;
    return false;
}

/* The line of a layout file that is about this GPU. */
static char *find_line(const struct gpu_inventory *inventory, const char *uuid)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    gpu_export_layouts(inventory, &text);
    for (const char *line = text.bytes; *line;) {
        size_t length = strcspn(line, "\n");
        if (text_starts_with(line, uuid))
            return xstrndup(line, length);
        line += length + (line[length] == '\n');
    }
    return NULL;
}

/* The best free GPU: named by the id, else the first without instances, else any. */
static const struct gpu *choose(const struct machine *machine,
                                const struct gpu_inventory *inventory, const char *id,
                                const struct mig_board *board)
{
    const struct gpu *best = NULL;
    for (size_t i = 0; i < inventory->gpus.count; i++) {
        const struct gpu *gpu = &inventory->gpus.data[i];
        if (board_of(gpu) != board || is_taken(machine, gpu->identity.uuid))
            continue;
        if (strcmp(gpu->identity.uuid, id) == 0)
            return gpu;
        if (!best || (best->instances.count > 0 && gpu->instances.count == 0))
            best = gpu;
    }
    return best;
}

int machine_take(struct machine *machine, const char *id, const struct mig_board *board,
                 int *ret_gpu, struct error *err)
{
    CLEANUP(gpu_inventory_done) struct gpu_inventory inventory = {0};
    for (size_t i = 0; i < machine->gpus.count; i++) {
        struct machine_gpu *gpu = &machine->gpus.data[i];
        /* First one that an earlier plan has given back. */
        if (gpu->id || gpu->board != board)
            continue;
        gpu->id = xstrdup(id);
        *ret_gpu = (int)i;
        return 0;
    }
    int failed = gpu_inventory_read(&machine->driver, &inventory, err);
    if (failed)
        return failed;
    const struct gpu *gpu = choose(machine, &inventory, id, board);
    if (!gpu)
        return error_set(err, E_MISSING, "GPU %s of the plan: no free %s on this machine", id,
                         board->slug);
    int number = (int)machine->gpus.count;
    struct machine_gpu *taken = vec_push(&machine->gpus);
    *taken = (struct machine_gpu){.id = xstrdup(id),
                                  .board = board,
                                  .number = number,
                                  .found = gpu->live ? find_line(&inventory, gpu->identity.uuid)
                                                     : NULL};
    memcpy(taken->uuid, gpu->identity.uuid, sizeof taken->uuid);
    *ret_gpu = number;
    return 0;
}

json_t *machine_gpu_to_json(const struct machine_gpu *gpu)
{
    return json_pack("{s:s, s:s?, s:s, s:i, s:s, s:s?}", "record", "gpu", "id", gpu->id, "uuid",
                     gpu->uuid, "number", gpu->number, "board", gpu->board->slug, "found",
                     gpu->found);
}

int machine_retake(struct machine *machine, const json_t *record, struct error *err)
{
    struct json_place place = {.file = "journal"};
    const char *id = NULL, *uuid, *slug, *found = NULL;
    long long number;
    const struct mig_board *board;
    int failed = json_get_text(&place, record, "id", false, &id, err);
    if (!failed)
        failed = json_get_text(&place, record, "uuid", true, &uuid, err);
    if (!failed)
        failed = json_get_text(&place, record, "board", true, &slug, err);
    if (!failed)
        failed = json_get_text(&place, record, "found", false, &found, err);
    if (!failed)
        failed = json_get_int(&place, record, "number", true, 0, 100000, &number, err);
    if (!failed)
        failed = mig_board_get(slug, &board, err);
    if (failed)
        return failed;
    for (size_t i = 0; i < machine->gpus.count; i++)
        if (strcmp(machine->gpus.data[i].uuid, uuid) == 0) { /* a later record of it */
            free(machine->gpus.data[i].id);
            machine->gpus.data[i].id = xstrdup(id);
            return 0;
        }
    struct machine_gpu *gpu = vec_push(&machine->gpus);
    *gpu = (struct machine_gpu){
        .id = xstrdup(id), .board = board, .number = (int)number, .found = xstrdup(found)};
    snprintf(gpu->uuid, sizeof gpu->uuid, "%s", uuid);
    return 0;
}

/* ---- layouts ---------------------------------------------------------------------- */

/* What a call of gpu_apply() asks for. */
struct wish {
    const struct machine *machine;
    const struct plan *plan; /* all of its GPUs, or … */
    int gpu;                 /* … one instance of one GPU */
    const char *slice;
    int start;
    bool create;
    bool clear; /* … or none at all of it */
};

static int find_gpu(const struct gpu_inventory *inventory, const char *uuid, size_t *ret_index,
                    struct error *err)
{
    for (size_t i = 0; i < inventory->gpus.count; i++)
        if (strcmp(inventory->gpus.data[i].identity.uuid, uuid) == 0) {
            *ret_index = i;
            return 0;
        }
    return error_set(err, E_MISSING, "GPU %s is gone", uuid);
}

static int add_slice(const struct gpu *gpu, const char *slice, int start,
                     struct gpu_layout *layout, struct error *err)
{
    int profile;
    int failed = live_board_profile_get(gpu->live, slice, &profile, NULL, err);
    if (failed)
        return failed;
    struct mig_instance instance = {.profile = (int8_t)profile, .start = (int8_t)start};
    for (int i = 0; i < layout->count; i++)
        if (layout->slices[i].gi.profile == profile && layout->slices[i].gi.start == start)
            return 0;
    if (layout->count == MIG_INSTANCES_MAX)
        return error_set(err, E_NO, "GPU %s: more instances than any board has",
                         gpu->identity.uuid);
    layout->slices[layout->count++] = gpu_slice_default(&gpu->live->board, instance);
    gpu_layout_sort(layout);
    return 0;
}

static int remove_slice(const struct gpu *gpu, const char *slice, int start,
                        struct gpu_layout *layout, struct error *err)
{
    int profile, kept = 0;
    int failed = live_board_profile_get(gpu->live, slice, &profile, NULL, err);
    if (failed)
        return failed;
    for (int i = 0; i < layout->count; i++)
        if (layout->slices[i].gi.profile != profile || layout->slices[i].gi.start != start)
            layout->slices[kept++] = layout->slices[i];
    layout->count = kept;
    return 0;
}

static int add_plan_target(const struct wish *wish, const struct plan_gpu *wanted,
                           const struct gpu_inventory *inventory,
                           struct gpu_target_list *targets, struct error *err)
{
    int index = machine_find(wish->machine, wanted->id);
    struct gpu_target target = {.mig_enabled = true};
    assert(index >= 0);
    int failed = find_gpu(inventory, wish->machine->gpus.data[index].uuid, &target.gpu, err);
    if (failed)
        return failed;
    const struct gpu *gpu = &inventory->gpus.data[target.gpu];
    if (!gpu->live || !wanted->board->has_mig)
        return 0;
    for (size_t i = 0; i < wanted->instances.count && !failed; i++) {
        const struct plan_instance *instance = &wanted->instances.data[i];
        failed = add_slice(gpu, wanted->board->profiles[instance->profile].name,
                           instance->start, &target.layout, err);
    }
    return failed ? failed : gpu_target_add(inventory, targets, &target, err);
}

static int make_targets(void *context, const struct gpu_inventory *inventory,
                        struct gpu_target_list *ret_targets, struct error *err)
{
    const struct wish *wish = context;
    int failed = 0;
    for (size_t i = 0; wish->plan && i < wish->plan->gpus.count && !failed; i++)
        failed = add_plan_target(wish, &wish->plan->gpus.data[i], inventory, ret_targets, err);
    if (wish->plan || failed)
        return failed;
    const struct machine_gpu *mine = &wish->machine->gpus.data[wish->gpu];
    struct gpu_target target = {.mig_enabled = true};
    failed = find_gpu(inventory, mine->uuid, &target.gpu, err);
    if (failed)
        return failed;
    const struct gpu *gpu = &inventory->gpus.data[target.gpu];
    if (!gpu->live)
        return error_set(err, E_UNSUPPORTED, "GPU %s has no MIG", mine->uuid);
    if (wish->clear)
        return gpu_target_add(inventory, ret_targets, &target, err);
    target.layout = gpu->layout;
    failed = (wish->create ? add_slice : remove_slice)(gpu, wish->slice, wish->start,
                                                       &target.layout, err);
    return failed ? failed : gpu_target_add(inventory, ret_targets, &target, err);
}

static int apply(struct machine *machine, struct gpu_request *request, struct error *err)
{
    struct gpu_apply_options options = {.state_dir = machine->gpu_state_folder};
    CLEANUP(gpu_apply_report_done) struct gpu_apply_report report;
    gpu_apply_report_init(&report);
    return gpu_apply(&machine->driver, request, &options, &report, err);
}

int machine_apply_plan(struct machine *machine, const struct plan *plan, struct error *err)
{
    struct wish wish = {.machine = machine, .plan = plan};
    struct gpu_request request = {
        .targets = make_targets, .context = &wish, .text = "tranche up"};
    return apply(machine, &request, err);
}

int machine_change(struct machine *machine, int gpu, const char *slice, int start, bool create,
                   struct error *err)
{
    assert(gpu >= 0 && (size_t)gpu < machine->gpus.count);
    if (!machine->gpus.data[gpu].board->has_mig)
        return 0;
    struct wish wish = {
        .machine = machine, .gpu = gpu, .slice = slice, .start = start, .create = create};
    CLEANUP(free_ptr)
    char *text = xasprintf("tranche apply: %s %s@%d on %s", create ? "create" : "delete", slice,
                           start, machine->gpus.data[gpu].uuid);
    struct gpu_request request = {.targets = make_targets, .context = &wish, .text = text};
    return apply(machine, &request, err);
}

int machine_clear(struct machine *machine, int gpu, struct error *err)
{
    struct wish wish = {.machine = machine, .gpu = gpu, .clear = true};
    CLEANUP(free_ptr)
    char *text = xasprintf("tranche apply: clear %s", machine->gpus.data[gpu].uuid);
    struct gpu_request request = {.targets = make_targets, .context = &wish, .text = text};
    return machine->gpus.data[gpu].board->has_mig ? apply(machine, &request, err) : 0;
}

void machine_forget_ids(struct machine *machine, const struct plan *plan)
{
    for (size_t i = 0; i < machine->gpus.count; i++) {
        struct machine_gpu *gpu = &machine->gpus.data[i];
        if (gpu->id && plan_find_gpu(plan, gpu->id) < 0) {
            free(gpu->id);
            gpu->id = NULL;
        }
    }
}

int machine_device(struct machine *machine, int gpu, const char *slice, int start,
                   char ret_uuid[GPU_TEXT_SIZE], struct error *err)
{
    const struct machine_gpu *mine = &machine->gpus.data[gpu];
    struct gpu_gi_list list;
    if (!mine->board->has_mig) {
        snprintf(ret_uuid, GPU_TEXT_SIZE, "%s", mine->uuid);
        return 0;
    }
    int failed = machine->driver.ops->instances(machine->driver.self, mine->uuid, &list, err);
    if (failed)
        return failed;
    for (int i = 0; i < list.count; i++)
        if (list.gi[i].start == start && list.gi[i].ci_count > 0 && list.gi[i].ci[0].uuid[0]) {
            snprintf(ret_uuid, GPU_TEXT_SIZE, "%s", list.gi[i].ci[0].uuid);
            return 0;
        }
    return error_set(err, E_NOT_FOUND, "GPU %s: no MIG device %s@%d", mine->uuid, slice, start);
}

int machine_resume(struct machine *machine, struct error *err)
{
    struct gpu_apply_options options = {.state_dir = machine->gpu_state_folder};
    CLEANUP(gpu_apply_report_done) struct gpu_apply_report report;
    gpu_apply_report_init(&report);
    int failed = gpu_apply_resume(&machine->driver, &options, &report, err);
    return failed && err->code == E_NOT_FOUND ? 0 : failed;
}

static int restore_targets(void *context, const struct gpu_inventory *inventory,
                           struct gpu_target_list *ret_targets, struct error *err)
{
    const struct machine *machine = context;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    for (size_t i = 0; i < machine->gpus.count; i++)
        if (machine->gpus.data[i].found)
            str_addf(&text, "%s\n", machine->gpus.data[i].found);
    return gpu_targets_from_layout_file(inventory, "layout found", text.bytes, ret_targets,
                                        err);
}

int machine_restore(struct machine *machine, struct error *err)
{
    struct gpu_request request = {
        .targets = restore_targets, .context = machine, .text = "tranche down"};
    bool any = false;
    for (size_t i = 0; i < machine->gpus.count; i++)
        any = any || machine->gpus.data[i].found;
    return any ? apply(machine, &request, err) : 0;
}
