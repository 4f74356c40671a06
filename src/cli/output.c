/* SPDX-License-Identifier: Apache-2.0
 *
 * Results and colour; see output.h.
 */
#include "cli/output.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static const char *const style_codes[OUTPUT_STYLE_COUNT] = {
    [OUTPUT_STYLE_BOLD] = "1", [OUTPUT_STYLE_FAINT] = "2", [OUTPUT_STYLE_GOOD] = "32",
    [OUTPUT_STYLE_BAD] = "31", [OUTPUT_STYLE_WARN] = "33",
};

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
