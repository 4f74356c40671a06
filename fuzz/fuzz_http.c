/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP responses and streams of tokens: what comes of any bytes does not depend on how they
 * are cut.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "fuzz.h"
#include "load/http_parser.h"
#include "load/token_stream.h"

static void add_body(void *context, const char *bytes, size_t length)
{
    str_add_bytes(context, bytes, length);
}

/* Reads all in pieces; returns the bytes taken. */
static size_t read_in_pieces(struct http_parser *parser, const uint8_t *data, size_t size,
                             size_t piece)
{
    size_t taken = 0;
    while (taken < size && parser->state != HTTP_COMPLETE && parser->state != HTTP_BROKEN) {
        size_t length = size - taken < piece ? size - taken : piece;
        size_t now = http_parser_feed(parser, (const char *)data + taken, length);
        assert(now <= length && (now > 0 || length == 0));
        taken += now;
    }
    http_parser_end(parser);
    return taken;
}

static void check_tokens(const struct str *body)
{
    struct token_stream whole = {0}, cut = {0};
    token_stream_reset(&whole);
    token_stream_reset(&cut);
    token_stream_feed(&whole, body->bytes, body->length, 1, NULL);
    for (size_t i = 0; i < body->length; i++)
        token_stream_feed(&cut, body->bytes + i, 1, 1, NULL);
    assert(whole.events == cut.events && whole.broken == cut.broken);
    assert(whole.usage_tokens == cut.usage_tokens);
    token_stream_done(&whole);
    token_stream_done(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(str_done) struct str whole_body = STR_EMPTY;
    CLEANUP(str_done) struct str cut_body = STR_EMPTY;
    struct http_parser whole = {.on_body = add_body, .context = &whole_body};
    struct http_parser cut = {.on_body = add_body, .context = &cut_body};

    size_t taken = read_in_pieces(&whole, data, size, size);
    size_t taken_cut = read_in_pieces(&cut, data, size, 1);
    assert(whole.state == cut.state && whole.status == cut.status);
    assert(whole.state != HTTP_COMPLETE || taken == taken_cut);
    assert(whole.state == HTTP_COMPLETE || whole.state == HTTP_BROKEN);
    if (whole.state == HTTP_COMPLETE)
        assert(strcmp(whole_body.bytes, cut_body.bytes) == 0);
    check_tokens(&whole_body);
    http_parser_done(&whole);
    http_parser_done(&cut);
    return 0;
}
