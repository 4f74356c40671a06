/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON through jansson: reading with positions ("FILE:LINE:COL: …" when the text is not
 * JSON, "FILE: path.to[3].field: …" when a value is wrong), typed getters, and writing
 * with the contract's numbers (shortest text that reads back to the same double: "12",
 * not "12.0") and keys in insertion order.
 */
#ifndef TRANCHE_BASE_JSON_H
#define TRANCHE_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

enum { JSON_DEPTH_LIMIT = 64 }; /* levels of lists and objects */

/* Parses text that this program or its user wrote; name is for messages. Duplicate keys, depth
 * over JSON_DEPTH_LIMIT, NUL in text, NaN and trailing text are E_INPUT. The result is a new
 * reference, which the caller drops. */
int json_parse(const char *name, const char *bytes, size_t length, json_t **ret_root,
               struct error *err);
/* The same for JSON that others may have filled with anything, where one text must not cost
 * the whole document: what json_repair() replaces is no error, and of a key that is there
 * twice the last counts. Texts never have U+0000. Places in messages are those of the repaired
 * text. */
int json_parse_lenient(const char *name, const char *bytes, size_t length, json_t **ret_root,
                       struct error *err);
/* file_read() then json_parse(), with the path as name. */
int json_read(const char *path, json_t **ret_root, struct error *err);

/* For CLEANUP(json_decref_ptr) json_t *x = NULL; borrowed values must not be held so. */
static inline void json_decref_ptr(json_t **json)
{
    json_decref(*json);
}

/* Where a value stands, for messages: a chain on the stack. {file, NULL key} is the root. */
struct json_place {
    const char *file;
    const struct json_place *parent;
    const char *key; /* member name, or NULL */
    size_t index;    /* of a list item, when key is NULL and parent is not */
};

/* E_INPUT "FILE: path.to[3].field: TEXT". */
int json_error_at(const struct json_place *place, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Text under key, borrowed; "" when there is none. */
const char *json_text(const json_t *object, const char *key);

/* Typed getters. When `required` is false and the key is absent or null, *ret stays, so that
 * defaults are set before. Else a missing value, or one of another kind or out of range, is
 * E_INPUT with the path of the field, what stood there and what was expected. The text is
 * borrowed from `object`. */
int json_get_text(const struct json_place *place, const json_t *object, const char *key,
                  bool required, const char **ret, struct error *err);
/* A finite number in [minimum, maximum]; infinite bounds are open. */
int json_get_number(const struct json_place *place, const json_t *object, const char *key,
                    bool required, double minimum, double maximum, double *ret,
                    struct error *err);
/* A whole number in [minimum, maximum]; a real without a fraction counts (5.0), up to 2^53,
 * beyond which a double no longer tells neighbours apart. */
int json_get_int(const struct json_place *place, const json_t *object, const char *key,
                 bool required, long long minimum, long long maximum, long long *ret,
                 struct error *err);
/* true or false; 0 and 1 are neither. */
int json_get_bool(const struct json_place *place, const json_t *object, const char *key,
                  bool required, bool *ret, struct error *err);
/* The list under key, borrowed; *ret becomes NULL when it is absent and not required. */
int json_get_list(const struct json_place *place, const json_t *object, const char *key,
                  bool required, const json_t **ret, struct error *err);
/* The same of an object. */
int json_get_object(const struct json_place *place, const json_t *object, const char *key,
                    bool required, const json_t **ret, struct error *err);

/* Appends json as text: two-space indent, lists and objects without inner containers on
 * one line while they fit in 100 columns, final newline. */
void json_write_pretty(const json_t *json, struct str *text);
/* One line, no blanks, no newline. */
void json_write_line(const json_t *json, struct str *text);

#endif
