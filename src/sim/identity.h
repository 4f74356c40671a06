/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and addresses that follow from a GPU's place in the machine.
 */
#ifndef TRANCHE_SIM_IDENTITY_H
#define TRANCHE_SIM_IDENTITY_H

#include "sim/machine.h"

struct sim_pci_address {
    unsigned domain, bus, device;
};

/* GPU i is at 0000:07:00.0 and 16 buses further on for each i; domains after 15 GPUs. */
struct sim_pci_address sim_pci_address(unsigned gpu);
/* The GPU at "0000:07:00.0", "00000000:07:00.0", "07:00.0" or "0000:07:00": one address.
 * False: none, or no address. */
bool sim_gpu_by_bus_id(const struct sim_machine *machine, const char *text, unsigned *ret_gpu);
/* The board's serial number, decimal digits that follow from the machine's seed. */
void sim_serial(const struct sim_machine *machine, unsigned gpu,
                char ret[NVML_DEVICE_SERIAL_BUFFER_SIZE]);
/* "3g.20gb", or "1c.3g.20gb" for a compute instance narrower than its GPU instance. */
void sim_mig_profile_name(const struct sim_gpu *gpu, const struct sim_gi *gi, int ci_profile,
                          char ret[SIM_NAME_SIZE]);

#endif
