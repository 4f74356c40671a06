/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-sent events of language models. See token_stream.h.
 */
#include "load/token_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/memory.h"

void token_stream_reset(struct token_stream *stream)
{
    *stream = (struct token_stream){
        .line = stream->line, .capacity = stream->capacity, .usage_tokens = -1};
}

void token_stream_done(struct token_stream *stream)
{
    free(stream->line);
    *stream = (struct token_stream){.usage_tokens = -1};
}

static bool has_text(const json_t *value)
{
    return json_is_string(value) && json_string_length(value) > 0;
}

/* choices[0].delta.content, .delta.reasoning_content (chat) or choices[0].text. */
static bool event_has_text(const json_t *event)
{
    const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
    const json_t *delta = json_object_get(choice, "delta");
    return has_text(json_object_get(delta, "content")) ||
           has_text(json_object_get(delta, "reasoning_content")) ||
           has_text(json_object_get(choice, "text"));
}

static void take_event(struct token_stream *stream, const char *data, size_t length,
                       int64_t now_ns, struct hist *gaps)
{
    json_t *event = json_loadb(data, length, 0, NULL);
    if (!json_is_object(event)) {
        stream->broken = true;
        json_decref(event);
        return;
    }
    const json_t *tokens =
        json_object_get(json_object_get(event, "usage"), "completion_tokens");
    if (json_is_integer(tokens))
        stream->usage_tokens = json_integer_value(tokens);
    if (json_object_get(event, "error"))
        stream->broken = true;
    if (event_has_text(event)) {
        if (stream->events == 0)
            stream->first_ns = now_ns;
        else if (gaps)
            hist_record(gaps, now_ns - stream->last_ns);
        stream->last_ns = now_ns;
        stream->events++;
    }
    json_decref(event);
}

static void take_line(struct token_stream *stream, int64_t now_ns, struct hist *gaps)
{
    const char *line = stream->line;
    size_t length = stream->length;
    if (length > 0 && line[length - 1] == '\r')
        length--;
    if (length < 5 || memcmp(line, "data:", 5) != 0)
        return; /* other fields and comments */
    size_t start = length > 5 && line[5] == ' ' ? 6 : 5;
    if (length - start == 6 && memcmp(line + start, "[DONE]", 6) == 0)
        stream->done = true;
    else
        take_event(stream, line + start, length - start, now_ns, gaps);
}

static void keep(struct token_stream *stream, const char *bytes, size_t length)
{
    if (stream->length + length > TOKEN_LINE_MAX) {
        stream->broken = true;
        return;
    }
    if (stream->length + length > stream->capacity) {
        stream->capacity = (stream->length + length) * 2;
        stream->line = xrealloc(stream->line, stream->capacity, 1);
    }
    memcpy(stream->line + stream->length, bytes, length);
    stream->length += length;
}

void token_stream_feed(struct token_stream *stream, const char *bytes, size_t length,
                       int64_t now_ns, struct hist *gaps)
{
    while (length > 0 && !stream->broken) {
        const char *newline = memchr(bytes, '\n', length);
        size_t part = newline ? (size_t)(newline - bytes) : length;
        if (part > 0)
            keep(stream, bytes, part);
        if (newline && !stream->broken) {
            if (stream->length > 0)
                take_line(stream, now_ns, gaps);
            stream->length = 0;
            part++;
        }
        bytes += part;
        length -= part;
    }
}

uint64_t token_stream_count(const struct token_stream *stream)
{
    assert(stream->usage_tokens >= -1 || stream->broken);
    return stream->usage_tokens > 0 ? (uint64_t)stream->usage_tokens : stream->events;
}
