/* SPDX-License-Identifier: Apache-2.0
 *
 * Built-in models: their text form, and that each loads and runs with finite outputs.
 */
#include "ort_fixture.h"

#include <math.h>
#include <string.h>

#include "engine/made_inputs.h"
#include "engine/model_catalog.h"
#include "engine/session.h"

static void text_form(void **state)
{
    (void)state;
    struct model_choice choice;
    struct error err;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"resnt", "did you mean resnet"},
        {"resnet:deep=3", "expected depth, size, classes"},
        {"resnet:depth=0", "from 18 to 152"},
        {"resnet:depth", "from 18 to 152"},
        {"resnet:", "no size"},
        {"resnet:depth=1e3", "from 18"},
    };
    assert_true(model_is_builtin("resnet:depth=50"));
    assert_true(model_is_builtin("bert"));
    assert_false(model_is_builtin("resnet.onnx"));
    assert_int_equal(model_choose("resnet:depth=50,size=64", &choice, &err), 0);
    assert_int_equal(choice.sizes[0], 50);
    assert_int_equal(choice.sizes[1], 64);
    assert_int_equal(choice.sizes[2], 1000);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(model_choose(bad[i].text, &choice, &err), -E_INPUT);
        if (!strstr(err.text, bad[i].says))
            fail_msg("%s: %s", bad[i].text, err.text);
    }
}

static void runs(struct onnx_runtime *runtime, const char *text, int batch)
{
    struct model_choice choice;
    struct error err;
    struct tensor out;
    CLEANUP(str_done) struct str model = STR_EMPTY;
    CLEANUP(session_free_ptr) struct session *session = NULL;
    CLEANUP(made_inputs_free_ptr) struct made_inputs *inputs = NULL;
    struct session_options options = {.threads = 1};
    assert_int_equal(model_choose(text, &choice, &err), 0);
    model_write(&choice, batch, &model);
    if (session_open_bytes(runtime, text, &model, &options, &session, &err) ||
        made_inputs_new(session, batch, NULL, 1, &inputs, &err))
        fail_msg("%s", err.text);
    CLEANUP(session_call_free_ptr) struct session_call *call = session_call_new(session);
    assert_int_equal(session_call_bind(call, 0, &inputs->tensors[0], &err), 0);
    if (session_call_run(call, &err) || session_call_output(call, 0, &out, &err))
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(out.shape.size[0], batch);
    float least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < tensor_shape_count(&out.shape); i++) {
        least = fminf(least, ((float *)out.data)[i]);
        most = fmaxf(most, ((float *)out.data)[i]);
    }
    assert_true(isfinite(least) && isfinite(most) && least < most);
}

static void every_kind_runs(void **state)
{
    (void)state;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    runs(runtime, "conv-stack:channels=8,layers=2,size=8", 1);
    runs(runtime, "conv-stack:channels=8,layers=2,size=8", 3);
    runs(runtime, "resnet:size=32,classes=10", 2);
    runs(runtime, "resnet:depth=50,size=32,classes=10", 1);
    runs(runtime, "bert:layers=2,hidden=64,length=16,vocabulary=100", 2);
    runs(runtime, "cnn:size=16", 2);
}

static void same_bytes_each_time(void **state)
{
    (void)state;
    struct model_choice choice;
    struct error err;
    CLEANUP(str_done) struct str a = STR_EMPTY;
    CLEANUP(str_done) struct str b = STR_EMPTY;
    assert_int_equal(model_choose("cnn", &choice, &err), 0);
    model_write(&choice, 2, &a);
    model_write(&choice, 2, &b);
    assert_int_equal(a.length, b.length);
    assert_memory_equal(a.bytes, b.bytes, a.length);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_form),
        cmocka_unit_test(every_kind_runs),
        cmocka_unit_test(same_bytes_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
