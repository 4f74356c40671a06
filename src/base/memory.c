/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation that ends the process when there is no memory: a service manager or
 * Kubernetes restarts it, and no caller carries a path that no test could reach.
 */
#include "base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void __attribute__((noreturn)) out_of_memory(size_t count, size_t size)
{
    fprintf(stderr, "tranche: out of memory (%zu x %zu bytes)\n", count, size);
    abort();
}

void *xcalloc(size_t count, size_t size)
{
    assert(size > 0);
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        out_of_memory(count, size);
    return memory;
}

void *xrealloc(void *pointer, size_t count, size_t size)
{
    assert(size > 0);
    size_t total;
    if (__builtin_mul_overflow(count ? count : 1, size, &total))
        out_of_memory(count, size);
    void *memory = realloc(pointer, total);
    if (!memory)
        out_of_memory(count, size);
    return memory;
}

char *xstrdup(const char *text)
{
    return text ? xmemdup(text, strlen(text) + 1) : NULL;
}

char *xstrndup(const char *text, size_t length)
{
    assert(text);
    size_t kept = strnlen(text, length);
    char *copy = xcalloc(kept + 1, 1);
    memcpy(copy, text, kept);
    return copy;
}

void *xmemdup(const void *bytes, size_t size)
{
    assert(bytes || size == 0);
    void *copy = xrealloc(NULL, size, 1);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

char *xasprintf(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        out_of_memory(1, 1);
    return text;
}
