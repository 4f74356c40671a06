/* SPDX-License-Identifier: Apache-2.0
 *
 * Apply on the simulated machine: lock, journal, dry run, refusals, read-back, the driver's
 * own search. Faults at every call are in test_torture.c.
 */
#include "wrap_driver.h"

#include <sys/wait.h>

#include "gpu/holders.h"
#include "sim/store.h"

static struct sim_box box;

static int set_up(void **state)
{
    (void)state;
    box_open(&box, "a100-40gb:2,h100-80gb-sxm5:1");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    box_close(&box);
    return 0;
}

/* Puts this process, as one that computes, on the compute instance at `start`; start −1: on
 * the whole GPU. */
static void occupy(unsigned gpu, int start)
{
    static struct sim_store store;
    struct sim_process process = {.pid = (uint32_t)getpid(),
                                  .gpu = gpu,
                                  .gi = NVML_NO_INSTANCE_ID,
                                  .ci = NVML_NO_INSTANCE_ID,
                                  .memory_mib = 100,
                                  .name = "trainer"};
    struct error err;

    if (sim_store_open(&store, &err) || sim_store_lock(&store, true, &err))
        fail_msg("%s", err.text);
    for (unsigned gi = 0; gi < SIM_GI_IDS; gi++)
        if (store.machine.gpus[gpu].gis[gi].used &&
            store.machine.gpus[gpu].gis[gi].start == start) {
            process.gi = gi;
            process.ci = 0;
        }
    assert_true(sim_add_process(&store.machine, &process));
    assert_int_equal(sim_store_commit(&store, &err), 0);
    sim_store_unlock(&store, false);
    sim_store_close(&store);
}

static void test_layouts_of_three_gpus(void **state)
{
    (void)state;
    assert_layouts("off|off|off");
    box_must_apply(&box, "4g@0 2g 1g|7x1g|3g@4 1g+me");
    assert_layouts("4g.20gb@0 2g.10gb@4 1g.5gb@6|1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 "
                   "1g.5gb@5 1g.5gb@6|1g.10gb+me@0 3g.40gb@4");
    box_must_apply(&box, ".|2g@0:1c+1c 3g@4:2c+1c|.");
    assert_layouts("4g.20gb@0 2g.10gb@4 1g.5gb@6|2g.10gb@0:1c+1c 3g.20gb@4:2c+1c|1g.10gb+me@0 "
                   "3g.40gb@4");
    box_must_apply(&box, "-|off|off");
    assert_layouts("-|off|off");
}

static void test_same_again_changes_nothing(void **state)
{
    struct wrap wrap = {0};
    struct gpu_driver driver;
    struct error err;

    (void)state;
    box_must_apply(&box, "4g 2g 1g|.|.");
    driver = wrap_open(&wrap);
    assert_int_equal(
        box_apply_with(&box, &driver, "1g 2g 4g|.|.", (struct gpu_apply_options){0}, &err), 0);
    assert_int_equal(wrap.changes, 0);
    gpu_driver_close(&driver);
}

static void test_dry_run_changes_nothing(void **state)
{
    char layouts[] = "3g 3g|.|.";
    struct gpu_apply_report report;
    struct gpu_apply_options options = {.state_dir = box.state_dir, .dry_run = true};
    struct gpu_request request = {.targets = layouts_targets, .context = layouts, .text = "x"};
    struct gpu_driver driver;
    struct error err;

    (void)state;
    box_driver(&driver);
    gpu_apply_report_init(&report);
    assert_int_equal(gpu_apply(&driver, &request, &options, &report, &err), 0);
    assert_int_equal(report.outcome, GPU_APPLY_PLANNED);
    assert_has(report.plan.bytes,
               "mode change: MIG is enabled, which needs a reset of this GPU");
    assert_has(report.plan.bytes, "not named, not touched");
    assert_int_equal(json_array_size(json_object_get(report.change, "steps")), 5);
    assert_true(access(box.state_dir, F_OK));
    gpu_apply_report_done(&report);
    gpu_driver_close(&driver);
    assert_layouts("off|off|off");
}

static void test_second_writer_is_refused(void **state)
{
    char path[128];
    struct error err;
    CLEANUP(close_fd) int fd = -1;

    (void)state;
    assert_int_equal(file_make_dirs(box.state_dir, 0700, &err), 0);
    snprintf(path, sizeof path, "%s/gpu.lock", box.state_dir);
    assert_int_equal(file_lock(path, &fd, &err), 0);
    assert_int_equal(box_apply(&box, "3g|.|.", &err), -E_BUSY);
    assert_has(err.text, "no second writer");
    assert_layouts("off|off|off");
}

