/* SPDX-License-Identifier: Apache-2.0
 *
 * Results, colour and progress; see output.h.
 */
#include "cli/output.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

static const char *const style_codes[OUTPUT_STYLE_COUNT] = {
    [OUTPUT_STYLE_BOLD] = "1", [OUTPUT_STYLE_FAINT] = "2", [OUTPUT_STYLE_GOOD] = "32",
    [OUTPUT_STYLE_BAD] = "31", [OUTPUT_STYLE_WARN] = "33",
};

enum { PROGRESS_INTERVAL_NS = 100 * 1000 * 1000, DEFAULT_COLUMNS = 80 };

int output_write(const char *path, const struct str *text, struct error *err)
{
    if (path && strcmp(path, "-") != 0)
        return file_write(path, text->bytes, text->length, err);
    if (fwrite(text->bytes, 1, text->length, stdout) != text->length || fflush(stdout) != 0)
        return error_set_errno(err, E_IO, "cannot write to standard output");
    return 0;
}

bool output_is_terminal(void)
{
    return isatty(STDOUT_FILENO);
}

bool output_messages_are_on_terminal(void)
{
    return isatty(STDERR_FILENO);
}

bool output_has_colour(void)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");

    return output_is_terminal() && !(no_colour && *no_colour) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

void output_add_styled(struct str *text, enum output_style style, bool colour,
                       const char *words)
{
    assert(style < OUTPUT_STYLE_COUNT);
    if (colour)
        str_addf(text, "\033[%sm%s\033[0m", style_codes[style], words);
    else
        str_add(text, words);
}

static size_t terminal_columns(void)
{
    struct winsize size = {0};

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return DEFAULT_COLUMNS;
    return size.ws_col;
}

/* Drops characters at the end, whole UTF-8 sequences, until the text fits: a line that
 * wraps could not be rewritten. */
static void cut_to_columns(struct str *text, size_t columns)
{
    while (text->length > 0 && text_columns(text->bytes) > columns) {
        size_t length = text->length - 1;
        while (length > 0 && (text->bytes[length] & 0xC0) == 0x80)
            length--;
        text->length = length;
        text->bytes[length] = '\0';
    }
}

void progress_show(struct progress *progress, const char *format, ...)
{
    int64_t now_ns = clock_now_ns(clock_real());
    CLEANUP(str_done) struct str line = STR_EMPTY;
    va_list arguments;

    if (!log_enabled(LOG_WARN) || !output_messages_are_on_terminal())
        return;
    if (progress->shown_ns && now_ns - progress->shown_ns < PROGRESS_INTERVAL_NS)
        return;
    va_start(arguments, format);
    str_vaddf(&line, format, arguments);
    va_end(arguments);
    cut_to_columns(&line, terminal_columns() - 1);
    fprintf(stderr, "\r\033[K%s", line.bytes);
    fflush(stderr);
    progress->shown_ns = now_ns;
}

void progress_done(struct progress *progress)
{
    if (progress->shown_ns)
        fputs("\r\033[K", stderr);
    progress->shown_ns = 0;
}
