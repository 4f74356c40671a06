/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML's binary interface as we use it: types, constants, and one table of functions.
 * Declared here because no nvml.h is on a clean machine; names are NVML's own, as they are
 * what every reader of the field knows. The numbers are those of the nvml.h of
 * NVIDIA/go-nvml (API version 13), measured on x86-64 and recorded in facts/nvml; each is
 * asserted below. Two readers: the dlopen loader (gpu/nvml.c) makes a struct of function
 * pointers from NVML_FUNCTIONS, the simulated library (sim/) makes its prototypes.
 *
 * Versioned structs carry size | N << 24 in their first word (NVML_VERSION_WORD).
 * Placements count MEMORY units in GPU instances and COMPUTE slices in compute instances;
 * memorySizeMB is MiB. A "profile" argument of the *ProfileInfo calls is the ENUM, every
 * other "profileId" is the id that the info returned.
 */
#ifndef TRANCHE_GPU_NVML_ABI_H
#define TRANCHE_GPU_NVML_ABI_H

#include <assert.h>
#include <stddef.h>

#define NVML_LIBRARY_SONAME "libnvidia-ml.so.1"

typedef enum nvmlReturn {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_ALREADY_INITIALIZED = 5,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_INSUFFICIENT_POWER = 8,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_IRQ_ISSUE = 11,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_CORRUPTED_INFOROM = 14,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_OPERATING_SYSTEM = 17,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_NO_DATA = 21,
    NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_DEPRECATED = 26,
    NVML_ERROR_NOT_READY = 27,
    NVML_ERROR_GPU_NOT_FOUND = 28,
    NVML_ERROR_INVALID_STATE = 29,
    NVML_ERROR_RESET_TYPE_NOT_SUPPORTED = 30,
    NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;

/* Every return code with its name, for messages and fault plans. */
#define NVML_RETURNS(X)                                                                        \
    X(NVML_SUCCESS)                                                                            \
    X(NVML_ERROR_UNINITIALIZED)                                                                \
    X(NVML_ERROR_INVALID_ARGUMENT)                                                             \
    X(NVML_ERROR_NOT_SUPPORTED)                                                                \
    X(NVML_ERROR_NO_PERMISSION)                                                                \
    X(NVML_ERROR_ALREADY_INITIALIZED)                                                          \
    X(NVML_ERROR_NOT_FOUND)                                                                    \
    X(NVML_ERROR_INSUFFICIENT_SIZE)                                                            \
    X(NVML_ERROR_INSUFFICIENT_POWER)                                                           \
    X(NVML_ERROR_DRIVER_NOT_LOADED)                                                            \
    X(NVML_ERROR_TIMEOUT)                                                                      \
    X(NVML_ERROR_IRQ_ISSUE)                                                                    \
    X(NVML_ERROR_LIBRARY_NOT_FOUND)                                                            \
    X(NVML_ERROR_FUNCTION_NOT_FOUND)                                                           \
    X(NVML_ERROR_CORRUPTED_INFOROM)                                                            \
    X(NVML_ERROR_GPU_IS_LOST)                                                                  \
    X(NVML_ERROR_RESET_REQUIRED)                                                               \
    X(NVML_ERROR_OPERATING_SYSTEM)                                                             \
    X(NVML_ERROR_LIB_RM_VERSION_MISMATCH)                                                      \
    X(NVML_ERROR_IN_USE)                                                                       \
    X(NVML_ERROR_MEMORY)                                                                       \
    X(NVML_ERROR_NO_DATA)                                                                      \
    X(NVML_ERROR_VGPU_ECC_NOT_SUPPORTED)                                                       \
    X(NVML_ERROR_INSUFFICIENT_RESOURCES)                                                       \
    X(NVML_ERROR_FREQ_NOT_SUPPORTED)                                                           \
    X(NVML_ERROR_ARGUMENT_VERSION_MISMATCH)                                                    \
    X(NVML_ERROR_DEPRECATED)                                                                   \
    X(NVML_ERROR_NOT_READY)                                                                    \
    X(NVML_ERROR_GPU_NOT_FOUND)                                                                \
    X(NVML_ERROR_INVALID_STATE)                                                                \
    X(NVML_ERROR_RESET_TYPE_NOT_SUPPORTED)                                                     \
    X(NVML_ERROR_UNKNOWN)

enum nvmlGpuInstanceProfile {
    NVML_GPU_INSTANCE_PROFILE_1_SLICE = 0,
    NVML_GPU_INSTANCE_PROFILE_2_SLICE = 1,
    NVML_GPU_INSTANCE_PROFILE_3_SLICE = 2,
    NVML_GPU_INSTANCE_PROFILE_4_SLICE = 3,
    NVML_GPU_INSTANCE_PROFILE_7_SLICE = 4,
    NVML_GPU_INSTANCE_PROFILE_8_SLICE = 5,
    NVML_GPU_INSTANCE_PROFILE_6_SLICE = 6,
    NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1 = 7, /* +me */
    NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1 = 8, /* +me */
    NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2 = 9, /* double memory */
    NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX = 10,
    NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX = 11,
    NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX = 12,
    NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME = 13, /* -me */
    NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME = 14,
    NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME = 15, /* +me.all */
    NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME = 16,
    NVML_GPU_INSTANCE_PROFILE_3_SLICE_GFX = 17,
    NVML_GPU_INSTANCE_PROFILE_COUNT = 18
};

enum nvmlComputeInstanceProfile {
    NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE = 0,
    NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE = 1,
    NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE = 2,
    NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE = 3,
    NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE = 4,
    NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE = 5,
    NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE = 6,
    NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1 = 7,
    NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE_NVL = 8,
    NVML_COMPUTE_INSTANCE_PROFILE_COUNT = 9
};

enum {
    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED = 0,
    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT = 1,

    NVML_DEVICE_MIG_DISABLE = 0,
    NVML_DEVICE_MIG_ENABLE = 1,

    NVML_GPU_INSTANCE_PROFILE_CAPS_P2P = 1,
    NVML_GPU_INSTANCE_PROFILE_CAPS_GFX = 2,

    NVML_GPU_INSTANCE_ID_LIMIT = 15, /* ids 0 … 14, nvidia-caps table */
    NVML_COMPUTE_INSTANCE_ID_LIMIT = 8,

    NVML_DEVICE_UUID_V2_BUFFER_SIZE = 96,
    NVML_DEVICE_NAME_V2_BUFFER_SIZE = 96,
    NVML_DEVICE_SERIAL_BUFFER_SIZE = 30,
    NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE = 32,
    NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE = 16,
    NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE = 32,
    NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE = 80,
    NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE = 80,
    NVML_INIT_FLAG_NO_GPUS = 1,
    NVML_INIT_FLAG_NO_ATTACH = 2,

    NVML_FI_DEV_MEMORY_TEMP = 82,
    NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83, /* mJ */
    NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED = 184,
    NVML_FI_DEV_POWER_AVERAGE = 185, /* mW */
    NVML_FI_DEV_POWER_INSTANT = 186, /* mW */
    NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE = 199,

    NVML_CLOCK_GRAPHICS = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
    NVML_CLOCK_VIDEO = 3,

    NVML_TEMPERATURE_GPU = 0
};

#define NVML_NO_INSTANCE_ID      0xFFFFFFFFu /* gpuInstanceId, computeInstanceId: none */
#define NVML_VALUE_NOT_AVAILABLE ((unsigned long long)-1)

#define nvmlEventTypeXidCriticalError 0x0000000000000008ULL
#define nvmlEventMigConfigChange      0x0000000000000100ULL

/* Clock-event reasons: bits of nvmlDeviceGetCurrentClocksEventReasons. */
#define NVML_CLOCKS_EVENT_REASONS(X)                                                           \
    X(GPU_IDLE, 0x001, "gpu_idle")                                                             \
    X(APPLICATIONS_CLOCKS_SETTING, 0x002, "applications_clocks_setting")                       \
    X(SW_POWER_CAP, 0x004, "sw_power_cap")                                                     \
    X(HW_SLOWDOWN, 0x008, "hw_slowdown")                                                       \
    X(SYNC_BOOST, 0x010, "sync_boost")                                                         \
    X(SW_THERMAL_SLOWDOWN, 0x020, "sw_thermal_slowdown")                                       \
    X(HW_THERMAL_SLOWDOWN, 0x040, "hw_thermal_slowdown")                                       \
    X(HW_POWER_BRAKE_SLOWDOWN, 0x080, "hw_power_brake_slowdown")                               \
    X(DISPLAY_CLOCK_SETTING, 0x100, "display_clock_setting")                                   \
    X(BOARD_LIMIT, 0x200, "board_limit")                                                       \
    X(RELIABILITY, 0x400, "reliability")

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlGpuInstance_st *nvmlGpuInstance_t;
typedef struct nvmlComputeInstance_st *nvmlComputeInstance_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct nvmlGpmSample_st *nvmlGpmSample_t;

/* Enumerations that only travel as arguments; int-sized in this ABI. */
typedef unsigned int nvmlEnableState_t, nvmlClockType_t, nvmlClockId_t,
    nvmlTemperatureSensors_t, nvmlTemperatureThresholds_t, nvmlComputeMode_t, nvmlPstates_t,
    nvmlBrandType_t, nvmlDeviceArchitecture_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t,
    nvmlMemoryLocation_t, nvmlPcieUtilCounter_t, nvmlGpuVirtualizationMode_t, nvmlDriverModel_t,
    nvmlGpuTopologyLevel_t, nvmlValueType_t;

#define NVML_VERSION_WORD(type, n) ((unsigned int)(sizeof(type) | ((unsigned)(n) << 24U)))

typedef struct nvmlGpuInstancePlacement {
    unsigned int start, size; /* memory units */
} nvmlGpuInstancePlacement_t;

typedef struct nvmlGpuInstanceProfileInfo {
    unsigned int id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount,
        copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;

typedef struct nvmlGpuInstanceProfileInfo_v2 {
    unsigned int version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount,
        copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
} nvmlGpuInstanceProfileInfo_v2_t;

/* The same size as v2 and another layout: the version word decides which one NVML fills. */
typedef struct nvmlGpuInstanceProfileInfo_v3 {
    unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
        decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
    unsigned int capabilities; /* NVML_GPU_INSTANCE_PROFILE_CAPS_* */
} nvmlGpuInstanceProfileInfo_v3_t;

typedef struct nvmlGpuInstanceInfo {
    nvmlDevice_t device;
    unsigned int id, profileId;
    nvmlGpuInstancePlacement_t placement;
} nvmlGpuInstanceInfo_t;

typedef struct nvmlComputeInstancePlacement {
    unsigned int start, size; /* compute slices */
} nvmlComputeInstancePlacement_t;

typedef struct nvmlComputeInstanceProfileInfo {
    unsigned int id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
        sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;

typedef struct nvmlComputeInstanceProfileInfo_v2 {
    unsigned int version, id, sliceCount, instanceCount, multiprocessorCount,
        sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount,
        sharedOfaCount;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
} nvmlComputeInstanceProfileInfo_v2_t;

typedef struct nvmlComputeInstanceProfileInfo_v3 {
    unsigned int version, id, sliceCount, instanceCount, multiprocessorCount,
        sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount,
        sharedOfaCount;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
    unsigned int capabilities;
} nvmlComputeInstanceProfileInfo_v3_t;

typedef struct nvmlComputeInstanceInfo {
    nvmlDevice_t device; /* the MIG device handle */
    nvmlGpuInstance_t gpuInstance;
    unsigned int id, profileId;
    nvmlComputeInstancePlacement_t placement;
} nvmlComputeInstanceInfo_t;

typedef struct nvmlDeviceAttributes {
    unsigned int multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount,
        sharedEncoderCount, sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount,
        computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef struct nvmlMemory {
    unsigned long long total, free, used; /* bytes; used includes reserved */
} nvmlMemory_t;

typedef struct nvmlMemory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used; /* bytes */
} nvmlMemory_v2_t;

typedef struct nvmlBAR1Memory {
    unsigned long long bar1Total, bar1Free, bar1Used; /* bytes */
} nvmlBAR1Memory_t;

typedef struct nvmlPciInfo {
    char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
    unsigned int domain, bus, device;
    unsigned int pciDeviceId; /* 0xDDDDVVVV: device, vendor */
    unsigned int pciSubSystemId;
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE]; /* "00000000:07:00.0" */
} nvmlPciInfo_t;

typedef struct nvmlUtilization {
    unsigned int gpu, memory; /* percent */
} nvmlUtilization_t;

typedef struct nvmlProcessInfo {
    unsigned int pid;
    unsigned long long usedGpuMemory;              /* bytes, or NVML_VALUE_NOT_AVAILABLE */
    unsigned int gpuInstanceId, computeInstanceId; /* NVML_NO_INSTANCE_ID: none */
} nvmlProcessInfo_t;

typedef struct nvmlProcessUtilizationSample {
    unsigned int pid;
    unsigned long long timeStamp; /* µs */
    unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct nvmlTemperature {
    unsigned int version;
    nvmlTemperatureSensors_t sensorType;
    int temperature; /* °C */
} nvmlTemperature_t;

typedef struct nvmlEventData {
    nvmlDevice_t device;
    unsigned long long eventType, eventData; /* eventData: the Xid */
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

typedef union nvmlValue {
    double dVal;
    int siVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
    unsigned short usVal;
} nvmlValue_t;

enum nvmlValueType {
    NVML_VALUE_TYPE_DOUBLE = 0,
    NVML_VALUE_TYPE_UNSIGNED_INT = 1,
    NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
    NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
    NVML_VALUE_TYPE_SIGNED_INT = 5,
    NVML_VALUE_TYPE_UNSIGNED_SHORT = 6
};

typedef struct nvmlFieldValue {
    unsigned int fieldId, scopeId;
    long long timestamp;   /* µs since 1970 */
    long long latencyUsec; /* µs */
    nvmlValueType_t valueType;
    nvmlReturn_t nvmlReturn; /* value is valid only with NVML_SUCCESS */
    nvmlValue_t value;
} nvmlFieldValue_t;

/* GPM (Hopper and later): counters over the window between two samples. Percent metrics
 * are 0.0 … 100.0, traffic is MiB/s. */
enum nvmlGpmMetricId {
    NVML_GPM_METRIC_GRAPHICS_UTIL = 1,
    NVML_GPM_METRIC_SM_UTIL = 2,
    NVML_GPM_METRIC_SM_OCCUPANCY = 3,
    NVML_GPM_METRIC_INTEGER_UTIL = 4,
    NVML_GPM_METRIC_ANY_TENSOR_UTIL = 5,
    NVML_GPM_METRIC_DFMA_TENSOR_UTIL = 6,
    NVML_GPM_METRIC_HMMA_TENSOR_UTIL = 7,
    NVML_GPM_METRIC_IMMA_TENSOR_UTIL = 9,
    NVML_GPM_METRIC_DRAM_BW_UTIL = 10,
    NVML_GPM_METRIC_FP64_UTIL = 11,
    NVML_GPM_METRIC_FP32_UTIL = 12,
    NVML_GPM_METRIC_FP16_UTIL = 13,
    NVML_GPM_METRIC_PCIE_TX_PER_SEC = 20,
    NVML_GPM_METRIC_PCIE_RX_PER_SEC = 21,
    NVML_GPM_METRIC_MAX = 477 /* grows with the API; NVML reads numMetrics only */
};
enum { NVML_GPM_METRICS_GET_VERSION = 1, NVML_GPM_SUPPORT_VERSION = 1 };

typedef struct nvmlGpmMetric {
    unsigned int metricId;
    nvmlReturn_t nvmlReturn; /* of this metric */
    double value;
    struct {
        char *shortName, *longName, *unit; /* NULL: not defined */
    } metricInfo;
} nvmlGpmMetric_t;

typedef struct nvmlGpmMetricsGet {
    unsigned int version, numMetrics;
    nvmlGpmSample_t sample1, sample2;
    nvmlGpmMetric_t metrics[NVML_GPM_METRIC_MAX];
} nvmlGpmMetricsGet_t;

typedef struct nvmlGpmSupport {
    unsigned int version, isSupportedDevice;
} nvmlGpmSupport_t;

#define NVML_GPU_INSTANCE_PROFILE_INFO_V2 NVML_VERSION_WORD(nvmlGpuInstanceProfileInfo_v2_t, 2)
#define NVML_GPU_INSTANCE_PROFILE_INFO_V3 NVML_VERSION_WORD(nvmlGpuInstanceProfileInfo_v3_t, 3)
#define NVML_COMPUTE_INSTANCE_PROFILE_INFO_V2                                                  \
    NVML_VERSION_WORD(nvmlComputeInstanceProfileInfo_v2_t, 2)
#define NVML_COMPUTE_INSTANCE_PROFILE_INFO_V3                                                  \
    NVML_VERSION_WORD(nvmlComputeInstanceProfileInfo_v3_t, 3)
#define NVML_MEMORY_V2      NVML_VERSION_WORD(nvmlMemory_v2_t, 2)
#define NVML_TEMPERATURE_V1 NVML_VERSION_WORD(nvmlTemperature_t, 1)

/* facts/nvml/structs.json, number by number. */
#define NVML_ASSERT_SIZE(type, size) static_assert(sizeof(type) == (size), #type " size")
#define NVML_ASSERT_AT(type, field, offset)                                                    \
    static_assert(offsetof(type, field) == (offset), #type "." #field)

NVML_ASSERT_SIZE(nvmlReturn_t, 4);
NVML_ASSERT_SIZE(nvmlGpuInstancePlacement_t, 8);
NVML_ASSERT_AT(nvmlGpuInstancePlacement_t, start, 0);
NVML_ASSERT_AT(nvmlGpuInstancePlacement_t, size, 4);
NVML_ASSERT_SIZE(nvmlGpuInstanceProfileInfo_t, 48);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, id, 0);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, isP2pSupported, 4);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, sliceCount, 8);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, instanceCount, 12);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, multiprocessorCount, 16);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, copyEngineCount, 20);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, decoderCount, 24);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, encoderCount, 28);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, jpegCount, 32);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, ofaCount, 36);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_t, memorySizeMB, 40);
NVML_ASSERT_SIZE(nvmlGpuInstanceProfileInfo_v2_t, 152);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, version, 0);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, id, 4);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, isP2pSupported, 8);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, sliceCount, 12);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, instanceCount, 16);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, multiprocessorCount, 20);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, copyEngineCount, 24);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, decoderCount, 28);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, encoderCount, 32);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, jpegCount, 36);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, ofaCount, 40);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, memorySizeMB, 48);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v2_t, name, 56);
NVML_ASSERT_SIZE(nvmlGpuInstanceProfileInfo_v3_t, 152);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, version, 0);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, id, 4);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, sliceCount, 8);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, instanceCount, 12);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, multiprocessorCount, 16);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, copyEngineCount, 20);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, decoderCount, 24);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, encoderCount, 28);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, jpegCount, 32);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, ofaCount, 36);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, memorySizeMB, 40);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, name, 48);
NVML_ASSERT_AT(nvmlGpuInstanceProfileInfo_v3_t, capabilities, 144);
NVML_ASSERT_SIZE(nvmlGpuInstanceInfo_t, 24);
NVML_ASSERT_AT(nvmlGpuInstanceInfo_t, device, 0);
NVML_ASSERT_AT(nvmlGpuInstanceInfo_t, id, 8);
NVML_ASSERT_AT(nvmlGpuInstanceInfo_t, profileId, 12);
NVML_ASSERT_AT(nvmlGpuInstanceInfo_t, placement, 16);
NVML_ASSERT_SIZE(nvmlComputeInstancePlacement_t, 8);
NVML_ASSERT_SIZE(nvmlComputeInstanceProfileInfo_t, 36);
NVML_ASSERT_AT(nvmlComputeInstanceProfileInfo_t, id, 0);
NVML_ASSERT_AT(nvmlComputeInstanceProfileInfo_t, sliceCount, 4);
NVML_ASSERT_AT(nvmlComputeInstanceProfileInfo_t, instanceCount, 8);
NVML_ASSERT_AT(nvmlComputeInstanceProfileInfo_t, multiprocessorCount, 12);
NVML_ASSERT_AT(nvmlComputeInstanceProfileInfo_t, sharedOfaCount, 32);
NVML_ASSERT_SIZE(nvmlComputeInstanceProfileInfo_v2_t, 136);
NVML_ASSERT_AT(nvmlComputeInstanceProfileInfo_v2_t, name, 40);
NVML_ASSERT_SIZE(nvmlComputeInstanceProfileInfo_v3_t, 140);
NVML_ASSERT_AT(nvmlComputeInstanceProfileInfo_v3_t, name, 40);
NVML_ASSERT_AT(nvmlComputeInstanceProfileInfo_v3_t, capabilities, 136);
NVML_ASSERT_SIZE(nvmlComputeInstanceInfo_t, 32);
NVML_ASSERT_AT(nvmlComputeInstanceInfo_t, device, 0);
NVML_ASSERT_AT(nvmlComputeInstanceInfo_t, gpuInstance, 8);
NVML_ASSERT_AT(nvmlComputeInstanceInfo_t, id, 16);
NVML_ASSERT_AT(nvmlComputeInstanceInfo_t, profileId, 20);
NVML_ASSERT_AT(nvmlComputeInstanceInfo_t, placement, 24);
NVML_ASSERT_SIZE(nvmlDeviceAttributes_t, 40);
NVML_ASSERT_AT(nvmlDeviceAttributes_t, multiprocessorCount, 0);
NVML_ASSERT_AT(nvmlDeviceAttributes_t, sharedCopyEngineCount, 4);
NVML_ASSERT_AT(nvmlDeviceAttributes_t, sharedDecoderCount, 8);
NVML_ASSERT_AT(nvmlDeviceAttributes_t, sharedEncoderCount, 12);
NVML_ASSERT_AT(nvmlDeviceAttributes_t, sharedJpegCount, 16);
NVML_ASSERT_AT(nvmlDeviceAttributes_t, sharedOfaCount, 20);
NVML_ASSERT_AT(nvmlDeviceAttributes_t, gpuInstanceSliceCount, 24);
NVML_ASSERT_AT(nvmlDeviceAttributes_t, computeInstanceSliceCount, 28);
NVML_ASSERT_AT(nvmlDeviceAttributes_t, memorySizeMB, 32);
NVML_ASSERT_SIZE(nvmlMemory_t, 24);
NVML_ASSERT_SIZE(nvmlMemory_v2_t, 40);
NVML_ASSERT_SIZE(nvmlEventData_t, 32);
NVML_ASSERT_AT(nvmlEventData_t, device, 0);
NVML_ASSERT_AT(nvmlEventData_t, eventType, 8);
NVML_ASSERT_AT(nvmlEventData_t, eventData, 16);
NVML_ASSERT_AT(nvmlEventData_t, gpuInstanceId, 24);
NVML_ASSERT_AT(nvmlEventData_t, computeInstanceId, 28);
NVML_ASSERT_SIZE(nvmlProcessInfo_t, 24);
NVML_ASSERT_AT(nvmlProcessInfo_t, pid, 0);
NVML_ASSERT_AT(nvmlProcessInfo_t, usedGpuMemory, 8);
NVML_ASSERT_AT(nvmlProcessInfo_t, gpuInstanceId, 16);
NVML_ASSERT_AT(nvmlProcessInfo_t, computeInstanceId, 20);
NVML_ASSERT_SIZE(nvmlPciInfo_t, 68);
static_assert(NVML_GPU_INSTANCE_PROFILE_INFO_V2 == 0x02000098, "version word");
static_assert(NVML_GPU_INSTANCE_PROFILE_INFO_V3 == 0x03000098, "version word");
static_assert(NVML_COMPUTE_INSTANCE_PROFILE_INFO_V2 == 0x02000088, "version word");
static_assert(NVML_COMPUTE_INSTANCE_PROFILE_INFO_V3 == 0x0300008c, "version word");
static_assert(NVML_MEMORY_V2 == 0x02000028, "version word");

