/* SPDX-License-Identifier: Apache-2.0
 *
 * Training steps. See trainer.h.
 */
#include "engine/trainer.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

static const float MOMENTUM = 0.9f;
enum { DATA_SEED = 12345 };

struct trainer {
    struct session *session;
    struct session_call *call;
    struct tensor *inputs; /* first values of every input, bound until fed back */
    int *source;           /* by input: the output that becomes it, or -1 */
    int loss_output;
    size_t parameter_count;
    int64_t classes;
    float learning_rate;
};

/* The graph of one step and the start values. */
static void build_step(const struct model_choice *choice, int batch, struct trainer *trainer,
                       struct str *ret_model, struct str *ret_start)
{
    CLEANUP(network_free_ptr) struct network *network = network_new(NETWORK_TRAINING);
    int logits = choice->kind->build(network, choice->sizes, batch);
    struct tensor_shape shape = *network_shape(network, logits);
    int classes = network_input(network, "y", TENSOR_I64, NETWORK_SHAPE(shape.size[0]));
    int loss = network_cross_entropy(network, logits, classes);
    trainer->classes = shape.size[1];
    trainer->learning_rate = choice->kind->learning_rate;
    trainer->parameter_count = network_parameter_count(network);
    str_add_bytes(ret_start, network_start_values(network),
                  trainer->parameter_count * sizeof(float));
    network_finish_training(network, loss, MOMENTUM, choice->kind->name, ret_model);
}

static int64_t random_below(uint32_t *random, int64_t bound)
{
    assert(bound >= 1);
    return (int64_t)(reference_random(random) * (float)bound) % bound;
}

/* Data x (uniform in [−1, 1), or ids below `vocabulary`), classes y, the rate, momenta of
 * zero, and parameters from the start values, told apart by name. */
static void fill_input(struct trainer *trainer, struct tensor *tensor, const char *name,
                       int64_t vocabulary, uint32_t *random, const float **start)
{
    size_t count = tensor_shape_count(&tensor->shape);
    float *floats = tensor->data;
    int64_t *integers = tensor->data;
    assert(tensor->data);
    if (strcmp(name, "x") == 0 || strcmp(name, "y") == 0) {
        int64_t bound = *name == 'y' ? trainer->classes : vocabulary;
        for (size_t i = 0; i < count; i++)
            if (tensor->element == TENSOR_I64)
                integers[i] = random_below(random, bound);
            else
                floats[i] = reference_random(random) * 2 - 1;
    } else if (strcmp(name, "lr") == 0) {
        *floats = trainer->learning_rate;
    } else if (!text_starts_with(name, "m_")) {
        memcpy(floats, *start, tensor->size_bytes);
        *start += count;
    }
}

static int bind_inputs(struct trainer *trainer, int64_t vocabulary, const float *start,
                       struct error *err)
{
    struct session *session = trainer->session;
    size_t count = session_input_count(session);
    uint32_t random = DATA_SEED;
    assert(start && vocabulary >= 1);
    trainer->inputs = xcalloc(count, sizeof *trainer->inputs);
    trainer->source = xcalloc(count, sizeof *trainer->source);
    for (size_t i = 0; i < count; i++) {
        const struct session_tensor *input = session_input(session, i);
        struct tensor *tensor = &trainer->inputs[i];
        struct onnx_name output = onnx_name("new_%s", input->name);
        tensor->element = input->element;
        tensor->shape = input->shape;
        tensor->size_bytes =
            tensor_shape_count(&tensor->shape) * tensor_element_bytes(tensor->element);
        tensor->data = xcalloc(1, tensor->size_bytes);
        fill_input(trainer, tensor, input->name, vocabulary, &random, &start);
        trainer->source[i] = session_find_output(session, output.text);
        int failure = session_call_bind(trainer->call, i, tensor, err);
        if (failure)
            return failure;
    }
    return 0;
}

/* The size named "vocabulary", or 1 when the inputs are no ids. */
static int64_t vocabulary_of(const struct model_choice *choice)
{
    for (int i = 0; i < MODEL_SIZES_MAX && choice->kind->sizes[i].key; i++)
        if (strcmp(choice->kind->sizes[i].key, "vocabulary") == 0)
            return choice->sizes[i];
    return 1;
}

int trainer_new(struct onnx_runtime *runtime, const struct model_choice *choice, int batch,
                const struct session_options *options, struct trainer **ret_trainer,
                struct error *err)
{
    CLEANUP(trainer_free_ptr) struct trainer *trainer = xcalloc(1, sizeof *trainer);
    CLEANUP(str_done) struct str model = STR_EMPTY;
    CLEANUP(str_done) struct str start = STR_EMPTY;
    if (!choice->kind->can_train)
        return error_set(err, E_UNSUPPORTED, "model %s ends in no classes: it cannot train",
                         choice->kind->name);
    build_step(choice, batch, trainer, &model, &start);
    int failure = session_open_bytes(runtime, choice->kind->name, &model, options,
                                     &trainer->session, err);
    if (failure)
        return failure;
    trainer->call = session_call_new(trainer->session);
    trainer->loss_output = session_find_output(trainer->session, "loss");
    assert(trainer->loss_output >= 0);
    failure = bind_inputs(trainer, vocabulary_of(choice),
                          (const float *)(const void *)start.bytes, err);
    if (failure)
        return failure;
    *ret_trainer = STEAL(trainer);
    return 0;
}

