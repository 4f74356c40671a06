/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing text, and small helpers on text. `bytes` is always terminated and never NULL:
 * start from STR_EMPTY, end with str_done() (CLEANUP(str_done) works).
 */
#ifndef TRANCHE_BASE_STR_H
#define TRANCHE_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct str {
    char *bytes;     /* terminated; STR_EMPTY points at a shared "" */
    size_t length;   /* bytes before the terminator */
    size_t capacity; /* 0 while nothing is allocated */
};

extern char str_empty_bytes[1];
#define STR_EMPTY ((struct str){.bytes = str_empty_bytes})

void str_done(struct str *text); /* frees; *text is STR_EMPTY after */
/* Empties the text and keeps its memory. */
void str_clear(struct str *text);
/* Appends a text. */
void str_add(struct str *text, const char *more);
/* Appends `length` bytes, NUL among them or not. */
void str_add_bytes(struct str *text, const void *bytes, size_t length);
/* Appends one byte. */
void str_add_char(struct str *text, char c);
/* Appends a formatted text. */
void str_addf(struct str *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As str_addf(). */
void str_vaddf(struct str *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
/* Appends the shortest decimal text that reads back to the same double ("971.25", "12",
 * "1e+300"); the contract's number form. */
void str_add_number(struct str *text, double value);
/* The text itself, owned by the caller (free()); *text is STR_EMPTY after. */
char *str_take(struct str *text);

/* Whether text begins with these bytes; with the empty text it always does. */
bool text_starts_with(const char *text, const char *prefix);
/* Whether text ends with these bytes; with the empty text it always does. */
bool text_ends_with(const char *text, const char *suffix);
/* Columns that a UTF-8 text takes on a terminal (wcwidth; invalid bytes count 1). */
size_t text_columns(const char *text);

/* Strict number reading: the whole text must be one finite number without surrounding
 * blanks; false (and *ret untouched) otherwise. Never depends on the locale. */
bool text_to_double(const char *text, double *ret);
/* The same of a whole number in [minimum, maximum], digits with at most one sign. */
bool text_to_int(const char *text, long long minimum, long long maximum, long long *ret);
/* Takes the digits at *text as a whole number of at most maximum, and moves *text behind them.
 * False, with both unchanged, when there are none or they are more. */
bool text_take_int(const char **text, long long maximum, long long *ret);

#endif