/* Every function we call or simulate: X(need, return type, name, parameters). The names
 * are those to give to dlsym(): the newest version of each that old drivers also have.
 * need: REQUIRED (an inventory is impossible without it: refuse the library), MIG (R450 and
 * later; without it the driver has no MIG), OPTIONAL (absent: the value is unknown). */
#define NVML_FUNCTIONS(X)                                                                      \
    NVML_SYSTEM_FUNCTIONS(X)                                                                   \
    NVML_DEVICE_FUNCTIONS(X)                                                                   \
    NVML_READING_FUNCTIONS(X)                                                                  \
    NVML_MIG_FUNCTIONS(X)                                                                      \
    NVML_EVENT_FUNCTIONS(X)                                                                    \
    NVML_GPM_FUNCTIONS(X)

#define NVML_SYSTEM_FUNCTIONS(X)                                                               \
    X(REQUIRED, nvmlReturn_t, nvmlInit_v2, (void))                                             \
    X(OPTIONAL, nvmlReturn_t, nvmlInitWithFlags, (unsigned int flags))                         \
    X(REQUIRED, nvmlReturn_t, nvmlShutdown, (void))                                            \
    X(REQUIRED, const char *, nvmlErrorString, (nvmlReturn_t result))                          \
    X(REQUIRED, nvmlReturn_t, nvmlSystemGetDriverVersion,                                      \
      (char *version, unsigned int length))                                                    \
    X(OPTIONAL, nvmlReturn_t, nvmlSystemGetNVMLVersion, (char *version, unsigned int length))  \
    X(OPTIONAL, nvmlReturn_t, nvmlSystemGetCudaDriverVersion_v2, (int *version))               \
    X(OPTIONAL, nvmlReturn_t, nvmlSystemGetProcessName,                                        \
      (unsigned int pid, char *name, unsigned int length))