static void test_process_in_the_way_is_named(void **state)
{
    struct error err;

    (void)state;
    box_must_apply(&box, "4g@0 2g@4|.|.");
    occupy(0, 4);
    assert_int_equal(box_apply(&box, "4g@0 3x1g|.|.", &err), -E_BUSY);
    assert_has(err.text, "(trainer)");
    assert_has(err.text, "2g.10gb@4");
    assert_has(err.text, "nothing was changed");
    assert_int_equal(error_exit_status(err.code), 4);
    assert_layouts("4g.20gb@0 2g.10gb@4|off|off");
    /* What keeps the busy instance is done. */
    box_must_apply(&box, "2g 1g 1g|.|.");
    assert_layouts("1g.5gb@0 1g.5gb@1 2g.10gb@4|off|off");
}

static void test_mode_waits_for_processes(void **state)
{
    struct error err;

    (void)state;
    occupy(1, -1);
    assert_int_equal(box_apply(&box, ".|3g|.", &err), -E_BUSY);
    assert_has(err.text, "enable MIG on GPU 1");
    assert_layouts("off|off|off");
    box_must_apply(&box, "3g|.|.");
}

/* Another client (a monitor) holds the driver: Ampere stays pending, Hopper does not care. */
static void test_pending_on_ampere_immediate_on_hopper(void **state)
{
    struct error err;
    int ready[2], leave[2];
    char byte = 0;

    (void)state;
    assert_int_equal(pipe(ready) | pipe(leave), 0);
    pid_t monitor = fork();
    if (!monitor) {
        struct gpu_driver driver = {0};
        int r = box_open_driver(&driver, NULL);
        ssize_t ignored = write(ready[1], &byte, 1);
        close(leave[1]);
        ignored += read(leave[0], &byte, 1);
        _exit(r || ignored < 0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(box_apply(&box, ".|.|3g", &err), 0);
    assert_int_equal(box_apply(&box, "3g|.|.", &err), -E_NO);
    assert_has(err.text, "pending enable");
    assert_has(err.text, "nvidia-smi --gpu-reset -i 00000000:07:00.0");
    assert_int_equal(error_exit_status(err.code), 1);
    close(leave[0]);
    close(leave[1]);
    waitpid(monitor, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    box_must_apply(&box, "3g@4|.|.");
    assert_layouts("3g.20gb@4|off|3g.40gb@0");
}

static void test_success_is_read_back(void **state)
{
    struct wrap wrap = {.lie = true};
    struct gpu_driver driver;
    struct error err;

    (void)state;
    box_must_apply(&box, "3g@0|.|.");
    driver = wrap_open(&wrap);
    assert_int_equal(
        box_apply_with(&box, &driver, "-|.|.", (struct gpu_apply_options){0}, &err), -E_NO);
    assert_has(err.text, "has 3g.20gb@0, wanted is -");
    gpu_driver_close(&driver);
}

/* Every driver call fails in turn: the old layout or the new, never something between. */
static void test_every_driver_call_fails(void **state)
{
    struct error err;
    int cases = 0;

    (void)state;
    for (int n = 1;; n++) {
        struct wrap wrap = {.fail_at = n, .fail_code = n % 2 ? E_BUSY : E_IO};
        box_must_apply(&box, "4g@0 2g@4|.|.");
        struct gpu_driver driver = wrap_open(&wrap);
        int r = box_apply_with(&box, &driver, "4g@0 1g@4 1g@5|.|.",
                               (struct gpu_apply_options){.proc = box.folder}, &err);
        gpu_driver_close(&driver);
        CLEANUP(free_ptr) char *layouts = box_layouts();
        const char *expected =
            r ? "4g.20gb@0 2g.10gb@4|off|off" : "4g.20gb@0 1g.5gb@4 1g.5gb@5|off|off";
        if (strcmp(layouts, expected))
            fail_msg("call %d: %d (%s) at %s", n, r, r ? err.text : "", layouts);
        cases++;
        if (wrap.calls < n)
            break;
    }
    print_message("# %d driver calls failed in turn\n", cases);
}

static volatile sig_atomic_t stop;

static void stop_at_third_step(void *context, const char *step)
{
    int *steps = context;
    (void)step;
    stop = ++*steps == 3;
}

static void test_ctrl_c_takes_back(void **state)
{
    struct gpu_driver driver;
    struct error err;
    int steps = 0;
    struct gpu_apply_options options = {
        .stop = &stop, .progress = stop_at_third_step, .progress_context = &steps};

    (void)state;
    box_must_apply(&box, "4g@0 2g@4|.|.");
    box_driver(&driver);
    assert_int_equal(box_apply_with(&box, &driver, "7g|.|.", options, &err), -E_INTERRUPTED);
    assert_has(err.text, "the old layout was restored");
    gpu_driver_close(&driver);
    assert_layouts("4g.20gb@0 2g.10gb@4|off|off");
    stop = 0;
}

/* Compute instances that stay can be in the way of one that fits by number. */
static void test_crowded_compute_instances_are_repacked(void **state)
{
    struct wrap wrap = {.crowded = 1};
    struct gpu_driver driver;
    struct error err;

    (void)state;
    box_must_apply(&box, "3g@4:1c+1c+1c|.|.");
    driver = wrap_open(&wrap);
    if (box_apply_with(&box, &driver, "3g@4:2c+1c|.|.", (struct gpu_apply_options){0}, &err))
        fail_msg("%s", err.text);
    assert_layouts("3g.20gb@4:2c+1c|off|off");
    wrap.crowded = 2; /* and again after the repacking: given up, and taken back */
    assert_int_equal(
        box_apply_with(&box, &driver, "3g@4:1c+1c+1c|.|.", (struct gpu_apply_options){0}, &err),
        -E_CONFLICT);
    assert_has(err.text, "the old layout was restored");
    assert_layouts("3g.20gb@4:2c+1c|off|off");
    gpu_driver_close(&driver);
}

static void test_rollback_and_resume(void **state)
{
    struct gpu_driver driver;
    struct error err;
    struct gpu_apply_report report;
    struct gpu_apply_options options = {.state_dir = box.state_dir, .no_rollback = true};

    (void)state;
    box_must_apply(&box, "4g@0 2g@4|.|.");
    for (int resume = 0; resume < 2; resume++) {
        struct wrap wrap = {.fail_code = E_IO};
        box_must_apply(&box, "4g@0 2g@4|.|.");
        driver = wrap_open(&wrap);
        wrap.fail_at = 20; /* after the 2g is gone and a 1g is made */
        assert_int_equal(box_apply_with(&box, &driver, "4g@0 3x1g|.|.", options, &err), -E_IO);
        assert_has(err.text, "left as they are");
        gpu_driver_close(&driver);
        CLEANUP(free_ptr) char *middle = box_layouts();
        assert_true(strcmp(middle, "4g.20gb@0 2g.10gb@4|off|off"));
        box_driver(&driver);
        gpu_apply_report_init(&report);
        assert_int_equal(resume ? gpu_apply_resume(&driver, &options, &report, &err)
                                : gpu_apply_rollback(&driver, &options, &report, &err),
                         0);
        assert_layouts(resume ? "4g.20gb@0 1g.5gb@4 1g.5gb@5 1g.5gb@6|off|off"
                              : "4g.20gb@0 2g.10gb@4|off|off");
        assert_int_equal(gpu_apply_resume(&driver, &options, &report, &err), -E_NOT_FOUND);
        gpu_apply_report_done(&report);
        gpu_driver_close(&driver);
    }
}

static void test_no_driver_says_what_was_looked_for(void **state)
{
    struct gpu_driver driver;
    struct gpu_driver_options options = {.kind = GPU_DRIVER_NVML,
                                         .library = "/nowhere/libx.so"};
    struct error err;

    (void)state;
    assert_int_equal(gpu_driver_open(&options, &driver, &err), -E_MISSING);
    assert_has(err.text, "/nowhere/libx.so");
    assert_has(err.text, "--driver sim");
    assert_int_equal(error_exit_status(err.code), 4);
    options.library = "libm.so.6";
    assert_int_equal(gpu_driver_open(&options, &driver, &err), -E_MISSING);
    assert_has(err.text, "has no nvmlInit_v2");
}

/* Without permission the listing falls back to MIG device handles: no start, no change. */
static void test_unprivileged_sees_instances(void **state)
{
    struct gpu_inventory inventory;
    struct error err;

    (void)state;
    box_must_apply(&box, "4g@0 2g@4:1c+1c|.|.");
    setenv("TRANCHE_SIM_PRIVILEGE", "user", 1);
    box_read(&inventory);
    const struct gpu *gpu = &inventory.gpus.data[0];
    assert_int_equal(gpu->instances.count, 2);
    assert_int_equal(gpu->instances.gi[0].start, GPU_START_UNKNOWN);
    assert_int_equal(gpu->instances.gi[0].ci_count + gpu->instances.gi[1].ci_count, 3);
    gpu_inventory_done(&inventory);
    assert_int_equal(box_apply(&box, "4g@0|.|.", &err), -E_IO);
    unsetenv("TRANCHE_SIM_PRIVILEGE");
    assert_layouts("4g.20gb@0 2g.10gb@4:1c+1c|off|off");
}

static void test_selectors(void **state)
{
    struct gpu_inventory inventory;
    struct error err;
    size_t index;

    (void)state;
    box_read(&inventory);
    assert_int_equal(gpu_inventory_find(&inventory, "1", &index, &err), 0);
    assert_int_equal(index, 1);
    assert_int_equal(
        gpu_inventory_find(&inventory, inventory.gpus.data[2].identity.uuid, &index, &err), 0);
    assert_int_equal(index, 2);
    assert_int_equal(gpu_inventory_find(&inventory, "0000:17:00.0", &index, &err), 0);
    assert_int_equal(index, 1);
    assert_int_equal(gpu_inventory_find(&inventory, "7", &index, &err), -E_INPUT);
    assert_has(err.text, "there is no GPU \"7\"");
    gpu_inventory_done(&inventory);
}

static void test_export_is_read_back(void **state)
{
    struct gpu_inventory inventory;
    struct gpu_target_list targets;
    struct mig_config_file file;
    const struct mig_config *config;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(str_done) struct str differences = STR_EMPTY;
    struct error err;

    (void)state;
    box_must_apply(&box, "3g@0:2c+1c 2g@4 1g@6|3g@0:2c+1c 2g@4 1g@6|off");
    box_read(&inventory);
    gpu_export_config(&inventory, "current", &file);
    mig_config_format(&file, &text);
    mig_config_file_done(&file);
    assert_string_equal(text.bytes, "version: v1\n"
                                    "mig-configs:\n"
                                    "  current:\n"
                                    "  - device-filter: \"0x20B010DE\"\n"
                                    "    devices: all\n"
                                    "    mig-enabled: true\n"
                                    "    mig-devices:\n"
                                    "      \"1c.3g.20gb\": 1\n"
                                    "      \"1g.5gb\": 1\n"
                                    "      \"2c.3g.20gb\": 1\n"
                                    "      \"2g.10gb\": 1\n"
                                    "  - device-filter: \"0x233010DE\"\n"
                                    "    devices: all\n"
                                    "    mig-enabled: false\n"
                                    "    mig-devices: {}\n");
    assert_int_equal(mig_config_parse("x", text.bytes, text.length, &file, &err), 0);
    assert_int_equal(mig_config_select(&file, NULL, &config, &err), 0);
    assert_int_equal(gpu_targets_from_config(&inventory, &file, config, &targets, &err), 0);
    assert_int_equal(gpu_targets_compare(&inventory, &targets, &differences), 0);
    gpu_target_list_done(&targets);
    mig_config_file_done(&file);
    str_clear(&text);
    gpu_export_layouts(&inventory, &text);
    assert_int_equal(gpu_targets_from_layout_file(&inventory, "x", text.bytes, &targets, &err),
                     0);
    assert_int_equal(gpu_targets_compare(&inventory, &targets, &differences), 0);
    gpu_target_list_done(&targets);
    gpu_inventory_done(&inventory);
}

static void test_holders_of_device_files(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    char path[160];
    FILE *comm;

    (void)state;
    /* A folder like /proc with one process that has /dev/nvidia1 open. */
    snprintf(path, sizeof path, "%s/812", box.folder);
    assert_int_equal(file_make_dirs(path, 0700, NULL), 0);
    snprintf(path, sizeof path, "%s/812/fd", box.folder);
    assert_int_equal(file_make_dirs(path, 0700, NULL), 0);
    snprintf(path, sizeof path, "%s/812/fd/3", box.folder);
    assert_int_equal(symlink("/dev/nvidia1", path), 0);
    snprintf(path, sizeof path, "%s/812/comm", box.folder);
    comm = fopen(path, "w");
    fputs("nv-hostengine\n", comm);
    fclose(comm);
    gpu_holders_describe(box.folder, 1, &text);
    assert_string_equal(text.bytes, "pid 812 (nv-hostengine) has /dev/nvidia1 open");
    str_clear(&text);
    gpu_holders_describe(box.folder, 0, &text);
    assert_string_equal(text.bytes, "");
    static const char *const names[] = {"812/fd/3", "812/fd", "812/comm", "812"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", box.folder, names[i]);
        remove(path);
    }
}

#define BOXED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOXED(test_layouts_of_three_gpus),
        BOXED(test_same_again_changes_nothing),
        BOXED(test_dry_run_changes_nothing),
        BOXED(test_second_writer_is_refused),
        BOXED(test_process_in_the_way_is_named),
        BOXED(test_mode_waits_for_processes),
        BOXED(test_pending_on_ampere_immediate_on_hopper),
        BOXED(test_success_is_read_back),
        BOXED(test_every_driver_call_fails),
        BOXED(test_ctrl_c_takes_back),
        BOXED(test_crowded_compute_instances_are_repacked),
        BOXED(test_rollback_and_resume),
        BOXED(test_no_driver_says_what_was_looked_for),
        BOXED(test_unprivileged_sees_instances),
        BOXED(test_selectors),
        BOXED(test_export_is_read_back),
        BOXED(test_holders_of_device_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
