/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain and OpenAI requests, and the asking for metadata. See http_request.h.
 */
#include "load/http_request.h"

#include <assert.h>
#include <curl/curl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

enum { METADATA_MAX = 4 << 20, METADATA_TIMEOUT_S = 10 };

static const char *const api_names[HTTP_API_COUNT] = {"plain", "kserve", "openai"};

const char *http_api_name(enum http_api api)
{
    assert(api < HTTP_API_COUNT);
    return api_names[api];
}

/* What a request line and headers are made of. */
struct head {
    const char *method, *path, *content_type; /* NULL: none */
    size_t body_length, json_length;          /* json_length 0: not said */
};

static bool names_header(const char *header, const char *name)
{
    size_t length = strlen(name);
    return strncasecmp(header, name, length) == 0 && header[length] == ':';
}

static bool is_given(const struct http_request_options *options, const char *name)
{
    for (size_t i = 0; i < options->header_count; i++)
        if (names_header(options->headers[i], name))
            return true;
    return false;
}

static int check_headers(const struct http_request_options *options, struct error *err)
{
    for (size_t i = 0; i < options->header_count; i++) {
        const char *header = options->headers[i], *colon = strchr(header, ':');
        if (!colon || colon == header || header[strcspn(header, "\r\n")] ||
            names_header(header, "content-length") || names_header(header, "connection"))
            return error_set(err, E_USAGE,
                             "header \"%s\": expected \"Name: value\" (not Content-Length or "
                             "Connection)",
                             header);
    }
    return 0;
}

static void add_head(const struct http_url *url, const struct http_request_options *options,
                     const struct head *head, struct str *text)
{
    str_addf(text, "%s %s HTTP/1.1\r\n", head->method, head->path);
    if (!is_given(options, "host"))
        str_addf(text, "Host: %s\r\n", url->authority);
    if (!is_given(options, "user-agent"))
        str_add(text, "User-Agent: tranche\r\n");
    if (head->content_type && !is_given(options, "content-type"))
        str_addf(text, "Content-Type: %s\r\n", head->content_type);
    if (head->json_length > 0)
        str_addf(text, "Inference-Header-Content-Length: %zu\r\n", head->json_length);
    for (size_t i = 0; i < options->header_count; i++)
        str_addf(text, "%s\r\n", options->headers[i]);
    if (head->body_length > 0 || strcmp(head->method, "GET") != 0)
        str_addf(text, "Content-Length: %zu\r\n", head->body_length);
    str_add(text, "\r\n");
}

static int make_plain(const struct http_url *url, const struct http_request_options *options,
                      struct str *request, struct error *err)
{
    struct head head = {.method = options->method,
                        .path = url->path,
                        .content_type = options->body ? "application/octet-stream" : NULL,
                        .body_length = options->body ? options->body_length : 0};
    if (!head.method)
        head.method = options->body ? "POST" : "GET";
    if (!*head.method || head.method[strspn(head.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] ||
        strcmp(head.method, "HEAD") == 0 || strcmp(head.method, "CONNECT") == 0)
        return error_set(err, E_USAGE, "method \"%s\": expected GET, POST, PUT, DELETE …",
                         head.method);
    add_head(url, options, &head, request);
    if (options->body)
        str_add_bytes(request, options->body, options->body_length);
    return 0;
}

static int make_openai(const struct http_url *url, const struct http_request_options *options,
                       struct str *request, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = json_object();
    CLEANUP(str_done) struct str body = STR_EMPTY;
    struct head head = {
        .method = "POST", .path = url->path, .content_type = "application/json"};
    if (!options->model)
        return error_set(err, E_USAGE, "--api openai needs --model, as the server knows it");
    if (strcmp(head.path, "/") == 0)
        head.path = "/v1/chat/completions";
    json_object_set_new(root, "model", json_string(options->model));
    if (text_ends_with(head.path, "/chat/completions"))
        json_object_set_new(
            root, "messages",
            json_pack("[{s:s, s:s}]", "role", "user", "content", options->prompt));
    else
        json_object_set_new(root, "prompt", json_string(options->prompt));
    json_object_set_new(root, "max_tokens", json_integer(options->tokens_max));
    json_object_set_new(root, "stream", json_true());
    json_object_set_new(root, "stream_options", json_pack("{s:b}", "include_usage", 1));
    json_write_line(root, &body);
    head.body_length = body.length;
    add_head(url, options, &head, request);
    str_add_bytes(request, body.bytes, body.length);
    return 0;
}

static size_t take_metadata(char *bytes, size_t size, size_t count, void *context)
{
    struct str *text = context;
    if (text->length + size * count > METADATA_MAX)
        return 0;
    str_add_bytes(text, bytes, size * count);
    return size * count;
}

int http_fetch(const char *address, struct str *ret_text, struct error *err)
{
    char reason[CURL_ERROR_SIZE] = "";
    long status = 0;
    CURL *curl = curl_easy_init();
    if (!curl)
        return error_set(err, E_MISSING, "libcurl cannot be initialised");
    curl_easy_setopt(curl, CURLOPT_URL, address);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)METADATA_TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_metadata);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret_text);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    if (code != CURLE_OK)
        return error_set(err, E_MISSING, "%s: %s", address,
                         *reason ? reason : curl_easy_strerror(code));
    if (status != 200)
        return error_set(err, E_MISSING, "%s: status %ld (is the model loaded?)", address,
                         status);
    return 0;
}

