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
        'a', "algorithm", struct plan_options, algorithm, "dag", "dag",
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
    struct transition_options options = {.algorithm = TRANSITION_DAG,
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
};

static const struct option_spec verify_specs[] = {
    OPTION_FLAG(0, "json", struct verify_options, json, "print JSON"),
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
    rc = output_write(NULL, &text, err);
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

static const struct command *const transition_commands[] = {&command_plan, &command_verify,
                                                            NULL};

const struct command cmd_transition = {
    .name = "transition",
    .summary = "from one plan to the next without dropping below the floor",
    .description =
        "Plans, proves, simulates and takes back the change from one plan to another.",
    .subcommands = transition_commands,
};
