/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche mps …`: NVIDIA MPS per GPU or MIG instance. What it does is in gpu/mps.c; here a
 * device is found by its name, and answers are put into words.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "gpu/inventory.h"
#include "gpu/mps.h"

struct cli_mps_options {
    const char *driver, *library;
    const char *folder, *control;
    double active_threads;
    const char *pinned_memory;
    long long timeout_s;
    bool json;
    const char *output;
};

/* --- the device --- */

/* The UUID of the compute instance whose GPU instance starts here. */
static int find_instance(const struct gpu *gpu, long long start, struct str *uuid,
                         struct error *err)
{
    for (int i = 0; i < gpu->instances.count; i++) {
        const struct gpu_gi *gi = &gpu->instances.gi[i];
        if (gi->start != start)
            continue;
        if (gi->ci_count != 1)
            return error_set(
                err, E_INPUT,
                "the GPU instance at %lld has %d compute instances; name one by its "
                "UUID (tranche gpu list --json)",
                start, gi->ci_count);
        str_add(uuid, gi->ci[0].uuid);
        return 0;
    }
    return error_set(err, E_INPUT, "GPU %d has no instance that starts at %lld",
                     gpu->identity.index, start);
}

static int find_on_gpu(const struct gpu *gpu, const char *start, struct str *uuid,
                       struct error *err)
{
    CLEANUP(str_done) struct str layout = STR_EMPTY;
    long long unit;

    if (start && text_to_int(start, 0, MIG_UNITS_MAX, &unit))
        return find_instance(gpu, unit, uuid, err);
    if (start)
        return error_set(err, E_INPUT,
                         "after @ expected the start of an instance, a memory unit");
    if (!gpu->live || !gpu->mode.current) {
        str_add(uuid, gpu->identity.uuid);
        return 0;
    }
    gpu_layout_format(&gpu->live->board, &gpu->layout, &layout);
    return error_set(err, E_INPUT,
                     "GPU %d is partitioned (%s): name an instance, as in %d@0, or its UUID",
                     gpu->identity.index, layout.bytes, gpu->identity.index);
}

/* A UUID as it is; else GPU or GPU@START, looked up through the driver. */
static int find_device(const struct cli_mps_options *options, const char *word,
                       struct str *uuid, struct error *err)
{
    CLEANUP(gpu_driver_close) struct gpu_driver driver = {0};
    CLEANUP(gpu_inventory_done) struct gpu_inventory inventory = {0};
    CLEANUP(free_ptr) char *name = xstrdup(word);
    struct gpu_driver_options how = {.library = options->library};
    size_t index;

    if (text_starts_with(word, "MIG-") ||
        (text_starts_with(word, "GPU-") && !strchr(word, '@'))) {
        str_add(uuid, word);
        return 0;
    }
    char *at = strchr(name, '@');
    if (at)
        *at++ = '\0';
    int r = gpu_driver_kind_get(options->driver, &how.kind, err);
    if (r || (r = gpu_driver_open(&how, &driver, err)) ||
        (r = gpu_inventory_read(&driver, &inventory, err)) ||
        (r = gpu_inventory_find(&inventory, name, &index, err)))
        return r;
    return find_on_gpu(&inventory.gpus.data[index], at, uuid, err);
}

/* What all commands begin with. */
static int prepare(const struct cli_mps_options *options, struct arguments arguments,
                   struct str *uuid, struct str *folder, struct mps_options *ret,
                   struct error *err)
{
    assert(arguments.count == 1);
    int r = find_device(options, arguments.items[0], uuid, err);
    if (r)
        return r;
    if (options->folder)
        str_add(folder, options->folder);
    else
        mps_folder(folder);
    *ret = (struct mps_options){.device = uuid->bytes,
                                .folder = folder->bytes,
                                .control = options->control,
                                .active_thread_percent = options->active_threads,
                                .pinned_memory = options->pinned_memory};
    return 0;
}

/* --- commands --- */

static int run_start(const void *given, struct arguments arguments, struct error *err)
{
    const struct cli_mps_options *options = given;
    CLEANUP(str_done) struct str uuid = STR_EMPTY;
    CLEANUP(str_done) struct str folder = STR_EMPTY;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct mps_options mps;

    int r = prepare(options, arguments, &uuid, &folder, &mps, err);
    if (!r)
        r = mps_start(&mps, err);
    if (r)
        return r;
    str_addf(&text, "MPS runs for %s; clients need: tranche mps env %s\n", uuid.bytes,
             uuid.bytes);
    return output_write(NULL, &text, err);
}

static int run_stop(const void *given, struct arguments arguments, struct error *err)
{
    const struct cli_mps_options *options = given;
    CLEANUP(str_done) struct str uuid = STR_EMPTY;
    CLEANUP(str_done) struct str folder = STR_EMPTY;
    struct mps_options mps;

    int r = prepare(options, arguments, &uuid, &folder, &mps, err);
    return r ? r : mps_stop(&mps, (int)options->timeout_s, err);
}

static void status_text(const char *device, const struct mps_status *status, struct str *text)
{
    if (!status->running) {
        str_addf(text, "no MPS runs for %s\n", device);
        return;
    }
    str_addf(text, "MPS runs for %s", device);
    if (!isnan(status->active_thread_percent)) {
        str_add(text, ", default active threads ");
        str_add_number(text, status->active_thread_percent);
        str_add(text, " %");
    }
    str_add(text, status->servers.count ? "\n" : ", no client yet\n");
    for (size_t i = 0; i < status->servers.count; i++) {
        const struct mps_server *server = &status->servers.data[i];
        str_addf(text, "server %ld, clients:", server->pid);
        for (size_t j = 0; j < server->clients.count; j++)
            str_addf(text, " %ld", server->clients.data[j]);
        str_add(text, server->clients.count ? "\n" : " none\n");
    }
}

static int run_status(const void *given, struct arguments arguments, struct error *err)
{
    const struct cli_mps_options *options = given;
    CLEANUP(str_done) struct str uuid = STR_EMPTY;
    CLEANUP(str_done) struct str folder = STR_EMPTY;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(mps_status_done) struct mps_status status = {0};
    CLEANUP(json_decref_ptr) json_t *json = NULL;
    struct mps_options mps;

    int r = prepare(options, arguments, &uuid, &folder, &mps, err);
    if (!r)
        r = mps_status(&mps, &status, err);
    if (r)
        return r;
    if (options->json) {
        json = mps_status_to_json(&status);
        json_write_pretty(json, &text);
    } else {
        status_text(uuid.bytes, &status, &text);
    }
    r = output_write(options->output, &text, err);
    if (!r && !status.running)
        r = error_set(err, E_NO, "no daemon answers in %s/%s", folder.bytes, uuid.bytes);
    return r;
}

static int run_env(const void *given, struct arguments arguments, struct error *err)
{
    const struct cli_mps_options *options = given;
    CLEANUP(str_done) struct str uuid = STR_EMPTY;
    CLEANUP(str_done) struct str folder = STR_EMPTY;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *json = NULL;
    struct mps_options mps;

    int r = prepare(options, arguments, &uuid, &folder, &mps, err);
    if (!r)
        r = mps_env(&mps, &text, err);
    if (r)
        return r;
    if (options->json) {
        str_clear(&text);
        json = mps_env_to_json(&mps);
        json_write_pretty(json, &text);
    }
    return output_write(options->output, &text, err);
}

/* --- tables --- */

#define PLACE_OPTIONS                                                                          \
    OPTION_CHOICE(0, "driver", struct cli_mps_options, driver, "nvml|sim", NULL,               \
                  "where a GPU's index is looked up (default: nvml)"),                         \
        OPTION_TEXT(0, "library", struct cli_mps_options, library, "PATH", NULL,               \
                    "load this NVML library instead of searching"),                            \
        OPTION_TEXT(0, "folder", struct cli_mps_options, folder, "FOLDER", NULL,               \
                    "where the pipe and log folders are (default: TRANCHE_MPS_DIR, "           \
                    "/run/tranche/mps)"),                                                      \
        OPTION_TEXT(0, "control", struct cli_mps_options, control, "PROGRAM", NULL,            \
                    "the control program (default: nvidia-cuda-mps-control by PATH)")
#define LIMIT_OPTIONS(of_whom)                                                                 \
    OPTION_NUMBER(0, "active-threads", struct cli_mps_options, active_threads, "PERCENT",      \
                  NULL, 0, 100, "active-thread percentage of " of_whom),                       \
        OPTION_TEXT(0, "pinned-memory", struct cli_mps_options, pinned_memory, "SIZE", NULL,   \
                    "device memory of " of_whom ", as in 4G or 512M")
#define OUTPUT_OPTIONS                                                                         \
    OPTION_FLAG(0, "json", struct cli_mps_options, json, "print JSON"),                        \
        OPTION_TEXT('o', "output", struct cli_mps_options, output, "FILE", NULL,               \
                    "write to FILE instead of standard output")

static const struct option_spec start_options[] = {
    PLACE_OPTIONS, LIMIT_OPTIONS("each client unless it says less")};
static const struct option_spec stop_options[] = {
    PLACE_OPTIONS,
    OPTION_INT(0, "timeout", struct cli_mps_options, timeout_s, "SECONDS", "10", 0, 3600,
               "how long clients may finish before they are ended"),
};
static const struct option_spec status_options[] = {PLACE_OPTIONS, OUTPUT_OPTIONS};
static const struct option_spec env_options[] = {PLACE_OPTIONS, LIMIT_OPTIONS("this client"),
                                                 OUTPUT_OPTIONS};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define COMMAND_OF(word, table, what, more)                                                    \
    {                                                                                          \
        .name = #word, .summary = (what), .positionals = "DEVICE", .arguments_min = 1,         \
        .arguments_max = 1, .description = (more), .options = (table),                         \
        .option_count = COUNT(table), .options_size = sizeof(struct cli_mps_options),          \
        .run = run_##word                                                                      \
    }

#define DEVICE_WORDS                                                                             \
    "DEVICE is a UUID (GPU-… or MIG-…), a GPU by index or PCI bus id, or GPU@START for the " \
    "instance that starts there."

static const struct command cmd_start =
    COMMAND_OF(start, start_options, "start an MPS control daemon for one device",
               "The daemon sees this device alone, with a pipe and a log folder (0700) of its "
               "own.\n\n" DEVICE_WORDS);
static const struct command cmd_stop =
    COMMAND_OF(stop, stop_options, "stop the daemon of one device", DEVICE_WORDS);
static const struct command mps_cmd_status =
    COMMAND_OF(status, status_options, "the daemon of one device, its servers and clients",
               "Exit status 1 when none runs.\n\n" DEVICE_WORDS);
static const struct command cmd_env =
    COMMAND_OF(env, env_options, "the environment that a client of the device needs",
               "Lines for a shell: eval \"$(tranche mps env DEVICE)\".\n\n" DEVICE_WORDS);

static const struct command *const subcommands[] = {&cmd_start, &cmd_stop, &mps_cmd_status,
                                                    &cmd_env, NULL};

const struct command cmd_mps = {
    .name = "mps",
    .summary = "NVIDIA MPS per GPU or MIG instance",
    .description = "One control daemon for each device, so that limits and faults of one "
                   "instance never reach the clients of another.",
    .subcommands = subcommands,
};