#define NVML_DEVICE_FUNCTIONS(X)                                                               \
    X(REQUIRED, nvmlReturn_t, nvmlDeviceGetCount_v2, (unsigned int *count))                    \
    X(REQUIRED, nvmlReturn_t, nvmlDeviceGetHandleByIndex_v2,                                   \
      (unsigned int index, nvmlDevice_t *device))                                              \
    X(REQUIRED, nvmlReturn_t, nvmlDeviceGetHandleByUUID,                                       \
      (const char *uuid, nvmlDevice_t *device))                                                \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetHandleByPciBusId_v2,                                \
      (const char *pciBusId, nvmlDevice_t *device))                                            \
    X(REQUIRED, nvmlReturn_t, nvmlDeviceGetName,                                               \
      (nvmlDevice_t device, char *name, unsigned int length))                                  \
    X(REQUIRED, nvmlReturn_t, nvmlDeviceGetUUID,                                               \
      (nvmlDevice_t device, char *uuid, unsigned int length))                                  \
    X(REQUIRED, nvmlReturn_t, nvmlDeviceGetPciInfo_v3,                                         \
      (nvmlDevice_t device, nvmlPciInfo_t * pci))                                              \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetIndex, (nvmlDevice_t device, unsigned int *index))  \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetMinorNumber,                                        \
      (nvmlDevice_t device, unsigned int *minorNumber))                                        \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetSerial,                                             \
      (nvmlDevice_t device, char *serial, unsigned int length))                                \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetVbiosVersion,                                       \
      (nvmlDevice_t device, char *version, unsigned int length))                               \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetBoardPartNumber,                                    \
      (nvmlDevice_t device, char *partNumber, unsigned int length))                            \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetBrand,                                              \
      (nvmlDevice_t device, nvmlBrandType_t * type))                                           \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetArchitecture,                                       \
      (nvmlDevice_t device, nvmlDeviceArchitecture_t * architecture))                          \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetCudaComputeCapability,                              \
      (nvmlDevice_t device, int *major, int *minor))                                           \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetNumGpuCores,                                        \
      (nvmlDevice_t device, unsigned int *count))                                              \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetMemoryBusWidth,                                     \
      (nvmlDevice_t device, unsigned int *width))                                              \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetPersistenceMode,                                    \
      (nvmlDevice_t device, nvmlEnableState_t * mode))                                         \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetComputeMode,                                        \
      (nvmlDevice_t device, nvmlComputeMode_t * mode))                                         \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetDisplayMode,                                        \
      (nvmlDevice_t device, nvmlEnableState_t * display))                                      \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetDisplayActive,                                      \
      (nvmlDevice_t device, nvmlEnableState_t * active))                                       \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetVirtualizationMode,                                 \
      (nvmlDevice_t device, nvmlGpuVirtualizationMode_t * mode))                               \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetTopologyCommonAncestor,                             \
      (nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t * level))

