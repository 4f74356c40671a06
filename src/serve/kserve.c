/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading is strict where a mistake would reach the model (types, shapes, counts) and lax
 * where the protocol is (unknown members are ignored). Sizes are checked before anything
 * is allocated: a shape can never ask for more memory than the values sent with it.
 */
#include "serve/kserve.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"

static const char BODY_NAME[] = "request";

/* How JSON numbers become elements and back; one row a type that JSON can carry. */
struct element_codec {
    enum tensor_element element;
    double minimum, maximum; /* of whole numbers; equal for floating point */
};

static const struct element_codec CODECS[] = {
    {TENSOR_BOOL, 0, 1},
    {TENSOR_U8, 0, UINT8_MAX},
    {TENSOR_I8, INT8_MIN, INT8_MAX},
    {TENSOR_U16, 0, UINT16_MAX},
    {TENSOR_I16, INT16_MIN, INT16_MAX},
    {TENSOR_U32, 0, UINT32_MAX},
    {TENSOR_I32, INT32_MIN, INT32_MAX},
    {TENSOR_U64, 0, 0x1p63},
    {TENSOR_I64, -0x1p63, 0x1p63},
    {TENSOR_F32, 0, 0},
    {TENSOR_F64, 0, 0},
};

static const struct element_codec *codec_find(enum tensor_element element)
{
    for (size_t i = 0; i < sizeof CODECS / sizeof *CODECS; i++)
        if (CODECS[i].element == element)
            return &CODECS[i];
    return NULL;
}

static bool element_is_float(enum tensor_element element)
{
    return element == TENSOR_F32 || element == TENSOR_F64;
}

/* ---- reading ---------------------------------------------------------------------- */

static size_t count_leaves(const json_t *data)
{
    if (!json_is_array(data))
        return 1;
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(data); i++)
        count += count_leaves(json_array_get(data, i));
    return count;
}

static void store_whole(enum tensor_element element, long long value, void *at)
{
    size_t size = tensor_element_bytes(element);
    memcpy(at, &value, size); /* little endian: the low bytes are the value */
}

static int store_number(const struct json_place *place, const struct element_codec *codec,
                        const json_t *leaf, void *at, struct error *err)
{
    if (element_is_float(codec->element)) {
        if (!json_is_number(leaf))
            return json_error_at(place, err, "not a number");
        double value = json_number_value(leaf);
        float narrow = (float)value;
        if (codec->element == TENSOR_F64)
            memcpy(at, &value, sizeof value);
        else
            memcpy(at, &narrow, sizeof narrow);
        return 0;
    }
    if (json_is_boolean(leaf) && codec->element == TENSOR_BOOL) {
        store_whole(codec->element, json_is_true(leaf), at);
        return 0;
    }
    if (!json_is_integer(leaf))
        return json_error_at(place, err, "not a whole number, as %s needs",
                             tensor_element_name(codec->element));
    long long value = json_integer_value(leaf);
    if ((double)value < codec->minimum || (double)value > codec->maximum)
        return json_error_at(place, err, "%lld does not fit in %s", value,
                             tensor_element_name(codec->element));
    store_whole(codec->element, value, at);
    return 0;
}

static int store_leaves(const struct json_place *place, const struct element_codec *codec,
                        const json_t *data, char **at, struct error *err)
{
    if (!json_is_array(data)) {
        int failed = store_number(place, codec, data, *at, err);
        *at += tensor_element_bytes(codec->element);
        return failed;
    }
    for (size_t i = 0; i < json_array_size(data); i++) {
        struct json_place item = {.file = BODY_NAME, .parent = place, .index = i};
        int failed = store_leaves(&item, codec, json_array_get(data, i), at, err);
        if (failed)
            return failed;
    }
    return 0;
}

static int read_json_data(const struct json_place *place, const json_t *input,
                          struct arena *arena, struct tensor *tensor, struct error *err)
{
    const json_t *data = NULL;
    int failed = json_get_list(place, input, "data", true, &data, err);
    if (failed)
        return failed;
    const struct element_codec *codec = codec_find(tensor->element);
    if (!codec)
        return json_error_at(place, err, "%s travels as binary data only",
                             tensor_element_name(tensor->element));
    size_t count = tensor_shape_count(&tensor->shape);
    size_t leaves = count_leaves(data);
    if (leaves != count)
        return json_error_at(place, err, "data has %zu values, shape needs %zu", leaves, count);
    tensor->size_bytes = count * tensor_element_bytes(tensor->element);
    tensor->data = arena_alloc(arena, count, tensor_element_bytes(tensor->element));
    char *at = tensor->data;
    struct json_place inside = {.file = BODY_NAME, .parent = place, .key = "data"};
    return store_leaves(&inside, codec, data, &at, err);
}

