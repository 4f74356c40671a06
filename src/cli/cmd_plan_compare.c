/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche plan compare`: every algorithm and baseline on one problem. Each runs in a child
 * process of its own, so that its peak memory is its own and a crash is a line in the table.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "cli/plan_inputs.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "plan/paper_bounds.h"
#include "plan/run.h"

enum { ALGORITHMS_MAX = 16 };

struct compare_options {
    const char *services;
    const char *measurements;
    const char *fleet;
    const char *rules;
    struct option_list algorithms;
    struct paper_parameters paper;
    long long seed;
    double budget;
    long long threads;
    long long rounds;
    long long iterations;
    bool json;
    const char *output;
};

static const struct option_spec specs[] = {
    PLAN_INPUT_OPTIONS(struct compare_options),
    OPTION_TEXT('o', "output", struct compare_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
    OPTION_LIST('a', "algorithm", struct compare_options, algorithms, "NAME",
                "only these, beside exact; may be given several times"),
    OPTION_CHOICE(0, "rules", struct compare_options, rules, "current|paper", "current",
                  "partitions: today's, or the MIG-serving paper's without 4g beside 3g"),
    OPTION_INT(0, "seed", struct compare_options, seed, "N", "1", 0, 9e18, "seed"),
    OPTION_NUMBER(0, "budget", struct compare_options, budget, "SECONDS", NULL, 0, 1e9,
                  "time for each algorithm"),
    OPTION_INT(0, "threads", struct compare_options, threads, "N", "1", 1, 256,
               "threads; they change the time, never the plans"),
    OPTION_INT(0, "rounds", struct compare_options, rounds, "N", "-1", -1, 1e9,
               "rounds of the genetic algorithm"),
    OPTION_INT(0, "iterations", struct compare_options, iterations, "N", "-1", -1, 1e9,
               "iterations of the tree search"),
    PAPER_PARAMETER_OPTIONS(struct compare_options)};

/* What a child reports; plain data, written to its pipe. */
struct outcome {
    const struct solver *solver; /* set by the parent */
    bool reported;               /* false: the child ended without a word */
    int failure;                 /* error code, 0: none */
    char text[256];
    enum plan_status status;
    int gpus;
    double cost, bound_cost, seconds, memory_mib;
    bool stopped;
};

static struct plan_request make_request(const struct compare_options *given,
                                        const struct plan_inputs *inputs, const char *algorithm)
{
    struct plan_request request = plan_request_default(&inputs->services, &inputs->rows);
    request.algorithm = algorithm;
    request.rules = strcmp(given->rules, "paper") == 0 ? RULES_PAPER : RULES_CURRENT;
    request.fleet_text = given->fleet;
    request.settings.seed = (uint64_t)given->seed;
    request.settings.budget_s = given->budget > 0 ? given->budget : INFINITY;
    request.settings.rounds = given->rounds;
    request.settings.iterations = given->iterations;
    request.settings.clock = clock_real();
    request.settings.parameters = &given->paper;
    return request;
}

static void run_child(const struct plan_request *request, int fd)
{
    struct outcome outcome = {.reported = true, .cost = NAN, .bound_cost = NAN};
    struct error err = {0};
    struct plan plan;
    int64_t start_ns = clock_now_ns(clock_real());
    plan_init(&plan);
    int rc = plan_run(request, &plan, &err);
    outcome.seconds = (double)(clock_now_ns(clock_real()) - start_ns) / 1e9;
    if (rc < 0) {
        outcome.failure = -rc;
        snprintf(outcome.text, sizeof outcome.text, "%s", err.text);
    } else {
        outcome.status = plan.status;
        outcome.gpus = plan.gpus_used;
        outcome.cost = plan.status == PLAN_INFEASIBLE ? NAN : plan.cost;
        outcome.bound_cost = plan.bound_cost;
        outcome.stopped = plan.stopped_by != NULL;
    }
    ssize_t written = write(fd, &outcome, sizeof outcome);
    _exit(written == (ssize_t)sizeof outcome ? 0 : 1);
}

static void read_outcome(int fd, struct outcome *outcome)
{
    struct outcome read_back;
    size_t have = 0;
    while (have < sizeof read_back) {
        ssize_t got = read(fd, (char *)&read_back + have, sizeof read_back - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return;
        have += (size_t)got;
    }
    *outcome = read_back;
}

static int run_algorithm(const struct plan_request *request, struct outcome *outcome,
                         struct error *err)
{
    int ends[2], state;
    struct rusage usage = {0};
    if (pipe(ends) < 0)
        return error_set_errno(err, E_IO, "cannot make a pipe");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(request, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return error_set_errno(err, E_IO, "cannot start a process");
    }
    read_outcome(ends[0], outcome);
    close(ends[0]);
    while (wait4(child, &state, 0, &usage) < 0 && errno == EINTR)
        continue;
    outcome->memory_mib = (double)usage.ru_maxrss / 1024;
    if (!outcome->reported)
        snprintf(outcome->text, sizeof outcome->text,
                 WIFSIGNALED(state) ? "ended by signal %d" : "ended with status %d",
                 WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state));
    return 0;
}

/* --- the table --------------------------------------------------------------------- */

struct comparison {
    struct outcome outcomes[ALGORITHMS_MAX];
    size_t count;
    double bound_cost;  /* proved by exact; NAN: none */
    double least_cost;  /* what the gaps are to: the optimum if proved, else the bound */
    double paper_bound; /* the paper's; NAN: infeasible */
};

/* How far a cost is above what is proved, as a share; NAN where that means nothing. */
static double gap_of(const struct comparison *comparison, const struct outcome *outcome)
{
    return comparison->least_cost > 0 ? outcome->cost / comparison->least_cost - 1 : NAN;
}

static const char *status_text(const struct outcome *outcome)
{
    static const char *const names[PLAN_STATUS_COUNT] = {"optimal", "feasible", "infeasible"};
    if (!outcome->reported || outcome->failure)
        return "failed";
    return outcome->stopped ? "stopped" : names[outcome->status];
}

static void add_row(struct table *table, const struct comparison *comparison,
                    const struct outcome *outcome)
{
    double gap = gap_of(comparison, outcome);
    table_add(table, outcome->solver->name);
    table_add(table, status_text(outcome));
    if (isnan(outcome->cost)) {
        table_add(table, NULL);
        table_add(table, NULL);
        table_add(table, NULL);
    } else {
        table_addf(table, "%d", outcome->gpus);
        table_addf(table, "%.6g", outcome->cost);
        if (isnan(gap))
            table_add(table, NULL);
        else
            table_addf(table, "%.2f%%", gap > 0 ? 100 * gap : 0.0);
    }
    table_add_number(table, outcome->seconds, 3);
    table_add_number(table, outcome->memory_mib, 1);
    if (*outcome->text)
        table_add(table, outcome->text);
    else /* a summary praises the plan, which there must be */
        table_add(table, isnan(outcome->cost) ? "no plan" : outcome->solver->summary);
}

static void write_text(const struct comparison *comparison, struct str *text)
{
    static const struct table_column columns[] = {
        {"algorithm", TABLE_ALIGN_LEFT}, {"status", TABLE_ALIGN_LEFT},
        {"GPUs", TABLE_ALIGN_RIGHT},     {"cost", TABLE_ALIGN_RIGHT},
        {"gap", TABLE_ALIGN_RIGHT},      {"seconds", TABLE_ALIGN_RIGHT},
        {"MiB", TABLE_ALIGN_RIGHT},      {"what", TABLE_ALIGN_LEFT}};
    CLEANUP(table_free_ptr) struct table *table = table_new(columns, 8);
    for (size_t i = 0; i < comparison->count; i++)
        add_row(table, comparison, &comparison->outcomes[i]);
    table_write(table, text);
    str_add(text, "\n");
    if (!isnan(comparison->bound_cost))
        str_addf(text, "proved bound: %.6g; the gaps are to %.6g\n", comparison->bound_cost,
                 comparison->least_cost);
    if (!isnan(comparison->paper_bound))
        str_addf(text, "MIG-serving's lower bound, without MIG's rules: %.6g\n",
                 comparison->paper_bound);
}

static json_t *number_or_null(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static void write_json(const struct comparison *comparison, struct str *text)
{
    CLEANUP(json_decref_ptr)
    json_t *root =
        json_pack("{s:o, s:o, s:[]}", "bound_cost", number_or_null(comparison->bound_cost),
                  "paper_bound", number_or_null(comparison->paper_bound), "algorithms");
    json_t *list = json_object_get(root, "algorithms");
    for (size_t i = 0; i < comparison->count; i++) {
        const struct outcome *outcome = &comparison->outcomes[i];
        bool planned = !isnan(outcome->cost) && outcome->reported;
        json_t *row = json_pack("{s:s, s:s, s:o, s:o, s:o, s:f, s:f}", "algorithm",
                                outcome->solver->name, "status", status_text(outcome), "gpus",
                                planned ? json_integer(outcome->gpus) : json_null(), "cost",
                                number_or_null(outcome->cost), "gap",
                                number_or_null(gap_of(comparison, outcome)), "seconds",
                                outcome->seconds, "memory_mib", outcome->memory_mib);
        if (*outcome->text)
            json_object_set_new(row, "error", json_string(outcome->text));
        json_array_append_new(list, row);
    }
    json_write_pretty(root, text);
}

/* --- the command ------------------------------------------------------------------- */

static bool is_chosen(const struct option_list *names, const struct solver *solver)
{
    if (names->count == 0 || strcmp(solver->name, "exact") == 0)
        return true;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], solver->name) == 0)
            return true;
    return false;
}

static int check_names(const struct option_list *names, struct error *err)
{
    for (size_t i = 0; i < names->count; i++)
        if (!solver_find(names->items[i]))
            return error_set(err, E_USAGE, "algorithm \"%s\" is not known", names->items[i]);
    return 0;
}

static int find_paper_bound(const struct compare_options *given,
                            const struct plan_inputs *inputs, double *ret_bound,
                            struct error *err)
{
    const struct executor executor = {.workers = (int)given->threads};
    struct plan_request request = make_request(given, inputs, NULL);
    struct problem problem;
    int rc = problem_init(&problem, &inputs->services, &inputs->rows,
                          &(struct problem_options){
                              .rules = request.rules, .max_moves = -1, .executor = &executor},
                          err);
    if (rc < 0)
        return rc;
    *ret_bound = problem.infeasible.count > 0 ? NAN : paper_lower_bound(&problem);
    problem_done(&problem);
    return 0;
}

static void note_bound(struct comparison *comparison, const struct outcome *outcome)
{
    comparison->bound_cost = outcome->bound_cost;
    comparison->least_cost =
        outcome->status == PLAN_OPTIMAL ? outcome->cost : outcome->bound_cost;
}

static int run_all(const struct compare_options *given, const struct plan_inputs *inputs,
                   struct comparison *comparison, struct error *err)
{
    const struct executor executor = {.workers = (int)given->threads};
    struct progress progress = {0};
    int rc = find_paper_bound(given, inputs, &comparison->paper_bound, err);
    const struct solver *const *solvers = solver_list();
    comparison->bound_cost = comparison->least_cost = NAN;
    for (size_t i = 0; solvers[i] && rc == 0; i++) {
        if (!is_chosen(&given->algorithms, solvers[i]))
            continue;
        assert(comparison->count < ALGORITHMS_MAX);
        struct outcome *outcome = &comparison->outcomes[comparison->count++];
        struct plan_request request = make_request(given, inputs, solvers[i]->name);
        request.settings.executor = &executor;
        outcome->cost = NAN;
        progress_show(&progress, "%s …", solvers[i]->name);
        rc = run_algorithm(&request, outcome, err);
        outcome->solver = solvers[i];
        if (strcmp(solvers[i]->name, "exact") == 0 && outcome->reported && !outcome->failure)
            note_bound(comparison, outcome);
    }
    progress_done(&progress);
    return rc;
}

/* The answer is no when no algorithm has a plan. */
static int judge(const struct comparison *comparison, struct error *err)
{
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->outcomes[i].reported && !isnan(comparison->outcomes[i].cost))
            return 0;
    return error_set(err, E_NO, "none of %zu algorithms found a plan", comparison->count);
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct compare_options *given = raw;
    CLEANUP(plan_inputs_done) struct plan_inputs inputs = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct comparison comparison = {0};
    assert(arguments.count == 0);
    int rc = check_names(&given->algorithms, err);
    if (rc == 0)
        rc = plan_inputs_read(&inputs, given->services, given->measurements, given->fleet, err);
    if (rc == 0)
        rc = run_all(given, &inputs, &comparison, err);
    if (rc < 0)
        return rc;
    if (given->json)
        write_json(&comparison, &text);
    else
        write_text(&comparison, &text);
    rc = output_write(given->output, &text, err);
    return rc < 0 ? rc : judge(&comparison, err);
}

const struct command cmd_plan_compare = {
    .name = "compare",
    .summary = "every algorithm and baseline on the same problem, with the proved bound",
    .description =
        "Plans with each algorithm and baseline in turn, each in a process of its own, and "
        "prints GPUs, cost, gap to the bound that `exact` proves, time and peak memory. "
        "Every plan is verified first. Exit 1 when none of them has a plan.",
    .examples =
        "tranche plan compare -s services.yaml -m measurements.csv\n"
        "tranche plan compare -s services.yaml -m measurements.csv --rules paper --rounds 10",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .options_size = sizeof(struct compare_options),
    .run = run,
};