#define NVML_READING_FUNCTIONS(X)                                                              \
    X(REQUIRED, nvmlReturn_t, nvmlDeviceGetMemoryInfo,                                         \
      (nvmlDevice_t device, nvmlMemory_t * memory))                                            \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetMemoryInfo_v2,                                      \
      (nvmlDevice_t device, nvmlMemory_v2_t * memory))                                         \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetBAR1MemoryInfo,                                     \
      (nvmlDevice_t device, nvmlBAR1Memory_t * memory))                                        \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetPowerUsage,                                         \
      (nvmlDevice_t device, unsigned int *power_mw))                                           \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetTotalEnergyConsumption,                             \
      (nvmlDevice_t device, unsigned long long *energy_mj))                                    \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetPowerManagementLimit,                               \
      (nvmlDevice_t device, unsigned int *limit_mw))                                           \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetPowerManagementDefaultLimit,                        \
      (nvmlDevice_t device, unsigned int *limit_mw))                                           \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetPowerManagementLimitConstraints,                    \
      (nvmlDevice_t device, unsigned int *minimum_mw, unsigned int *maximum_mw))               \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetEnforcedPowerLimit,                                 \
      (nvmlDevice_t device, unsigned int *limit_mw))                                           \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetClockInfo,                                          \
      (nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock_mhz))                    \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetMaxClockInfo,                                       \
      (nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock_mhz))                    \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetCurrentClocksEventReasons,                          \
      (nvmlDevice_t device, unsigned long long *reasons))                                      \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetCurrentClocksThrottleReasons,                       \
      (nvmlDevice_t device, unsigned long long *reasons))                                      \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetPerformanceState,                                   \
      (nvmlDevice_t device, nvmlPstates_t * state))                                            \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetFanSpeed,                                           \
      (nvmlDevice_t device, unsigned int *percent))                                            \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetTemperature,                                        \
      (nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius))           \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetTemperatureV,                                       \
      (nvmlDevice_t device, nvmlTemperature_t * temperature))                                  \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetTemperatureThreshold,                               \
      (nvmlDevice_t device, nvmlTemperatureThresholds_t type, unsigned int *celsius))          \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetUtilizationRates,                                   \
      (nvmlDevice_t device, nvmlUtilization_t * utilization))                                  \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetEncoderUtilization,                                 \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                   \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetDecoderUtilization,                                 \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                   \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetPcieThroughput,                                     \
      (nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *kb_per_s))            \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetCurrPcieLinkGeneration,                             \
      (nvmlDevice_t device, unsigned int *generation))                                         \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetCurrPcieLinkWidth,                                  \
      (nvmlDevice_t device, unsigned int *width))                                              \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetEccMode,                                            \
      (nvmlDevice_t device, nvmlEnableState_t * current, nvmlEnableState_t * pending))         \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetTotalEccErrors,                                     \
      (nvmlDevice_t device, nvmlMemoryErrorType_t error, nvmlEccCounterType_t counter,         \
       unsigned long long *count))                                                             \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetMemoryErrorCounter,                                 \
      (nvmlDevice_t device, nvmlMemoryErrorType_t error, nvmlEccCounterType_t counter,         \
       nvmlMemoryLocation_t location, unsigned long long *count))                              \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetFieldValues,                                        \
      (nvmlDevice_t device, int count, nvmlFieldValue_t *values))                              \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetComputeRunningProcesses_v3,                         \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                    \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetGraphicsRunningProcesses_v3,                        \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                    \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetMPSComputeRunningProcesses_v3,                      \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                    \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetProcessUtilization,                                 \
      (nvmlDevice_t device, nvmlProcessUtilizationSample_t * samples, unsigned int *count,     \
       unsigned long long since_us))

