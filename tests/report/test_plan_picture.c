/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of plans: every GPU, instance and service is there, unused and unnamed ones too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "report/plan_picture.h"

static const char PLAN[] =
    "{\"schema\": \"tranche.plan/1\", \"algorithm\": \"exact\", \"seed\": 1, \"status\": "
    "\"optimal\","
    " \"emulated\": true, \"cost\": 1, \"gpus_used\": 1, \"bound\": {\"cost\": 1, \"gpus\": 1,"
    " \"how\": \"x\"}, \"options\": {}, \"gpus\": [{\"id\": \"g<0>\", \"board\": \"a100-40gb\","
    " \"node\": \"n7\", \"instances\": ["
    "{\"slice\": \"4g.20gb\", \"start\": 0, \"service\": \"ranker & co\", \"batch\": 8, "
    "\"procs\": 2,"
    " \"max_wait_ms\": 5, \"rate_rps\": 971.25, \"latency_ms\": 83},"
    "{\"slice\": \"1g.5gb\", \"start\": 4, \"service\": null, \"batch\": 1, \"procs\": 1,"
    " \"rate_rps\": 0}]}],"
    " \"services\": [{\"name\": \"ranker & co\", \"required_rps\": 900, \"provided_rps\": "
    "971.25}],"
    " \"inputs\": {}}";

static void read_plan(struct plan *ret_plan)
{
    struct error err;
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    if (json_parse("plan", PLAN, strlen(PLAN), &root, &err) ||
        plan_from_json("plan", root, ret_plan, &err))
        fail_msg("%s", err.text);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in:\n%s", part, text);
}

static void test_text(void **state)
{
    (void)state;
    CLEANUP(plan_done) struct plan plan;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    read_plan(&plan);
    plan_picture_text(&plan, false, &text);
    const char *const parts[] = {"1 GPU for 1 service, proved optimal (emulated)",
                                 "g<0>  a100-40gb on n7", "ranker & co", "4g.20gb", "unused"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_has(text.bytes, parts[i]);
    assert_null(strchr(text.bytes, '\033'));
}

static void test_svg(void **state)
{
    (void)state;
    CLEANUP(plan_done) struct plan plan;
    CLEANUP(str_done) struct str svg = STR_EMPTY;
    read_plan(&plan);
    plan_picture_svg(&plan, &svg);
    const char *const parts[] = {"<svg", "g&lt;0&gt;", "ranker &amp; co",
                                 "971.25 requests/s, batch 8, 2 processes, 83 ms", "unused"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_has(svg.bytes, parts[i]);
    assert_null(strstr(svg.bytes, "g<0>"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_svg),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