/* The binary part of a body, consumed input by input. */
struct binary_part {
    const char *bytes;
    size_t left;
};

static int read_binary_data(const struct json_place *place, long long size,
                            struct binary_part *binary, struct arena *arena,
                            struct tensor *tensor, struct error *err)
{
    size_t element_bytes = tensor_element_bytes(tensor->element);
    size_t count = tensor_shape_count(&tensor->shape);
    if (count > SIZE_MAX / element_bytes || (size_t)size != count * element_bytes)
        return json_error_at(place, err,
                             "binary_data_size is %lld, shape and type need %zu × %zu", size,
                             count, element_bytes);
    if ((size_t)size > binary->left)
        return json_error_at(place, err, "binary_data_size is %lld, only %zu bytes are left",
                             size, binary->left);
    tensor->size_bytes = (size_t)size;
    if ((uintptr_t)binary->bytes % element_bytes == 0) {
        tensor->data = (void *)(uintptr_t)binary->bytes;
    } else {
        tensor->data = arena_alloc(arena, (size_t)size, 1);
        memcpy(tensor->data, binary->bytes, (size_t)size);
    }
    binary->bytes += size;
    binary->left -= (size_t)size;
    return 0;
}

static int read_shape(const struct json_place *place, const json_t *input,
                      const struct session_tensor *want, struct tensor_shape *ret_shape,
                      struct error *err)
{
    const json_t *list = NULL;
    int failed = json_get_list(place, input, "shape", true, &list, err);
    if (failed)
        return failed;
    struct json_place inside = {.file = BODY_NAME, .parent = place, .key = "shape"};
    if (json_array_size(list) != (size_t)want->shape.rank)
        return json_error_at(&inside, err, "%zu sizes, the model takes %d",
                             json_array_size(list), want->shape.rank);
    ret_shape->rank = want->shape.rank;
    for (int i = 0; i < want->shape.rank; i++) {
        const json_t *size = json_array_get(list, (size_t)i);
        long long value = json_is_integer(size) ? json_integer_value(size) : -1;
        if (value < 1 || value > INT32_MAX)
            return json_error_at(&inside, err, "size %d is not a whole number from 1 to %d", i,
                                 INT32_MAX);
        if (want->shape.size[i] != TENSOR_OPEN && want->shape.size[i] != value)
            return json_error_at(&inside, err, "size %d is %lld, the model takes %lld", i,
                                 value, (long long)want->shape.size[i]);
        ret_shape->size[i] = value;
    }
    if (tensor_shape_count(ret_shape) == SIZE_MAX)
        return json_error_at(&inside, err, "too many values");
    return 0;
}

static int read_input(const struct session *session, const struct json_place *place,
                      const json_t *input, struct binary_part *binary,
                      struct kserve_request *request, struct error *err)
{
    const char *name = NULL;
    const char *datatype = NULL;
    const json_t *parameters = NULL;
    long long binary_size = -1;
    if (!json_is_object(input))
        return json_error_at(place, err, "not an object");
    int failed = json_get_text(place, input, "name", true, &name, err);
    if (!failed)
        failed = json_get_text(place, input, "datatype", true, &datatype, err);
    if (!failed)
        failed = json_get_object(place, input, "parameters", false, &parameters, err);
    if (!failed && parameters)
        failed = json_get_int(place, parameters, "binary_data_size", false, 0, INT64_MAX,
                              &binary_size, err);
    if (failed)
        return failed;
    int index = session_find_input(session, name);
    if (index < 0)
        return json_error_at(place, err, "the model has no input '%s'", name);
    struct kserve_input *slot = &request->inputs[index];
    if (slot->tensor.data)
        return json_error_at(place, err, "input '%s' is given twice", name);
    const struct session_tensor *want = session_input(session, (size_t)index);
    if (strcmp(datatype, tensor_element_name(want->element)) != 0 ||
        tensor_element_bytes(want->element) == 0)
        return json_error_at(place, err, "input '%s' has type '%s', the model takes %s", name,
                             datatype, tensor_element_name(want->element));
    slot->index = index;
    slot->tensor.element = want->element;
    failed = read_shape(place, input, want, &slot->tensor.shape, err);
    if (failed)
        return failed;
    return binary_size >= 0 ? read_binary_data(place, binary_size, binary, &request->arena,
                                               &slot->tensor, err)
                            : read_json_data(place, input, &request->arena, &slot->tensor, err);
}

