/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: what a device is.
 */
#include <stdio.h>
#include <string.h>

#include "sim/api.h"
#include "sim/call.h"
#include "sim/identity.h"
#include "sim/product.h"

enum { COMPUTE_MODE_COUNT = 4, BUS_TYPE_PCIE = 2, TOPOLOGY_INTERNAL = 0, TOPOLOGY_NODE = 40 };

static struct sim_product product_of(const struct sim_call *call)
{
    return sim_product_of(sim_gpu_board(call->gpu));
}

static nvmlReturn_t device_name(const struct sim_call *call, char *name, unsigned length)
{
    char text[NVML_DEVICE_NAME_V2_BUFFER_SIZE + SIM_NAME_SIZE], mig[SIM_NAME_SIZE] = "";
    if (call->is_mig)
        sim_mig_profile_name(call->gpu, call->gi, call->ci->profile, mig);
    snprintf(text, sizeof text, "%s%s%s", product_of(call).name, call->is_mig ? " MIG " : "",
             mig);
    return sim_copy_text(name, length, text);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    return NVML_CALL(DEVICE, device, device_name(&call, name, length));
}

static nvmlReturn_t device_uuid(const struct sim_call *call, char *uuid, unsigned length)
{
    char text[SIM_UUID_SIZE];
    if (call->is_mig)
        sim_mig_uuid(call->machine, call->gpu_index, call->gi_index, call->ci_index, text);
    else
        sim_gpu_uuid(call->machine, call->gpu_index, text);
    return sim_copy_text(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    return NVML_CALL(DEVICE, device, device_uuid(&call, uuid, length));
}

static nvmlReturn_t device_index(const struct sim_call *call, unsigned *index)
{
    unsigned found = call->gpu_index, gi, ci;
    for (unsigned i = 0; call->is_mig && sim_mig_device_at(call->gpu, i, &gi, &ci); i++)
        if (gi == call->gi_index && ci == call->ci_index)
            found = i;
    return NVML_SET(index, found);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    return NVML_CALL(DEVICE, device, device_index(&call, index));
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minorNumber)
{
    return NVML_CALL(READING, device, NVML_SET(minorNumber, call.gpu_index));
}

static nvmlReturn_t device_serial(const struct sim_call *call, char *serial, unsigned length)
{
    char text[NVML_DEVICE_SERIAL_BUFFER_SIZE];
    sim_serial(call->machine, call->gpu_index, text);
    return sim_copy_text(serial, length, text);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    return NVML_CALL(READING, device, device_serial(&call, serial, length));
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length)
{
    return NVML_CALL(READING, device, sim_copy_text(version, length, "98.02.55.00.00"));
}

nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char *version,
                                              unsigned int length)
{
    return NVML_CALL(READING, device, sim_copy_text(version, length, "G500.0200.00.05"));
}

nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char *partNumber,
                                          unsigned int length)
{
    return NVML_CALL(READING, device, sim_copy_text(partNumber, length, "SIM-00000-0000-000"));
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    return NVML_CALL(
        READING, device,
        sim_copy_text(version, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE, "570.133.20"));
}

static nvmlReturn_t gsp_mode(unsigned *enabled, unsigned *by_default)
{
    if (!enabled || !by_default)
        return NVML_ERROR_INVALID_ARGUMENT;
    *enabled = *by_default = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int *enabled,
                                          unsigned int *by_default)
{
    return NVML_CALL(READING, device, gsp_mode(enabled, by_default));
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *type)
{
    return NVML_CALL(READING, device, NVML_SET(type, product_of(&call).brand));
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device,
                                       nvmlDeviceArchitecture_t *architecture)
{
    return NVML_CALL(DEVICE, device, NVML_SET(architecture, product_of(&call).architecture));
}

static nvmlReturn_t compute_capability(const struct sim_call *call, int *major, int *minor)
{
    if (!major || !minor)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct mig_board *board = sim_gpu_board(call->gpu);
    *major = board->cc_major;
    *minor = board->cc_minor;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    return NVML_CALL(DEVICE, device, compute_capability(&call, major, minor));
}

static unsigned core_count(const struct sim_call *call)
{
    struct sim_product product = product_of(call);
    return product.sm_count * product.cores_per_sm;
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *count)
{
    return NVML_CALL(READING, device, NVML_SET(count, core_count(&call)));
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int *width)
{
    return NVML_CALL(READING, device, NVML_SET(width, product_of(&call).bus_width_bits));
}

nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *id)
{
    return NVML_CALL(READING, device, NVML_SET(id, sim_pci_address(call.gpu_index).bus << 8));
}

nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int *multi)
{
    return NVML_CALL(READING, device, NVML_SET(multi, 0));
}

nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned int *id)
{
    return NVML_CALL(READING, device, NVML_SET(id, call.gpu_index + 1));
}

nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, unsigned int *type)
{
    return NVML_CALL(READING, device, NVML_SET(type, BUS_TYPE_PCIE));
}

nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
    return NVML_CALL(READING, device, NVML_SET(node, 0));
}

