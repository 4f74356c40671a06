/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan document: a round trip keeps every byte, faults are refused with their path or
 * listed for the verifier.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "format/plan_document.h"

static const char document[] =
    "{\"schema\": \"tranche.plan/1\", \"algorithm\": \"exact\", \"seed\": 7,\n"
    " \"status\": \"optimal\", \"emulated\": true, \"cost\": 1.5, \"gpus_used\": 1,\n"
    " \"bound\": {\"cost\": 1.25, \"gpus\": 1, \"how\": \"so\"},\n"
    " \"options\": {\"fleet\": \"a100-40gb:*\"},\n"
    " \"gpus\": [{\"id\": \"g0\", \"board\": \"a100-40gb\", \"node\": \"n0\", \"instances\": "
    "[\n"
    "   {\"slice\": \"3g.20gb\", \"start\": 4, \"service\": \"a\", \"batch\": 8, \"procs\": "
    "2,\n"
    "    \"max_wait_ms\": 25, \"rate_rps\": 971.25, \"latency_ms\": 83},\n"
    "   {\"slice\": \"1g\", \"start\": 0, \"service\": null}]}],\n"
    " \"services\": [{\"name\": \"a\", \"required_rps\": 900, \"provided_rps\": 971.25}],\n"
    " \"inputs\": {}, \"changes\": {\"kept\": 3}}\n";

/* The document with one text replaced. */
static json_t *changed(const char *from, const char *to)
{
    struct str text = STR_EMPTY;
    const char *at = strstr(document, from);
    assert_non_null(at);
    str_add_bytes(&text, document, (size_t)(at - document));
    str_add(&text, to);
    str_add(&text, at + strlen(from));
    json_t *root = json_loads(text.bytes, 0, NULL);
    assert_non_null(root);
    str_done(&text);
    return root;
}

static void round_trip(void **state)
{
    struct error err = {0};
    struct plan plan, again;
    struct str first = STR_EMPTY, second = STR_EMPTY;
    json_t *root = json_loads(document, 0, NULL);
    (void)state;
    assert_int_equal(plan_from_json("p", root, &plan, &err), 0);
    assert_int_equal(plan.gpus.data[0].instances.data[0].start, 0); /* sorted */
    assert_int_equal(plan.gpus.data[0].instances.data[0].service, -1);
    assert_true(plan.gpus.data[0].instances.data[1].rate_rps == 971.25);
    assert_int_equal(plan_find_service(&plan, "a"), 0);
    assert_int_equal(plan_find_gpu(&plan, "g1"), -1);
    plan_format(&plan, &first);
    json_t *reread = json_loads(first.bytes, 0, NULL);
    assert_int_equal(plan_from_json("p", reread, &again, &err), 0);
    plan_format(&again, &second);
    assert_string_equal(first.bytes, second.bytes);
    assert_non_null(strstr(first.bytes, "\"kept\": 3"));
    assert_non_null(strstr(first.bytes, "1g.5gb"));
    str_done(&first);
    str_done(&second);
    json_decref(root);
    json_decref(reread);
    plan_done(&plan);
    plan_done(&again);
}

static void refuses_with_path(void **state)
{
    static const struct {
        const char *from, *to, *path;
    } cases[] = {
        {"tranche.plan/1", "tranche.plan/2", "schema"},
        {"\"optimal\"", "\"best\"", "status"},
        {"\"a100-40gb\"", "\"a100\"", "gpus[0].board"},
        {"\"3g.20gb\"", "\"3g.40gb\"", "gpus[0].instances[0].slice"},
        {"\"start\": 4", "\"start\": 1", "gpus[0].instances[0].start"},
        {"\"start\": 4", "\"start\": 99", "gpus[0].instances[0].start"},
        {"\"start\": 4", "\"start\": 1.5", "gpus[0].instances[0].start"},
        {"\"service\": \"a\"", "\"service\": \"b\"", "gpus[0].instances[0].service"},
        {"\"batch\": 8", "\"batch\": 0", "gpus[0].instances[0].batch"},
        {"971.25, \"lat", "-1, \"lat", "gpus[0].instances[0].rate_rps"},
        {"\"rate_rps\": 971.25,", "", "gpus[0].instances[0]"},
        {"\"required_rps\": 900", "\"required_rps\": \"x\"", "services[0].required_rps"},
        {"\"gpus\": [", "\"gpsu\": [", "gpus"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        struct plan plan;
        json_t *root = changed(cases[i].from, cases[i].to);
        if (plan_from_json("p.json", root, &plan, &err) != -E_INPUT)
            fail_msg("case %zu was accepted", i);
        if (!strstr(err.text, cases[i].path) || !strstr(err.text, "p.json"))
            fail_msg("case %zu: %s", i, err.text);
        json_decref(root);
    }
}

static void lists_faults_for_the_verifier(void **state)
{
    static const char path[] = "test_plan_document.json";
    struct error err = {0};
    struct plan plan;
    struct plan_faults faults;
    json_t *root = changed("\"3g.20gb\"", "\"3g.40gb\"");
    char *text = json_dumps(root, 0);
    (void)state;
    assert_int_equal(file_write(path, text, strlen(text), &err), 0);
    assert_int_equal(plan_read(path, &plan, &err), -E_INPUT);
    assert_int_equal(plan_read_faulty(path, &plan, &faults, &err), 0);
    assert_int_equal(faults.texts.count, 1);
    assert_non_null(strstr(faults.texts.data[0], "gpus[0].instances[0].slice"));
    assert_int_equal(plan.gpus.data[0].instances.count, 1);
    plan_faults_done(&faults);
    plan_done(&plan);
    json_decref(root);
    free(text);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(refuses_with_path),
        cmocka_unit_test(lists_faults_for_the_verifier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
