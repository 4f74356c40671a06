/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading and running a model. See session.h.
 */
#include "engine/session.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "engine/onnx_runtime_internal.h"

struct session {
    struct onnx_runtime *runtime;
    struct ort_session *ort;
    struct session_tensor *inputs, *outputs;
    size_t input_count, output_count;
    const char **input_names, **output_names; /* borrowed from the tensors */
};

struct session_call {
    struct session *session;
    struct ort_value **inputs, **outputs;
};

static const char *const provider_names[SESSION_PROVIDER_COUNT] = {
    [SESSION_CPU] = "cpu",
    [SESSION_CUDA] = "cuda",
    [SESSION_TENSORRT] = "tensorrt",
};

const char *session_provider_name(enum session_provider provider)
{
    assert(provider < SESSION_PROVIDER_COUNT);
    return provider_names[provider];
}

bool session_provider_find(const char *name, enum session_provider *ret_provider)
{
    for (int i = 0; i < SESSION_PROVIDER_COUNT; i++)
        if (strcmp(provider_names[i], name) == 0) {
            *ret_provider = (enum session_provider)i;
            return true;
        }
    return false;
}

/* One process is bound to one MIG instance, which CUDA sees as device 0. */
static int add_cuda(struct onnx_runtime *runtime, struct ort_options *options,
                    struct error *err)
{
    const struct ort_table *ort = &runtime->table;
    static const char *const keys[] = {"device_id", "cudnn_conv_algo_search"};
    static const char *const values[] = {"0", "HEURISTIC"};
    struct ort_cuda_options *cuda = NULL;
    int failure = ort_check(runtime, ort->CreateCUDAProviderOptions(&cuda), E_MISSING, err);
    if (failure)
        return failure;
    failure = ort_check(runtime, ort->UpdateCUDAProviderOptions(cuda, keys, values, 2),
                        E_MISSING, err);
    if (!failure)
        failure = ort_check(runtime,
                            ort->SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda),
                            E_MISSING, err);
    ort->ReleaseCUDAProviderOptions(cuda);
    return failure;
}

static int add_tensorrt(struct onnx_runtime *runtime, struct ort_options *options,
                        struct error *err)
{
    const struct ort_table *ort = &runtime->table;
    static const char *const keys[] = {"device_id"};
    static const char *const values[] = {"0"};
    struct ort_tensorrt_options *rt = NULL;
    int failure = ort_check(runtime, ort->CreateTensorRTProviderOptions(&rt), E_MISSING, err);
    if (failure)
        return failure;
    failure = ort_check(runtime, ort->UpdateTensorRTProviderOptions(rt, keys, values, 1),
                        E_MISSING, err);
    if (!failure)
        failure = ort_check(runtime,
                            ort->SessionOptionsAppendExecutionProvider_TensorRT_V2(options, rt),
                            E_MISSING, err);
    ort->ReleaseTensorRTProviderOptions(rt);
    return failure;
}

static int set_options(struct onnx_runtime *runtime, struct ort_options *options,
                       const struct session_options *want, struct error *err)
{
    const struct ort_table *ort = &runtime->table;
    int threads = want->threads > 0 ? want->threads : 1;
    int failure =
        ort_check(runtime, ort->SetIntraOpNumThreads(options, threads), E_UNSUPPORTED, err);
    assert(options && want);
    if (!failure)
        failure = ort_check(runtime, ort->SetInterOpNumThreads(options, 1), E_UNSUPPORTED, err);
    if (!failure)
        failure =
            ort_check(runtime, ort->SetSessionGraphOptimizationLevel(options, ORT_OPTIMIZE_ALL),
                      E_UNSUPPORTED, err);
    /* A spinning thread burns the quota of a slice that has one. */
    if (!failure)
        failure = ort_check(
            runtime,
            ort->AddSessionConfigEntry(options, "session.intra_op.allow_spinning", "0"),
            E_UNSUPPORTED, err);
    if (!failure && want->provider == SESSION_TENSORRT)
        failure = add_tensorrt(runtime, options, err);
    if (!failure && want->provider != SESSION_CPU)
        failure = add_cuda(runtime, options, err);
    return failure;
}

/* Takes a name that the runtime allocated. */
static char *take_name(struct onnx_runtime *runtime, char *name)
{
    char *copy = xstrdup(name);
    assert(name);
    ort_check(runtime, runtime->table.AllocatorFree(runtime->allocator, name), E_UNSUPPORTED,
              NULL);
    return copy;
}

