/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche gpu …`: the GPUs of this machine, or simulated ones, and their MIG layouts.
 * Layouts only, never services. What happens is in gpu/; here are options and words.
 */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table.h"
#include "gpu/apply.h"

struct gpu_options {
    const char *driver, *library;
    bool json;
    const char *output;
    struct option_list gpus;
    const char *file, *config, *layout;
    const char *format, *label;
    bool dry_run, resume, rollback, no_rollback;
    const char *state_dir;
};

/* An open driver and the inventory read through it. */
struct machine {
    enum gpu_driver_kind kind;
    struct gpu_driver driver;
    struct gpu_inventory inventory;
};

static void machine_done(struct machine *machine)
{
    gpu_inventory_done(&machine->inventory);
    gpu_driver_close(&machine->driver);
}

static int machine_open(const struct gpu_options *options, struct machine *machine,
                        struct error *err)
{
    *machine = (struct machine){0};
    int r = gpu_driver_kind_get(options->driver, &machine->kind, err);
    if (r)
        return r;
    struct gpu_driver_options how = {.kind = machine->kind, .library = options->library};
    return gpu_driver_open(&how, &machine->driver, err);
}

static int machine_read(const struct gpu_options *options, struct machine *machine,
                        struct error *err)
{
    int r = machine_open(options, machine, err);
    return r ? r : gpu_inventory_read(&machine->driver, &machine->inventory, err);
}

/* --- list --- */

static void list_row(const struct gpu *gpu, struct table *table)
{
    CLEANUP(str_done) struct str layout = STR_EMPTY;
    const struct mig_board *board = mig_board_by_pci(gpu->identity.pci_device_id);
    const char *mode = "no";

    if (gpu->live) {
        mode = gpu->mode.current ? "on" : "off";
        gpu_layout_format(&gpu->live->board, &gpu->layout, &layout);
    }
    table_addf(table, "%d", gpu->identity.index);
    table_add(table, gpu->identity.uuid);
    table_add(table, gpu->identity.pci_bus_id);
    table_add(table, board ? board->slug : gpu->identity.name);
    table_addf(table, "%s%s", mode,
               gpu->live && gpu->mode.current != gpu->mode.pending ? " (change pending)" : "");
    table_add(table, gpu->live && gpu->mode.current ? layout.bytes : "");
}

static void list_text(const struct gpu_inventory *inventory, struct str *text)
{
    static const struct table_column columns[] = {{.title = "GPU", .align = TABLE_ALIGN_RIGHT},
                                                  {.title = "UUID"},
                                                  {.title = "PCI"},
                                                  {.title = "board"},
                                                  {.title = "MIG"},
                                                  {.title = "layout"}};
    CLEANUP(table_free_ptr)
    struct table *table = table_new(columns, sizeof columns / sizeof columns[0]);

    for (size_t i = 0; i < inventory->gpus.count; i++)
        list_row(&inventory->gpus.data[i], table);
    table_write(table, text);
    for (size_t i = 0; i < inventory->gpus.count; i++) {
        const struct gpu *gpu = &inventory->gpus.data[i];
        const char *line = gpu->live ? gpu->live->differences.bytes : "";
        for (size_t length; *line; line += length + (line[length] == '\n')) {
            length = strcspn(line, "\n");
            str_addf(text, "GPU %d: ", gpu->identity.index);
            str_add_bytes(text, line, length);
            str_add_char(text, '\n');
        }
    }
}

static int run_list(const void *given, struct arguments arguments, struct error *err)
{
    const struct gpu_options *options = given;
    CLEANUP(machine_done) struct machine machine;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *json = NULL;

    (void)arguments;
    int r = machine_read(options, &machine, err);
    if (r)
        return r;
    if (options->json) {
        json = gpu_inventory_to_json(&machine.inventory);
        json_write_pretty(json, &text);
    } else {
        list_text(&machine.inventory, &text);
    }
    return output_write(options->output, &text, err);
}

/* --- export --- */

static int run_export(const void *given, struct arguments arguments, struct error *err)
{
    const struct gpu_options *options = given;
    CLEANUP(machine_done) struct machine machine;
    CLEANUP(mig_config_file_done) struct mig_config_file file = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *json = NULL;

    (void)arguments;
    int r = machine_read(options, &machine, err);
    if (r)
        return r;
    if (options->json) {
        json = gpu_inventory_to_json(&machine.inventory);
        json_write_pretty(json, &text);
    } else if (!strcmp(options->format, "layout")) {
        gpu_export_layouts(&machine.inventory, &text);
    } else {
        gpu_export_config(&machine.inventory, options->label, &file);
        mig_config_format(&file, &text);
    }
    return output_write(options->output, &text, err);
}

/* --- what is asked for --- */

enum request_kind {
    REQUEST_CONFIG, /* mig-parted's format */
    REQUEST_LAYOUT_FILE,
    REQUEST_LAYOUT, /* one text for the chosen GPUs */
    REQUEST_CLEAR,
    REQUEST_ENABLE,
    REQUEST_DISABLE
};

struct request {
    enum request_kind kind;
    const struct gpu_options *options;
    const char *path, *config, *layout;
    const char *const *selectors; /* of GPUs; none: all with MIG */
    size_t selector_count;
    struct str text, words; /* the file's bytes; the request in one line */
};

static void request_done(struct request *request)
{
    str_done(&request->text);
    str_done(&request->words);
}

/* The chosen GPUs, or all that have MIG; ret[] has room for every GPU. */
static int choose_gpus(const struct request *request, const struct gpu_inventory *inventory,
                       size_t *ret, size_t *ret_count, struct error *err)
{
    size_t count = 0;

    for (size_t i = 0; i < request->selector_count; i++) {
        if (!strcmp(request->selectors[i], "all"))
            break;
        int r = gpu_inventory_find(inventory, request->selectors[i], &ret[i], err);
        if (r)
            return r;
        count++;
    }
    bool every = !count;
    for (size_t i = 0; every && i < inventory->gpus.count; i++)
        if (inventory->gpus.data[i].live)
            ret[count++] = i;
    *ret_count = count;
    return count ? 0 : error_set(err, E_UNSUPPORTED, "no GPU of this machine has MIG");
}

static int mode_targets(const struct request *request, const struct gpu_inventory *inventory,
                        const size_t *gpus, size_t count, struct gpu_target_list *list,
                        struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct gpu *gpu = &inventory->gpus.data[gpus[i]];
        struct gpu_target target = {.gpu = gpus[i],
                                    .mig_enabled = request->kind == REQUEST_ENABLE,
                                    .keep_instances = request->kind == REQUEST_ENABLE};
        if (!gpu->live)
            return error_set(err, E_UNSUPPORTED, "GPU %d (%s) has no MIG", gpu->identity.index,
                             gpu->identity.name);
        if (request->kind == REQUEST_CLEAR) /* the mode stays as it is */
            target.mig_enabled = gpu->mode.current;
        int r = gpu_target_add(inventory, list, &target, err);
        if (r)
            return r;
    }
    return 0;
}

static int config_targets(const struct request *request, const struct gpu_inventory *inventory,
                          struct gpu_target_list *ret, struct error *err)
{
    CLEANUP(mig_config_file_done) struct mig_config_file file = {0};
    const struct mig_config *config;

    int r =
        mig_config_parse(request->path, request->text.bytes, request->text.length, &file, err);
    if (!r)
        r = mig_config_select(&file, request->config, &config, err);
    return r ? r : gpu_targets_from_config(inventory, &file, config, ret, err);
}

static int request_targets(void *context, const struct gpu_inventory *inventory,
                           struct gpu_target_list *ret_targets, struct error *err)
{
    const struct request *request = context;
    CLEANUP(free_ptr) size_t *gpus = xcalloc(inventory->gpus.count, sizeof *gpus);
    struct gpu_target_list list;
    size_t count;

    if (request->kind == REQUEST_CONFIG)
        return config_targets(request, inventory, ret_targets, err);
    if (request->kind == REQUEST_LAYOUT_FILE)
        return gpu_targets_from_layout_file(inventory, request->path, request->text.bytes,
                                            ret_targets, err);
    int r = choose_gpus(request, inventory, gpus, &count, err);
    if (r)
        return r;
    if (request->kind == REQUEST_LAYOUT)
        return gpu_targets_from_layout(inventory, gpus, count, request->layout, ret_targets,
                                       err);
    gpu_target_list_init(&list);
    if ((r = mode_targets(request, inventory, gpus, count, &list, err)))
        gpu_target_list_done(&list);
    else
        *ret_targets = list;
    return r;
}

/* The line that names a request in the journal: content, not file name, so that the same
 * config from another path is the same request. */
static void name_request(struct request *request)
{
    char digest[72];

    str_clear(&request->words);
    switch (request->kind) {
    case REQUEST_CONFIG:
    case REQUEST_LAYOUT_FILE:
        file_sha256(request->text.bytes, request->text.length, digest);
        str_addf(&request->words, "config %s %s", request->config ? request->config : "-",
                 digest);
        break;
    case REQUEST_LAYOUT:
        str_addf(&request->words, "layout %s", request->layout);
        break;
    case REQUEST_CLEAR:
    case REQUEST_ENABLE:
    case REQUEST_DISABLE:
        str_add(&request->words, request->kind == REQUEST_CLEAR    ? "clear"
                                 : request->kind == REQUEST_ENABLE ? "enable-mig"
                                                                   : "disable-mig");
        break;
    }
    for (size_t i = 0; i < request->selector_count; i++)
        str_addf(&request->words, " on %s", request->selectors[i]);
}

static bool is_file_name(const char *word)
{
    return !strcmp(word, "-") || text_ends_with(word, ".yaml") ||
           text_ends_with(word, ".yml") || text_ends_with(word, ".json") ||
           text_ends_with(word, ".txt") || strchr(word, '/') || !access(word, F_OK);
}

/* A file of ours has lines "GPU: LAYOUT"; mig-parted's has "version:". */
static bool is_layout_file(const char *text)
{
    return !strstr(text, "version:") && !strstr(text, "mig-enabled") &&
           !strstr(text, "mig-configs") && !strstr(text, "devices:");
}

/* From the options and positionals of apply and assert: [FILE [CONFIG]] or LAYOUT. */
static int request_read(const struct gpu_options *options, struct arguments arguments,
                        struct request *request, struct error *err)
{
    const char *word = arguments.count ? arguments.items[0] : NULL;
    size_t used = 0;

    *request = (struct request){.options = options,
                                .path = options->file,
                                .config = options->config,
                                .layout = options->layout,
                                .selectors = options->gpus.items,
                                .selector_count = options->gpus.count,
                                .text = STR_EMPTY,
                                .words = STR_EMPTY};
    if (word && !request->path && !request->layout) {
        used++;
        if (is_file_name(word))
            request->path = word;
        else
            request->layout = word;
    }
    if (request->path && !request->config && arguments.count > used)
        request->config = arguments.items[used++];
    if (arguments.count > used)
        return error_set(err, E_USAGE, "\"%s\" is one word too many", arguments.items[used]);
    if (!request->path == !request->layout)
        return error_set(
            err, E_USAGE,
            "give a config file (-f FILE [-c CONFIG]) or a layout (--layout TEXT)");
    if (request->layout) {
        request->kind = REQUEST_LAYOUT;
        return 0;
    }
    int r = file_read(request->path, FILE_SIZE_LIMIT, &request->text, err);
    if (!strcmp(request->path, "-"))
        request->path = "(stdin)";
    request->kind =
        !r && is_layout_file(request->text.bytes) ? REQUEST_LAYOUT_FILE : REQUEST_CONFIG;
    if (!r && request->selector_count)
        return error_set(err, E_USAGE, "--gpu goes with a layout; a file names its own GPUs");
    return r;
}

/* --- apply --- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* The first Ctrl-C takes the change back; the second ends the program, and the journal
 * tells the next run. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void say_step(void *context, const char *step)
{
    (void)context;
    fprintf(stderr, "%s\n", step);
}

static void say_lines(const char *lines)
{
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        fputs("note: ", stderr);
        fwrite(lines, 1, length, stderr);
        fputc('\n', stderr);
    }
}

static const char *const outcome_words[GPU_APPLY_OUTCOME_COUNT] = {
    [GPU_APPLY_UNCHANGED] = "unchanged",
    [GPU_APPLY_PLANNED] = "planned",
    [GPU_APPLY_DONE] = "done",
};

static int write_report(const struct gpu_options *options,
                        const struct gpu_apply_report *report, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    if (options->json) {
        json_object_set_new(report->change, "outcome",
                            json_string(outcome_words[report->outcome]));
        json_write_pretty(report->change, &text);
    } else {
        str_add(&text, report->plan.bytes);
        str_addf(&text, "%s\n",
                 report->outcome == GPU_APPLY_UNCHANGED ? "nothing to do"
                 : report->outcome == GPU_APPLY_PLANNED ? "dry run: nothing was changed"
                                                        : "done, read back and equal");
    }
    return output_write(options->output, &text, err);
}

static int apply(const struct gpu_options *options, struct request *request, struct error *err)
{
    CLEANUP(machine_done) struct machine machine;
    CLEANUP(gpu_apply_report_done) struct gpu_apply_report report;
    CLEANUP(str_done) struct str state_dir = STR_EMPTY;

    gpu_apply_report_init(&report);
    int r = machine_open(options, &machine, err);
    if (r)
        return r;
    gpu_state_dir(machine.kind, &state_dir);
    catch_signals();
    struct gpu_apply_options how = {
        .state_dir = options->state_dir ? options->state_dir : state_dir.bytes,
        .dry_run = options->dry_run,
        .no_rollback = options->no_rollback,
        .progress = output_messages_are_on_terminal() ? say_step : NULL};
    if (options->resume) {
        r = gpu_apply_resume(&machine.driver, &how, &report, err);
    } else if (options->rollback) {
        r = gpu_apply_rollback(&machine.driver, &how, &report, err);
    } else {
        name_request(request);
        struct gpu_request wanted = {
            .targets = request_targets, .context = request, .text = request->words.bytes};
        r = gpu_apply(&machine.driver, &wanted, &how, &report, err);
    }
    say_lines(report.notes.bytes);
    if (r && report.change && !options->json)
        fputs(report.plan.bytes, stderr);
    return r ? r : write_report(options, &report, err);
}

static int run_apply(const void *given, struct arguments arguments, struct error *err)
{
    const struct gpu_options *options = given;
    CLEANUP(request_done) struct request request = {.text = STR_EMPTY, .words = STR_EMPTY};
    bool journal = options->resume || options->rollback;

    if (options->resume && options->rollback)
        return error_set(err, E_USAGE, "--resume and --rollback exclude each other");
    if (journal && arguments.count)
        return error_set(err, E_USAGE,
                         "--resume and --rollback take what they do from the "
                         "journal");
    int r = journal ? 0 : request_read(options, arguments, &request, err);
    return r ? r : apply(options, &request, err);
}

/* clear, enable-mig, disable-mig: positionals and --gpu name GPUs. */
static int run_mode(const struct gpu_options *options, struct arguments arguments,
                    enum request_kind kind, struct error *err)
{
    CLEANUP(request_done)
    struct request request = {.kind = kind,
                              .options = options,
                              .selectors = options->gpus.items,
                              .selector_count = options->gpus.count,
                              .text = STR_EMPTY,
                              .words = STR_EMPTY};

    if (arguments.count && options->gpus.count)
        return error_set(err, E_USAGE, "name the GPUs once: as words or with --gpu");
    if (arguments.count) {
        request.selectors = arguments.items;
        request.selector_count = arguments.count;
    }
    return apply(options, &request, err);
}

static int run_clear(const void *given, struct arguments arguments, struct error *err)
{
    return run_mode(given, arguments, REQUEST_CLEAR, err);
}

static int run_enable(const void *given, struct arguments arguments, struct error *err)
{
    return run_mode(given, arguments, REQUEST_ENABLE, err);
}

static int run_disable(const void *given, struct arguments arguments, struct error *err)
{
    return run_mode(given, arguments, REQUEST_DISABLE, err);
}

/* --- assert --- */

static int write_verdict(const struct gpu_options *options, const char *differences,
                         struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *json = NULL;
    json_t *list = json_array();

    for (const char *line = differences; *line;) {
        size_t length = strcspn(line, "\n");

        json_array_append_new(list, json_stringn(line, length));
        line += length + (line[length] == '\n');
    }
    json = json_pack("{s:b, s:o}", "equal", !*differences, "differences", list);
    if (options->json)
        json_write_pretty(json, &text);
    else
        str_add(&text, *differences ? differences : "as requested\n");
    return output_write(options->output, &text, err);
}

static int run_assert(const void *given, struct arguments arguments, struct error *err)
{
    const struct gpu_options *options = given;
    CLEANUP(machine_done) struct machine machine = {0};
    CLEANUP(request_done) struct request request = {.text = STR_EMPTY, .words = STR_EMPTY};
    CLEANUP(gpu_target_list_done) struct gpu_target_list targets = {.notes = STR_EMPTY};
    CLEANUP(str_done) struct str differences = STR_EMPTY;

    int r = request_read(options, arguments, &request, err);
    if (!r)
        r = machine_read(options, &machine, err);
    if (!r)
        r = request_targets(&request, &machine.inventory, &targets, err);
    if (r)
        return r;
    say_lines(targets.notes.bytes);
    size_t count = gpu_targets_compare(&machine.inventory, &targets, &differences);
    if ((r = write_verdict(options, differences.bytes, err)))
        return r;
    return count ? error_set(err, E_NO, "%zu of %zu GPUs are not as requested", count,
                             targets.items.count)
                 : 0;
}

/* --- tables --- */

#define DRIVER_OPTIONS                                                                         \
    OPTION_CHOICE(0, "driver", struct gpu_options, driver, "nvml|sim", NULL,                   \
                  "the machine's driver, or the simulated one (default: nvml; sim when "       \
                  "TRANCHE_SIM or TRANCHE_SIM_FLEET is set)"),                                 \
        OPTION_TEXT(0, "library", struct gpu_options, library, "PATH", NULL,                   \
                    "load this NVML library instead of searching"),                            \
        OPTION_FLAG(0, "json", struct gpu_options, json, "print JSON"),                        \
        OPTION_TEXT('o', "output", struct gpu_options, output, "FILE", NULL,                   \
                    "write to FILE instead of standard output")
#define GPU_OPTION                                                                             \
    OPTION_LIST('g', "gpu", struct gpu_options, gpus, "GPU",                                   \
                "a GPU by UUID, PCI bus id or index; may be given several times (default: "    \
                "all with MIG)")
#define REQUEST_OPTIONS                                                                        \
    OPTION_TEXT('f', "config-file", struct gpu_options, file, "FILE", NULL,                    \
                "a mig-parted config or a layout file; - is standard input"),                  \
        OPTION_TEXT('c', "selected-config", struct gpu_options, config, "CONFIG", NULL,        \
                    "the config of FILE that is meant"),                                       \
        OPTION_TEXT('l', "layout", struct gpu_options, layout, "LAYOUT", NULL,                 \
                    "the layout of each GPU chosen with --gpu")
#define CHANGE_OPTIONS                                                                         \
    OPTION_FLAG('n', "dry-run", struct gpu_options, dry_run,                                   \
                "say what would be done and which GPUs it disturbs; change nothing"),          \
        OPTION_FLAG(0, "no-rollback", struct gpu_options, no_rollback,                         \
                    "after a failed step leave the GPUs as they are"),                         \
        OPTION_TEXT(0, "state-dir", struct gpu_options, state_dir, "FOLDER", NULL,             \
                    "where lock and journal lie (default: TRANCHE_STATE_DIR, /run/tranche)")

static const struct option_spec list_options[] = {DRIVER_OPTIONS};
static const struct option_spec export_options[] = {
    DRIVER_OPTIONS,
    OPTION_CHOICE(0, "format", struct gpu_options, format, "mig-parted|layout", "mig-parted",
                  "mig-parted's config format v1, or lines GPU: LAYOUT with starts"),
    OPTION_TEXT('c', "config-label", struct gpu_options, label, "NAME", "current",
                "the name of the config that is written"),
};
static const struct option_spec apply_options[] = {
    DRIVER_OPTIONS,
    GPU_OPTION,
    REQUEST_OPTIONS,
    CHANGE_OPTIONS,
    OPTION_FLAG(0, "resume", struct gpu_options, resume,
                "carry on with the change that was cut short"),
    OPTION_FLAG(0, "rollback", struct gpu_options, rollback,
                "take back the change that was cut short"),
};
static const struct option_spec assert_options[] = {DRIVER_OPTIONS, GPU_OPTION,
                                                    REQUEST_OPTIONS};
static const struct option_spec mode_options[] = {DRIVER_OPTIONS, GPU_OPTION, CHANGE_OPTIONS};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct command cmd_list = {
    .name = "list",
    .summary = "GPUs with their MIG mode and layout",
    .description = "Every GPU of the driver by UUID, PCI bus id and index, the board as our "
                   "tables know it, MIG mode and layout. Where the driver and our tables "
                   "differ it is said; the driver's value is used.",
    .examples = "tranche gpu list\nTRANCHE_SIM_FLEET=a100-40gb:2 tranche gpu list --json",
    .options = list_options,
    .option_count = COUNT(list_options),
    .options_size = sizeof(struct gpu_options),
    .run = run_list,
};

static const struct command cmd_export = {
    .name = "export",
    .summary = "write the layouts of all GPUs as a config",
    .description = "mig-parted's format holds no starts; --format layout does, and apply reads "
                   "both.",
    .examples = "tranche gpu export -o current.yaml\ntranche gpu export --format layout",
    .options = export_options,
    .option_count = COUNT(export_options),
    .options_size = sizeof(struct gpu_options),
    .run = run_export,
};

static const struct command gpu_cmd_apply = {
    .name = "apply",
    .summary = "bring GPUs to a layout, or back if a step fails",
    .positionals = "[FILE [CONFIG] | LAYOUT]",
    .arguments_max = 2,
    .description =
        "Instances that are there with the right profile (and start, where one is given) are "
        "not touched. Everything is checked first: profiles, indexes, whether the layout can "
        "be "
        "placed, and whether a process holds an instance that must go. Afterwards the GPUs are "
        "read back and compared.\n\nA failed step takes the GPUs back to what they held. A run "
        "that was killed is carried on by the same command, or with --resume or --rollback.",
    .examples = "tranche gpu apply -f config.yaml -c all-balanced\n"
                "tranche gpu apply --gpu 0 --layout '4g@0,2g@4,1g@6' --dry-run",
    .options = apply_options,
    .option_count = COUNT(apply_options),
    .options_size = sizeof(struct gpu_options),
    .run = run_apply,
};

static const struct command cmd_assert = {
    .name = "assert",
    .summary = "check that GPUs are as a config or layout says",
    .positionals = "[FILE [CONFIG] | LAYOUT]",
    .arguments_max = 2,
    .description = "Exit status 1 and a line for each GPU that differs. Starts are compared "
                   "where they are given.",
    .examples = "tranche gpu assert -f config.yaml -c all-balanced",
    .options = assert_options,
    .option_count = COUNT(assert_options),
    .options_size = sizeof(struct gpu_options),
    .run = run_assert,
};

static const struct command cmd_clear = {
    .name = "clear",
    .summary = "destroy all instances, MIG mode stays",
    .positionals = "[GPU…]",
    .arguments_max = SIZE_MAX,
    .options = mode_options,
    .option_count = COUNT(mode_options),
    .options_size = sizeof(struct gpu_options),
    .run = run_clear,
};

static const struct command cmd_enable = {
    .name = "enable-mig",
    .summary = "switch MIG on",
    .positionals = "[GPU…]",
    .arguments_max = SIZE_MAX,
    .description = "Boards of the Ampere generation need a GPU reset: while a client is left, "
                   "the change stays pending (exit status 1, the clients are named). From "
                   "Hopper on it is immediate, and lost at a reboot.",
    .options = mode_options,
    .option_count = COUNT(mode_options),
    .options_size = sizeof(struct gpu_options),
    .run = run_enable,
};

static const struct command cmd_disable = {
    .name = "disable-mig",
    .summary = "destroy all instances and switch MIG off",
    .positionals = "[GPU…]",
    .arguments_max = SIZE_MAX,
    .options = mode_options,
    .option_count = COUNT(mode_options),
    .options_size = sizeof(struct gpu_options),
    .run = run_disable,
};

static const struct command *const subcommands[] = {&cmd_list,    &cmd_export, &gpu_cmd_apply,
                                                    &cmd_assert,  &cmd_clear,  &cmd_enable,
                                                    &cmd_disable, NULL};

const struct command cmd_gpu = {
    .name = "gpu",
    .summary = "see, change and check MIG layouts",
    .description =
        "The machine's GPUs through NVML, or simulated ones (--driver sim; the fleet "
        "by TRANCHE_SIM_FLEET, its state in TRANCHE_SIM_STATE).",
    .subcommands = subcommands,
};
