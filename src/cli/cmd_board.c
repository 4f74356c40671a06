/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche board list|show`: the boards and their tables, for people and as JSON with the
 * names of NVML's and nvidia-smi's columns.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table.h"
#include "mig/board.h"

struct board_options {
    bool json;
    const char *output;
};

static const struct option_spec options[] = {
    OPTION_FLAG(0, "json", struct board_options, json, "print JSON"),
    OPTION_TEXT('o', "output", struct board_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
};

static const char *const engine_keys[MIG_ENGINE_COUNT] = {"decoders", "encoders", "jpeg",
                                                          "ofa"};

static json_t *number_or_null(int value)
{
    return value == MIG_UNKNOWN ? json_null() : json_integer(value);
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *engines_json(const int engines[MIG_ENGINE_COUNT])
{
    json_t *object = json_object();

    for (int i = 0; i < MIG_ENGINE_COUNT; i++)
        json_object_set_new(object, engine_keys[i], number_or_null(engines[i]));
    return object;
}

static json_t *ci_profiles_json(const struct mig_profile *profile)
{
    json_t *list = json_array();

    for (int i = 0; i < profile->ci_profile_count; i++) {
        const struct mig_ci_profile *ci = &profile->ci_profiles[i];
        json_t *object = json_object();

        assert(ci->compute_slices > 0);
        json_object_set_new(object, "compute_slices", json_integer(ci->compute_slices));
        json_object_set_new(object, "profile_id", json_integer(ci->profile_id));
        json_object_set_new(object, "max_in_gi", json_integer(ci->max_in_gi));
        json_object_set_new(object, "default", json_boolean(ci->is_default));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *starts_json(uint32_t starts)
{
    json_t *list = json_array();

    assert(starts);
    for (int start = 0; start < MIG_UNITS_MAX; start++)
        if (starts >> start & 1)
            json_array_append_new(list, json_integer(start));
    return list;
}

static json_t *profile_json(const struct mig_profile *profile)
{
    json_t *object = json_object();

    assert(profile->name && profile->kind);
    json_object_set_new(object, "name", json_string(profile->name));
    json_object_set_new(object, "kind", json_string(profile->kind));
    json_object_set_new(object, "group", json_string(mig_group_name(profile->group)));
    json_object_set_new(object, "nvml_enum", number_or_null(profile->nvml_enum));
    json_object_set_new(object, "profile_id", number_or_null(profile->profile_id));
    json_object_set_new(object, "compute_slices", json_integer(profile->compute_slices));
    json_object_set_new(object, "placement_starts", starts_json(profile->starts));
    json_object_set_new(object, "placement_size", json_integer(profile->placement_size));
    json_object_set_new(object, "max_instances", json_integer(profile->max_instances));
    json_object_set_new(object, "sm", number_or_null(profile->sm));
    json_object_set_new(object, "copy_engines", number_or_null(profile->copy_engines));
    json_object_set_new(object, "engines", engines_json(profile->engines));
    json_object_set_new(object, "memory_mib", number_or_null(profile->memory_mib));
    json_object_set_new(object, "compute_instance_profiles", ci_profiles_json(profile));
    return object;
}

/* What both commands tell of a board; the profiles are added by `show`. */
static json_t *board_json(const struct mig_board *board)
{
    CLEANUP(str_done) struct str cc = STR_EMPTY;
    json_t *object = json_object(), *ids = json_array();

    assert(board->slug && board->gpu);
    str_addf(&cc, "%d.%d", board->cc_major, board->cc_minor);
    for (int i = 0; i < board->pci_device_id_count; i++) {
        CLEANUP(str_done) struct str id = STR_EMPTY;

        str_addf(&id, "0x%08X", board->pci_device_ids[i]);
        json_array_append_new(ids, json_string(id.bytes));
    }
    json_object_set_new(object, "board", json_string(board->slug));
    json_object_set_new(object, "gpu", json_string(board->gpu));
    json_object_set_new(object, "arch", json_string(board->arch));
    json_object_set_new(object, "chip", json_string(board->chip));
    json_object_set_new(object, "compute_capability", json_string(cc.bytes));
    json_object_set_new(object, "mig", json_boolean(board->has_mig));
    json_object_set_new(object, "memory_units", json_integer(board->memory_units));
    json_object_set_new(object, "compute_slices", json_integer(board->compute_slices));
    json_object_set_new(object, "max_instances", json_integer(board->max_instances));
    json_object_set_new(object, "memory_mib", number_or_null(board->memory_mib));
    json_object_set_new(object, "pci_device_ids", ids);
    json_object_set_new(object, "placements", json_string(board->confidence));
    return object;
}

static void add_gib(struct table *table, int memory_mib)
{
    if (memory_mib == MIG_UNKNOWN)
        table_add(table, "?");
    else
        table_addf(table, "%.2f", memory_mib / 1024.0);
}

static void add_number(struct table *table, int value)
{
    if (value == MIG_UNKNOWN)
        table_add(table, "?");
    else
        table_addf(table, "%d", value);
}

static void write_list(struct str *text)
{
    static const struct table_column columns[] = {
        {"board", TABLE_ALIGN_LEFT},     {"arch", TABLE_ALIGN_LEFT},
        {"slices", TABLE_ALIGN_RIGHT},   {"units", TABLE_ALIGN_RIGHT},
        {"profiles", TABLE_ALIGN_RIGHT}, {"GiB", TABLE_ALIGN_RIGHT},
        {"GPU", TABLE_ALIGN_LEFT},
    };
    CLEANUP(table_free_ptr)
    struct table *table = table_new(columns, sizeof columns / sizeof *columns);

    for (size_t i = 0; i < mig_board_count(); i++) {
        const struct mig_board *board = mig_board_at(i);

        table_add(table, board->slug);
        table_add(table, board->arch);
        add_number(table, board->compute_slices);
        add_number(table, board->memory_units);
        add_number(table, board->profile_count);
        add_gib(table, board->memory_mib);
        table_add(table, board->gpu);
    }
    table_write(table, text);
}

static int run_list(const void *raw, struct arguments arguments, struct error *err)
{
    const struct board_options *given = raw;
    CLEANUP(str_done) struct str text = STR_EMPTY;

    assert(arguments.count == 0);
    if (given->json) {
        CLEANUP(json_decref_ptr) json_t *list = json_array();

        for (size_t i = 0; i < mig_board_count(); i++)
            json_array_append_new(list, board_json(mig_board_at(i)));
        json_write_pretty(list, &text);
    } else {
        write_list(&text);
    }
    return output_write(given->output, &text, err);
}

/* "{0,2,4}:2", as nvidia-smi mig -lgipp prints placements. */
static void add_placements(struct table *table, const struct mig_profile *profile)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    assert(profile->starts);
    for (int start = 0; start < MIG_UNITS_MAX; start++)
        if (profile->starts >> start & 1)
            str_addf(&text, "%c%d", text.length ? ',' : '{', start);
    table_addf(table, "%s}:%d", text.bytes, profile->placement_size);
}

static void write_profiles(const struct mig_board *board, struct str *text)
{
    static const struct table_column columns[] = {
        {"profile", TABLE_ALIGN_LEFT}, {"kind", TABLE_ALIGN_LEFT},
        {"id", TABLE_ALIGN_RIGHT},     {"starts:size", TABLE_ALIGN_LEFT},
        {"most", TABLE_ALIGN_RIGHT},   {"SM", TABLE_ALIGN_RIGHT},
        {"CE", TABLE_ALIGN_RIGHT},     {"DEC", TABLE_ALIGN_RIGHT},
        {"ENC", TABLE_ALIGN_RIGHT},    {"JPEG", TABLE_ALIGN_RIGHT},
        {"OFA", TABLE_ALIGN_RIGHT},    {"GiB", TABLE_ALIGN_RIGHT},
    };
    CLEANUP(table_free_ptr)
    struct table *table = table_new(columns, sizeof columns / sizeof *columns);

    for (int i = 0; i < board->profile_count; i++) {
        const struct mig_profile *profile = &board->profiles[i];

        assert(profile->placement_size > 0);
        table_add(table, profile->name);
        table_add(table, profile->kind);
        add_number(table, profile->profile_id);
        add_placements(table, profile);
        add_number(table, profile->max_instances);
        add_number(table, profile->sm);
        add_number(table, profile->copy_engines);
        for (int engine = 0; engine < MIG_ENGINE_COUNT; engine++)
            add_number(table, profile->engines[engine]);
        add_gib(table, profile->memory_mib);
    }
    table_write(table, text);
}

/* One line a distinct list: "3g.20gb: 3x 1c, 1x 2c, 1x 3c (default)". */
static void write_compute_instances(const struct mig_board *board, struct str *text)
{
    str_add(text, "\ncompute instances in one GPU instance (at most; * the default):\n");
    for (int i = 0; i < board->profile_count; i++) {
        const struct mig_profile *profile = &board->profiles[i];

        assert(profile->ci_profile_count > 0);
        str_addf(text, "  %-14s ", profile->name);
        for (int j = 0; j < profile->ci_profile_count; j++)
            str_addf(text, " %dx %dc%s", profile->ci_profiles[j].max_in_gi,
                     profile->ci_profiles[j].compute_slices,
                     profile->ci_profiles[j].is_default ? "*" : "");
        str_add_char(text, '\n');
    }
}

static void write_mode(const struct mig_board *board, struct str *text)
{
    if (!board->has_mig) {
        str_add(text, "MIG:          none; the whole GPU is one slice\n");
        return;
    }
    assert(board->confidence);
    str_addf(text, "MIG mode:     a change %s; it %s a reboot%s\n",
             board->mode_change_needs_reset ? "needs a GPU reset" : "needs no GPU reset",
             board->mode_persists_reboot ? "survives" : "does not survive",
             board->mode_lost_on_driver_unload ? " or the driver's unloading" : "");
    str_addf(text, "placements:   %s\n", board->confidence);
}

/* Words broken at 80 columns, behind a title of as many columns as the others have. */
static void write_remark(const char *note, struct str *text)
{
    size_t column = 14;

    str_addf(text, "%-13s", "remark:");
    for (const char *word = note; *word;) {
        size_t length = strcspn(word, " ");

        if (column + 1 + length > 80) {
            str_addf(text, "\n%13s", "");
            column = 14;
        }
        str_add_char(text, ' ');
        str_add_bytes(text, word, length);
        column += 1 + length;
        word += length + strspn(word + length, " ");
    }
    str_add_char(text, '\n');
}

static void write_board(const struct mig_board *board, struct str *text)
{
    str_addf(text, "%s: %s\n\n", board->slug, board->gpu);
    str_addf(text, "chip:         %s (%s), compute capability %d.%d\n", board->chip,
             board->arch, board->cc_major, board->cc_minor);
    if (board->has_mig)
        str_addf(text,
                 "size:         %d compute slices, %d memory units, at most %d instances\n",
                 board->compute_slices, board->memory_units, board->max_instances);
    str_add(text, "engines:     ");
    for (int i = 0; i < MIG_ENGINE_COUNT; i++) {
        assert(board->engine_limits[i] >= MIG_UNKNOWN);
        str_add(text, i ? ", " : " ");
        if (board->engine_limits[i] == MIG_UNKNOWN)
            str_add_char(text, '?');
        else
            str_addf(text, "%d", board->engine_limits[i]);
        str_addf(text, " %s", mig_engine_name((enum mig_engine)i));
    }
    str_add_char(text, '\n');
    write_mode(board, text);
    if (board->pci_device_id_count)
        str_add(text, "PCI devices: ");
    for (int i = 0; i < board->pci_device_id_count; i++)
        str_addf(text, " 0x%08X", board->pci_device_ids[i]);
    str_add(text, board->pci_device_id_count ? "\n" : "");
    if (board->note)
        write_remark(board->note, text);
    str_add_char(text, '\n');
    write_profiles(board, text);
    if (board->has_mig)
        write_compute_instances(board, text);
}

static int run_show(const void *raw, struct arguments arguments, struct error *err)
{
    const struct board_options *given = raw;
    const struct mig_board *board = NULL;
    CLEANUP(str_done) struct str text = STR_EMPTY;

    assert(arguments.count == 1);
    if (mig_board_get(arguments.items[0], &board, err) < 0)
        return -E_INPUT;
    if (given->json) {
        CLEANUP(json_decref_ptr) json_t *object = board_json(board);
        json_t *profiles = json_array();

        json_object_set_new(object, "mode_change_needs_reset",
                            json_boolean(board->mode_change_needs_reset));
        json_object_set_new(object, "mode_persists_reboot",
                            json_boolean(board->mode_persists_reboot));
        json_object_set_new(object, "engine_limits", engines_json(board->engine_limits));
        json_object_set_new(object, "note", text_or_null(board->note));
        for (int i = 0; i < board->profile_count; i++)
            json_array_append_new(profiles, profile_json(&board->profiles[i]));
        json_object_set_new(object, "profiles", profiles);
        json_write_pretty(object, &text);
    } else {
        write_board(board, &text);
    }
    return output_write(given->output, &text, err);
}

static const struct command list = {
    .name = "list",
    .summary = "all boards",
    .description = "Lists every board: its slug, the architecture, compute slices, memory "
                   "units, slice profiles and usable memory (? where no public source says).",
    .examples = "tranche board list\ntranche board list --json",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct board_options),
    .run = run_list,
};

static const struct command show = {
    .name = "show",
    .summary = "one board and its slice profiles",
    .positionals = "BOARD",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "Prints the slice profiles of a board: the profile id as NVML and nvidia-smi know it, "
        "the "
        "memory units where an instance may start and how many it takes, how many instances of "
        "it there can be, and what each has. ? is a number that no public source gives.",
    .examples = "tranche board show a100-40gb\ntranche board show h100-80gb-sxm5 --json",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct board_options),
    .run = run_show,
};

static const struct command *const subcommands[] = {&list, &show, NULL};

const struct command cmd_board = {
    .name = "board",
    .summary = "GPU boards and their slice profiles",
    .subcommands = subcommands,
};
