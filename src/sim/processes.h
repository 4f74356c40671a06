/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated load: processes that were put on instances, and what power, temperature,
 * clocks and counters follow from them.
 *
 * The model: a process keeps sm_percent of its instance busy; an instance weighs its share
 * of the board's compute slices; power goes from idle to the limit and temperature from
 * 30 to 75 °C in proportion to the busy share of the board.
 */
#ifndef TRANCHE_SIM_PROCESSES_H
#define TRANCHE_SIM_PROCESSES_H

#include "sim/machine.h"

/* /proc/PID/stat's start time (clock ticks since boot), or 0 when there is no such process. */
uint64_t sim_process_start_ticks(uint32_t pid);
/* Takes processes that ended off the machine (in memory; whoever writes next keeps it). */
void sim_drop_dead_processes(struct sim_machine *machine, int64_t now_ns);
/* Adds energy and activity up to now: before anything changes the load. */
void sim_settle(struct sim_machine *machine, int64_t now_ns);

/* Percent of the board, of a GPU instance, or of a compute instance that is busy. */
double sim_gpu_busy_percent(const struct sim_machine *machine, unsigned gpu);
/* Percent of a GPU instance that is busy. */
double sim_gi_busy_percent(const struct sim_machine *machine, unsigned gpu, unsigned gi);
/* Bytes used by processes on the GPU (gi NVML_NO_INSTANCE_ID) or on the instance. */
uint64_t sim_used_memory(const struct sim_machine *machine, unsigned gpu, unsigned gi);

/* Power now, mW, by the model above. */
uint32_t sim_power_mw(const struct sim_machine *machine, unsigned gpu);
/* Temperature now, °C; follows the same load as the power. */
uint32_t sim_temperature_celsius(const struct sim_machine *machine, unsigned gpu);
/* SM clock now, MHz; follows the same load. */
uint32_t sim_sm_clock_mhz(const struct sim_machine *machine, unsigned gpu);
/* Since the driver was loaded, mJ. */
double sim_energy_mj(const struct sim_machine *machine, unsigned gpu, int64_t now_ns);
/* Integral of the busy percentage over time, percent × ns. */
double sim_gpu_activity(const struct sim_machine *machine, unsigned gpu, int64_t now_ns);
/* The same of a GPU instance. */
double sim_gi_activity(const struct sim_machine *machine, unsigned gpu, unsigned gi,
                       int64_t now_ns);

#endif
