/* SPDX-License-Identifier: Apache-2.0
 *
 * What all readers of text files ask before they parse, and places in such files.
 */
#ifndef TRANCHE_BASE_TEXT_INPUT_H
#define TRANCHE_BASE_TEXT_INPUT_H

#include <stdarg.h>
#include <stddef.h>

#include "base/error.h"

/* A text file in memory. */
struct text_input {
    const char *name;  /* for messages */
    const char *bytes; /* after a byte order mark, if there was one */
    size_t length;
};

/* Checks that bytes are UTF-8 text without control characters but tab, CR and LF, and not
 * empty; `expected` ("a header row") completes the message for an empty file. Drops a
 * byte order mark. E_INPUT "NAME:LINE:COL: …". */
int text_input_open(struct text_input *ret_input, const char *name, const char *bytes,
                    size_t length, const char *expected, struct error *err);

/* Line and column (1-based, in characters) of a byte. */
struct text_position {
    unsigned line, column;
};
/* Where byte `offset` stands; the end of the text is a place, too. */
struct text_position text_input_position(const struct text_input *input, size_t offset);

/* E_INPUT "NAME:LINE:COL: …" for that byte. */
int text_input_error(const struct text_input *input, size_t offset, struct error *err,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* error_set() of E_INPUT with "NAME:LINE:COL: " before the text. */
int text_error_at(const char *name, struct text_position position, struct error *err,
                  const char *format, va_list arguments) __attribute__((format(printf, 4, 0)));

#endif
