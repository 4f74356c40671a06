/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests for the HTTP load engine, made beforehand: plain ones, inference by the KServe v2
 * protocol (Triton, MLServer, OpenVINO Model Server, tranche serve …) with inputs made up
 * from the model's own metadata, and streamed completions in OpenAI's form.
 */
#ifndef TRANCHE_LOAD_HTTP_REQUEST_H
#define TRANCHE_LOAD_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "load/http_url.h"

enum http_api { HTTP_API_PLAIN, HTTP_API_KSERVE, HTTP_API_OPENAI, HTTP_API_COUNT };
const char *http_api_name(enum http_api api); /* "plain", "kserve", "openai" */

struct http_request_options {
    enum http_api api;
    const char *model; /* kserve: or in the URL's path; openai: as the server knows it */
    const char *const *headers; /* "Name: value" */
    size_t header_count;
    /* Plain: */
    const char *method; /* NULL: POST with a body, else GET */
    const char *body;   /* NULL: none */
    size_t body_length;
    /* KServe: */
    int batch;          /* what an open first size becomes */
    const char *shapes; /* "input=2x3x224x224,…" for sizes that the model leaves open */
    bool binary;        /* tensors as bytes behind the JSON header */
    /* OpenAI: */
    const char *prompt;
    int tokens_max;
    uint64_t seed; /* of made-up inputs */
};

/* Appends the request for this URL. KServe asks the server for the model's metadata first:
 * E_MISSING when it does not answer or has no such model, E_UNSUPPORTED for types that
 * cannot be made up. E_USAGE for options that do not go together. */
int http_request_make(const struct http_url *url, const struct http_request_options *options,
                      struct str *ret_request, struct error *err);

/* Appends the KServe v2 body for a model with this metadata (the JSON of GET
 * /v2/models/MODEL); *ret_json_length is the length of its JSON part. */
int http_kserve_body(const char *metadata, size_t length,
                     const struct http_request_options *options, struct str *body,
                     size_t *ret_json_length, struct error *err);

/* Appends where a KServe server keeps statistics in Triton's form. E_USAGE as above. */
int http_kserve_statistics(const struct http_url *url,
                           const struct http_request_options *options, struct str *ret_address,
                           struct error *err);

/* Gets a small page (at most 4 MiB). E_MISSING when it does not come, or with a status that
 * is not 200. */
int http_fetch(const char *address, struct str *ret_text, struct error *err);

#endif
