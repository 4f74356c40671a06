/* SPDX-License-Identifier: Apache-2.0
 *
 * Watching a GPU during a measurement, on the simulated NVML library: its load model says what
 * power, energy and memory must be (sim/processes.h).
 */
#include "../gpu/support.h"

#include <math.h>

#include "base/clock.h"
#include "load/measure.h"
#include "load/result_document.h"
#include "sim/store.h"

static struct sim_box box;
static char slice_uuid[GPU_TEXT_SIZE];

static int set_up(void **state)
{
    (void)state;
    box_open(&box, "h100-80gb-sxm5:1");
    box_must_apply(&box, "3g@0 2g@4 1g@6");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    box_close(&box);
    return 0;
}

/* A process that keeps the first instance busy; 0 percent takes all away. */
static void put_load(uint32_t memory_mib, uint32_t sm_percent)
{
    static struct sim_store store;
    struct sim_process process = {.pid = (uint32_t)getpid(),
                                  .memory_mib = memory_mib,
                                  .sm_percent = sm_percent,
                                  .gi = NVML_NO_INSTANCE_ID,
                                  .name = "load"};
    struct error err;
    if (sim_store_open(&store, &err) || sim_store_lock(&store, true, &err))
        fail_msg("%s", err.text);
    for (unsigned gi = 0; gi < SIM_GI_IDS; gi++)
        if (store.machine.gpus[0].gis[gi].used && store.machine.gpus[0].gis[gi].start == 0)
            process.gi = gi;
    assert_true(sim_add_process(&store.machine, &process));
    assert_int_equal(sim_store_commit(&store, &err), 0);
    sim_store_unlock(&store, false);
    sim_store_close(&store);
}

static void find_slice(const struct gpu_driver *driver)
{
    CLEANUP(gpu_inventory_done) struct gpu_inventory inventory = {0};
    struct error err;
    assert_int_equal(gpu_inventory_read(driver, &inventory, &err), 0);
    const struct gpu_gi_list *list = &inventory.gpus.data[0].instances;
    assert_int_equal(list->count, 3);
    for (int i = 0; i < list->count; i++)
        if (list->gi[i].start == 0)
            snprintf(slice_uuid, sizeof slice_uuid, "%s", list->gi[i].ci[0].uuid);
}

static void wait_ms(int ms)
{
    clock_sleep_until_ns(clock_real(), clock_now_ns(clock_real()) + (int64_t)ms * 1000000);
}

static double now_s(void)
{
    return (double)clock_now_ns(clock_real()) / 1e9;
}

static void assert_ratio(double value, double expected, double tolerance)
{
    if (!(fabs(value / expected - 1) <= tolerance))
        fail_msg("%g, expected about %g", value, expected);
}

static void a_busy_slice_is_seen(void **state)
{
    (void)state;
    struct gpu_driver driver = {0};
    struct gpu_watch *watch = NULL;
    struct gpu_figures figures;
    struct error err;
    box_driver(&driver);
    find_slice(&driver);
    if (gpu_watch_new(&driver, slice_uuid, &watch, &err))
        fail_msg("%s", err.text);
    put_load(4096, 80);
    double before_start_s = now_s();
    assert_int_equal(gpu_watch_start(watch, &err), 0);
    double after_start_s = now_s();
    wait_ms(5 * GPU_WATCH_PERIOD_MS);
    double before_stop_s = now_s();
    gpu_watch_stop(watch, &figures);
    double after_stop_s = now_s();
    gpu_watch_free(watch);
    gpu_driver_close(&driver);
    assert_true(figures.samples >= 3);
    assert_ratio(figures.memory_mib, 4096, 0.01);
    assert_ratio(figures.activity, 0.8, 0.01);
    assert_true(figures.power_w > figures.power_idle_w && figures.power_idle_w > 0);
    /* The load is constant: the counter says power over the time between its two readings,
     * which fell within the calls, however slow the machine. */
    assert_true(figures.energy_j > 0.99 * figures.power_w * (before_stop_s - after_start_s));
    assert_true(figures.energy_j < 1.01 * figures.power_w * (after_stop_s - before_start_s));
    assert_ratio(figures.energy_above_idle_j,
                 figures.energy_j - figures.power_idle_w * figures.window_s, 1e-9);
    assert_true(figures.sm_clock_mhz > 0 && figures.sm_clock_mhz_min <= figures.sm_clock_mhz);
    /* Only this slice was active: all above idle is its own, by activity. The first sample has
     * no window of activity and goes by slices, 3 of 6. */
    double above_idle_j = (figures.power_w - figures.power_idle_w) * figures.window_s;
    assert_string_equal(figures.slice_rule, "activity x slices");
    assert_true(figures.energy_slice_estimate_j > 0.74 * above_idle_j);
    assert_true(figures.energy_slice_estimate_j < 1.01 * above_idle_j);
    assert_false(figures.throttled);
}

