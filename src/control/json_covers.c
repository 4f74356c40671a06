/* SPDX-License-Identifier: Apache-2.0 */
#include "control/json_covers.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

/* What a server may leave out when it writes the object: empty texts, lists, objects. */
static bool is_nothing(const json_t *value)
{
    if (json_is_string(value))
        return json_string_length(value) == 0;
    return json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static bool covers_object(const json_t *actual, const json_t *wanted)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)wanted, key, value)
    {
        const json_t *there = json_object_get(actual, key);
        bool is_same =
            !there || json_is_null(there) ? is_nothing(value) : json_covers(there, value);
        if (!is_same)
            return false;
    }
    return true;
}

static bool covers_list(const json_t *actual, const json_t *wanted)
{
    if (json_array_size(actual) != json_array_size(wanted))
        return false;
    for (size_t i = 0; i < json_array_size(wanted); i++)
        if (!json_covers(json_array_get(actual, i), json_array_get(wanted, i)))
            return false;
    return true;
}

bool json_covers(const json_t *actual, const json_t *wanted)
{
    assert(wanted);
    if (!actual || json_is_null(wanted))
        return !actual && json_is_null(wanted);
    if (json_is_number(wanted))
        return json_is_number(actual) && json_number_value(actual) == json_number_value(wanted);
    if (json_typeof(actual) != json_typeof(wanted))
        return false;
    if (json_is_object(wanted))
        return covers_object(actual, wanted);
    if (json_is_array(wanted))
        return covers_list(actual, wanted);
    return json_equal(actual, wanted);
}

const json_t *json_at(const json_t *object, ...)
{
    va_list keys;
    const char *key;

    va_start(keys, object);
    while (object && (key = va_arg(keys, const char *)))
        object = json_object_get(object, key);
    va_end(keys);
    return object;
}
