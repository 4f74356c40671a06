/* SPDX-License-Identifier: Apache-2.0
 *
 * The KServe v2 codec: what is taken, what is refused and with which words, and what goes
 * out again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/json.h"
#include "fake_session.h"
#include "serve/kserve.h"

#define X "\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2]"

/* A model with one input of every kind that a case needs. */
static struct session session = FAKE_SESSION;

static void use_input(enum tensor_element element, int rank, int64_t first)
{
    session.inputs[0].element = session.outputs[0].element = element;
    session.inputs[0].shape = session.outputs[0].shape =
        (struct tensor_shape){.rank = rank, .size = {first, 2}};
}

static int read_body(const char *body, size_t length, size_t json_length,
                     struct kserve_request *request, struct error *err)
{
    /* Exactly as long as it is, so that the sanitizer sees a byte too many. */
    char *copy = xmemdup(body, length + (length == 0));
    int failed = kserve_request_read(&session, copy, length, json_length, request, err);
    if (!failed && request->inputs[0].tensor.data >= (void *)copy &&
        request->inputs[0].tensor.data < (void *)(copy + length)) {
        request->inputs[0].tensor.data = arena_alloc(&request->arena, length, 1);
        memcpy(request->inputs[0].tensor.data, copy + json_length, length - json_length);
    }
    free(copy);
    return failed;
}

struct refused_case {
    const char *body;
    const char *words;
};

static const struct refused_case REFUSED[] = {
    {"", "request:1:"},
    {"{", "request:1:"},
    {"[]", "not an object"},
    {"{}", "inputs"},
    {"{\"inputs\":{}}", "inputs"},
    {"{\"inputs\":[]}", "input 'x' is missing"},
    {"{\"inputs\":[1]}", "inputs[0]"},
    {"{\"inputs\":[{}]}", "name"},
    {"{\"inputs\":[{\"name\":\"q\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2]}]}",
     "no input 'q'"},
    {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT64\",\"shape\":[1,2],\"data\":[1,2]}]}",
     "type 'INT64', the model takes FP32"},
    {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"data\":[1,2]}]}", "shape"},
    {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[1,2]}]}",
     "1 sizes, the model takes 2"},
    {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,3],\"data\":[1,2,3]}]}",
     "size 1 is 3, the model takes 2"},
    {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[0,2],\"data\":[]}]}",
     "whole number from 1"},
    {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,2],\"data\":[]}]}",
     "whole number from 1"},
    {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1.5,2],\"data\":[]}]}",
     "whole number from 1"},
    {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2147483648,2],\"data\":[]}]"
     "}",
     "whole number from 1"},
    {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2147483647,2],\"data\":[1,"
     "2]}]}",
     "shape needs 4294967294"},
    {"{\"inputs\":[{" X "}]}", "data"},
    {"{\"inputs\":[{" X ",\"data\":[1]}]}", "data has 1 values, shape needs 2"},
    {"{\"inputs\":[{" X ",\"data\":[1,2,3]}]}", "data has 3 values"},
    {"{\"inputs\":[{" X ",\"data\":[1,\"2\"]}]}", "not a number"},
    {"{\"inputs\":[{" X ",\"data\":[1,null]}]}", "not a number"},
    {"{\"inputs\":[{" X ",\"data\":[1,{}]}]}", "not a number"},
    {"{\"inputs\":[{" X ",\"data\":[1,2]},{" X ",\"data\":[1,2]}]}", "given twice"},
    {"{\"inputs\":[{" X ",\"parameters\":{\"binary_data_size\":8}}]}", "only 0 bytes are left"},
    {"{\"inputs\":[{" X ",\"parameters\":{\"binary_data_size\":7}}]}", "shape and type need 2"},
    {"{\"inputs\":[{" X ",\"parameters\":{\"binary_data_size\":-1}}]}", "binary_data_size"},
    {"{\"inputs\":[{" X ",\"parameters\":[],\"data\":[1,2]}]}", "parameters"},
    {"{\"id\":5,\"inputs\":[{" X ",\"data\":[1,2]}]}", "id"},
    {"{\"inputs\":[{" X ",\"data\":[1,2]}],\"outputs\":[{\"name\":\"q\"}]}", "no output 'q'"},
    {"{\"inputs\":[{" X ",\"data\":[1,2]}],\"outputs\":[{}]}", "name"},
    {"{\"inputs\":[{" X ",\"data\":[1,2]}],\"outputs\":5}", "outputs"},
    {"{\"inputs\":[{" X ",\"data\":[1,2]}],\"outputs\":[5]}", "outputs[0]: not an object"},
};

