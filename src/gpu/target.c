/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests into targets, with lint; see target.h.
 */
#include "gpu/target.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text_input.h"

void gpu_target_list_init(struct gpu_target_list *list)
{
    *list = (struct gpu_target_list){.notes = STR_EMPTY};
}

void gpu_target_list_done(struct gpu_target_list *list)
{
    vec_done(&list->items);
    str_done(&list->notes);
}

static const struct gpu_target *find_target(const struct gpu_target_list *list, size_t gpu)
{
    for (size_t i = 0; i < list->items.count; i++)
        if (list->items.data[i].gpu == gpu)
            return &list->items.data[i];
    return NULL;
}

static int compare_targets(const void *a, const void *b)
{
    const struct gpu_target *x = a, *y = b;
    return (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

int gpu_target_add(const struct gpu_inventory *inventory, struct gpu_target_list *list,
                   const struct gpu_target *target, struct error *err)
{
    const struct gpu *gpu = &inventory->gpus.data[target->gpu];
    const struct gpu_target *old = find_target(list, target->gpu);

    assert(target->gpu < inventory->gpus.count);
    if (target->mig_enabled && !gpu->live)
        return error_set(err, E_INPUT,
                         "GPU %d (%s) has no MIG; leave it out, or name the boards that have "
                         "it (device-filter)",
                         gpu->identity.index, gpu->identity.name);
    if (old && (old->mig_enabled != target->mig_enabled ||
                old->keep_instances != target->keep_instances ||
                !gpu_layout_equal(&old->layout, &target->layout)))
        return error_set(err, E_INPUT, "GPU %d is asked to be two different things",
                         gpu->identity.index);
    if (old)
        return 0;
    vec_add(&list->items, *target);
    qsort(list->items.data, list->items.count, sizeof list->items.data[0], compare_targets);
    return 0;
}

int gpu_target_check(const struct gpu_inventory *inventory, const struct gpu_target *target,
                     struct error *err)
{
    const struct gpu *gpu = &inventory->gpus.data[target->gpu];
    struct mig_layout wanted, placed;

    assert(!target->mig_enabled || gpu->live);
    if (!target->mig_enabled || target->keep_instances)
        return 0;
    gpu_layout_instances(&target->layout, &wanted);
    int r = mig_layout_place(&gpu->live->board, &wanted, NULL, &placed, err);
    return r ? error_wrap(err, "GPU %d (%s)", gpu->identity.index, gpu->live->board.slug) : 0;
}

/* --- mig-parted configs --- */

static bool filter_matches(const struct mig_config_entry *entry, const struct gpu *gpu)
{
    for (size_t i = 0; i < entry->filters.count; i++)
        if (entry->filters.data[i] == gpu->identity.pci_device_id)
            return true;
    return !entry->filters.count;
}

static bool entry_matches(const struct mig_config_entry *entry, const struct gpu *gpu)
{
    if (!filter_matches(entry, gpu))
        return false;
    for (size_t i = 0; i < entry->devices.count; i++)
        if (entry->devices.data[i] == gpu->identity.index)
            return true;
    return entry->all;
}

static bool has_index(const struct gpu_inventory *inventory, int index)
{
    for (size_t i = 0; i < inventory->gpus.count; i++)
        if (inventory->gpus.data[i].identity.index == index)
            return true;
    return false;
}

static int check_indexes(const struct gpu_inventory *inventory, const char *path,
                         const struct mig_config_entry *entry, struct error *err)
{
    for (size_t i = 0; i < entry->devices.count; i++)
        if (!has_index(inventory, entry->devices.data[i]))
            return error_set(
                err, E_INPUT, "%s:%u:%u: there is no GPU %d; this machine has %zu, 0 to %zu",
                path, entry->line, entry->column, entry->devices.data[i], inventory->gpus.count,
                inventory->gpus.count ? inventory->gpus.count - 1 : 0);
    return 0;
}

/* One device name of a config on one board: "1c.3g.20gb" is width 1 of 3g.20gb. */
struct named_device {
    struct gpu_device_request request;
    const struct mig_config_device *source;
};

static int resolve_name(const struct live_board *live, const struct mig_config_device *device,
                        struct named_device *ret, struct gpu_target_list *list,
                        struct error *err)
{
    const char *name = device->name;
    bool alias = false;

    assert(device->count > 0);
    *ret = (struct named_device){.source = device, .request.count = device->count};
    if (name[0] >= '1' && name[0] <= '9' && name[1] == 'c' && name[2] == '.') {
        ret->request.ci_slices = name[0] - '0';
        name += 3;
    }
    int r = live_board_profile_get(live, name, &ret->request.profile, &alias, err);
    if (r)
        return r;
    const char *live_name = live->profiles[ret->request.profile].name;
    CLEANUP(str_done) struct str line = STR_EMPTY;
    str_addf(&line,
             "%s: this driver calls it %s; consumers that match the name (Slurm GRES, device "
             "plugin resources) must follow\n",
             name, live_name);
    if (alias && !strstr(list->notes.bytes, line.bytes))
        str_add(&list->notes, line.bytes);
    if (!ret->request.ci_slices)
        ret->request.ci_slices = live->profiles[ret->request.profile].compute_slices;
    return 0;
}

/* Wider compute instances first, so that the narrow ones fill what is left. */
static int compare_devices(const void *a, const void *b)
{
    const struct named_device *x = a, *y = b;

    if (x->request.ci_slices != y->request.ci_slices)
        return y->request.ci_slices - x->request.ci_slices;
    return x->request.profile - y->request.profile;
}

static int fill_layout(const struct live_board *live, const struct mig_config_entry *entry,
                       struct gpu_layout *ret, struct gpu_target_list *list, const char *path,
                       struct error *err)
{
    size_t count = entry->mig_devices.count;
    CLEANUP(free_ptr) struct named_device *devices = xcalloc(count, sizeof *devices);
    const struct mig_config_device *source = entry->mig_devices.data;
    int r = 0;

    for (size_t i = 0; !r && i < count; i++, source++)
        if ((r = resolve_name(live, source, &devices[i], list, err)))
            return error_wrap(err, "%s:%u:%u", path, source->line, source->column);
    qsort(devices, count, sizeof *devices, compare_devices);
    for (size_t i = 0; !r && i < count; i++) {
        r = gpu_layout_add_devices(&live->board, ret, devices[i].request, err);
        if (r)
            return error_wrap(err, "%s:%u:%u", path, devices[i].source->line,
                              devices[i].source->column);
    }
    gpu_layout_sort(ret);
    return 0;
}

static int add_entry(const struct gpu_inventory *inventory, const struct mig_config_file *file,
                     const struct mig_config_entry *entry, struct gpu_target_list *list,
                     struct error *err)
{
    int r = check_indexes(inventory, file->path, entry, err);

    for (size_t i = 0; !r && i < inventory->gpus.count; i++) {
        const struct gpu *gpu = &inventory->gpus.data[i];
        struct gpu_target target = {.gpu = i, .mig_enabled = entry->mig_enabled};
        if (!entry_matches(entry, gpu))
            continue;
        if (gpu->live &&
            (r = fill_layout(gpu->live, entry, &target.layout, list, file->path, err)))
            return r;
        r = gpu_target_add(inventory, list, &target, err);
        if (!r)
            r = gpu_target_check(inventory, &target, err);
        if (r)
            return error_wrap(err, "%s:%u:%u", file->path, entry->line, entry->column);
    }
    return r;
}

int gpu_targets_from_config(const struct gpu_inventory *inventory,
                            const struct mig_config_file *file, const struct mig_config *config,
                            struct gpu_target_list *ret_list, struct error *err)
{
    struct gpu_target_list list;
    int r = 0;

    gpu_target_list_init(&list);
    for (size_t i = 0; !r && i < config->entries.count; i++)
        r = add_entry(inventory, file, &config->entries.data[i], &list, err);
    if (!r && !list.items.count)
        r = error_set(err, E_INPUT,
                      "%s:%u:%u: config \"%s\" names no GPU of this machine (its device-filter "
                      "or devices match none)",
                      file->path, config->line, config->column, config->name);
    if (r) {
        gpu_target_list_done(&list);
        return r;
    }
    *ret_list = list;
    return 0;
}

/* --- layouts --- */

static int add_layout(const struct gpu_inventory *inventory, size_t gpu, const char *text,
                      struct gpu_target_list *list, struct error *err)
{
    assert(gpu < inventory->gpus.count && text);
    struct gpu_target target = {.gpu = gpu, .mig_enabled = strcmp(text, "off") != 0};
    const struct live_board *live = inventory->gpus.data[gpu].live;
    int r = 0;

    if (target.mig_enabled && live)
        r = gpu_layout_parse(live, text, &target.layout, err);
    if (!r)
        r = gpu_target_add(inventory, list, &target, err);
    return r ? r : gpu_target_check(inventory, &target, err);
}

int gpu_targets_from_layout(const struct gpu_inventory *inventory, const size_t *gpus,
                            size_t count, const char *layout, struct gpu_target_list *ret_list,
                            struct error *err)
{
    struct gpu_target_list list;
    int r = 0;

    gpu_target_list_init(&list);
    for (size_t i = 0; !r && i < count; i++)
        r = add_layout(inventory, gpus[i], layout, &list, err);
    if (r) {
        gpu_target_list_done(&list);
        return r;
    }
    *ret_list = list;
    return 0;
}

/* Splits "GPU: LAYOUT" at the colon before a blank, since PCI ids have colons too. */
static int add_line(const struct gpu_inventory *inventory, char *line,
                    struct gpu_target_list *list, struct error *err)
{
    char *separator = strstr(line, ": ");
    size_t gpu;

    if (!separator)
        return error_set(err, E_INPUT,
                         "expected \"GPU: LAYOUT\", as in 0: 4g@0 2g@4, or 1: off");
    *separator = '\0';
    char *layout = separator + 2 + strspn(separator + 2, " \t");
    int r = gpu_inventory_find(inventory, line, &gpu, err);
    return r ? r : add_layout(inventory, gpu, layout, list, err);
}

int gpu_targets_from_layout_file(const struct gpu_inventory *inventory, const char *name,
                                 const char *text, struct gpu_target_list *ret_list,
                                 struct error *err)
{
    static const char expected[] =
        "lines \"GPU: LAYOUT\", as in 0: 4g@0 2g@4, or mig-parted's config (version: v1)";
    struct text_input input;
    struct gpu_target_list list;
    unsigned number = 0;

    assert(inventory && name && text);
    int r = text_input_open(&input, name, text, strlen(text), expected, err);
    if (r)
        return r;
    CLEANUP(free_ptr) char *copy = xstrdup(input.bytes);
    gpu_target_list_init(&list);
    for (char *rest = copy, *line; !r && (line = strsep(&rest, "\n"));) {
        const char *start = line;
        number++;
        line[strcspn(line, "#\r")] = '\0';
        line += strspn(line, " \t");
        for (size_t end = strlen(line); end && strchr(" \t", line[end - 1]); end--)
            line[end - 1] = '\0';
        if (*line && (r = add_line(inventory, line, &list, err)))
            error_wrap(err, "%s:%u:%td", name, number, line - start + 1);
    }
    if (!r && !list.items.count)
        r = text_input_error(&input, input.length, err,
                             "the file ends without a layout, expected %s", expected);
    if (r) {
        gpu_target_list_done(&list);
        return r;
    }
    *ret_list = list;
    return 0;
}

/* --- comparing --- */

static size_t compare_layouts(const struct gpu *gpu, const struct gpu_target *target,
                              struct str *differences)
{
    const struct mig_board *board = &gpu->live->board;

    gpu_layout_assert(board, &target->layout);
    if (target->keep_instances || gpu_layout_satisfies(&gpu->layout, &target->layout))
        return 0;
    str_addf(differences, "GPU %d (%s): has ", gpu->identity.index, gpu->identity.uuid);
    gpu_layout_format(board, &gpu->layout, differences);
    str_add(differences, ", wanted is ");
    gpu_layout_format(board, &target->layout, differences);
    str_add_char(differences, '\n');
    return 1;
}

static size_t compare_target(const struct gpu *gpu, const struct gpu_target *target,
                             struct str *differences)
{
    if (!gpu->live)
        return 0; /* MIG is never asked of it, see gpu_target_add() */
    if (gpu->mode.current != target->mig_enabled) {
        str_addf(differences, "GPU %d (%s): MIG is %s%s, wanted is %s\n", gpu->identity.index,
                 gpu->identity.uuid, gpu->mode.current ? "enabled" : "disabled",
                 gpu->mode.pending == target->mig_enabled ? " (the change is pending)" : "",
                 target->mig_enabled ? "enabled" : "disabled");
        return 1;
    }
    return target->mig_enabled ? compare_layouts(gpu, target, differences) : 0;
}

size_t gpu_targets_compare(const struct gpu_inventory *inventory,
                           const struct gpu_target_list *list, struct str *differences)
{
    size_t count = 0;

    for (size_t i = 0; i < list->items.count; i++) {
        const struct gpu_target *target = &list->items.data[i];
        count += compare_target(&inventory->gpus.data[target->gpu], target, differences);
    }
    return count;
}