static int read_inputs(const struct session *session, const struct json_place *root_place,
                       const json_t *root, struct binary_part *binary,
                       struct kserve_request *request, struct error *err)
{
    const json_t *inputs = NULL;
    int failed = json_get_list(root_place, root, "inputs", true, &inputs, err);
    if (failed)
        return failed;
    struct json_place list = {.file = BODY_NAME, .parent = root_place, .key = "inputs"};
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        struct json_place place = {.file = BODY_NAME, .parent = &list, .index = i};
        failed = read_input(session, &place, json_array_get(inputs, i), binary, request, err);
        if (failed)
            return failed;
    }
    request->input_count = (int)session_input_count(session);
    for (int i = 0; i < request->input_count; i++)
        if (!request->inputs[i].tensor.data)
            return json_error_at(&list, err, "input '%s' is missing",
                                 session_input(session, (size_t)i)->name);
    if (binary->left > 0)
        return json_error_at(&list, err, "%zu bytes of binary data belong to no input",
                             binary->left);
    const struct tensor_shape *shape = &request->inputs[0].tensor.shape;
    request->rows = shape->rank > 0 ? shape->size[0] : 1;
    return 0;
}

static int read_output(const struct session *session, const struct json_place *place,
                       const json_t *output, bool binary, struct kserve_request *request,
                       struct error *err)
{
    const char *name = NULL;
    const json_t *parameters = NULL;
    if (!json_is_object(output))
        return json_error_at(place, err, "not an object");
    int failed = json_get_text(place, output, "name", true, &name, err);
    if (!failed)
        failed = json_get_object(place, output, "parameters", false, &parameters, err);
    if (!failed && parameters)
        failed = json_get_bool(place, parameters, "binary_data", false, &binary, err);
    if (failed)
        return failed;
    int index = session_find_output(session, name);
    if (index < 0)
        return json_error_at(place, err, "the model has no output '%s'", name);
    if (request->output_count == KSERVE_TENSORS_MAX)
        return json_error_at(place, err, "more than %d outputs", KSERVE_TENSORS_MAX);
    request->outputs[request->output_count++] =
        (struct kserve_output){.index = index, .binary = binary};
    return 0;
}

static int read_outputs(const struct session *session, const struct json_place *root_place,
                        const json_t *root, struct kserve_request *request, struct error *err)
{
    const json_t *parameters = NULL;
    const json_t *outputs = NULL;
    bool binary = false;
    int failed = json_get_object(root_place, root, "parameters", false, &parameters, err);
    if (!failed && parameters)
        failed =
            json_get_bool(root_place, parameters, "binary_data_output", false, &binary, err);
    if (!failed)
        failed = json_get_list(root_place, root, "outputs", false, &outputs, err);
    if (failed)
        return failed;
    if (!outputs || json_array_size(outputs) == 0) {
        request->output_count = (int)session_output_count(session);
        for (int i = 0; i < request->output_count; i++)
            request->outputs[i] = (struct kserve_output){.index = i, .binary = binary};
        return 0;
    }
    struct json_place list = {.file = BODY_NAME, .parent = root_place, .key = "outputs"};
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        struct json_place place = {.file = BODY_NAME, .parent = &list, .index = i};
        failed = read_output(session, &place, json_array_get(outputs, i), binary, request, err);
        if (failed)
            return failed;
    }
    return 0;
}

int kserve_request_read(const struct session *session, const char *body, size_t body_length,
                        size_t json_length, struct kserve_request *ret_request,
                        struct error *err)
{
    assert(session_input_count(session) <= KSERVE_TENSORS_MAX);
    assert(session_output_count(session) <= KSERVE_TENSORS_MAX);
    *ret_request = (struct kserve_request){.id = ""};
    if (json_length > body_length)
        return error_set(err, E_INPUT,
                         "Inference-Header-Content-Length is %zu, the body has %zu",
                         json_length, body_length);
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    int failed = json_parse(BODY_NAME, body, json_length, &root, err);
    if (failed)
        return failed;
    struct json_place place = {.file = BODY_NAME};
    if (!json_is_object(root))
        return json_error_at(&place, err, "not an object");
    struct binary_part binary = {.bytes = body + json_length,
                                 .left = body_length - json_length};
    const char *id = "";
    failed = json_get_text(&place, root, "id", false, &id, err);
    if (!failed)
        failed = read_inputs(session, &place, root, &binary, ret_request, err);
    if (!failed)
        failed = read_outputs(session, &place, root, ret_request, err);
    if (failed)
        kserve_request_done(ret_request);
    else
        ret_request->id = arena_strdup(&ret_request->arena, id);
    return failed;
}

void kserve_request_done(struct kserve_request *request)
{
    arena_done(&request->arena);
    *request = (struct kserve_request){.id = ""};
}

/* ---- writing ---------------------------------------------------------------------- */

static json_t *shape_json(const struct tensor_shape *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(list, json_integer(shape->size[i]));
    return list;
}

