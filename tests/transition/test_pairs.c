/* SPDX-License-Identifier: Apache-2.0
 *
 * Random pairs of plans: each is planned, the floor held in every order by verification, and
 * written and read back alike. The seed is printed; TRANCHE_PAIRS sets how many.
 */
#include "support.h"

enum { PAIRS = 150, SPARES = 64 };
static const uint64_t SEED = 20260;

struct tally {
    const char *name;
    int pairs, without_extra, paper_without_extra;
    int extra, paper_extra;
    size_t actions, paper_actions, edges; /* edges: of our orders */
    double log_ratio, log_bound; /* of makespans: exchange-compact to dag, dag to the bound */
    int bounded, compared;
    int stuck; /* of ours with an extra GPU: no first step exists without one */
};

/* Whether any service could run on a profile that one of the plans uses it on. */
static bool is_option(const struct plan *plan, const struct mig_board *board, int profile)
{
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0;
             plan->gpus.data[g].board == board && i < plan->gpus.data[g].instances.count; i++)
            if (plan->gpus.data[g].instances.data[i].profile == profile &&
                plan->gpus.data[g].instances.data[i].service >= 0)
                return true;
    return false;
}

/* The proof that a GPU must be borrowed: no new GPU, no idle instance, no instance that its
 * service could do without, and no hole for any instance. */
static bool has_no_first_step(const struct transition *transition)
{
    const struct plan *from = &transition->from, *to = &transition->to;
    if (to->gpus.count > from->gpus.count)
        return false;
    for (size_t g = 0; g < from->gpus.count; g++) {
        const struct plan_gpu *gpu = &from->gpus.data[g];
        struct mig_layout layout;
        plan_gpu_layout(gpu, &layout);
        for (size_t i = 0; i < gpu->instances.count; i++) {
            const struct plan_instance *instance = &gpu->instances.data[i];
            if (instance->service < 0)
                return false;
            const struct plan_service *service = &from->services.data[instance->service];
            double floor_rps = transition_floor_rps(from, to, service->name);
            if (instance->rate_rps <= service->provided_rps - floor_rps + 1e-6)
                return false;
        }
        for (int profile = 0; profile < gpu->board->profile_count; profile++)
            for (int start = 0; start < gpu->board->memory_units; start++)
                if ((gpu->board->profiles[profile].starts >> start & 1) &&
                    (is_option(from, gpu->board, profile) ||
                     is_option(to, gpu->board, profile)) &&
                    mig_layout_can_add(gpu->board, &layout,
                                       (struct mig_instance){(int8_t)profile, (int8_t)start}))
                    return false;
    }
    return true;
}

static void check_round_trip(const struct transition *transition)
{
    CLEANUP(str_done) struct str first = STR_EMPTY, second = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    CLEANUP(transition_done) struct transition again;
    transition_init(&again);
    transition_format(transition, &first);
    assert_int_equal(json_parse("t", first.bytes, first.length, &root, NULL), 0);
    struct error err;
    if (transition_from_json("t", root, &again, &err) < 0)
        fail_msg("%s", err.text);
    transition_format(&again, &second);
    assert_string_equal(first.bytes, second.bytes);
}

static void plan_checked(const struct plan *from, const struct plan *to,
                         const struct transition_options *options, uint64_t pair,
                         struct transition *ret_transition)
{
    CLEANUP(transition_report_done) struct transition_report report = {0};
    struct error err;
    if (transition_plan(from, to, options, ret_transition, &err) < 0)
        fail_msg("pair %llu: %s", (unsigned long long)pair, err.text);
    transition_verify(ret_transition, &report);
    print_violations(&report);
    assert_int_equal(report.violations.count, 0);
    for (size_t s = 0; s < report.minima.count; s++)
        assert_true(report.minima.data[s].minimum_rps >=
                    report.minima.data[s].floor_rps * (1 - 1e-9));
}