static void refuses_with_the_field(void **state)
{
    (void)state;
    use_input(TENSOR_F32, 2, TENSOR_OPEN);
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        struct kserve_request request;
        struct error err = {0};
        size_t length = strlen(REFUSED[i].body);
        int failed = read_body(REFUSED[i].body, length, length, &request, &err);
        if (failed != -E_INPUT || !strstr(err.text, REFUSED[i].words))
            fail_msg("%s\n  gave %d \"%s\", expected \"%s\"", REFUSED[i].body, failed, err.text,
                     REFUSED[i].words);
    }
}

static void reads_lists_flat_and_nested(void **state)
{
    static const char *const BODIES[] = {"{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\","
                                         "\"shape\":[2,2],\"data\":[1,2.5,-3,4e1]}]}",
                                         "{\"id\":\"é\",\"inputs\":[{\"name\":\"x\","
                                         "\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":"
                                         "[[1,2.5],[-3,40]]}],\"outputs\":[],\"unknown\":7}"};
    static const float WANTED[] = {1, 2.5f, -3, 40};
    (void)state;
    use_input(TENSOR_F32, 2, TENSOR_OPEN);
    for (size_t i = 0; i < 2; i++) {
        struct kserve_request request;
        struct error err = {0};
        size_t length = strlen(BODIES[i]);
        assert_int_equal(read_body(BODIES[i], length, length, &request, &err), 0);
        assert_int_equal(request.rows, 2);
        assert_int_equal(request.output_count, 1);
        assert_memory_equal(request.inputs[0].tensor.data, WANTED, sizeof WANTED);
        assert_string_equal(request.id, i ? "é" : "");
        kserve_request_done(&request);
    }
}

struct element_case {
    enum tensor_element element;
    const char *name, *good, *bad; /* lists of two */
    unsigned char bytes[16];
};

static const struct element_case ELEMENTS[] = {
    {TENSOR_U8, "UINT8", "[0,255]", "[0,256]", {0, 255}},
    {TENSOR_I8, "INT8", "[-128,127]", "[-129,0]", {128, 127}},
    {TENSOR_U16, "UINT16", "[1,65535]", "[-1,0]", {1, 0, 255, 255}},
    {TENSOR_I16, "INT16", "[-2,2]", "[32768,0]", {254, 255, 2, 0}},
    {TENSOR_I32, "INT32", "[-1,7]", "[2147483648,0]", {255, 255, 255, 255, 7}},
    {TENSOR_U32, "UINT32", "[4294967295,1]", "[1.0,0]", {255, 255, 255, 255, 1}},
    {TENSOR_I64,
     "INT64",
     "[-1,2]",
     "[9223372036854775808,1]",
     {255, 255, 255, 255, 255, 255, 255, 255, 2}},
    {TENSOR_BOOL, "BOOL", "[true,false]", "[2,0]", {1, 0}},
    {TENSOR_F64,
     "FP64",
     "[0,1]",
     "[true,1]",
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
};

static void reads_and_writes_every_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ELEMENTS / sizeof *ELEMENTS; i++) {
        const struct element_case *c = &ELEMENTS[i];
        struct kserve_request request;
        struct error err = {0};
        use_input(c->element, 2, TENSOR_OPEN);
        for (int good = 0; good < 2; good++) {
            CLEANUP(free_ptr)
            char *body =
                xasprintf("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"%s\",\"shape\":[1,"
                          "2],\"data\":%s}]}",
                          c->name, good ? c->good : c->bad);
            int failed = read_body(body, strlen(body), strlen(body), &request, &err);
            if ((failed == 0) != good)
                fail_msg("%s: %s", body, err.text);
        }
        size_t bytes = 2 * tensor_element_bytes(c->element);
        assert_memory_equal(request.inputs[0].tensor.data, c->bytes, bytes);
        CLEANUP(str_done) struct str out = STR_EMPTY;
        size_t json_length = 0;
        request.outputs[0].tensor = request.inputs[0].tensor;
        kserve_response_write(&session, "m", &request, &out, &json_length);
        assert_int_equal(json_length, out.length);
        const char *data = c->element == TENSOR_BOOL ? "[1,0]" : c->good;
        if (!strstr(out.bytes, data) && c->element != TENSOR_BOOL)
            fail_msg("%s: no %s", out.bytes, data);
        kserve_request_done(&request);
    }
}

