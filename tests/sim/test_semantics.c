/* SPDX-License-Identifier: Apache-2.0
 *
 * How NVML itself behaves: initialisation, buffers, handles, permissions, the MIG mode with
 * its resets and reboots, processes, events, GPM, and what is not supported in MIG mode.
 */
#include "client.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"

static struct nvml nvml;

static void test_initialisation_is_counted(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    unsigned count;
    char text[80];
    FAILS(UNINITIALIZED, nvml.nvmlDeviceGetCount_v2(&count));
    FAILS(UNINITIALIZED, nvml.nvmlSystemGetDriverVersion(text, sizeof text));
    FAILS(UNINITIALIZED, nvml.nvmlShutdown());
    OK(nvml.nvmlInit_v2());
    OK(nvml.nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS));
    OK(nvml.nvmlShutdown());
    OK(nvml.nvmlDeviceGetCount_v2(&count));
    assert_int_equal(count, 1);
    OK(nvml.nvmlShutdown());
    FAILS(UNINITIALIZED, nvml.nvmlDeviceGetCount_v2(&count));
    drop_machine();
}

static void test_buffers_and_null_pointers(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    OK(nvml.nvmlInit_v2());
    nvmlDevice_t device = device_at(&nvml, 0);
    char text[96] = "untouched";
    FAILS(INSUFFICIENT_SIZE, nvml.nvmlDeviceGetUUID(device, text, 40));
    assert_string_equal(text, "untouched");
    OK(nvml.nvmlDeviceGetUUID(device, text, 41));
    FAILS(INVALID_ARGUMENT, nvml.nvmlDeviceGetUUID(device, NULL, 96));
    FAILS(INVALID_ARGUMENT, nvml.nvmlDeviceGetUUID(NULL, text, 96));
    FAILS(INVALID_ARGUMENT, nvml.nvmlDeviceGetUUID((nvmlDevice_t)(void *)text, text, 96));
    FAILS(INVALID_ARGUMENT, nvml.nvmlDeviceGetCount_v2(NULL));
    FAILS(INVALID_ARGUMENT, nvml.nvmlDeviceGetHandleByIndex_v2(1, &device));
    FAILS(NOT_FOUND, nvml.nvmlDeviceGetHandleByUUID("GPU-0", &device));
    FAILS(NOT_FOUND, nvml.nvmlDeviceGetHandleByPciBusId_v2("0000:99:00.0", &device));
    FAILS(NOT_FOUND, nvml.nvmlDeviceGetHandleByPciBusId_v2("nonsense", &device));
    nvmlMemory_v2_t memory = {.version = 1};
    FAILS(ARGUMENT_VERSION_MISMATCH, nvml.nvmlDeviceGetMemoryInfo_v2(device, &memory));
    memory.version = NVML_MEMORY_V2;
    OK(nvml.nvmlDeviceGetMemoryInfo_v2(device, &memory));
    assert_true(memory.total == memory.free + memory.used + memory.reserved);
    stop(&nvml);
}

/* A function of the .def file, called with arguments that it does not have. */
static void test_unsupported_functions(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    nvmlReturn_t (*fan_count)(nvmlDevice_t, unsigned *);
    *(void **)&fan_count = dlsym(nvml.library, "nvmlDeviceGetNumFans");
    assert_non_null(fan_count);
    unsigned count;
    assert_int_equal(fan_count(NULL, &count), NVML_ERROR_UNINITIALIZED);
    OK(nvml.nvmlInit_v2());
    assert_int_equal(fan_count(device_at(&nvml, 0), &count), NVML_ERROR_NOT_SUPPORTED);
    assert_string_equal(nvml.nvmlErrorString(NVML_ERROR_IN_USE), "In use by another client");
    assert_string_equal(nvml.nvmlErrorString((nvmlReturn_t)12345), "Unknown Error");
    stop(&nvml);
}

typedef nvmlReturn_t any_function(const void *, const void *, const void *, const void *,
                                  const void *, const void *);

