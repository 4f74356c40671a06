/* SPDX-License-Identifier: Apache-2.0
 *
 * What users of MIG reported of layouts, names, drivers and roll-outs, one test a report, with
 * the behaviour that they should have met. G: layouts and placement; N: names and tables; R:
 * apply and roll-out; U: device names. Reports of metrics (M) are in test_metrics.c; what a
 * user of the program meets (R16, R18) in tests/cli/test_user_reports.sh. Not of layouts or
 * drivers: labels of Kubernetes (those of R2 and R3, R7, R9), what a runtime makes of a UUID
 * (U1) and training over several ranks (U2, U3), which no service of the contract has.
 */
#include "wrap_driver.h"

#include <sys/wait.h>

#include "gpu/mps.h"
#include "sim/store.h"

static struct sim_box box;
static char fleet[128];

static void open_fleet(const char *text)
{
    box_close(&box);
    snprintf(fleet, sizeof fleet, "%s", text);
    box_open(&box, fleet);
}

static int set_up(void **state)
{
    (void)state;
    box_open(&box, "a100-40gb:1");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    box_close(&box);
    return 0;
}

/* The targets of one config text on the machine, read through driver. */
static int targets_of(const struct gpu_driver *driver, const char *config,
                      struct gpu_inventory *inventory, struct gpu_target_list *targets,
                      struct error *err)
{
    struct mig_config_file file = {0};
    const struct mig_config *chosen;
    if (gpu_inventory_read(driver, inventory, err))
        fail_msg("%s", err->text);
    int r = mig_config_parse("config.yaml", config, strlen(config), &file, err);
    if (r)
        return r;
    r = mig_config_select(&file, NULL, &chosen, err);
    if (!r)
        r = gpu_targets_from_config(inventory, &file, chosen, targets, err);
    mig_config_file_done(&file);
    return r;
}

#define CONFIG(devices, body)                                                                  \
    "version: v1\nmig-configs:\n  x:\n    - devices: " devices                                 \
    "\n      mig-enabled: true\n      mig-devices: {" body "}\n"

struct config_context {
    const char *config;
};

static int config_targets(void *context, const struct gpu_inventory *inventory,
                          struct gpu_target_list *ret, struct error *err)
{
    const struct config_context *given = context;
    struct mig_config_file file = {0};
    const struct mig_config *chosen;
    int r = mig_config_parse("config.yaml", given->config, strlen(given->config), &file, err);
    if (r)
        return r;
    r = mig_config_select(&file, NULL, &chosen, err);
    if (!r)
        r = gpu_targets_from_config(inventory, &file, chosen, ret, err);
    mig_config_file_done(&file);
    return r;
}

/* Applies a config; notes and plan are appended to said (may be NULL). */
static int apply_config(const struct gpu_driver *driver, const char *config, struct str *said,
                        struct error *err)
{
    struct config_context context = {config};
    struct gpu_request request = {
        .targets = config_targets, .context = &context, .text = config};
    struct gpu_apply_options options = {.state_dir = box.state_dir};
    struct gpu_apply_report report;
    gpu_apply_report_init(&report);
    int r = gpu_apply(driver, &request, &options, &report, err);
    if (said) {
        str_add(said, report.notes.bytes);
        str_add(said, report.plan.bytes);
    }
    gpu_apply_report_done(&report);
    return r;
}

static int apply_here(const char *config, struct str *said, struct error *err)
{
    struct gpu_driver driver;
    box_driver(&driver);
    int r = apply_config(&driver, config, said, err);
    gpu_driver_close(&driver);
    return r;
}

static void change_machine(void (*change)(struct sim_machine *machine))
{
    static struct sim_store store;
    struct error err;
    if (sim_store_open(&store, &err) || sim_store_lock(&store, true, &err))
        fail_msg("%s", err.text);
    change(&store.machine);
    assert_int_equal(sim_store_commit(&store, &err), 0);
    sim_store_unlock(&store, false);
    sim_store_close(&store);
}

/* This process computes on GPU 0: on its first GPU instance, or on the whole GPU. */
static void occupy_gpu_0(struct sim_machine *machine)
{
    struct sim_process process = {.pid = (uint32_t)getpid(),
                                  .gi = NVML_NO_INSTANCE_ID,
                                  .ci = NVML_NO_INSTANCE_ID,
                                  .name = "service"};
    for (unsigned gi = SIM_GI_IDS; gi-- > 0;)
        if (machine->gpus[0].gis[gi].used && machine->gpus[0].gis[gi].start == 0) {
            process.gi = gi;
            process.ci = 0;
        }
    assert_true(sim_add_process(machine, &process));
}

/* --- G: layouts and placement --- */

