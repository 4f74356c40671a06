/* SPDX-License-Identifier: Apache-2.0
 *
 * The verifier's law of the queue beside the planner's: two derivations, two programs, one
 * answer. And beside Erlang's and Pollaczek and Khinchine's formulas.
 */
#include <math.h>

#include "queue_oracle.h"
#include "support.h"
#include "verify/queue_law.h"
#include "verify/verify.h"

enum { CASES = 150, PLANS = 100, REPLAYED_PLANS = 8 };

static struct queue_case law_case(const struct oracle_case *made, double rate_rps)
{
    return (struct queue_case){.procs = made->server.procs,
                               .occupied = 1,
                               .batch_max = made->server.batch_max,
                               .size_count = made->server.size_count,
                               .sizes = made->server.batch,
                               .latency_ms = made->server.latency_ms,
                               .max_wait_ms = made->objective.max_wait_ms,
                               .rate_rps = rate_rps,
                               .limit_ms = made->objective.latency_ms};
}

static bool near(double a, double b, double relative, double absolute)
{
    return fabs(a - b) <= relative * fmax(fabs(a), fabs(b)) + absolute;
}

/* One process and any batches, or several and batches of one; light and heavy loads. */
static void agrees_with_the_planner(void **state)
{
    struct queue_model *model = queue_model_new();
    struct rng rng = rng_seed(test_seed());
    (void)state;
    for (int n = 0; n < CASES; n++) {
        struct oracle_case made;
        oracle_case_make(&made, &rng, 5);
        if (made.server.batch_max > 1)
            made.server.procs = 1;
        double load = n % 4 == 0   ? rng_uniform(&rng, 0.01, 0.2)
                      : n % 4 == 1 ? 1 - rng_uniform(&rng, 0.001, 0.02)
                                   : rng_uniform(&rng, 0.2, 0.98);
        double rate_rps = load * queue_saturation_rps(&made.server);
        struct queue_case queue = law_case(&made, rate_rps);
        assert_true(queue_law_covers(&queue));
        CLEANUP(queue_law_free_ptr) struct queue_law *law = queue_law_new(&queue);
        assert_non_null(law);
        double limit_ms = made.objective.latency_ms;
        double theirs = 1 - queue_share_within(model, &made.server, made.objective.max_wait_ms,
                                               limit_ms, rate_rps);
        double ours = queue_law_late(law, limit_ms);
        if (getenv("VERBOSE"))
            print_message("%d p%d b%d load %.4f late %.10g %.10g diff %.2g\n", n,
                          made.server.procs, made.server.batch_max, load, ours, theirs,
                          ours / theirs - 1);
        struct queue_objective mean = made.objective;
        mean.percentile = 0;
        double their_ms = queue_latency_ms(model, &made.server, &mean, rate_rps);
        double our_ms = queue_law_mean_ms(law);
        if (getenv("VERBOSE"))
            print_message("     mean %.8g %.8g %.2g\n", our_ms, their_ms,
                          our_ms / their_ms - 1);
        if (!near(ours, theirs, 1e-4, 1e-7) || our_ms > their_ms * (1 + 1e-6) ||
            our_ms < their_ms * (1 - 2e-3))
            fail_msg("case %d: late %.9g, the planner's %.9g; mean %.6g ms, %.6g ms", n, ours,
                     theirs, our_ms, their_ms);
    }
    queue_model_free(model);
}

/* A wait that outlasts any filling: no batch ever starts unfilled, so those sizes have no
 * share in the law, and what is past the tail takes no time to add up. */
static void waits_beyond_any_filling_are_no_other_law(void **state)
{
    static const int batch[] = {1, 4, 16};
    static const double latency_ms[] = {10, 20, 50}, waits_ms[] = {2e4, 1e6, 1e9},
                        loads[] = {0.5, 0.9, 0.999};
    struct queue_model *model = queue_model_new();
    (void)state;
    for (int n = 0; n < 27; n++) {
        struct queue_server server = {1, batch[n % 3], n % 3 + 1, batch, latency_ms};
        double wait_ms = waits_ms[n / 3 % 3], limit_ms = 4 * latency_ms[n % 3];
        double rate_rps = loads[n / 9] * queue_saturation_rps(&server);
        struct oracle_case made = {.server = server, .objective = {99, limit_ms, wait_ms}};
        struct queue_case queue = law_case(&made, rate_rps);
        CLEANUP(queue_law_free_ptr) struct queue_law *law = queue_law_new(&queue);
        struct queue_objective mean = {0, limit_ms, wait_ms};
        double ours = queue_law_mean_ms(law), late = queue_law_late(law, limit_ms);
        double theirs = queue_latency_ms(model, &server, &mean, rate_rps);
        double their_late = 1 - queue_share_within(model, &server, wait_ms, limit_ms, rate_rps);
        if (!near(late, their_late, 1e-4, 1e-7) || !near(ours, theirs, 2e-3, 0))
            fail_msg("case %d: late %.9g, the planner's %.9g; mean %.6g ms, %.6g ms", n, late,
                     their_late, ours, theirs);
    }
    queue_model_free(model);
}

