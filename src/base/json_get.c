/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed values out of JSON, with the path of the field in each complaint.
 */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/expect.h"
#include "base/json.h"

enum { SHOWN_LIMIT = 40 }; /* bytes of a wrong value that a message shows */

const char *json_text(const json_t *object, const char *key)
{
    assert(key);
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static void add_path(const struct json_place *place, struct str *path)
{
    assert(place->parent || !place->key);
    if (!place->parent)
        return;
    add_path(place->parent, path);
    if (place->key)
        str_addf(path, "%s%s", path->length > 0 ? "." : "", place->key);
    else
        str_addf(path, "[%zu]", place->index);
}

static const char *file_of(const struct json_place *place)
{
    while (place->parent)
        place = place->parent;
    return place->file;
}

int json_error_at(const struct json_place *place, struct error *err, const char *format, ...)
{
    CLEANUP(str_done) struct str path = STR_EMPTY;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    va_list arguments;

    va_start(arguments, format);
    str_vaddf(&text, format, arguments);
    va_end(arguments);
    add_path(place, &path);
    return error_set(err, E_INPUT, "%s: %s%s%s", file_of(place), path.bytes,
                     path.length > 0 ? ": " : "", text.bytes);
}

/* What stands there: "a list", "null", "\"abc\"", "1.5". */
static void add_found(struct str *text, const json_t *value)
{
    CLEANUP(str_done) struct str shown = STR_EMPTY;

    if (json_is_array(value) || json_is_object(value)) {
        str_add(text, json_is_array(value) ? "a list" : "an object");
        return;
    }
    json_write_line(value, &shown);
    str_addf(text, "%.*s%s", SHOWN_LIMIT, shown.bytes, shown.length > SHOWN_LIMIT ? "…" : "");
}

/* What a getter looks for. */
struct wanted {
    const struct json_place *place; /* of the object */
    const char *key;
    bool required;
    const char *what; /* "text", "a list" */
};

static int fail_value(const struct wanted *wanted, const json_t *value, struct error *err)
{
    struct json_place place = {.parent = wanted->place, .key = wanted->key};
    CLEANUP(str_done) struct str found = STR_EMPTY;

    if (!value)
        return json_error_at(&place, err, "is missing, expected %s", wanted->what);
    add_found(&found, value);
    return json_error_at(&place, err, "found %s, expected %s", found.bytes, wanted->what);
}

/* The value under the key; *ret_value is NULL when it is absent or null and need not be
 * there. */
static int find(const struct wanted *wanted, const json_t *object, const json_t **ret_value,
                struct error *err)
{
    const json_t *value = json_object_get(object, wanted->key);

    assert(json_is_object(object));
    if (value && !json_is_null(value)) {
        *ret_value = value;
        return 0;
    }
    if (wanted->required)
        return fail_value(wanted, value, err);
    *ret_value = NULL;
    return 0;
}

int json_get_text(const struct json_place *place, const json_t *object, const char *key,
                  bool required, const char **ret, struct error *err)
{
    assert(ret);
    struct wanted wanted = {place, key, required, "text"};
    const json_t *value = NULL;
    int result = find(&wanted, object, &value, err);

    if (result < 0 || !value)
        return result;
    if (!json_is_string(value))
        return fail_value(&wanted, value, err);
    *ret = json_string_value(value);
    return 0;
}

int json_get_number(const struct json_place *place, const json_t *object, const char *key,
                    bool required, double minimum, double maximum, double *ret,
                    struct error *err)
{
    assert(ret && minimum <= maximum);
    CLEANUP(str_done) struct str expected = STR_EMPTY;
    const json_t *value = NULL;

    expect_number(&expected, minimum, maximum, false);
    struct wanted wanted = {place, key, required, expected.bytes};
    int result = find(&wanted, object, &value, err);
    if (result < 0 || !value)
        return result;
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= minimum && number <= maximum))
        return fail_value(&wanted, value, err);
    *ret = number;
    return 0;
}

/* The value as a whole number: an integer, or a real without a fraction (other programs
 * write 5.0) that a double holds exactly. */
static bool to_whole(const json_t *value, long long *ret)
{
    const double exact_limit = 9007199254740992.0; /* 2^53 */
    double real = json_number_value(value);

    if (json_is_integer(value)) {
        *ret = json_integer_value(value);
        return true;
    }
    if (!json_is_real(value) || fabs(real) > exact_limit || trunc(real) != real)
        return false;
    *ret = (long long)real;
    return true;
}

int json_get_int(const struct json_place *place, const json_t *object, const char *key,
                 bool required, long long minimum, long long maximum, long long *ret,
                 struct error *err)
{
    assert(ret && minimum <= maximum);
    CLEANUP(str_done) struct str expected = STR_EMPTY;
    const json_t *value = NULL;
    long long whole = 0;

    expect_number(&expected, (double)minimum, (double)maximum, true);
    struct wanted wanted = {place, key, required, expected.bytes};
    int result = find(&wanted, object, &value, err);
    if (result < 0 || !value)
        return result;
    if (!to_whole(value, &whole) || whole < minimum || whole > maximum)
        return fail_value(&wanted, value, err);
    *ret = whole;
    return 0;
}

int json_get_bool(const struct json_place *place, const json_t *object, const char *key,
                  bool required, bool *ret, struct error *err)
{
    assert(ret);
    struct wanted wanted = {place, key, required, "true or false"};
    const json_t *value = NULL;
    int result = find(&wanted, object, &value, err);

    if (result < 0 || !value)
        return result;
    if (!json_is_boolean(value))
        return fail_value(&wanted, value, err);
    *ret = json_is_true(value);
    return 0;
}

int json_get_list(const struct json_place *place, const json_t *object, const char *key,
                  bool required, const json_t **ret, struct error *err)
{
    assert(ret);
    struct wanted wanted = {place, key, required, "a list"};
    const json_t *value = NULL;
    int result = find(&wanted, object, &value, err);

    if (result == 0 && value && !json_is_array(value))
        return fail_value(&wanted, value, err);
    if (result == 0)
        *ret = value;
    return result;
}

int json_get_object(const struct json_place *place, const json_t *object, const char *key,
                    bool required, const json_t **ret, struct error *err)
{
    assert(ret);
    struct wanted wanted = {place, key, required, "an object"};
    const json_t *value = NULL;
    int result = find(&wanted, object, &value, err);

    if (result == 0 && value && !json_is_object(value))
        return fail_value(&wanted, value, err);
    if (result == 0)
        *ret = value;
    return result;
}