/* "/v2/models/NAME" from the URL's path or --model. */
static int kserve_path(const struct http_url *url, const struct http_request_options *options,
                       struct str *ret_path, struct error *err)
{
    static const char PREFIX[] = "/v2/models/";
    const char *found = strstr(url->path, PREFIX);
    if (found) {
        size_t start = (size_t)(found - url->path) + strlen(PREFIX);
        size_t length = start + strcspn(url->path + start, "/?");
        str_add_bytes(ret_path, url->path, length);
        return 0;
    }
    if (!options->model)
        return error_set(err, E_USAGE,
                         "--api kserve needs --model, or a URL with /v2/models/MODEL");
    size_t base = strlen(url->path);
    while (base > 0 && url->path[base - 1] == '/')
        base--;
    str_add_bytes(ret_path, url->path, base);
    str_addf(ret_path, "%s%s", PREFIX, options->model);
    return 0;
}

int http_kserve_statistics(const struct http_url *url,
                           const struct http_request_options *options, struct str *ret_address,
                           struct error *err)
{
    CLEANUP(str_done) struct str path = STR_EMPTY;
    int failure = kserve_path(url, options, &path, err);
    if (!failure)
        str_addf(ret_address, "http://%s%s/stats", url->authority, path.bytes);
    return failure;
}

static int make_kserve(const struct http_url *url, const struct http_request_options *options,
                       struct str *request, struct error *err)
{
    CLEANUP(str_done) struct str path = STR_EMPTY;
    CLEANUP(str_done) struct str address = STR_EMPTY;
    CLEANUP(str_done) struct str metadata = STR_EMPTY;
    CLEANUP(str_done) struct str body = STR_EMPTY;
    size_t json_length = 0;
    int failure = kserve_path(url, options, &path, err);
    if (failure)
        return failure;
    str_addf(&address, "http://%s%s", url->authority, path.bytes);
    failure = http_fetch(address.bytes, &metadata, err);
    if (!failure)
        failure = http_kserve_body(metadata.bytes, metadata.length, options, &body,
                                   &json_length, err);
    if (failure)
        return failure;
    str_add(&path, "/infer");
    struct head head = {.method = "POST",
                        .path = path.bytes,
                        .content_type =
                            options->binary ? "application/octet-stream" : "application/json",
                        .body_length = body.length,
                        .json_length = options->binary ? json_length : 0};
    add_head(url, options, &head, request);
    str_add_bytes(request, body.bytes, body.length);
    return 0;
}

int http_request_make(const struct http_url *url, const struct http_request_options *options,
                      struct str *ret_request, struct error *err)
{
    int failure = check_headers(options, err);
    if (failure)
        return failure;
    switch (options->api) {
    case HTTP_API_KSERVE:
        return make_kserve(url, options, ret_request, err);
    case HTTP_API_OPENAI:
        return make_openai(url, options, ret_request, err);
    case HTTP_API_PLAIN:
    case HTTP_API_COUNT:
        break;
    }
    return make_plain(url, options, ret_request, err);
}
