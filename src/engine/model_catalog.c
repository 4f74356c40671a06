/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of built-in models and their text form. See model_catalog.h.
 */
#include "engine/model_catalog.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"

static const struct model_kind *const kinds[] = {
    &model_conv_stack, &model_resnet, &model_bert, &model_cnn, &model_transformer,
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static const struct model_kind *find_kind(const char *text)
{
    size_t length = strcspn(text, ":");
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strlen(kinds[i]->name) == length && strncmp(kinds[i]->name, text, length) == 0)
            return kinds[i];
    return NULL;
}

bool model_is_builtin(const char *text)
{
    assert(text);
    return find_kind(text) != NULL;
}

static int unknown_kind(const char *text, struct error *err)
{
    const char *names[KIND_COUNT];
    for (size_t i = 0; i < KIND_COUNT; i++)
        names[i] = kinds[i]->name;
    CLEANUP(free_ptr) char *name = xstrndup(text, strcspn(text, ":"));
    const char *nearest = text_nearest(name, names, KIND_COUNT);
    return error_set(
        err, E_INPUT,
        "%s: no built-in model of that name, expected conv-stack, resnet, bert, cnn "
        "or transformer%s%s%s",
        name, nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
}

/* One "key=value" of the text. */
static int read_size(const char *text, size_t length, struct model_choice *choice,
                     struct error *err)
{
    CLEANUP(free_ptr) char *item = xstrndup(text, length);
    char *equals = strchr(item, '=');
    const struct model_size *sizes = choice->kind->sizes;
    assert(choice->kind);
    if (equals)
        *equals = '\0';
    for (int i = 0; i < MODEL_SIZES_MAX && sizes[i].key; i++) {
        if (strcmp(sizes[i].key, item) != 0)
            continue;
        long long value;
        if (!equals || !text_to_int(equals + 1, sizes[i].minimum, sizes[i].maximum, &value))
            return error_set(err, E_INPUT, "model %s: %s must be a number from %lld to %lld",
                             choice->kind->name, item, (long long)sizes[i].minimum,
                             (long long)sizes[i].maximum);
        choice->sizes[i] = value;
        return 0;
    }
    CLEANUP(str_done) struct str known = STR_EMPTY;
    for (int i = 0; i < MODEL_SIZES_MAX && sizes[i].key; i++)
        str_addf(&known, "%s%s", i ? ", " : "", sizes[i].key);
    return error_set(err, E_INPUT, "model %s: no size \"%s\", expected %s", choice->kind->name,
                     item, known.bytes);
}

int model_choose(const char *text, struct model_choice *ret_choice, struct error *err)
{
    struct model_choice choice = {.kind = find_kind(text)};
    assert(text && ret_choice);
    if (!choice.kind)
        return unknown_kind(text, err);
    for (int i = 0; i < MODEL_SIZES_MAX; i++)
        choice.sizes[i] = choice.kind->sizes[i].standard;
    const char *at = strchr(text, ':');
    while (at && *at) {
        size_t length = strcspn(++at, ",");
        int failure = read_size(at, length, &choice, err);
        if (failure)
            return failure;
        at += length;
    }
    *ret_choice = choice;
    return 0;
}

void model_write(const struct model_choice *choice, int batch, struct str *ret_model)
{
    CLEANUP(network_free_ptr) struct network *network = network_new(NETWORK_INFERENCE);
    int output = choice->kind->build(network, choice->sizes, batch);
    assert(choice->kind && batch >= 1);
    network_finish_inference(network, output, choice->kind->name, ret_model);
}
