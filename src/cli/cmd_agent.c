/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche agent`: the node agent of a Kubernetes cluster, one a node.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cluster_link.h"
#include "cli/commands.h"
#include "control/agent.h"
#include "control/http_endpoints.h"
#include "control/kinds.h"
#include "gpu/apply.h"

struct agent_command_options {
    const char *node_name, *driver, *library, *kubeconfig, *context, *cdi_folder, *host_root,
        *listen, *state_dir;
    double interval_s;
    bool no_cdi;
};

static const struct option_spec options[] = {
    OPTION_TEXT('n', "node-name", struct agent_command_options, node_name, "NAME", NULL,
                "name of the Node, and of the NodeGpuState (default: $NODE_NAME)"),
    OPTION_TEXT('d', "driver", struct agent_command_options, driver, "nvml|sim", NULL,
                "the driver (default: sim when TRANCHE_SIM or TRANCHE_SIM_FLEET is set, else "
                "nvml)"),
    OPTION_TEXT(0, "library", struct agent_command_options, library, "FILE", NULL,
                "the NVML library (default: looked for)"),
    OPTION_TEXT(0, "kubeconfig", struct agent_command_options, kubeconfig, "FILE", NULL,
                "where the API server is and who we are (default: $KUBECONFIG, the pod's "
                "service account, ~/.kube/config)"),
    OPTION_TEXT(0, "context", struct agent_command_options, context, "NAME", NULL,
                "context of the kubeconfig (default: its current one)"),
    OPTION_TEXT(0, "cdi-folder", struct agent_command_options, cdi_folder, "FOLDER", NULL,
                "where CDI specifications go (default: /var/run/cdi; none with the simulated "
                "driver)"),
    OPTION_FLAG(0, "no-cdi", struct agent_command_options, no_cdi,
                "write no CDI specifications"),
    OPTION_TEXT(0, "host-root", struct agent_command_options, host_root, "FOLDER", "",
                "where the host's /proc and /dev are found, for capabilities of instances"),
    OPTION_TEXT('l', "listen", struct agent_command_options, listen, "ADDRESS:PORT",
                "127.0.0.1:9465",
                "for /metrics, /healthz and /readyz; port 0 takes a free one"),
    OPTION_TEXT(0, "state-dir", struct agent_command_options, state_dir, "FOLDER", NULL,
                "lock and journal (default: as of tranche gpu)"),
    OPTION_NUMBER('i', "interval", struct agent_command_options, interval_s, "SECONDS", "30",
                  0.1, 3600, "time between two looks at GPUs at rest"),
};

static volatile sig_atomic_t stopping;

/* All that runs, in the order in which it is made. */
struct running {
    struct cluster_link link;
    struct agent *agent;
    struct http_endpoints *endpoints;
    struct str state_dir;
    bool ended;
};

static void running_done(struct running *running)
{
    http_endpoints_free(running->endpoints);
    agent_free(running->agent);
    cluster_link_done(&running->link);
    str_done(&running->state_dir);
}

/* The first signal ends the loop; no further step of a change begins. */
static void on_signal(void *context)
{
    struct running *running = context;

    if (cluster_link_take_signal(&running->link))
        running->ended = true;
    stopping = 1;
}

static void write_metrics(void *context, struct str *text)
{
    agent_metrics(context, text);
}

static bool is_ready(void *context, struct str *why)
{
    return agent_is_ready(context, why);
}

static int start_agent(struct running *running, const struct agent_command_options *given,
                       const char *node_name, struct error *err)
{
    enum gpu_driver_kind kind;

    int r = gpu_driver_kind_get(given->driver, &kind, err);
    if (r)
        return r;
    if (given->state_dir)
        str_add(&running->state_dir, given->state_dir);
    else
        gpu_state_dir(kind, &running->state_dir);
    const char *cdi = given->cdi_folder;
    if (!cdi && kind == GPU_DRIVER_NVML)
        cdi = "/var/run/cdi";
    const struct agent_options how = {
        .client = running->link.client,
        .events = running->link.events,
        .node_name = node_name,
        .version = TRANCHE_VERSION,
        .gpus = {.kind = kind,
                 .library = given->library,
                 .state_dir = running->state_dir.bytes,
                 .cdi = {given->no_cdi ? NULL : cdi, given->host_root},
                 .stop = &stopping},
        .interval_ns = (int64_t)(given->interval_s * 1e9),
        .seed = (uint64_t)getpid(),
    };
    return agent_new(&how, &running->agent, err);
}

static int serve(struct running *running, const struct agent_command_options *given,
                 struct error *err)
{
    const struct http_endpoints_options how = {.loop = running->link.loop,
                                               .listen = given->listen,
                                               .metrics = write_metrics,
                                               .ready = is_ready,
                                               .context = running->agent};
    int r = http_endpoints_start(&how, &running->endpoints, err);

    if (!r)
        log_write(LOG_INFO, "agent runs", "port=%u",
                  (unsigned)http_endpoints_port(running->endpoints));
    while (!r && !running->ended)
        r = kube_loop_turn(running->link.loop, INT64_C(1000000000), err);
    return r;
}

static int run(const void *parsed, struct arguments arguments, struct error *err)
{
    const struct agent_command_options *given = parsed;
    const char *environment = getenv("NODE_NAME");
    const char *node_name = given->node_name ? given->node_name : environment;
    const char *option = given->node_name ? "--node-name" : "NODE_NAME";
    CLEANUP(running_done)
    struct running running = {.state_dir = STR_EMPTY, .link = CLUSTER_LINK_EMPTY};
    char host[HOST_NAME_MAX + 1] = "agent";

    (void)arguments;
    if (!node_name || !*node_name)
        return error_set(err, E_USAGE,
                         "which node is this? give --node-name, or set NODE_NAME");
    gethostname(host, sizeof host - 1);
    int r = cluster_name_check(option, node_name, false, err);
    if (!r)
        r = cluster_link_watch_signals(&running.link, err);
    if (!r)
        r = cluster_link_open(&running.link,
                              &(struct cluster_link_options){.kubeconfig = given->kubeconfig,
                                                             .context = given->context,
                                                             .manager = MANAGER_AGENT,
                                                             .controller = "tranche.dev/agent",
                                                             .instance = host,
                                                             .on_signal = on_signal,
                                                             .owner = &running},
                              err);
    if (!r)
        r = start_agent(&running, given, node_name, err);
    return r ? r : serve(&running, given, err);
}

const struct command cmd_agent = {
    .name = "agent",
    .summary = "the node agent of a Kubernetes cluster",
    .description =
        "Watches the NodeGpuState (tranche.dev/v1alpha1) of its node, brings the GPUs that its "
        "spec names to the layouts that it asks for, and says in its status what is there. "
        "Instances in use are never touched, other GPUs neither. It refuses a node whose MIG "
        "state another program drives.\n\n"
        "Runs until SIGTERM. What was begun when it died is finished by the next one.",
    .examples = "tranche agent --node-name gpu-node-1\n"
                "TRANCHE_SIM_FLEET=a100-40gb:2 tranche agent --node-name n1 --kubeconfig "
                "~/.kube/config",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .options_size = sizeof(struct agent_command_options),
    .run = run,
};
