/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine as a config file of mig-parted's format, merged as mig-parted's export merges,
 * and as a layout file.
 */
#include <assert.h>
#include <string.h>

#include "gpu/target.h"

static void add_device(struct mig_config_file *file, struct mig_config_entry *entry,
                       const struct mig_profile *profile, int ci_slices)
{
    const char *name = ci_slices == profile->compute_slices
                           ? arena_strdup(&file->arena, profile->name)
                           : arena_printf(&file->arena, "%dc.%s", ci_slices, profile->name);

    for (size_t i = 0; i < entry->mig_devices.count; i++)
        if (!strcmp(entry->mig_devices.data[i].name, name)) {
            entry->mig_devices.data[i].count++;
            return;
        }
    struct mig_config_device *device = vec_push(&entry->mig_devices);
    device->name = name;
    device->count = 1;
}

/* Numbers by value, 1g.5gb before 1g.10gb, as mig-parted's export sorts. */
static int compare_devices(const void *a, const void *b)
{
    const struct mig_config_device *x = a, *y = b;
    return strverscmp(x->name, y->name);
}

static void fill_entry(struct mig_config_file *file, const struct gpu *gpu,
                       struct mig_config_entry *entry)
{
    vec_add(&entry->devices, gpu->identity.index);
    vec_add(&entry->filters, gpu->identity.pci_device_id);
    entry->mig_enabled = gpu->live && gpu->mode.current;
    for (int i = 0; entry->mig_enabled && i < gpu->layout.count; i++) {
        const struct gpu_slice *slice = &gpu->layout.slices[i];
        for (int j = 0; j < slice->ci_count; j++)
            add_device(file, entry, &gpu->live->profiles[slice->gi.profile],
                       slice->ci_slices[j]);
    }
    if (entry->mig_devices.count)
        qsort(entry->mig_devices.data, entry->mig_devices.count,
              sizeof entry->mig_devices.data[0], compare_devices);
}

static bool same_devices(const struct mig_config_entry *a, const struct mig_config_entry *b)
{
    if (a->mig_enabled != b->mig_enabled || a->mig_devices.count != b->mig_devices.count)
        return false;
    for (size_t i = 0; i < a->mig_devices.count; i++)
        if (strcmp(a->mig_devices.data[i].name, b->mig_devices.data[i].name) ||
            a->mig_devices.data[i].count != b->mig_devices.data[i].count)
            return false;
    return true;
}

static bool has_filter(const struct mig_config_entry *entry, uint32_t id)
{
    for (size_t i = 0; i < entry->filters.count; i++)
        if (entry->filters.data[i] == id)
            return true;
    return false;
}

/* Adds one GPU to the entry that says the same, or as a new one. */
static void merge_gpu(struct mig_config_file *file, struct mig_config *config,
                      const struct gpu *gpu)
{
    struct mig_config_entry entry = {0};

    fill_entry(file, gpu, &entry);
    for (size_t i = 0; i < config->entries.count; i++) {
        struct mig_config_entry *old = &config->entries.data[i];
        if (!same_devices(old, &entry))
            continue;
        vec_add(&old->devices, gpu->identity.index);
        if (!has_filter(old, gpu->identity.pci_device_id))
            vec_add(&old->filters, gpu->identity.pci_device_id);
        vec_done(&entry.devices);
        vec_done(&entry.filters);
        vec_done(&entry.mig_devices);
        return;
    }
    vec_add(&config->entries, entry);
}

/* "all" when the entry has every GPU that its filters name; no filters where they say
 * nothing: one kind of board, or one entry. */
static void shorten_entry(const struct gpu_inventory *inventory, struct mig_config *config,
                          struct mig_config_entry *entry)
{
    size_t matching = 0;
    bool one_board = true;

    for (size_t i = 0; i < inventory->gpus.count; i++) {
        uint32_t id = inventory->gpus.data[i].identity.pci_device_id;
        matching += has_filter(entry, id);
        one_board = one_board && id == inventory->gpus.data[0].identity.pci_device_id;
    }
    if (matching == entry->devices.count) {
        entry->all = true;
        vec_clear(&entry->devices);
    }
    if (one_board || config->entries.count == 1)
        vec_clear(&entry->filters);
}

void gpu_export_config(const struct gpu_inventory *inventory, const char *name,
                       struct mig_config_file *ret_file)
{
    struct mig_config_file file = {.path = "(export)"};
    struct mig_config *config = vec_push(&file.configs);

    assert(name);
    config->name = arena_strdup(&file.arena, name);
    for (size_t i = 0; i < inventory->gpus.count; i++)
        merge_gpu(&file, config, &inventory->gpus.data[i]);
    for (size_t i = 0; i < config->entries.count; i++)
        shorten_entry(inventory, config, &config->entries.data[i]);
    *ret_file = file;
}

void gpu_export_layouts(const struct gpu_inventory *inventory, struct str *text)
{
    for (size_t i = 0; i < inventory->gpus.count; i++) {
        const struct gpu *gpu = &inventory->gpus.data[i];
        str_addf(text, "%s: ", gpu->identity.uuid);
        if (gpu->live && gpu->mode.current)
            gpu_layout_format(&gpu->live->board, &gpu->layout, text);
        else
            str_add(text, "off");
        str_addf(text, " # GPU %d, %s\n", gpu->identity.index, gpu->identity.name);
    }
}
