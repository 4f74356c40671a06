/* SPDX-License-Identifier: Apache-2.0
 *
 * Inference requests made up from a model's KServe v2 metadata. Numbers are uniform: floats
 * in 0 … 1, integers in 0 … 99 (token ids of any vocabulary), booleans true; texts are "a".
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"
#include "load/http_request.h"

enum { RANK_MAX = 8, VALUES_MAX = 64 << 20, INTEGER_BOUND = 100 };

enum value_kind { VALUE_FLOAT, VALUE_HALF, VALUE_INTEGER, VALUE_BOOL, VALUE_TEXT };

static const struct datatype {
    const char *name;
    enum value_kind kind;
    size_t size; /* bytes of one value */
} datatypes[] = {
    {"FP32", VALUE_FLOAT, 4},     {"FP64", VALUE_FLOAT, 8},     {"FP16", VALUE_HALF, 2},
    {"INT8", VALUE_INTEGER, 1},   {"INT16", VALUE_INTEGER, 2},  {"INT32", VALUE_INTEGER, 4},
    {"INT64", VALUE_INTEGER, 8},  {"UINT8", VALUE_INTEGER, 1},  {"UINT16", VALUE_INTEGER, 2},
    {"UINT32", VALUE_INTEGER, 4}, {"UINT64", VALUE_INTEGER, 8}, {"BOOL", VALUE_BOOL, 1},
    {"BYTES", VALUE_TEXT, 5},
};

struct input {
    const char *name;
    const struct datatype *type;
    long long sizes[RANK_MAX];
    size_t rank;
    size_t count; /* of values */
};

/* The user's sizes of this input: "name=2x3x224" among commas; NULL when not given. */
static const char *find_sizes(const char *shapes, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = shapes; at && *at; at += *at == ',') {
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
        at += strcspn(at, ",");
    }
    return NULL;
}

/* Puts "Nx3x224" over the sizes; N is the batch. */
static int override_sizes(struct input *input, const char *text, int batch, struct error *err)
{
    for (size_t i = 0; i < input->rank; i++) {
        CLEANUP(free_ptr) char *size = xstrndup(text, strcspn(text, "x,"));
        long long value = batch;
        if (strcmp(size, "N") != 0 && !text_to_int(size, 1, VALUES_MAX, &value))
            return error_set(err, E_USAGE,
                             "--shape: size \"%s\" of input %s, expected a whole number or N",
                             size, input->name);
        input->sizes[i] = value;
        text += strlen(size);
        if ((*text == 'x') != (i + 1 < input->rank))
            return error_set(err, E_USAGE, "--shape: input %s has %zu sizes", input->name,
                             input->rank);
        text += *text == 'x';
    }
    return 0;
}

static int read_shape(const struct json_place *place, const json_t *json,
                      const struct http_request_options *options, struct input *input,
                      struct error *err)
{
    const json_t *shape = NULL;
    int failure = json_get_list(place, json, "shape", true, &shape, err);
    if (failure)
        return failure;
    input->rank = json_array_size(shape);
    if (input->rank > RANK_MAX)
        return json_error_at(place, err, "%zu dimensions, expected at most %d", input->rank,
                             RANK_MAX);
    for (size_t i = 0; i < input->rank; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) > VALUES_MAX)
            return json_error_at(place, err, "a size that is no sensible whole number");
        input->sizes[i] = json_integer_value(size);
        if (input->sizes[i] < 1)
            input->sizes[i] = i == 0 ? options->batch : 1;
    }
    const char *sizes = find_sizes(options->shapes, input->name);
    failure = sizes ? override_sizes(input, sizes, options->batch, err) : 0;
    input->count = 1;
    for (size_t i = 0; i < input->rank && !failure; i++) {
        input->count *= (size_t)input->sizes[i];
        if (input->count > VALUES_MAX)
            failure = json_error_at(place, err, "more than %d values", VALUES_MAX);
    }
    return failure;
}

static int read_input(const struct json_place *place, const json_t *json,
                      const struct http_request_options *options, struct input *input,
                      struct error *err)
{
    const char *datatype = "";
    int failure = json_get_text(place, json, "name", true, &input->name, err);
    if (!failure)
        failure = json_get_text(place, json, "datatype", true, &datatype, err);
    if (failure)
        return failure;
    for (size_t i = 0; i < sizeof datatypes / sizeof *datatypes; i++)
        if (strcmp(datatype, datatypes[i].name) == 0)
            input->type = &datatypes[i];
    if (!input->type)
        return error_set(err, E_UNSUPPORTED, "input %s is of type %s, which cannot be made up",
                         input->name, datatype);
    return read_shape(place, json, options, input, err);
}