/* Calls every function but those that end things, with this first argument and zeros. The
 * calling conventions of x86-64 and ARM64 let any signature be called so. */
static void call_everything(const void *first)
{
    static const char *const others[] = {"nvmlInit", "nvmlShutdown", "nvmlErrorString",
                                         "Destroy"};
    static const char *const outputs[] = {
        "nvmlSystem",         "GetCount",          "GetHandleBy", "nvmlEvent",
        "nvmlGpmSampleAlloc", "nvmlGpmMetricsGet", "nvmlUnit",    "nvmlGetExcluded"};
    static const char *const names[] = {
#define X(need, type, name, parameters) #name,
        NVML_FUNCTIONS(X)
#undef X
#define X(name, parameters) #name,
            SIM_MORE_FUNCTIONS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool skip = false; /* with a handle: what takes something else first */
        for (size_t n = 0; n < sizeof others / sizeof others[0]; n++)
            skip |= strstr(names[i], others[n]) != NULL;
        for (size_t n = 0; first && n < sizeof outputs / sizeof outputs[0]; n++)
            skip |= strstr(names[i], outputs[n]) != NULL;
        if (skip)
            continue;
        any_function *function;
        *(void **)&function = dlsym(nvml.library, names[i]);
        nvmlReturn_t status = function(first, NULL, NULL, NULL, NULL, NULL);
        if (strcmp(nvml.nvmlErrorString(status), "Unknown Error") == 0)
            fail_msg("%s: %d", names[i], (int)status);
    }
}

static void test_no_function_follows_a_null_pointer(void **state)
{
    (void)state;
    start_with_mig(&nvml, "h100-80gb-sxm5:1");
    nvmlDevice_t device = device_at(&nvml, 0);
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    nvmlComputeInstanceInfo_t info;
    OK(nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi));
    OK(nvml.nvmlGpuInstanceCreateComputeInstance(gi, 2, &ci));
    OK(nvml.nvmlComputeInstanceGetInfo_v2(ci, &info));
    call_everything(NULL);
    call_everything(device);
    call_everything(info.device);
    call_everything(gi);
    call_everything(ci);
    OK(nvml.nvmlComputeInstanceGetInfo_v2(ci, &info));
    stop(&nvml);
}

static void test_permissions(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1");
    nvmlDevice_t device = device_at(&nvml, 0), mig;
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    nvmlReturn_t activation;
    nvmlMemory_t memory;
    OK(nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi));
    OK(nvml.nvmlGpuInstanceCreateComputeInstance(gi, 2, &ci));
    setenv("TRANCHE_SIM_PRIVILEGE", "user", 1);
    FAILS(NO_PERMISSION, nvml.nvmlDeviceSetMigMode(device, 0, &activation));
    FAILS(NO_PERMISSION, nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi));
    FAILS(NO_PERMISSION, nvml.nvmlComputeInstanceDestroy(ci));
    FAILS(NO_PERMISSION, nvml.nvmlDeviceGetMemoryInfo(device, &memory));
    OK(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &mig));
    OK(nvml.nvmlDeviceGetMemoryInfo(mig, &memory));
    assert_true(memory.total == 20096ULL << 20);
    stop(&nvml);
}