static void test_g1_sums_fit_and_placement_does_not(void **state)
{
    struct error err;
    (void)state;
    assert_int_equal(apply_here(CONFIG("[0]", "1g.10gb: 4, 1g.5gb: 3"), NULL, &err), -E_NO);
    assert_has(err.text, "config.yaml:4:7");
    assert_has(err.text, "4x1g.10gb and 3x1g.5gb");
    assert_has(err.text, "take 11 memory units, a100-40gb has 8");
    assert_layouts("off");
    assert_int_equal(apply_here(CONFIG("[0]", "3g.20gb: 1, 4g.20gb: 1"), NULL, &err), 0);
    assert_layouts("4g.20gb@0 3g.20gb@4");
}

static void test_g2_list_order_does_not_matter(void **state)
{
    struct error err;
    (void)state;
    assert_int_equal(apply_here(CONFIG("[0]", "1g.5gb: 2, 2g.10gb: 1, 3g.20gb: 1"), NULL, &err),
                     0);
    assert_layouts("2g.10gb@0 1g.5gb@2 1g.5gb@3 3g.20gb@4");
}

/* Two profiles a: {0, 4}, b: {0, 1}, as in the review of the report's fix. */
static void test_g3_greedy_refuses_what_search_finds(void **state)
{
    struct gpu_live_profile profiles[] = {
        {.nvml_enum = 0,
         .profile_id = 1,
         .name = "1g.1gb",
         .compute_slices = 1,
         .max_instances = 2,
         .placement_count = 2,
         .placements = {{0, 1}, {4, 1}}},
        {.nvml_enum = 1,
         .profile_id = 2,
         .name = "2g.1gb",
         .compute_slices = 2,
         .max_instances = 2,
         .placement_count = 2,
         .placements = {{0, 1}, {1, 1}}},
    };
    struct gpu_identity identity = {.name = "A board of the review"};
    struct live_board *live = live_board_new(&identity, profiles, 2);
    struct mig_layout wanted, placed;
    struct error err;
    (void)state;
    assert_int_equal(mig_layout_parse(&live->board, "1g 2g 2g", &wanted, &err), 0);
    if (mig_layout_place(&live->board, &wanted, NULL, &placed, &err))
        fail_msg("%s", err.text);
    /* "Impossible" is proved and exit status 1; there is no "gave up". */
    assert_int_equal(mig_layout_parse(&live->board, "2x1g 2x2g", &wanted, &err), 0);
    assert_int_equal(mig_layout_place(&live->board, &wanted, NULL, &placed, &err), -E_NO);
    live_board_free(live);
}

static void test_g4_leftovers_are_seen(void **state)
{
    CLEANUP(str_done) struct str said = STR_EMPTY;
    struct error err;
    (void)state;
    open_fleet("a100-80gb:1");
    box_must_apply(&box, "2g@0 2g@2 3g@4"); /* the 3g is in nobody's plan */
    assert_int_equal(apply_here(CONFIG("all", "2g.20gb: 2, 1g.10gb: 1"), &said, &err), 0);
    assert_has(said.bytes, "keeps 2g.20gb@0 2g.20gb@2, destroys 3g.40gb@4, creates 1g.10gb@4");
}

static void test_g5_result_is_checked_gpu_by_gpu(void **state)
{
    struct gpu_inventory inventory;
    struct gpu_target_list targets;
    CLEANUP(str_done) struct str differences = STR_EMPTY;
    char layouts[] = "4g 2g 1g|-|-|-";
    struct error err;
    (void)state;
    open_fleet("h100-80gb-pcie:4");
    box_must_apply(&box, "4g|4g|-|4g");
    box_read(&inventory);
    assert_int_equal(layouts_targets(layouts, &inventory, &targets, &err), 0);
    assert_int_equal(gpu_targets_compare(&inventory, &targets, &differences), 3);
    assert_has(differences.bytes, "has 4g.40gb@0, wanted is 1g.10gb 2g.20gb 4g.40gb");
    gpu_target_list_done(&targets);
    gpu_inventory_done(&inventory);
}

/* A narrower profile of the same width comes first in the list. */
static void add_small_ci_profile(struct gpu_live_ci_profile *profiles, int *count)
{
    memmove(profiles + 1, profiles, (size_t)*count * sizeof *profiles);
    profiles[0].profile_id = 0;
    profiles[0].sm = profiles[1].sm / 2;
    ++*count;
}

static void test_g6_compute_instance_with_all_sms(void **state)
{
    struct wrap wrap = {.change_ci_profiles = add_small_ci_profile};
    struct gpu_driver driver;
    struct error err;
    (void)state;
    open_fleet("h100-80gb-sxm5:1");
    driver = wrap_open(&wrap);
    assert_int_equal(apply_config(&driver, CONFIG("all", "1g.20gb: 1"), NULL, &err), 0);
    assert_int_equal(wrap.last_ci_profile, 7); /* 1_SLICE_REV1 */
    gpu_driver_close(&driver);
}