/* Element, sizes and names of open sizes, out of type information. */
static int describe(struct onnx_runtime *runtime, const struct ort_type_info *type,
                    struct session_tensor *tensor, struct error *err)
{
    const struct ort_table *ort = &runtime->table;
    const struct ort_tensor_info *info = NULL;
    const char *symbols[TENSOR_RANK_MAX] = {NULL};
    int element = 0;
    size_t rank = 0;
    int failure =
        ort_check(runtime, ort->CastTypeInfoToTensorInfo(type, &info), E_UNSUPPORTED, err);
    assert(type && tensor);
    if (failure)
        return failure;
    if (!info)
        return 0; /* a sequence or map: element 0 says so, and only its use is refused */
    failure = ort_check(runtime, ort->GetTensorElementType(info, &element), E_UNSUPPORTED, err);
    if (!failure)
        failure = ort_check(runtime, ort->GetDimensionsCount(info, &rank), E_UNSUPPORTED, err);
    if (failure)
        return failure;
    if (rank > TENSOR_RANK_MAX)
        return error_set(err, E_UNSUPPORTED, "%s has %zu dimensions, expected at most %d",
                         tensor->name, rank, TENSOR_RANK_MAX);
    failure = ort_check(runtime, ort->GetDimensions(info, tensor->shape.size, rank),
                        E_UNSUPPORTED, err);
    if (!failure)
        failure = ort_check(runtime, ort->GetSymbolicDimensions(info, symbols, rank),
                            E_UNSUPPORTED, err);
    if (failure)
        return failure;
    tensor->element = (enum tensor_element)element;
    tensor->shape.rank = (int)rank;
    for (size_t i = 0; i < rank; i++)
        if (tensor->shape.size[i] < 0) {
            tensor->shape.size[i] = TENSOR_OPEN;
            tensor->symbols[i] = symbols[i] && *symbols[i] ? xstrdup(symbols[i]) : NULL;
        }
    return 0;
}

static int describe_one(struct session *session, bool is_input, size_t index,
                        struct session_tensor *tensor, struct error *err)
{
    struct onnx_runtime *runtime = session->runtime;
    const struct ort_table *ort = &runtime->table;
    struct ort_type_info *type = NULL;
    char *name = NULL;
    struct ort_status *status =
        is_input ? ort->SessionGetInputName(session->ort, index, runtime->allocator, &name)
                 : ort->SessionGetOutputName(session->ort, index, runtime->allocator, &name);
    int failure = ort_check(runtime, status, E_UNSUPPORTED, err);
    if (failure)
        return failure;
    tensor->name = take_name(runtime, name);
    status = is_input ? ort->SessionGetInputTypeInfo(session->ort, index, &type)
                      : ort->SessionGetOutputTypeInfo(session->ort, index, &type);
    failure = ort_check(runtime, status, E_UNSUPPORTED, err);
    if (failure)
        return failure;
    failure = describe(runtime, type, tensor, err);
    ort->ReleaseTypeInfo(type);
    return failure;
}

static int describe_all(struct session *session, bool is_input, struct error *err)
{
    const struct ort_table *ort = &session->runtime->table;
    size_t count = 0;
    int failure = ort_check(session->runtime,
                            is_input ? ort->SessionGetInputCount(session->ort, &count)
                                     : ort->SessionGetOutputCount(session->ort, &count),
                            E_UNSUPPORTED, err);
    if (failure)
        return failure;
    if (count > SESSION_TENSORS_MAX)
        return error_set(err, E_UNSUPPORTED, "%zu %s, expected at most %d", count,
                         is_input ? "inputs" : "outputs", SESSION_TENSORS_MAX);
    struct session_tensor *tensors = xcalloc(count, sizeof *tensors);
    const char **names = xcalloc(count, sizeof *names);
    *(is_input ? &session->inputs : &session->outputs) = tensors;
    *(is_input ? &session->input_names : &session->output_names) = names;
    *(is_input ? &session->input_count : &session->output_count) = count;
    for (size_t i = 0; i < count && !failure; i++) {
        failure = describe_one(session, is_input, i, &tensors[i], err);
        names[i] = tensors[i].name;
    }
    return failure;
}

