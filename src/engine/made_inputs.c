/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up inputs. See made_inputs.h.
 */
#include "engine/made_inputs.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/rng.h"

enum {
    OPEN_SIZE = 32,
    PICTURE_SIZE = 224,
    CHANNELS_MAX = 4,
    ALIGNMENT = 64,
    INTEGER_BOUND = 100
};
#define INPUT_BYTES_MAX ((size_t)4 << 30)

/* Models whose open sizes cannot be guessed, told by the names of their inputs and
 * outputs. */
static const struct {
    const char *names; /* each with a blank after it */
    const char *shapes;
} known_models[] = {
    {"input state sr output stateN ", "input=Nx512,state=2xNx128"}, /* Silero VAD: 32 ms */
    {"x sigmoid_0.tmp_0 ", "x=Nx3x320x320"},                        /* PP-OCR detection */
    {"x softmax_11.tmp_0 ", "x=Nx3x48x320"},                        /* PP-OCR recognition */
    {"x save_infer_model/scale_0.tmp_1 ", "x=Nx3x48x192"},          /* PP-OCR classifier */
};

/* Values of integer inputs by a part of the name. */
static const struct {
    const char *part;
    int64_t value;
} known_values[] = {
    {"sample_rate", 16000}, {"mask", 1}, {"token_type", 0}, {"segment", 0}, {"length", 32},
};

static bool integer_by_name(const char *name, int64_t *ret_value)
{
    if (strcmp(name, "sr") == 0) {
        *ret_value = 16000;
        return true;
    }
    for (size_t i = 0; i < sizeof known_values / sizeof *known_values; i++)
        if (strcasestr(name, known_values[i].part)) {
            *ret_value = known_values[i].value;
            return true;
        }
    return false;
}

static void fill_integers(struct tensor *tensor, const char *name, size_t count,
                          struct rng *rng)
{
    size_t bytes = tensor_element_bytes(tensor->element);
    int64_t fixed = 0;
    bool is_fixed = integer_by_name(name, &fixed);

    for (size_t i = 0; i < count; i++) {
        int64_t value = is_fixed ? fixed : (int64_t)rng_below(rng, INTEGER_BOUND);
        /* Little-endian: the low bytes come first. */
        memcpy((char *)tensor->data + i * bytes, &value, bytes);
    }
}

/* Half a float: sign, exponent and mantissa cut from a float in [−1, 1) (bfloat16 is its
 * upper half; float16 needs its exponent moved, with tiny values made zero). */
static uint16_t half_of(float value, enum tensor_element element)
{
    uint32_t bits;
    assert(value >= -1 && value <= 1);
    memcpy(&bits, &value, sizeof bits);
    if (element == TENSOR_BF16)
        return (uint16_t)(bits >> 16);
    int exponent = (int)(bits >> 23 & 255) - 127 + 15;
    uint32_t sign = bits >> 16 & 0x8000u;
    return (uint16_t)(exponent <= 0 ? sign
                                    : sign | (uint32_t)exponent << 10 | (bits >> 13 & 1023));
}

static void fill(struct tensor *tensor, const char *name, struct rng *rng)
{
    size_t count = tensor_shape_count(&tensor->shape);
    assert(tensor->data);
    switch ((int)tensor->element) {
    case TENSOR_F32:
        for (size_t i = 0; i < count; i++)
            ((float *)tensor->data)[i] = (float)(rng_next(rng) >> 40) * 0x1p-23f - 1.0f;
        break;
    case TENSOR_F64:
        for (size_t i = 0; i < count; i++)
            ((double *)tensor->data)[i] = rng_uniform(rng, -1, 1);
        break;
    case TENSOR_F16:
    case TENSOR_BF16:
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)tensor->data)[i] =
                half_of((float)rng_uniform(rng, -1, 1), tensor->element);
        break;
    case TENSOR_BOOL:
        memset(tensor->data, 1, count);
        break;
    default:
        fill_integers(tensor, name, count, rng);
    }
}

/* Finds "name=" in the list and reads its sizes. 1: found, 0: not there. */
static int find_shape(const char *shapes, const char *name, int batch,
                      struct tensor_shape *ret_shape, struct error *err)
{
    size_t length = strlen(name);
    const char *at = shapes;
    assert(shapes && batch > 0);
    while (strncmp(at, name, length) != 0 || at[length] != '=') {
        at = strchr(at, ',');
        if (!at)
            return 0;
        at++;
    }
    const char *text = at + length + 1;
    ret_shape->rank = 0;
    for (const char *p = text; *p && *p != ',';) {
        char *end = (char *)p + 1;
        long long size = *p == 'N' ? batch : strtoll(p, &end, 10);
        if (end == p || size < 1 || size > 1 << 30 || ret_shape->rank == TENSOR_RANK_MAX ||
            (*end && *end != ',' && *end != 'x'))
            return error_set(err, E_INPUT,
                             "shape \"%.*s\" of input %s: expected sizes such as Nx3x224x224",
                             (int)strcspn(text, ","), text, name);
        ret_shape->size[ret_shape->rank++] = size;
        p = *end == 'x' ? end + 1 : end;
    }
    return 1;
}

