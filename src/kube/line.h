/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a stream into lines, however the bytes are chunked. A line is bounded.
 */
#ifndef TRANCHE_KUBE_LINE_H
#define TRANCHE_KUBE_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* etcd refuses objects over 1.5 MB; an event is one object and a few words. */
enum { KUBE_LINE_LIMIT = 4 << 20 };

struct kube_line {
    struct str partial; /* STR_EMPTY to begin with; of a line that has not ended yet */
    size_t limit;       /* bytes of the longest line, without its end */
    /* A line without its end (LF or CRLF; not terminated); never empty. False stops. */
    bool (*line)(void *context, const char *bytes, size_t length);
    void *context;
};

enum kube_line_result { KUBE_LINE_MORE, KUBE_LINE_STOPPED, KUBE_LINE_TOO_LONG };

/* Hands over the lines that end in these bytes and keeps the rest. */
enum kube_line_result kube_line_feed(struct kube_line *splitter, const char *bytes,
                                     size_t length);
/* Drops what is kept; the splitter may be used again. */
void kube_line_reset(struct kube_line *splitter);

#endif
