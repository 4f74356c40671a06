/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulation against the queue rule, against itself, and against wrong inputs.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/run.h"
#include "plan/simulate.h"

static const char rows_text[] = "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n"
                                "m,a100-40gb,3g,1,1,100,10\n"
                                "m,a100-40gb,3g,4,1,200,20\n"
                                "m,a100-40gb,3g,8,1,250,32\n"
                                "t,a100-40gb,1g,1,1,50,20\n";
static const char services_text[] =
    "services:\n"
    "  - {name: s, model: m, rate_rps: 300, latency_ms: 120, max_wait_ms: 20}\n"
    "  - {name: t, model: t, rate_rps: 20, latency_ms: 200}\n";

struct fixture {
    struct service_set services;
    struct measurement_set rows;
    struct plan plan;
};

static void fixture_done(struct fixture *fixture)
{
    plan_done(&fixture->plan);
    service_set_done(&fixture->services);
    measurement_set_done(&fixture->rows);
}

static void fixture_make(struct fixture *fixture)
{
    struct error err = {0};
    *fixture = (struct fixture){0};
    if (service_set_parse("s", services_text, strlen(services_text), &fixture->services, &err) <
            0 ||
        measurement_set_parse("m", rows_text, strlen(rows_text), &fixture->rows, &err) < 0)
        fail_msg("%s", err.text);
    struct plan_request request = plan_request_default(&fixture->services, &fixture->rows);
    if (plan_run(&request, &fixture->plan, &err) < 0)
        fail_msg("%s", err.text);
}

static const struct simulate_settings usual = {
    .seed = 1, .duration_s = 300, .load = 1, .routing = ROUTE_LEAST_OUTSTANDING};

static struct simulate_result run(const struct fixture *fixture,
                                  const struct simulate_settings *settings)
{
    struct simulate_result result = {0};
    struct error err = {0};
    if (simulate_run(&fixture->plan, &fixture->services, &fixture->rows, settings, &result,
                     &err) < 0)
        fail_msg("%s", err.text);
    return result;
}

/* With Poisson streams at each instance, the promised rates keep p99 and little more. */
static void test_promises(void **state)
{
    (void)state;
    CLEANUP(fixture_done) struct fixture fixture;
    struct simulate_settings settings = usual;
    fixture_make(&fixture);
    settings.promised = true;
    settings.routing = ROUTE_RANDOM;
    settings.duration_s = 3000;
    CLEANUP(simulate_result_done) struct simulate_result kept = run(&fixture, &settings);
    for (size_t i = 0; i < kept.services.count; i++) {
        printf("# %s within %.5f\n", kept.services.data[i].name,
               kept.services.data[i].attainment);
        assert_true(kept.services.data[i].attainment > 0.987);
    }
    settings.load = 1.05;
    CLEANUP(simulate_result_done) struct simulate_result broken = run(&fixture, &settings);
    assert_true(broken.services.data[0].attainment < 0.99);
    assert_false(broken.services.data[0].met);
}

/* Balancing by outstanding requests never does worse than chance, at the rates required. */
static void test_routing_helps(void **state)
{
    (void)state;
    CLEANUP(fixture_done) struct fixture fixture;
    struct simulate_settings settings = usual;
    fixture_make(&fixture);
    CLEANUP(simulate_result_done) struct simulate_result least = run(&fixture, &settings);
    settings.routing = ROUTE_RANDOM;
    CLEANUP(simulate_result_done) struct simulate_result chance = run(&fixture, &settings);
    assert_true(least.services.data[0].attainment >= chance.services.data[0].attainment);
    assert_true(least.services.data[0].met);
}

static void test_figures_hang_together(void **state)
{
    (void)state;
    CLEANUP(fixture_done) struct fixture fixture;
    fixture_make(&fixture);
    CLEANUP(simulate_result_done) struct simulate_result result = run(&fixture, &usual);
    const struct simulate_service *service = &result.services.data[0];
    assert_int_equal(result.services.count, 2);
    assert_true(fabs(service->offered_rps - 300) < 10);
    assert_true(fabs(service->served_rps - service->offered_rps) < 1);
    assert_true(service->batch_mean >= 1 && service->batch_mean <= 8);
    assert_true(service->busy_share > 0 && service->busy_share < 1);
    for (int p = 1; p < SIMULATE_PERCENTILES; p++)
        assert_true(service->percentiles_ms[p] >= service->percentiles_ms[p - 1]);
    assert_true(service->mean_ms >= 10);
}

static void test_same_seed_same_result(void **state)
{
    (void)state;
    CLEANUP(fixture_done) struct fixture fixture;
    struct simulate_settings other = usual;
    fixture_make(&fixture);
    other.seed = 2;
    CLEANUP(simulate_result_done) struct simulate_result a = run(&fixture, &usual);
    CLEANUP(simulate_result_done) struct simulate_result b = run(&fixture, &usual);
    CLEANUP(simulate_result_done) struct simulate_result c = run(&fixture, &other);
    assert_true(a.services.data[0].mean_ms == b.services.data[0].mean_ms);
    assert_true(a.services.data[0].mean_ms != c.services.data[0].mean_ms);
}

/* Half the time nothing, half the time twice the rate; the other service as required. */
static void test_trace(void **state)
{
    (void)state;
    CLEANUP(fixture_done) struct fixture fixture;
    static const double start_s[] = {0, 150}, rates[] = {0, NAN, 200, NAN};
    struct simulate_trace trace = {2, start_s, rates};
    struct simulate_settings settings = usual;
    fixture_make(&fixture);
    settings.trace = &trace;
    CLEANUP(simulate_result_done) struct simulate_result result = run(&fixture, &settings);
    double counted_s = 300 * 0.95;
    assert_true(fabs(result.services.data[0].offered_rps - 200 * 150 / counted_s) < 6);
    assert_true(fabs(result.services.data[1].offered_rps - 20) < 2);
}

static void test_requests(void **state)
{
    (void)state;
    CLEANUP(fixture_done) struct fixture fixture;
    struct simulate_settings settings = usual;
    fixture_make(&fixture);
    settings.requests = 10000;
    CLEANUP(simulate_result_done) struct simulate_result result = run(&fixture, &settings);
    for (size_t i = 0; i < result.services.count; i++)
        assert_true(result.services.data[i].requests > 9000 &&
                    result.services.data[i].requests <= 10000);
}

static void test_missing_measurement(void **state)
{
    (void)state;
    CLEANUP(fixture_done) struct fixture fixture;
    struct simulate_result result;
    struct error err = {0};
    fixture_make(&fixture);
    fixture.plan.gpus.data[0].instances.data[0].batch = 16;
    assert_int_equal(
        simulate_run(&fixture.plan, &fixture.services, &fixture.rows, &usual, &result, &err),
        -E_INPUT);
    assert_non_null(strstr(err.text, "batch 16"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_routing_helps),
        cmocka_unit_test(test_figures_hang_together),
        cmocka_unit_test(test_same_seed_same_result),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_missing_measurement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