/* ---- plans of such servers ------------------------------------------------------------ */

/* A plan of one service on one kind of slice, as the planner makes it. */
struct planned {
    struct inputs inputs;
    struct plan plan;
    double limit_rps; /* of one instance */
};

static void planned_done(struct planned *planned)
{
    plan_done(&planned->plan);
    inputs_done(&planned->inputs);
}

enum { PERCENTILES = 6, COMMON_PERCENTILES = 5 };

static void make_planned(const struct oracle_case *made, int percentiles_used, struct rng *rng,
                         struct planned *planned)
{
    static const char *const percentiles[] = {"50", "90", "95", "99", "mean", "99.9"};
    const char *percentile = percentiles[rng_below(rng, (uint64_t)percentiles_used)];
    const struct queue_server *server = &made->server;
    CLEANUP(str_done) struct str csv = STR_EMPTY;
    CLEANUP(str_done) struct str yaml = STR_EMPTY;
    str_add(&csv, "model,board,slice,batch,procs,throughput_rps,latency_ms_mean,"
                  "latency_ms_p999\n");
    double share = rng_below(rng, 2) ? 1 : rng_uniform(rng, 0.5, 1);
    for (int i = 0; i < server->size_count; i++) {
        planned->limit_rps =
            1000 * share * server->procs * server->batch[i] / server->latency_ms[i];
        str_addf(&csv, "m,a100-40gb,7g,%d,%d,%.17g,%.17g,%.17g\n", server->batch[i],
                 server->procs, planned->limit_rps, server->latency_ms[i],
                 server->latency_ms[i]);
    }
    str_addf(&yaml,
             "services:\n- {name: s, model: m, rate_rps: %.17g, latency_ms: %.17g, "
             "percentile: %s, max_wait_ms: %.17g}\n",
             planned->limit_rps * 1.5, made->objective.latency_ms, percentile,
             made->objective.max_wait_ms);
    inputs_read(&planned->inputs, yaml.bytes, csv.bytes);
    struct plan_request request =
        plan_request_default(&planned->inputs.services, &planned->inputs.rows);
    plan_or_fail(&request, &planned->plan);
}

/* What the verifier says when every instance states this rate and latency. */
static size_t count_violations(struct planned *planned, double rate_rps, double latency_ms)
{
    struct plan *plan = &planned->plan;
    double sum_rps = 0;
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++) {
            struct plan_instance *instance = &plan->gpus.data[g].instances.data[i];
            instance->rate_rps = rate_rps;
            instance->latency_ms = latency_ms;
            sum_rps += rate_rps;
        }
    plan->services.data[0].provided_rps = sum_rps;
    struct violations violations;
    size_t count =
        plan_verify(plan, &planned->inputs.services, &planned->inputs.rows, &violations);
    violations_done(&violations);
    return count;
}

static double measured_rps(const struct planned *planned, int batch)
{
    const struct measurement_set *rows = &planned->inputs.rows;
    for (size_t i = 0; i < rows->rows.count; i++)
        if (rows->rows.data[i].batch == batch)
            return rows->rows.data[i].throughput_rps;
    return NAN;
}

/* The highest rate from low on that the rule allows, by the planner's figures. */
static double highest_rps(struct queue_model *model, const struct planned *planned,
                          const struct queue_server *server, double low)
{
    const struct service *service = &planned->inputs.services.services.data[0];
    double high = low * 1.002, allowed = 1 - service->percentile / 100;
    struct queue_objective mean = {0, service->latency_ms, service->max_wait_ms};
    for (int i = 0; i < 30; i++) {
        double middle = (low + high) / 2;
        bool kept = service->percentile == 0
                        ? queue_latency_ms(model, server, &mean, middle) <= service->latency_ms
                        : 1 - queue_share_within(model, server, service->max_wait_ms,
                                                 service->latency_ms, middle) <=
                              allowed;
        *(kept ? &low : &high) = middle;
    }
    return low;
}

