/* SPDX-License-Identifier: Apache-2.0
 *
 * Samplers: NVML with GPM on the simulated machine, pages of a dcgm-exporter, and what users
 * reported of metrics (M1 …, notes of user reports, section M and finding 2.1, 2.2).
 */
#include "wrap_driver.h"

#include <math.h>

#include "base/clock.h"
#include "gpu/metrics.h"
#include "sim/store.h"

static struct sim_box box;

static int set_up(void **state)
{
    (void)state;
    box_open(&box, "a100-40gb:1,h100-80gb-sxm5:1");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    box_close(&box);
    return 0;
}

static void assert_near(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-9 * fmax(1, fabs(expected))))
        fail_msg("%.17g, expected %.17g", actual, expected);
}

static const struct metric_value *value_of(const struct metric_sample *sample, const char *uuid,
                                           uint32_t gi, enum metric metric)
{
    const struct metric_row *row = metric_sample_find(sample, uuid, gi);
    if (!row)
        fail_msg("no row of %s %u", uuid, gi);
    return &row->values[metric];
}

static void assert_absent(const struct metric_value *value, const char *reason)
{
    if (!isnan(value->value))
        fail_msg("a value, %g, where null was expected (%s)", value->value, reason);
    assert_has(value->reason, reason);
}

/* --- pages --- */

#define UUID "GPU-7099682b-a20d-2bcc-74ab-b9060454d81e"

static void read_fixture(const char *name, struct str *text)
{
    char path[512];
    struct error err;

    snprintf(path, sizeof path, "%s/tests/gpu/data/%s", getenv("TRANCHE_SOURCE_ROOT"), name);
    if (file_read(path, 1 << 20, text, &err))
        fail_msg("%s", err.text);
}

/* A page's line for one instance. */
static void add_series(struct str *text, const char *name, const char *uuid, int gi,
                       const char *value)
{
    str_addf(text, "%s{gpu=\"0\",UUID=\"%s\",GPU_I_PROFILE=\"1g.5gb\",GPU_I_ID=\"%d\"} %s\n",
             name, uuid, gi, value);
}

static void test_page_of_the_old_names(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct metric_sample sample;

    (void)state;
    read_fixture("dcgm_2x1g_2g.prom", &text);
    metric_page_parse(text.bytes, NULL, &sample);
    assert_int_equal(sample.rows.count, 4); /* three instances and the board */
    assert_near(value_of(&sample, UUID, 9, METRIC_MEMORY_USED)->value, 4384);
    assert_near(value_of(&sample, UUID, 9, METRIC_MEMORY_TOTAL)->value, 4864);
    assert_int_equal(value_of(&sample, UUID, 9, METRIC_MEMORY_USED)->level,
                     METRIC_LEVEL_INSTANCE);
    assert_near(value_of(&sample, UUID, 9, METRIC_DRAM_ACTIVE)->value, 0.647986);
    /* Of the board, although the page repeats them for each instance. */
    assert_near(value_of(&sample, UUID, GPU_NO_INSTANCE, METRIC_POWER)->value,
                (116.043 + 116.043 + 116.163) / 3);
    assert_near(value_of(&sample, UUID, GPU_NO_INSTANCE, METRIC_ENERGY)->value, 57585.599);
    assert_near(value_of(&sample, UUID, GPU_NO_INSTANCE, METRIC_SM_CLOCK)->value, 1410);
    assert_int_equal(value_of(&sample, UUID, GPU_NO_INSTANCE, METRIC_POWER)->level,
                     METRIC_LEVEL_GPU);
    assert_absent(value_of(&sample, UUID, 9, METRIC_POWER), "whole GPU only");
    assert_absent(value_of(&sample, UUID, 9, METRIC_SM_ACTIVE), "not in the page");
    metric_sample_done(&sample);
}

