/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's body as a client may send it: the first two bytes say where the JSON header
 * ends (65535: at the end). What is taken is answered, and the answer is JSON again.
 */
#include "../tests/serve/fake_session.h"
#include "base/json.h"
#include "fuzz.h"
#include "serve/kserve.h"

/* One input of each sort: open and fixed sizes, narrow and wide, a scalar. */
static struct session model = {
    .inputs = {{.name = (char *)"x",
                .element = TENSOR_F32,
                .shape = {.rank = 2, .size = {TENSOR_OPEN, 2}}},
               {.name = (char *)"i",
                .element = TENSOR_I8,
                .shape = {.rank = 1, .size = {TENSOR_OPEN}}},
               {.name = (char *)"s", .element = TENSOR_I64, .shape = {.rank = 0}}},
    .outputs = {{.name = (char *)"y",
                 .element = TENSOR_F32,
                 .shape = {.rank = 2, .size = {TENSOR_OPEN, 2}}},
                {.name = (char *)"z",
                 .element = TENSOR_I8,
                 .shape = {.rank = 1, .size = {TENSOR_OPEN}}}},
    .output_count = 2,
};

static void check_taken(struct kserve_request *request)
{
    CLEANUP(str_done) struct str answer = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *json = NULL;
    size_t json_length = 0;
    for (int i = 0; i < request->input_count; i++) {
        const struct tensor *tensor = &request->inputs[i].tensor;
        assert(tensor->size_bytes ==
               tensor_shape_count(&tensor->shape) * tensor_element_bytes(tensor->element));
        volatile char last = ((char *)tensor->data)[tensor->size_bytes - 1];
        (void)last;
    }
    for (int i = 0; i < request->output_count; i++)
        request->outputs[i].tensor = request->inputs[0].tensor;
    kserve_response_write(&model, "m", request, &answer, &json_length);
    assert(json_length <= answer.length);
    int failed = json_parse("answer", answer.bytes, json_length, &json, NULL);
    assert(failed == 0);
    (void)failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kserve_request request;
    struct error err = {0};
    if (size < 2)
        return 0;
    size_t header = (size_t)data[0] | (size_t)data[1] << 8;
    size_t length = size - 2;
    if (header == 65535)
        header = length;
    /* A copy of just that size, for the sanitizer. */
    char *body = xcalloc(length + 1, 1);
    memcpy(body, data + 2, length);
    model.input_count = 1 + (length % 3);
    int failed = kserve_request_read(&model, body, length, header, &request, &err);
    if (failed) {
        assert(err.code == E_INPUT && err.text[0]);
    } else {
        check_taken(&request);
        kserve_request_done(&request);
    }
    free(body);
    return 0;
}
