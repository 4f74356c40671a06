/* SPDX-License-Identifier: Apache-2.0
 *
 * The error object: formatting, context, names and exit statuses. Every text is made in a
 * local buffer first, so that an argument may point into the error that is rewritten.
 */
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_status;
} code_table[E_CODE_COUNT] = {
    [E_NONE] = {"E_NONE", 0},
    [E_NO] = {"E_NO", 1},
    [E_USAGE] = {"E_USAGE", 2},
    [E_INPUT] = {"E_INPUT", 3},
    [E_IO] = {"E_IO", 4},
    [E_MISSING] = {"E_MISSING", 4},
    [E_NOT_FOUND] = {"E_NOT_FOUND", 4},
    [E_BUSY] = {"E_BUSY", 4},
    [E_CONFLICT] = {"E_CONFLICT", 4},
    [E_TIMEOUT] = {"E_TIMEOUT", 4},
    [E_UNSUPPORTED] = {"E_UNSUPPORTED", 4},
    [E_INTERRUPTED] = {"E_INTERRUPTED", 4},
};

/* A text under construction; what does not fit is only remembered as cut. */
struct draft {
    char text[ERROR_TEXT_SIZE];
    size_t length;
    bool cut;
};

static void draft_vaddf(struct draft *draft, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void draft_vaddf(struct draft *draft, const char *format, va_list arguments)
{
    size_t room = sizeof draft->text - draft->length;
    int wanted = vsnprintf(draft->text + draft->length, room, format, arguments);
    assert(wanted >= 0 && "an error message must be formattable");
    draft->cut = draft->cut || (size_t)wanted >= room;
    draft->length += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

static void draft_add(struct draft *draft, const char *more)
{
    size_t room = sizeof draft->text - draft->length;
    size_t length = strlen(more);
    draft->cut = draft->cut || length >= room;
    if (length >= room)
        length = room - 1;
    memcpy(draft->text + draft->length, more, length);
    draft->length += length;
    draft->text[draft->length] = '\0';
}

/* Where a character starts at or before position: never inside a UTF-8 sequence. */
static size_t character_start(const char *text, size_t position)
{
    size_t start = position;
    while (start > 0 && position - start < 3 && ((unsigned char)text[start] & 0xC0) == 0x80)
        start--;
    return start;
}

static void draft_finish(const struct draft *draft, struct error *err)
{
    static const char dots[] = "...";
    assert(draft->length < sizeof err->text);
    memcpy(err->text, draft->text, draft->length + 1);
    if (draft->cut) {
        size_t end = character_start(err->text, sizeof err->text - sizeof dots);
        memcpy(err->text + end, dots, sizeof dots);
    }
}

int error_set(struct error *err, enum error_code code, const char *format, ...)
{
    assert(code > E_NONE && code < E_CODE_COUNT);
    if (!err)
        return -(int)code;
    struct draft draft = {.length = 0};
    va_list arguments;
    va_start(arguments, format);
    draft_vaddf(&draft, format, arguments);
    va_end(arguments);
    err->code = code;
    draft_finish(&draft, err);
    return -(int)code;
}

int error_set_errno(struct error *err, enum error_code code, const char *format, ...)
{
    assert(code > E_NONE && code < E_CODE_COUNT);
    int saved = errno;
    if (!err)
        return -(int)code;
    struct draft draft = {.length = 0};
    va_list arguments;
    va_start(arguments, format);
    draft_vaddf(&draft, format, arguments);
    va_end(arguments);
    char reason[128];
    draft_add(&draft, ": ");
    draft_add(&draft, strerror_r(saved, reason, sizeof reason));
    err->code = code;
    draft_finish(&draft, err);
    errno = saved;
    return -(int)code;
}

int error_wrap(struct error *err, const char *format, ...)
{
    assert(format);
    if (!err || err->code == E_NONE)
        return -E_IO;
    struct draft draft = {.length = 0};
    va_list arguments;
    va_start(arguments, format);
    draft_vaddf(&draft, format, arguments);
    va_end(arguments);
    draft_add(&draft, ": ");
    draft_add(&draft, err->text);
    draft_finish(&draft, err);
    return -(int)err->code;
}

int error_exit_status(enum error_code code)
{
    assert(code >= E_NONE && code < E_CODE_COUNT);
    return code_table[code].exit_status;
}

const char *error_code_name(enum error_code code)
{
    assert(code >= E_NONE && code < E_CODE_COUNT);
    return code_table[code].name;
}