#define NVML_MIG_FUNCTIONS(X)                                                                  \
    X(MIG, nvmlReturn_t, nvmlDeviceSetMigMode,                                                 \
      (nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activationStatus))                \
    X(MIG, nvmlReturn_t, nvmlDeviceGetMigMode,                                                 \
      (nvmlDevice_t device, unsigned int *currentMode, unsigned int *pendingMode))             \
    X(MIG, nvmlReturn_t, nvmlDeviceGetGpuInstanceProfileInfo,                                  \
      (nvmlDevice_t device, unsigned int profile, nvmlGpuInstanceProfileInfo_t *info))         \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetGpuInstanceProfileInfoV,                            \
      (nvmlDevice_t device, unsigned int profile, nvmlGpuInstanceProfileInfo_v2_t *info))      \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetGpuInstanceProfileInfoByIdV,                        \
      (nvmlDevice_t device, unsigned int profileId, nvmlGpuInstanceProfileInfo_v2_t *info))    \
    X(MIG, nvmlReturn_t, nvmlDeviceGetGpuInstancePossiblePlacements_v2,                        \
      (nvmlDevice_t device, unsigned int profileId, nvmlGpuInstancePlacement_t *placements,    \
       unsigned int *count))                                                                   \
    X(MIG, nvmlReturn_t, nvmlDeviceGetGpuInstanceRemainingCapacity,                            \
      (nvmlDevice_t device, unsigned int profileId, unsigned int *count))                      \
    X(MIG, nvmlReturn_t, nvmlDeviceCreateGpuInstance,                                          \
      (nvmlDevice_t device, unsigned int profileId, nvmlGpuInstance_t *gpuInstance))           \
    X(MIG, nvmlReturn_t, nvmlDeviceCreateGpuInstanceWithPlacement,                             \
      (nvmlDevice_t device, unsigned int profileId,                                            \
       const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *gpuInstance))           \
    X(MIG, nvmlReturn_t, nvmlGpuInstanceDestroy, (nvmlGpuInstance_t gpuInstance))              \
    X(MIG, nvmlReturn_t, nvmlDeviceGetGpuInstances,                                            \
      (nvmlDevice_t device, unsigned int profileId, nvmlGpuInstance_t *gpuInstances,           \
       unsigned int *count))                                                                   \
    X(MIG, nvmlReturn_t, nvmlDeviceGetGpuInstanceById,                                         \
      (nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *gpuInstance))                  \
    X(MIG, nvmlReturn_t, nvmlGpuInstanceGetInfo,                                               \
      (nvmlGpuInstance_t gpuInstance, nvmlGpuInstanceInfo_t * info))                           \
    X(MIG, nvmlReturn_t, nvmlGpuInstanceGetComputeInstanceProfileInfo,                         \
      (nvmlGpuInstance_t gpuInstance, unsigned int profile, unsigned int engProfile,           \
       nvmlComputeInstanceProfileInfo_t *info))                                                \
    X(OPTIONAL, nvmlReturn_t, nvmlGpuInstanceGetComputeInstanceProfileInfoV,                   \
      (nvmlGpuInstance_t gpuInstance, unsigned int profile, unsigned int engProfile,           \
       nvmlComputeInstanceProfileInfo_v2_t *info))                                             \
    X(MIG, nvmlReturn_t, nvmlGpuInstanceGetComputeInstanceRemainingCapacity,                   \
      (nvmlGpuInstance_t gpuInstance, unsigned int profileId, unsigned int *count))            \
    X(OPTIONAL, nvmlReturn_t, nvmlGpuInstanceGetComputeInstancePossiblePlacements,             \
      (nvmlGpuInstance_t gpuInstance, unsigned int profileId,                                  \
       nvmlComputeInstancePlacement_t *placements, unsigned int *count))                       \
    X(MIG, nvmlReturn_t, nvmlGpuInstanceCreateComputeInstance,                                 \
      (nvmlGpuInstance_t gpuInstance, unsigned int profileId,                                  \
       nvmlComputeInstance_t *computeInstance))                                                \
    X(OPTIONAL, nvmlReturn_t, nvmlGpuInstanceCreateComputeInstanceWithPlacement,               \
      (nvmlGpuInstance_t gpuInstance, unsigned int profileId,                                  \
       const nvmlComputeInstancePlacement_t *placement,                                        \
       nvmlComputeInstance_t *computeInstance))                                                \
    X(MIG, nvmlReturn_t, nvmlComputeInstanceDestroy, (nvmlComputeInstance_t computeInstance))  \
    X(MIG, nvmlReturn_t, nvmlGpuInstanceGetComputeInstances,                                   \
      (nvmlGpuInstance_t gpuInstance, unsigned int profileId,                                  \
       nvmlComputeInstance_t *computeInstances, unsigned int *count))                          \
    X(MIG, nvmlReturn_t, nvmlGpuInstanceGetComputeInstanceById,                                \
      (nvmlGpuInstance_t gpuInstance, unsigned int id,                                         \
       nvmlComputeInstance_t *computeInstance))                                                \
    X(MIG, nvmlReturn_t, nvmlComputeInstanceGetInfo_v2,                                        \
      (nvmlComputeInstance_t computeInstance, nvmlComputeInstanceInfo_t * info))               \
    X(MIG, nvmlReturn_t, nvmlDeviceGetMaxMigDeviceCount,                                       \
      (nvmlDevice_t device, unsigned int *count))                                              \
    X(MIG, nvmlReturn_t, nvmlDeviceGetMigDeviceHandleByIndex,                                  \
      (nvmlDevice_t device, unsigned int index, nvmlDevice_t *migDevice))                      \
    X(MIG, nvmlReturn_t, nvmlDeviceIsMigDeviceHandle,                                          \
      (nvmlDevice_t device, unsigned int *isMigDevice))                                        \
    X(MIG, nvmlReturn_t, nvmlDeviceGetGpuInstanceId, (nvmlDevice_t device, unsigned int *id))  \
    X(MIG, nvmlReturn_t, nvmlDeviceGetComputeInstanceId,                                       \
      (nvmlDevice_t device, unsigned int *id))                                                 \
    X(MIG, nvmlReturn_t, nvmlDeviceGetDeviceHandleFromMigDeviceHandle,                         \
      (nvmlDevice_t migDevice, nvmlDevice_t * device))                                         \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetAttributes_v2,                                      \
      (nvmlDevice_t device, nvmlDeviceAttributes_t * attributes))

