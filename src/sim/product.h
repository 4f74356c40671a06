/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVML says of a board beside its MIG tables: product name, memory, power, clocks. Total
 * memory is what makes mig-parted's arithmetic give the profiles' names; the other numbers
 * are from data sheets and public nvidia-smi output as far as those are known, and only give
 * the readings a scale. A board without a row gets values derived from mig/board.h.
 */
#ifndef TRANCHE_SIM_PRODUCT_H
#define TRANCHE_SIM_PRODUCT_H

#include <stdint.h>

#include "mig/board.h"

struct sim_product {
    char name[64];       /* nvmlDeviceGetName */
    uint32_t memory_mib; /* total, as NVML reports it */
    uint32_t power_limit_mw, power_minimum_mw, power_idle_mw;
    uint32_t sm_clock_mhz, memory_clock_mhz, idle_clock_mhz; /* maxima; SM clock at rest */
    uint32_t bus_width_bits;
    uint32_t sm_count;     /* of the whole board without MIG */
    uint32_t cores_per_sm; /* CUDA cores */
    uint32_t pci_device_id, pci_subsystem_id;
    uint32_t pcie_generation;
    uint32_t architecture; /* nvmlDeviceArchitecture_t */
    uint32_t brand;        /* nvmlBrandType_t */
};

struct sim_product sim_product_of(const struct mig_board *board);

/* A number of a profile's instance; where no source gives the board's, memory is the share
 * of memory units less 3 %, multiprocessors the share of compute slices, engines one a
 * compute slice (decoder, JPEG) or none. */
uint32_t sim_profile_memory_mib(const struct mig_board *board,
                                const struct mig_profile *profile);
uint32_t sim_profile_sm(const struct mig_board *board, const struct mig_profile *profile);
/* Of a compute instance: its share of the GPU instance's, an even number; 1_SLICE in a
 * double-memory 1g has as many as a plain 1g. */
uint32_t sim_ci_sm(const struct mig_board *board, const struct mig_profile *profile,
                   const struct mig_ci_profile *ci);
uint32_t sim_profile_copy_engines(const struct mig_profile *profile);
uint32_t sim_profile_engines(const struct mig_profile *profile, enum mig_engine engine);

#endif