/* bytes NULL: from the file `name`. */
static int session_open(struct onnx_runtime *runtime, const char *name, const struct str *bytes,
                        const struct session_options *options, struct session **ret_session,
                        struct error *err)
{
    const struct ort_table *ort = &runtime->table;
    CLEANUP(session_free_ptr) struct session *session = xcalloc(1, sizeof *session);
    struct ort_options *ort_options = NULL;
    session->runtime = runtime;
    int failure =
        ort_check(runtime, ort->CreateSessionOptions(&ort_options), E_UNSUPPORTED, err);
    if (failure)
        return failure;
    failure = set_options(runtime, ort_options, options, err);
    if (!failure)
        failure = ort_check(
            runtime,
            bytes ? ort->CreateSessionFromArray(runtime->env, bytes->bytes, bytes->length,
                                                ort_options, &session->ort)
                  : ort->CreateSession(runtime->env, name, ort_options, &session->ort),
            E_MISSING, err);
    ort->ReleaseSessionOptions(ort_options);
    if (!failure)
        failure = describe_all(session, true, err);
    if (!failure)
        failure = describe_all(session, false, err);
    if (failure)
        return error_wrap(err, "%s: cannot load this model with ONNX Runtime %s (%s)", name,
                          runtime->version, session_provider_name(options->provider));
    *ret_session = STEAL(session);
    return 0;
}

int session_open_file(struct onnx_runtime *runtime, const char *path,
                      const struct session_options *options, struct session **ret_session,
                      struct error *err)
{
    struct stat status;
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert(runtime && path && options);
    if (fd < 0 || fstat(fd, &status))
        return error_set_errno(err, E_IO, "%s: cannot open this model", path);
    if (S_ISDIR(status.st_mode))
        return error_set(err, E_IO, "%s: this is a directory, expected an ONNX model", path);
    return session_open(runtime, path, NULL, options, ret_session, err);
}

int session_open_bytes(struct onnx_runtime *runtime, const char *name, const struct str *bytes,
                       const struct session_options *options, struct session **ret_session,
                       struct error *err)
{
    assert(bytes);
    return session_open(runtime, name, bytes, options, ret_session, err);
}

static void tensors_free(struct session_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(tensors[i].name);
        for (int d = 0; d < TENSOR_RANK_MAX; d++)
            free(tensors[i].symbols[d]);
    }
    free(tensors);
}

void session_free(struct session *session)
{
    if (!session)
        return;
    if (session->ort)
        session->runtime->table.ReleaseSession(session->ort);
    tensors_free(session->inputs, session->input_count);
    tensors_free(session->outputs, session->output_count);
    free(session->input_names);
    free(session->output_names);
    free(session);
}

struct ort_session *session_handle(const struct session *session)
{
    return session->ort;
}

size_t session_input_count(const struct session *session)
{
    return session->input_count;
}

const struct session_tensor *session_input(const struct session *session, size_t index)
{
    assert(index < session->input_count);
    return &session->inputs[index];
}

size_t session_output_count(const struct session *session)
{
    return session->output_count;
}

const struct session_tensor *session_output(const struct session *session, size_t index)
{
    assert(index < session->output_count);
    return &session->outputs[index];
}

