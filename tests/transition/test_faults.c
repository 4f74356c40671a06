/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults planted on purpose, one kind at a time: verification names the rule that each
 * breaks.
 */
#include "support.h"

/* Two services trade places on one GPU, over a borrowed one. */
static void plan_swap(struct transition *ret_transition)
{
    CLEANUP(plan_done) struct plan from, to;
    CLEANUP(transition_report_done) struct transition_report report = {0};
    support_plan("a100-40gb: 4g@0=a 3g@4=b / a100-40gb: 7g@0=c", 0.9, &from);
    support_plan("a100-40gb: 3g@0=b 3g@4=a / a100-40gb: 7g@0=c", 0.5, &to);
    struct transition_options options = {.spare = 2, .seed = 1};
    to.services.data[0].required_rps = to.services.data[0].provided_rps;
    to.services.data[1].required_rps = to.services.data[1].provided_rps;
    assert_int_equal(transition_plan(&from, &to, &options, ret_transition, NULL), 0);
    transition_verify(ret_transition, &report);
    assert_int_equal(report.violations.count, 0);
}

static struct transition_action *find(struct transition *transition, enum action_kind kind,
                                      bool with_after)
{
    for (size_t i = 0; i < transition->actions.count; i++) {
        struct transition_action *action = &transition->actions.data[i];
        if (action->kind == kind && (!with_after || action->after.count > 0))
            return action;
    }
    fail_msg("no %s", action_kind_name(kind));
    return NULL;
}

static void drop_capacity_edge(struct transition *transition)
{
    find(transition, ACTION_DRAIN, true)->after.count = 0;
}

static void drop_slot_edge(struct transition *transition)
{
    find(transition, ACTION_CREATE_INSTANCE, true)->after.count = 0;
}

static void drop_routing_edge(struct transition *transition)
{
    find(transition, ACTION_STOP, true)->after.count = 0;
}

static void drop_life_edge(struct transition *transition)
{
    find(transition, ACTION_START, true)->after.count = 0;
}

static void swap_drain_and_stop(struct transition *transition)
{
    find(transition, ACTION_STOP, false)->kind = ACTION_DRAIN;
    find(transition, ACTION_DRAIN, false)->kind = ACTION_STOP;
}

static void overlap(struct transition *transition)
{
    /* The borrowed GPU's instances all go to one place. */
    int gpu = transition_find_gpu(transition, "spare0");
    int profile = mig_profile_find(transition->gpus.data[gpu].board, "7g");
    for (size_t i = 0, first = 0; i < transition->actions.count; i++) {
        struct transition_action *action = &transition->actions.data[i];
        if (action->gpu != gpu)
            continue;
        first = first ? first : (size_t)action->start + 1;
        if ((size_t)action->start + 1 != first) {
            action->profile = profile;
            action->start = 0;
        }
    }
}

static void forget_an_action(struct transition *transition)
{
    struct transition_action *last = &transition->actions.data[--transition->actions.count];
    vec_done(&last->after);
    transition->makespan_seconds = transition_makespan(transition);
}

static void wrong_rate(struct transition *transition)
{
    find(transition, ACTION_START, false)->rate_rps += 1;
}

static void lower_floor(struct transition *transition)
{
    transition->services.data[0].floor_rps = 1;
}

static void wrong_extra(struct transition *transition)
{
    transition->extra_gpus = 0;
}

static void wrong_makespan(struct transition *transition)
{
    transition->makespan_seconds *= 0.9;
}

static void match_twice(struct transition *transition)
{
    transition->match.data[1].id = transition->match.data[0].id;
}

static void stray_gpu(struct transition *transition)
{
    transition->gpus.data[transition_find_gpu(transition, "spare0")].id = "elsewhere";
}

static void touch_another(struct transition *transition)
{
    /* One action on a GPU that has nothing to do with the change. */
    struct transition_gpu gpu = {"g1", mig_board_find("a100-40gb"), ""};
    vec_add(&transition->gpus, gpu);
    find(transition, ACTION_DELETE_INSTANCE, false)->gpu = (int)transition->gpus.count - 1;
}

static const struct {
    void (*plant)(struct transition *transition);
    const char *rule;
} faults[] = {
    {drop_capacity_edge, "floor"},
    {drop_slot_edge, "slots"},
    {drop_routing_edge, "lifecycle"},
    {drop_life_edge, "lifecycle"},
    {swap_drain_and_stop, "lifecycle"},
    {overlap, "slots"},
    {forget_an_action, "end"},
    {wrong_rate, "lifecycle"},
    {lower_floor, "floor"},
    {wrong_extra, "figures"},
    {wrong_makespan, "figures"},
    {match_twice, "match"},
    {stray_gpu, "gpus"},
    {touch_another, "lifecycle"},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        CLEANUP(transition_done) struct transition transition;
        CLEANUP(transition_report_done) struct transition_report report = {0};
        struct error err;
        plan_swap(&transition);
        faults[i].plant(&transition);
        transition_verify(&transition, &report);
        if (!has_rule(&report, faults[i].rule)) {
            print_violations(&report);
            fail_msg("fault %zu: no violation of %s", i, faults[i].rule);
        }
        assert_int_equal(transition_report_error(&report, &err), -E_NO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
