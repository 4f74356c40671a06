/* SPDX-License-Identifier: Apache-2.0
 *
 * The way back from every state of small transitions: planned anew, and taken back in turn.
 * Each passes verification and ends in `from`.
 */
#include "support.h"
#include "transition/rollback.h"

enum { TRANSITIONS = 50, STATES_MAX = 600 };
static const uint64_t SEED = 11;

struct visits {
    const struct transition *transition;
    bool done[TRUTH_ACTIONS_MAX];
    long states;
};

static void check_back(const struct transition *forth, const struct transition *back)
{
    CLEANUP(transition_report_done) struct transition_report report = {0};
    CLEANUP(str_done) struct str from = STR_EMPTY, end = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *first = plan_gpus_to_json(&forth->from);
    CLEANUP(json_decref_ptr) json_t *last = plan_gpus_to_json(&back->to);
    transition_verify(back, &report);
    print_violations(&report);
    assert_int_equal(report.violations.count, 0);
    json_write_line(first, &from);
    json_write_line(last, &end);
    assert_string_equal(from.bytes, end.bytes);
    for (size_t i = 0; i < back->match.count; i++)
        assert_string_equal(back->match.data[i].to_id, back->match.data[i].id);
    for (size_t s = 0; s < forth->services.count; s++)
        if (forth->services.data[s].floor_rps > 0)
            assert_true(back->services.data[s].floor_rps ==
                        forth->services
                            .data[transition_find_service(forth, back->services.data[s].name)]
                            .floor_rps);
}

static void visit(struct visits *visits)
{
    struct transition back;
    struct error err;
    if (transition_rollback(visits->transition, visits->done, NULL, &back, &err) < 0)
        fail_msg("%s", err.text);
    check_back(visits->transition, &back);
    transition_done(&back);
    if (rollback_in_turn(visits->transition, visits->done, NULL, &back, &err) < 0)
        fail_msg("%s", err.text);
    check_back(visits->transition, &back);
    transition_done(&back);
}

/* With `count_alone`, states are counted and not visited. */
static void walk(struct visits *visits, size_t next, bool count_alone)
{
    const struct transition *transition = visits->transition;
    if (visits->states > STATES_MAX)
        return;
    if (next == transition->actions.count) {
        visits->states++;
        if (!count_alone)
            visit(visits);
        return;
    }
    const struct transition_action *action = &transition->actions.data[next];
    bool may = true;
    for (size_t j = 0; j < action->after.count; j++)
        may &= visits->done[action->after.data[j]];
    walk(visits, next + 1, count_alone);
    if (!may)
        return;
    visits->done[next] = true;
    walk(visits, next + 1, count_alone);
    visits->done[next] = false;
}

static void test_every_state(void **state)
{
    (void)state;
    int taken = 0;
    long states = 0;
    print_message("# seed %llu\n", (unsigned long long)SEED);
    for (uint64_t seed = 0; taken < TRANSITIONS; seed++) {
        struct rng rng = rng_seed_stream(SEED, seed);
        struct random_case given = {.gpus_min = 1,
                                    .gpus_max = 2,
                                    .services = 2,
                                    .tight = rng_uniform(&rng, 0.5, 1),
                                    .idle = 0.1,
                                    .partial = true};
        CLEANUP(plan_done) struct plan from, to;
        CLEANUP(transition_done) struct transition transition;
        transition_init(&transition);
        const char *const *board = &random_boards[rng_below(&rng, 4)];
        support_random_plan(&rng, &given, board, 1, &from);
        support_random_plan(&rng, &given, board, 1, &to);
        struct transition_options options = {
            .spare = 4,
            .seed = seed,
            .algorithm = taken % 5 == 4 ? TRANSITION_EXCHANGE_COMPACT : TRANSITION_DAG};
        assert_int_equal(transition_plan(&from, &to, &options, &transition, NULL), 0);
        if (transition.actions.count < 4 || transition.actions.count > 24)
            continue;
        struct visits visits = {.transition = &transition};
        walk(&visits, 0, true);
        if (visits.states > STATES_MAX)
            continue; /* too many to visit them all */
        visits.states = 0;
        walk(&visits, 0, false);
        states += visits.states;
        taken++;
    }
    print_message("# %d transitions, %ld states\n", taken, states);
}

static void test_done(void **state)
{
    (void)state;
    CLEANUP(plan_done) struct plan from, to;
    CLEANUP(transition_done) struct transition transition;
    struct error err;
    bool done[TRUTH_ACTIONS_MAX];
    support_plan("a100-40gb: 3g@4=a 1g@0=b", 0.5, &from);
    support_plan("a100-40gb: 4g@0=a 1g@4=b", 0.5, &to);
    struct transition_options options = {.seed = 1, .spare = 1};
    assert_int_equal(transition_plan(&from, &to, &options, &transition, &err), 0);
    assert_int_equal(rollback_parse_done(&transition, "-", done, &err), 0);
    assert_int_equal(rollback_parse_done(&transition, "a1", done, &err), 0);
    assert_true(done[0] && !done[1]);
    assert_int_equal(rollback_parse_done(&transition, "a1, nope", done, &err), -E_INPUT);
    assert_non_null(strstr(err.text, "\"nope\""));
    CLEANUP(free_ptr) char *last = xasprintf("a%zu", transition.actions.count);
    assert_int_equal(rollback_parse_done(&transition, last, done, &err), -E_INPUT);
    assert_non_null(strstr(err.text, "waits for"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_state),
                                       cmocka_unit_test(test_done)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