static void test_not_supported_in_mig_mode(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1");
    nvmlDevice_t device = device_at(&nvml, 0);
    nvmlUtilization_t utilization;
    nvmlProcessUtilizationSample_t samples[4];
    nvmlEnableState_t mode;
    unsigned value, period, count = 4;
    FAILS(NOT_SUPPORTED, nvml.nvmlDeviceGetUtilizationRates(device, &utilization));
    FAILS(NOT_SUPPORTED, nvml.nvmlDeviceGetEncoderUtilization(device, &value, &period));
    FAILS(NOT_SUPPORTED, nvml.nvmlDeviceGetAccountingMode(device, &mode));
    FAILS(NOT_SUPPORTED, nvml.nvmlDeviceGetProcessUtilization(device, samples, &count, 0));
    nvmlDeviceAttributes_t attributes;
    FAILS(INVALID_ARGUMENT, nvml.nvmlDeviceGetAttributes_v2(device, &attributes));
    FAILS(INVALID_ARGUMENT, nvml.nvmlDeviceGetGpuInstanceId(device, &value));
    nvmlReturn_t activation;
    OK(nvml.nvmlDeviceSetMigMode(device, 0, &activation));
    OK(nvml.nvmlDeviceGetUtilizationRates(device, &utilization));
    OK(nvml.nvmlDeviceGetMaxMigDeviceCount(device, &count));
    assert_int_equal(count, 0);
    FAILS(NOT_SUPPORTED, nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(device, 9, &count));
    OK(nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, 9, NULL, &count));
    assert_int_equal(count, 2); /* placements are known with MIG off too */
    stop(&nvml);
}

static void check_mode(nvmlDevice_t device, unsigned current, unsigned pending)
{
    unsigned seen_current, seen_pending;
    OK(nvml.nvmlDeviceGetMigMode(device, &seen_current, &seen_pending));
    assert_int_equal(seen_current, current);
    assert_int_equal(seen_pending, pending);
}

static nvmlReturn_t set_mode(nvmlDevice_t device, unsigned mode)
{
    nvmlReturn_t activation = NVML_ERROR_UNKNOWN;
    OK(nvml.nvmlDeviceSetMigMode(device, mode, &activation));
    return activation;
}

/* R13: the mode stays pending while somebody holds the GPU; a reset by hand settles it. */
static void test_R13_ampere_mode_is_pending_while_in_use(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    assert_int_equal(CONTROL("add", "--keep", "--pid", "4000000", "--name", "trainer"), 0);
    OK(nvml.nvmlInit_v2());
    nvmlDevice_t device = device_at(&nvml, 0);
    FAILS(IN_USE, set_mode(device, 1));
    check_mode(device, 0, 1);
    OK(nvml.nvmlShutdown());
    assert_int_equal(control("nvidia-smi", (const char *[]){"-r", "-i", "0", NULL}), 19);
    assert_int_equal(CONTROL("remove", "4000000"), 0);
    OK(nvml.nvmlInit_v2()); /* we ourselves are a client now */
    assert_int_equal(control("nvidia-smi", (const char *[]){"-r", "-i", "0", NULL}), 19);
    OK(nvml.nvmlShutdown());
    assert_int_equal(control("nvidia-smi", (const char *[]){"-r", "-i", "0", NULL}), 0);
    OK(nvml.nvmlInit_v2());
    check_mode(device, 1, 1);
    OK(set_mode(device, 0)); /* nobody but us: the driver resets the GPU itself */
    check_mode(device, 0, 0);
    stop(&nvml);
}

static void test_another_monitor_keeps_ampere_pending(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    int go[2], done[2];
    assert_true(pipe(go) == 0 && pipe(done) == 0);
    pid_t monitor = fork();
    if (monitor == 0) {
        char byte = (char)nvml.nvmlInit_v2();
        if (write(go[1], &byte, 1) == 1 && read(done[0], &byte, 1) == 1)
            _exit(0);
        _exit(1);
    }
    char byte;
    assert_int_equal(read(go[0], &byte, 1), 1);
    OK(nvml.nvmlInit_v2());
    nvmlDevice_t device = device_at(&nvml, 0);
    FAILS(IN_USE, set_mode(device, 1));
    check_mode(device, 0, 1);
    assert_int_equal(write(done[1], &byte, 1), 1);
    assert_int_equal(waitpid(monitor, NULL, 0), monitor);
    OK(set_mode(device, 1));
    check_mode(device, 1, 1);
    stop(&nvml);
}

