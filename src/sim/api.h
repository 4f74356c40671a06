/* SPDX-License-Identifier: Apache-2.0
 *
 * The exported functions: those of gpu/nvml_abi.h, and below what clients other than us
 * resolve (nvidia-ml-py, nvitop, gpustat, go-nvml, dcgm). Layouts are those of the nvml.h of
 * NVIDIA/go-nvml. Functions of features that the simulated boards lack are in
 * sim/unsupported.def.
 */
#ifndef TRANCHE_SIM_API_H
#define TRANCHE_SIM_API_H

#include "gpu/nvml_abi.h"

#define SIM_EXPORT __attribute__((visibility("default")))

typedef struct nvmlProcessInfo_v1 {
    unsigned int pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct nvmlProcessDetail {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_t;

typedef struct nvmlProcessDetailList {
    unsigned int version, mode; /* mode: 0 compute, 1 graphics, 2 MPS, 3 all */
    unsigned int numProcArrayEntries;
    nvmlProcessDetail_t *procArray;
} nvmlProcessDetailList_t;

typedef struct nvmlPciInfo_v2 {
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    unsigned int reserved[4];
} nvmlPciInfo_v2_t;

typedef struct nvmlPciInfoExt {
    unsigned int version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfoExt_t;

typedef struct nvmlEccErrorCounts {
    unsigned long long l1Cache, l2Cache, deviceMemory, registerFile;
} nvmlEccErrorCounts_t;

#define NVML_PROCESS_DETAIL_LIST_V1 NVML_VERSION_WORD(nvmlProcessDetailList_t, 1)
#define NVML_PCI_INFO_EXT_V1        NVML_VERSION_WORD(nvmlPciInfoExt_t, 1)

NVML_ASSERT_SIZE(nvmlProcessInfo_v1_t, 16);
NVML_ASSERT_SIZE(nvmlProcessDetail_t, 32);
NVML_ASSERT_SIZE(nvmlProcessDetailList_t, 24);
NVML_ASSERT_SIZE(nvmlPciInfoExt_t, 64);
NVML_ASSERT_SIZE(nvmlEccErrorCounts_t, 32);

#define SIM_PROTOTYPE(need, type, name, parameters) SIM_EXPORT type name parameters;
NVML_FUNCTIONS(SIM_PROTOTYPE)

/* X(name, parameters); all return nvmlReturn_t. */
#define SIM_MORE_FUNCTIONS(X)                                                                  \
    X(nvmlInit, (void))                                                                        \
    X(nvmlSystemGetCudaDriverVersion, (int *version))                                          \
    X(nvmlDeviceGetCount, (unsigned int *count))                                               \
    X(nvmlDeviceGetHandleByIndex, (unsigned int index, nvmlDevice_t *device))                  \
    X(nvmlDeviceGetHandleByPciBusId, (const char *pciBusId, nvmlDevice_t *device))             \
    X(nvmlDeviceGetHandleBySerial, (const char *serial, nvmlDevice_t *device))                 \
    X(nvmlDeviceGetPciInfo, (nvmlDevice_t device, nvmlPciInfo_v2_t * pci))                     \
    X(nvmlDeviceGetPciInfo_v2, (nvmlDevice_t device, nvmlPciInfo_v2_t * pci))                  \
    X(nvmlDeviceGetPciInfoExt, (nvmlDevice_t device, nvmlPciInfoExt_t * pci))                  \
    X(nvmlDeviceGetBoardId, (nvmlDevice_t device, unsigned int *id))                           \
    X(nvmlDeviceGetMultiGpuBoard, (nvmlDevice_t device, unsigned int *multi))                  \
    X(nvmlDeviceGetInforomImageVersion,                                                        \
      (nvmlDevice_t device, char *version, unsigned int length))                               \
    X(nvmlDeviceGetModuleId, (nvmlDevice_t device, unsigned int *id))                          \
    X(nvmlDeviceGetBusType, (nvmlDevice_t device, unsigned int *type))                         \
    X(nvmlDeviceGetNumaNodeId, (nvmlDevice_t device, unsigned int *node))                      \
    X(nvmlDeviceGetCpuAffinity, (nvmlDevice_t device, unsigned int size, unsigned long *set))  \
    X(nvmlDeviceOnSameBoard, (nvmlDevice_t a, nvmlDevice_t b, int *same))                      \
    X(nvmlDeviceSetPersistenceMode, (nvmlDevice_t device, nvmlEnableState_t mode))             \
    X(nvmlDeviceSetComputeMode, (nvmlDevice_t device, nvmlComputeMode_t mode))                 \
    X(nvmlDeviceGetGspFirmwareVersion, (nvmlDevice_t device, char *version))                   \
    X(nvmlDeviceGetGspFirmwareMode,                                                            \
      (nvmlDevice_t device, unsigned int *enabled, unsigned int *by_default))                  \
    X(nvmlDeviceGetPowerManagementMode, (nvmlDevice_t device, nvmlEnableState_t * mode))       \
    X(nvmlDeviceSetPowerManagementLimit, (nvmlDevice_t device, unsigned int limit_mw))         \
    X(nvmlDeviceGetPowerState, (nvmlDevice_t device, nvmlPstates_t * state))                   \
    X(nvmlDeviceGetClock,                                                                      \
      (nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned int *clock_mhz))  \
    X(nvmlDeviceGetSupportedClocksEventReasons,                                                \
      (nvmlDevice_t device, unsigned long long *reasons))                                      \
    X(nvmlDeviceGetSupportedClocksThrottleReasons,                                             \
      (nvmlDevice_t device, unsigned long long *reasons))                                      \
    X(nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t device, unsigned int *generation))     \
    X(nvmlDeviceGetGpuMaxPcieLinkGeneration, (nvmlDevice_t device, unsigned int *generation))  \
    X(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t device, unsigned int *width))               \
    X(nvmlDeviceGetPcieReplayCounter, (nvmlDevice_t device, unsigned int *value))              \
    X(nvmlDeviceGetJpgUtilization,                                                             \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                   \
    X(nvmlDeviceGetOfaUtilization,                                                             \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                   \
    X(nvmlDeviceGetDefaultEccMode, (nvmlDevice_t device, nvmlEnableState_t * mode))            \
    X(nvmlDeviceGetDetailedEccErrors,                                                          \
      (nvmlDevice_t device, nvmlMemoryErrorType_t error, nvmlEccCounterType_t counter,         \
       nvmlEccErrorCounts_t * counts))                                                         \
    X(nvmlDeviceClearEccErrorCounts, (nvmlDevice_t device, nvmlEccCounterType_t counter))      \
    X(nvmlDeviceGetRemappedRows,                                                               \
      (nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,                \
       unsigned int *pending, unsigned int *failed))                                           \
    X(nvmlDeviceGetAccountingMode, (nvmlDevice_t device, nvmlEnableState_t * mode))            \
    X(nvmlDeviceGetComputeRunningProcesses,                                                    \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))                 \
    X(nvmlDeviceGetComputeRunningProcesses_v2,                                                 \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                    \
    X(nvmlDeviceGetGraphicsRunningProcesses,                                                   \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))                 \
    X(nvmlDeviceGetGraphicsRunningProcesses_v2,                                                \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                    \
    X(nvmlDeviceGetMPSComputeRunningProcesses,                                                 \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))                 \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v2,                                              \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                    \
    X(nvmlDeviceGetRunningProcessDetailList,                                                   \
      (nvmlDevice_t device, nvmlProcessDetailList_t * list))                                   \
    X(nvmlDeviceGetGpuInstancePossiblePlacements,                                              \
      (nvmlDevice_t device, unsigned int profileId, nvmlGpuInstancePlacement_t *placements,    \
       unsigned int *count))                                                                   \
    X(nvmlComputeInstanceGetInfo,                                                              \
      (nvmlComputeInstance_t computeInstance, nvmlComputeInstanceInfo_t * info))               \
    X(nvmlDeviceGetAttributes, (nvmlDevice_t device, nvmlDeviceAttributes_t * attributes))     \
    X(nvmlEventSetWait, (nvmlEventSet_t set, nvmlEventData_t * data, unsigned int timeout_ms)) \
    X(nvmlDeviceClearFieldValues, (nvmlDevice_t device, int count, nvmlFieldValue_t *values))  \
    X(nvmlUnitGetCount, (unsigned int *count))                                                 \
    X(nvmlGetExcludedDeviceCount, (unsigned int *count))

#define SIM_MORE_PROTOTYPE(name, parameters) SIM_EXPORT nvmlReturn_t name parameters;
SIM_MORE_FUNCTIONS(SIM_MORE_PROTOTYPE)

#endif
