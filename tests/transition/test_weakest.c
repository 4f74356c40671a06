/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a planned transition is a weakest one: without any one of its edges, some
 * state that verification finds is unsafe. And the transitive reduction, against paths found
 * one by one. The seed is printed; TRANCHE_CASES sets how many.
 */
#include "support.h"
#include "transition/reduction.h"

enum { CASES = 120, ORDERS = 200, ACTIONS_MAX = 40 };
static const uint64_t SEED = 11;

struct tally {
    int cases, borrowed, edges, idle;
};

/* Whether verification passes the transition without this edge. */
static bool is_idle(struct transition *transition, struct transition_action *action, size_t k)
{
    CLEANUP(transition_report_done) struct transition_report report = {0};
    int removed = action->after.data[k];
    double makespan = transition->makespan_seconds;
    action->after.data[k] = action->after.data[--action->after.count];
    transition->makespan_seconds = transition_makespan(transition);
    transition_verify(transition, &report);
    transition->makespan_seconds = makespan;
    action->after.data[action->after.count++] = action->after.data[k];
    action->after.data[k] = removed;
    return report.violations.count == 0;
}

static void count_idle(struct transition *transition, uint64_t number, struct tally *tally)
{
    tally->cases++;
    tally->borrowed += transition->extra_gpus > 0;
    for (size_t a = 0; a < transition->actions.count; a++) {
        struct transition_action *action = &transition->actions.data[a];
        for (size_t k = 0; k < action->after.count; k++) {
            tally->edges++;
            if (!is_idle(transition, action, k))
                continue;
            tally->idle++;
            print_message("# case %llu: %s need not wait for %s\n", (unsigned long long)number,
                          action->id, transition->actions.data[action->after.data[k]].id);
        }
    }
}

static void check_case(uint64_t number, struct tally *tally)
{
    struct rng rng = rng_seed_stream(SEED, number);
    bool shuffled = rng_below(&rng, 2);
    struct random_case given = {.gpus_min = 1,
                                .gpus_max = 2 + (int)rng_below(&rng, 6),
                                .services = 1 + (int)rng_below(&rng, 4),
                                .tight = shuffled ? 1 : rng_uniform(&rng, 0.5, 1),
                                .idle = rng_below(&rng, 2) ? 0.1 : 0,
                                .partial = rng_below(&rng, 2)};
    CLEANUP(plan_done) struct plan from, to;
    CLEANUP(transition_done) struct transition transition;
    const char *const *board = &random_boards[rng_below(&rng, 4)];
    struct error err;
    transition_init(&transition);
    support_random_plan(&rng, &given, board, 1, &from);
    if (shuffled)
        support_shuffle(&rng, &from, &to);
    else
        support_random_plan(&rng, &given, board, 1, &to);
    struct transition_options options = {.spare = 16, .seed = number};
    if (transition_plan(&from, &to, &options, &transition, &err) < 0)
        fail_msg("case %llu: %s", (unsigned long long)number, err.text);
    count_idle(&transition, number, tally);
}

static void test_weakest(void **state)
{
    (void)state;
    int cases = support_count("TRANCHE_CASES", CASES);
    struct tally tally = {0};
    print_message("# seed %llu, %d cases\n", (unsigned long long)SEED, cases);
    for (int i = 0; i < cases; i++)
        check_case((uint64_t)i, &tally);
    print_message("# %d of %d edges are not needed, in %d transitions (%d borrow a GPU)\n",
                  tally.idle, tally.edges, tally.cases, tally.borrowed);
    assert_true(tally.edges > 10 * tally.cases && tally.borrowed > 0);
    assert_int_equal(tally.idle, 0);
}

static bool is_path(const struct transition *transition, int from, int to)
{
    const struct transition_action *action = &transition->actions.data[to];
    for (size_t i = 0; i < action->after.count; i++)
        if (action->after.data[i] == from || is_path(transition, from, action->after.data[i]))
            return true;
    return false;
}

static void random_order(struct rng *rng, int count, struct transition *ret_transition)
{
    transition_init(ret_transition);
    for (int i = 0; i < count; i++) {
        struct transition_action *action = vec_push(&ret_transition->actions);
        for (int j = 0; j < i; j++)
            if (rng_below(rng, 4) == 0)
                vec_add(&action->after, j);
    }
}

/* As many edges as there are pairs without an action between, and the same paths as before. */
static void test_reduction(void **state)
{
    (void)state;
    struct rng rng = rng_seed(SEED);
    for (int i = 0; i < ORDERS; i++) {
        CLEANUP(transition_done) struct transition order;
        static bool before[ACTIONS_MAX][ACTIONS_MAX];
        int count = 1 + (int)rng_below(&rng, 12), wanted = 0, edges = 0;
        random_order(&rng, count, &order);
        for (int a = 0; a < count; a++)
            for (int b = 0; b < count; b++)
                before[a][b] = is_path(&order, a, b);
        transition_reduce(&order);
        for (int a = 0; a < count; a++)
            for (int b = 0; b < count; b++) {
                bool between = false;
                for (int c = 0; c < count; c++)
                    between |= before[a][c] && before[c][b];
                wanted += before[a][b] && !between;
                assert_int_equal(is_path(&order, a, b), before[a][b]);
            }
        for (int b = 0; b < count; b++)
            edges += (int)order.actions.data[b].after.count;
        assert_int_equal(edges, wanted);
    }
}

/* More edges in question than one block of columns holds: a chain, and each link once more
 * over a longer way. */
static void test_reduction_of_many(void **state)
{
    (void)state;
    enum { LINKS = 3000 };
    CLEANUP(transition_done) struct transition order;
    transition_init(&order);
    for (int i = 0; i < LINKS; i++) {
        struct transition_action *action = vec_push(&order.actions);
        if (i > 1)
            vec_add(&action->after, i / 2);
        if (i > 0 && (i == 1 || i / 2 != i - 1))
            vec_add(&action->after, i - 1);
    }
    transition_reduce(&order);
    for (int i = 1; i < LINKS; i++) {
        assert_int_equal(order.actions.data[i].after.count, 1);
        assert_int_equal(order.actions.data[i].after.data[0], i - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weakest),
                                       cmocka_unit_test(test_reduction),
                                       cmocka_unit_test(test_reduction_of_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