static void test_g7_zero_free_means_it_is_there(void **state)
{
    struct wrap wrap = {0};
    struct gpu_driver driver;
    struct error err;
    static const char config[] =
        "version: v1\nmig-configs:\n  custom-config:\n"
        "    - devices: [0]\n      mig-enabled: false\n"
        "    - devices: [1]\n      mig-enabled: true\n      mig-devices: {\"7g.80gb\": 1}\n"
        "    - devices: [2]\n      mig-enabled: true\n      mig-devices: {\"2g.20gb\": 3}\n"
        "    - devices: [3, 4, 5, 6]\n      mig-enabled: true\n"
        "      mig-devices: {\"3g.40gb\": 1, \"4g.40gb\": 1}\n"
        "    - devices: [7]\n      mig-enabled: true\n"
        "      mig-devices: {\"1g.10gb\": 1, \"2g.20gb\": 1, \"4g.40gb\": 1}\n";
    (void)state;
    open_fleet("a100-80gb:8");
    driver = wrap_open(&wrap);
    for (int i = 0; i < 2; i++) {
        if (apply_config(&driver, config, NULL, &err))
            fail_msg("%s", err.text);
        assert_true(i == 0 ? wrap.changes > 0 : wrap.changes == 0);
        wrap.changes = 0;
    }
    gpu_driver_close(&driver);
    assert_layouts("off|7g.80gb@0|2g.20gb@0 2g.20gb@2 2g.20gb@4|4g.40gb@0 3g.40gb@4|4g.40gb@0 "
                   "3g.40gb@4|4g.40gb@0 3g.40gb@4|4g.40gb@0 3g.40gb@4|4g.40gb@0 2g.20gb@4 "
                   "1g.10gb@6");
}

static void test_g8_maxima_are_not_joint(void **state)
{
    struct error err;
    (void)state;
    assert_int_equal(
        apply_here(CONFIG("all", "1g.5gb: 7, 2g.10gb: 3, 3g.20gb: 2, 4g.20gb: 1, 7g.40gb: 1"),
                   NULL, &err),
        -E_NO);
    box_must_apply(&box, "7x1g");
    assert_int_equal(apply_here(CONFIG("all", "7g.40gb: 1"), NULL, &err), 0);
    assert_layouts("7g.40gb@0");
}

/* --- N: names, tables, drivers --- */

static void rename_profile(struct gpu_live_profile *profiles, int count, const char *from,
                           const char *to)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(profiles[i].name, from))
            snprintf(profiles[i].name, sizeof profiles[i].name, "%s", to);
}

static void names_of_driver_535(struct gpu_live_profile *profiles, int count)
{
    rename_profile(profiles, count, "7g.80gb", "7g.79gb");
    rename_profile(profiles, count, "3g.40gb", "3g.39gb");
}

/* Applies under a driver with other names; checks the note and what is exported. */
static void check_names(const char *config, const char *note, const char *exported)
{
    struct wrap wrap = {.change_profiles = names_of_driver_535};
    struct gpu_driver driver = wrap_open(&wrap);
    struct gpu_inventory inventory;
    struct mig_config_file file;
    CLEANUP(str_done) struct str said = STR_EMPTY;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct error err;
    if (apply_config(&driver, config, &said, &err))
        fail_msg("%s", err.text);
    if (note)
        assert_has(said.bytes, note);
    assert_int_equal(gpu_inventory_read(&driver, &inventory, &err), 0);
    gpu_export_config(&inventory, "current", &file);
    mig_config_format(&file, &text);
    assert_has(text.bytes, exported);
    assert_has(inventory.gpus.data[0].live->differences.bytes, "the driver calls it 7g.79gb");
    mig_config_file_done(&file);
    gpu_inventory_done(&inventory);
    gpu_driver_close(&driver);
}

static void test_n1_7g_80gb_is_7g_79gb(void **state)
{
    struct error err;
    (void)state;
    open_fleet("a100-80gb:1");
    check_names(CONFIG("all", "7g.80gb: 1"), "7g.80gb: this driver calls it 7g.79gb",
                "\"7g.79gb\": 1");
    check_names(CONFIG("all", "7g.79gb: 1"), NULL, "\"7g.79gb\": 1");
    /* And the other way: the driver has the new name, the config the old one. */
    assert_int_equal(apply_here(CONFIG("all", "7g.79gb: 1"), NULL, &err), 0);
}

static void test_n2_consumers_of_the_name_are_warned(void **state)
{
    (void)state;
    open_fleet("a100-80gb:1");
    check_names(CONFIG("all", "3g.40gb: 2"), "Slurm GRES", "\"3g.39gb\": 2");
}

