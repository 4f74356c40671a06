/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche up`: brings a plan up on this machine and returns once every server answers. The
 * process that steers stays in the background.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/plan_inputs.h"
#include "cli/progress.h"
#include "cli/running.h"
#include "cli/status_text.h"
#include "plan/run.h"
#include "runtime/runtime.h"
#include "runtime/runtime_main.h"
#include "runtime/state_folder.h"

struct up_options {
    const char *state_dir, *services, *measurements, *models;
    struct option_list model;
    const char *driver, *library, *device, *ort_library, *address, *slice_method;
    long long port;
    double cpu_full_slice, period_ms, timeout;
    bool foreground, json;
};

static const struct option_spec options[] = {
    RUNNING_MODEL_OPTIONS(struct up_options),
    OPTION_TEXT('m', "measurements", struct up_options, measurements, "FILE", NULL,
                "measurements; needed to plan from a services file"),
    OPTION_TEXT(0, "address", struct up_options, address, "ADDRESS", "127.0.0.1",
                "IPv4 address where the services are reached"),
    OPTION_INT('p', "port", struct up_options, port, "PORT", "8000", 1, 65535,
               "port where the services are reached, as /v2/models/SERVICE"),
    OPTION_CHOICE(0, "driver", struct up_options, driver, "nvml|sim", NULL,
                  "the machine's driver, or the simulated one (default: nvml; sim when "
                  "TRANCHE_SIM or TRANCHE_SIM_FLEET is set)"),
    OPTION_TEXT(0, "library", struct up_options, library, "PATH", NULL,
                "load this NVML library instead of searching"),
    OPTION_CHOICE(0, "device", struct up_options, device, "cpu-slice|cuda", NULL,
                  "where models run: in the MIG instance, or in a share of CPU that stands for "
                  "it (default: cuda with nvml, cpu-slice with sim)"),
    OPTION_NUMBER(0, "cpu-full-slice", struct up_options, cpu_full_slice, "CORES", "1.0", 0.01,
                  1024, "CPU cores that stand for a whole GPU; as measured"),
    OPTION_NUMBER(0, "period-ms", struct up_options, period_ms, "MS", "20", 1, 1000,
                  "period of the CPU quota; as measured"),
    OPTION_CHOICE(0, "slice-method", struct up_options, slice_method,
                  "auto|cgroup2|cgroup1|paced", "auto", "how the CPU quota is kept"),
    OPTION_TEXT(0, "ort-library", struct up_options, ort_library, "FILE", NULL,
                "the ONNX Runtime library"),
    OPTION_NUMBER(0, "timeout", struct up_options, timeout, "SECONDS", "600", 1, 86400,
                  "how long to wait until every server answers; they go on starting"),
    OPTION_FLAG(0, "foreground", struct up_options, foreground,
                "steer in this process; Ctrl-C takes it down"),
    RUNNING_STATE_OPTION(struct up_options),
    OPTION_FLAG(0, "json", struct up_options, json, "print the status as JSON"),
};

/* ---- the plan --------------------------------------------------------------------- */

static bool is_plan_file(const char *path)
{
    CLEANUP(close_file) FILE *file = fopen(path, "re");
    int c = file ? fgetc(file) : EOF;
    while (c == ' ' || c == '\n' || c == '\t' || c == '\r')
        c = fgetc(file);
    return c == '{';
}

static int plan_services(const struct up_options *given, const char *path,
                         struct plan_inputs *inputs, struct plan *plan, struct error *err)
{
    if (!given->measurements)
        return error_set(err, E_USAGE,
                         "%s is no plan; to plan from services, give the measurements (-m)",
                         path);
    int failed = plan_inputs_read(inputs, path, given->measurements, NULL, err);
    if (failed)
        return failed;
    struct plan_request request = plan_request_default(&inputs->services, &inputs->rows);
    request.settings.clock = clock_real();
    return plan_run(&request, plan, err);
}

static int read_plan(const struct up_options *given, const char *path,
                     struct plan_inputs *inputs, struct plan *plan, struct error *err)
{
    int failed;
    if (!is_plan_file(path) && access(path, R_OK) == 0) {
        failed = plan_services(given, path, inputs, plan, err);
    } else {
        failed = plan_read(path, plan, err);
        if (!failed && given->services)
            failed = service_set_read(given->services, &inputs->services, err);
    }
    if (!failed && plan->status == PLAN_INFEASIBLE)
        failed = error_set(err, E_NO, "%s: the plan is infeasible", path);
    return failed;
}

/* ---- settings --------------------------------------------------------------------- */

static json_t *environment_json(void)
{
    static const char *const NAMES[] = {"TRANCHE_SIM",          "TRANCHE_SIM_FLEET",
                                        "TRANCHE_SIM_STATE",    "TRANCHE_SIM_LIBRARY",
                                        "TRANCHE_NVML_LIBRARY", "TRANCHE_ORT_LIBRARY",
                                        "TRANCHE_STATE_DIR"};
    json_t *json = json_object();
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (getenv(NAMES[i]))
            json_object_set_new(json, NAMES[i], json_string(getenv(NAMES[i])));
    return json;
}

static int make_settings(const struct up_options *given, json_t *models, json_t **ret_settings,
                         struct error *err)
{
    CLEANUP(free_ptr) char *program = running_program();
    enum gpu_driver_kind kind;
    int failed = gpu_driver_kind_get(given->driver, &kind, err);
    if (failed)
        return failed;
    bool cuda = given->device ? strcmp(given->device, "cuda") == 0 : kind == GPU_DRIVER_NVML;
    *ret_settings =
        json_pack("{s:s, s:s?, s:b, s:f, s:f, s:s, s:s?, s:s, s:i, s:s, s:o, s:O}", "driver",
                  kind == GPU_DRIVER_SIM ? "sim" : "nvml", "library", given->library, "cuda",
                  cuda, "cpu_full_slice", given->cpu_full_slice, "period_ms", given->period_ms,
                  "slice_method", given->slice_method, "ort_library", given->ort_library,
                  "address", given->address, "port", (int)given->port, "program", program,
                  "environment", environment_json(), "models", models);
    return 0;
}

static int prepare(const struct up_options *given, const char *path, const char *folder,
                   struct error *err)
{
    CLEANUP(plan_inputs_done) struct plan_inputs inputs = {0};
    CLEANUP(json_decref_ptr) json_t *models = NULL, *settings = NULL, *document = NULL;
    CLEANUP(plan_done) struct plan plan;
    plan_init(&plan);
    int failed = read_plan(given, path, &inputs, &plan, err);
    if (failed)
        return failed;
    struct running_models where = {.services =
                                       inputs.services.services.count ? &inputs.services : NULL,
                                   .folder = given->models,
                                   .files = given->model};
    failed = running_models_find(&where, &plan, &models, err);
    if (!failed)
        failed = make_settings(given, models, &settings, err);
    if (failed)
        return failed;
    document = plan_to_json(&plan);
    return runtime_prepare(folder, settings, document, err);
}

/* ---- the process that steers ------------------------------------------------------ */

static void run_steering(const char *folder)
{
    CLEANUP(free_ptr) char *program = running_program();
    CLEANUP(free_ptr) char *log = state_folder_file(folder, "log/runtime.log");
    setsid();
    int in = open("/dev/null", O_RDWR);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(in, STDIN_FILENO);
    dup2(in, STDOUT_FILENO);
    dup2(out >= 0 ? out : in, STDERR_FILENO);
    execl(program, program, "runtime", folder, (char *)NULL);
    _exit(127);
}

/* Why the steering process ended before it answered. */
static int start_failure(const char *folder, struct error *err)
{
    CLEANUP(free_ptr) char *path = state_folder_file(folder, "failure");
    CLEANUP(json_decref_ptr) json_t *json = NULL;
    if (access(path, F_OK) != 0 || json_read(path, &json, err) != 0)
        return error_set(err, E_IO, "the runtime ended; see %s/log/runtime.log", folder);
    unlink(path);
    json_int_t code = json_integer_value(json_object_get(json, "code"));
    return error_set(err, code > 0 && code < E_CODE_COUNT ? (enum error_code)code : E_IO, "%s",
                     json_string_value(json_object_get(json, "text")));
}

static bool is_serving(const json_t *status, struct progress *progress)
{
    const char *phase = json_string_value(json_object_get(status, "phase"));
    size_t index;
    json_t *gpu;
    int serving = 0, all = 0;
    json_array_foreach(json_object_get(status, "gpus"), index, gpu)
    {
        size_t i;
        json_t *instance;
        json_array_foreach(json_object_get(gpu, "instances"), i, instance)
        {
            const char *state = json_string_value(json_object_get(instance, "state"));
            serving +=
                state && (strcmp(state, "serving") == 0 || strcmp(state, "training") == 0);
            all++;
        }
    }
    progress_show(progress, "%d of %d servers answer", serving, all);
    return phase && strcmp(phase, "starting") != 0;
}

static int wait_for_serving(const char *folder, pid_t steering, double timeout,
                            json_t **ret_status, struct error *err)
{
    struct progress progress = {0};
    int64_t deadline_ns = clock_now_ns(clock_real()) + (int64_t)(timeout * 1e9);
    running_catch_signals();
    for (;;) {
        CLEANUP(json_decref_ptr) json_t *status = NULL;
        struct error ignored;
        bool answers = running_ask(folder, "status", &status, &ignored) == 0;
        if (answers && is_serving(status, &progress)) {
            progress_done(&progress);
            *ret_status = STEAL(status);
            return 0;
        }
        struct process_id id;
        if (!answers && !process_id_of(steering, &id)) {
            progress_done(&progress);
            return start_failure(folder, err);
        }
        if (clock_now_ns(clock_real()) > deadline_ns) {
            progress_done(&progress);
            return error_set(err, E_TIMEOUT,
                             "not every server answers yet; `tranche status` tells which, "
                             "`tranche down` takes all back");
        }
        if (!running_sleep(0.1)) {
            progress_done(&progress);
            return error_set(err, E_INTERRUPTED,
                             "interrupted; the servers go on starting: `tranche status`, "
                             "`tranche down`");
        }
    }
}

static int start_steering(const struct up_options *given, const char *folder, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *status = NULL;
    CLEANUP(free_ptr) char *failure = state_folder_file(folder, "failure");
    unlink(failure);
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, E_IO, "cannot start a process");
    if (pid == 0)
        run_steering(folder);
    int failed = wait_for_serving(folder, pid, given->timeout, &status, err);
    return failed ? failed : status_print(status, given->json, err);
}

static int run(const void *parsed, struct arguments arguments, struct error *err)
{
    const struct up_options *given = parsed;
    CLEANUP(free_ptr) char *folder = running_folder(given->state_dir);
    CLEANUP(json_decref_ptr) json_t *status = NULL;
    struct error ignored;
    int failed = 0;
    if (running_ask(folder, "status", &status, &ignored) == 0)
        return error_set(err, E_BUSY,
                         "a plan is up in %s already: `tranche apply` changes it, `tranche "
                         "down` ends it",
                         folder);
    CLEANUP(free_ptr) char *journal = state_folder_file(folder, "journal.jsonl");
    if (arguments.count > 0)
        failed = prepare(given, arguments.items[0], folder, err);
    else if (access(journal, F_OK) != 0)
        failed = error_set(err, E_NOT_FOUND, "%s: nothing was brought up here to carry on with",
                           folder);
    if (failed)
        return failed;
    return given->foreground ? runtime_main(folder, err) : start_steering(given, folder, err);
}