#define NVML_EVENT_FUNCTIONS(X)                                                                \
    X(OPTIONAL, nvmlReturn_t, nvmlEventSetCreate, (nvmlEventSet_t * set))                      \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceRegisterEvents,                                        \
      (nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set))                \
    X(OPTIONAL, nvmlReturn_t, nvmlDeviceGetSupportedEventTypes,                                \
      (nvmlDevice_t device, unsigned long long *eventTypes))                                   \
    X(OPTIONAL, nvmlReturn_t, nvmlEventSetWait_v2,                                             \
      (nvmlEventSet_t set, nvmlEventData_t * data, unsigned int timeout_ms))                   \
    X(OPTIONAL, nvmlReturn_t, nvmlEventSetFree, (nvmlEventSet_t set))

#define NVML_GPM_FUNCTIONS(X)                                                                  \
    X(OPTIONAL, nvmlReturn_t, nvmlGpmQueryDeviceSupport,                                       \
      (nvmlDevice_t device, nvmlGpmSupport_t * gpmSupport))                                    \
    X(OPTIONAL, nvmlReturn_t, nvmlGpmSampleAlloc, (nvmlGpmSample_t * gpmSample))               \
    X(OPTIONAL, nvmlReturn_t, nvmlGpmSampleFree, (nvmlGpmSample_t gpmSample))                  \
    X(OPTIONAL, nvmlReturn_t, nvmlGpmSampleGet,                                                \
      (nvmlDevice_t device, nvmlGpmSample_t gpmSample))                                        \
    X(OPTIONAL, nvmlReturn_t, nvmlGpmMigSampleGet,                                             \
      (nvmlDevice_t device, unsigned int gpuInstanceId, nvmlGpmSample_t gpmSample))            \
    X(OPTIONAL, nvmlReturn_t, nvmlGpmMetricsGet, (nvmlGpmMetricsGet_t * metricsGet))

#endif
