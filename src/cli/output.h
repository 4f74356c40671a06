/* SPDX-License-Identifier: Apache-2.0
 *
 * What commands print: results to `-o FILE` or standard output, colour only where a
 * person looks on. Tables are in table.h, progress in progress.h.
 */
#ifndef TRANCHE_CLI_OUTPUT_H
#define TRANCHE_CLI_OUTPUT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"

/* Writes a command's result: to path whole or not at all (file_write()), to standard output
 * when path is NULL or "-", after what stdio still holds. E_IO when that fails. */
int output_write(const char *path, const struct str *text, struct error *err);

/* Whether standard output, or standard error, is a terminal. */
bool output_is_terminal(void);
/* Whether a person watches standard error: progress is shown there alone. */
bool output_messages_are_on_terminal(void);

/* The styles of text on a terminal. */
enum output_style {
    OUTPUT_STYLE_BOLD,
    OUTPUT_STYLE_FAINT,
    OUTPUT_STYLE_GOOD, /* green */
    OUTPUT_STYLE_BAD,  /* red */
    OUTPUT_STYLE_WARN, /* yellow */
    OUTPUT_STYLE_COUNT
};
/* Whether standard output takes colour: a terminal, TERM not "dumb", NO_COLOR unset or
 * empty (no-color.org). */
bool output_has_colour(void);
/* Appends words in this style, or plain where colour is false. */
void output_add_styled(struct str *text, enum output_style style, bool colour,
                       const char *words);

#endif