static void test_units_are_those_of_the_name(void **state)
{
    static const struct {
        const char *name, *value;
        enum metric metric;
        double expected;
    } cases[] = {
        {"DCGM_FI_DEV_FB_USED", "4384", METRIC_MEMORY_USED, 4384},
        {"DCGM_FI_DEV_FB_USED_BYTES", "4596957184", METRIC_MEMORY_USED, 4384},
        {"DCGM_FI_DEV_FB_CAPACITY_BYTES", "5100273664", METRIC_MEMORY_TOTAL, 4864},
        {"DCGM_FI_PROF_SM_ACTIVE", "0.5", METRIC_SM_ACTIVE, 0.5},
        {"DCGM_FI_PROF_SM_UTIL_RATIO", "0.5", METRIC_SM_ACTIVE, 0.5},
        {"DCGM_FI_PROF_SM_OCCUPANCY_RATIO", "0.25", METRIC_SM_OCCUPANCY, 0.25},
        {"DCGM_FI_PROF_TENSOR_UTIL_RATIO", "0.1", METRIC_TENSOR_ACTIVE, 0.1},
        {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "0.1", METRIC_TENSOR_ACTIVE, 0.1},
    };
    static const struct {
        const char *name, *value;
        enum metric metric;
        double expected;
    } board[] = {
        {"DCGM_FI_DEV_SM_CLOCK", "1410", METRIC_SM_CLOCK, 1410},
        {"DCGM_FI_DEV_SM_CLOCK_HERTZ", "1410000000", METRIC_SM_CLOCK, 1410},
        {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "57585599", METRIC_ENERGY, 57585.599},
        {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_JOULES", "57585.599", METRIC_ENERGY, 57585.599},
        {"DCGM_FI_DEV_BOARD_POWER_WATTS", "116.04", METRIC_POWER, 116.04},
        {"DCGM_FI_DEV_GPU_UTIL", "50", METRIC_GPU_UTIL, 0.5},
        {"DCGM_FI_DEV_GPU_UTIL_RATIO", "0.5", METRIC_GPU_UTIL, 0.5},
        {"DCGM_FI_DEV_GPU_TEMP_CELSIUS", "37", METRIC_TEMPERATURE, 37},
        {"DCGM_FI_PROF_PCIE_TX_BYTES", "2097152", METRIC_PCIE_TX, 2},
    };
    struct metric_sample sample;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        add_series(&text, cases[i].name, UUID, 3, cases[i].value);
        metric_page_parse(text.bytes, NULL, &sample);
        assert_near(value_of(&sample, UUID, 3, cases[i].metric)->value, cases[i].expected);
        metric_sample_done(&sample);
    }
    for (size_t i = 0; i < sizeof board / sizeof board[0]; i++) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        add_series(&text, board[i].name, UUID, 3, board[i].value);
        metric_page_parse(text.bytes, NULL, &sample);
        assert_near(value_of(&sample, UUID, GPU_NO_INSTANCE, board[i].metric)->value,
                    board[i].expected);
        metric_sample_done(&sample);
    }
}

static void test_no_value_numbers_are_blank(void **state)
{
    static const char *const blanks[] = {"9223372036854775794",
                                         "9223372036854775792",
                                         "140737488355328",
                                         "2147483632",
                                         "NaN",
                                         "+Inf",
                                         "1e19"};
    struct metric_sample sample;

    (void)state;
    for (size_t i = 0; i < sizeof blanks / sizeof blanks[0]; i++) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        add_series(&text, "DCGM_FI_DEV_FB_USED", UUID, 3, blanks[i]);
        metric_page_parse(text.bytes, NULL, &sample);
        assert_absent(value_of(&sample, UUID, 3, METRIC_MEMORY_USED), "no value");
        metric_sample_done(&sample);
    }
}

static void test_broken_pages_do_no_harm(void **state)
{
    static const char *const pages[] = {"",
                                        "\n\n",
                                        "title",
                                        "DCGM_FI_DEV_FB_USED",
                                        "DCGM_FI_DEV_FB_USED{",
                                        "{}",
                                        "X{a=\"b",
                                        "DCGM_FI_DEV_FB_USED{UUID=\"a\"} ",
                                        "DCGM_FI_DEV_FB_USED{UUID=\"a\\\"b\",} 3 1700000000",
                                        "DCGM_FI_DEV_FB_USED{UUID=\"a\",GPU_I_ID=\"x\"} many\n",
                                        "DCGM_FI_{UUID=\"a\"} 1"};
    struct metric_sample sample;

    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        metric_page_parse(pages[i], NULL, &sample);
        metric_sample_done(&sample);
    }
    metric_page_parse(pages[8], NULL, &sample);
    assert_near(value_of(&sample, "a\"b", GPU_NO_INSTANCE, METRIC_MEMORY_USED)->value, 3);
    metric_sample_done(&sample);
}