static void test_R13_passthrough_needs_a_reboot(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    assert_int_equal(CONTROL("set", "0", "--passthrough"), 0);
    OK(nvml.nvmlInit_v2());
    FAILS(RESET_REQUIRED, set_mode(device_at(&nvml, 0), 1));
    OK(nvml.nvmlShutdown());
    assert_int_equal(CONTROL("reset", "0"), 4);
    assert_int_equal(CONTROL("reboot"), 0);
    OK(nvml.nvmlInit_v2());
    check_mode(device_at(&nvml, 0), 1, 1);
    stop(&nvml);
}

static void test_hopper_mode_is_immediate(void **state)
{
    (void)state;
    new_machine("h100-80gb-sxm5:1");
    assert_int_equal(CONTROL("add", "--keep", "--pid", "4000000"), 0);
    OK(nvml.nvmlInit_v2());
    nvmlDevice_t device = device_at(&nvml, 0);
    FAILS(IN_USE, set_mode(device, 1));
    check_mode(device, 0, 0);
    assert_int_equal(CONTROL("remove", "4000000"), 0);
    OK(set_mode(device, 1));
    check_mode(device, 1, 1);
    nvmlGpuInstance_t gi;
    OK(nvml.nvmlDeviceCreateGpuInstance(device, 0, &gi));
    nvmlReturn_t activation;
    FAILS(IN_USE, nvml.nvmlDeviceSetMigMode(device, 0, &activation));
    OK(activation);
    check_mode(device, 1, 1);
    OK(nvml.nvmlGpuInstanceDestroy(gi));
    OK(set_mode(device, 0));
    stop(&nvml);
}

/* R14: instances never survive a reboot; the mode does on Ampere and does not on Hopper. */
static void test_R14_reboot(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1,h100-80gb-sxm5:1");
    nvmlGpuInstance_t gi;
    OK(nvml.nvmlDeviceCreateGpuInstance(device_at(&nvml, 0), 9, &gi));
    OK(nvml.nvmlShutdown());
    assert_int_equal(CONTROL("reboot"), 0);
    OK(nvml.nvmlInit_v2());
    check_mode(device_at(&nvml, 0), 1, 1);
    check_mode(device_at(&nvml, 1), 0, 0);
    nvmlGpuInstanceInfo_t info;
    FAILS(INVALID_ARGUMENT, nvml.nvmlGpuInstanceGetInfo(gi, &info));
    stop(&nvml);
}

static void test_processes_hold_instances(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1");
    nvmlDevice_t device = device_at(&nvml, 0), mig;
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    nvmlComputeInstanceInfo_t info;
    char uuid[96], pid_text[16];
    OK(nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi));
    OK(nvml.nvmlGpuInstanceCreateComputeInstance(gi, 2, &ci));
    OK(nvml.nvmlComputeInstanceGetInfo_v2(ci, &info));
    OK(nvml.nvmlDeviceGetUUID(info.device, uuid, sizeof uuid));
    pid_t sleeper = fork();
    if (sleeper == 0) {
        pause();
        _exit(0);
    }
    snprintf(pid_text, sizeof pid_text, "%d", (int)sleeper);
    assert_int_equal(CONTROL("add", "-d", uuid, "-p", pid_text, "-m", "1000", "-n", "trainer"),
                     0);
    FAILS(IN_USE, nvml.nvmlComputeInstanceDestroy(ci));
    nvmlProcessInfo_t infos[2];
    unsigned count = 0;
    FAILS(INSUFFICIENT_SIZE,
          nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL));
    assert_int_equal(count, 1);
    count = 2;
    OK(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &mig));
    OK(nvml.nvmlDeviceGetComputeRunningProcesses_v3(mig, &count, infos));
    assert_int_equal(count, 1);
    assert_int_equal(infos[0].pid, sleeper);
    assert_true(infos[0].usedGpuMemory == 1000ULL << 20);
    assert_int_equal(infos[0].computeInstanceId, info.id);
    char name[64];
    OK(nvml.nvmlSystemGetProcessName((unsigned)sleeper, name, sizeof name));
    assert_string_equal(name, "trainer");
    kill(sleeper, SIGKILL);
    assert_int_equal(waitpid(sleeper, NULL, 0), sleeper);
    count = 2;
    OK(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos));
    assert_int_equal(count, 0);
    OK(nvml.nvmlComputeInstanceDestroy(ci));
    OK(nvml.nvmlGpuInstanceDestroy(gi));
    stop(&nvml);
}

