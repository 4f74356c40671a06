/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading JSON: jansson parses, a pass before it bounds the depth, one after a failure
 * finds where the token that jansson stumbled over begins. The getters are in json_get.c,
 * writing in json_write.c.
 */
#include "base/json.h"

#include <assert.h>
#include <string.h>

#include "base/file.h"
#include "base/json_repair.h"
#include "base/text_input.h"

/* A plan of the most GPUs that one may hold, 250,000 of seven instances, is 420 MB. */
enum { JSON_SIZE_LIMIT = 512 << 20 };

/* The byte after the string that begins at the quote at `at`, or the end of the text. */
static size_t skip_string(const struct text_input *input, size_t at)
{
    assert(input->bytes[at] == '"');
    for (at++; at < input->length && input->bytes[at] != '"'; at++)
        if (input->bytes[at] == '\\')
            at++;
    return at < input->length ? at + 1 : input->length;
}

static bool is_delimiter(char c)
{
    return strchr("[]{},:\" \t\r\n", c) != NULL;
}

/* The byte after the token at `at`: a string, a mark, or all up to the next delimiter. */
static size_t skip_token(const struct text_input *input, size_t at)
{
    if (input->bytes[at] == '"')
        return skip_string(input, at);
    if (is_delimiter(input->bytes[at]))
        return at + 1;
    while (at < input->length && !is_delimiter(input->bytes[at]))
        at++;
    return at;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int check_depth(const struct text_input *input, struct error *err)
{
    size_t depth = 0;

    for (size_t at = 0; at < input->length; at = skip_token(input, at)) {
        char c = input->bytes[at];
        if (c == '[' || c == '{')
            depth++;
        if ((c == ']' || c == '}') && depth > 0)
            depth--;
        if (depth > JSON_DEPTH_LIMIT)
            return text_input_error(input, at, err, "more than %d levels of lists and objects",
                                    JSON_DEPTH_LIMIT);
    }
    return 0;
}

/* Where the last token that ends at or covers the byte before `position` begins: jansson
 * reports how far it has read. */
static size_t token_start(const struct text_input *input, size_t position)
{
    size_t start = 0;

    for (size_t at = 0; at < position && at < input->length; at = skip_token(input, at))
        if (!is_blank(input->bytes[at]))
            start = at;
    return start;
}

/* jansson's words where ours say more. */
static const struct {
    const char *theirs, *ours;
} phrases[] = {
    {"\\u0000 is not allowed", "the character \\u0000, expected text without it"},
    {"duplicate object key", "a key that is there twice, expected each key once"},
    {"'[' or '{' expected", "expected '{' or '['"},
    {"end of file expected", "text after the end, expected one JSON value"},
    {"premature end of input", "the file ends too early, expected more JSON"},
    {"too big integer", "a whole number too large, expected at most 9223372036854775807"},
    {"too big negative integer",
     "a whole number too small, expected at least -9223372036854775808"},
    {"real number overflow", "a number too large, expected a finite number"},
};

static int fail_syntax(const struct text_input *input, const json_error_t *problem,
                       struct error *err)
{
    bool at_end = strstr(problem->text, "near end of file") != NULL;
    size_t read = problem->position < 0 ? 0 : (size_t)problem->position;
    size_t offset = at_end ? input->length : token_start(input, read);
    const char *near = strstr(problem->text, " near '");

    assert(offset <= input->length);
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (text_starts_with(problem->text, phrases[i].theirs))
            return text_input_error(input, offset, err, "%s%s", phrases[i].ours,
                                    near ? near : "");
    return text_input_error(input, offset, err, "%s", problem->text);
}

struct source {
    const char *name, *bytes;
    size_t length;
    size_t flags; /* jansson's */
};

static int parse(const struct source *source, json_t **ret_root, struct error *err)
{
    struct text_input input = {0};
    json_error_t problem;
    int result = text_input_open(&input, source->name, source->bytes, source->length,
                                 "a JSON document", err);

    if (result == 0)
        result = check_depth(&input, err);
    if (result < 0)
        return result;
    json_t *root = json_loadb(input.bytes, input.length, source->flags, &problem);
    if (!root)
        return fail_syntax(&input, &problem, err);
    *ret_root = root;
    return 0;
}

static int check_size(const char *name, size_t length, struct error *err)
{
    if (length <= JSON_SIZE_LIMIT)
        return 0;
    return error_set(err, E_INPUT, "%s: larger than %d bytes, expected a smaller file", name,
                     JSON_SIZE_LIMIT);
}

int json_parse(const char *name, const char *bytes, size_t length, json_t **ret_root,
               struct error *err)
{
    const struct source source = {name, bytes, length, JSON_REJECT_DUPLICATES};
    int result = check_size(name, length, err);

    return result < 0 ? result : parse(&source, ret_root, err);
}

int json_parse_lenient(const char *name, const char *bytes, size_t length, json_t **ret_root,
                       struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    int result = check_size(name, length, err);

    if (result < 0)
        return result;
    json_repair(bytes, length, &text);
    return parse(&(struct source){.name = name, .bytes = text.bytes, .length = text.length},
                 ret_root, err);
}

int json_read(const char *path, json_t **ret_root, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    int result = file_read(path, JSON_SIZE_LIMIT, &bytes, err);

    if (result < 0)
        return result;
    return json_parse(path, bytes.bytes, bytes.length, ret_root, err);
}
