/* SPDX-License-Identifier: Apache-2.0
 *
 * The autopilot's decisions: forecast, growing, hysteresis, quiet hours, cutting by priority.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "runtime/autopilot.h"

static const char ROWS[] = "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n"
                           "m,a100-40gb,1g,1,1,10,20\n"
                           "m,a100-40gb,7g,1,1,100,20\n";

static struct service_set services;
static struct measurement_set rows;
static struct autopilot autopilot;
static struct plan current;

/* Two services of one model on at most `gpus` GPUs. */
static void begin(int gpus, int priority_a, int priority_b)
{
    char text[512];
    struct error err = {0};
    snprintf(text, sizeof text,
             "services:\n"
             "  - {name: a, model: m, rate_rps: 20, latency_ms: 100, priority: %d}\n"
             "  - {name: b, model: m, rate_rps: 20, latency_ms: 100, priority: %d}\n"
             "fleet:\n  - {board: a100-40gb, count: %d}\nlatency_rule: batch\n",
             priority_a, priority_b, gpus);
    struct autopilot_settings settings = {
        .headroom = 0.1, .least_share = 0.05, .hold = 3, .max_moves = -1};
    if (service_set_parse("services", text, strlen(text), &services, &err) != 0 ||
        measurement_set_parse("rows", ROWS, strlen(ROWS), &rows, &err) != 0)
        fail_msg("%s", err.text);
    autopilot_init(&autopilot, &settings, &services, &rows);
    plan_init(&current);
}

static int end(void **state)
{
    (void)state;
    vec_done(&autopilot.settings.quiet);
    autopilot_done(&autopilot);
    plan_done(&current);
    service_set_done(&services);
    measurement_set_done(&rows);
    services = (struct service_set){0};
    rows = (struct measurement_set){0};
    return 0;
}

/* One look; a change is carried out at once. */
static enum autopilot_verdict look(double a, double b, int minute, const char *words)
{
    struct autopilot_decision decision;
    struct error err = {0};
    autopilot_observe(&autopilot, (double[]){a, b});
    if (autopilot_decide(&autopilot, &current, minute, &decision, &err) != 0)
        fail_msg("%s", err.text);
    if (!strstr(decision.reason.bytes, words))
        fail_msg("\"%s\" does not say \"%s\"", decision.reason.bytes, words);
    enum autopilot_verdict verdict = decision.verdict;
    if (verdict == AUTOPILOT_CHANGE) {
        plan_done(&current);
        current = decision.plan;
        plan_init(&decision.plan);
    }
    autopilot_decision_done(&decision);
    return verdict;
}

static double promised(const char *name)
{
    int index = plan_find_service(&current, name);
    return index < 0 ? 0 : current.services.data[index].provided_rps;
}

static void forecasts(void **state)
{
    (void)state;
    begin(4, 0, 0);
    autopilot_observe(&autopilot, (double[]){NAN, 10});
    assert_true(autopilot.forecast_rps[0] == 20); /* nothing seen: what was stated */
    assert_true(fabs(autopilot.forecast_rps[1] - 11) < 1e-9);
    autopilot_observe(&autopilot, (double[]){30, 14});
    assert_true(fabs(autopilot.forecast_rps[0] - 33) < 1e-9);
    assert_true(fabs(autopilot.forecast_rps[1] - 1.1 * 18) < 1e-9); /* a rise goes on */
    autopilot_observe(&autopilot, (double[]){0, 12});
    assert_true(fabs(autopilot.forecast_rps[0] - 33) < 1e-9); /* the higher of both */
    autopilot_observe(&autopilot, (double[]){0, 12});
    assert_true(fabs(autopilot.forecast_rps[0] - 1) < 1e-9); /* the least share */
}

static void grows_at_once_and_shrinks_after_a_while(void **state)
{
    (void)state;
    begin(4, 0, 0);
    assert_int_equal(look(20, 20, 0, "grow: a"), AUTOPILOT_CHANGE);
    int small = current.gpus_used;
    assert_int_equal(look(20, 20, 0, "the plan holds"), AUTOPILOT_KEEP);
    assert_int_equal(look(150, 20, 0, "grow: a: forecast 308.0 above"), AUTOPILOT_CHANGE);
    assert_true(promised("a") >= 308 && current.gpus_used > small);
    assert_int_equal(look(20, 20, 0, "could fall"),
                     AUTOPILOT_KEEP); /* the last look was high */
    assert_int_equal(look(20, 20, 0, "seen"), AUTOPILOT_KEEP);
    for (int i = 0; i < 3 && current.gpus_used > small; i++)
        look(20, 20, 0, "cost");
    assert_int_equal(current.gpus_used, small);
}

static void a_dip_does_not_shrink(void **state)
{
    (void)state;
    begin(4, 0, 0);
    assert_int_equal(look(120, 20, 0, "grow"), AUTOPILOT_CHANGE);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(look(20, 20, 0, "cost"), AUTOPILOT_KEEP);
        assert_int_not_equal(look(110, 20, 0, ""), AUTOPILOT_WAIT);
    }
    assert_true(promised("a") >= 110);
}

static void quiet_hours_wait(void **state)
{
    struct autopilot_hours hours;
    struct error err = {0};
    (void)state;
    begin(4, 0, 0);
    assert_int_equal(autopilot_hours_parse("22:30-06:00", &hours, &err), 0);
    vec_add(&autopilot.settings.quiet, hours);
    assert_int_equal(look(20, 20, 23 * 60, "not in quiet hours"), AUTOPILOT_WAIT);
    assert_int_equal(look(20, 20, 5 * 60 + 59, "not in quiet hours"), AUTOPILOT_WAIT);
    assert_int_equal(look(20, 20, 6 * 60, "grow"), AUTOPILOT_CHANGE);
    static const char *const WRONG[] = {"",          "22-6",      "22:00-25:00", "24:00-01:00",
                                        "1:00-2:60", "1:00-2:00x"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        assert_int_equal(autopilot_hours_parse(WRONG[i], &hours, &err), -E_USAGE);
}

static void cuts_the_lowest_priority_first(void **state)
{
    (void)state;
    begin(1, 0, 5); /* seven 1g, 70 requests a second, or one 7g, 100 */
    assert_int_equal(look(60, 40, 0, "a (priority 0) is given"), AUTOPILOT_CHANGE);
    assert_true(promised("b") >= 44); /* kept whole */
    assert_true(promised("a") >= 10);
    assert_int_equal(current.gpus_used, 1);
}

static void equal_priorities_share_the_cut(void **state)
{
    (void)state;
    begin(1, 0, 0);
    assert_int_equal(look(60, 60, 0, "the fleet is too small"), AUTOPILOT_CHANGE);
    assert_true(promised("a") >= 30 && promised("b") >= 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(forecasts, end),
        cmocka_unit_test_teardown(grows_at_once_and_shrinks_after_a_while, end),
        cmocka_unit_test_teardown(a_dip_does_not_shrink, end),
        cmocka_unit_test_teardown(quiet_hours_wait, end),
        cmocka_unit_test_teardown(cuts_the_lowest_priority_first, end),
        cmocka_unit_test_teardown(equal_priorities_share_the_cut, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
