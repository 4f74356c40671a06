/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation that does not fail: out of memory (or a size that overflows) aborts with a
 * message. Sizes that a user controls are bounded before they come here.
 */
#ifndef TRANCHE_BASE_MEMORY_H
#define TRANCHE_BASE_MEMORY_H

#include <stddef.h>

/* count × size zeroed bytes; never NULL (count 0 gives a pointer that may be freed). */
void *xcalloc(size_t count, size_t size);
/* Like realloc() to count × size bytes; never NULL. */
void *xrealloc(void *pointer, size_t count, size_t size);
/* A copy of text, owned by the caller; NULL stays NULL. */
char *xstrdup(const char *text);
/* A copy of at most length bytes of text, terminated. */
char *xstrndup(const char *text, size_t length);
/* A copy of size bytes. */
void *xmemdup(const void *bytes, size_t size);
/* printf into new memory, owned by the caller. */
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
