/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche transition plan|verify|simulate|rollback`.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/transition_text.h"
#include "transition/plan.h"
#include "transition/rollback.h"
#include "transition/simulate.h"
#include "transition/verify.h"

enum { ACTIONS_SHOWN = 200, TIMES_SIZE_LIMIT = 1 << 20 };

struct times_source {
    const struct action_times *times;
    struct action_times own;
};

static void times_source_done(struct times_source *source)
{
    action_times_done(&source->own);
}

/* "measured", "paper" or a file. */
static int read_times(const char *name, struct times_source *source, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    source->times = action_times_find(name);
    if (source->times)
        return 0;
    int rc = file_read(name, TIMES_SIZE_LIMIT, &bytes, err);
    if (rc == 0)
        rc = action_times_parse(name, bytes.bytes, bytes.length, &source->own, err);
    source->times = &source->own;
    return rc;
}

static int read_transition(const char *path, struct transition *ret_transition,
                           struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    int rc = json_read(path, &root, err);
    return rc < 0 ? rc : transition_from_json(path, root, ret_transition, err);
}

struct output_options {
    const char *output;
    bool json;
};

/* The document to -o, and to standard output what people or programs read there. */
static int write_transition(const struct output_options *given,
                            const struct transition *transition, struct error *err)
{
    CLEANUP(str_done) struct str document = STR_EMPTY;
    CLEANUP(str_done) struct str words = STR_EMPTY;
    CLEANUP(transition_report_done) struct transition_report report = {0};
    int rc = 0;
    transition_format(transition, &document);
    transition_verify(transition, &report);
    transition_text(transition, &report, ACTIONS_SHOWN, &words);
    if (given->output)
        rc = output_write(given->output, &document, err);
    if (rc < 0 || (given->output && strcmp(given->output, "-") == 0))
        return rc;
    return output_write(NULL, given->json ? &document : &words, err);
}

struct plan_options {
    long long spare;
    const char *algorithm;
    const char *times;
    long long seed;
    bool allow_larger_slice;
    bool keep_nodes;
    struct output_options output;
};

static const struct option_spec plan_specs[] = {
    OPTION_INT(0, "spare", struct plan_options, spare, "N", "0", 0, 1e6,
               "GPUs beyond those of the larger plan that may be borrowed"),
    OPTION_CHOICE(
        'a', "algorithm", struct plan_options, algorithm, "dag|exchange-compact", "dag",
        "the least set of actions in the weakest safe order, or the MIG-serving paper's"),
    OPTION_FLAG(0, "allow-larger-slice", struct plan_options, allow_larger_slice,
                "leave a service in a larger slice where that saves a move"),
    OPTION_FLAG(0, "keep-nodes", struct plan_options, keep_nodes,
                "carry out a GPU of a known node on that node alone"),
    OPTION_TEXT(0, "times", struct plan_options, times, "FILE", "measured",
                "how long actions take: measured, paper or a YAML file"),
    OPTION_INT(0, "seed", struct plan_options, seed, "N", "1", 0, 9e18, "seed"),
    OPTION_FLAG(0, "json", struct plan_options, output.json, "print JSON"),
    OPTION_TEXT('o', "output", struct plan_options, output.output, "FILE", NULL,
                "write the transition, JSON, to FILE"),
};

static int run_plan(const void *raw, struct arguments arguments, struct error *err)
{
    const struct plan_options *given = raw;
    CLEANUP(plan_done) struct plan from, to;
    CLEANUP(transition_done) struct transition transition;
    CLEANUP(times_source_done) struct times_source times = {0};
    plan_init(&from);
    plan_init(&to);
    transition_init(&transition);
    int rc = read_times(given->times, &times, err);
    if (rc == 0)
        rc = plan_read(arguments.items[0], &from, err);
    if (rc == 0)
        rc = plan_read(arguments.items[1], &to, err);
    if (rc < 0)
        return rc;
    struct transition_options options = {.algorithm = strcmp(given->algorithm, "dag") == 0
                                                          ? TRANSITION_DAG
                                                          : TRANSITION_EXCHANGE_COMPACT,
                                         .spare = (int)given->spare,
                                         .allow_larger_slice = given->allow_larger_slice,
                                         .keep_nodes = given->keep_nodes,
                                         .times = times.times,
                                         .seed = (uint64_t)given->seed};
    rc = transition_plan(&from, &to, &options, &transition, err);
    return rc < 0 ? rc : write_transition(&given->output, &transition, err);
}

static const struct command command_plan = {
    .name = "plan",
    .summary = "order the actions from one plan to the next",
    .positionals = "FROM.json TO.json",
    .arguments_min = 2,
    .arguments_max = 2,
    .description =
        "Matches the GPUs of TO to those of FROM so that the most capacity stays where it is, "
        "then orders the actions so that no service ever has less than the smaller of what it "
        "requires before and after, whatever order the actions finish in. Borrows as few GPUs "
        "as "
        "it can, 0 unless --spare allows more. Every transition is verified before it is "
        "printed. Exit 1 when no order exists, with what is in the way and how many spare GPUs "
        "would do.",
    .examples = "tranche transition plan day.json night.json -o transition.json\n"
                "tranche transition plan day.json night.json --spare 1 --times paper",
    .options = plan_specs,
    .option_count = sizeof plan_specs / sizeof *plan_specs,
    .options_size = sizeof(struct plan_options),
    .run = run_plan,
};

struct verify_options {
    bool json;
    const char *output;
};

static const struct option_spec verify_specs[] = {
    OPTION_FLAG(0, "json", struct verify_options, json, "print JSON"),
    OPTION_TEXT('o', "output", struct verify_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
};

static int run_verify(const void *raw, struct arguments arguments, struct error *err)
{
    const struct verify_options *given = raw;
    CLEANUP(transition_done) struct transition transition;
    CLEANUP(transition_report_done) struct transition_report report = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    transition_init(&transition);
    int rc = read_transition(arguments.items[0], &transition, err);
    if (rc < 0)
        return rc;
    transition_verify(&transition, &report);
    if (given->json) {
        CLEANUP(json_decref_ptr) json_t *root = transition_report_json(&report);
        json_write_pretty(root, &text);
    } else {
        transition_report_text(&transition, &report, &text);
    }
    rc = output_write(given->output, &text, err);
    size_t count = report.violations.count;
    if (rc < 0 || count == 0)
        return rc;
    return error_set(err, E_NO, "%zu violation%s", count, count == 1 ? "" : "s");
}

static const struct command command_verify = {
    .name = "verify",
    .summary = "prove that a transition is safe in every order that it allows",
    .positionals = "TRANSITION.json",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "For every order in which the actions may finish: the least ready capacity of each "
        "service, exactly; no layout that can be reached is illegal; the end is TO, and "
        "nothing "
        "else is touched. Shares no code with the planner. Prints each violation; exit 0 when "
        "there is none, 1 otherwise.",
    .examples = "tranche transition verify transition.json",
    .options = verify_specs,
    .option_count = sizeof verify_specs / sizeof *verify_specs,
    .options_size = sizeof(struct verify_options),
    .run = run_verify,
};

struct simulate_cli_options {
    const char *times;
    const char *lose;
    double fail;
    double lost_share;
    double load;
    long long seed;
    bool jitter;
    struct output_options output;
};

static const struct option_spec simulate_specs[] = {
    OPTION_TEXT(0, "times", struct simulate_cli_options, times, "FILE", NULL,
                "how long actions take: measured, paper or a YAML file, instead of the file's"),
    OPTION_FLAG(0, "jitter", struct simulate_cli_options, jitter,
                "let times vary, with a long tail"),
    OPTION_NUMBER(0, "fail", struct simulate_cli_options, fail, "P", "0", 0, 0.9,
                  "probability that an action fails and is repeated, or its GPU is lost"),
    OPTION_NUMBER(0, "lost-share", struct simulate_cli_options, lost_share, "P", "0.1", 0, 1,
                  "share of failures that lose the GPU at once; three repeats in vain also do"),
    OPTION_TEXT(0, "lose", struct simulate_cli_options, lose, "GPU@SECONDS", NULL,
                "lose this GPU at that time"),
    OPTION_NUMBER(0, "load", struct simulate_cli_options, load, "SHARE", "0.9", 0, 100,
                  "requests that arrive, as a share of each service's floor"),
    OPTION_INT(0, "seed", struct simulate_cli_options, seed, "N", "1", 0, 9e18, "seed"),
    OPTION_FLAG(0, "json", struct simulate_cli_options, output.json, "print JSON"),
    OPTION_TEXT('o', "output", struct simulate_cli_options, output.output, "FILE", NULL,
                "write the way on after the last lost GPU, a transition, to FILE"),
};

/* "g3@12.5" into a GPU of the transition and a time. */
static int read_lose(const char *text, const struct transition *transition,
                     struct simulate_options *options, char **ret_gpu, struct error *err)
{
    const char *at = strrchr(text, '@');
    if (!at || !text_to_double(at + 1, &options->lose_at_seconds) ||
        options->lose_at_seconds < 0)
        return error_set(err, E_USAGE, "--lose \"%s\": expected GPU@SECONDS, as in g3@12.5",
                         text);
    *ret_gpu = xstrndup(text, (size_t)(at - text));
    options->lose_gpu = *ret_gpu;
    if (transition_find_gpu(transition, *ret_gpu) < 0 &&
        plan_find_gpu(&transition->from, *ret_gpu) < 0)
        return error_set(err, E_INPUT, "--lose: \"%s\" is not a GPU of the transition",
                         *ret_gpu);
    return 0;
}

static int require_safe(const struct transition *transition, struct error *err)
{
    CLEANUP(transition_report_done) struct transition_report report = {0};
    transition_verify(transition, &report);
    return transition_report_error(&report, err);
}

static int write_simulation(const struct output_options *given,
                            const struct simulation *simulation, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(str_done) struct str document = STR_EMPTY;
    if (given->output && simulation->replanned) {
        transition_format(&simulation->last, &document);
        if (output_write(given->output, &document, err) < 0)
            return -err->code;
    }
    if (given->json) {
        CLEANUP(json_decref_ptr) json_t *root = simulation_json(simulation);
        json_write_pretty(root, &text);
    } else {
        simulation_text(simulation, &text);
    }
    return output_write(NULL, &text, err);
}

static int run_simulate(const void *raw, struct arguments arguments, struct error *err)
{
    const struct simulate_cli_options *given = raw;
    CLEANUP(transition_done) struct transition transition;
    CLEANUP(times_source_done) struct times_source times = {0};
    CLEANUP(simulation_done) struct simulation simulation = {0};
    CLEANUP(free_ptr) char *gpu = NULL;
    struct simulate_options options = {.seed = (uint64_t)given->seed,
                                       .jitter = given->jitter,
                                       .fail = given->fail,
                                       .lost_share = given->lost_share,
                                       .load = given->load};
    transition_init(&transition);
    int rc = read_transition(arguments.items[0], &transition, err);
    if (rc == 0 && given->times)
        rc = read_times(given->times, &times, err);
    if (rc == 0 && given->lose)
        rc = read_lose(given->lose, &transition, &options, &gpu, err);
    if (rc == 0)
        rc = require_safe(&transition, err);
    options.times = times.times;
    if (rc == 0)
        rc = transition_simulate(&transition, &options, &simulation, err);
    return rc < 0 ? rc : write_simulation(&given->output, &simulation, err);
}

static const struct command command_simulate = {
    .name = "simulate",
    .summary = "play a transition: how long, and what requests notice",
    .positionals = "TRANSITION.json",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "Plays one run: action times, failures, requests that flow. Reports the makespan, the "
        "seconds of borrowed GPUs, actions by kind, the least capacity of each service and "
        "late "
        "requests. When a GPU is lost, what runs elsewhere comes to its end and the way on is "
        "planned from the state reached; what the loss made unavoidable is stated.",
    .examples = "tranche transition simulate transition.json --jitter --seed 7\n"
                "tranche transition simulate transition.json --lose g3@12 -o way_on.json",
    .options = simulate_specs,
    .option_count = sizeof simulate_specs / sizeof *simulate_specs,
    .options_size = sizeof(struct simulate_cli_options),
    .run = run_simulate,
};

struct rollback_options {
    const char *done;
    const char *times;
    struct output_options output;
};

static const struct option_spec rollback_specs[] = {
    OPTION_TEXT_REQUIRED(
        0, "done", struct rollback_options, done, "IDS",
        "the actions that are done, separated by commas or blanks; - for none"),
    OPTION_TEXT(0, "times", struct rollback_options, times, "FILE", "measured",
                "how long actions take: measured, paper or a YAML file"),
    OPTION_FLAG(0, "json", struct rollback_options, output.json, "print JSON"),
    OPTION_TEXT('o', "output", struct rollback_options, output.output, "FILE", NULL,
                "write the transition back, JSON, to FILE"),
};

static int run_rollback(const void *raw, struct arguments arguments, struct error *err)
{
    const struct rollback_options *given = raw;
    CLEANUP(transition_done) struct transition transition, back;
    CLEANUP(times_source_done) struct times_source times = {0};
    transition_init(&transition);
    transition_init(&back);
    int rc = read_times(given->times, &times, err);
    if (rc == 0)
        rc = read_transition(arguments.items[0], &transition, err);
    if (rc < 0)
        return rc;
    CLEANUP(free_ptr) bool *done = xcalloc(transition.actions.count, sizeof *done);
    rc = rollback_parse_done(&transition, given->done, done, err);
    if (rc == 0)
        rc = transition_rollback(&transition, done, times.times, &back, err);
    return rc < 0 ? rc : write_transition(&given->output, &back, err);
}

static const struct command command_rollback = {
    .name = "rollback",
    .summary = "the way back from a state that a transition has reached",
    .positionals = "TRANSITION.json",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "From the state after the actions done back to FROM, GPU by GPU, under the same floor. "
        "Actions under way must come to their end first: name those that did. The way back is "
        "a "
        "transition, verified before it is printed; it always exists.",
    .examples = "tranche transition rollback transition.json --done a1,a2,a5 -o back.json",
    .options = rollback_specs,
    .option_count = sizeof rollback_specs / sizeof *rollback_specs,
    .options_size = sizeof(struct rollback_options),
    .run = run_rollback,
};

static const struct command *const transition_commands[] = {
    &command_plan, &command_verify, &command_simulate, &command_rollback, NULL};

const struct command cmd_transition = {
    .name = "transition",
    .summary = "from one plan to the next without dropping below the floor",
    .description =
        "Plans, proves, simulates and takes back the change from one plan to another.",
    .subcommands = transition_commands,
};