static int find_name(const char *const *names, size_t count, const char *name)
{
    assert(name);
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

int session_find_input(const struct session *session, const char *name)
{
    return find_name(session->input_names, session->input_count, name);
}

int session_find_output(const struct session *session, const char *name)
{
    return find_name(session->output_names, session->output_count, name);
}

struct session_call *session_call_new(struct session *session)
{
    struct session_call *call = xcalloc(1, sizeof *call);
    assert(session);
    call->session = session;
    call->inputs = xcalloc(session->input_count, sizeof *call->inputs);
    call->outputs = xcalloc(session->output_count, sizeof *call->outputs);
    return call;
}

static void release_value(struct session_call *call, struct ort_value **value)
{
    if (*value)
        call->session->runtime->table.ReleaseValue(*value);
    *value = NULL;
}

void session_call_free(struct session_call *call)
{
    if (!call)
        return;
    for (size_t i = 0; i < call->session->input_count; i++)
        release_value(call, &call->inputs[i]);
    for (size_t i = 0; i < call->session->output_count; i++)
        release_value(call, &call->outputs[i]);
    free(call->inputs);
    free(call->outputs);
    free(call);
}

int session_call_bind(struct session_call *call, size_t input, const struct tensor *tensor,
                      struct error *err)
{
    struct onnx_runtime *runtime = call->session->runtime;
    struct ort_value *value = NULL;
    assert(input < call->session->input_count);
    int failure =
        ort_check(runtime,
                  runtime->table.CreateTensorWithDataAsOrtValue(
                      runtime->memory, tensor->data, tensor->size_bytes, tensor->shape.size,
                      (size_t)tensor->shape.rank, (int)tensor->element, &value),
                  E_INPUT, err);
    if (failure)
        return error_wrap(err, "input %s", call->session->inputs[input].name);
    release_value(call, &call->inputs[input]);
    call->inputs[input] = value;
    return 0;
}

void session_call_feed_back(struct session_call *call, size_t output, size_t input)
{
    assert(output < call->session->output_count && input < call->session->input_count);
    assert(call->outputs[output]);
    release_value(call, &call->inputs[input]);
    call->inputs[input] = STEAL(call->outputs[output]);
}

int session_call_run(struct session_call *call, struct error *err)
{
    const struct session *session = call->session;
    const struct ort_table *ort = &session->runtime->table;
    assert(call && call->session);
    for (size_t i = 0; i < session->output_count; i++)
        release_value(call, &call->outputs[i]);
    return ort_check(session->runtime,
                     ort->Run(session->ort, NULL, session->input_names,
                              (const struct ort_value *const *)call->inputs,
                              session->input_count, session->output_names,
                              session->output_count, call->outputs),
                     E_UNSUPPORTED, err);
}

/* Type and shape of a value that is a tensor. */
static int read_shape(struct onnx_runtime *runtime, const struct ort_value *value,
                      struct tensor *tensor, struct error *err)
{
    const struct ort_table *ort = &runtime->table;
    struct ort_tensor_info *info = NULL;
    int element = 0;
    size_t rank = 0;
    int failure =
        ort_check(runtime, ort->GetTensorTypeAndShape(value, &info), E_UNSUPPORTED, err);
    assert(value && tensor);
    if (failure)
        return failure;
    failure = ort_check(runtime, ort->GetTensorElementType(info, &element), E_UNSUPPORTED, err);
    if (!failure)
        failure = ort_check(runtime, ort->GetDimensionsCount(info, &rank), E_UNSUPPORTED, err);
    if (!failure && rank > TENSOR_RANK_MAX)
        failure = error_set(err, E_UNSUPPORTED, "%zu dimensions, expected at most %d", rank,
                            TENSOR_RANK_MAX);
    if (!failure)
        failure = ort_check(runtime, ort->GetDimensions(info, tensor->shape.size, rank),
                            E_UNSUPPORTED, err);
    ort->ReleaseTensorTypeAndShapeInfo(info);
    tensor->element = (enum tensor_element)element;
    tensor->shape.rank = failure ? 0 : (int)rank;
    return failure;
}

/* A value that is a tensor of numbers, in host memory. */
static int read_value(struct session_call *call, struct ort_value *value,
                      struct tensor *ret_tensor, struct error *err)
{
    struct onnx_runtime *runtime = call->session->runtime;
    const struct ort_table *ort = &runtime->table;
    struct tensor tensor = {0};
    int is_tensor = 0;
    assert(value);
    int failure = ort_check(runtime, ort->IsTensor(value, &is_tensor), E_UNSUPPORTED, err);
    if (!failure && !is_tensor)
        failure = error_set(err, E_UNSUPPORTED, "this is not a tensor");
    if (!failure)
        failure = read_shape(runtime, value, &tensor, err);
    if (!failure && tensor_element_bytes(tensor.element) == 0)
        failure = error_set(err, E_UNSUPPORTED, "its elements (type %d) are not numbers",
                            (int)tensor.element);
    if (!failure)
        failure = ort_check(runtime, ort->GetTensorMutableData(value, &tensor.data),
                            E_UNSUPPORTED, err);
    if (failure)
        return failure;
    tensor.size_bytes =
        tensor_shape_count(&tensor.shape) * tensor_element_bytes(tensor.element);
    *ret_tensor = tensor;
    return 0;
}

int session_call_output(struct session_call *call, size_t output, struct tensor *ret_tensor,
                        struct error *err)
{
    assert(output < call->session->output_count);
    int failure = read_value(call, call->outputs[output], ret_tensor, err);
    return failure ? error_wrap(err, "output %s", call->session->outputs[output].name) : 0;
}

int session_call_input(struct session_call *call, size_t input, struct tensor *ret_tensor,
                       struct error *err)
{
    assert(input < call->session->input_count);
    int failure = read_value(call, call->inputs[input], ret_tensor, err);
    return failure ? error_wrap(err, "input %s", call->session->inputs[input].name) : 0;
}
