/* SPDX-License-Identifier: Apache-2.0
 *
 * The one error object. It lives on the caller's stack, has nothing to free, and is the
 * last parameter of every function that can fail. Such a function returns 0, or the
 * negative code that error_set() returned; a function that makes a pointer returns NULL.
 * The object is written only on failure, and NULL is accepted where nobody asks.
 * Programmer errors are asserted, never reported here.
 */
#ifndef TRANCHE_BASE_ERROR_H
#define TRANCHE_BASE_ERROR_H

#include <stdarg.h>

/* What went wrong, as far as a caller acts on it. Exit statuses: docs/spec and
 * error_exit_status(). */
enum error_code {
    E_NONE,        /* no error */
    E_NO,          /* the answer is no: illegal, infeasible, differs (exit 1) */
    E_USAGE,       /* the command line is wrong (exit 2) */
    E_INPUT,       /* what the user gave is wrong: a file, a field, a value (exit 3) */
    E_IO,          /* cannot open, read or write (exit 4) */
    E_MISSING,     /* a driver, library, model, server or tool is not there (exit 4) */
    E_NOT_FOUND,   /* the named object does not exist (exit 4 unless the caller maps it) */
    E_BUSY,        /* in use now; trying later may do (exit 4) */
    E_CONFLICT,    /* somebody else changed it meanwhile (exit 4) */
    E_TIMEOUT,     /* took too long (exit 4) */
    E_UNSUPPORTED, /* this driver, board or version cannot (exit 4) */
    E_INTERRUPTED, /* Ctrl-C or SIGTERM (exit 4; what was done is kept) */
    E_CODE_COUNT
};

enum { ERROR_TEXT_SIZE = 1024 };

struct error {
    enum error_code code;
    char text[ERROR_TEXT_SIZE]; /* one or more lines, no trailing newline */
};

/* Fills *err (if not NULL) and returns -code. Text that does not fit is cut with "...". */
int error_set(struct error *err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* error_set() with ": strerror(errno)" appended; errno is kept. */
int error_set_errno(struct error *err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text of a failure and returns -err->code. With NULL, or
 * with no error set, returns -E_IO: a caller wraps only after a failure. */
int error_wrap(struct error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The process exit status of the contract for a code: 0, 1, 2, 3 or 4. */
int error_exit_status(enum error_code code);

/* "E_INPUT" …: for logs and JSON. Never NULL. */
const char *error_code_name(enum error_code code);

#endif
