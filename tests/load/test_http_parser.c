/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP responses cut at every byte, streams of tokens, URLs, requests made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "load/http_parser.h"
#include "load/http_request.h"
#include "load/http_url.h"
#include "load/token_stream.h"

static void add_body(void *context, const char *bytes, size_t length)
{
    str_add_bytes(context, bytes, length);
}

static const struct {
    const char *text;
    int status;
    const char *body;
    bool keeps_alive, ends; /* ends: the connection's end completes it */
} good[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true, false},
    {"HTTP/1.1 200 OK\ncontent-length:5\n\nhello", 200, "hello", true, false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", false, false},
    {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", 200, "x", true,
     false},
    {"HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", 503, "no", false,
     false},
    {"HTTP/1.1 204 None\r\n\r\n", 204, "", true, false},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 1\r\n\r\ny", 201, "y",
     true, false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n"
     "0\r\nX: y\r\n\r\n",
     200, "hello!", true, false},
    {"HTTP/1.1 200 OK\r\n\r\nto the end", 200, "to the end", false, true},
};

/* The same result whatever the pieces. */
static void test_good_responses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t length = strlen(good[i].text);
        for (size_t cut = 1; cut <= length; cut++) {
            CLEANUP(str_done) struct str body = STR_EMPTY;
            struct http_parser parser = {.on_body = add_body, .context = &body};
            size_t taken = 0;
            while (taken < length) {
                size_t piece = cut < length - taken ? cut : length - taken;
                assert_int_equal(http_parser_feed(&parser, good[i].text + taken, piece), piece);
                taken += piece;
            }
            if (good[i].ends)
                http_parser_end(&parser);
            if (parser.state != HTTP_COMPLETE || parser.status != good[i].status ||
                parser.keeps_alive != good[i].keeps_alive ||
                strcmp(body.bytes, good[i].body) != 0)
                fail_msg("case %zu in pieces of %zu: state %d status %d body \"%s\"", i, cut,
                         (int)parser.state, parser.status, body.bytes);
            http_parser_done(&parser);
        }
    }
}

static void test_bad_responses(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct http_parser parser = {0};
        http_parser_feed(&parser, bad[i], strlen(bad[i]));
        if (parser.state != HTTP_BROKEN)
            fail_msg("case %zu: state %d", i, (int)parser.state);
        assert_non_null(parser.problem);
        http_parser_done(&parser);
    }
}

static void test_limits_and_ends(void **state)
{
    (void)state;
    struct http_parser parser = {0};
    for (int i = 0; i < HTTP_LINE_MAX && parser.state != HTTP_BROKEN; i++)
        http_parser_feed(&parser, "a", 1);
    http_parser_feed(&parser, "a", 1);
    assert_int_equal(parser.state, HTTP_BROKEN);
    http_parser_reset(&parser);
    http_parser_feed(&parser, "HTTP/1.1 200 OK\r\n", 17);
    for (int i = 0; i < HTTP_HEADERS_MAX / 10 + 1; i++)
        http_parser_feed(&parser, "name: val\n", 10);
    assert_int_equal(parser.state, HTTP_BROKEN);
    http_parser_reset(&parser);
    assert_false(http_parser_has_begun(&parser));
    http_parser_feed(&parser, "H", 1);
    assert_true(http_parser_has_begun(&parser));
    http_parser_end(&parser);
    assert_int_equal(parser.state, HTTP_BROKEN);
    http_parser_done(&parser);
}

