/* SPDX-License-Identifier: Apache-2.0
 *
 * The KServe v2 inference protocol ("Open Inference Protocol", REST) as values: an infer
 * request read from an HTTP body, an infer response written to one, and the metadata of a
 * model. Tensors may be JSON lists (nested or flat) or, with the binary data extension,
 * raw little-endian bytes behind the JSON header, whose length is then the HTTP header
 * Inference-Header-Content-Length. No I/O here.
 */
#ifndef TRANCHE_SERVE_KSERVE_H
#define TRANCHE_SERVE_KSERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/session.h"
#include "engine/tensor.h"

enum { KSERVE_TENSORS_MAX = 64 };

struct kserve_input {
    int index; /* of the session's inputs */
    struct tensor tensor;
};

struct kserve_output {
    int index; /* of the session's outputs */
    bool binary;
    struct tensor tensor; /* filled by who runs the model; memory in the request's arena */
};

struct kserve_request {
    struct arena arena; /* owns all text, and what is not in the body */
    const char *id;     /* "" when the client gave none */
    struct kserve_input inputs[KSERVE_TENSORS_MAX]; /* in the session's order */
    int input_count;
    struct kserve_output outputs[KSERVE_TENSORS_MAX]; /* as asked for, or all */
    int output_count;
    int64_t rows; /* first size of the first input; 1 for a scalar */
};

/* Reads an infer request and holds it against the model: every input there once, of the
 * model's type, rank and fixed sizes, with just as many values as its shape says. Binary
 * tensors point into body where aligned, so body must outlive the request. json_length is
 * the length of the JSON header, or body_length. E_INPUT with the field's path. */
int kserve_request_read(const struct session *session, const char *body, size_t body_length,
                        size_t json_length, struct kserve_request *ret_request,
                        struct error *err);
/* Frees what the request owns. */
void kserve_request_done(struct kserve_request *request);

/* Appends the response; *ret_json_length is the length of its JSON header, which equals
 * the whole where no output is binary. */
void kserve_response_write(const struct session *session, const char *model,
                           const struct kserve_request *request, struct str *body,
                           size_t *ret_json_length);
/* {"error": text} */
void kserve_error_write(const char *text, struct str *body);
/* The answer to GET /v2/models/MODEL. */
void kserve_model_metadata(const struct session *session, const char *model, struct str *body);

#endif
