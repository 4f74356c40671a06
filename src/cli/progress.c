/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress line; see progress.h.
 */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/output.h"

enum { PROGRESS_INTERVAL_NS = 100 * 1000 * 1000, DEFAULT_COLUMNS = 80 };

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