static void count(struct tally *tally, const struct transition *ours,
                  const struct transition *paper)
{
    double bound = support_makespan_bound(ours);
    tally->pairs++;
    tally->without_extra += ours->extra_gpus == 0;
    tally->stuck += ours->extra_gpus == 1 && has_no_first_step(ours);
    assert_true(ours->extra_gpus <= paper->extra_gpus);
    tally->paper_without_extra += paper->extra_gpus == 0;
    tally->extra += ours->extra_gpus;
    tally->paper_extra += paper->extra_gpus;
    tally->actions += ours->actions.count;
    tally->paper_actions += paper->actions.count;
    for (size_t i = 0; i < ours->actions.count; i++)
        tally->edges += ours->actions.data[i].after.count;
    assert_true(ours->makespan_seconds >= bound * (1 - 1e-9));
    if (bound > 0) {
        tally->log_bound += log(ours->makespan_seconds / bound);
        tally->bounded++;
    }
    if (ours->makespan_seconds > 0 && paper->makespan_seconds > 0) {
        tally->log_ratio += log(paper->makespan_seconds / ours->makespan_seconds);
        tally->compared++;
    }
}

static void check_pair(uint64_t pair, bool shuffled, struct tally *tally)
{
    struct rng rng = rng_seed_stream(SEED, pair);
    struct random_case given = {.gpus_min = 4,
                                .gpus_max = 4 + (int)rng_below(&rng, 61),
                                .services = 2 + (int)rng_below(&rng, 11),
                                .tight = shuffled ? 1 : rng_uniform(&rng, 0.7, 0.99),
                                .idle = rng_below(&rng, 2) ? 0.05 : 0,
                                .partial = rng_below(&rng, 3) == 0};
    CLEANUP(plan_done) struct plan from, to;
    CLEANUP(transition_done) struct transition ours, paper;
    int boards = rng_below(&rng, 4) == 0 ? 2 : 1;
    const char *const *first = &random_boards[rng_below(&rng, (uint64_t)(5 - boards))];
    transition_init(&ours);
    transition_init(&paper);
    support_random_plan(&rng, &given, first, boards, &from);
    if (shuffled)
        support_shuffle(&rng, &from, &to);
    else
        support_random_plan(&rng, &given, first, boards, &to);
    struct transition_options options = {.spare = SPARES, .seed = pair};
    plan_checked(&from, &to, &options, pair, &ours);
    options.algorithm = TRANSITION_EXCHANGE_COMPACT;
    plan_checked(&from, &to, &options, pair, &paper);
    count(tally, &ours, &paper);
    if (pair % 8 == 0)
        check_round_trip(&ours);
}

static void print_tally(const struct tally *tally)
{
    print_message(
        "# %s: %d pairs; without an extra GPU: dag %d (%d GPUs in all, %d times proved "
        "to need one), exchange-compact %d (%d)\n",
        tally->name, tally->pairs, tally->without_extra, tally->extra, tally->stuck,
        tally->paper_without_extra, tally->paper_extra);
    print_message("# %s: actions: dag %zu with %zu edges, exchange-compact %zu; makespan, "
                  "geometric means: exchange-compact / dag %.2f, dag / lower bound %.3f\n",
                  tally->name, tally->actions, tally->edges, tally->paper_actions,
                  exp(tally->log_ratio / fmax(tally->compared, 1)),
                  exp(tally->log_bound / fmax(tally->bounded, 1)));
}

/* Two plans that have nothing in common but the services. */
static void test_pairs(void **state)
{
    (void)state;
    struct tally tally = {.name = "independent"};
    print_message("# seed %llu, %d pairs\n", (unsigned long long)SEED,
                  support_count("TRANCHE_PAIRS", PAIRS));
    for (int i = 0; i < support_count("TRANCHE_PAIRS", PAIRS); i++)
        check_pair((uint64_t)i, false, &tally);
    print_tally(&tally);
}

/* The hardest: the same instances elsewhere, and every service needs all it has. */
static void test_shuffled(void **state)
{
    (void)state;
    struct tally tally = {.name = "shuffled"};
    for (int i = 0; i < support_count("TRANCHE_PAIRS", PAIRS); i++)
        check_pair((uint64_t)i, true, &tally);
    print_tally(&tally);
    assert_true(tally.extra <= tally.paper_extra && tally.actions <= tally.paper_actions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs),
                                       cmocka_unit_test(test_shuffled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
