/* SPDX-License-Identifier: Apache-2.0
 *
 * Verification against the slow truth (every reachable state, one by one), on sound
 * transitions and on ones with a planted fault: it must say just what the truth says.
 */
#include "support.h"

enum { CASES = 200, FAULTS_EACH = 12 };
static const uint64_t SEED = 7;

struct counts {
    int cases, faults, unsafe, slots, floor, lifecycle;
};

static void agree(const struct transition *transition, uint64_t seed, struct counts *counts)
{
    static struct truth truth;
    CLEANUP(transition_report_done) struct transition_report report = {0};
    if (!truth_find_all(transition, &truth))
        return;
    transition_verify(transition, &report);
    bool life = has_rule(&report, "lifecycle");
    counts->cases++;
    counts->slots += has_rule(&report, "slots");
    counts->floor += has_rule(&report, "floor");
    counts->lifecycle += life;
    counts->unsafe += report.violations.count > 0;
    if (truth.senseless && report.violations.count == 0)
        fail_msg("case %llu: a state makes no sense, unnoticed", (unsigned long long)seed);
    /* Where lives are out of order, the other rules need not agree. */
    if (life)
        return;
    if (truth.illegal != has_rule(&report, "slots")) {
        print_violations(&report);
        fail_msg("case %llu: layouts %s", (unsigned long long)seed,
                 truth.illegal ? "illegal, unnoticed" : "legal, refused");
    }
    for (size_t s = 0; s < report.minima.count; s++)
        if (fabs(truth.minimum[s] - report.minima.data[s].minimum_rps) > 1e-6)
            fail_msg("case %llu: service %s: least %.9g, verify says %.9g",
                     (unsigned long long)seed, report.minima.data[s].service, truth.minimum[s],
                     report.minima.data[s].minimum_rps);
}

/* A copy through JSON, so that faults are planted in what a file holds. */
static void copy(const struct transition *transition, struct transition *ret_copy)
{
    CLEANUP(json_decref_ptr) json_t *root = transition_to_json(transition);
    assert_int_equal(transition_from_json("copy", root, ret_copy, NULL), 0);
}

static void remove_edge(struct rng *rng, struct transition *transition)
{
    for (int attempt = 0; attempt < 20; attempt++) {
        struct transition_action *action =
            &transition->actions.data[rng_below(rng, transition->actions.count)];
        if (action->after.count == 0)
            continue;
        size_t at = rng_below(rng, action->after.count);
        memmove(&action->after.data[at], &action->after.data[at + 1],
                (action->after.count - at - 1) * sizeof(int));
        action->after.count--;
        return;
    }
}

/* Two actions trade what they do, and keep their places in the order. */
static void swap_actions(struct rng *rng, struct transition *transition)
{
    struct transition_action *a =
        &transition->actions.data[rng_below(rng, transition->actions.count)];
    struct transition_action *b =
        &transition->actions.data[rng_below(rng, transition->actions.count)];
    struct transition_action kept = *a;
    *a = *b;
    a->id = kept.id;
    memcpy(&a->after, &kept.after, sizeof a->after);
    struct transition_action other = *b;
    *b = kept;
    b->id = other.id;
    memcpy(&b->after, &other.after, sizeof b->after);
}

static void move_slot(struct rng *rng, struct transition *transition)
{
    struct transition_action *action =
        &transition->actions.data[rng_below(rng, transition->actions.count)];
    const struct mig_profile *profile =
        &transition->gpus.data[action->gpu].board->profiles[action->profile];
    for (int attempt = 0; attempt < 20; attempt++) {
        int start = (int)rng_below(rng, MIG_UNITS_MAX);
        if (start != action->start && (profile->starts >> start & 1)) {
            /* The whole life of the instance moves, so that it makes sense by itself. */
            int from = action->start;
            for (size_t i = 0; i < transition->actions.count; i++) {
                struct transition_action *other = &transition->actions.data[i];
                if (other->gpu == action->gpu && other->profile == action->profile &&
                    other->start == from && other != action)
                    other->start = start;
            }
            action->start = start;
            return;
        }
    }
}

static void plant(struct rng *rng, struct transition *transition)
{
    static void (*const faults[])(struct rng *,
                                  struct transition *) = {remove_edge, swap_actions, move_slot};
    if (transition->actions.count > 0)
        faults[rng_below(rng, 3)](rng, transition);
}

static void check_case(uint64_t seed, struct counts *counts)
{
    struct rng rng = rng_seed_stream(SEED, seed);
    struct random_case given = {.gpus_min = 1,
                                .gpus_max = 3,
                                .services = 1 + (int)rng_below(&rng, 3),
                                .tight = rng_uniform(&rng, 0.3, 1),
                                .idle = 0.1,
                                .partial = true};
    CLEANUP(plan_done) struct plan from, to;
    CLEANUP(transition_done) struct transition transition;
    const char *const *board = &random_boards[rng_below(&rng, 4)];
    transition_init(&transition);
    support_random_plan(&rng, &given, board, 1, &from);
    support_random_plan(&rng, &given, board, 1, &to);
    struct transition_options options = {.spare = 8, .seed = seed};
    assert_int_equal(transition_plan(&from, &to, &options, &transition, NULL), 0);
    agree(&transition, seed, counts);
    for (int i = 0; i < FAULTS_EACH; i++) {
        CLEANUP(transition_done) struct transition faulty;
        copy(&transition, &faulty);
        plant(&rng, &faulty);
        counts->faults++;
        agree(&faulty, seed, counts);
    }
}

static void test_agrees(void **state)
{
    (void)state;
    struct counts counts = {0};
    print_message("# seed %llu\n", (unsigned long long)SEED);
    for (int i = 0; i < CASES; i++)
        check_case((uint64_t)i, &counts);
    print_message(
        "# %d transitions (%d with a fault), %d unsafe: %d slots, %d floor, %d lifecycle\n",
        counts.cases, counts.faults, counts.unsafe, counts.slots, counts.floor,
        counts.lifecycle);
    assert_true(counts.cases > CASES && counts.slots > 20 && counts.floor > 20 &&
                counts.lifecycle > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
