/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.x responses, read piece by piece as they arrive (RFC 9112): status line, headers,
 * and a body by Content-Length, in chunks, or up to the end of the connection. Informational
 * responses (1xx) are skipped. No I/O, and no memory but for a line that arrives in parts.
 */
#ifndef TRANCHE_LOAD_HTTP_PARSER_H
#define TRANCHE_LOAD_HTTP_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_LINE_MAX = 16 << 10, HTTP_HEADERS_MAX = 64 << 10 };

enum http_state {
    HTTP_STATUS_LINE,
    HTTP_HEADER_LINE,
    HTTP_BODY_LENGTH,
    HTTP_BODY_TO_END,
    HTTP_CHUNK_SIZE,
    HTTP_CHUNK_DATA,
    HTTP_CHUNK_END,
    HTTP_TRAILER_LINE,
    HTTP_COMPLETE,
    HTTP_BROKEN, /* see problem */
};

struct http_parser {
    enum http_state state;
    int status;          /* 200 …; 0 before the status line */
    bool keeps_alive;    /* another request may follow on this connection */
    int64_t body_bytes;  /* of the body so far */
    const char *problem; /* what was expected, when broken */
    /* Called with each piece of the body; NULL: not wanted. */
    void (*on_body)(void *context, const char *bytes, size_t length);
    void *context;
    /* Inside. */
    int64_t remaining; /* of the body or chunk */
    bool chunked, has_length;
    size_t header_bytes;
    char *line; /* the part of a line that has arrived; owned */
    size_t line_length;
};

/* Ready for the next response; on_body and context stay, memory is kept. A zeroed parser is
 * ready too. */
void http_parser_reset(struct http_parser *parser);
/* Frees the part of a line that is held. */
void http_parser_done(struct http_parser *parser);
/* Takes bytes up to the end of the response and returns how many that were. */
size_t http_parser_feed(struct http_parser *parser, const char *bytes, size_t length);
/* The connection has ended: completes a body that lasts to its end, breaks any other
 * response that has begun. */
void http_parser_end(struct http_parser *parser);
/* Whether anything of a response has arrived. */
bool http_parser_has_begun(const struct http_parser *parser);

#endif
