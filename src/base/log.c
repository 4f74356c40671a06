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
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

static _Atomic enum log_level log_level_shown = LOG_INFO;

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

void log_write(enum log_level level, const char *message, const char *pairs, ...)
{
    assert(level < LOG_LEVEL_COUNT && message);
    if (level > log_level_shown)
        return;
    int saved = errno;
    const char *colour = level_table[level].colour;
    bool coloured = colour && colour_wanted();
    CLEANUP(str_done) struct str line = STR_EMPTY;
    str_addf(&line, "%slevel=%s msg=\"", coloured ? colour : "", level_table[level].name);
    add_escaped(&line, message, true);
    str_add_char(&line, '"');
    if (pairs) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        va_list arguments;
        va_start(arguments, pairs);
        str_vaddf(&text, pairs, arguments);
        va_end(arguments);
        str_add_char(&line, ' ');
        add_escaped(&line, text.bytes, false);
    }
    str_add(&line, coloured ? "\033[0m\n" : "\n");
    /* There is no one to tell that the log cannot be written. */
    if (write(STDERR_FILENO, line.bytes, line.length) < 0)
        errno = saved;
    errno = saved;
}