/* M1, P1, 2.1: 3g+2g+1g+1g, saturated: the 2g shows 0.50 and the 3g 0.33. 2.2: every label says
 * 1g.5gb. */
static void test_m1_capped_activity_is_never_used(void **state)
{
    struct gpu_inventory inventory;
    struct metric_sample sample;
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)state;
    box_must_apply(&box, "3g@4 2g@0 1g@2 1g@3|.");
    box_read(&inventory);
    const struct gpu *gpu = &inventory.gpus.data[0];
    const char *uuid = gpu->identity.uuid;
    for (int i = 0; i < gpu->instances.count; i++) {
        int slices = gpu->instances.gi[i].compute_slices;
        add_series(&text, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", uuid, (int)gpu->instances.gi[i].id,
                   slices == 3   ? "0.33"
                   : slices == 2 ? "0.50"
                                 : "0.97");
        add_series(&text, "DCGM_FI_PROF_SM_ACTIVE", uuid, (int)gpu->instances.gi[i].id, "0.9");
    }
    metric_page_parse(text.bytes, &inventory, &sample);
    for (int i = 0; i < gpu->instances.count; i++) {
        const struct gpu_gi *gi = &gpu->instances.gi[i];
        const struct metric_row *row = metric_sample_find(&sample, uuid, gi->id);
        const struct metric_value *value = &row->values[METRIC_GRAPHICS_ACTIVE];
        assert_int_equal(row->slices, gi->compute_slices);
        assert_near(row->values[METRIC_SM_ACTIVE].value, 0.9);
        assert_near(value->ceiling, 1.0 / gi->compute_slices);
        if (gi->compute_slices == 1) {
            assert_near(value->value, 0.97);
            continue;
        }
        assert_true(value->capped);
        assert_absent(value, "capped");
        assert_near(value->raw, gi->compute_slices == 3 ? 0.33 : 0.50);
        assert_string_equal(row->profile, gi->compute_slices == 3 ? "3g.20gb" : "2g.10gb");
    }
    metric_sample_done(&sample);
    /* Without an inventory nothing says what is beside it. */
    metric_page_parse(text.bytes, NULL, &sample);
    assert_absent(value_of(&sample, uuid, gpu->instances.gi[0].id, METRIC_GRAPHICS_ACTIVE),
                  "not known");
    metric_sample_done(&sample);
    gpu_inventory_done(&inventory);
}

static void test_m1_equal_instances_are_believed(void **state)
{
    struct gpu_inventory inventory;
    struct metric_sample sample;
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)state;
    box_must_apply(&box, "3g 3g|.");
    box_read(&inventory);
    const struct gpu *gpu = &inventory.gpus.data[0];
    add_series(&text, "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", gpu->identity.uuid,
               (int)gpu->instances.gi[0].id, "0.95");
    add_series(&text, "DCGM_FI_PROF_SM_ACTIVE", gpu->identity.uuid,
               (int)gpu->instances.gi[0].id, "1.3"); /* NVIDIA/DCGM#152 */
    metric_page_parse(text.bytes, &inventory, &sample);
    const struct metric_row *row =
        metric_sample_find(&sample, gpu->identity.uuid, gpu->instances.gi[0].id);
    assert_near(row->values[METRIC_GRAPHICS_ACTIVE].value, 0.95);
    assert_absent(&row->values[METRIC_SM_ACTIVE], "for a ratio of 0 to 1");
    metric_sample_done(&sample);
    gpu_inventory_done(&inventory);
}

