/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON: what is read and written, on a line or pretty, reads the same again.
 */
#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"

static void check_again(const json_t *root, void (*write)(const json_t *, struct str *))
{
    CLEANUP(str_done) struct str first = STR_EMPTY;
    CLEANUP(str_done) struct str second = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *again = NULL;

    write(root, &first);
    int result = json_parse("again", first.bytes, first.length, &again, NULL);
    assert(result == 0);
    write(again, &second);
    assert(strcmp(first.bytes, second.bytes) == 0);
    (void)result;
}

static void check_getters(json_t *object)
{
    const struct json_place place = {.file = "fuzz"};
    struct error err = {0};

    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at), *text = NULL;
        double number = 0;
        long long whole = 0;
        json_get_number(&place, object, key, true, -10, 10, &number, &err);
        json_get_int(&place, object, key, false, -10, 10, &whole, &err);
        json_get_text(&place, object, key, true, &text, &err);
        assert(number >= -10 && number <= 10 && whole >= -10 && whole <= 10);
    }
}

/* Texts end where C thinks they end. */
static void check_texts(const json_t *json)
{
    const char *key;
    size_t i;
    json_t *value;

    if (json_is_string(json))
        assert(strlen(json_string_value(json)) == json_string_length(json));
    json_array_foreach(json, i, value) check_texts(value);
    json_object_foreach((json_t *)json, key, value) check_texts(value);
}

/* What is read strictly is read the same leniently. */
static void check_lenient(const uint8_t *data, size_t size, json_t *strict)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    int result = json_parse_lenient("fuzz", (const char *)data, size, &root, NULL);

    assert(!strict || (result == 0 && json_equal(root, strict)));
    if (result == 0)
        check_texts(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    struct error err = {0};

    if (json_parse("fuzz", (const char *)data, size, &root, &err) < 0) {
        assert(err.code == E_INPUT && strncmp(err.text, "fuzz:", 5) == 0 && !root);
        check_lenient(data, size, NULL);
        return 0;
    }
    check_lenient(data, size, root);
    check_again(root, json_write_line);
    check_again(root, json_write_pretty);
    check_getters(root);
    return 0;
}
