/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/identity.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/hash.h"

enum { BUSES_APART = 16, GPUS_A_DOMAIN = 15 };

struct sim_pci_address sim_pci_address(unsigned gpu)
{
    assert(gpu < SIM_GPUS_MAX);
    return (struct sim_pci_address){.domain = gpu / GPUS_A_DOMAIN,
                                    .bus = 7 + gpu % GPUS_A_DOMAIN * BUSES_APART};
}

/* Up to three hexadecimal numbers with colons between, then ".0" or nothing. Returns how
 * many there are, 0 for anything else. */
static int split_bus_id(const char *text, unsigned ret_parts[3])
{
    int count = 0;
    for (const char *c = text; count < 3;) {
        char *end;
        ret_parts[count] = (unsigned)strtoul(c, &end, 16);
        if (end == c)
            return 0;
        count++;
        if (strcmp(end, ".0") == 0 || *end == '\0')
            return count;
        if (*end != ':')
            return 0;
        c = end + 1;
    }
    return 0;
}

bool sim_gpu_by_bus_id(const struct sim_machine *machine, const char *text, unsigned *ret_gpu)
{
    unsigned parts[3] = {0};
    int count = split_bus_id(text, parts);
    if (count < 2)
        return false;
    unsigned domain = count == 3 ? parts[0] : 0;
    for (unsigned gpu = 0; gpu < machine->gpu_count; gpu++) {
        struct sim_pci_address address = sim_pci_address(gpu);
        if (address.domain != domain || address.bus != parts[count - 2] ||
            address.device != parts[count - 1])
            continue;
        *ret_gpu = gpu;
        return true;
    }
    return false;
}

void sim_serial(const struct sim_machine *machine, unsigned gpu,
                char ret[NVML_DEVICE_SERIAL_BUFFER_SIZE])
{
    assert(gpu < machine->gpu_count);
    char uuid[SIM_UUID_SIZE];
    sim_gpu_uuid(machine, gpu, uuid);
    uint64_t number = sim_hash(uuid, strlen(uuid), 6) % 10000000000000ULL;
    snprintf(ret, NVML_DEVICE_SERIAL_BUFFER_SIZE, "%013llu", (unsigned long long)number);
}

void sim_mig_profile_name(const struct sim_gpu *gpu, const struct sim_gi *gi, int ci_profile,
                          char ret[SIM_NAME_SIZE])
{
    assert(gi->used && ci_profile >= 0);
    const struct mig_profile *profile = sim_gi_profile(gpu, gi);
    int width = sim_ci_profile_at(profile, ci_profile)->compute_slices;
    if (width == profile->compute_slices)
        snprintf(ret, SIM_NAME_SIZE, "%s", profile->name);
    else
        snprintf(ret, SIM_NAME_SIZE, "%dc.%s", width, profile->name);
}
