/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche bench probe`: which frameworks see and use a device.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/bench_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "load/probe.h"

struct probe_command_options {
    const char *uuid, *python, *adapters, *ort_library, *output;
    struct option_list frameworks;
    double timeout_s;
    bool json;
};

static const struct option_spec options[] = {
    OPTION_LIST(
        'f', "framework", struct probe_command_options, frameworks, "NAME",
        "built-in, torch, tensorflow, jax, paddle or onnxruntime (default: all); may be "
        "repeated"),
    OPTION_TEXT(0, "uuid", struct probe_command_options, uuid, "UUID", NULL,
                "the MIG instance or GPU (default: the CPU)"),
    OPTION_TEXT(0, "python", struct probe_command_options, python, "PROGRAM", "python3",
                "the Python whose frameworks are meant"),
    OPTION_TEXT(0, "adapters", struct probe_command_options, adapters, "FOLDER", NULL,
                "where probe.py is (default: adapters/ beside the program or its folder, or "
                "share/tranche/adapters)"),
    OPTION_NUMBER(0, "timeout", struct probe_command_options, timeout_s, "S", "180", 1, 86400,
                  "seconds for a framework"),
    OPTION_TEXT(0, "ort-library", struct probe_command_options, ort_library, "FILE", NULL,
                "the ONNX Runtime library"),
    OPTION_FLAG(0, "json", struct probe_command_options, json, "print JSON"),
    OPTION_TEXT('o', "output", struct probe_command_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
};

/* The folder of probe.py, owned by the caller; E_MISSING. */
static int find_adapters(const char *given, char **ret_folder, struct error *err)
{
    static const char *const places[] = {"adapters", "../adapters",
                                         "../share/tranche/adapters"};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < (given ? 1 : sizeof places / sizeof *places); i++) {
        CLEANUP(free_ptr)
        char *folder = given ? xstrdup(given) : xasprintf("%s/%s", program, places[i]);
        CLEANUP(free_ptr) char *script = xasprintf("%s/probe.py", folder);
        if (access(script, R_OK) == 0) {
            *ret_folder = STEAL(folder);
            return 0;
        }
    }
    return error_set(err, E_MISSING, "no probe.py in %s: give its folder with --adapters",
                     given ? given : "adapters/ beside the program");
}

static bool is_wanted(const struct probe_command_options *given, const char *name)
{
    for (size_t i = 0; i < given->frameworks.count; i++)
        if (strcmp(given->frameworks.items[i], name) == 0)
            return true;
    return given->frameworks.count == 0;
}

static int check_names(const struct probe_command_options *given, struct error *err)
{
    for (size_t i = 0; i < given->frameworks.count; i++) {
        bool known = false;
        for (size_t k = 0; k < probe_framework_count(); k++)
            known |= strcmp(given->frameworks.items[i], probe_framework_name(k)) == 0;
        if (!known)
            return error_set(
                err, E_USAGE,
                "--framework %s: expected built-in, torch, tensorflow, jax, paddle "
                "or onnxruntime",
                given->frameworks.items[i]);
    }
    return 0;
}

static int probe_all(const struct probe_command_options *given, const struct probe_options *how,
                     json_t *list, struct error *err)
{
    struct progress progress = {0};
    int failure = 0;
    for (size_t i = 0; i < probe_framework_count() && !failure; i++) {
        json_t *framework = NULL;
        if (!is_wanted(given, probe_framework_name(i)))
            continue;
        progress_show(&progress, "asking %s", probe_framework_name(i));
        failure = probe_framework(how, i, &framework, err);
        if (!failure)
            json_array_append_new(list, framework);
    }
    progress_done(&progress);
    return failure;
}

/* The table, and how many checks failed. */
static size_t add_table(const json_t *list, struct str *text)
{
    static const struct table_column columns[] = {{"framework", TABLE_ALIGN_LEFT},
                                                  {"check", TABLE_ALIGN_LEFT},
                                                  {"verdict", TABLE_ALIGN_LEFT},
                                                  {"detail", TABLE_ALIGN_LEFT}};
    CLEANUP(table_free_ptr) struct table *table = table_new(columns, 4);
    size_t i, k, failed = 0;
    const json_t *framework, *check;
    json_array_foreach(list, i, framework)
    {
        json_array_foreach(json_object_get(framework, "checks"), k, check)
        {
            failed += strcmp(json_text(check, "verdict"), "fail") == 0;
            table_add(table, json_text(framework, "name"));
            table_add(table, json_text(check, "check"));
            table_add(table, json_text(check, "verdict"));
            table_add(table, json_text(check, "detail"));
        }
    }
    table_write(table, text);
    return failed;
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct probe_command_options *given = raw;
    CLEANUP(free_ptr) char *adapters = NULL;
    CLEANUP(json_decref_ptr) json_t *root = json_object();
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(str_done) struct str json = STR_EMPTY;
    json_t *list = json_array();
    (void)arguments;
    json_object_set_new(root, "schema", json_string("tranche.probe/1"));
    json_object_set_new(root, "device", json_string(given->uuid ? given->uuid : "cpu"));
    json_object_set_new(root, "frameworks", list);
    int failure = check_names(given, err);
    if (!failure)
        failure = find_adapters(given->adapters, &adapters, err);
    if (failure)
        return failure;
    struct probe_options how = {.uuid = given->uuid,
                                .python = given->python,
                                .adapters = adapters,
                                .ort_library = given->ort_library,
                                .timeout_ns = (int64_t)llround(given->timeout_s * 1e9),
                                .stop = bench_interrupts()};
    failure = probe_all(given, &how, list, err);
    if (failure)
        return failure;
    size_t failed = add_table(list, &text);
    json_write_pretty(root, &json);
    failure = output_write(given->output, given->json ? &json : &text, err);
    if (!failure && failed > 0)
        failure = error_set(err, E_NO, "%zu checks failed", failed);
    return failure;
}

const struct command cmd_bench_probe = {
    .name = "probe",
    .summary = "which frameworks see and use a device",
    .description =
        "Asks each framework in a process of its own: is the device seen, does inference run, "
        "does training lower the loss, do two processes run at the same time. ONNX Runtime is "
        "asked through the built-in workload, PyTorch, TensorFlow, JAX and PaddlePaddle "
        "through "
        "adapters/probe.py.\n\n"
        "Verdicts: pass, fail, none (the framework cannot do that), absent (not installed). "
        "Exit "
        "status 1 when a check fails.",
    .examples = "tranche bench probe\n"
                "tranche bench probe --uuid MIG-… --framework torch --json",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct probe_command_options),
    .run = run,
};