static void test_load_shows_in_the_readings(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    OK(nvml.nvmlInit_v2());
    nvmlDevice_t device = device_at(&nvml, 0);
    unsigned idle_mw, busy_mw, limit_mw, celsius;
    unsigned long long energy[2], reasons;
    nvmlUtilization_t utilization;
    OK(nvml.nvmlDeviceGetPowerUsage(device, &idle_mw));
    OK(nvml.nvmlDeviceGetCurrentClocksEventReasons(device, &reasons));
    assert_int_equal(reasons, 1);
    assert_int_equal(CONTROL("add", "--keep", "--pid", "4000000", "--sm", "50"), 0);
    OK(nvml.nvmlDeviceGetTotalEnergyConsumption(device, &energy[0]));
    OK(nvml.nvmlDeviceGetPowerUsage(device, &busy_mw));
    OK(nvml.nvmlDeviceGetEnforcedPowerLimit(device, &limit_mw));
    assert_int_equal(busy_mw, (idle_mw + limit_mw) / 2);
    OK(nvml.nvmlDeviceGetUtilizationRates(device, &utilization));
    assert_int_equal(utilization.gpu, 50);
    OK(nvml.nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &celsius));
    assert_int_equal(celsius, 52);
    usleep(20000);
    OK(nvml.nvmlDeviceGetTotalEnergyConsumption(device, &energy[1]));
    assert_true(energy[1] >= energy[0] + busy_mw / 50 - 1);
    nvmlFieldValue_t fields[3] = {{.fieldId = NVML_FI_DEV_POWER_INSTANT},
                                  {.fieldId = NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED},
                                  {.fieldId = 9999}};
    OK(nvml.nvmlDeviceGetFieldValues(device, 3, fields));
    assert_int_equal(fields[0].value.uiVal, busy_mw);
    assert_int_equal(fields[1].value.uiVal, 0);
    assert_int_equal(fields[2].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    stop(&nvml);
}

static void *create_soon(void *device)
{
    nvmlGpuInstance_t gi;
    usleep(30000);
    nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi);
    return NULL;
}

static void test_events(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:2");
    nvmlDevice_t device = device_at(&nvml, 0);
    nvmlEventSet_t set;
    nvmlEventData_t data;
    unsigned long long types;
    OK(nvml.nvmlEventSetCreate(&set));
    OK(nvml.nvmlDeviceGetSupportedEventTypes(device, &types));
    FAILS(NOT_SUPPORTED, nvml.nvmlDeviceRegisterEvents(device, ~types, set));
    OK(nvml.nvmlDeviceRegisterEvents(device, types, set));
    FAILS(TIMEOUT, nvml.nvmlEventSetWait_v2(set, &data, 0));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, create_soon, device), 0);
    OK(nvml.nvmlEventSetWait_v2(set, &data, 5000));
    pthread_join(thread, NULL);
    assert_ptr_equal(data.device, device);
    assert_true(data.eventType == nvmlEventMigConfigChange);
    assert_int_equal(data.gpuInstanceId, 1 + 1);
    assert_int_equal(CONTROL("xid", "1", "79"), 0); /* not registered */
    assert_int_equal(CONTROL("xid", "0", "48"), 0);
    OK(nvml.nvmlEventSetWait_v2(set, &data, 5000));
    assert_true(data.eventType == nvmlEventTypeXidCriticalError && data.eventData == 48);
    assert_true(data.gpuInstanceId == NVML_NO_INSTANCE_ID);
    OK(nvml.nvmlEventSetFree(set));
    FAILS(INVALID_ARGUMENT, nvml.nvmlEventSetWait_v2(set, &data, 0));
    FAILS(INVALID_ARGUMENT, nvml.nvmlEventSetFree(set));
    stop(&nvml);
}

