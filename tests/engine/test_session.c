/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading models and running them: right numbers, and clear refusals of what is no model.
 */
#include "ort_fixture.h"

#include <pthread.h>
#include <string.h>

#include "engine/onnx_writer.h"
#include "engine/session.h"

static const struct session_options one_thread = {.threads = 1};

/* y = a × b + 1 over [2, 3]. */
static void write_model(struct str *model)
{
    struct onnx_graph graph = ONNX_GRAPH_EMPTY;
    struct tensor_shape shape = {2, {2, 3}};
    struct onnx_name product = onnx_operator(
        &graph, "Mul", ONNX_INPUTS(onnx_name("a"), onnx_name("b")), ONNX_NO_ATTRIBUTES);
    struct onnx_name sum =
        onnx_operator(&graph, "Add", ONNX_INPUTS(product, onnx_constant_float(&graph, 1)),
                      ONNX_NO_ATTRIBUTES);
    onnx_alias(&graph, sum, onnx_name("y"));
    onnx_input(&graph, onnx_name("a"), TENSOR_F32, &shape);
    onnx_input(&graph, onnx_name("b"), TENSOR_F32, &shape);
    onnx_output(&graph, onnx_name("y"), TENSOR_F32, &shape);
    onnx_finish(&graph, "affine", model);
}

static struct session *open_affine(struct onnx_runtime *runtime)
{
    CLEANUP(str_done) struct str model = STR_EMPTY;
    struct session *session = NULL;
    struct error err;
    write_model(&model);
    if (session_open_bytes(runtime, "affine", &model, &one_thread, &session, &err))
        fail_msg("%s", err.text);
    return session;
}

static float run_first(struct session_call *call, size_t expected_bytes)
{
    struct tensor out;
    struct error err;
    assert_int_equal(session_call_run(call, &err), 0);
    assert_int_equal(session_call_output(call, 0, &out, &err), 0);
    assert_int_equal(out.size_bytes, expected_bytes);
    return ((float *)out.data)[0];
}

static void describes_and_computes(void **state)
{
    (void)state;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    CLEANUP(session_free_ptr) struct session *session = open_affine(runtime);
    CLEANUP(session_call_free_ptr) struct session_call *call = session_call_new(session);
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {2, 2, 2, 3, 3, 3};
    struct tensor ta = {TENSOR_F32, {2, {2, 3}}, a, sizeof a};
    struct tensor tb = {TENSOR_F32, {2, {2, 3}}, b, sizeof b};
    struct error err;
    assert_int_equal(session_input_count(session), 2);
    assert_string_equal(session_input(session, 0)->name, "a");
    assert_int_equal(session_find_input(session, "b"), 1);
    assert_int_equal(session_find_input(session, "c"), -1);
    assert_int_equal(session_find_output(session, "y"), 0);
    assert_int_equal(session_call_bind(call, 0, &ta, &err), 0);
    assert_int_equal(session_call_bind(call, 1, &tb, &err), 0);
    assert_float_equal(run_first(call, sizeof a), 3, 0);
    a[0] = 10; /* bound memory may change between runs */
    assert_float_equal(run_first(call, sizeof a), 21, 0);
    session_call_feed_back(call, 0, 0);
    assert_float_equal(run_first(call, sizeof a), 43, 0);
}

static void refuses_a_wrong_shape(void **state)
{
    (void)state;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    CLEANUP(session_free_ptr) struct session *session = open_affine(runtime);
    CLEANUP(session_call_free_ptr) struct session_call *call = session_call_new(session);
    float a[6] = {0};
    struct tensor wrong = {TENSOR_F32, {2, {3, 2}}, a, sizeof a};
    struct tensor too_short = {TENSOR_F32, {2, {2, 3}}, a, 4};
    struct error err;
    assert_int_equal(session_call_bind(call, 0, &too_short, &err), -E_INPUT);
    assert_non_null(strstr(err.text, "input a"));
    assert_int_equal(session_call_bind(call, 0, &wrong, &err), 0);
    assert_int_equal(session_call_bind(call, 1, &wrong, &err), 0);
    assert_int_equal(session_call_run(call, &err), -E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "dimensions"));
}

static void refuses_what_is_no_model(void **state)
{
    (void)state;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    CLEANUP(str_done) struct str model = STR_EMPTY;
    struct session *session = NULL;
    struct error err;
    assert_int_equal(
        session_open_file(runtime, "/nonexistent.onnx", &one_thread, &session, &err), -E_IO);
    assert_int_equal(session_open_file(runtime, "/tmp", &one_thread, &session, &err), -E_IO);
    assert_non_null(strstr(err.text, "directory"));
    assert_int_equal(session_open_file(runtime, "/dev/null", &one_thread, &session, &err),
                     -E_MISSING);
    str_add(&model, "\x01garbage that is no protobuf message");
    assert_int_equal(
        session_open_bytes(runtime, "bad.onnx", &model, &one_thread, &session, &err),
        -E_MISSING);
    assert_non_null(strstr(err.text, "bad.onnx: cannot load this model"));
    assert_int_equal(error_exit_status(err.code), 4);
    /* Cut anywhere, it is refused and never crashes. */
    str_clear(&model);
    write_model(&model);
    for (size_t length = 0; length < model.length; length += 7) {
        struct str cut = {.bytes = model.bytes, .length = length};
        assert_int_not_equal(
            session_open_bytes(runtime, "cut", &cut, &one_thread, &session, &err), 0);
    }
    assert_null(session);
}

static void gpu_providers_say_what_is_missing(void **state)
{
    (void)state;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    CLEANUP(str_done) struct str model = STR_EMPTY;
    CLEANUP(str_done) struct str providers = STR_EMPTY;
    onnx_runtime_providers(runtime, &providers);
    if (strstr(providers.bytes, "CUDA"))
        skip();
    write_model(&model);
    for (int p = SESSION_CUDA; p < SESSION_PROVIDER_COUNT; p++) {
        struct session_options options = {.provider = (enum session_provider)p};
        struct session *session = NULL;
        struct error err;
        assert_int_equal(
            session_open_bytes(runtime, "affine", &model, &options, &session, &err),
            -E_MISSING);
        assert_non_null(strstr(err.text, "not enabled in this build"));
    }
}

struct job {
    struct session *session;
    float factor;
    bool ok;
};

static void *run_many(void *context)
{
    struct job *job = context;
    CLEANUP(session_call_free_ptr) struct session_call *call = session_call_new(job->session);
    float a[6], b[6];
    struct tensor ta = {TENSOR_F32, {2, {2, 3}}, a, sizeof a}, out;
    struct tensor tb = {TENSOR_F32, {2, {2, 3}}, b, sizeof b};
    for (int i = 0; i < 6; i++) {
        a[i] = (float)i;
        b[i] = job->factor;
    }
    job->ok = !session_call_bind(call, 0, &ta, NULL) && !session_call_bind(call, 1, &tb, NULL);
    for (int run = 0; run < 200 && job->ok; run++)
        job->ok = !session_call_run(call, NULL) && !session_call_output(call, 0, &out, NULL) &&
                  ((float *)out.data)[5] == 5 * job->factor + 1;
    return NULL;
}

static void threads_share_a_session(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    CLEANUP(session_free_ptr) struct session *session = open_affine(runtime);
    struct job jobs[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.session = session, .factor = (float)(i + 1)};
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(jobs[i].ok);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_and_computes),
        cmocka_unit_test(refuses_a_wrong_shape),
        cmocka_unit_test(refuses_what_is_no_model),
        cmocka_unit_test(gpu_providers_say_what_is_missing),
        cmocka_unit_test(threads_share_a_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
