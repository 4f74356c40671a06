/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts by themselves: assignment and closure against trying everything, paths against a
 * plain search, matching, the walk along the order.
 */
#include "support.h"
#include "transition/assignment.h"
#include "transition/closure.h"
#include "transition/reach.h"

static const uint64_t SEED = 5;

static int64_t best_assignment(size_t rows, size_t columns, const int64_t *weights, size_t row,
                               unsigned taken)
{
    int64_t best = INT64_MIN;
    if (row == rows)
        return 0;
    for (size_t c = 0; c < columns; c++) {
        if (taken >> c & 1)
            continue;
        int64_t sum = weights[row * columns + c] +
                      best_assignment(rows, columns, weights, row + 1, taken | 1U << c);
        best = sum > best ? sum : best;
    }
    return best;
}

static void test_assignment(void **state)
{
    (void)state;
    struct rng rng = rng_seed(SEED);
    for (int i = 0; i < 400; i++) {
        size_t rows = 1 + rng_below(&rng, 5), columns = rows + rng_below(&rng, 3);
        int64_t weights[64], sum = 0;
        int column_of[8];
        unsigned taken = 0;
        for (size_t k = 0; k < rows * columns; k++)
            weights[k] = (int64_t)rng_below(&rng, 2000) - 1000;
        assignment_maximise(rows, columns, weights, column_of);
        for (size_t r = 0; r < rows; r++) {
            assert_true(column_of[r] >= 0 && column_of[r] < (int)columns);
            assert_false(taken >> column_of[r] & 1);
            taken |= 1U << column_of[r];
            sum += weights[r * columns + (size_t)column_of[r]];
        }
        assert_int_equal(sum, best_assignment(rows, columns, weights, 0, 0));
    }
}

static void test_closure(void **state)
{
    (void)state;
    struct rng rng = rng_seed(SEED);
    for (int i = 0; i < 400; i++) {
        struct closure closure = {0};
        int nodes = 1 + (int)rng_below(&rng, 10), pairs[64][2];
        size_t count = rng_below(&rng, 20);
        int64_t weights[16], best = 0, sum = 0;
        bool members[16];
        for (int n = 0; n < nodes; n++) {
            weights[n] = (int64_t)rng_below(&rng, 200) - 100;
            closure_add_node(&closure, weights[n]);
        }
        for (size_t p = 0; p < count; p++) {
            for (int k = 0; k < 2; k++)
                pairs[p][k] = (int)rng_below(&rng, (uint64_t)nodes);
            closure_require(&closure, pairs[p][0], pairs[p][1]);
        }
        for (unsigned set = 0; set < 1U << nodes; set++) {
            bool closed = true;
            int64_t weight = 0;
            for (size_t p = 0; p < count; p++)
                closed &= !(set >> pairs[p][0] & 1) || (set >> pairs[p][1] & 1);
            for (int n = 0; n < nodes; n++)
                weight += set >> n & 1 ? weights[n] : 0;
            best = closed && weight > best ? weight : best;
        }
        assert_int_equal(closure_solve(&closure, members), best);
        for (int n = 0; n < nodes; n++)
            sum += members[n] ? weights[n] : 0;
        assert_int_equal(sum, best);
        closure_done(&closure);
    }
}

static bool has_path(const struct transition *transition, int before, int after)
{
    const struct transition_action *action = &transition->actions.data[after];
    for (size_t i = 0; i < action->after.count; i++)
        if (action->after.data[i] == before ||
            has_path(transition, before, action->after.data[i]))
            return true;
    return false;
}

static void plan_random(struct rng *rng, struct transition *ret_transition)
{
    struct random_case given = {
        .gpus_min = 3, .gpus_max = 6, .services = 4, .tight = 0.9, .idle = 0.1};
    CLEANUP(plan_done) struct plan from, to;
    support_random_plan(rng, &given, random_boards, 1, &from);
    support_random_plan(rng, &given, random_boards, 1, &to);
    struct transition_options options = {.spare = 8, .seed = 1};
    assert_int_equal(transition_plan(&from, &to, &options, ret_transition, NULL), 0);
}

static void test_reach(void **state)
{
    (void)state;
    struct rng rng = rng_seed(SEED);
    for (int i = 0; i < 10; i++) {
        CLEANUP(transition_done) struct transition transition;
        plan_random(&rng, &transition);
        struct reach_query queries[300];
        for (int q = 0; q < 300; q++)
            queries[q] =
                (struct reach_query){.before = (int)rng_below(&rng, transition.actions.count),
                                     .after = (int)rng_below(&rng, transition.actions.count)};
        reach_answer(&transition, queries, 300);
        for (int q = 0; q < 300; q++)
            assert_int_equal(queries[q].ordered,
                             has_path(&transition, queries[q].before, queries[q].after));
    }
}

