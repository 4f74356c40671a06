/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX Runtime's table of functions, as far as we use it, by slot number. Private to this
 * folder.
 *
 * The library exports one symbol, OrtGetApiBase(). It leads to a table of function
 * pointers that only ever grows at its end, so the slot of a released function never
 * changes. Every slot below exists since table version 11 (runtime 1.11), so that version
 * is what we ask for: every later runtime answers, while asking for a newer table fails on
 * an older runtime. Slot numbers are those of the vendor's published header; its enums
 * are int on this platform. Functions that return struct ort_status * return NULL for
 * success; any other status must be released.
 */
#ifndef TRANCHE_ENGINE_ORT_SLOTS_H
#define TRANCHE_ENGINE_ORT_SLOTS_H

#include <stddef.h>
#include <stdint.h>

enum { ORT_TABLE_VERSION = 11 };

struct ort_status;
struct ort_env;
struct ort_session;
struct ort_options;
struct ort_run_options;
struct ort_value;
struct ort_type_info;
struct ort_tensor_info;
struct ort_memory_info;
struct ort_allocator;
struct ort_cuda_options;
struct ort_tensorrt_options;

enum {
    ORT_LOG_FATAL = 4,
    ORT_OPTIMIZE_ALL = 99,
    ORT_ALLOCATOR_ARENA = 1,
    ORT_MEMORY_DEFAULT = 0,
};

/* X(slot, return type, name, parameters) */
/* clang-format off */
#define ORT_SLOTS(X) \
    X(2, const char *, GetErrorMessage, (const struct ort_status *)) \
    X(3, struct ort_status *, CreateEnv, (int log_level, const char *id, struct ort_env **)) \
    X(7, struct ort_status *, CreateSession, \
      (const struct ort_env *, const char *path, const struct ort_options *, \
       struct ort_session **)) \
    X(8, struct ort_status *, CreateSessionFromArray, \
      (const struct ort_env *, const void *bytes, size_t size, const struct ort_options *, \
       struct ort_session **)) \
    X(9, struct ort_status *, Run, \
      (struct ort_session *, const struct ort_run_options *, const char *const *in_names, \
       const struct ort_value *const *in, size_t in_count, const char *const *out_names, \
       size_t out_count, struct ort_value **out)) \
    X(10, struct ort_status *, CreateSessionOptions, (struct ort_options **)) \
    X(23, struct ort_status *, SetSessionGraphOptimizationLevel, (struct ort_options *, int)) \
    X(24, struct ort_status *, SetIntraOpNumThreads, (struct ort_options *, int)) \
    X(25, struct ort_status *, SetInterOpNumThreads, (struct ort_options *, int)) \
    X(30, struct ort_status *, SessionGetInputCount, (const struct ort_session *, size_t *)) \
    X(31, struct ort_status *, SessionGetOutputCount, (const struct ort_session *, size_t *)) \
    X(33, struct ort_status *, SessionGetInputTypeInfo, \
      (const struct ort_session *, size_t, struct ort_type_info **)) \
    X(34, struct ort_status *, SessionGetOutputTypeInfo, \
      (const struct ort_session *, size_t, struct ort_type_info **)) \
    X(36, struct ort_status *, SessionGetInputName, \
      (const struct ort_session *, size_t, struct ort_allocator *, char **)) \
    X(37, struct ort_status *, SessionGetOutputName, \
      (const struct ort_session *, size_t, struct ort_allocator *, char **)) \
    X(49, struct ort_status *, CreateTensorWithDataAsOrtValue, \
      (const struct ort_memory_info *, void *data, size_t bytes, const int64_t *shape, \
       size_t rank, int element, struct ort_value **)) \
    X(50, struct ort_status *, IsTensor, (const struct ort_value *, int *)) \
    X(51, struct ort_status *, GetTensorMutableData, (struct ort_value *, void **)) \
    X(55, struct ort_status *, CastTypeInfoToTensorInfo, \
      (const struct ort_type_info *, const struct ort_tensor_info **)) \
    X(60, struct ort_status *, GetTensorElementType, (const struct ort_tensor_info *, int *)) \
    X(61, struct ort_status *, GetDimensionsCount, (const struct ort_tensor_info *, size_t *)) \
    X(62, struct ort_status *, GetDimensions, (const struct ort_tensor_info *, int64_t *, size_t)) \
    X(63, struct ort_status *, GetSymbolicDimensions, \
      (const struct ort_tensor_info *, const char **, size_t)) \
    X(65, struct ort_status *, GetTensorTypeAndShape, \
      (const struct ort_value *, struct ort_tensor_info **)) \
    X(69, struct ort_status *, CreateCpuMemoryInfo, \
      (int allocator, int memory, struct ort_memory_info **)) \
    X(76, struct ort_status *, AllocatorFree, (struct ort_allocator *, void *)) \
    X(78, struct ort_status *, GetAllocatorWithDefaultOptions, (struct ort_allocator **)) \
    X(92, void, ReleaseEnv, (struct ort_env *)) \
    X(93, void, ReleaseStatus, (struct ort_status *)) \
    X(94, void, ReleaseMemoryInfo, (struct ort_memory_info *)) \
    X(95, void, ReleaseSession, (struct ort_session *)) \
    X(96, void, ReleaseValue, (struct ort_value *)) \
    X(98, void, ReleaseTypeInfo, (struct ort_type_info *)) \
    X(99, void, ReleaseTensorTypeAndShapeInfo, (struct ort_tensor_info *)) \
    X(100, void, ReleaseSessionOptions, (struct ort_options *)) \
    X(125, struct ort_status *, GetAvailableProviders, (char ***, int *)) \
    X(126, struct ort_status *, ReleaseAvailableProviders, (char **, int)) \
    X(130, struct ort_status *, AddSessionConfigEntry, \
      (struct ort_options *, const char *key, const char *value)) \
    X(170, struct ort_status *, SessionOptionsAppendExecutionProvider_TensorRT_V2, \
      (struct ort_options *, const struct ort_tensorrt_options *)) \
    X(171, struct ort_status *, CreateTensorRTProviderOptions, (struct ort_tensorrt_options **)) \
    X(172, struct ort_status *, UpdateTensorRTProviderOptions, \
      (struct ort_tensorrt_options *, const char *const *keys, const char *const *values, size_t)) \
    X(174, void, ReleaseTensorRTProviderOptions, (struct ort_tensorrt_options *)) \
    X(204, struct ort_status *, SessionOptionsAppendExecutionProvider_CUDA_V2, \
      (struct ort_options *, const struct ort_cuda_options *)) \
    X(205, struct ort_status *, CreateCUDAProviderOptions, (struct ort_cuda_options **)) \
    X(206, struct ort_status *, UpdateCUDAProviderOptions, \
      (struct ort_cuda_options *, const char *const *keys, const char *const *values, size_t)) \
    X(208, void, ReleaseCUDAProviderOptions, (struct ort_cuda_options *))
/* clang-format on */

struct ort_table {
#define X(slot, type, name, parameters) type(*name) parameters;
    ORT_SLOTS(X)
#undef X
};

#endif
