/* SPDX-License-Identifier: Apache-2.0
 *
 * Fault plans: what may be written, and what each effect does to a call.
 */
#include "client.h"

#include <signal.h>
#include <time.h>

#include "sim/fault.h"

static struct nvml nvml;

static void test_plans_that_parse(void **state)
{
    (void)state;
    static const char *const plans[] = {
        "",
        "# nothing",
        "call 3: error IN_USE",
        "call 3 : error NVML_ERROR_IN_USE after",
        "nvmlDeviceGetName gpu 1 nth 2: hang 250ms, error 10",
        "*Destroy every: error IN_USE; Init: kill\nShutdown: kill after # twice",
        "DeviceCreateGpuInstance from 2: kill commit",
        ";;call 1:hang 2s",
    };
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        struct error err = {0};
        CLEANUP(sim_faults_free_ptr) struct sim_faults *faults = NULL;
        if (sim_faults_parse(plans[i], &faults, &err) != 0)
            fail_msg("'%s': %s", plans[i], err.text);
    }
}

static void test_plans_that_do_not(void **state)
{
    (void)state;
    static const struct {
        const char *plan, *said;
    } cases[] = {
        {"call: error IN_USE", "a number from 1"},
        {"call 0: error IN_USE", "a number from 1"},
        {"call 3 error IN_USE", "':' is expected"},
        {"call 3: error", "no error code"},
        {"call 3: error NO_SUCH", "no error code"},
        {"call 3: error 998", "no error code"},
        {"call 3: error SUCCESS", "no error code"},
        {"call 3: burn", "error, hang or kill"},
        {"call 3: hang 5", "a time"},
        {"call 3: hang 2h", "a time"},
        {"call 3: hang 99999999s", "a time"},
        {"GetName gpu x: kill", "a number from 0"},
        {"GetName nth 99999999999999999999: kill", "a number from 1"},
        {"call 3: kill kill", "one word too many"},
        {"a b c d e f g h i j k l m n o p q: kill", "too long"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        struct sim_faults *faults = NULL;
        if (sim_faults_parse(cases[i].plan, &faults, &err) != -E_INPUT)
            fail_msg("'%s' was taken", cases[i].plan);
        if (!strstr(err.text, cases[i].said))
            fail_msg("'%s' said: %s", cases[i].plan, err.text);
    }
}

static void test_whose_turn(void **state)
{
    (void)state;
    struct sim_faults *faults = NULL;
    struct error err;
    assert_int_equal(sim_faults_parse("DeviceGetName gpu 1 nth 2: error TIMEOUT;"
                                      "nvmlInit from 2: error 9; *Destroy every: error IN_USE",
                                      &faults, &err),
                     0);
    static const struct {
        const char *function;
        int gpu;
        nvmlReturn_t error;
    } calls[] = {
        {"nvmlDeviceGetName", 1, NVML_SUCCESS},
        {"nvmlDeviceGetName", 0, NVML_SUCCESS},
        {"nvmlDeviceGetName", 1, NVML_ERROR_TIMEOUT},
        {"nvmlDeviceGetName", 1, NVML_SUCCESS},
        {"nvmlInit", -1, NVML_SUCCESS},
        {"nvmlInit_v2", -1, NVML_ERROR_DRIVER_NOT_LOADED},
        {"nvmlInit_v2", -1, NVML_ERROR_DRIVER_NOT_LOADED},
        {"nvmlInitWithFlags", -1, NVML_SUCCESS},
        {"nvmlGpuInstanceDestroy", 0, NVML_ERROR_IN_USE},
        {"nvmlComputeInstanceDestroy", 3, NVML_ERROR_IN_USE},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct sim_fault_effects effects =
            sim_faults_next(faults, calls[i].function, calls[i].gpu);
        assert_int_equal(effects.error_before, calls[i].error);
    }
    sim_faults_free(faults);
}

static void test_every_code_by_name_and_number(void **state)
{
    (void)state;
#define X(name)                                                                                \
    {                                                                                          \
        nvmlReturn_t code;                                                                     \
        char number[8];                                                                        \
        snprintf(number, sizeof number, "%d", (int)(name));                                    \
        assert_true(sim_return_parse(#name, &code) && code == (name));                         \
        assert_true(sim_return_parse(number, &code) && code == (name));                        \
        assert_string_equal(sim_return_name(name), #name);                                     \
    }
    NVML_RETURNS(X)
#undef X
}

static void test_error_before_and_after(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1");
    nvmlDevice_t device = device_at(&nvml, 0);
    nvmlGpuInstance_t gi;
    unsigned left;
    OK(nvml.nvmlShutdown());
    setenv("TRANCHE_SIM_FAULTS",
           "DeviceCreateGpuInstance nth 1: error GPU_IS_LOST;"
           "DeviceCreateGpuInstance nth 2: error TIMEOUT after",
           1);
    OK(nvml.nvmlInit_v2());
    FAILS(GPU_IS_LOST, nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi));
    OK(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(device, 9, &left));
    assert_int_equal(left, 2);
    FAILS(TIMEOUT, nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi));
    OK(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(device, 9, &left));
    assert_int_equal(left, 1);
    stop(&nvml);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void test_hang_from_a_file(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    char path[] = "/tmp/tranche-sim-plan-XXXXXX", given[64];
    int fd = mkstemp(path);
    static const char plan[] = "# slow counting\nDeviceGetCount: hang 80ms\n";
    assert_int_equal(write(fd, plan, sizeof plan - 1), sizeof plan - 1);
    close(fd);
    snprintf(given, sizeof given, "@%s", path);
    setenv("TRANCHE_SIM_FAULTS", given, 1);
    OK(nvml.nvmlInit_v2());
    unsigned count;
    double before = seconds();
    OK(nvml.nvmlDeviceGetCount_v2(&count));
    assert_true(seconds() - before >= 0.08);
    unlink(path);
    stop(&nvml);
}

static void test_bad_plan_fails_init(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    setenv("TRANCHE_SIM_FAULTS", "call x: kill", 1);
    assert_int_equal(nvml.nvmlInit_v2(), NVML_ERROR_UNKNOWN);
    setenv("TRANCHE_SIM_FAULTS", "@/nonexistent/plan", 1);
    assert_int_equal(nvml.nvmlInit_v2(), NVML_ERROR_UNKNOWN);
}

/* In a child: initialises, creates two GPU instances, leaves with 7. */
static int create_two(void)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        nvmlDevice_t device;
        nvmlGpuInstance_t gi;
        nvml.nvmlInit_v2();
        nvml.nvmlDeviceGetHandleByIndex_v2(0, &device);
        nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi);
        nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi);
        _exit(7);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_kill_before_within_and_after(void **state)
{
    (void)state;
    static const struct {
        const char *plan;
        unsigned made;
    } cases[] = {
        {"DeviceCreateGpuInstance nth 2: kill", 1},
        {"DeviceCreateGpuInstance nth 2: kill commit", 1},
        {"DeviceCreateGpuInstance nth 2: kill after", 2},
        {"call 3: kill", 0},
        {"call 3: kill after", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start_with_mig(&nvml, "a100-40gb:1");
        OK(nvml.nvmlShutdown());
        setenv("TRANCHE_SIM_FAULTS", cases[i].plan, 1);
        int status = create_two();
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        unsetenv("TRANCHE_SIM_FAULTS");
        OK(nvml.nvmlInit_v2());
        unsigned left;
        OK(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(device_at(&nvml, 0), 9, &left));
        assert_int_equal(left, 2 - cases[i].made);
        stop(&nvml);
    }
}

static void test_trace_names_every_call(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    char path[] = "/tmp/tranche-sim-trace-XXXXXX", line[200];
    close(mkstemp(path));
    setenv("TRANCHE_SIM_TRACE", path, 1);
    OK(nvml.nvmlInit_v2());
    char name[2];
    FAILS(INSUFFICIENT_SIZE, nvml.nvmlDeviceGetName(device_at(&nvml, 0), name, sizeof name));
    OK(nvml.nvmlShutdown());
    FILE *file = fopen(path, "r");
    static const char *const wanted[] = {
        "nvmlInit_v2 -1 NVML_SUCCESS", "nvmlDeviceGetHandleByIndex_v2 0 NVML_SUCCESS",
        "nvmlDeviceGetName 0 NVML_ERROR_INSUFFICIENT_SIZE", "nvmlShutdown -1 NVML_SUCCESS"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_non_null(fgets(line, sizeof line, file));
        assert_non_null(strstr(line, wanted[i]));
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    unlink(path);
    drop_machine();
}

int main(void)
{
    nvml_load(&nvml);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_that_parse),
        cmocka_unit_test(test_plans_that_do_not),
        cmocka_unit_test(test_whose_turn),
        cmocka_unit_test(test_every_code_by_name_and_number),
        cmocka_unit_test(test_error_before_and_after),
        cmocka_unit_test(test_hang_from_a_file),
        cmocka_unit_test(test_bad_plan_fails_init),
        cmocka_unit_test(test_kill_before_within_and_after),
        cmocka_unit_test(test_trace_names_every_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
