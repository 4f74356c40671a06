/* SPDX-License-Identifier: Apache-2.0 */
#include "control/object.h"

#include <assert.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "control/kinds.h"

const char *object_label(const json_t *object, const char *key)
{
    return json_text(json_object_get(json_object_get(object, "metadata"), "labels"), key);
}

const char *object_note(const json_t *object, const char *key)
{
    return json_text(json_object_get(json_object_get(object, "metadata"), "annotations"), key);
}

json_t *object_finalizers(const json_t *object, bool with_ours)
{
    const json_t *there = json_object_get(json_object_get(object, "metadata"), "finalizers");
    json_t *list = json_array(), *one;
    size_t index;

    json_array_foreach((json_t *)there, index, one)
    {
        if (!json_is_string(one) || strcmp(json_string_value(one), FINALIZER) != 0)
            json_array_append(list, one);
    }
    if (with_ours)
        json_array_append_new(list, json_string(FINALIZER));
    return list;
}

bool name_is_in_namespace(const char *name, const char *namespace)
{
    size_t length = strlen(namespace);

    return strncmp(name, namespace, length) == 0 && name[length] == '/';
}

static json_t *child_of(json_t *object, const char *key, json_t *(*make)(void), json_type type)
{
    json_t *child = json_object_get(object, key);

    assert(json_is_object(object));
    if (child && json_typeof(child) == type)
        return child;
    json_object_set_new(object, key, make());
    return json_object_get(object, key);
}

json_t *json_child(json_t *object, const char *key)
{
    return child_of(object, key, json_object, JSON_OBJECT);
}

json_t *json_child_list(json_t *object, const char *key)
{
    return child_of(object, key, json_array, JSON_ARRAY);
}

void text_hash(const char *text, size_t digits, char *ret_hash)
{
    char hash[72];

    assert(digits <= 64);
    file_sha256(text, strlen(text), hash);
    memcpy(ret_hash, hash + strlen("sha256:"), digits);
    ret_hash[digits] = '\0';
}

void json_hash(const json_t *json, size_t digits, char *ret_hash)
{
    CLEANUP(free_ptr)
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    text_hash(text ? text : "", digits, ret_hash);
}