static void guess_open_sizes(struct tensor_shape *shape, int batch)
{
    bool is_picture = shape->rank == 4 && shape->size[1] >= 1 && shape->size[1] <= CHANNELS_MAX;
    assert(batch > 0);
    for (int i = 0; i < shape->rank; i++)
        if (shape->size[i] == TENSOR_OPEN)
            shape->size[i] = i == 0 ? batch : is_picture && i >= 2 ? PICTURE_SIZE : OPEN_SIZE;
}

/* The shape asked for must agree with what the model fixes. */
static int check_shape(const struct session_tensor *input, const struct tensor_shape *shape,
                       struct error *err)
{
    assert(input && shape->rank <= TENSOR_RANK_MAX);
    if (shape->rank != input->shape.rank)
        return error_set(err, E_INPUT, "input %s has %d sizes, the shape given has %d",
                         input->name, input->shape.rank, shape->rank);
    for (int i = 0; i < shape->rank; i++)
        if (input->shape.size[i] != TENSOR_OPEN && input->shape.size[i] != shape->size[i])
            return error_set(err, E_INPUT,
                             "input %s: the model fixes size %d to %lld, the shape given "
                             "says %lld",
                             input->name, i, (long long)input->shape.size[i],
                             (long long)shape->size[i]);
    return 0;
}

static const char *known_shapes(const struct session *session)
{
    CLEANUP(str_done) struct str names = STR_EMPTY;
    for (size_t i = 0; i < session_input_count(session); i++)
        str_addf(&names, "%s ", session_input(session, i)->name);
    for (size_t i = 0; i < session_output_count(session); i++)
        str_addf(&names, "%s ", session_output(session, i)->name);
    for (size_t i = 0; i < sizeof known_models / sizeof *known_models; i++)
        if (strcmp(known_models[i].names, names.bytes) == 0)
            return known_models[i].shapes;
    return "";
}

static int choose_shape(const struct session_tensor *input, int batch, const char *given,
                        const char *known, struct tensor_shape *ret_shape, struct error *err)
{
    int found = find_shape(given ? given : "", input->name, batch, ret_shape, err);
    if (found == 0)
        found = find_shape(known, input->name, batch, ret_shape, err);
    if (found < 0)
        return found;
    if (found)
        return check_shape(input, ret_shape, err);
    *ret_shape = input->shape;
    guess_open_sizes(ret_shape, batch);
    return 0;
}

/* Every name in the list must be an input. */
static int check_names(const struct session *session, const char *shapes, struct error *err)
{
    for (const char *at = shapes; *at;) {
        size_t length = strcspn(at, "=,");
        CLEANUP(free_ptr) char *name = xstrndup(at, length);
        if (at[length] != '=')
            return error_set(err, E_INPUT, "shape \"%s\": expected INPUT=SIZExSIZE…", name);
        if (session_find_input(session, name) < 0)
            return error_set(err, E_INPUT, "shape \"%s\": the model has no input of that name",
                             name);
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return 0;
}

static int make_input(const struct session_tensor *input, struct tensor *tensor,
                      struct rng *rng, struct error *err)
{
    size_t element_bytes = tensor_element_bytes(input->element);
    if (element_bytes == 0)
        return error_set(
            err, E_UNSUPPORTED,
            "input %s is not a tensor of numbers (type %d): such a model cannot be "
            "given made-up inputs",
            input->name, (int)input->element);
    size_t count = tensor_shape_count(&tensor->shape);
    if (count > INPUT_BYTES_MAX / element_bytes)
        return error_set(err, E_UNSUPPORTED, "input %s would take more than 4 GiB",
                         input->name);
    tensor->element = input->element;
    tensor->size_bytes = count * element_bytes;
    tensor->data =
        aligned_alloc(ALIGNMENT, (tensor->size_bytes / ALIGNMENT + 1) * (size_t)ALIGNMENT);
    if (!tensor->data)
        return error_set(err, E_UNSUPPORTED, "out of memory for input %s", input->name);
    fill(tensor, input->name, rng);
    return 0;
}

int made_inputs_new(const struct session *session, int batch, const char *shapes, uint64_t seed,
                    struct made_inputs **ret_inputs, struct error *err)
{
    CLEANUP(made_inputs_free_ptr) struct made_inputs *inputs = xcalloc(1, sizeof *inputs);
    const char *known = known_shapes(session);
    assert(batch > 0);
    inputs->count = session_input_count(session);
    inputs->tensors = xcalloc(inputs->count, sizeof *inputs->tensors);
    int failure = check_names(session, shapes ? shapes : "", err);
    for (size_t i = 0; i < inputs->count && !failure; i++) {
        const struct session_tensor *input = session_input(session, i);
        struct rng rng = rng_seed_stream(seed, i);
        failure = choose_shape(input, batch, shapes, known, &inputs->tensors[i].shape, err);
        if (!failure && i == 0 && input->shape.rank > 0 && input->shape.size[0] > 0 &&
            input->shape.size[0] != batch)
            failure = error_set(err, E_UNSUPPORTED,
                                "input %s: the model fixes its batch to %lld, asked for %d",
                                input->name, (long long)input->shape.size[0], batch);
        if (!failure)
            failure = make_input(input, &inputs->tensors[i], &rng, err);
    }
    if (failure)
        return failure;
    *ret_inputs = STEAL(inputs);
    return 0;
}

void made_inputs_free(struct made_inputs *inputs)
{
    if (!inputs)
        return;
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->tensors[i].data);
    free(inputs->tensors);
    free(inputs);
}
