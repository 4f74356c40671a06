/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/processes.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/product.h"

uint64_t sim_process_start_ticks(uint32_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    CLEANUP(close_file) FILE *file = fopen(path, "re");
    if (!file || !fgets(text, sizeof text, file))
        return 0;
    char *field = strrchr(text, ')'); /* the name may hold blanks and brackets */
    for (int i = 0; field && i < 20; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field + 1, NULL, 10) : 0;
}

static bool is_dead(const struct sim_process *process)
{
    if (process->start_ticks == 0)
        return false;
    if (kill((pid_t)process->pid, 0) < 0 && errno == ESRCH)
        return true;
    return sim_process_start_ticks(process->pid) != process->start_ticks;
}

void sim_drop_dead_processes(struct sim_machine *machine, int64_t now_ns)
{
    uint32_t kept = 0;
    bool settled = false;
    for (uint32_t i = 0; i < machine->process_count; i++) {
        if (!is_dead(&machine->processes[i])) {
            machine->processes[kept++] = machine->processes[i];
            continue;
        }
        if (!settled && kept == i) /* nothing moved yet: the load so far is still whole */
            sim_settle(machine, now_ns);
        settled = true;
    }
    machine->process_count = kept;
}

static double slice_share(const struct sim_gpu *gpu, const struct sim_process *process)
{
    const struct mig_board *board = sim_gpu_board(gpu);
    if (process->gi == NVML_NO_INSTANCE_ID || !gpu->gis[process->gi].used)
        return 1;
    const struct sim_gi *gi = &gpu->gis[process->gi];
    int slices = sim_gi_profile(gpu, gi)->compute_slices;
    if (process->ci != NVML_NO_INSTANCE_ID && gi->cis[process->ci].used)
        slices = sim_ci_profile(gpu, gi, &gi->cis[process->ci])->compute_slices;
    return board->compute_slices > 0 ? (double)slices / board->compute_slices : 1;
}

double sim_gpu_busy_percent(const struct sim_machine *machine, unsigned gpu)
{
    assert(gpu < machine->gpu_count);
    double busy = 0;
    for (uint32_t i = 0; i < machine->process_count; i++) {
        const struct sim_process *process = &machine->processes[i];
        if (process->gpu == gpu)
            busy += process->sm_percent * slice_share(&machine->gpus[gpu], process);
    }
    return busy < 100 ? busy : 100;
}

double sim_gi_busy_percent(const struct sim_machine *machine, unsigned gpu, unsigned gi)
{
    assert(gpu < machine->gpu_count && gi < SIM_GI_IDS);
    const struct sim_gpu *device = &machine->gpus[gpu];
    const struct mig_board *board = sim_gpu_board(device);
    double busy = 0;
    for (uint32_t i = 0; i < machine->process_count; i++) {
        const struct sim_process *process = &machine->processes[i];
        if (process->gpu == gpu && process->gi == gi)
            busy += process->sm_percent * slice_share(device, process);
    }
    int slices = sim_gi_profile(device, &device->gis[gi])->compute_slices;
    busy *= (double)board->compute_slices / slices;
    return busy < 100 ? busy : 100;
}

uint64_t sim_used_memory(const struct sim_machine *machine, unsigned gpu, unsigned gi)
{
    assert(gpu < machine->gpu_count && (gi < SIM_GI_IDS || gi == NVML_NO_INSTANCE_ID));
    uint64_t mib = 0;
    for (uint32_t i = 0; i < machine->process_count; i++) {
        const struct sim_process *process = &machine->processes[i];
        if (process->gpu == gpu && (gi == NVML_NO_INSTANCE_ID || process->gi == gi))
            mib += process->memory_mib;
    }
    return mib << 20;
}

uint32_t sim_power_mw(const struct sim_machine *machine, unsigned gpu)
{
    const struct sim_gpu *device = &machine->gpus[gpu];
    uint32_t idle_mw = sim_product_of(sim_gpu_board(device)).power_idle_mw;
    assert(device->power_limit_mw >= idle_mw);
    return idle_mw + (uint32_t)((device->power_limit_mw - idle_mw) *
                                sim_gpu_busy_percent(machine, gpu) / 100);
}

uint32_t sim_temperature_celsius(const struct sim_machine *machine, unsigned gpu)
{
    return 30 + (uint32_t)(45 * sim_gpu_busy_percent(machine, gpu) / 100);
}

uint32_t sim_sm_clock_mhz(const struct sim_machine *machine, unsigned gpu)
{
    assert(gpu < machine->gpu_count);
    struct sim_product product = sim_product_of(sim_gpu_board(&machine->gpus[gpu]));
    return sim_gpu_busy_percent(machine, gpu) > 0 ? product.sm_clock_mhz
                                                  : product.idle_clock_mhz;
}

static double seconds_since(const struct sim_gpu *gpu, int64_t now_ns)
{
    /* A monotonic clock starts anew with the host. */
    return now_ns > gpu->settled_ns && gpu->settled_ns > 0
               ? (double)(now_ns - gpu->settled_ns) / 1e9
               : 0;
}

double sim_energy_mj(const struct sim_machine *machine, unsigned gpu, int64_t now_ns)
{
    assert(gpu < machine->gpu_count);
    const struct sim_gpu *device = &machine->gpus[gpu];
    return device->energy_mj + seconds_since(device, now_ns) * sim_power_mw(machine, gpu);
}

double sim_gpu_activity(const struct sim_machine *machine, unsigned gpu, int64_t now_ns)
{
    assert(gpu < machine->gpu_count);
    const struct sim_gpu *device = &machine->gpus[gpu];
    return device->activity.busy_percent_ns +
           seconds_since(device, now_ns) * 1e9 * sim_gpu_busy_percent(machine, gpu);
}

double sim_gi_activity(const struct sim_machine *machine, unsigned gpu, unsigned gi,
                       int64_t now_ns)
{
    assert(gpu < machine->gpu_count && gi < SIM_GI_IDS);
    const struct sim_gpu *device = &machine->gpus[gpu];
    return device->gis[gi].activity.busy_percent_ns +
           seconds_since(device, now_ns) * 1e9 * sim_gi_busy_percent(machine, gpu, gi);
}

void sim_settle(struct sim_machine *machine, int64_t now_ns)
{
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        struct sim_gpu *gpu = &machine->gpus[i];
        double energy_mj = sim_energy_mj(machine, i, now_ns);
        gpu->activity.busy_percent_ns = sim_gpu_activity(machine, i, now_ns);
        for (unsigned id = 0; id < SIM_GI_IDS; id++)
            if (gpu->gis[id].used)
                gpu->gis[id].activity.busy_percent_ns = sim_gi_activity(machine, i, id, now_ns);
        gpu->energy_mj = energy_mj;
        gpu->settled_ns = now_ns;
    }
}