void trainer_free(struct trainer *trainer)
{
    if (!trainer)
        return;
    size_t count = trainer->inputs ? session_input_count(trainer->session) : 0;
    session_call_free(trainer->call);
    for (size_t i = 0; i < count; i++)
        free(trainer->inputs[i].data);
    session_free(trainer->session);
    free(trainer->inputs);
    free(trainer->source);
    free(trainer);
}

int trainer_step(struct trainer *trainer, float *ret_loss, struct error *err)
{
    struct tensor loss;
    int failure = session_call_run(trainer->call, err);
    assert(trainer->call);
    if (!failure)
        failure = session_call_output(trainer->call, (size_t)trainer->loss_output, &loss, err);
    if (failure)
        return failure;
    *ret_loss = *(const float *)loss.data;
    for (size_t i = 0; i < session_input_count(trainer->session); i++) {
        if (trainer->source[i] < 0)
            continue;
        session_call_feed_back(trainer->call, (size_t)trainer->source[i], i);
        free(trainer->inputs[i].data); /* the start values: not read again */
        trainer->inputs[i].data = NULL;
    }
    return 0;
}

size_t trainer_parameter_count(const struct trainer *trainer)
{
    return trainer->parameter_count;
}

/* ---- checkpoints ------------------------------------------------------------------ */

/* In front of the values; the layout is a hash of the names and sizes of what follows. */
struct checkpoint_head {
    char magic[8];
    uint64_t layout, steps, size_bytes;
};
static const char MAGIC[8] = "trncheck";

static uint64_t add_to_hash(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

static struct checkpoint_head make_head(const struct trainer *trainer, int64_t steps)
{
    struct checkpoint_head head = {.layout = UINT64_C(0xcbf29ce484222325),
                                   .steps = (uint64_t)steps};
    memcpy(head.magic, MAGIC, sizeof head.magic);
    for (size_t i = 0; i < session_input_count(trainer->session); i++) {
        if (trainer->source[i] < 0)
            continue;
        const char *name = session_input(trainer->session, i)->name;
        uint64_t size = trainer->inputs[i].size_bytes;
        head.layout = add_to_hash(head.layout, name, strlen(name) + 1);
        head.layout = add_to_hash(head.layout, &size, sizeof size);
        head.size_bytes += size;
    }
    return head;
}

int trainer_save(struct trainer *trainer, int64_t steps, struct str *bytes, struct error *err)
{
    struct checkpoint_head head = make_head(trainer, steps);
    assert(steps >= 0);
    str_add_bytes(bytes, (const char *)&head, sizeof head);
    for (size_t i = 0; i < session_input_count(trainer->session); i++) {
        struct tensor value;
        if (trainer->source[i] < 0)
            continue;
        int failure = session_call_input(trainer->call, i, &value, err);
        if (failure)
            return failure;
        assert(value.size_bytes == trainer->inputs[i].size_bytes);
        str_add_bytes(bytes, value.data, value.size_bytes);
    }
    return 0;
}

int trainer_restore(struct trainer *trainer, const struct str *bytes, int64_t *ret_steps,
                    struct error *err)
{
    struct checkpoint_head head, mine = make_head(trainer, 0);
    if (bytes->length < sizeof head)
        return error_set(err, E_INPUT, "no checkpoint: too short");
    memcpy(&head, bytes->bytes, sizeof head);
    if (memcmp(head.magic, MAGIC, sizeof head.magic) != 0 || head.steps > INT64_MAX)
        return error_set(err, E_INPUT, "no checkpoint");
    if (head.layout != mine.layout || head.size_bytes != mine.size_bytes)
        return error_set(err, E_INPUT, "a checkpoint of another model");
    if (bytes->length != sizeof head + head.size_bytes)
        return error_set(err, E_INPUT, "a checkpoint that is cut off");
    const char *from = bytes->bytes + sizeof head;
    for (size_t i = 0; i < session_input_count(trainer->session); i++) {
        if (trainer->source[i] < 0)
            continue;
        assert(trainer->inputs[i].data); /* no step has been done */
        memcpy(trainer->inputs[i].data, from, trainer->inputs[i].size_bytes);
        from += trainer->inputs[i].size_bytes;
    }
    *ret_steps = (int64_t)head.steps;
    return 0;
}