static long long load_whole(enum tensor_element element, const char *at)
{
    uint64_t bits = 0;
    size_t size = tensor_element_bytes(element);
    memcpy(&bits, at, size);
    bool is_signed = element == TENSOR_I8 || element == TENSOR_I16 || element == TENSOR_I32;
    if (is_signed && bits >> (8 * size - 1))
        bits |= UINT64_MAX << (8 * size);
    return (long long)bits;
}

static void add_element(enum tensor_element element, const char *at, struct str *text)
{
    if (element == TENSOR_U64) {
        str_addf(text, "%llu", (unsigned long long)load_whole(element, at));
        return;
    }
    if (!element_is_float(element)) {
        str_addf(text, "%lld", load_whole(element, at));
        return;
    }
    float narrow = 0;
    double value = 0;
    if (element == TENSOR_F32) {
        memcpy(&narrow, at, sizeof narrow);
        value = (double)narrow;
    } else {
        memcpy(&value, at, sizeof value);
    }
    /* JSON has neither NaN nor infinity; binary outputs carry both unchanged. */
    if (!isfinite(value))
        str_add(text, "null");
    else if (element == TENSOR_F32)
        str_addf(text, "%.9g", value);
    else
        str_add_number(text, value);
}

/* jansson holds the small members; the values are appended by hand, since a node for each
 * would multiply a response's memory. */
static void add_output(const struct session_tensor *described,
                       const struct kserve_output *output, struct str *text)
{
    CLEANUP(json_decref_ptr) json_t *name = json_string(described->name);
    CLEANUP(json_decref_ptr) json_t *shape = shape_json(&output->tensor.shape);
    str_add(text, "{\"name\":");
    json_write_line(name, text);
    str_addf(text,
             ",\"datatype\":\"%s\",\"shape\":", tensor_element_name(output->tensor.element));
    json_write_line(shape, text);
    size_t size = tensor_element_bytes(output->tensor.element);
    if (output->binary) {
        str_addf(text, ",\"parameters\":{\"binary_data_size\":%zu}}",
                 output->tensor.size_bytes);
        return;
    }
    str_add(text, ",\"data\":[");
    const char *at = output->tensor.data;
    for (size_t i = 0; i < output->tensor.size_bytes / size; i++) {
        if (i > 0)
            str_add_char(text, ',');
        add_element(output->tensor.element, at + i * size, text);
    }
    str_add(text, "]}");
}

void kserve_response_write(const struct session *session, const char *model,
                           const struct kserve_request *request, struct str *body,
                           size_t *ret_json_length)
{
    size_t start = body->length;
    CLEANUP(json_decref_ptr) json_t *head = json_object();
    json_object_set_new(head, "model_name", json_string(model));
    json_object_set_new(head, "model_version", json_string("1"));
    if (request->id[0])
        json_object_set_new(head, "id", json_string(request->id));
    json_write_line(head, body);
    body->length--; /* reopen the object: its last byte is the closing brace */
    str_add(body, ",\"outputs\":[");
    for (int i = 0; i < request->output_count; i++) {
        const struct kserve_output *output = &request->outputs[i];
        if (i > 0)
            str_add_char(body, ',');
        add_output(session_output(session, (size_t)output->index), output, body);
    }
    str_add(body, "]}");
    *ret_json_length = body->length - start;
    for (int i = 0; i < request->output_count; i++)
        if (request->outputs[i].binary)
            str_add_bytes(body, request->outputs[i].tensor.data,
                          request->outputs[i].tensor.size_bytes);
}

void kserve_error_write(const char *text, struct str *body)
{
    CLEANUP(json_decref_ptr) json_t *json = json_object();
    json_object_set_new(json, "error", json_string(text));
    json_write_line(json, body);
}

static json_t *tensors_json(const struct session *session, size_t count,
                            const struct session_tensor *(*get)(const struct session *, size_t))
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct session_tensor *tensor = get(session, i);
        json_t *item = json_object();
        json_object_set_new(item, "name", json_string(tensor->name));
        json_object_set_new(item, "datatype",
                            json_string(tensor_element_name(tensor->element)));
        json_object_set_new(item, "shape", shape_json(&tensor->shape));
        json_array_append_new(list, item);
    }
    return list;
}

void kserve_model_metadata(const struct session *session, const char *model, struct str *body)
{
    CLEANUP(json_decref_ptr) json_t *json = json_object();
    json_t *versions = json_array();
    json_array_append_new(versions, json_string("1"));
    json_object_set_new(json, "name", json_string(model));
    json_object_set_new(json, "versions", versions);
    json_object_set_new(json, "platform", json_string("onnxruntime_onnx"));
    json_object_set_new(json, "inputs",
                        tensors_json(session, session_input_count(session), session_input));
    json_object_set_new(json, "outputs",
                        tensors_json(session, session_output_count(session), session_output));
    json_write_line(json, body);
}