static void test_n3_resource_name_is_the_live_one(void **state)
{
    struct wrap wrap = {.change_profiles = names_of_driver_535};
    struct gpu_driver driver;
    struct gpu_inventory inventory;
    struct error err;
    (void)state;
    open_fleet("a100-80gb:1");
    driver = wrap_open(&wrap);
    assert_int_equal(apply_config(&driver, CONFIG("all", "7g.80gb: 1"), NULL, &err), 0);
    assert_int_equal(gpu_inventory_read(&driver, &inventory, &err), 0);
    json_t *json = gpu_inventory_to_json(&inventory);
    json_t *gpu = json_array_get(json_object_get(json, "gpus"), 0);
    assert_string_equal(json_string_value(json_object_get(gpu, "layout")), "7g.79gb@0");
    json_decref(json);
    gpu_inventory_done(&inventory);
    gpu_driver_close(&driver);
}

static void test_n4_gb200_early_names(void **state)
{
    CLEANUP(str_done) struct str said = STR_EMPTY;
    struct error err;
    (void)state;
    open_fleet("gb200-186gb:1");
    assert_int_equal(apply_here(CONFIG("all", "1g.24gb: 7"), &said, &err), 0);
    assert_has(said.bytes, "1g.24gb: this driver calls it 1g.23gb");
    assert_int_equal(apply_here(CONFIG("all", "3g.95gb: 2"), NULL, &err), 0);
    assert_layouts("3g.93gb@0 3g.93gb@4");
    assert_int_equal(apply_here(CONFIG("all", "7g.189gb: 1"), NULL, &err), 0);
    assert_layouts("7g.186gb@0");
}

static void memory_of_2025_01(struct gpu_live_profile *profiles, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(profiles[i].name, "1g.23gb"))
            profiles[i].memory_mib = 22528; /* 22.00 GiB; two months later 20.50 */
}

static void test_n5_memory_is_the_live_one(void **state)
{
    struct wrap wrap = {.change_profiles = memory_of_2025_01};
    struct gpu_driver driver;
    struct gpu_inventory inventory;
    struct error err;

    (void)state;
    open_fleet("b200-180gb:1");
    driver = wrap_open(&wrap);
    assert_int_equal(gpu_inventory_read(&driver, &inventory, &err), 0);
    const struct live_board *live = inventory.gpus.data[0].live;
    int profile = mig_profile_find(&live->board, "1g.23gb");
    assert_int_equal(live->profiles[profile].memory_mib, 22528);
    assert_has(live->differences.bytes,
               "1g.23gb: the driver says memory in MiB 22528, our table 20992");
    gpu_inventory_done(&inventory);
    gpu_driver_close(&driver);
}

static void unknown_board(struct gpu_identity *identity, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        identity[i].pci_device_id = 0xFFFE10DE;
        snprintf(identity[i].name, sizeof identity[i].name, "NVIDIA Future 1");
    }
}

