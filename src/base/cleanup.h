/* SPDX-License-Identifier: Apache-2.0
 *
 * Owners that free themselves when they leave scope. CLEANUP(x) takes a function on a
 * pointer to the variable: `CLEANUP(str_done) struct str text = STR_EMPTY;` for embedded
 * objects, `CLEANUP(free_ptr) char *name = NULL;` for heap pointers. For a type with
 * x_free(struct x *), CLEANUP_DEFINE_FREE(x) in its header defines x_free_ptr().
 * Descriptors start at -1, pointers at NULL.
 */
#ifndef TRANCHE_BASE_CLEANUP_H
#define TRANCHE_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function)))

/* Defines x_free_ptr(struct x **), for CLEANUP(x_free_ptr) struct x *p = NULL; */
#define CLEANUP_DEFINE_FREE(x)                                                                 \
    static inline void x##_free_ptr(struct x **pointer)                                        \
    {                                                                                          \
        x##_free(*pointer);                                                                    \
    }

/* Gives up ownership: the value of *(&pointer), which becomes NULL. */
#define STEAL(pointer)                                                                         \
    ({                                                                                         \
        __typeof__(pointer) stolen_ = (pointer);                                               \
        (pointer) = NULL;                                                                      \
        stolen_;                                                                               \
    })

/* For any pointer that free() takes, char ** and the like included. */
static inline void free_ptr(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

/* Closes a descriptor; a negative one is none. What close() says is lost: whoever must know
 * that the bytes arrived calls close() or fsync() by hand. */
static inline void close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* As STEAL, of a descriptor: its value, and -1 in its place, which close_fd() leaves alone. */
static inline int steal_fd(int *fd)
{
    int stolen = *fd;

    *fd = -1;
    return stolen;
}

/* As close_fd(), of a stream; NULL is none. */
static inline void close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

#endif