/* JSON header, then tensors: in and out. */
static void binary_tensors(void **state)
{
    static const char HEADER[] =
        "{\"parameters\":{\"binary_data_output\":true},\"inputs\":[{\"name\":\"x\","
        "\"datatype\":"
        "\"FP32\",\"shape\":[1,2],\"parameters\":{\"binary_data_size\":8}}]}";
    static const float VALUES[] = {1.5f, -2};
    (void)state;
    use_input(TENSOR_F32, 2, TENSOR_OPEN);
    CLEANUP(str_done) struct str body = STR_EMPTY, out = STR_EMPTY;
    struct kserve_request request;
    struct error err = {0};
    str_add(&body, HEADER);
    str_add_bytes(&body, VALUES, sizeof VALUES);
    assert_int_equal(read_body(body.bytes, body.length, strlen(HEADER), &request, &err), 0);
    assert_memory_equal(request.inputs[0].tensor.data, VALUES, sizeof VALUES);
    assert_true(request.outputs[0].binary);
    request.outputs[0].tensor = request.inputs[0].tensor;
    size_t json_length = 0;
    kserve_response_write(&session, "m", &request, &out, &json_length);
    assert_int_equal(out.length, json_length + sizeof VALUES);
    assert_memory_equal(out.bytes + json_length, VALUES, sizeof VALUES);
    CLEANUP(json_decref_ptr) json_t *json = NULL;
    assert_int_equal(json_parse("answer", out.bytes, json_length, &json, &err), 0);
    kserve_request_done(&request);

    str_add_char(&body, 'x'); /* a byte that belongs to nothing */
    assert_int_equal(read_body(body.bytes, body.length, strlen(HEADER), &request, &err),
                     -E_INPUT);
    assert_non_null(strstr(err.text, "belong to no input"));
    assert_int_equal(read_body(body.bytes, body.length, body.length + 1, &request, &err),
                     -E_INPUT);
    assert_non_null(strstr(err.text, "Inference-Header-Content-Length"));
}

static void shape_asks_for_no_memory(void **state)
{
    static const char BODY[] =
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2147483647,"
        "2147483647,2147483647,2147483647],\"data\":[1]}]}";
    struct kserve_request request;
    struct error err = {0};
    (void)state;
    session.inputs[0].element = TENSOR_F32;
    session.inputs[0].shape = (struct tensor_shape){
        .rank = 4, .size = {TENSOR_OPEN, TENSOR_OPEN, TENSOR_OPEN, TENSOR_OPEN}};
    assert_int_equal(read_body(BODY, strlen(BODY), strlen(BODY), &request, &err), -E_INPUT);
}

static void metadata_and_errors_are_json(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *json = NULL;
    struct error err = {0};
    (void)state;
    use_input(TENSOR_F32, 2, TENSOR_OPEN);
    kserve_model_metadata(&session, "m", &text);
    assert_string_equal(
        text.bytes, "{\"name\":\"m\",\"versions\":[\"1\"],\"platform\":\"onnxruntime_onnx\","
                    "\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,2]}],"
                    "\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,2]}]}");
    str_clear(&text);
    kserve_error_write("a \"quoted\"\n line", &text);
    assert_int_equal(json_parse("error", text.bytes, text.length, &json, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_with_the_field),
        cmocka_unit_test(reads_lists_flat_and_nested),
        cmocka_unit_test(reads_and_writes_every_type),
        cmocka_unit_test(binary_tensors),
        cmocka_unit_test(shape_asks_for_no_memory),
        cmocka_unit_test(metadata_and_errors_are_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