/* M2: the label says 1g.11gb where the live name is another. */
static void test_m2_join_is_by_uuid_and_instance_id(void **state)
{
    struct gpu_inventory inventory;
    struct metric_sample sample;
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)state;
    box_must_apply(&box, ".|3g@4 1g@0");
    box_read(&inventory);
    const struct gpu *gpu = &inventory.gpus.data[1];
    uint32_t id = gpu->instances.gi[0].id;
    str_addf(&text,
             "DCGM_FI_DEV_FB_USED{UUID=\"%s\",GPU_I_PROFILE=\"1g.11gb\",GPU_I_ID=\"%u\"} 7\n",
             gpu->identity.uuid, id);
    metric_page_parse(text.bytes, &inventory, &sample);
    assert_string_equal(metric_sample_find(&sample, gpu->identity.uuid, id)->profile,
                        "1g.10gb");
    metric_sample_done(&sample);
    gpu_inventory_done(&inventory);
}

/* M3: the pod labels of MIG series are empty: attribution is by instance. */
static void test_m3_pod_labels_are_not_needed(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct metric_sample sample;

    (void)state;
    read_fixture("dcgm_2x1g_2g.prom", &text);
    assert_has(text.bytes, "pod=\"\"");
    metric_page_parse(text.bytes, NULL, &sample);
    assert_non_null(metric_sample_find(&sample, UUID, 5));
    assert_non_null(metric_sample_find(&sample, UUID, 7));
    metric_sample_done(&sample);
}

/* M13: 250 W board, three instances, one of them idle. */
static void test_m13_parts_of_power_add_up(void **state)
{
    struct power_part parts[] = {{.slices = 4, .activity = 0.5},
                                 {.slices = 2, .activity = 1},
                                 {.slices = 1, .activity = 0}};

    (void)state;
    assert_int_equal(power_share(250, 50, parts, 3), POWER_BY_ACTIVITY);
    assert_near(parts[0].watts, 100);
    assert_near(parts[1].watts, 100);
    assert_near(parts[2].watts, 0);
    parts[1].activity = NAN;
    assert_int_equal(power_share(250, 50, parts, 3), POWER_BY_SLICES);
    assert_near(parts[0].watts + parts[1].watts + parts[2].watts, 200);
    assert_int_equal(power_share(50, 60, parts, 3), POWER_BY_NOTHING);
    assert_near(parts[0].watts, 0);
    assert_string_equal(power_rule_name(POWER_BY_ACTIVITY), "activity x slices");
}

/* --- NVML and GPM --- */

static void put_load(unsigned gpu, int start, uint32_t memory_mib, uint32_t sm_percent)
{
    static struct sim_store store;
    struct sim_process process = {.pid = (uint32_t)getpid(),
                                  .gpu = gpu,
                                  .gi = NVML_NO_INSTANCE_ID,
                                  .memory_mib = memory_mib,
                                  .sm_percent = sm_percent,
                                  .name = "load"};
    struct error err;

    if (sim_store_open(&store, &err) || sim_store_lock(&store, true, &err))
        fail_msg("%s", err.text);
    for (unsigned gi = 0; gi < SIM_GI_IDS; gi++)
        if (store.machine.gpus[gpu].gis[gi].used &&
            store.machine.gpus[gpu].gis[gi].start == start)
            process.gi = gi;
    assert_true(sim_add_process(&store.machine, &process));
    assert_int_equal(sim_store_commit(&store, &err), 0);
    sim_store_unlock(&store, false);
    sim_store_close(&store);
}

static void take(const struct metric_sampler *sampler, struct metric_sample *sample)
{
    struct error err;
    if (sampler->ops->sample(sampler->self, sample, &err))
        fail_msg("%s", err.text);
}

static void pass(struct fake_clock *fake, int64_t ms)
{
    fake->time_ns += ms * 1000000;
    usleep(110000); /* the simulated counters follow real time */
}