const struct command cmd_up = {
    .name = "up",
    .summary = "bring a plan up on this machine: instances, servers, routing",
    .positionals = "[PLAN.json|SERVICES.yaml]",
    .arguments_min = 0,
    .arguments_max = 1,
    .description =
        "Brings the GPUs of this machine (or simulated ones) to the plan's layouts, starts one "
        "model server in each instance, and routes requests to them with HAProxy: service S is "
        "reached at http://ADDRESS:PORT/v2/models/S by the KServe v2 protocol. Returns once "
        "every server answers; a process in the background goes on steering. A services file "
        "is planned first.\n\n"
        "A training service is not routed: its instances train a built-in model (--model "
        "NAME=resnet:…), save it when they end and once a minute, and go on from there.\n\n"
        "Without GPUs each instance is a share of CPU time, \"cpu-slice (emulated)\".\n\n"
        "Without a plan, a plan that was up is carried on, after the process that steers it "
        "has died: servers and HAProxy outlive it, and a change that was under way is "
        "finished.",
    .examples = "tranche up plan.json -s services.yaml --models models/\n"
                "tranche up services.yaml -m measurements.csv --port 8080\n"
                "TRANCHE_SIM_FLEET=a100-40gb:2 tranche up plan.json -s services.yaml "
                "--cpu-full-slice 0.5",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct up_options),
    .run = run,
};