/* Rates 0.1 % above the highest and 1 % below are refused, as are latencies 1 % off. */
static void refuses_promises_out_by_a_thousandth(void **state)
{
    struct queue_model *model = queue_model_new();
    struct rng rng = rng_seed(test_seed());
    int planted = 0, at_the_limit = 0;
    (void)state;
    for (int n = 0; n < PLANS; n++) {
        struct oracle_case made;
        struct planned planned;
        oracle_case_make(&made, &rng, 4);
        if (made.server.batch_max > 1)
            made.server.procs = 1;
        make_planned(&made, PERCENTILES, &rng, &planned);
        if (planned.plan.status == PLAN_INFEASIBLE) {
            planned_done(&planned);
            continue;
        }
        const struct plan_instance *first = &planned.plan.gpus.data[0].instances.data[0];
        double rate_rps = first->rate_rps, latency_ms = first->latency_ms;
        struct queue_server server = made.server;
        server.batch_max = first->batch;
        bool limited = rate_rps == measured_rps(&planned, first->batch);
        double highest = limited ? rate_rps : highest_rps(model, &planned, &server, rate_rps);
        if (count_violations(&planned, rate_rps, latency_ms) != 0)
            fail_msg("plan %d: a promise of the planner is refused", n);
        if (count_violations(&planned, highest * 1.001, latency_ms) == 0)
            fail_msg("plan %d: %.9g a second accepted, 0.1%% above the highest", n,
                     highest * 1.001);
        if (count_violations(&planned, rate_rps * 0.996, latency_ms) == 0)
            fail_msg("plan %d: a promise 0.4%% too low accepted", n);
        if (count_violations(&planned, rate_rps, latency_ms * 0.99) == 0)
            fail_msg("plan %d: a latency 1%% too low accepted", n);
        if (latency_ms * 1.01 <= planned.inputs.services.services.data[0].latency_ms &&
            count_violations(&planned, rate_rps, latency_ms * 1.01) == 0)
            fail_msg("plan %d: a latency 1%% too high accepted", n);
        planted++;
        at_the_limit += limited;
        planned_done(&planned);
    }
    print_message("%d plans, %d at the measured throughput\n", planted, at_the_limit);
    assert_true(planted > PLANS / 2 && at_the_limit < planted * 3 / 4);
    queue_model_free(model);
}

/* Several processes with batches: a sample, which sees 2 %. */
static void refuses_promises_of_several_processes(void **state)
{
    struct rng rng = rng_seed(test_seed());
    int planted = 0;
    (void)state;
    while (planted < REPLAYED_PLANS) {
        struct oracle_case made;
        struct planned planned;
        oracle_case_make(&made, &rng, 4);
        if (made.server.batch_max == 1 || made.server.procs == 1)
            continue;
        make_planned(&made, COMMON_PERCENTILES, &rng, &planned);
        if (planned.plan.status != PLAN_INFEASIBLE) {
            const struct plan_instance *first = &planned.plan.gpus.data[0].instances.data[0];
            double rate_rps = first->rate_rps, latency_ms = first->latency_ms;
            if (count_violations(&planned, rate_rps, latency_ms) != 0)
                fail_msg("plan %d: a promise of the planner is refused", planted);
            if (count_violations(&planned, rate_rps * 1.02, latency_ms) == 0)
                fail_msg("plan %d: a promise 2%% too high accepted", planted);
            if (count_violations(&planned, rate_rps * 0.96, latency_ms) == 0)
                fail_msg("plan %d: a promise 4%% too low accepted", planted);
            if (count_violations(&planned, rate_rps, latency_ms * 0.7) == 0)
                fail_msg("plan %d: a latency 30%% too low accepted", planted);
            planted++;
        }
        planned_done(&planned);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_planner),
        cmocka_unit_test(waits_beyond_any_filling_are_no_other_law),
        cmocka_unit_test(refuses_promises_out_by_a_thousandth),
        cmocka_unit_test(refuses_promises_of_several_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
