/* SPDX-License-Identifier: Apache-2.0
 *
 * What servers say of themselves, in the forms they say it, and the means between two looks.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "load/server_phases.h"

static const char TRITON[] =
    "{\"model_stats\":[{\"name\":\"m\",\"inference_stats\":{\"success\":{\"count\":4,\"ns\":"
    "4000},"
    "\"fail\":{\"count\":9,\"ns\":1},\"queue\":{\"count\":4,\"ns\":400},"
    "\"compute_input\":{\"count\":4,\"ns\":40},\"compute_infer\":{\"count\":4,\"ns\":4},"
    "\"compute_output\":{\"count\":4,\"ns\":1}}}]}";

/* A page, what is asked of it, and the sums it comes to. -1: the server does not count it. */
static const struct {
    const char *page, *model;
    double requests, total_ns, phase_ns[REQUEST_PHASE_COUNT];
} good[] = {
    {TRITON, "m", 4, 4000, {400, 40, 4, 1}},
    {"# HELP nv_inference_request_success x\n"
     "nv_inference_request_success{model=\"m\",version=\"1\"} 5\n"
     "nv_inference_request_success{model=\"other\",version=\"1\"} 70\n"
     "nv_inference_request_duration_us{model=\"m\",version=\"1\"} 2\n"
     "nv_inference_queue_duration_us{model=\"m\",version=\"1\"} 1\n"
     "nv_inference_compute_infer_duration_us{model=\"m\",version=\"1\"} 0.5",
     "m",
     5,
     2000,
     {1000, -1, 500, -1}},
    {"nv_inference_request_success{model=\"m\"} 5\nnv_inference_request_success{model=\"n\"} "
     "7\n",
     NULL,
     12,
     -1,
     {-1, -1, -1, -1}},
    {"model_infer_request_duration_count{model=\"m\",version=\"x\"} 2.0\r\n"
     "model_infer_request_duration_sum{model=\"m\",version=\"x\"} 3e-06\r\n"
     "model_infer_request_duration_created{model=\"m\"} 1.7e+09\n",
     "m",
     2,
     3000,
     {-1, -1, -1, -1}},
    {"vllm:e2e_request_latency_seconds_count{model_name=\"a}b\"} 1 1700000000\n"
     "vllm:e2e_request_latency_seconds_sum{model_name=\"a}b\"} 2e-9 1700000000\n"
     "vllm:request_queue_time_seconds_sum{model_name=\"a}b\"} NaN\n",
     "a}b",
     1,
     2,
     {-1, -1, -1, -1}},
};

static void test_pages(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct server_sums sums = {0};
        struct error err = {0};
        if (server_sums_add(good[i].page, strlen(good[i].page), good[i].model, &sums, &err))
            fail_msg("page %zu: %s", i, err.text);
        assert_true(sums.requests == good[i].requests);
        assert_true(sums.has_total == (good[i].total_ns >= 0));
        assert_true(fabs(sums.total_ns - fmax(good[i].total_ns, 0)) < 1e-6);
        for (int k = 0; k < REQUEST_PHASE_COUNT; k++) {
            assert_true(sums.has_phase[k] == (good[i].phase_ns[k] >= 0));
            assert_true(fabs(sums.phase_ns[k] - fmax(good[i].phase_ns[k], 0)) < 1e-6);
        }
    }
}

static void test_pages_of_others(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "{",
                                      "{}",
                                      "{\"model_stats\":[]}",
                                      "404 page not found",
                                      "up 1\nnv_inference_request_successful 3\n",
                                      "# nv_inference_request_success 3\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct server_sums sums = {0};
        struct error err = {0};
        assert_true(server_sums_add(bad[i], strlen(bad[i]), NULL, &sums, &err) < 0);
        assert_true(err.text[0] != '\0' && sums.requests == 0);
    }
}

static void test_means_between_looks(void **state)
{
    (void)state;
    struct server_sums before = {.requests = 10,
                                 .total_ns = 5e6,
                                 .has_total = true,
                                 .phase_ns = {1e6, 0, 0, 0},
                                 .has_phase = {true}};
    struct server_sums after = before;
    assert_string_equal(server_phases_between(&before, &after).reason,
                        "the server counted no request");
    after.requests = 14;
    after.total_ns = 13e6;
    after.phase_ns[REQUEST_QUEUE] = 3e6;
    struct server_phases phases = server_phases_between(&before, &after);
    assert_int_equal(phases.requests, 4);
    assert_true(phases.total_ms == 2 && phases.phase_ms[REQUEST_QUEUE] == 0.5);
    assert_true(isnan(phases.phase_ms[REQUEST_INPUT]) &&
                isnan(phases.phase_ms[REQUEST_COMPUTE]));
    assert_string_equal(server_phases_between(&after, &before).reason, "the server began anew");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_pages_of_others),
        cmocka_unit_test(test_means_between_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
