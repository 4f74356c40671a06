/* SPDX-License-Identifier: Apache-2.0
 *
 * Load over HTTP against a server of our own: counts, failures, streams, and that a server
 * that stalls is seen to be late (coordinated omission).
 */
#include <arpa/inet.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "load/http_run.h"

#include "http_server.h"

#define MS 1000000

static struct http_server server;

static int start_server(void **state)
{
    (void)state;
    server.service_ns = MS;
    return http_server_start(&server, 0) ? 0 : -1;
}

static int stop_server(void **state)
{
    (void)state;
    http_server_stop(&server);
    return 0;
}

static struct http_run_options standard_options(void)
{
    return (struct http_run_options){
        .url_count = 1,
        .request = {.batch = 1, .prompt = "p", .tokens_max = 8},
        .concurrency = 4,
        .connections_max = 1000,
        .warmup_ns = 50 * MS,
        .duration_ns = 300 * MS,
        .timeout_ns = (int64_t)5000 * MS,
        .failures_max = 0.01,
        .requests_min = 10,
        .seed = 1,
    };
}

static unsigned long requests_of_run; /* that the server had in the last one */

/* Runs against a path of the server; the result is the caller's. */
static struct http_run_result run(const char *path, struct http_run_options options)
{
    CLEANUP(http_runner_free_ptr) struct http_runner *runner = NULL;
    CLEANUP(free_ptr) char *url = xasprintf("http://127.0.0.1:%u%s", server.port, path);
    struct http_run_result result = {0};
    struct error err = {0};
    const char *urls[] = {url};
    unsigned long before = server.requests;
    options.urls = urls;
    if (http_runner_new(&options, &runner, &err) < 0 ||
        http_runner_run(runner, &options, &result, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    requests_of_run = server.requests - before;
    return result;
}

/* … longer and longer until that many answers came, for a machine that is busy. */
static struct http_run_result run_until(const char *path, struct http_run_options options,
                                        uint64_t completed_min)
{
    for (;; options.duration_ns *= 2) {
        struct http_run_result result = run(path, options);
        if (result.load.completed >= completed_min || options.duration_ns > (int64_t)20000 * MS)
            return result;
        http_run_result_done(&result);
    }
}

static bool has_reason(const struct http_run_result *result, enum verdict_reason reason)
{
    return (result->verdict.reasons >> reason & 1) != 0;
}

/* Bodies of every kind are read whole, on as few connections as they allow. */
static void test_closed_loop(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        unsigned body_bytes;
        bool reuses;
    } cases[] = {{"/", 2, true}, {"/chunked", 10101, true}, {"/close", 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_run_result result = run_until(cases[i].path, standard_options(), 21);
        assert_true(result.load.completed > 20);
        assert_int_equal(result.load.failed, 0);
        if (cases[i].reuses)
            assert_int_equal(result.connections, 4);
        else
            assert_true(result.connections >= result.load.completed);
        /* Those sent in the window, which need not have ended in it. */
        uint64_t bodies = result.body_bytes / cases[i].body_bytes;
        assert_int_equal(result.body_bytes % cases[i].body_bytes, 0);
        assert_true(bodies >= result.load.completed && bodies <= requests_of_run);
        http_run_result_done(&result);
    }
}

static void test_failures_are_no_latency(void **state)
{
    (void)state;
    struct http_run_options options = standard_options();
    options.arrivals = "constant:200";
    struct http_run_result result = run("/status/503", options);
    assert_int_equal(result.load.completed, 0);
    assert_int_equal(hist_count(result.load.latency), 0);
    assert_int_equal(result.load.failed, result.load.scheduled);
    /* One meant for the warm-up may have been sent within the window. */
    assert_true(result.failures[HTTP_FAILURE_STATUS] >= result.load.failed &&
                result.failures[HTTP_FAILURE_STATUS] <= requests_of_run);
    for (int i = 0; i < HTTP_FAILURE_COUNT; i++)
        assert_true(i == HTTP_FAILURE_STATUS || result.failures[i] == 0);
    assert_string_equal(result.first_failure, "status: 503");
    assert_true(has_reason(&result, REASON_FAILED) && has_reason(&result, REASON_TOO_FEW));
    http_run_result_done(&result);
}

static void test_open_loop_sends_what_is_due(void **state)
{
    (void)state;
    struct http_run_options options = standard_options();
    options.arrivals = "constant:500";
    struct http_run_result result = run("/", options);
    assert_int_equal(result.load.scheduled, 150);
    assert_int_equal(result.load.completed + result.load.failed + result.load.timed_out +
                         result.load.dropped,
                     150);
    assert_int_equal(result.load.completed, 150);
    http_run_result_done(&result);
}

/* Samples of requests that were due (closed loop: sent) while the server did nothing. */
static int samples_in_stall(const struct open_loop_result *load)
{
    int count = 0;
    for (size_t i = 0; i < load->samples.count; i++) {
        int64_t since_ns = load->samples.data[i].intended_ns - server.stall_began_ns;
        count += since_ns >= 0 && since_ns < server.stall_ns;
    }
    return count;
}

/* A stall of 200 ms in 2 s at 500/s makes 100 of 1000 requests late, evenly up to 200 ms:
 * 99 of 100 are below 180 ms, not below 2 ms. A closed loop has one late answer, and nothing
 * of what was due meanwhile. */
static void test_stall_is_seen(void **state)
{
    (void)state;
    struct http_run_options options = standard_options();
    options.duration_ns = (int64_t)2000 * MS;
    server.stall_ns = 200 * MS;
    server.stall_at_ns = clock_now_ns(clock_real()) + 500 * MS;
    options.arrivals = "constant:500";
    struct http_run_result open = run("/", options);
    assert_in_range(samples_in_stall(&open.load), 99, 101);
    options.arrivals = NULL;
    options.concurrency = 1;
    server.stall_at_ns = clock_now_ns(clock_real()) + 500 * MS;
    struct http_run_result closed = run("/", options);
    assert_int_equal(samples_in_stall(&closed.load), 0);
    server.stall_at_ns = 0;
    assert_true(hist_percentile_ns(open.load.latency, 99) >= 150 * MS);
    assert_true(hist_percentile_ns(open.load.latency, 95) >= 80 * MS);
    assert_true(hist_max_ns(open.load.latency) >= 190 * MS);
    assert_true(hist_max_ns(closed.load.latency) >= 190 * MS);
    http_run_result_done(&open);
    http_run_result_done(&closed);
}

/* Beyond the cap requests are dropped and said. */
static void test_cap_and_falling_behind(void **state)
{
    (void)state;
    struct http_run_options options = standard_options();
    server.service_ns = 20 * MS;
    options.arrivals = "constant:500";
    options.connections_max = 5;
    struct http_run_result result = run("/service", options);
    server.service_ns = MS;
    assert_true(result.load.dropped > 50);
    assert_int_equal(result.load.in_flight_peak, 5);
    assert_true(has_reason(&result, REASON_DROPPED) && has_reason(&result, REASON_LOST));
    http_run_result_done(&result);
}

/* A listener that never answers. */
static void test_timeouts(void **state)
{
    (void)state;
    CLEANUP(close_fd) int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, 100), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    CLEANUP(http_runner_free_ptr) struct http_runner *runner = NULL;
    CLEANUP(free_ptr)
    char *url = xasprintf("http://127.0.0.1:%u/", (unsigned)ntohs(address.sin_port));
    const char *urls[] = {url};
    struct http_run_options options = standard_options();
    struct http_run_result result = {0};
    struct error err = {0};
    options.urls = urls;
    options.arrivals = "constant:50";
    options.timeout_ns = 100 * MS;
    assert_int_equal(http_runner_new(&options, &runner, &err), 0);
    assert_int_equal(http_runner_run(runner, &options, &result, &err), 0);
    assert_int_equal(result.load.completed, 0);
    assert_int_equal(result.load.timed_out + result.load.failed, result.load.scheduled);
    assert_int_equal(result.failures[HTTP_FAILURE_TIMEOUT] > 0, 1);
    http_run_result_done(&result);
}

static void test_tokens(void **state)
{
    (void)state;
    struct http_run_options options = standard_options();
    options.request.api = HTTP_API_OPENAI;
    options.request.model = "m";
    options.concurrency = 1;
    struct http_run_result result = run_until("/tokens", options, 3);
    assert_true(result.load.completed >= 3);
    assert_true(result.tokens % TOKENS == 0 && result.tokens > 0);
    assert_true(hist_percentile_ns(result.token_gap, 50) >= TOKEN_GAP_NS * 9 / 10);
    assert_true(hist_percentile_ns(result.per_token, 50) >= TOKEN_GAP_NS * 9 / 10);
    assert_true(hist_percentile_ns(result.first_token, 50) <
                hist_percentile_ns(result.load.latency, 50));
    assert_non_null(strstr(server.body, "\"prompt\":\"p\""));
    http_run_result_done(&result);
}

static void test_kserve(void **state)
{
    (void)state;
    struct http_run_options options = standard_options();
    options.request.api = HTTP_API_KSERVE;
    options.request.model = "m";
    options.request.batch = 3;
    struct http_run_result result = run_until("", options, 11);
    assert_true(result.load.completed > 10);
    server.body[server.body_length] = '\0';
    assert_non_null(
        strstr(server.body, "\"name\":\"ids\",\"datatype\":\"INT64\",\"shape\":[3,2]"));
    http_run_result_done(&result);
    options.request.binary = true;
    result = run_until("/v2/models/m", options, 11);
    assert_true(result.load.completed > 10);
    assert_non_null(strstr(server.body, "\"binary_data_size\":36"));
    http_run_result_done(&result);
}

/* The phases are what the server counts, over the requests of the window alone. */
static void test_phases_of_the_server(void **state)
{
    (void)state;
    static const char *const loads[] = {NULL, "constant:200"};
    struct http_run_options options = standard_options();
    options.request.api = HTTP_API_KSERVE;
    options.request.model = "m";
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        options.arrivals = loads[i];
        unsigned long before = server.infers;
        struct http_run_result result = run("", options);
        const struct server_phases *phases = &result.server;
        assert_string_equal(phases->reason, "");
        assert_in_range(phases->requests, 1, server.infers - before);
        assert_true(phases->total_ms == SERVER_PHASES_MS[0]);
        for (int k = 0; k < REQUEST_PHASE_COUNT; k++)
            assert_true(phases->phase_ms[k] == SERVER_PHASES_MS[k + 1]);
        const struct hist *sent = loads[i] ? result.load.service : result.load.latency;
        assert_true(http_run_outside_ms(&result) == hist_mean_ns(sent) / 1e6 - 20);
        http_run_result_done(&result);
    }
    /* A server without statistics: the run is as good, and the reason is said. */
    CLEANUP(free_ptr) char *page = xasprintf("http://127.0.0.1:%u/status/404", server.port);
    const char *pages[] = {page};
    options.server_metrics = pages;
    options.server_metrics_count = 1;
    struct http_run_result result = run("", options);
    assert_int_equal(result.server.requests, 0);
    assert_non_null(strstr(result.server.reason, "404"));
    assert_true(isnan(http_run_outside_ms(&result)));
    http_run_result_done(&result);
}

static void test_missing_model(void **state)
{
    (void)state;
    CLEANUP(free_ptr) char *url = xasprintf("http://127.0.0.1:%u", server.port);
    const char *urls[] = {url};
    struct http_run_options options = standard_options();
    struct http_runner *runner = NULL;
    struct error err = {0};
    options.urls = urls;
    options.request.api = HTTP_API_KSERVE;
    options.request.model = "other";
    assert_int_equal(http_runner_new(&options, &runner, &err), -E_MISSING);
    assert_non_null(strstr(err.text, "404"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_loop),
        cmocka_unit_test(test_failures_are_no_latency),
        cmocka_unit_test(test_open_loop_sends_what_is_due),
        cmocka_unit_test(test_stall_is_seen),
        cmocka_unit_test(test_cap_and_falling_behind),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_kserve),
        cmocka_unit_test(test_phases_of_the_server),
        cmocka_unit_test(test_missing_model),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
