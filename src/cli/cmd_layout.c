/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche layout check|place|enumerate|draw|diff`: layouts of one GPU, by text.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "draw/layout_picture.h"
#include "mig/layout.h"

struct layout_options {
    const char *existing;
    const char *universe;
    const char *format;
    bool maximal;
    bool count;
    bool json;
    const char *output;
};

#define JSON_OPTION OPTION_FLAG(0, "json", struct layout_options, json, "print JSON")
#define OUTPUT_OPTION                                                                          \
    OPTION_TEXT('o', "output", struct layout_options, output, "FILE", NULL,                    \
                "write to FILE instead of standard output")

/* A BOARD and the LAYOUT in the words after it; blanks may separate its instances, so a
 * shell may have cut it into several words. */
static int read_layout(struct arguments arguments, const struct mig_board **ret_board,
                       struct mig_layout *ret_layout, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    int result = mig_board_get(arguments.items[0], ret_board, err);

    assert(arguments.count >= 2);
    for (size_t i = 1; i < arguments.count; i++)
        str_addf(&text, "%s%s", i > 1 ? " " : "", arguments.items[i]);
    return result < 0 ? result : mig_layout_parse(*ret_board, text.bytes, ret_layout, err);
}

static bool has_open_start(const struct mig_layout *layout)
{
    assert(layout->count <= MIG_INSTANCES_MAX);
    for (int i = 0; i < layout->count; i++)
        if (layout->instances[i].start == MIG_START_ANY)
            return true;
    return false;
}

static json_t *instances_json(const struct mig_board *board, const struct mig_layout *layout)
{
    json_t *list = json_array();

    assert(!has_open_start(layout));
    for (int i = 0; i < layout->count; i++) {
        json_t *object = json_object();

        json_object_set_new(object, "slice",
                            json_string(board->profiles[layout->instances[i].profile].name));
        json_object_set_new(object, "start", json_integer(layout->instances[i].start));
        json_array_append_new(list, object);
    }
    return list;
}

/* The lines of a refusal as a list. */
static json_t *reasons_json(const struct error *err)
{
    json_t *list = json_array();
    const char *line = err->text;

    assert(*line);
    while (*line) {
        size_t length = strcspn(line, "\n");

        json_array_append_new(list, json_stringn(line, length));
        line += length + (line[length] == '\n');
    }
    return list;
}

/* Prints a legal layout, or under --json the refusal in err; the exit is result's. */
static int print_answer(const struct layout_options *given, const struct mig_board *board,
                        const struct mig_layout *layout, int result, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *object = NULL;

    if (result < 0 && (!given->json || result != -E_NO))
        return result;
    if (result == 0)
        mig_layout_format(board, layout, &text);
    if (!given->json) {
        str_add_char(&text, '\n');
        return output_write(given->output, &text, err);
    }
    assert(result == 0 || result == -E_NO);
    object = json_object();
    json_object_set_new(object, "board", json_string(board->slug));
    json_object_set_new(object, "legal", json_boolean(result == 0));
    if (result == 0) {
        json_object_set_new(object, "layout", json_string(text.bytes));
        json_object_set_new(object, "instances", instances_json(board, layout));
    } else {
        json_object_set_new(object, "reasons", reasons_json(err));
    }
    str_clear(&text);
    json_write_pretty(object, &text);
    if (output_write(given->output, &text, err) < 0)
        return -err->code;
    if (result < 0) /* said in the JSON */
        return error_set(err, E_NO, "%s", "");
    return 0;
}

static int run_check(const void *raw, struct arguments arguments, struct error *err)
{
    const struct layout_options *given = raw;
    const struct mig_board *board = NULL;
    struct mig_layout layout = {0};
    int result = read_layout(arguments, &board, &layout, err);

    if (result == 0 && has_open_start(&layout))
        result = mig_layout_place(board, &layout, NULL, &layout, err);
    else if (result == 0)
        result = mig_layout_check(board, &layout, err);
    return print_answer(given, board, &layout, result, err);
}

/* Reads --existing: legal, with every start. */
static int read_existing(const struct layout_options *given, const struct mig_board *board,
                         struct mig_layout *ret_existing, struct error *err)
{
    int result;

    assert(ret_existing->count == 0);
    if (!given->existing)
        return 0;
    result = mig_layout_parse(board, given->existing, ret_existing, err);
    if (result == 0 && has_open_start(ret_existing))
        return error_set(
            err, E_INPUT,
            "--existing \"%.60s\": an instance that is there has a start; expected "
            "PROFILE@START for each",
            given->existing);
    if (result == 0)
        result = mig_layout_check(board, ret_existing, err);
    return result < 0 ? error_wrap(err, "--existing") : 0;
}

static int run_place(const void *raw, struct arguments arguments, struct error *err)
{
    const struct layout_options *given = raw;
    const struct mig_board *board = NULL;
    struct mig_layout request = {0}, existing = {0}, layout = {0};
    int result = read_layout(arguments, &board, &request, err);

    if (result == 0)
        result = read_existing(given, board, &existing, err);
    if (result == 0)
        result = mig_layout_place(board, &request, &existing, &layout, err);
    return print_answer(given, board, &layout, result, err);
}

struct listing {
    const struct mig_board *board;
    struct str *text;
    json_t *list; /* instead of text, unless NULL */
};

static bool list_layout(const struct mig_layout *layout, void *context)
{
    struct listing *listing = context;
    CLEANUP(str_done) struct str line = STR_EMPTY;

    assert(listing->text);
    mig_layout_format(listing->board, layout, &line);
    if (listing->list)
        json_array_append_new(listing->list, json_string(line.bytes));
    else
        str_addf(listing->text, "%s\n", line.bytes);
    return true;
}

static int run_enumerate(const void *raw, struct arguments arguments, struct error *err)
{
    const struct layout_options *given = raw;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *list = json_array();
    struct listing listing = {.text = &text, .list = given->json ? list : NULL};
    uint32_t universe = 0;
    size_t count;

    assert(arguments.count == 1);
    if (mig_board_get(arguments.items[0], &listing.board, err) < 0 ||
        mig_universe_get(listing.board, given->universe, &universe, err) < 0)
        return -err->code;
    count = mig_layout_enumerate(listing.board, universe, given->maximal,
                                 given->count ? NULL : list_layout, &listing);
    if (given->json) {
        CLEANUP(json_decref_ptr) json_t *object = json_object();

        json_object_set_new(object, "board", json_string(listing.board->slug));
        json_object_set_new(object, "universe", json_string(given->universe));
        json_object_set_new(object, "maximal", json_boolean(given->maximal));
        json_object_set_new(object, "count", json_integer((json_int_t)count));
        if (!given->count)
            json_object_set(object, "layouts", list);
        json_write_pretty(object, &text);
    } else if (given->count) {
        str_addf(&text, "%zu\n", count);
    }
    return output_write(given->output, &text, err);
}

/* Whether the picture is to be SVG: --format says so, or the file's name. */
static bool wants_svg(const struct layout_options *given)
{
    if (given->format)
        return strcmp(given->format, "svg") == 0;
    return given->output && text_ends_with(given->output, ".svg");
}

static int print_picture(const struct layout_options *given,
                         const struct layout_picture *picture, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    bool to_file = given->output && strcmp(given->output, "-") != 0;

    assert(picture->gpu_count > 0);
    if (wants_svg(given))
        layout_picture_svg(picture, &text);
    else
        layout_picture_text(picture, !to_file && output_has_colour(), &text);
    return output_write(given->output, &text, err);
}

static int run_draw(const void *raw, struct arguments arguments, struct error *err)
{
    const struct layout_options *given = raw;
    const struct mig_board *board = NULL;
    struct mig_layout layout = {0};
    struct draw_gpu gpu;
    int result = read_layout(arguments, &board, &layout, err);

    if (result == 0)
        result = mig_layout_place(board, &layout, NULL, &layout, err);
    if (result < 0)
        return result;
    assert(!has_open_start(&layout));
    gpu = draw_gpu_of(board, &layout);
    gpu.remark = board->gpu;
    return print_picture(given, &(struct layout_picture){.gpus = &gpu, .gpu_count = 1}, err);
}

/* "keep 4g.20gb@0" and so on, or the same as JSON. */
static int print_difference(const struct layout_options *given, const struct mig_board *board,
                            const struct mig_diff *diff, struct error *err)
{
    static const char *const names[] = {"keep", "remove", "create"};
    const struct mig_layout *parts[] = {&diff->keep, &diff->remove, &diff->create};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *object = json_object();

    assert(board && diff);
    json_object_set_new(object, "board", json_string(board->slug));
    for (int i = 0; i < 3; i++) {
        json_object_set_new(object, names[i], instances_json(board, parts[i]));
        str_addf(&text, "%-6s ", names[i]);
        mig_layout_format(board, parts[i], &text);
        str_add_char(&text, '\n');
    }
    if (given->json) {
        str_clear(&text);
        json_write_pretty(object, &text);
    }
    return output_write(given->output, &text, err);
}

/* The two layouts of the command line with every start chosen, those of TO so that the most
 * instances stay. */
static int read_sides(const struct mig_board *board, const char *const texts[2],
                      struct mig_layout *ret_from, struct mig_layout *ret_to, struct error *err)
{
    struct mig_layout from = {0}, to = {0};

    assert(texts[0] && texts[1]);
    if (mig_layout_parse(board, texts[0], &from, err) < 0 ||
        mig_layout_place(board, &from, NULL, ret_from, err) < 0)
        return error_wrap(err, "FROM");
    if (mig_layout_parse(board, texts[1], &to, err) < 0 ||
        mig_layout_place_near(board, &to, ret_from, ret_to, err) < 0)
        return error_wrap(err, "TO");
    return 0;
}

static int run_diff(const void *raw, struct arguments arguments, struct error *err)
{
    static const struct draw_key keys[] = {
        {"stays", CANVAS_NEUTRAL}, {"removed", CANVAS_BAD}, {"created", CANVAS_GOOD}};
    const struct layout_options *given = raw;
    const struct mig_board *board = NULL;
    struct mig_layout from = {0}, to = {0};
    struct mig_diff diff;
    struct draw_gpu gpus[2];
    struct layout_picture picture = {
        .gpus = gpus, .gpu_count = 2, .columns = 1, .keys = keys, .key_count = 3};

    assert(arguments.count == 3);
    if (mig_board_get(arguments.items[0], &board, err) < 0 ||
        read_sides(board, (const char *const[]){arguments.items[1], arguments.items[2]}, &from,
                   &to, err) < 0)
        return -err->code;
    if (given->format && given->json)
        return error_set(err, E_USAGE, "--format and --json exclude each other");
    if (given->format || wants_svg(given)) {
        draw_gpu_difference(board, &from, &to, gpus);
        gpus[0].remark = gpus[1].remark = board->gpu;
        return print_picture(given, &picture, err);
    }
    mig_layout_diff(&from, &to, &diff);
    return print_difference(given, board, &diff, err);
}

static const struct option_spec check_options[] = {JSON_OPTION, OUTPUT_OPTION};

static const struct command check = {
    .name = "check",
    .summary = "whether a layout is legal on a board",
    .positionals = "BOARD LAYOUT",
    .arguments_min = 2,
    .arguments_max = SIZE_MAX,
    .description =
        "Exits with 0 and prints the layout when it is legal, and with 1 and the rule and the "
        "instances that clash when it is not. Where starts are left out the question is "
        "whether "
        "legal ones exist.\n\n"
        "Legal means: every instance starts where its profile may; the spans of memory units "
        "are disjoint; no profile occurs more often than the board allows; decoders, encoders, "
        "JPEG and optical-flow engines suffice; and there are not too many instances.",
    .examples = "tranche layout check a100-40gb 4g.20gb@0,2g.10gb@4,1g.5gb@6\n"
                "tranche layout check a100-40gb 3g@0,2g@2",
    .options = check_options,
    .option_count = sizeof check_options / sizeof *check_options,
    .options_size = sizeof(struct layout_options),
    .run = run_check,
};

static const struct option_spec place_options[] = {
    OPTION_TEXT('e', "existing", struct layout_options, existing, "LAYOUT", NULL,
                "instances that are already there and stay where they are"),
    JSON_OPTION,
    OUTPUT_OPTION,
};

static const struct command place = {
    .name = "place",
    .summary = "choose the starts of a layout",
    .positionals = "BOARD LAYOUT",
    .arguments_min = 2,
    .arguments_max = SIZE_MAX,
    .description =
        "Chooses every start that is left out and prints the whole layout, existing instances "
        "included. The answer is exact: with status 1 it is proved that no starts exist, and "
        "the message says why. The same request always gets the same starts.",
    .examples = "tranche layout place a100-40gb 3g,2g,1g,1g\n"
                "tranche layout place a100-40gb 2x2g --existing 3g@4",
    .options = place_options,
    .option_count = sizeof place_options / sizeof *place_options,
    .options_size = sizeof(struct layout_options),
    .run = run_place,
};

static const struct option_spec enumerate_options[] = {
    OPTION_CHOICE('u', "universe", struct layout_options, universe,
                  "base|base+rev2|base+me|full", "full", "the slice profiles that may occur"),
    OPTION_FLAG(0, "maximal", struct layout_options, maximal,
                "only layouts to which no instance of the universe can be added"),
    OPTION_FLAG(0, "count", struct layout_options, count, "print the number alone"),
    JSON_OPTION,
    OUTPUT_OPTION,
};

static const struct command enumerate = {
    .name = "enumerate",
    .summary = "every legal layout of a board",
    .positionals = "BOARD",
    .arguments_min = 1,
    .arguments_max = 1,
    .description =
        "Prints every legal layout, one a line, the empty one (-) first. The universe base is "
        "the plain profiles; base+rev2 adds those of double memory, base+me those with media "
        "engines; full is all that the board has.",
    .examples = "tranche layout enumerate a100-40gb --universe base --maximal\n"
                "tranche layout enumerate a30-24gb --count",
    .options = enumerate_options,
    .option_count = sizeof enumerate_options / sizeof *enumerate_options,
    .options_size = sizeof(struct layout_options),
    .run = run_enumerate,
};

static const struct option_spec draw_options[] = {
    OPTION_CHOICE('f', "format", struct layout_options, format, "text|svg", NULL,
                  "what to draw (default: text; svg where FILE ends in .svg)"),
    OUTPUT_OPTION,
};

static const struct command draw = {
    .name = "draw",
    .summary = "a picture of a layout",
    .positionals = "BOARD LAYOUT",
    .arguments_min = 2,
    .arguments_max = SIZE_MAX,
    .description =
        "Draws the instances over the memory units that they take. What is free is in "
        "dashes; units where nothing can start any more are crossed out.",
    .examples = "tranche layout draw a100-40gb 4g,2g,1g\n"
                "tranche layout draw a100-40gb 4g,2g,1g -o layout.svg",
    .options = draw_options,
    .option_count = sizeof draw_options / sizeof *draw_options,
    .options_size = sizeof(struct layout_options),
    .run = run_draw,
};

static const struct option_spec diff_options[] = {
    OPTION_CHOICE('f', "format", struct layout_options, format, "text|svg", NULL,
                  "draw a picture of both instead"),
    JSON_OPTION,
    OUTPUT_OPTION,
};

static const struct command diff = {
    .name = "diff",
    .summary = "what changes between two layouts and what stays",
    .positionals = "BOARD FROM TO",
    .arguments_min = 3,
    .arguments_max = 3,
    .description =
        "Prints the instances that stay, those to remove and those to create, a line "
        "each. An instance stays when profile and start are the same; starts that TO leaves "
        "out are chosen so that the most instances stay.",
    .examples = "tranche layout diff a100-40gb 4g@0,2g@4,1g@6 4g@0,3g@4\n"
                "tranche layout diff a100-40gb 7g@0 4g@0,3g@4 --format text",
    .options = diff_options,
    .option_count = sizeof diff_options / sizeof *diff_options,
    .options_size = sizeof(struct layout_options),
    .run = run_diff,
};

static const struct command *const subcommands[] = {&check, &place, &enumerate,
                                                    &draw,  &diff,  NULL};

const struct command cmd_layout = {
    .name = "layout",
    .summary = "layouts of one GPU: check, place, enumerate, draw, compare",
    .subcommands = subcommands,
};