/* Only the response's own bytes are taken. */
static void test_what_follows_is_left(void **state)
{
    (void)state;
    static const char two[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500";
    struct http_parser parser = {0};
    assert_int_equal(http_parser_feed(&parser, two, strlen(two)), strlen(two) - 12);
    http_parser_done(&parser);
}

static void test_token_streams(void **state)
{
    (void)state;
    static const char text[] =
        ": comment\r\n\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"a\"}}]}"
        "\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
        "data:{\"choices\":[{\"text\":\"b\"}]}\r\n\r\n"
        "data: {\"choices\":[{\"delta\":{\"content\":\"c\"}}]}\n\n"
        "data: {\"choices\":[],\"usage\":{\"completion_tokens\":5}}\n\n"
        "data: [DONE]\n\n";
    for (size_t cut = 1; cut < sizeof text; cut++) {
        struct token_stream stream = {0};
        struct hist *gaps = hist_new();
        token_stream_reset(&stream);
        for (size_t at = 0; at < sizeof text - 1; at += cut) {
            size_t piece = sizeof text - 1 - at < cut ? sizeof text - 1 - at : cut;
            token_stream_feed(&stream, text + at, piece, (int64_t)at + 1, gaps);
        }
        assert_true(stream.done && !stream.broken);
        assert_int_equal(stream.events, 3);
        assert_int_equal(token_stream_count(&stream), 5);
        assert_int_equal(hist_count(gaps), 2);
        hist_free(gaps);
        token_stream_done(&stream);
    }
    struct token_stream stream = {0};
    token_stream_reset(&stream);
    token_stream_feed(&stream, "data: {broken\n", 14, 1, NULL);
    assert_true(stream.broken);
    token_stream_done(&stream);
}

static void test_urls(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host, *port, *path;
    } cases[] = {
        {"http://h", "h", "80", "/"},
        {"http://h:81", "h", "81", "/"},
        {"http://h:81/a/b?c=d", "h", "81", "/a/b?c=d"},
        {"http://h?x", "h", "80", "/?x"},
        {"http://[::1]:8000/", "::1", "8000", "/"},
        {"https://h/", NULL, NULL, NULL},
        {"h:80", NULL, NULL, NULL},
        {"http://", NULL, NULL, NULL},
        {"http://h:0/", NULL, NULL, NULL},
        {"http://h:x/", NULL, NULL, NULL},
        {"http://u@h/", NULL, NULL, NULL},
        {"http://h/a b", NULL, NULL, NULL},
        {"http://h/a\r\nX: y", NULL, NULL, NULL},
        {"http://[::1/", NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_url url;
        struct error err;
        int failure = http_url_parse(cases[i].text, &url, &err);
        if ((failure == 0) != (cases[i].host != NULL))
            fail_msg("\"%s\": %d", cases[i].text, failure);
        if (failure)
            continue;
        assert_string_equal(url.host, cases[i].host);
        assert_string_equal(url.port, cases[i].port);
        assert_string_equal(url.path, cases[i].path);
    }
}

static void test_nobody_listens(void **state)
{
    (void)state;
    struct http_url url;
    struct http_address address;
    struct error err;
    assert_int_equal(http_url_parse("http://127.0.0.1:1/", &url, &err), 0);
    assert_int_equal(http_url_reach(&url, 1000, &address, &err), -E_MISSING);
    assert_non_null(strstr(err.text, "127.0.0.1:1"));
}

static const char METADATA[] =
    "{\"name\":\"m\",\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,3,-1]},"
    "{\"name\":\"t\",\"datatype\":\"BYTES\",\"shape\":[-1]}]}";

/* Values in the shapes said, as JSON and as bytes. */
static void test_kserve_bodies(void **state)
{
    (void)state;
    for (int binary = 0; binary < 2; binary++) {
        struct http_request_options options = {.api = HTTP_API_KSERVE,
                                               .batch = 2,
                                               .shapes = "x=Nx3x4",
                                               .binary = binary,
                                               .seed = 1};
        CLEANUP(str_done) struct str body = STR_EMPTY;
        CLEANUP(json_decref_ptr) json_t *root = NULL;
        size_t json_length = 0;
        struct error err;
        if (http_kserve_body(METADATA, strlen(METADATA), &options, &body, &json_length, &err))
            fail_msg("%s", err.text);
        assert_int_equal(json_parse("body", body.bytes, json_length, &root, &err), 0);
        const json_t *x = json_array_get(json_object_get(root, "inputs"), 0);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(x, "shape"), 2)), 4);
        if (binary)
            assert_int_equal(body.length - json_length, 24 * 4 + 2 * 5);
        else
            assert_int_equal(json_array_size(json_object_get(x, "data")), 24);
    }
}

static void test_kserve_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *metadata, *shapes;
        int code;
    } cases[] = {
        {"{", NULL, -E_INPUT},
        {"{}", NULL, -E_INPUT},
        {"{\"inputs\":[{\"name\":\"x\"}]}", NULL, -E_INPUT},
        {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"BF16\",\"shape\":[1]}]}", NULL,
         -E_UNSUPPORTED},
        {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[60000,60000]}]}", NULL,
         -E_INPUT},
        {METADATA, "x=2x3", -E_USAGE},
        {METADATA, "x=2x3x4x5", -E_USAGE},
        {METADATA, "x=2x3xM", -E_USAGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_request_options options = {
            .api = HTTP_API_KSERVE, .batch = 1, .shapes = cases[i].shapes};
        CLEANUP(str_done) struct str body = STR_EMPTY;
        size_t json_length = 0;
        struct error err;
        int failure = http_kserve_body(cases[i].metadata, strlen(cases[i].metadata), &options,
                                       &body, &json_length, &err);
        if (failure != cases[i].code)
            fail_msg("case %zu: %d", i, failure);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_responses),  cmocka_unit_test(test_bad_responses),
        cmocka_unit_test(test_limits_and_ends), cmocka_unit_test(test_what_follows_is_left),
        cmocka_unit_test(test_token_streams),   cmocka_unit_test(test_urls),
        cmocka_unit_test(test_nobody_listens),  cmocka_unit_test(test_kserve_bodies),
        cmocka_unit_test(test_kserve_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
