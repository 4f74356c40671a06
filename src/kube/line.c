/* SPDX-License-Identifier: Apache-2.0
 *
 * A line that lies whole in one chunk is handed over in place; only the split ones are copied.
 */
#include "kube/line.h"

#include <assert.h>
#include <string.h>

static bool hand_over(struct kube_line *splitter, const char *bytes, size_t length)
{
    if (length > 0 && bytes[length - 1] == '\r')
        length--;
    return length == 0 || splitter->line(splitter->context, bytes, length);
}

/* The end of a line at bytes[length] was found. */
static bool end_line(struct kube_line *splitter, const char *bytes, size_t length)
{
    if (splitter->partial.length == 0)
        return hand_over(splitter, bytes, length);
    str_add_bytes(&splitter->partial, bytes, length);
    bool go_on = hand_over(splitter, splitter->partial.bytes, splitter->partial.length);
    str_clear(&splitter->partial);
    return go_on;
}

enum kube_line_result kube_line_feed(struct kube_line *splitter, const char *bytes,
                                     size_t length)
{
    assert(splitter->limit > 0 && splitter->line);
    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end ? (size_t)(end - bytes) : length;
        if (part > splitter->limit || splitter->partial.length > splitter->limit - part)
            return KUBE_LINE_TOO_LONG;
        if (!end) {
            str_add_bytes(&splitter->partial, bytes, length);
            break;
        }
        if (!end_line(splitter, bytes, part))
            return KUBE_LINE_STOPPED;
        bytes += part + 1;
        length -= part + 1;
    }
    return KUBE_LINE_MORE;
}

void kube_line_reset(struct kube_line *splitter)
{
    str_done(&splitter->partial);
}
