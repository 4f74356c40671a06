/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a small program to its end: words in, words out, no shell.
 */
#ifndef TRANCHE_GPU_PROGRAM_H
#define TRANCHE_GPU_PROGRAM_H

#include "base/error.h"
#include "base/str.h"

enum { PROGRAM_OUTPUT_MAX = 1 << 20 };

struct program {
    const char *const *words;       /* argv, NULL-terminated; words[0] by $PATH */
    const char *const *environment; /* more NAME=VALUE, NULL-terminated; may be NULL */
    const char *input;              /* for its standard input; NULL: none */
    int timeout_s;
};

/* Waits until the program ends or its output closes and it ends; *ret_status is its exit
 * status, 128 + n when signal n ended it. Output and errors together are appended. E_MISSING:
 * no such program; E_TIMEOUT: it was killed. */
int program_run(const struct program *program, struct str *output, int *ret_status,
                struct error *err);

#endif
