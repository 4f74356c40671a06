/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up inputs: shapes given and guessed, on generated and on real models.
 */
#include "ort_fixture.h"

#include <string.h>

#include "engine/made_inputs.h"
#include "engine/model_catalog.h"
#include "engine/session.h"

static const struct session_options one_thread = {.threads = 1};

static struct session *open_cnn(struct onnx_runtime *runtime)
{
    CLEANUP(str_done) struct str model = STR_EMPTY;
    struct model_choice choice;
    struct session *session = NULL;
    struct error err;
    assert_int_equal(model_choose("cnn:size=16", &choice, &err), 0);
    model_write(&choice, 2, &model);
    assert_int_equal(session_open_bytes(runtime, "cnn", &model, &one_thread, &session, &err),
                     0);
    return session;
}

static void same_seed_same_bytes(void **state)
{
    (void)state;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    CLEANUP(session_free_ptr) struct session *session = open_cnn(runtime);
    CLEANUP(made_inputs_free_ptr) struct made_inputs *a = NULL;
    CLEANUP(made_inputs_free_ptr) struct made_inputs *b = NULL;
    CLEANUP(made_inputs_free_ptr) struct made_inputs *c = NULL;
    struct error err;
    assert_int_equal(made_inputs_new(session, 2, NULL, 1, &a, &err), 0);
    assert_int_equal(made_inputs_new(session, 2, NULL, 1, &b, &err), 0);
    assert_int_equal(made_inputs_new(session, 2, "x=Nx3x16x16", 2, &c, &err), 0);
    size_t bytes = a->tensors[0].size_bytes;
    assert_int_equal(bytes, 2 * 3 * 16 * 16 * 4);
    assert_memory_equal(a->tensors[0].data, b->tensors[0].data, bytes);
    assert_memory_not_equal(a->tensors[0].data, c->tensors[0].data, bytes);
    for (size_t i = 0; i < bytes / 4; i++)
        assert_in_range((int)((((float *)a->tensors[0].data)[i] + 1) * 1000), 0, 2000);
}

static void refuses_wrong_shapes(void **state)
{
    (void)state;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    CLEANUP(session_free_ptr) struct session *session = open_cnn(runtime);
    static const struct {
        int batch;
        const char *shapes, *says;
        int code;
    } cases[] = {
        {2, "z=Nx3", "no input of that name", E_INPUT},
        {2, "x", "expected INPUT=", E_INPUT},
        {2, "x=Nx3x16", "has 4 sizes, the shape given has 3", E_INPUT},
        {2, "x=Nx3x16x17", "fixes size 3 to 16", E_INPUT},
        {2, "x=Nx3x0x16", "expected sizes", E_INPUT},
        {2, "x=Nx3x-1x16", "expected sizes", E_INPUT},
        {2, "x=Nx3x16x16y", "expected sizes", E_INPUT},
        {2, "x=1x1x1x1x1x1x1x1x1", "expected sizes", E_INPUT},
        {2, "x=99999999999999999999x3x16x16", "expected sizes", E_INPUT},
        {4, NULL, "fixes its batch to 2, asked for 4", E_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made_inputs *inputs = NULL;
        struct error err = {0};
        int result =
            made_inputs_new(session, cases[i].batch, cases[i].shapes, 1, &inputs, &err);
        if (result != -cases[i].code || !strstr(err.text, cases[i].says))
            fail_msg("%s: %d %s", cases[i].shapes, result, err.text);
        assert_null(inputs);
    }
}

static void run_real(struct session *session, const char *model, int batch)
{
    CLEANUP(made_inputs_free_ptr) struct made_inputs *inputs = NULL;
    struct error err;
    struct tensor out;
    if (made_inputs_new(session, batch, NULL, 1, &inputs, &err))
        fail_msg("%s", err.text);
    CLEANUP(session_call_free_ptr) struct session_call *call = session_call_new(session);
    for (size_t i = 0; i < inputs->count; i++)
        assert_int_equal(session_call_bind(call, i, &inputs->tensors[i], &err), 0);
    if (session_call_run(call, &err) || session_call_output(call, 0, &out, &err))
        fail_msg("%s batch %d: %s", model, batch, err.text);
    assert_int_equal(out.shape.size[0], batch);
}

/* Each real model runs on what is made up for it, at two batches. */
static void real_models_run(void **state)
{
    (void)state;
    static const char *const models[] = {"ppocr_det", "ppocr_rec", "ppocr_cls", "silero_vad"};
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        CLEANUP(free_ptr) char *path = find_model(models[m]);
        CLEANUP(session_free_ptr) struct session *session = NULL;
        struct error err;
        if (!path)
            skip();
        if (session_open_file(runtime, path, &one_thread, &session, &err))
            fail_msg("%s", err.text);
        run_real(session, models[m], 1);
        run_real(session, models[m], 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_same_bytes),
        cmocka_unit_test(refuses_wrong_shapes),
        cmocka_unit_test(real_models_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
