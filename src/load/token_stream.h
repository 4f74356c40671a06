/* SPDX-License-Identifier: Apache-2.0
 *
 * The answer of a language model as it is streamed: server-sent events ("data: {…}" lines,
 * ended by "data: [DONE]") in OpenAI's forms, chat and completions. An event with new text
 * counts as one token unless the stream itself says how many there were (usage).
 */
#ifndef TRANCHE_LOAD_TOKEN_STREAM_H
#define TRANCHE_LOAD_TOKEN_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hist.h"

enum { TOKEN_LINE_MAX = 256 << 10 };

struct token_stream {
    uint64_t events;           /* with text */
    int64_t usage_tokens;      /* as the server counted; -1: it did not say */
    int64_t first_ns, last_ns; /* when text arrived */
    bool done, broken;         /* [DONE] seen; a line too long or no JSON */
    /* Inside. */
    char *line; /* owned */
    size_t length, capacity;
};

void token_stream_reset(struct token_stream *stream); /* a zeroed one needs it too */
void token_stream_done(struct token_stream *stream);
/* Bytes of the body that arrived at now_ns; gaps between texts go to `gaps` (NULL: not
 * wanted). */
void token_stream_feed(struct token_stream *stream, const char *bytes, size_t length,
                       int64_t now_ns, struct hist *gaps);
/* Tokens of the whole answer. */
uint64_t token_stream_count(const struct token_stream *stream);

#endif
