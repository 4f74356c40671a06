/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines of workloads. See workload_command.h.
 */
#include "load/workload_command.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

static const char *const providers[MEASURE_DEVICE_COUNT] = {
    [DEVICE_CPU_SLICE] = "cpu",
    [DEVICE_CUDA] = "cuda",
    [DEVICE_TENSORRT] = "tensorrt",
};

void workload_command_add(struct workload_command *command, const char *word)
{
    assert(command->word_count + 1 < WORKLOAD_WORDS_MAX);
    command->words[command->word_count++] = word;
}

static void add_pair(struct workload_command *command, const char *option, const char *value)
{
    assert(option);
    if (!value)
        return;
    workload_command_add(command, option);
    workload_command_add(command, value);
}

static void fill_environment(struct workload_command *command)
{
    snprintf(command->openmp, sizeof command->openmp, "OMP_NUM_THREADS=%s", command->threads);
    snprintf(command->openblas, sizeof command->openblas, "OPENBLAS_NUM_THREADS=%s",
             command->threads);
    command->environment[0] = command->openmp;
    command->environment[1] = command->openblas;
    command->environment[2] = "OMP_WAIT_POLICY=passive";
    command->command.environment = command->environment;
}

/* What both kinds have in common: the numbers as text, and the environment. */
static void fill_numbers(struct workload_command *command, const struct measure_cell *cell,
                         const struct measure_settings *settings, double cpu_quota_cores)
{
    int threads = settings->threads;
    assert(cell->batch >= 1);
    if (threads <= 0)
        threads = cpu_quota_cores > 1 ? (int)ceil(cpu_quota_cores) : 1;
    snprintf(command->threads, sizeof command->threads, "%d", threads);
    snprintf(command->batch, sizeof command->batch, "%d", cell->batch);
    snprintf(command->procs, sizeof command->procs, "%d", cell->procs);
    snprintf(command->seed, sizeof command->seed, "%llu", (unsigned long long)settings->seed);
    fill_environment(command);
}

void workload_command_fill(struct workload_command *command, const struct measure_cell *cell,
                           const struct measure_settings *settings, double cpu_quota_cores)
{
    fill_numbers(command, cell, settings, cpu_quota_cores);
    command->command.words = settings->command;
    if (settings->command)
        return;
    command->command.words = command->words;
    workload_command_add(command, "/proc/self/exe");
    workload_command_add(command, "worker");
    add_pair(command, "--model", cell->model);
    add_pair(command, "--task", task_name(cell->task));
    add_pair(command, "--batch", command->batch);
    add_pair(command, "--threads", command->threads);
    add_pair(command, "--seed", command->seed);
    add_pair(command, "--provider", providers[settings->device]);
    add_pair(command, "--ort-library", settings->ort_library);
    add_pair(command, "--shape", cell->shapes);
}

void workload_command_fill_server(struct workload_command *command,
                                  const struct measure_cell *cell,
                                  const struct measure_settings *settings,
                                  double cpu_quota_cores)
{
    assert(!settings->command);
    fill_numbers(command, cell, settings, cpu_quota_cores);
    command->command.words = command->words;
    workload_command_add(command, "/proc/self/exe");
    workload_command_add(command, "serve");
    add_pair(command, "--name", WORKLOAD_SERVED_NAME);
    add_pair(command, "--port", "0");
    add_pair(command, "--batch", command->batch);
    add_pair(command, "--procs", command->procs);
    add_pair(command, "--max-wait-ms", "60000"); /* batches are full */
    add_pair(command, "--threads", command->threads);
    add_pair(command, "--provider", providers[settings->device]);
    add_pair(command, "--ort-library", settings->ort_library);
    add_pair(command, "--shapes", cell->shapes);
    workload_command_add(command, cell->model);
}