static nvmlReturn_t cpu_affinity(unsigned size, unsigned long *set)
{
    if (!set || size == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(set, 0xff, size * sizeof *set); /* every processor is near */
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size,
                                      unsigned long *set)
{
    return NVML_CALL(DEVICE, device, cpu_affinity(size, set));
}

/* The second handle of a call that takes two; they may be one device. */
static nvmlReturn_t second_gpu(const struct sim_call *call, nvmlDevice_t other, unsigned *ret)
{
    struct sim_handle handle;
    if (!sim_handle_read(other, &handle) || handle.kind != SIM_GPU ||
        handle.gpu >= call->machine->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret = handle.gpu;
    return NVML_SUCCESS;
}

static nvmlReturn_t common_ancestor(const struct sim_call *call, nvmlDevice_t other,
                                    nvmlGpuTopologyLevel_t *level)
{
    unsigned gpu;
    nvmlReturn_t status = second_gpu(call, other, &gpu);
    return status == NVML_SUCCESS
               ? NVML_SET(level, gpu == call->gpu_index ? TOPOLOGY_INTERNAL : TOPOLOGY_NODE)
               : status;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
                                                 nvmlGpuTopologyLevel_t *level)
{
    return NVML_CALL(PARENT, a, common_ancestor(&call, b, level));
}

static nvmlReturn_t same_board(const struct sim_call *call, nvmlDevice_t other, int *same)
{
    unsigned gpu;
    nvmlReturn_t status = second_gpu(call, other, &gpu);
    return status == NVML_SUCCESS ? NVML_SET(same, gpu == call->gpu_index) : status;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int *same)
{
    return NVML_CALL(PARENT, a, same_board(&call, b, same));
}

/* ---- PCI ---- */

static nvmlReturn_t pci_info(const struct sim_call *call, nvmlPciInfo_t *pci)
{
    if (!pci)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct sim_pci_address address = sim_pci_address(call->gpu_index);
    struct sim_product product = product_of(call);
    *pci = (nvmlPciInfo_t){.domain = address.domain,
                           .bus = address.bus,
                           .device = address.device,
                           .pciDeviceId = product.pci_device_id,
                           .pciSubSystemId = product.pci_subsystem_id};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0",
             address.domain & 0xffff, address.bus & 0xff, address.device & 0xff);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", address.domain, address.bus,
             address.device);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return NVML_CALL(DEVICE, device, pci_info(&call, pci));
}

static nvmlReturn_t pci_info_v2(const struct sim_call *call, nvmlPciInfo_v2_t *pci, bool v2)
{
    nvmlPciInfo_t full;
    nvmlReturn_t status = pci ? pci_info(call, &full) : NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;
    memcpy(pci->busId, full.busIdLegacy, sizeof pci->busId);
    pci->domain = full.domain;
    pci->bus = full.bus;
    pci->device = full.device;
    pci->pciDeviceId = full.pciDeviceId;
    if (v2) /* the first version ends before this word */
        pci->pciSubSystemId = full.pciSubSystemId;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
    return NVML_CALL(DEVICE, device, pci_info_v2(&call, pci, false));
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
    return NVML_CALL(DEVICE, device, pci_info_v2(&call, pci, true));
}

static nvmlReturn_t pci_info_ext(const struct sim_call *call, nvmlPciInfoExt_t *pci)
{
    nvmlPciInfo_t full;
    nvmlReturn_t status = pci ? pci_info(call, &full) : NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;
    if (pci->version != NVML_PCI_INFO_EXT_V1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *pci = (nvmlPciInfoExt_t){.version = NVML_PCI_INFO_EXT_V1,
                              .domain = full.domain,
                              .bus = full.bus,
                              .device = full.device,
                              .pciDeviceId = full.pciDeviceId,
                              .pciSubSystemId = full.pciSubSystemId,
                              .baseClass = 3,
                              .subClass = 2};
    memcpy(pci->busId, full.busId, sizeof pci->busId);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
    return NVML_CALL(READING, device, pci_info_ext(&call, pci));
}

static unsigned pcie_generation(const struct sim_call *call)
{
    return product_of(call).pcie_generation;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation)
{
    return NVML_CALL(READING, device, NVML_SET(generation, pcie_generation(&call)));
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation)
{
    return NVML_CALL(READING, device, NVML_SET(generation, pcie_generation(&call)));
}

nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device,
                                                   unsigned int *generation)
{
    return NVML_CALL(READING, device, NVML_SET(generation, pcie_generation(&call)));
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *width)
{
    return NVML_CALL(READING, device, NVML_SET(width, 16));
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *width)
{
    return NVML_CALL(READING, device, NVML_SET(width, 16));
}

nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int *value)
{
    return NVML_CALL(READING, device, NVML_SET(value, 0));
}

/* ---- modes ---- */

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    return NVML_CALL(READING, device, NVML_SET(mode, call.gpu->persistence));
}

static nvmlReturn_t set_persistence(struct sim_call *call, unsigned mode)
{
    if (mode > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    call->gpu->persistence = mode == 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    return NVML_CALL_FLAGS(CALL_READING | CALL_ADMIN, device, set_persistence(&call, mode));
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
    return NVML_CALL(DEVICE, device, NVML_SET(mode, call.gpu->compute_mode));
}

static nvmlReturn_t set_compute_mode(struct sim_call *call, unsigned mode)
{
    if (mode >= COMPUTE_MODE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (call->gpu->mig_current)
        return NVML_ERROR_NOT_SUPPORTED; /* MIG and an exclusive mode exclude one another */
    call->gpu->compute_mode = (uint8_t)mode;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode)
{
    return NVML_CALL_FLAGS(CALL_READING | CALL_ADMIN, device, set_compute_mode(&call, mode));
}

nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t *display)
{
    return NVML_CALL(READING, device, NVML_SET(display, 0));
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t *active)
{
    return NVML_CALL(READING, device, NVML_SET(active, 0));
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device,
                                             nvmlGpuVirtualizationMode_t *mode)
{
    /* 1: passthrough, where a guest cannot reset the GPU */
    return NVML_CALL(READING, device, NVML_SET(mode, call.gpu->reset_needed));
}

nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    return NVML_CALL(READING, device,
                     call.gpu->mig_current ? NVML_ERROR_NOT_SUPPORTED : NVML_SET(mode, 0));
}