static void test_gpm_windows(void **state)
{
    struct gpu_driver driver;
    struct metric_sampler sampler;
    struct metric_sample sample;
    struct fake_clock fake;
    struct gpu_inventory inventory;

    (void)state;
    box_must_apply(&box, "3g@4 1g@0|3g@4 1g@0");
    put_load(1, 4, 1000, 50);
    box_read(&inventory);
    const char *ampere = inventory.gpus.data[0].identity.uuid;
    const char *hopper = inventory.gpus.data[1].identity.uuid;
    uint32_t busy = inventory.gpus.data[1].instances.gi[1].id;
    box_driver(&driver);
    fake_clock_init(&fake, 1);
    metric_sampler_nvml(&driver, &fake.source, &sampler);
    take(&sampler, &sample);
    assert_absent(value_of(&sample, hopper, busy, METRIC_SM_ACTIVE), "first sample");
    assert_absent(value_of(&sample, ampere, GPU_NO_INSTANCE, METRIC_SM_ACTIVE), "no GPM");
    assert_true(value_of(&sample, ampere, GPU_NO_INSTANCE, METRIC_POWER)->value > 0);
    assert_absent(value_of(&sample, hopper, busy, METRIC_POWER), "whole GPU only");
    assert_true(value_of(&sample, hopper, busy, METRIC_MEMORY_USED)->value >= 1000);
    /* M10: the slice's memory, not the parent's. */
    assert_near(value_of(&sample, hopper, busy, METRIC_MEMORY_TOTAL)->value,
                inventory.gpus.data[1].instances.gi[1].memory_mib);
    metric_sample_done(&sample);
    pass(&fake, 50);
    take(&sampler, &sample);
    assert_absent(value_of(&sample, hopper, busy, METRIC_SM_ACTIVE), "shorter than 100 ms");
    metric_sample_done(&sample);
    pass(&fake, 60);
    take(&sampler, &sample);
    assert_near(round(value_of(&sample, hopper, busy, METRIC_GRAPHICS_ACTIVE)->value * 100),
                50);
    assert_int_equal(value_of(&sample, hopper, busy, METRIC_SM_ACTIVE)->level,
                     METRIC_LEVEL_INSTANCE);
    metric_sample_done(&sample);
    pass(&fake, 61000);
    take(&sampler, &sample);
    assert_absent(value_of(&sample, hopper, busy, METRIC_SM_ACTIVE), "longer than 60 s");
    metric_sample_done(&sample);
    metric_sampler_close(&sampler);
    gpu_driver_close(&driver);
    gpu_inventory_done(&inventory);
}

static void test_gpm_sees_an_instance_made_again(void **state)
{
    struct gpu_driver driver;
    struct metric_sampler sampler;
    struct metric_sample sample;
    struct fake_clock fake;
    struct gpu_inventory inventory;

    (void)state;
    box_must_apply(&box, ".|3g@4 1g@0");
    box_read(&inventory);
    char uuid[GPU_TEXT_SIZE];
    snprintf(uuid, sizeof uuid, "%s", inventory.gpus.data[1].identity.uuid);
    gpu_inventory_done(&inventory);
    box_driver(&driver);
    fake_clock_init(&fake, 1);
    metric_sampler_nvml(&driver, &fake.source, &sampler);
    take(&sampler, &sample);
    size_t rows = sample.rows.count;
    metric_sample_done(&sample);
    box_must_apply(&box, ".|3g@4");
    pass(&fake, 200);
    take(&sampler, &sample);
    assert_int_equal(sample.rows.count, rows - 1);
    metric_sample_done(&sample);
    /* In another order the same ids come back with other UUIDs, or a new id begins anew. */
    box_must_apply(&box, ".|2g@0 3g@4");
    pass(&fake, 200);
    take(&sampler, &sample);
    for (size_t i = 0; i < sample.rows.count; i++)
        if (!strcmp(sample.rows.data[i].profile, "2g.20gb"))
            assert_true(isnan(sample.rows.data[i].values[METRIC_SM_ACTIVE].value));
    json_t *json = metric_sample_to_json(&sample);
    assert_true(json_array_size(json_object_get(json, "rows")) == sample.rows.count);
    json_decref(json);
    metric_sample_done(&sample);
    metric_sampler_close(&sampler);
    gpu_driver_close(&driver);
}

/* Two compute instances share one GPU instance: rows of their own, memory of the GPU
 * instance's level, and what the library cannot tell of them is null. */