/* N6, N9: static tables lack a board; this one is described by the driver alone. */
static void test_n6_n9_board_of_no_table(void **state)
{
    struct wrap wrap = {.change_identity = unknown_board};
    struct gpu_driver driver;
    struct gpu_inventory inventory;
    struct error err;

    (void)state;
    open_fleet("h200-141gb:1");
    driver = wrap_open(&wrap);
    if (apply_config(&driver, CONFIG("all", "1g.35gb: 1, 2g.35gb: 1, 3g.71gb: 1"), NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(gpu_inventory_read(&driver, &inventory, &err), 0);
    const struct live_board *live = inventory.gpus.data[0].live;
    assert_null(live->table);
    assert_int_equal(live->board.memory_units, 8);
    assert_int_equal(live->board.compute_slices, 7);
    assert_has(live->differences.bytes, "is in no table");
    gpu_inventory_done(&inventory);
    assert_int_equal(apply_config(&driver, CONFIG("all", "3g.71gb: 2, 1g.18gb: 1"), NULL, &err),
                     -E_NO);
    gpu_driver_close(&driver);
}

static void test_n7_lint_before_apply(void **state)
{
    struct error err;

    (void)state;
    open_fleet("a100-80gb:2");
    assert_int_equal(apply_here(CONFIG("all", "2g.10gb: 3"), NULL, &err), -E_INPUT);
    assert_has(err.text, "config.yaml:6:21: a100-80gb has no slice profile \"2g.10gb\"");
    assert_has(err.text, "2g.20gb");
    assert_has(err.text, "a100-40gb has one of that name");
    assert_int_equal(apply_here(CONFIG("[4]", "1g.10gb: 7"), NULL, &err), -E_INPUT);
    assert_has(err.text, "there is no GPU 4; this machine has 2, 0 to 1");
    assert_int_equal(
        apply_here("custom-mig-config:\n  - devices: [1,2]\n    mig-enabled: true\n"
                   "    mig-devices:\n      \"4g.20gb\": 1\n",
                   NULL, &err),
        -E_INPUT);
    assert_has(err.text, "this is a fragment");
    assert_layouts("off|off");
}

static void test_n8_suffixes(void **state)
{
    struct error err;

    (void)state;
    open_fleet("rtxpro6000-96gb:1");
    assert_int_equal(apply_here(CONFIG("all", "1g.24gb+me.all: 1, 1g.24gb-me: 3"), NULL, &err),
                     0);
    assert_int_equal(apply_here(CONFIG("all", "2g.48gb+gfx: 1, 1g.24gb+gfx: 2"), NULL, &err),
                     0);
    assert_layouts("2g.48gb+gfx@0 1g.24gb+gfx@6 1g.24gb+gfx@9");
    /* All media engines in one instance leave none for a plain one. */
    assert_int_equal(apply_here(CONFIG("all", "1g.24gb+me.all: 1, 1g.24gb: 1"), NULL, &err),
                     -E_NO);
}

/* 1g.24gb: double memory on H100 NVL, plain on RTX PRO 6000, an early name on GB200. */
static void test_n10_a_name_does_not_name_a_board(void **state)
{
    struct gpu_driver driver;
    struct gpu_inventory inventory;
    struct gpu_target_list targets;
    static const int enums[] = {9, 0, 0}, sizes[] = {2, 3, 1};
    struct error err;

    (void)state;
    open_fleet("h100-94gb:1,rtxpro6000-96gb:1,gb200-186gb:1");
    box_driver(&driver);
    assert_int_equal(
        targets_of(&driver, CONFIG("all", "1g.24gb: 1"), &inventory, &targets, &err), 0);
    for (size_t i = 0; i < 3; i++) {
        const struct gpu_target *target = &targets.items.data[i];
        const struct live_board *live = inventory.gpus.data[target->gpu].live;
        const struct mig_profile *profile =
            &live->profiles[target->layout.slices[0].gi.profile];
        assert_int_equal(profile->nvml_enum, enums[i]);
        assert_int_equal(profile->placement_size, sizes[i]);
    }
    gpu_target_list_done(&targets);
    gpu_inventory_done(&inventory);
    gpu_driver_close(&driver);
}

/* --- R: apply and roll-out --- */

static void test_r1_success_only_when_read_back(void **state)
{
    struct wrap wrap = {.lie = true};
    struct gpu_driver driver;
    struct error err;

    (void)state;
    box_must_apply(&box, "3g@0 3g@4");
    driver = wrap_open(&wrap);
    assert_int_equal(apply_config(&driver, CONFIG("all", "3g.20gb: 1"), NULL, &err), -E_NO);
    assert_has(err.text, "not as requested");
    assert_int_equal(error_exit_status(err.code), 1);
    gpu_driver_close(&driver);
}

static void test_r2_every_failure_restores(void **state)
{
    struct error err;

    (void)state;
    for (int n = 1; n < 30; n++) {
        struct wrap wrap = {.fail_at = n, .fail_code = E_TIMEOUT};
        box_must_apply(&box, "2g@0 3g@4");
        struct gpu_driver driver = wrap_open(&wrap);
        int r = apply_config(&driver, CONFIG("all", "1g.5gb: 2, 3g.20gb: 1"), NULL, &err);
        gpu_driver_close(&driver);
        assert_layouts(r ? "2g.10gb@0 3g.20gb@4" : "1g.5gb@0 1g.5gb@1 3g.20gb@4");
    }
}

static void test_r3_a_cut_change_is_carried_on(void **state)
{
    struct wrap wrap = {0};
    struct gpu_driver driver;
    struct gpu_apply_options options = {.no_rollback = true};
    struct error err;

    (void)state;
    box_must_apply(&box, "7x1g");
    driver = wrap_open(&wrap);
    wrap.fail_at = 12;
    assert_int_equal(box_apply_with(&box, &driver, "7g", options, &err), -E_IO);
    gpu_driver_close(&driver);
    CLEANUP(free_ptr) char *middle = box_layouts();
    assert_true(strlen(middle) < strlen("1g.5gb@0 ") * 7);
    box_must_apply(&box, "7g");
    assert_layouts("7g.40gb@0");
}

static void test_r4_only_the_named_gpu_is_disturbed(void **state)
{
    CLEANUP(str_done) struct str said = STR_EMPTY;
    struct error err;

    (void)state;
    open_fleet("a100-40gb:2");
    free(box_layouts());
    change_machine(occupy_gpu_0); /* jobs on GPU 0, config for GPU 1 */
    assert_int_equal(apply_here(CONFIG("[1]", "3g.20gb: 2"), &said, &err), 0);
    assert_has(said.bytes, "not named, not touched");
    assert_has(said.bytes, "needs a reset of this GPU alone");
    assert_layouts("off|3g.20gb@0 3g.20gb@4");
    assert_int_equal(apply_here(CONFIG("all", "3g.20gb: 2"), NULL, &err), -E_BUSY);
    assert_has(err.text, "(service)");
}

static void test_r5_mode_change_and_instances_only(void **state)
{
    CLEANUP(str_done) struct str first = STR_EMPTY;
    CLEANUP(str_done) struct str second = STR_EMPTY;
    struct error err;

    (void)state;
    assert_int_equal(apply_here(CONFIG("all", "3g.20gb: 1"), &first, &err), 0);
    assert_has(first.bytes, "mode change: ");
    assert_int_equal(apply_here(CONFIG("all", "2g.10gb: 1"), &second, &err), 0);
    assert_has(second.bytes, "instances only: ");
    assert_null(strstr(second.bytes, "mode change"));
}

static void test_r6_a_busy_neighbour_is_not_touched(void **state)
{
    struct gpu_inventory before, after;
    struct error err;

    (void)state;
    box_must_apply(&box, "4g@0 2g@4");
    change_machine(occupy_gpu_0); /* on the 4g */
    box_read(&before);
    assert_int_equal(box_apply(&box, "4g@0 1g@4 1g@5", &err), 0);
    box_read(&after);
    const struct gpu_gi *old = &before.gpus.data[0].instances.gi[0];
    const struct gpu_gi *now = &after.gpus.data[0].instances.gi[0];
    assert_int_equal(old->id, now->id);
    assert_string_equal(old->ci[0].uuid, now->ci[0].uuid);
    assert_int_equal(after.gpus.data[0].processes.items.count, 1);
    gpu_inventory_done(&before);
    gpu_inventory_done(&after);
}

/* A node with an A100 beside boards without MIG. */
static void test_r8_mixed_node(void **state)
{
    struct error err;

    (void)state;
    open_fleet("a100-40gb:1,t4-16gb:2");
    assert_int_equal(apply_here(CONFIG("all", "3g.20gb: 1"), NULL, &err), -E_INPUT);
    assert_has(err.text, "has no MIG");
    assert_has(err.text, "device-filter");
    assert_int_equal(apply_here("version: v1\nmig-configs:\n  x:\n"
                                "    - device-filter: \"0x20B010DE\"\n      devices: all\n"
                                "      mig-enabled: true\n      mig-devices: {3g.20gb: 1}\n",
                                NULL, &err),
                     0);
    assert_layouts("3g.20gb@0|off|off");
    assert_int_equal(apply_here("version: v1\nmig-configs:\n  x:\n    - devices: all\n"
                                "      mig-enabled: false\n",
                                NULL, &err),
                     0);
    assert_layouts("off|off|off");
}

static void test_r10_enabled_and_empty_is_said(void **state)
{
    CLEANUP(str_done) struct str said = STR_EMPTY;
    CLEANUP(str_done) struct str kept = STR_EMPTY;
    struct error err;

    (void)state;
    assert_int_equal(apply_here(CONFIG("all", ""), &said, &err), 0);
    assert_has(said.bytes, "MIG stays on without an instance");
    box_must_apply(&box, "3g@0 3g@4");
    assert_int_equal(apply_here(CONFIG("all", "3g.20gb: 1"), &kept, &err), 0);
    assert_null(strstr(kept.bytes, "without an instance"));
}

/* From MPS to MIG on one node: the server that is left over is named, not driven out. */
static void add_mps_server(struct sim_machine *machine)
{
    struct sim_process process = {.pid = (uint32_t)getpid(),
                                  .gi = NVML_NO_INSTANCE_ID,
                                  .ci = NVML_NO_INSTANCE_ID,
                                  .name = "nvidia-cuda-mps-server"};

    assert_true(sim_add_process(machine, &process));
}

static void remove_processes(struct sim_machine *machine)
{
    machine->process_count = 0;
}

static void test_r11_mps_server_is_in_the_way(void **state)
{
    struct error err;

    (void)state;
    free(box_layouts());
    change_machine(add_mps_server);
    assert_int_equal(apply_here(CONFIG("all", "3g.20gb: 2"), NULL, &err), -E_BUSY);
    assert_has(err.text, "(nvidia-cuda-mps-server)");
    assert_layouts("off");
    change_machine(remove_processes);
    assert_int_equal(apply_here(CONFIG("all", "3g.20gb: 2"), NULL, &err), 0);
    assert_layouts("3g.20gb@0 3g.20gb@4");
}

static void test_r12_cdi_is_named_when_devices_change(void **state)
{
    CLEANUP(str_done) struct str first = STR_EMPTY;
    CLEANUP(str_done) struct str again = STR_EMPTY;
    struct error err;

    (void)state;
    assert_int_equal(apply_here(CONFIG("all", "3g.20gb: 2"), &first, &err), 0);
    assert_has(first.bytes, "regenerate the CDI specification");
    assert_int_equal(apply_here(CONFIG("all", "3g.20gb: 2"), &again, &err), 0);
    assert_null(strstr(again.bytes, "CDI")); /* nothing changed */
}

/* A monitor holds the driver: the change is pending, and what is owed is said. */
static void test_r13_pending_says_what_is_owed(void **state)
{
    struct gpu_driver monitor;
    struct error err = {0};
    int status = 0;

    (void)state;
    free(box_layouts());
    box_driver(&monitor);
    pid_t child = fork();
    if (!child) {
        struct error inner = {0};
        int r = box_apply(&box, "3g", &inner);
        _exit(r == -E_NO && strstr(inner.text, "pending enable") &&
                      strstr(inner.text, "nvidia-smi --gpu-reset -i 00000000:07:00.0") &&
                      strstr(inner.text, "or reboot")
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    gpu_driver_close(&monitor);
    assert_int_equal(status, 0);
    assert_int_equal(err.code, 0);
}

static void test_r14_after_a_reboot_it_is_applied_again(void **state)
{
    (void)state;
    open_fleet("a100-40gb:1,h100-80gb-sxm5:1");
    box_must_apply(&box, "4g@0 3g@4|4g@0 3g@4");
    change_machine(sim_reboot);
    assert_layouts("-|off"); /* Ampere keeps the mode, Hopper does not */
    box_must_apply(&box, "4g@0 3g@4|4g@0 3g@4");
    assert_layouts("4g.20gb@0 3g.20gb@4|4g.40gb@0 3g.40gb@4");
}

static void test_r15_what_blocks_the_way_back_is_named(void **state)
{
    struct error err;

    (void)state;
    box_must_apply(&box, "4g@0 2g@4");
    change_machine(occupy_gpu_0);
    assert_int_equal(box_apply(&box, "off", &err), -E_BUSY);
    assert_has(err.text, "(service)");
    assert_has(err.text, "4g.20gb@0");
    assert_layouts("4g.20gb@0 2g.10gb@4");
}

/* The sum of a number over the instances of one GPU of the inventory's JSON. */
static json_int_t sum_of(const json_t *gpu, const char *list, const char *key)
{
    json_t *instances = json_object_get(gpu, "instances");
    json_int_t sum = 0;
    json_t *instance, *item;
    size_t i, j;

    json_array_foreach(instances, i, instance)
    {
        if (!list)
            sum += json_integer_value(json_object_get(instance, key));
        else
            json_array_foreach(json_object_get(instance, list), j, item) sum +=
                json_integer_value(json_object_get(item, key));
    }
    return sum;
}

/* One partitioned GPU and one whole: each is one or the other, never both. */
static void test_r17_a_partitioned_gpu_is_not_whole(void **state)
{
    struct gpu_inventory inventory;

    (void)state;
    open_fleet("a100-40gb:2");
    box_must_apply(&box, "3g@0 3g@4|off");
    box_read(&inventory);
    json_t *json = gpu_inventory_to_json(&inventory);
    json_t *gpus = json_object_get(json, "gpus");
    json_t *parted = json_array_get(gpus, 0), *whole = json_array_get(gpus, 1);
    assert_true(json_is_true(json_object_get(parted, "mig_enabled")));
    assert_int_equal(json_array_size(json_object_get(parted, "instances")), 2);
    assert_true(sum_of(parted, NULL, "memory_mib") <=
                json_integer_value(json_object_get(parted, "memory_mib")));
    assert_true(json_is_false(json_object_get(whole, "mig_enabled")));
    assert_int_equal(json_array_size(json_object_get(whole, "instances")), 0);
    json_decref(json);
    gpu_inventory_done(&inventory);
}

/* Four devices of 1g are not four of 7g: slices and memory tell what was taken. */
static void test_r19_slices_and_memory_not_devices(void **state)
{
    struct gpu_inventory inventory;
    json_int_t slices = 0, memory = 0;

    (void)state;
    open_fleet("a100-40gb:5");
    box_must_apply(&box, "4x1g|7g");
    box_read(&inventory);
    json_t *json = gpu_inventory_to_json(&inventory);
    json_t *gpus = json_object_get(json, "gpus"), *small = json_array_get(gpus, 0);
    for (size_t i = 1; i < 5; i++) {
        slices += sum_of(json_array_get(gpus, i), "compute_instances", "slices");
        memory += sum_of(json_array_get(gpus, i), NULL, "memory_mib");
    }
    assert_int_equal(sum_of(small, "compute_instances", "slices"), 4);
    assert_int_equal(slices, 28);
    assert_int_equal(sum_of(small, NULL, "memory_mib"), 4 * 4864);
    assert_int_equal(memory, 4 * 40320);
    json_decref(json);
    gpu_inventory_done(&inventory);
}

/* --- U: device names --- */

/* R18 and U4: a process is given one MIG device, by its UUID. */
static void test_r18_u4_one_device_a_process(void **state)
{
    struct gpu_inventory inventory;
    struct mps_options options = {.folder = box.folder};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct error err;
    char both[2 * GPU_TEXT_SIZE + 2], line[2 * GPU_TEXT_SIZE];

    (void)state;
    box_must_apply(&box, "3g@0 3g@4");
    box_read(&inventory);
    const struct gpu_gi *gi = inventory.gpus.data[0].instances.gi;
    snprintf(both, sizeof both, "%s,%s", gi[0].ci[0].uuid, gi[1].ci[0].uuid);
    options.device = both;
    assert_int_equal(mps_env(&options, &text, &err), -E_INPUT);
    assert_has(err.text, "is no device");
    options.device = gi[1].ci[0].uuid;
    assert_int_equal(mps_env(&options, &text, &err), 0);
    snprintf(line, sizeof line, "CUDA_VISIBLE_DEVICES='%s'\n", gi[1].ci[0].uuid);
    assert_has(text.bytes, line);
    gpu_inventory_done(&inventory);
}

static void test_u5_a_uuid_comes_back_with_another_profile(void **state)
{
    struct gpu_inventory before, after;

    (void)state;
    box_must_apply(&box, "4g@0");
    box_read(&before);
    box_must_apply(&box, "3g@0");
    box_read(&after);
    const struct gpu_gi *old = &before.gpus.data[0].instances.gi[0];
    const struct gpu_gi *now = &after.gpus.data[0].instances.gi[0];
    /* The same UUID, and the profile that stands beside it in the inventory tells them apart.
     */
    assert_string_equal(old->ci[0].uuid, now->ci[0].uuid);
    json_t *json = gpu_inventory_to_json(&after);
    json_t *gpu = json_array_get(json_object_get(json, "gpus"), 0);
    json_t *instance = json_array_get(json_object_get(gpu, "instances"), 0);
    assert_string_equal(json_string_value(json_object_get(instance, "profile")), "3g.20gb");
    assert_int_not_equal(old->profile_id, now->profile_id);
    json_decref(json);
    gpu_inventory_done(&before);
    gpu_inventory_done(&after);
}

#define BOXED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOXED(test_g1_sums_fit_and_placement_does_not),
        BOXED(test_g2_list_order_does_not_matter),
        BOXED(test_g3_greedy_refuses_what_search_finds),
        BOXED(test_g4_leftovers_are_seen),
        BOXED(test_g5_result_is_checked_gpu_by_gpu),
        BOXED(test_g6_compute_instance_with_all_sms),
        BOXED(test_g7_zero_free_means_it_is_there),
        BOXED(test_g8_maxima_are_not_joint),
        BOXED(test_n1_7g_80gb_is_7g_79gb),
        BOXED(test_n2_consumers_of_the_name_are_warned),
        BOXED(test_n3_resource_name_is_the_live_one),
        BOXED(test_n4_gb200_early_names),
        BOXED(test_n5_memory_is_the_live_one),
        BOXED(test_n6_n9_board_of_no_table),
        BOXED(test_n7_lint_before_apply),
        BOXED(test_n8_suffixes),
        BOXED(test_n10_a_name_does_not_name_a_board),
        BOXED(test_r1_success_only_when_read_back),
        BOXED(test_r2_every_failure_restores),
        BOXED(test_r3_a_cut_change_is_carried_on),
        BOXED(test_r4_only_the_named_gpu_is_disturbed),
        BOXED(test_r5_mode_change_and_instances_only),
        BOXED(test_r6_a_busy_neighbour_is_not_touched),
        BOXED(test_r8_mixed_node),
        BOXED(test_r10_enabled_and_empty_is_said),
        BOXED(test_r11_mps_server_is_in_the_way),
        BOXED(test_r12_cdi_is_named_when_devices_change),
        BOXED(test_r13_pending_says_what_is_owed),
        BOXED(test_r14_after_a_reboot_it_is_applied_again),
        BOXED(test_r15_what_blocks_the_way_back_is_named),
        BOXED(test_r17_a_partitioned_gpu_is_not_whole),
        BOXED(test_r19_slices_and_memory_not_devices),
        BOXED(test_r18_u4_one_device_a_process),
        BOXED(test_u5_a_uuid_comes_back_with_another_profile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
