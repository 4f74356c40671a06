/* SPDX-License-Identifier: Apache-2.0
 *
 * What a change's timeline keeps: steps of what was ready, the least, gaps, times of
 * actions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "runtime/timeline.h"

/* Of one service and one action on a GPU. */
static void make_transition(struct transition *transition)
{
    static const char DOCUMENT[] =
        "{\"schema\": \"tranche.transition/1\", \"algorithm\": \"dag\", "
        "\"from\": {\"gpus\": [], \"services\": []}, "
        "\"to\": {\"gpus\": [{\"id\": \"g0\", \"board\": \"a100-40gb\", \"instances\": "
        "[{\"slice\": "
        "\"1g.5gb\", \"start\": 0, \"service\": \"s\", \"batch\": 1, \"procs\": 1, "
        "\"rate_rps\": 5}]}], "
        "\"services\": [{\"name\": \"s\", \"required_rps\": 5, \"provided_rps\": 5}]}, "
        "\"gpus\": [{\"id\": \"new0\", \"board\": \"a100-40gb\"}], \"match\": {\"g0\": "
        "\"new0\"}, "
        "\"actions\": [{\"id\": \"a1\", \"kind\": \"create_instance\", \"gpu\": \"new0\", "
        "\"slice\": "
        "\"1g.5gb\", \"start\": 0, \"service\": null, \"after\": [], \"seconds\": 1, "
        "\"group\": \"create\"}], "
        "\"floor_rps\": {\"s\": 0}, \"extra_gpus\": 1, \"makespan_seconds\": 1}";
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    struct error err = {0};
    transition_init(transition);
    if (json_parse("t", DOCUMENT, strlen(DOCUMENT), &root, &err) != 0 ||
        transition_from_json("t", root, transition, &err) != 0)
        fail_msg("%s", err.text);
}

static json_t *first(json_t *json, const char *list)
{
    return json_array_get(json_object_get(json, list), 0);
}

static double rate_at(const json_t *ready, size_t index)
{
    return json_number_value(json_array_get(json_array_get(ready, index), 1));
}

static void steps_least_and_gaps_are_kept(void **state)
{
    (void)state;
    struct transition transition;
    struct timeline timeline;
    make_transition(&transition);
    timeline_init(&timeline, &transition, timeline_wall_s() - 10);
    timeline_note_ready(&timeline, 0, 7);
    timeline_note_ready(&timeline, 0, 7); /* the same: no step */
    timeline_note_ready(&timeline, 0, 5);
    timeline_note_gap(&timeline);
    timeline_note_ready(&timeline, 0, 5); /* after a gap it is told again */
    timeline_note_ready(&timeline, 0, 9);
    timeline.begun_s[0] = 1.25;

    CLEANUP(json_decref_ptr) json_t *json = timeline_to_json(&timeline, &transition, 3);
    assert_int_equal(json_integer_value(json_object_get(json, "number")), 3);
    assert_true(json_number_value(json_object_get(json, "seconds")) >= 10);
    const json_t *service = first(json, "services");
    const json_t *ready = json_object_get(service, "ready");
    assert_int_equal(json_array_size(ready), 5);
    assert_true(rate_at(ready, 0) == 7 && rate_at(ready, 1) == 5 && rate_at(ready, 4) == 9);
    assert_true(json_is_null(json_array_get(json_array_get(ready, 2), 1)));
    assert_true(json_number_value(json_object_get(service, "minimum_rps")) == 5);
    const json_t *action = first(json, "timeline");
    assert_string_equal(json_string_value(json_object_get(action, "kind")), "create_instance");
    assert_true(json_number_value(json_object_get(action, "begun_s")) == 1.25);
    assert_true(json_is_null(json_object_get(action, "done_s")));
    timeline_done(&timeline);
    transition_done(&transition);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_least_and_gaps_are_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