static void test_rows_of_compute_instances(void **state)
{
    struct gpu_driver driver;
    struct metric_sampler sampler;
    struct metric_sample sample;
    struct fake_clock fake;
    struct gpu_inventory inventory;

    (void)state;
    box_must_apply(&box, ".|3g@4:2c+1c 1g@0");
    box_read(&inventory);
    const char *uuid = inventory.gpus.data[1].identity.uuid;
    const struct gpu_gi *gi = &inventory.gpus.data[1].instances.gi[1];
    box_driver(&driver);
    fake_clock_init(&fake, 1);
    metric_sampler_nvml(&driver, &fake.source, &sampler);
    for (int i = 0; i < 2; i++) {
        take(&sampler, &sample);
        assert_int_equal(sample.rows.count, 2 + 2 + 2); /* GPUs, instances, compute instances */
        const struct metric_row *row =
            metric_sample_find_ci(&sample, uuid, gi->id, gi->ci[0].id);
        assert_non_null(row);
        assert_int_equal(row->slices, gi->ci[0].compute_slices);
        assert_near(row->values[METRIC_MEMORY_TOTAL].value, gi->memory_mib);
        assert_int_equal(row->values[METRIC_MEMORY_TOTAL].level, METRIC_LEVEL_INSTANCE);
        assert_absent(&row->values[METRIC_SM_ACTIVE], "NOT_SUPPORTED");
        assert_absent(&row->values[METRIC_DRAM_ACTIVE], "NVML has no such value");
        metric_sample_done(&sample);
        pass(&fake, 200);
    }
    metric_sampler_close(&sampler);
    gpu_driver_close(&driver);
    gpu_inventory_done(&inventory);
}

static void test_clock_reasons_in_words(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)state;
    metric_clock_reasons(0x4 | 0x40, &text);
    assert_string_equal(text.bytes, "sw_power_cap hw_thermal_slowdown");
    str_clear(&text);
    metric_clock_reasons(0, &text);
    assert_string_equal(text.bytes, "none");
}

static int fetch_page(void *context, struct str *ret_text, struct error *err)
{
    if (!context)
        return error_set(err, E_MISSING, "no exporter");
    str_add(ret_text, context);
    return 0;
}

static void test_page_sampler(void **state)
{
    char page[] = "DCGM_FI_DEV_FB_USED{UUID=\"a\"} 5\n";
    struct metric_page source = {.fetch = fetch_page, .context = page};
    struct metric_sampler sampler;
    struct metric_sample sample;
    struct fake_clock fake;
    struct error err;

    (void)state;
    fake_clock_init(&fake, 42);
    metric_sampler_dcgm(&source, &fake.source, &sampler);
    take(&sampler, &sample);
    assert_int_equal(sample.time_ns, 42);
    assert_near(value_of(&sample, "a", GPU_NO_INSTANCE, METRIC_MEMORY_USED)->value, 5);
    metric_sample_done(&sample);
    metric_sampler_close(&sampler);
    source.context = NULL;
    metric_sampler_dcgm(&source, &fake.source, &sampler);
    assert_int_equal(sampler.ops->sample(sampler.self, &sample, &err), -E_MISSING);
    metric_sampler_close(&sampler);
}

#define BOXED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_of_the_old_names),
        cmocka_unit_test(test_units_are_those_of_the_name),
        cmocka_unit_test(test_no_value_numbers_are_blank),
        cmocka_unit_test(test_broken_pages_do_no_harm),
        BOXED(test_m1_capped_activity_is_never_used),
        BOXED(test_m1_equal_instances_are_believed),
        BOXED(test_m2_join_is_by_uuid_and_instance_id),
        cmocka_unit_test(test_m3_pod_labels_are_not_needed),
        cmocka_unit_test(test_m13_parts_of_power_add_up),
        BOXED(test_gpm_windows),
        BOXED(test_gpm_sees_an_instance_made_again),
        BOXED(test_rows_of_compute_instances),
        cmocka_unit_test(test_clock_reasons_in_words),
        cmocka_unit_test(test_page_sampler),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