static double gpm_value(nvmlGpmSample_t first, nvmlGpmSample_t second, unsigned metric)
{
    static nvmlGpmMetricsGet_t get;
    get = (nvmlGpmMetricsGet_t){.version = NVML_GPM_METRICS_GET_VERSION,
                                .numMetrics = 2,
                                .sample1 = first,
                                .sample2 = second};
    get.metrics[0].metricId = metric;
    get.metrics[1].metricId = 470;
    OK(nvml.nvmlGpmMetricsGet(&get));
    assert_int_equal(get.metrics[0].nvmlReturn, NVML_SUCCESS);
    assert_int_equal(get.metrics[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    return get.metrics[0].value;
}

static void test_gpm_of_an_instance(void **state)
{
    (void)state;
    start_with_mig(&nvml, "h100-80gb-sxm5:1");
    nvmlDevice_t device = device_at(&nvml, 0);
    nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};
    OK(nvml.nvmlGpmQueryDeviceSupport(device, &support));
    assert_int_equal(support.isSupportedDevice, 1);
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    nvmlGpuInstanceInfo_t info;
    OK(nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi));
    OK(nvml.nvmlGpuInstanceCreateComputeInstance(gi, 2, &ci));
    OK(nvml.nvmlGpuInstanceGetInfo(gi, &info));
    char place[16];
    snprintf(place, sizeof place, "0/%u", info.id);
    assert_int_equal(CONTROL("add", "--keep", "-p", "4000000", "-d", place, "-s", "80"), 0);
    nvmlGpmSample_t samples[3];
    for (int i = 0; i < 3; i++)
        OK(nvml.nvmlGpmSampleAlloc(&samples[i]));
    static nvmlGpmMetricsGet_t get;
    get = (nvmlGpmMetricsGet_t){
        .version = NVML_GPM_METRICS_GET_VERSION, .sample1 = samples[0], .sample2 = samples[1]};
    int64_t start_ns;
    do { /* less than 100 ms apart, however busy the machine */
        start_ns = clock_now_ns(clock_real());
        OK(nvml.nvmlGpmMigSampleGet(device, info.id, samples[0]));
        OK(nvml.nvmlGpmMigSampleGet(device, info.id, samples[1]));
    } while (clock_now_ns(clock_real()) - start_ns > 90000000);
    FAILS(NOT_READY, nvml.nvmlGpmMetricsGet(&get));
    usleep(110000);
    OK(nvml.nvmlGpmMigSampleGet(device, info.id, samples[1]));
    double busy = gpm_value(samples[0], samples[1], NVML_GPM_METRIC_GRAPHICS_UTIL);
    assert_true(busy > 79.9 && busy < 80.1);
    OK(nvml.nvmlGpmSampleGet(device, samples[2]));
    get.sample2 = samples[2]; /* of the whole GPU */
    FAILS(INVALID_ARGUMENT, nvml.nvmlGpmMetricsGet(&get));
    FAILS(NOT_FOUND, nvml.nvmlGpmMigSampleGet(device, 14, samples[2]));
    for (int i = 0; i < 3; i++)
        OK(nvml.nvmlGpmSampleFree(samples[i]));
    FAILS(INVALID_ARGUMENT, nvml.nvmlGpmSampleFree(samples[0]));
    stop(&nvml);
}

static void test_gpm_needs_hopper(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    OK(nvml.nvmlInit_v2());
    nvmlGpmSample_t sample;
    OK(nvml.nvmlGpmSampleAlloc(&sample));
    FAILS(NOT_SUPPORTED, nvml.nvmlGpmSampleGet(device_at(&nvml, 0), sample));
    OK(nvml.nvmlGpmSampleFree(sample));
    stop(&nvml);
}

