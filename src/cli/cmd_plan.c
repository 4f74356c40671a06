/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche plan` and `tranche plan verify`.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "cli/plan_inputs.h"
#include "cli/plan_text.h"
#include "plan/run.h"
#include "verify/verify.h"

enum { GPUS_SHOWN = 40 };

struct plan_options {
    const char *services;
    const char *measurements;
    const char *fleet;
    const char *algorithm;
    const char *rules;
    const char *from;
    const char *output;
    long long max_moves;
    double move_price;
    long long seed;
    double budget;
    long long threads;
    long long rounds;
    long long iterations;
    struct paper_parameters paper;
    bool json;
};

static const struct option_spec plan_specs[] = {
    PLAN_INPUT_OPTIONS(struct plan_options),
    OPTION_CHOICE('a', "algorithm", struct plan_options, algorithm,
                  "exact|greedy|mcts|ga|whole|ones|mix|parvagpu|jormungandr", "exact",
                  "how to plan"),
    OPTION_CHOICE(0, "rules", struct plan_options, rules, "current|paper", "current",
                  "partitions: today's, or the MIG-serving paper's without 4g beside 3g"),
    OPTION_TEXT(0, "from", struct plan_options, from, "PLAN", NULL,
                "an earlier plan to change as little as possible at the least cost"),
    OPTION_INT(0, "max-moves", struct plan_options, max_moves, "N", "-1", -1, 1e9,
               "most instances of --from that may leave their place; -1: any number"),
    OPTION_NUMBER(0, "move-price", struct plan_options, move_price, "COST", "0", 0, 1e9,
                  "cost of each instance of --from that leaves its place"),
    OPTION_INT(0, "seed", struct plan_options, seed, "N", "1", 0, 9e18, "seed"),
    OPTION_NUMBER(0, "budget", struct plan_options, budget, "SECONDS", NULL, 0, 1e9,
                  "return the best plan found within this time"),
    OPTION_INT(0, "threads", struct plan_options, threads, "N", "1", 1, 256,
               "threads; they change the time, never the plan"),
    OPTION_INT(0, "rounds", struct plan_options, rounds, "N", "-1", -1, 1e9,
               "rounds of the genetic algorithm"),
    OPTION_INT(0, "iterations", struct plan_options, iterations, "N", "-1", -1, 1e9,
               "iterations of the tree search"),
    OPTION_TEXT('o', "output", struct plan_options, output, "FILE", NULL,
                "write the plan, JSON, to FILE"),
    PAPER_PARAMETER_OPTIONS(struct plan_options)};

static struct plan_request make_request(const struct plan_options *given,
                                        const struct plan_inputs *inputs,
                                        const struct plan *from)
{
    struct plan_request request = plan_request_default(&inputs->services, &inputs->rows);
    request.algorithm = given->algorithm;
    request.rules = strcmp(given->rules, "paper") == 0 ? RULES_PAPER : RULES_CURRENT;
    request.from = from;
    request.max_moves = (int)given->max_moves;
    request.move_price = given->move_price;
    request.fleet_text = given->fleet;
    request.settings.seed = (uint64_t)given->seed;
    request.settings.budget_s = given->budget > 0 ? given->budget : INFINITY;
    request.settings.rounds = given->rounds;
    request.settings.iterations = given->iterations;
    request.settings.clock = clock_real();
    request.settings.parameters = &given->paper;
    return request;
}

/* The document to -o, and to standard output what people or programs read there. */
static int write_plan(const struct plan_options *given, const struct plan *plan,
                      struct error *err)
{
    CLEANUP(str_done) struct str document = STR_EMPTY;
    CLEANUP(str_done) struct str words = STR_EMPTY;
    plan_format(plan, &document);
    plan_text(plan, GPUS_SHOWN, &words);
    if (given->output && output_write(given->output, &document, err) < 0)
        return -err->code;
    if (given->output && strcmp(given->output, "-") == 0)
        return 0;
    return output_write(NULL, given->json ? &document : &words, err);
}

/* Whether the fleet holds all that a plan may have, so that `stock` means the limit. */
static bool is_fleet_beyond_limit(const struct service_set *services)
{
    for (size_t p = 0; p < services->fleet.count; p++)
        if (services->fleet.data[p].count >= 0 && services->fleet.data[p].count < PLAN_GPUS_MAX)
            return false;
    return true;
}

/* The services are listed on standard output, unless the document is there. */
static int refuse_infeasible(const struct plan *plan, const struct service_set *services,
                             struct error *err)
{
    bool is_short = false;
    for (size_t i = 0; i < plan->infeasible.count; i++)
        is_short |= strcmp(plan->infeasible.data[i].reason, "stock") == 0;
    if (is_short && is_fleet_beyond_limit(services))
        return error_set(err, E_NO,
                         "the demand needs more GPUs than a plan may hold, %d; split the "
                         "services over several plans",
                         (int)PLAN_GPUS_MAX);
    return error_set(err, E_NO, "no plan: %zu service%s cannot be served",
                     plan->infeasible.count, plan->infeasible.count == 1 ? "" : "s");
}

static void warn_dropped(const struct plan *plan)
{
    for (size_t i = 0; i < plan->infeasible.count; i++)
        fprintf(stderr,
                "tranche plan: the fleet is too small: service \"%s\" is left out (priority)\n",
                plan->infeasible.data[i].service);
}

static int run_plan(const void *raw, struct arguments arguments, struct error *err)
{
    const struct plan_options *given = raw;
    CLEANUP(plan_inputs_done) struct plan_inputs inputs = {0};
    CLEANUP(plan_done) struct plan from, plan;
    plan_init(&from);
    plan_init(&plan);
    assert(arguments.count == 0);
    int rc = plan_inputs_read(&inputs, given->services, given->measurements, given->fleet, err);
    if (rc == 0 && given->from)
        rc = plan_read(given->from, &from, err);
    if (rc < 0)
        return rc;
    const struct executor executor = {.workers = (int)given->threads};
    struct plan_request request = make_request(given, &inputs, given->from ? &from : NULL);
    request.settings.executor = &executor;
    rc = plan_run(&request, &plan, err);
    if (rc < 0)
        return rc;
    rc = write_plan(given, &plan, err);
    if (rc < 0)
        return rc;
    if (plan.status == PLAN_INFEASIBLE)
        return refuse_infeasible(&plan, &inputs.services, err);
    warn_dropped(&plan);
    return 0;
}

struct verify_options {
    const char *services;
    const char *measurements;
    const char *fleet;
    bool json;
    const char *output;
};

static const struct option_spec verify_specs[] = {
    PLAN_INPUT_OPTIONS(struct verify_options),
    OPTION_TEXT('o', "output", struct verify_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
};

/* A plan made with --fleet is held against that fleet, unless another is given here. */
static const char *stated_fleet(const struct plan *plan)
{
    if (!json_is_true(json_object_get(plan->options, "fleet_given")))
        return NULL;
    return json_string_value(json_object_get(plan->options, "fleet"));
}

static json_t *violations_json(const struct plan_faults *faults,
                               const struct violations *violations)
{
    json_t *list = json_array();
    for (size_t i = 0; i < faults->texts.count; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "rule", "form", "text", faults->texts.data[i]));
    for (size_t i = 0; i < violations->list.count; i++) {
        const struct violation *violation = &violations->list.data[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s}", "rule", violation->rule, "place",
                                        violation->place, "text", violation->text));
    }
    return json_pack("{s:b, s:o}", "valid", json_array_size(list) == 0, "violations", list);
}

static void violations_text(const struct plan *plan, const struct plan_faults *faults,
                            const struct violations *violations, struct str *text)
{
    for (size_t i = 0; i < faults->texts.count; i++)
        str_addf(text, "form: %s\n", faults->texts.data[i]);
    for (size_t i = 0; i < violations->list.count; i++) {
        const struct violation *violation = &violations->list.data[i];
        bool is_named = *violation->place && strcmp(violation->place, violation->rule) != 0;
        str_addf(text, "%s: %s%s%s\n", violation->rule, is_named ? violation->place : "",
                 is_named ? ": " : "", violation->text);
    }
    if (faults->texts.count + violations->list.count == 0)
        str_addf(text, "valid: %d GPUs, %zu services\n", plan->gpus_used, plan->services.count);
}

static int report_violations(const struct verify_options *given, const struct plan *plan,
                             const struct plan_faults *faults,
                             const struct violations *violations, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    size_t count = faults->texts.count + violations->list.count;
    if (given->json) {
        CLEANUP(json_decref_ptr) json_t *root = violations_json(faults, violations);
        json_write_pretty(root, &text);
    } else {
        violations_text(plan, faults, violations, &text);
    }
    int rc = output_write(given->output, &text, err);
    if (rc < 0 || count == 0)
        return rc;
    return error_set(err, E_NO, "%zu violation%s", count, count == 1 ? "" : "s");
}

/* Says when the plan was made from other files than those it is checked against. */
static void warn_other_inputs(const struct plan *plan, const struct plan_inputs *inputs)
{
    const struct {
        const char *member, *sha256;
    } files[] = {{"services", inputs->services.sha256}, {"measurements", inputs->rows.sha256}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *stated = json_string_value(json_object_get(plan->inputs, files[i].member));
        if (stated && strcmp(stated, files[i].sha256) != 0)
            fprintf(stderr,
                    "tranche plan verify: the plan was made from other %s (%.19s…, these are "
                    "%.19s…)\n",
                    files[i].member, stated, files[i].sha256);
    }
}

static int run_verify(const void *raw, struct arguments arguments, struct error *err)
{
    const struct verify_options *given = raw;
    CLEANUP(plan_inputs_done) struct plan_inputs inputs = {0};
    CLEANUP(plan_done) struct plan plan;
    CLEANUP(plan_faults_done) struct plan_faults faults = {0};
    CLEANUP(violations_done) struct violations violations = {0};
    plan_init(&plan);
    int rc = plan_read_faulty(arguments.items[0], &plan, &faults, err);
    if (rc < 0)
        return rc;
    if (plan.algorithm && !solver_find(plan.algorithm))
        vec_add(&faults.texts,
                arena_printf(&faults.arena, "algorithm: \"%s\" is not known", plan.algorithm));
    const char *fleet = given->fleet ? given->fleet : stated_fleet(&plan);
    rc = plan_inputs_read(&inputs, given->services, given->measurements, fleet, err);
    if (rc < 0)
        return rc;
    warn_other_inputs(&plan, &inputs);
    plan_verify(&plan, &inputs.services, &inputs.rows, &violations);
    return report_violations(given, &plan, &faults, &violations, err);
}

static const struct command command_verify = {
    .name = "verify",
    .summary = "check a plan against services and measurements, independently of the planner",
    .positionals = "PLAN.json",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "Works everything out again from the inputs: layouts, measurements, latency, "
        "memory, rates, spread, stock, fixed instances, cost and bound. Prints each "
        "violation; exit 0 when there is none, 1 otherwise.",
    .examples = "tranche plan verify plan.json -s services.yaml -m measurements.csv",
    .options = verify_specs,
    .option_count = sizeof verify_specs / sizeof *verify_specs,
    .options_size = sizeof(struct verify_options),
    .run = run_verify,
};

static const struct command *const plan_commands[] = {&cmd_plan_classify, &cmd_plan_compare,
                                                      &cmd_plan_draw,     &cmd_plan_simulate,
                                                      &command_verify,    NULL};

const struct command cmd_plan = {
    .name = "plan",
    .summary = "plan the fewest GPUs that meet every service's rate and latency",
    .arguments_max = 0,
    .description =
        "Chooses how each GPU is partitioned and which service each instance runs, at the "
        "least "
        "cost that meets every service's rate and latency objective, and proves a lower bound "
        "of that cost. Every plan is verified before it is printed.",
    .examples =
        "tranche plan -s services.yaml -m measurements.csv -o plan.json\n"
        "tranche plan -s services.yaml -m measurements.csv --from plan.json -o next.json",
    .options = plan_specs,
    .option_count = sizeof plan_specs / sizeof *plan_specs,
    .options_size = sizeof(struct plan_options),
    .run = run_plan,
    .subcommands = plan_commands,
};
