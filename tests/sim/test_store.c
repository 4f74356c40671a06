/* SPDX-License-Identifier: Apache-2.0
 *
 * The state file: killed processes, damaged and foreign files, permissions, defaults.
 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "base/rng.h"
#include "sim/store.h"

enum { KILLS = 60, DAMAGES = 300 };

static struct nvml nvml;
static struct sim_store store;

/* Creates and destroys without end; its parent kills it anywhere. */
static void churn(void)
{
    nvmlDevice_t device;
    if (nvml.nvmlInit_v2() != NVML_SUCCESS)
        _exit(3);
    nvml.nvmlDeviceGetHandleByIndex_v2(0, &device);
    for (;;) {
        nvmlGpuInstance_t gi;
        nvmlComputeInstance_t ci;
        if (nvml.nvmlDeviceCreateGpuInstance(device, 19, &gi) != NVML_SUCCESS)
            _exit(4);
        if (nvml.nvmlGpuInstanceCreateComputeInstance(gi, 0, &ci) != NVML_SUCCESS ||
            nvml.nvmlComputeInstanceDestroy(ci) != NVML_SUCCESS ||
            nvml.nvmlGpuInstanceDestroy(gi) != NVML_SUCCESS)
            _exit(5);
    }
}

/* What the killed process left: at most one instance of each kind. Removes it. */
static void check_and_clear(void)
{
    OK(nvml.nvmlInit_v2());
    nvmlDevice_t device = device_at(&nvml, 0);
    nvmlGpuInstance_t gis[8];
    unsigned gi_count = 9, ci_count = 0;
    OK(nvml.nvmlDeviceGetGpuInstances(device, 19, gis, &gi_count));
    assert_true(gi_count <= 1);
    nvmlComputeInstance_t cis[8];
    if (gi_count == 1) {
        OK(nvml.nvmlGpuInstanceGetComputeInstances(gis[0], 0, cis, &ci_count));
        assert_true(ci_count <= 1);
        if (ci_count == 1)
            OK(nvml.nvmlComputeInstanceDestroy(cis[0]));
        OK(nvml.nvmlGpuInstanceDestroy(gis[0]));
    }
    OK(nvml.nvmlShutdown());
}

static void test_kill_anywhere(void **state)
{
    (void)state;
    struct rng rng = rng_seed(7);
    start_with_mig(&nvml, "a100-40gb:4");
    OK(nvml.nvmlShutdown());
    for (int i = 0; i < KILLS; i++) {
        pid_t child = fork();
        if (child == 0)
            churn();
        usleep((useconds_t)rng_below(&rng, 8000));
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        check_and_clear();
    }
    drop_machine();
}

/* Killed at the worst place, many times over: the new slot written, the old one active. */
static void test_kill_between_slot_and_word(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1");
    OK(nvml.nvmlShutdown());
    setenv("TRANCHE_SIM_FAULTS", "DeviceCreateGpuInstance nth 3: kill commit", 1);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            nvmlDevice_t device;
            nvmlGpuInstance_t gi;
            nvml.nvmlInit_v2();
            nvml.nvmlDeviceGetHandleByIndex_v2(0, &device);
            for (int n = 0; n < 3; n++) {
                nvml.nvmlDeviceCreateGpuInstance(device, 19, &gi);
                if (n < 2)
                    nvml.nvmlGpuInstanceDestroy(gi);
            }
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        unsetenv("TRANCHE_SIM_FAULTS");
        OK(nvml.nvmlInit_v2());
        unsigned left;
        OK(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(device_at(&nvml, 0), 19, &left));
        assert_int_equal(left, 7);
        OK(nvml.nvmlShutdown());
        setenv("TRANCHE_SIM_FAULTS", "DeviceCreateGpuInstance nth 3: kill commit", 1);
    }
    drop_machine();
}

/* Eight processes make the same machine at once: all see one. */
static void test_made_by_many(void **state)
{
    (void)state;
    new_machine("a100-40gb:3");
    pid_t children[8];
    for (int i = 0; i < 8; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            unsigned count = 0;
            bool good = nvml.nvmlInit_v2() == NVML_SUCCESS &&
                        nvml.nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS && count == 3;
            _exit(good ? 0 : 1);
        }
    }
    for (int i = 0; i < 8; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    drop_machine();
}

static void spoil(const char *path, off_t offset, const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, length, offset), (ssize_t)length);
    close(fd);
}

/* Any byte changed: an error or the same machine, never a crash. */
static void test_damage(void **state)
{
    (void)state;
    struct rng rng = rng_seed(11);
    start_with_mig(&nvml, "a100-40gb:2");
    nvmlGpuInstance_t gi;
    OK(nvml.nvmlDeviceCreateGpuInstance(device_at(&nvml, 0), 9, &gi));
    OK(nvml.nvmlShutdown());
    const char *path = getenv("TRANCHE_SIM_STATE");
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    unsigned char *whole = malloc((size_t)status.st_size);
    FILE *file = fopen(path, "r");
    assert_int_equal(fread(whole, 1, (size_t)status.st_size, file), status.st_size);
    fclose(file);
    int refused = 0;
    for (int i = 0; i < DAMAGES; i++) {
        off_t used = rng_below(&rng, 2) ? 64 : status.st_size;
        off_t offset = (off_t)rng_below(&rng, (uint64_t)used);
        unsigned char byte = (unsigned char)(whole[offset] ^ (1U << rng_below(&rng, 8)));
        spoil(path, offset, &byte, 1);
        struct error err;
        int opened = sim_store_open(&store, &err);
        assert_true(opened == 0 || opened == -E_INPUT || opened == -E_CONFLICT);
        refused += opened != 0;
        sim_store_close(&store);
        spoil(path, 0, whole, (size_t)status.st_size);
    }
    assert_true(refused > DAMAGES / 10);
    assert_int_equal(truncate(path, 100), 0);
    struct error err;
    assert_int_equal(sim_store_open(&store, &err), -E_INPUT);
    free(whole);
    drop_machine();
}