/* Walked to its end in any order, a transition reaches `to`. */
static void test_walk(void **state)
{
    (void)state;
    struct rng rng = rng_seed(SEED + 1);
    for (int i = 0; i < 40; i++) {
        CLEANUP(transition_done) struct transition transition;
        CLEANUP(plan_done) struct plan end;
        plan_random(&rng, &transition);
        size_t count = transition.actions.count, ready, finished = 0;
        CLEANUP(free_ptr) bool *done = xcalloc(count, sizeof *done);
        CLEANUP(free_ptr) int *list = xcalloc(count, sizeof *list);
        while ((ready = transition_next(&transition, done, NULL, list)) > 0) {
            int action = list[rng_below(&rng, ready)];
            assert_false(done[action]);
            done[action] = true;
            finished++;
            assert_true(transition_is_reachable(&transition, done));
        }
        assert_int_equal(finished, count);
        transition_state(&transition, done, &end);
        for (size_t g = 0; g < transition.to.gpus.count; g++) {
            const struct plan_gpu *wanted = &transition.to.gpus.data[g];
            int here = plan_find_gpu(&end, transition_match_of(&transition, wanted->id));
            if (wanted->instances.count == 0)
                continue;
            assert_true(here >= 0);
            const struct plan_gpu *got = &end.gpus.data[here];
            assert_int_equal(got->instances.count, wanted->instances.count);
            for (size_t k = 0; k < got->instances.count; k++) {
                assert_int_equal(got->instances.data[k].profile,
                                 wanted->instances.data[k].profile);
                assert_true(got->instances.data[k].rate_rps ==
                            wanted->instances.data[k].rate_rps);
            }
        }
        for (size_t s = 0; s < end.services.count; s++)
            assert_true(fabs(end.services.data[s].required_rps -
                             transition.services.data[s].floor_rps) < 1e-9);
    }
}

/* from, to, who becomes whom, how many actions. */
static const struct {
    const char *from, *to, *match;
    size_t actions;
    bool larger;
} matches[] = {
    {"a100-40gb: 7g@0=a", "a100-40gb: 7g@0=a", "g0", 0, false},
    /* The same layouts, the other way round: nothing moves. */
    {"a100-40gb: 7g@0=a / a100-40gb: 4g@0=b 3g@4=c",
     "a100-40gb: 4g@0=b 3g@4=c / a100-40gb: 7g@0=a", "g1 g0", 0, false},
    /* The same multiset, other starts: 3g at 0 and 4 are different slots. */
    {"a100-40gb: 3g@0=a / a100-40gb: 3g@4=a", "a100-40gb: 3g@4=a / a100-40gb: 3g@0=a", "g1 g0",
     0, false},
    /* The larger part stays: 4 slices of b against 2 of a. */
    {"a100-40gb: 2g@4=a / a100-40gb: 4g@0=b", "a100-40gb: 2g@4=a 4g@0=b", "g1", 5, false},
    /* Another board is another problem. */
    {"a30-24gb: 4g@0=a / a100-40gb: 7g@0=b", "a100-40gb: 7g@0=b / a30-24gb: 4g@0=a", "g1 g0", 0,
     false},
    /* A 3g service stays in its 4g slot if that is allowed. */
    {"a100-40gb: 4g@0=a", "a100-40gb: 3g@0=a", "g0", 0, true},
    {"a100-40gb: 4g@0=a", "a100-40gb: 3g@0=a / a100-40gb: 1g@0=b", "g0 new0", 2, true},
};

static void test_match(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof matches / sizeof *matches; i++) {
        CLEANUP(plan_done) struct plan from, to;
        CLEANUP(transition_done) struct transition transition;
        CLEANUP(str_done) struct str got = STR_EMPTY;
        struct error err;
        support_plan(matches[i].from, 0.5, &from);
        support_plan(matches[i].to, 0.5, &to);
        struct transition_options options = {
            .spare = 1, .seed = 1, .allow_larger_slice = matches[i].larger};
        if (transition_plan(&from, &to, &options, &transition, &err) < 0)
            fail_msg("%s", err.text);
        for (size_t k = 0; k < transition.match.count; k++)
            str_addf(&got, "%s%s", k ? " " : "", transition.match.data[k].id);
        assert_string_equal(got.bytes, matches[i].match);
        assert_int_equal(transition.actions.count, matches[i].actions);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assignment), cmocka_unit_test(test_closure),
        cmocka_unit_test(test_reach),      cmocka_unit_test(test_walk),
        cmocka_unit_test(test_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
