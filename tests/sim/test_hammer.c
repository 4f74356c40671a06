/* SPDX-License-Identifier: Apache-2.0
 *
 * Eight processes of several threads hammer one state file with every kind of call; the
 * machine stays a legal one and no instance is lost or made twice. Each thread owns one GPU
 * instance profile of one GPU at a time only as far as NVML lets it: most creations meet
 * somebody else's instance.
 */
#include "client.h"

#include <pthread.h>

#include "base/rng.h"
#include "sim/store.h"

enum { PROCESSES = 8, THREADS = 3, ROUNDS = 60, GPUS = 2 };

static struct nvml nvml;

struct worker {
    pthread_t thread;
    unsigned seed;
    unsigned created, destroyed; /* GPU instances */
    nvmlReturn_t unexpected;
};

static bool is_expected(nvmlReturn_t status)
{
    return status == NVML_SUCCESS || status == NVML_ERROR_INSUFFICIENT_RESOURCES ||
           status == NVML_ERROR_IN_USE || status == NVML_ERROR_NOT_FOUND ||
           status == NVML_ERROR_INVALID_ARGUMENT; /* the instance is gone meanwhile */
}

static void note(struct worker *worker, nvmlReturn_t status)
{
    if (!is_expected(status))
        worker->unexpected = status;
}

static void create_one(struct worker *worker, nvmlDevice_t device, struct rng *rng)
{
    static const unsigned ids[] = {19, 14, 9};
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    nvmlReturn_t status = nvml.nvmlDeviceCreateGpuInstance(device, ids[rng_below(rng, 3)], &gi);
    note(worker, status);
    if (status != NVML_SUCCESS)
        return;
    worker->created++;
    note(worker, nvml.nvmlGpuInstanceCreateComputeInstance(gi, 0, &ci));
}

static void destroy_one(struct worker *worker, nvmlDevice_t device, struct rng *rng)
{
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    nvmlReturn_t status =
        nvml.nvmlDeviceGetGpuInstanceById(device, (unsigned)rng_below(rng, 15), &gi);
    note(worker, status);
    if (status != NVML_SUCCESS)
        return;
    if (nvml.nvmlGpuInstanceGetComputeInstanceById(gi, 0, &ci) == NVML_SUCCESS)
        note(worker, nvml.nvmlComputeInstanceDestroy(ci));
    status = nvml.nvmlGpuInstanceDestroy(gi);
    note(worker, status);
    worker->destroyed += status == NVML_SUCCESS;
}

static void look(struct worker *worker, nvmlDevice_t device)
{
    nvmlDevice_t mig;
    nvmlMemory_t memory;
    unsigned value;
    char uuid[96];
    note(worker, nvml.nvmlDeviceGetMemoryInfo(device, &memory));
    note(worker, nvml.nvmlDeviceGetPowerUsage(device, &value));
    nvmlReturn_t status = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &mig);
    note(worker, status);
    if (status == NVML_SUCCESS)
        note(worker, nvml.nvmlDeviceGetUUID(mig, uuid, sizeof uuid));
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct rng rng = rng_seed(worker->seed);
    for (int round = 0; round < ROUNDS; round++) {
        nvmlDevice_t device;
        note(worker, nvml.nvmlInit_v2());
        note(worker,
             nvml.nvmlDeviceGetHandleByIndex_v2((unsigned)rng_below(&rng, GPUS), &device));
        create_one(worker, device, &rng);
        look(worker, device);
        destroy_one(worker, device, &rng);
        note(worker, nvml.nvmlShutdown());
    }
    return NULL;
}

/* Writes "created destroyed" of one process into the pipe. */
static void run_process(int pipe_fd, unsigned index)
{
    struct worker workers[THREADS] = {0};
    int status = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].seed = index * THREADS + i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            _exit(3);
    }
    unsigned totals[2] = {0};
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        totals[0] += workers[i].created;
        totals[1] += workers[i].destroyed;
        if (workers[i].unexpected != NVML_SUCCESS) {
            fprintf(stderr, "process %u: %s\n", index,
                    nvml.nvmlErrorString(workers[i].unexpected));
            status = 1;
        }
    }
    if (write(pipe_fd, totals, sizeof totals) != sizeof totals)
        status = 2;
    exit(status); /* not _exit: ThreadSanitizer reports at exit */
}

static unsigned instances_left(void)
{
    static struct sim_store store;
    struct error err;
    unsigned left = 0;
    assert_int_equal(sim_store_open(&store, &err), 0);
    for (unsigned i = 0; i < store.machine.gpu_count; i++)
        left += (unsigned)sim_gi_count(&store.machine.gpus[i]);
    assert_true(sim_machine_valid(&store.machine));
    sim_store_close(&store);
    return left;
}

static void test_eight_processes(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:2");
    OK(nvml.nvmlShutdown());
    int pipes[2];
    pid_t children[PROCESSES];
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    for (unsigned i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0)
            run_process(pipes[1], i);
    }
    unsigned created = 0, destroyed = 0;
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        unsigned totals[2];
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
        assert_int_equal(read(pipes[0], totals, sizeof totals), sizeof totals);
        created += totals[0];
        destroyed += totals[1];
    }
    print_message("# %u instances created, %u destroyed\n", created, destroyed);
    assert_true(created > PROCESSES);
    assert_int_equal(instances_left(), created - destroyed);
    drop_machine();
}

int main(void)
{
    nvml_load(&nvml);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_eight_processes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