static void others_on_the_gpu_hide_idle_power(void **state)
{
    (void)state;
    struct gpu_driver driver = {0};
    struct gpu_watch *watch = NULL;
    struct gpu_figures figures;
    struct error err;
    put_load(100, 10);
    box_driver(&driver);
    assert_int_equal(gpu_watch_new(&driver, NULL, &watch, &err), 0);
    assert_int_equal(gpu_watch_start(watch, &err), 0);
    gpu_watch_stop(watch, &figures);
    assert_true(isnan(figures.power_idle_w) && isnan(figures.energy_above_idle_j));
    assert_true(figures.power_w > 0 && isnan(figures.energy_slice_estimate_j));
    gpu_watch_free(watch);
    assert_int_equal(gpu_watch_new(&driver, "MIG-nobody", &watch, &err), -E_MISSING);
    gpu_driver_close(&driver);
}

/* A driver whose clocks are held back by heat. */
static struct gpu_driver_ops hot_ops;
static const struct gpu_driver *cool;

static int hot_read(void *self, const struct gpu_entity *entity, enum gpu_reading reading,
                    double *ret_value, struct error *err)
{
    if (reading != GPU_READING_CLOCK_REASONS)
        return cool->ops->read(self, entity, reading, ret_value, err);
    *ret_value = 0x40;
    return 0;
}

static void throttling_is_a_verdict(void **state)
{
    (void)state;
    struct gpu_driver driver = {0};
    struct gpu_watch *watch = NULL;
    struct measure_result result = {.status = STATUS_OK, .latency = hist_new()};
    struct measure_settings settings = {.device = DEVICE_CUDA};
    struct measure_cell cell = {.procs = 1};
    struct error err;
    CLEANUP(str_done) struct str words = STR_EMPTY;
    box_driver(&driver);
    cool = &driver;
    hot_ops = *driver.ops;
    hot_ops.read = hot_read;
    struct gpu_driver hot = {&hot_ops, driver.self};
    assert_int_equal(gpu_watch_new(&hot, NULL, &watch, &err), 0);
    assert_int_equal(gpu_watch_start(watch, &err), 0);
    gpu_watch_stop(watch, &result.gpu);
    gpu_watch_free(watch);
    assert_true(result.gpu.throttled);
    result.steady.steady = true;
    verdict_words(measure_judge(&cell, &settings, &result), ";", &words);
    assert_string_equal(words.bytes, "clocks-throttled");
    CLEANUP(json_decref_ptr)
    json_t *run = result_run_new((struct verdict){0}, "ok", NULL);
    result_run_add_gpu(run, &result.gpu);
    assert_string_equal(json_string_value(json_object_get(run, "clock_event_reasons")),
                        "hw_thermal_slowdown");
    assert_true(json_number_value(json_object_get(json_object_get(run, "figures"), "power_w")) >
                0);
    hist_free(result.latency);
    gpu_driver_close(&driver);
}

/* The whole way: a made-up workload "on" the slice has the GPU's figures in its result. */
static void a_measurement_has_them(void **state)
{
    (void)state;
    static const char script[] =
        "echo "
        "\"{\\\"event\\\":\\\"ready\\\",\\\"framework\\\":\\\"sh\\\",\\\"waits\\\":true}\"; "
        "read go; t=$(awk '{printf \"%.0f\", ($1 + 0.001) * 1e9}' /proc/uptime); i=0; "
        "trap 'stop=1' TERM; while [ -z \"$stop\" ]; do "
        "echo \"{\\\"event\\\":\\\"step\\\",\\\"i\\\":$i,\\\"t_ns\\\":$t,"
        "\\\"dur_ns\\\":1000000,\\\"items\\\":4}\"; "
        "t=$((t + 1000000)); i=$((i + 1)); sleep 0.001; done; "
        "echo '{\"event\":\"done\",\"steps\":1,\"peak_mem_bytes\":1048576}'";
    static const char *const words[] = {"sh", "-c", script, NULL};
    struct gpu_driver driver = {0};
    struct measure_result result;
    struct error err;
    box_driver(&driver);
    find_slice(&driver);
    gpu_driver_close(&driver);
    struct measure_cell cell = {.name = "m",
                                .model = "m",
                                .board = mig_board_find("h100-80gb-sxm5"),
                                .batch = 4,
                                .procs = 1};
    cell.profile = mig_profile_find(cell.board, "3g");
    struct measure_settings settings = {.device = DEVICE_CUDA,
                                        .uuid = slice_uuid,
                                        .command = words,
                                        .duration_ns = 300000000,
                                        .longest_ns = 20000000000,
                                        .min_steps = 5,
                                        .ready_timeout_ns = 20000000000,
                                        .silence_timeout_ns = 20000000000};
    if (measure_closed(&cell, &settings, &result, &err))
        fail_msg("%s", err.text);
    assert_int_equal(result.status, STATUS_OK);
    assert_string_equal(result.gpu.reason, "");
    assert_true(result.gpu.samples >= 2 && result.gpu.energy_j > 0);
    assert_false(isnan(result.gpu.power_idle_w));
    measure_result_done(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_busy_slice_is_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others_on_the_gpu_hide_idle_power, set_up, tear_down),
        cmocka_unit_test_setup_teardown(throttling_is_a_verdict, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_measurement_has_them, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
