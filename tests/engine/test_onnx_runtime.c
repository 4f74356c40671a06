/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding the library, and saying clearly why not.
 */
#include "ort_fixture.h"

#include <string.h>

static void says_what_it_is(void **state)
{
    (void)state;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    CLEANUP(str_done) struct str providers = STR_EMPTY;
    onnx_runtime_providers(runtime, &providers);
    assert_non_null(strstr(providers.bytes, "CPUExecutionProvider"));
    assert_true(onnx_runtime_version(runtime)[0] >= '1');
    assert_int_equal(onnx_runtime_path(runtime)[0], '/');
}

static void a_given_path_is_used_or_fails(void **state)
{
    (void)state;
    static const char OTHER[] = "/lib/x86_64-linux-gnu/libm.so.6";
    struct onnx_runtime *runtime = NULL;
    struct error err;
    assert_int_equal(onnx_runtime_open("/nonexistent/lib.so", &runtime, &err), -E_MISSING);
    assert_non_null(strstr(err.text, "/nonexistent/lib.so"));
    assert_non_null(strstr(err.text, "pip install onnxruntime"));
    assert_int_equal(onnx_runtime_open("/", &runtime, &err), -E_MISSING);
    if (access(OTHER, R_OK) == 0)
        assert_int_equal(onnx_runtime_open(OTHER, &runtime, &err), -E_UNSUPPORTED);
    assert_null(runtime);
}

static void absence_names_every_path_searched(void **state)
{
    (void)state;
    struct onnx_runtime *runtime = NULL;
    struct error err;
    const char *path = getenv("PATH");
    CLEANUP(free_ptr) char *old_path = xstrdup(path ? path : "");
    CLEANUP(free_ptr) char *old_library = xstrdup(getenv("TRANCHE_ORT_LIBRARY"));
    unsetenv("TRANCHE_ORT_LIBRARY");
    setenv("PATH", "/nonexistent", 1);
    int result = onnx_runtime_open(NULL, &runtime, &err);
    setenv("PATH", old_path, 1);
    if (old_library)
        setenv("TRANCHE_ORT_LIBRARY", old_library, 1);
    onnx_runtime_free(runtime);
    if (result == 0)
        skip(); /* this build folder's, or the loader's own path has one */
    assert_int_equal(result, -E_MISSING);
    assert_non_null(strstr(err.text, "/ort/libonnxruntime.so*"));
    assert_non_null(strstr(err.text, "active python3"));
    assert_non_null(strstr(err.text, "libonnxruntime.so.1 by the loader"));
    assert_int_equal(error_exit_status(err.code), 4);
}

static void tells_memory_from_other_trouble(void **state)
{
    (void)state;
    assert_true(onnx_runtime_text_is_oom("std::bad_alloc"));
    assert_true(onnx_runtime_text_is_oom(
        "BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer"));
    assert_true(onnx_runtime_text_is_oom("CUDA failure 2: out of memory"));
    assert_false(onnx_runtime_text_is_oom("CUDA failure 34: stub library"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: once a library is loaded, the loader finds it again by name. */
        cmocka_unit_test(absence_names_every_path_searched),
        cmocka_unit_test(says_what_it_is),
        cmocka_unit_test(a_given_path_is_used_or_fails),
        cmocka_unit_test(tells_memory_from_other_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