static void test_foreign_files(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    const char *path = getenv("TRANCHE_SIM_STATE");
    spoil(path, 0, "this is somebody's letter", 25);
    assert_int_equal(nvml.nvmlInit_v2(), NVML_ERROR_UNKNOWN);
    char text[26] = {0};
    FILE *file = fopen(path, "r");
    assert_int_equal(fread(text, 1, 25, file), 25);
    assert_string_equal(text, "this is somebody's letter");
    fclose(file);
    drop_machine();
    setenv("TRANCHE_SIM_STATE", "/", 1);
    assert_int_equal(nvml.nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
    setenv("TRANCHE_SIM_STATE", "/nonexistent/folder/state", 1);
    assert_int_equal(nvml.nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
}

static void test_fleets(void **state)
{
    (void)state;
    new_machine("a100-40gb:1");
    OK(nvml.nvmlInit_v2());
    OK(nvml.nvmlShutdown());
    setenv("TRANCHE_SIM_FLEET", "a100-40gb:2", 1); /* another machine than the file's */
    assert_int_equal(nvml.nvmlInit_v2(), NVML_ERROR_LIB_RM_VERSION_MISMATCH);
    unsetenv("TRANCHE_SIM_FLEET");
    OK(nvml.nvmlInit_v2());
    unsigned count;
    OK(nvml.nvmlDeviceGetCount_v2(&count));
    assert_int_equal(count, 1);
    stop(&nvml);
    static const char *const bad[] = {"no-such-board:1", "a100-40gb:*", "a100-40gb:65", "x",
                                      ":"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        new_machine(bad[i]);
        assert_int_equal(nvml.nvmlInit_v2(), NVML_ERROR_UNKNOWN);
        drop_machine();
    }
    new_machine("a100-40gb:62,t4-16gb:2");
    OK(nvml.nvmlInit_v2());
    OK(nvml.nvmlDeviceGetCount_v2(&count));
    assert_int_equal(count, 64);
    stop(&nvml);
}

/* Two machines of one fleet have other UUIDs when their seeds differ, and only then. */
static void test_seed(void **state)
{
    (void)state;
    char uuids[3][96];
    static const char *const seeds[] = {"node-a", "node-b", "node-a"};
    for (int i = 0; i < 3; i++) {
        new_machine("a100-40gb:1");
        setenv("TRANCHE_SIM_SEED", seeds[i], 1);
        OK(nvml.nvmlInit_v2());
        OK(nvml.nvmlDeviceGetUUID(device_at(&nvml, 0), uuids[i], sizeof uuids[i]));
        stop(&nvml);
    }
    assert_string_not_equal(uuids[0], uuids[1]);
    assert_string_equal(uuids[0], uuids[2]);
}

static void test_default_place(void **state)
{
    (void)state;
    char folder[] = "/tmp/tranche-sim-runtime-XXXXXX", path[600], again[600];
    struct error err;
    assert_non_null(mkdtemp(folder));
    new_machine("a100-40gb:1");
    unsetenv("TRANCHE_SIM_STATE");
    setenv("XDG_RUNTIME_DIR", folder, 1);
    assert_int_equal(sim_store_path(path, sizeof path, &err), 0);
    assert_memory_equal(path, folder, strlen(folder));
    setenv("TRANCHE_SIM_FLEET", "a30-24gb:1", 1); /* another fleet, another machine */
    assert_int_equal(sim_store_path(again, sizeof again, &err), 0);
    assert_string_not_equal(path, again);
    char inner[600];
    snprintf(inner, sizeof inner, "%s/tranche-sim", folder);
    assert_int_equal(chmod(inner, 0755), 0); /* others could look in */
    assert_int_equal(sim_store_path(path, sizeof path, &err), -E_IO);
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(symlink("/tmp", inner), 0);
    assert_int_equal(sim_store_path(path, sizeof path, &err), -E_IO);
    assert_int_equal(unlink(inner), 0);
    assert_int_equal(rmdir(folder), 0);
    unsetenv("XDG_RUNTIME_DIR");
}

/* A reader without write permission sees the machine and may not change it. */
static void test_read_only(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        print_message("# root may write everything: as nobody\n");
    }
    start_with_mig(&nvml, "a100-40gb:1");
    OK(nvml.nvmlShutdown());
    assert_int_equal(chmod(getenv("TRANCHE_SIM_STATE"), 0444), 0);
    pid_t child = fork();
    if (child == 0) {
        nvmlDevice_t device;
        nvmlGpuInstance_t gi;
        unsigned count = 0;
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(9);
        bool good =
            nvml.nvmlInit_v2() == NVML_SUCCESS &&
            nvml.nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS &&
            nvml.nvmlDeviceGetMaxMigDeviceCount(device, &count) == NVML_SUCCESS && count == 7 &&
            nvml.nvmlDeviceCreateGpuInstance(device, 9, &gi) == NVML_ERROR_NO_PERMISSION;
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    drop_machine();
}

int main(void)
{
    nvml_load(&nvml);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_anywhere), cmocka_unit_test(test_kill_between_slot_and_word),
        cmocka_unit_test(test_made_by_many),  cmocka_unit_test(test_damage),
        cmocka_unit_test(test_foreign_files), cmocka_unit_test(test_fleets),
        cmocka_unit_test(test_seed),          cmocka_unit_test(test_default_place),
        cmocka_unit_test(test_read_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