static void test_lost_gpu(void **state)
{
    (void)state;
    new_machine("a100-40gb:2");
    OK(nvml.nvmlInit_v2());
    nvmlDevice_t device = device_at(&nvml, 1);
    unsigned value;
    assert_int_equal(CONTROL("set", "1", "--lost"), 0);
    FAILS(GPU_IS_LOST, nvml.nvmlDeviceGetPowerUsage(device, &value));
    FAILS(GPU_IS_LOST, nvml.nvmlDeviceGetHandleByIndex_v2(1, &device));
    OK(nvml.nvmlDeviceGetPowerUsage(device_at(&nvml, 0), &value));
    assert_int_equal(CONTROL("set", "1", "--found"), 0);
    OK(nvml.nvmlDeviceGetPowerUsage(device, &value));
    stop(&nvml);
}

static void test_legacy_mig_uuid(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1");
    nvmlDevice_t device = device_at(&nvml, 0), mig, found;
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    nvmlComputeInstanceInfo_t info;
    nvmlGpuInstanceInfo_t gi_info;
    char gpu[96], legacy[128];
    OK(nvml.nvmlDeviceCreateGpuInstance(device, 14, &gi));
    OK(nvml.nvmlGpuInstanceCreateComputeInstance(gi, 1, &ci));
    OK(nvml.nvmlComputeInstanceGetInfo_v2(ci, &info));
    OK(nvml.nvmlGpuInstanceGetInfo(gi, &gi_info));
    OK(nvml.nvmlDeviceGetUUID(device, gpu, sizeof gpu));
    snprintf(legacy, sizeof legacy, "MIG-%s/%u/%u", gpu, gi_info.id, info.id);
    OK(nvml.nvmlDeviceGetHandleByUUID(legacy, &mig));
    assert_ptr_equal(mig, info.device);
    OK(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &found));
    assert_ptr_equal(found, device);
    stop(&nvml);
}

static void test_child_of_fork_must_initialise_itself(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    OK(nvml.nvmlInit_v2());
    pid_t child = fork();
    if (child == 0) {
        unsigned count = 0;
        bool good = nvml.nvmlDeviceGetCount_v2(&count) == NVML_ERROR_UNINITIALIZED &&
                    nvml.nvmlInit_v2() == NVML_SUCCESS &&
                    nvml.nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS && count == 1;
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    unsigned count;
    OK(nvml.nvmlDeviceGetCount_v2(&count));
    stop(&nvml);
}

static void test_library_may_be_closed_and_opened_again(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    for (int i = 0; i < 20; i++) {
        OK(nvml.nvmlInit_v2());
        unsigned count;
        OK(nvml.nvmlDeviceGetCount_v2(&count));
        OK(nvml.nvmlShutdown());
        assert_int_equal(dlclose(nvml.library), 0);
        nvml_load(&nvml);
    }
    drop_machine();
}

int main(void)
{
    nvml_load(&nvml);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initialisation_is_counted),
        cmocka_unit_test(test_buffers_and_null_pointers),
        cmocka_unit_test(test_unsupported_functions),
        cmocka_unit_test(test_no_function_follows_a_null_pointer),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_not_supported_in_mig_mode),
        cmocka_unit_test(test_R13_ampere_mode_is_pending_while_in_use),
        cmocka_unit_test(test_another_monitor_keeps_ampere_pending),
        cmocka_unit_test(test_R13_passthrough_needs_a_reboot),
        cmocka_unit_test(test_hopper_mode_is_immediate),
        cmocka_unit_test(test_R14_reboot),
        cmocka_unit_test(test_processes_hold_instances),
        cmocka_unit_test(test_load_shows_in_the_readings),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_gpm_of_an_instance),
        cmocka_unit_test(test_gpm_needs_hopper),
        cmocka_unit_test(test_lost_gpu),
        cmocka_unit_test(test_legacy_mig_uuid),
        cmocka_unit_test(test_child_of_fork_must_initialise_itself),
        cmocka_unit_test(test_library_may_be_closed_and_opened_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
