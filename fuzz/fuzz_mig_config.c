/* SPDX-License-Identifier: Apache-2.0
 *
 * mig-parted's config format: what is read is written and read again, and turned into
 * targets on a machine of two boards; complaints name a place.
 */
#include <assert.h>

#include "fuzz.h"
#include "gpu/target.h"

static struct gpu_inventory inventory;

static void make_machine(void)
{
    static const char *const slugs[] = {"a100-40gb", "h100-80gb-sxm5"};

    for (int i = 0; i < 2; i++) {
        struct gpu *gpu = vec_push(&inventory.gpus);
        gpu->processes_unknown = STR_EMPTY;
        gpu->live = live_board_of_table(mig_board_find(slugs[i]));
        gpu->identity.index = i;
        gpu->identity.mig_capable = true;
        gpu->identity.pci_device_id = gpu->live->table->pci_device_ids[0];
    }
}

static void check_targets(const struct mig_config_file *file, const struct mig_config *config)
{
    struct gpu_target_list targets;
    struct error err = {0};

    if (gpu_targets_from_config(&inventory, file, config, &targets, &err) < 0) {
        assert(err.code == E_INPUT || err.code == E_NO);
        return;
    }
    for (size_t i = 0; i < targets.items.count; i++)
        assert(gpu_target_check(&inventory, &targets.items.data[i], NULL) == 0);
    gpu_target_list_done(&targets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(str_done) struct str written = STR_EMPTY;
    struct mig_config_file file, again;
    struct error err = {0};

    if (!inventory.gpus.count)
        make_machine();
    if (mig_config_parse("fuzz", (const char *)data, size, &file, &err) < 0) {
        assert(err.code == E_INPUT && strncmp(err.text, "fuzz", 4) == 0);
        return 0;
    }
    mig_config_format(&file, &written);
    int r = mig_config_parse("written", written.bytes, written.length, &again, &err);
    assert(r == 0 && again.configs.count == file.configs.count);
    (void)r;
    for (size_t i = 0; i < file.configs.count; i++) {
        assert(strcmp(file.configs.data[i].name, again.configs.data[i].name) == 0);
        check_targets(&file, &file.configs.data[i]);
    }
    mig_config_file_done(&file);
    mig_config_file_done(&again);
    return 0;
}
