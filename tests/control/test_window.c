/* SPDX-License-Identifier: Apache-2.0
 *
 * When a pool's window is open, and a plan that waits for it.
 */
#include "control/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "control/kinds.h"
#include "control/timestamp.h"
#include "scenario.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* 2026-11-30 is a Monday. */
static const struct {
    const char *start, *end, *days[3];
    const char *now, *opens; /* the same: it is open */
} table[] = {
    {"", "", {0}, "2026-11-30T17:00:00Z", "2026-11-30T17:00:00Z"},
    {"02:00", "", {0}, "2026-11-30T17:00:00Z", "2026-11-30T17:00:00Z"},
    {"02:00", "2x:00", {0}, "2026-11-30T17:00:00Z", "2026-11-30T17:00:00Z"},
    {"02:00", "04:00", {0}, "2026-11-30T01:59:59Z", "2026-11-30T02:00:00Z"},
    {"02:00", "04:00", {0}, "2026-11-30T02:00:00Z", "2026-11-30T02:00:00Z"},
    {"02:00", "04:00", {0}, "2026-11-30T03:59:59Z", "2026-11-30T03:59:59Z"},
    {"02:00", "04:00", {0}, "2026-11-30T04:00:00Z", "2026-12-01T02:00:00Z"},
    {"22:30", "03:00", {0}, "2026-11-30T02:59:59Z", "2026-11-30T02:59:59Z"},
    {"22:30", "03:00", {0}, "2026-11-30T03:00:00Z", "2026-11-30T22:30:00Z"},
    {"22:30", "00:00", {0}, "2026-11-30T23:59:59Z", "2026-11-30T23:59:59Z"},
    {"22:30", "00:00", {0}, "2026-12-01T00:00:00Z", "2026-12-01T22:30:00Z"},
    {"02:00", "04:00", {"Mon"}, "2026-11-30T03:00:00Z", "2026-11-30T03:00:00Z"},
    {"02:00", "04:00", {"Mon"}, "2026-11-30T04:00:00Z", "2026-12-07T02:00:00Z"},
    {"02:00", "04:00", {"Tue"}, "2026-11-30T03:00:00Z", "2026-12-01T02:00:00Z"},
    {"02:00", "04:00", {"Sun"}, "2026-11-30T03:00:00Z", "2026-12-06T02:00:00Z"},
    {"02:00", "04:00", {"Sat", "Wed"}, "2026-11-30T03:00:00Z", "2026-12-02T02:00:00Z"},
    {"22:30", "03:00", {"Sun"}, "2026-11-30T02:00:00Z", "2026-11-30T02:00:00Z"},
    {"22:30", "03:00", {"Sun"}, "2026-11-30T23:00:00Z", "2026-12-06T22:30:00Z"},
    {"00:00", "23:59", {"Thu"}, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
    {"23:00", "01:00", {"Wed"}, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
};

static void test_opens(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct gpu_pool pool = {.window = {.start = table[i].start, .end = table[i].end}};
        const char *days[COUNT(table[i].days)];
        int64_t now_s;
        char opens[21];
        while (pool.window.days.count < COUNT(days) && table[i].days[pool.window.days.count]) {
            days[pool.window.days.count] = table[i].days[pool.window.days.count];
            pool.window.days.count++;
        }
        pool.window.days.data = days;
        assert_true(timestamp_parse(table[i].now, &now_s));
        clock_utc_text(window_opens_s(&pool, now_s), opens);
        if (strcmp(opens, table[i].opens) != 0)
            fail_msg("case %zu: %s, expected %s", i, opens, table[i].opens);
    }
}

static bool is_waiting(struct scenario *scenario, const char *until)
{
    const json_t *pool = fake_cluster_get(&scenario->cluster, &KIND_GPU_POOL, "", "pool");
    const json_t *condition = object_condition(pool, "Waiting");

    assert_non_null(condition);
    return condition_is_true(pool, "Waiting") &&
           strstr(json_text(condition, "message"), until) != NULL;
}

/* Time goes on to that of a day. */
static void tick_to(struct scenario *scenario, const char *time)
{
    int64_t to_s;

    assert_true(timestamp_parse(time, &to_s));
    assert_true(to_s >= scenario->cluster.now_s);
    scenario_tick(scenario, (int)(to_s - scenario->cluster.now_s));
}

/* The scenario begins on 2027-01-15 at 08:00. */
static void set_up(struct scenario *scenario, const char *more)
{
    scenario_init(scenario, 1);
    scenario_add_pool(scenario, 2, more);
    scenario_add_profile(scenario, "bert", "a100-40gb", 10);
    for (int n = 0; n < 3; n++)
        fake_cluster_add_node(&scenario->cluster, mig_board_find("a100-40gb"), 1);
}

static const char WINDOW[] = "{\"window\": {\"start\": \"10:00\", \"end\": \"11:00\"}}";

/* A new rate waits for the window, and the pool says until when. */
static void test_plan_waits(void **state)
{
    (void)state;
    struct scenario scenario;

    set_up(&scenario, WINDOW);
    scenario_set_service(&scenario, "ranker", "bert", 60);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(is_waiting(&scenario, "2027-01-15T10:00:00Z"));
    assert_true(scenario_capacity(&scenario, "ranker") == 0);
    tick_to(&scenario, "2027-01-15T10:00:00Z");
    assert_true(scenario_settle(&scenario, 60));
    assert_false(is_waiting(&scenario, ""));
    assert_true(scenario_capacity(&scenario, "ranker") >= 60);
    tick_to(&scenario, "2027-01-15T11:00:00Z");
    scenario_set_service(&scenario, "ranker", "bert", 150);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(is_waiting(&scenario, "2027-01-16T10:00:00Z"));
    assert_true(scenario_capacity(&scenario, "ranker") < 150);
    scenario_set_service(&scenario, "ranker", "bert", 60);
    assert_true(scenario_settle(&scenario, 60));
    assert_false(is_waiting(&scenario, "")); /* nothing is to be done any more */
    assert_true(scenario_check_end(&scenario));
    scenario_done(&scenario);
}

/* What a lost server served is made anew at once. */
static void test_lost_server_does_not_wait(void **state)
{
    (void)state;
    struct scenario scenario;

    set_up(&scenario, WINDOW);
    scenario_set_service(&scenario, "ranker", "bert", 60);
    tick_to(&scenario, "2027-01-15T10:00:00Z");
    assert_true(scenario_settle(&scenario, 60));
    tick_to(&scenario, "2027-01-15T12:00:00Z");
    for (size_t node = 0; node < 3 && scenario_capacity(&scenario, "ranker") >= 60; node++) {
        if (node > 0)
            scenario_set_node(&scenario, node - 1, true);
        scenario_set_node(&scenario, node, false);
    }
    assert_true(scenario_capacity(&scenario, "ranker") < 60);
    assert_true(scenario_settle(&scenario, 100));
    assert_true(scenario_capacity(&scenario, "ranker") >= 60);
    scenario_done(&scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opens),
        cmocka_unit_test(test_plan_waits),
        cmocka_unit_test(test_lost_server_does_not_wait),
    };
    return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
