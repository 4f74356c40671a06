/* SPDX-License-Identifier: Apache-2.0
 *
 * The log. Control characters are escaped, so that text from outside cannot forge a line
 * or drive the terminal.
 */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

static _Atomic enum log_level log_level_shown = LOG_INFO;
static _Atomic bool log_is_json;

static const struct {
    const char *name;
    const char *colour; /* NULL: none */
} level_table[LOG_LEVEL_COUNT] = {
    [LOG_ERROR] = {"error", "\033[31m"},
    [LOG_WARN] = {"warn", "\033[33m"},
    [LOG_INFO] = {"info", NULL},
    [LOG_DEBUG] = {"debug", NULL},
};

/* Appends text with its control characters escaped, quotes and backslashes too where the
 * text stands in quotes. */
static void add_escaped(struct str *line, const char *text, bool quoted)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\n')
            str_add(line, "\\n");
        else if (c < 0x20 || c == 0x7F)
            str_addf(line, "\\x%02x", c);
        else if (quoted && (c == '"' || c == '\\'))
            str_addf(line, "\\%c", c);
        else
            str_add_char(line, *text);
    }
}

/* NO_COLOR as on no-color.org: set and not empty. */
static bool colour_wanted(void)
{
    const char *no_color = getenv("NO_COLOR");
    return !(no_color && *no_color) && isatty(STDERR_FILENO);
}

void log_set_level(enum log_level level)
{
    assert(level < LOG_LEVEL_COUNT);
    log_level_shown = level;
}

bool log_enabled(enum log_level level)
{
    assert(level < LOG_LEVEL_COUNT);
    return level <= log_level_shown;
}

void log_set_json(bool json)
{
    log_is_json = json;
}

/* Appends a JSON text of these bytes. */
static void add_json_text(struct str *line, const char *bytes, size_t length)
{
    str_add_char(line, '"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c < 0x20 || c == 0x7F)
            str_addf(line, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            str_addf(line, "\\%c", c);
        else
            str_add_char(line, bytes[i]);
    }
    str_add_char(line, '"');
}

/* Whether the pairs end here, or the next begins: " key=". */
static bool is_end(const char *rest)
{
    size_t key = *rest == ' ' ? strcspn(rest + 1, "= \"") : 0;

    return !*rest || (key > 0 && rest[1 + key] == '=');
}

/* The length of a value: up to the next blank, or of a quoted one to the quote that ends it.
 * Callers do not escape quotes within. */
static size_t value_length(const char *value)
{
    if (*value != '"')
        return strcspn(value, " ");
    for (size_t i = 1; value[i]; i++)
        if (value[i] == '"' && is_end(value + i + 1))
            return i + 1;
    return strlen(value);
}

/* Appends `,"key":"value"` for each pair. */
static void add_json_pairs(struct str *line, const char *pairs)
{
    while (*(pairs += strspn(pairs, " "))) {
        size_t key = strcspn(pairs, "= ");
        str_add_char(line, ',');
        add_json_text(line, pairs, key);
        str_add_char(line, ':');
        pairs += key;
        if (*pairs == '=')
            pairs++;
        size_t length = value_length(pairs);
        bool quoted = length >= 2 && *pairs == '"' && pairs[length - 1] == '"';
        add_json_text(line, pairs + quoted, length - (quoted ? 2 : 0));
        pairs += length;
    }
}

static void write_json(struct str *line, enum log_level level, const char *message,
                       const char *pairs)
{
    char now[21];

    clock_wall_text(now);
    str_addf(line, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", now, level_table[level].name);
    add_json_text(line, message, strlen(message));
    add_json_pairs(line, pairs);
    str_add(line, "}\n");
}

static void write_logfmt(struct str *line, enum log_level level, const char *message,
                         const char *pairs)
{
    const char *colour = level_table[level].colour;
    bool coloured = colour && colour_wanted();

    str_addf(line, "%slevel=%s msg=\"", coloured ? colour : "", level_table[level].name);
    add_escaped(line, message, true);
    str_add_char(line, '"');
    if (*pairs) {
        str_add_char(line, ' ');
        add_escaped(line, pairs, false);
    }
    str_add(line, coloured ? "\033[0m\n" : "\n");
}

void log_write(enum log_level level, const char *message, const char *pairs, ...)
{
    assert(level < LOG_LEVEL_COUNT && message);
    if (level > log_level_shown)
        return;
    int saved = errno;
    CLEANUP(str_done) struct str line = STR_EMPTY;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (pairs) {
        va_list arguments;
        va_start(arguments, pairs);
        str_vaddf(&text, pairs, arguments);
        va_end(arguments);
    }
    if (log_is_json)
        write_json(&line, level, message, text.bytes);
    else
        write_logfmt(&line, level, message, text.bytes);
    /* There is no one to tell that the log cannot be written. */
    if (write(STDERR_FILENO, line.bytes, line.length) < 0)
        errno = saved;
    errno = saved;
}