static void add_json_values(const struct input *input, struct rng *rng, struct str *text)
{
    for (size_t i = 0; i < input->count; i++) {
        if (i > 0)
            str_add_char(text, ',');
        if (input->type->kind == VALUE_TEXT)
            str_add(text, "\"a\"");
        else if (input->type->kind == VALUE_BOOL)
            str_add(text, "true");
        else if (input->type->kind == VALUE_INTEGER)
            str_addf(text, "%d", (int)rng_below(rng, INTEGER_BOUND));
        else
            str_addf(text, "%.4g", rng_unit(rng));
    }
}

/* Little-endian, as x86 and ARM have it. */
static void add_binary_value(const struct datatype *type, struct rng *rng, struct str *bytes)
{
    float single = (float)rng_unit(rng);
    double twice = single;
    uint64_t integer = rng_below(rng, INTEGER_BOUND);
    uint16_t half = (uint16_t)(0x3800 | rng_below(rng, 1024)); /* in 0.5 … 1 */
    switch (type->kind) {
    case VALUE_FLOAT:
        str_add_bytes(bytes, type->size == 4 ? (void *)&single : (void *)&twice, type->size);
        break;
    case VALUE_HALF:
        str_add_bytes(bytes, &half, sizeof half);
        break;
    case VALUE_INTEGER:
        str_add_bytes(bytes, &integer, type->size);
        break;
    case VALUE_BOOL:
        str_add_char(bytes, 1);
        break;
    case VALUE_TEXT:
        str_add_bytes(bytes, "\1\0\0\0a", 5); /* a length of four bytes, the text */
    }
}

static void add_input_head(const struct input *input, bool binary, struct str *json)
{
    CLEANUP(json_decref_ptr) json_t *name = json_string(input->name);
    str_add(json, "{\"name\":");
    char *quoted = json_dumps(name, JSON_ENCODE_ANY);
    str_add(json, quoted ? quoted : "\"\"");
    free(quoted);
    str_addf(json, ",\"datatype\":\"%s\",\"shape\":[", input->type->name);
    for (size_t i = 0; i < input->rank; i++)
        str_addf(json, "%s%lld", i ? "," : "", input->sizes[i]);
    str_add(json, "]");
    if (binary)
        str_addf(json, ",\"parameters\":{\"binary_data_size\":%zu}",
                 input->count * input->type->size);
}

static void add_input(const struct input *input, struct rng *rng, bool binary, struct str *json,
                      struct str *bytes)
{
    add_input_head(input, binary, json);
    if (binary) {
        for (size_t i = 0; i < input->count; i++)
            add_binary_value(input->type, rng, bytes);
    } else {
        str_add(json, ",\"data\":[");
        add_json_values(input, rng, json);
        str_add_char(json, ']');
    }
    str_add_char(json, '}');
}

int http_kserve_body(const char *metadata, size_t length,
                     const struct http_request_options *options, struct str *body,
                     size_t *ret_json_length, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    struct rng rng = rng_seed(options->seed);
    struct json_place place = {"model metadata", NULL, NULL, 0};
    struct json_place list_place = {place.file, &place, "inputs", 0};
    const json_t *inputs = NULL;
    size_t start = body->length;
    assert(options->batch >= 1);
    int failure = json_parse(place.file, metadata, length, &root, err);
    if (!failure)
        failure = json_get_list(&place, root, "inputs", true, &inputs, err);
    str_add(body, "{\"inputs\":[");
    for (size_t i = 0; !failure && i < json_array_size(inputs); i++) {
        struct json_place item = {place.file, &list_place, NULL, i};
        struct input input = {0};
        failure = read_input(&item, json_array_get(inputs, i), options, &input, err);
        if (failure)
            break;
        if (i > 0)
            str_add_char(body, ',');
        add_input(&input, &rng, options->binary, body, &bytes);
    }
    if (failure) {
        return error_wrap(err, "what the server says of the model");
    }
    str_add(body, "]");
    if (options->binary)
        str_add(body, ",\"parameters\":{\"binary_data_output\":true}");
    str_add(body, "}");
    *ret_json_length = body->length - start;
    str_add_bytes(body, bytes.bytes, bytes.length);
    return 0;
}
