/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche controller`: plans and transitions of a Kubernetes cluster.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cluster_link.h"
#include "cli/commands.h"
#include "cli/controller_profiles.h"
#include "cli/controller_tools.h"
#include "cli/output.h"
#include "control/controller.h"
#include "control/http_endpoints.h"
#include "control/kinds.h"

#define SECOND_NS INT64_C(1000000000)

struct controller_command_options {
    const char *kubeconfig, *context, *namespace, *lease_name, *listen, *pool, *log, *profiles;
    double plan_budget_s, wait_s, clean_up_s;
    long long lease_s, threads;
    bool elect, once, dry_run, check, clean_up, json;
};

static const struct option_spec options[] = {
    OPTION_TEXT(0, "kubeconfig", struct controller_command_options, kubeconfig, "FILE", NULL,
                "where the API server is and who we are (default: $KUBECONFIG, the pod's "
                "service account, ~/.kube/config)"),
    OPTION_TEXT(0, "context", struct controller_command_options, context, "NAME", NULL,
                "context of the kubeconfig (default: its current one)"),
    OPTION_TEXT('n', "namespace", struct controller_command_options, namespace, "NAME", NULL,
                "namespace of the Lease (default: $POD_NAMESPACE, the kubeconfig's)"),
    OPTION_TEXT('l', "listen", struct controller_command_options, listen, "ADDRESS:PORT",
                "127.0.0.1:9464",
                "for /metrics, /healthz and /readyz; port 0 takes a free one"),
    OPTION_FLAG('e', "elect", struct controller_command_options, elect,
                "act only while holding the Lease: for more than one replica"),
    OPTION_TEXT(0, "lease-name", struct controller_command_options, lease_name, "NAME",
                "tranche-controller", "name of the Lease"),
    OPTION_INT(0, "lease-seconds", struct controller_command_options, lease_s, "SECONDS", "15",
               3, 3600, "after which another takes over from a leader that is not heard of"),
    OPTION_TEXT('p', "pool", struct controller_command_options, pool, "NAME", NULL,
                "see to this GpuPool alone"),
    OPTION_NUMBER(0, "plan-budget", struct controller_command_options, plan_budget_s, "SECONDS",
                  "10", 0.1, 3600, "time to improve one plan"),
    OPTION_INT(0, "threads", struct controller_command_options, threads, "N", "2", 1, 64,
               "pools that are reconciled at once"),
    OPTION_FLAG(0, "once", struct controller_command_options, once,
                "one round for each pool, then end"),
    OPTION_NUMBER(0, "wait", struct controller_command_options, wait_s, "SECONDS", "60", 0.1,
                  86400, "with --once: how long to wait for the cluster's answers"),
    OPTION_FLAG(
        0, "dry-run", struct controller_command_options, dry_run,
        "print what would be done, one JSON object a line; change nothing (with --once: "
        "in the first round alone)"),
    OPTION_FLAG(0, "check", struct controller_command_options, check,
                "say whether the cluster is ready for the controller, and end"),
    OPTION_FLAG(0, "json", struct controller_command_options, json, "with --check: print JSON"),
    OPTION_FLAG(0, "clean-up", struct controller_command_options, clean_up,
                "before uninstalling: delete all our objects, take our finalizer off what is "
                "left, and end"),
    OPTION_NUMBER(0, "clean-up-seconds", struct controller_command_options, clean_up_s,
                  "SECONDS", "120", 0, 86400,
                  "with --clean-up: how long a running controller has to drain services"),
    OPTION_TEXT(0, "profiles", struct controller_command_options, profiles, "FILE.csv", NULL,
                "print the measurements of a file as PerfProfiles, for kubectl apply, and end"),
    OPTION_CHOICE(0, "log", struct controller_command_options, log, "auto|text|json", "auto",
                  "form of the log; auto: text on a terminal, else JSON"),
};

/* All that runs, in the order in which it is made. */
struct running {
    struct cluster_link link;
    struct controller *controller;
    struct http_endpoints *endpoints;
    char *identity;
};

static void running_done(struct running *running)
{
    http_endpoints_free(running->endpoints);
    controller_free(running->controller);
    cluster_link_done(&running->link);
    free(running->identity);
}

static void on_signal(void *context)
{
    struct running *running = context;

    if (cluster_link_take_signal(&running->link))
        controller_stop(running->controller);
}

/* The pod's name, or the machine's, and something that no other process had. */
static char *make_identity(void)
{
    const char *pod = getenv("POD_NAME");
    char host[65] = "tranche";
    uint64_t random = 0;

    if (getrandom(&random, sizeof random, 0) < 0)
        random = (uint64_t)clock_now_ns(clock_real());
    gethostname(host, sizeof host - 1);
    return xasprintf("%s_%d_%016" PRIx64, pod && *pod ? pod : host, (int)getpid(), random);
}

static int connect_api(struct running *running, const struct controller_command_options *given,
                       struct error *err)
{
    return cluster_link_open(
        &running->link,
        &(struct cluster_link_options){.kubeconfig = given->kubeconfig,
                                       .context = given->context,
                                       .manager = MANAGER_CONTROLLER,
                                       .controller = "tranche.dev/controller",
                                       .instance = running->identity,
                                       .on_signal = on_signal,
                                       .owner = running},
        err);
}

static void on_show(void *context, const char *pool, const struct effects *effects)
{
    (void)context;
    for (size_t i = 0; i < effects->items.count; i++) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        CLEANUP(json_decref_ptr) json_t *json = effect_to_json(&effects->items.data[i]);
        json_object_set_new(json, "pool", json_string(pool));
        json_write_line(json, &text);
        puts(text.bytes);
    }
    fflush(stdout);
}

static const char *namespace_of(const struct running *running,
                                const struct controller_command_options *given)
{
    const char *pod_namespace = getenv("POD_NAMESPACE");

    if (given->namespace)
        return given->namespace;
    return pod_namespace && *pod_namespace ? pod_namespace : running->link.auth->namespace;
}

static int start_controller(struct running *running,
                            const struct controller_command_options *given, struct error *err)
{
    const struct controller_options wanted = {
        .client = running->link.client,
        .events = given->dry_run ? NULL : running->link.events,
        .reconcile = controller_reconcile,
        .pool = given->pool,
        .identity = running->identity,
        .lease_namespace = namespace_of(running, given),
        .lease_name = given->lease_name,
        .lease_duration_ns = given->lease_s * SECOND_NS,
        .reconcile_options = {.plan_budget_seconds = given->plan_budget_s,
                              .clock = clock_real()},
        .threads = (unsigned)given->threads,
        .seed = (uint64_t)getpid(),
        .elect = given->elect && !given->dry_run,
        .once = given->once,
        .once_sync_ns = (int64_t)(given->wait_s * 1e9),
        .show = given->dry_run ? on_show : NULL,
    };
    int failed = controller_new(&wanted, &running->controller, err);

    if (failed || given->once)
        return failed;
    failed = http_endpoints_start(
        &(struct http_endpoints_options){.loop = running->link.loop,
                                         .listen = given->listen,
                                         .metrics = controller_metrics_page,
                                         .ready = controller_is_ready,
                                         .context = running->controller},
        &running->endpoints, err);
    if (!failed)
        log_write(LOG_INFO, "listening", "port=%u", http_endpoints_port(running->endpoints));
    return failed;
}

static bool wants_json(const struct controller_command_options *given)
{
    if (strcmp(given->log, "auto") == 0)
        return !output_messages_are_on_terminal();
    return strcmp(given->log, "json") == 0;
}

/* A plan may still be computed; nobody wants it any more. */
static void leave_rounds(struct running *running, int status)
{
    if (controller_wait(running->controller, 2 * SECOND_NS))
        return;
    log_write(LOG_INFO, "ending while a plan is made", NULL);
    fflush(stdout);
    _exit(status);
}

static int run_tool(const struct running *running,
                    const struct controller_command_options *given, struct error *err)
{
    if (given->clean_up)
        return controller_clean_up(running->link.client, given->clean_up_s, err);
    return controller_check(
        &(struct controller_check){.client = running->link.client,
                                   .namespace = namespace_of(running, given),
                                   .lease = given->lease_name,
                                   .json = given->json},
        err);
}

static int check_names(const struct controller_command_options *given, struct error *err)
{
    const char *pod_namespace = getenv("POD_NAMESPACE");
    const struct {
        const char *option, *name;
        bool label;
    } names[] = {
        {"--namespace", given->namespace, true},
        {"POD_NAMESPACE", pod_namespace && *pod_namespace ? pod_namespace : NULL, true},
        {"--lease-name", given->lease_name, false},
        {"--pool", given->pool, false},
    };
    int wrong = 0;

    for (size_t i = 0; !wrong && i < sizeof names / sizeof *names; i++)
        wrong = cluster_name_check(names[i].option, names[i].name, names[i].label, err);
    return wrong;
}

/* Each of these is a run of its own: together, one would do what the other promises not to. */
static int check_options(const struct controller_command_options *given, struct error *err)
{
    bool shows = given->once || given->dry_run || given->check || given->profiles;

    if (given->clean_up && shows)
        return error_set(err, E_USAGE,
                         "--clean-up deletes: it goes with no other of --check, "
                         "--once, --dry-run and --profiles");
    if (given->check && (given->once || given->dry_run))
        return error_set(err, E_USAGE,
                         "--check only reads and reports: it goes without --once "
                         "and --dry-run");
    if (given->json && !given->check)
        return error_set(err, E_USAGE, "--json is the form of what --check prints: give both");
    return check_names(given, err);
}

/* Signals end a tool as they end any program; the controller is told of them. */
static int run(const void *parsed, struct arguments arguments, struct error *err)
{
    const struct controller_command_options *given = parsed;
    CLEANUP(running_done) struct running running = {.link = CLUSTER_LINK_EMPTY};

    (void)arguments;
    int wrong = check_options(given, err);
    if (wrong)
        return wrong;
    if (given->profiles)
        return controller_profiles(given->profiles, err);
    log_set_json(wants_json(given));
    running.identity = make_identity();
    bool tool = given->check || given->clean_up;
    int failed = tool ? 0 : cluster_link_watch_signals(&running.link, err);
    if (!failed)
        failed = connect_api(&running, given, err);
    if (!failed && tool)
        return run_tool(&running, given, err);
    if (!failed)
        failed = start_controller(&running, given, err);
    while (!failed && !controller_is_over(running.controller))
        failed = kube_loop_turn(running.link.loop, 10 * SECOND_NS, err);
    if (failed)
        return failed;
    failed = controller_end(running.controller, err);
    if (failed)
        log_write(LOG_ERROR, "ended", "error=\"%s\"", err->text);
    leave_rounds(&running, failed ? error_exit_status(err->code) : 0);
    return failed;
}

const struct command cmd_controller = {
    .name = "controller",
    .summary = "plan and change a Kubernetes cluster",
    .arguments_max = 0,
    .description =
        "Watches GpuServices, PerfProfiles, GpuPools and nodes, plans each pool's GPUs, and "
        "carries the Transition to that plan out step by step, so that no service has less "
        "capacity than its floor. What it does is in docs/spec/controller.md.\n\n"
        "Several replicas with --elect share one Lease: one acts, the others stand by. A "
        "replica that loses the Lease exits with 1; SIGTERM finishes the effect under way, "
        "gives the Lease up and exits with 0.",
    .examples = "tranche controller --check\n"
                "tranche controller --profiles measurements.csv | kubectl apply -f -\n"
                "tranche controller --kubeconfig ~/.kube/config --once --dry-run\n"
                "tranche controller --elect --listen [::]:8080",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct controller_command_options),
    .run = run,
};
