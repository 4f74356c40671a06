/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of layouts, drawn on the cells of canvas.h. One GPU takes, in cells:
 *
 *     row 0   title and remark
 *     row 1   upper edge of the bar
 *     row 2…  up to three lines in each instance
 *     row 5   lower edge
 *     row 6   numbers of the memory units
 *     row 7   what is used and what is left
 *     row 8   empty
 */
#include "draw/layout_picture.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"

enum {
    MARGIN_COLUMNS = 2, /* left and right of the picture; in text none on the left */
    BAR_TOP_ROW = 1,
    BAR_LINES = 3,
    BAR_BOTTOM_ROW = BAR_TOP_ROW + BAR_LINES + 1,
    NUMBERS_ROW = BAR_BOTTOM_ROW + 1,
    CAPTION_ROW = NUMBERS_ROW + 1,
    GPU_ROWS = CAPTION_ROW + 2,
    HEAD_ROWS = 2, /* the picture's title */
    GAP_COLUMNS = 4,
    BAR_COLUMNS_MAX = 76,
    BAR_COLUMNS_MIN = 60, /* for the words around a narrow bar */
    UNIT_COLUMNS_MAX = 20,
};

/* Where things are, in cells. */
struct grid {
    int margin;
    int columns; /* GPUs side by side */
    int bar_columns;
    int head_rows;
    int width, height;
};

struct draw_gpu draw_gpu_of(const struct mig_board *board, const struct mig_layout *layout)
{
    struct draw_gpu gpu = {.board = board, .layout = *layout};

    assert(board && layout->count <= MIG_INSTANCES_MAX);
    for (int i = 0; i < MIG_INSTANCES_MAX; i++)
        gpu.colours[i] = DRAW_COLOUR_AUTO;
    return gpu;
}

void draw_gpu_difference(const struct mig_board *board, const struct mig_layout *from,
                         const struct mig_layout *to, struct draw_gpu ret_gpus[2])
{
    struct mig_diff diff;

    assert(board && ret_gpus);
    mig_layout_diff(from, to, &diff);
    ret_gpus[0] = draw_gpu_of(board, from);
    ret_gpus[1] = draw_gpu_of(board, to);
    ret_gpus[0].title = "from";
    ret_gpus[1].title = "to";
    for (int side = 0; side < 2; side++) {
        struct draw_gpu *gpu = &ret_gpus[side];

        for (int i = 0; i < gpu->layout.count; i++) {
            bool stays = mig_layout_contains(&diff.keep, gpu->layout.instances[i]);

            gpu->labels[i] = stays ? "stays" : side ? "created" : "removed";
            gpu->colours[i] = stays ? CANVAS_NEUTRAL : side ? CANVAS_GOOD : CANVAS_BAD;
        }
    }
}

static int unit_columns(const struct mig_board *board)
{
    int columns = BAR_COLUMNS_MAX / board->memory_units;

    assert(board->memory_units > 0);
    return columns < UNIT_COLUMNS_MAX ? columns : UNIT_COLUMNS_MAX;
}

/* The middle of a cell, in pixels. */
static struct canvas_point cell_middle(int column, int row)
{
    return (struct canvas_point){(column + 0.5) * CANVAS_CELL_WIDTH,
                                 (row + 0.5) * CANVAS_CELL_HEIGHT};
}

/* A frame through the middles of these cells. */
static struct canvas_rect frame(int left, int top, int right, int bottom)
{
    struct canvas_point from = cell_middle(left, top), to = cell_middle(right, bottom);

    assert(left <= right && top <= bottom);
    return (struct canvas_rect){from.x, from.y, to.x - from.x, to.y - from.y};
}

static void words_at(struct canvas *canvas, int column, int row, const char *words,
                     struct canvas_text looks)
{
    assert(words);
    looks.at = cell_middle(column, row);
    looks.words = words;
    canvas_text(canvas, &looks);
}

/* "19.6 GiB" of a profile; "" where unknown. */
static void memory_text(int memory_mib, struct str *text)
{
    assert(text);
    if (memory_mib != MIG_UNKNOWN)
        str_addf(text, "%.1f GiB", memory_mib / 1024.0);
}

/* One colour for each number of compute slices, the same on every board. */
static enum canvas_colour colour_of(const struct draw_gpu *gpu, int index)
{
    static const int series[] = {[1] = 0, [2] = 1, [3] = 2, [4] = 3, [5] = 5, [6] = 6, [7] = 4};
    int slices = gpu->board->profiles[gpu->layout.instances[index].profile].compute_slices;

    if (gpu->colours[index] != DRAW_COLOUR_AUTO)
        return (enum canvas_colour)gpu->colours[index];
    assert(slices > 0 && slices < (int)(sizeof(series) / sizeof(series[0])));
    return (enum canvas_colour)(CANVAS_SERIES + series[slices]);
}

/* All that is known of an instance, for the pointer. */
static void instance_title(const struct draw_gpu *gpu, int index, struct str *text)
{
    struct mig_instance instance = gpu->layout.instances[index];
    const struct mig_profile *profile = &gpu->board->profiles[instance.profile];

    assert(index < gpu->layout.count);
    if (gpu->labels[index])
        str_addf(text, "%s on ", gpu->labels[index]);
    str_addf(text, "%s@%d: %d compute slice%s", profile->name, instance.start,
             profile->compute_slices, profile->compute_slices == 1 ? "" : "s");
    if (profile->sm != MIG_UNKNOWN)
        str_addf(text, ", %d SM", profile->sm);
    if (profile->memory_mib != MIG_UNKNOWN) {
        str_add(text, ", ");
        memory_text(profile->memory_mib, text);
    }
    if (gpu->details[index])
        str_addf(text, "\n%s", gpu->details[index]);
}

/* The lines in a box, the most wanted first: what runs, the profile, its memory. A name too
 * wide for the box is broken before its attribute: "1g.10gb" and "+me". */
static int box_lines(const struct draw_gpu *gpu, int index, int width,
                     struct str lines[BAR_LINES])
{
    const struct mig_profile *profile =
        &gpu->board->profiles[gpu->layout.instances[index].profile];
    size_t plain = strcspn(profile->name, "+-");
    int count = 0;

    assert(width >= 0);
    if (gpu->labels[index])
        canvas_fit_words(gpu->labels[index], width, &lines[count++]);
    if ((int)strlen(profile->name) <= width) {
        str_add(&lines[count++], profile->name);
    } else if (profile->name[plain] && (int)plain <= width) {
        str_add_bytes(&lines[count++], profile->name, plain);
        canvas_fit_words(profile->name + plain, width, &lines[count++]);
    } else {
        canvas_fit_words(profile->kind, width, &lines[count++]);
    }
    if (count < BAR_LINES && profile->memory_mib != MIG_UNKNOWN) {
        memory_text(profile->memory_mib, &lines[count]);
        if ((int)lines[count].length > width) {
            str_clear(&lines[count]);
            str_addf(&lines[count], "%.0fG", profile->memory_mib / 1024.0);
        }
        count++;
    }
    if (count < BAR_LINES && profile->sm != MIG_UNKNOWN)
        str_addf(&lines[count++], "%d SM", profile->sm);
    return count;
}

static void draw_box_words(struct canvas *canvas, const struct draw_gpu *gpu, int index,
                           const int box[3])
{
    struct str lines[BAR_LINES] = {STR_EMPTY, STR_EMPTY, STR_EMPTY};
    int width = box[1] - box[0] - 1;
    int left = width >= 6 ? 2 : 1; /* room to breathe, where there is room */
    int count = box_lines(gpu, index, width - left + 1, lines);

    assert(count <= BAR_LINES);
    for (int i = 0; i < count; i++)
        words_at(
            canvas, box[0] + (width >= 6 ? 2 : 1), box[2] + 1 + i, lines[i].bytes,
            (struct canvas_text){.colour = i == 0 ? CANVAS_INK : CANVAS_MUTED, .bold = i == 0});
    for (int i = 0; i < BAR_LINES; i++)
        str_done(&lines[i]);
}

static void draw_instance(struct canvas *canvas, const struct draw_gpu *gpu, int index,
                          int left, int top)
{
    CLEANUP(str_done) struct str title = STR_EMPTY;
    struct mig_instance instance = gpu->layout.instances[index];
    int unit = unit_columns(gpu->board);
    int size = gpu->board->profiles[instance.profile].placement_size;
    int from = left + instance.start * unit, to = from + size * unit;

    assert(instance.start >= 0);
    instance_title(gpu, index, &title);
    canvas_group_begin(canvas, title.bytes);
    canvas_rect(canvas, frame(from, top + BAR_TOP_ROW, to, top + BAR_BOTTOM_ROW),
                colour_of(gpu, index), CANVAS_SOLID);
    draw_box_words(canvas, gpu, index, (int[3]){from, to, top + BAR_TOP_ROW});
    canvas_group_end(canvas);
}

/* The units that some instance could still take beside the layout. */
static uint32_t usable_units(const struct mig_board *board, const struct mig_layout *layout)
{
    uint32_t units = 0;

    assert(board && layout);
    if (layout->count >= board->max_instances)
        return 0;
    for (int profile = 0; profile < board->profile_count; profile++) {
        for (int start = 0; start < board->memory_units; start++) {
            struct mig_instance instance = {(int8_t)profile, (int8_t)start};

            if (mig_layout_can_add(board, layout, instance))
                units |= mig_instance_span(board, instance);
        }
    }
    return units;
}

/* Every run of equal units that no instance takes. */
static void draw_free(struct canvas *canvas, const struct draw_gpu *gpu, int left, int top)
{
    uint32_t taken = mig_layout_span(gpu->board, &gpu->layout);
    uint32_t usable = usable_units(gpu->board, &gpu->layout);
    int unit = unit_columns(gpu->board);

    assert(!(usable & taken));
    for (int from = 0, to; from < gpu->board->memory_units; from = to) {
        bool is_taken = taken >> from & 1, is_usable = usable >> from & 1;

        for (to = from + 1; to < gpu->board->memory_units; to++)
            if ((taken >> to & 1) != is_taken || (usable >> to & 1) != is_usable)
                break;
        if (is_taken)
            continue;
        canvas_group_begin(canvas, is_usable ? "free" : "unusable: nothing may start here");
        canvas_rect(canvas,
                    frame(left + from * unit, top + BAR_TOP_ROW, left + to * unit,
                          top + BAR_BOTTOM_ROW),
                    is_usable ? CANVAS_NEUTRAL : CANVAS_GRID,
                    is_usable ? CANVAS_DASHED : CANVAS_HATCH);
        if (is_usable)
            words_at(canvas, left + from * unit + 2, top + BAR_TOP_ROW + 1, "free",
                     (struct canvas_text){.colour = CANVAS_MUTED});
        canvas_group_end(canvas);
    }
}

static void draw_numbers(struct canvas *canvas, const struct draw_gpu *gpu, int left, int top)
{
    int unit = unit_columns(gpu->board);

    assert(unit > 0);
    for (int i = 0; i < gpu->board->memory_units && gpu->board->has_mig; i++) {
        char number[12];
        struct canvas_text text = {
            .words = number, .colour = CANVAS_MUTED, .anchor = CANVAS_MIDDLE};

        snprintf(number, sizeof(number), "%d", i);
        text.at.x = (left + i * unit + unit / 2.0 + 0.5) * CANVAS_CELL_WIDTH;
        text.at.y = cell_middle(0, top + NUMBERS_ROW).y;
        canvas_text(canvas, &text);
    }
}

/* "memory units: 7 of 8 used; compute slices: 7 of 7 used; 1 unit unusable" */
static void draw_caption(struct canvas *canvas, const struct draw_gpu *gpu, int left, int top)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    uint32_t taken = mig_layout_span(gpu->board, &gpu->layout);
    uint32_t all = (1U << gpu->board->memory_units) - 1;
    int lost = __builtin_popcount(all & ~taken & ~usable_units(gpu->board, &gpu->layout));
    int slices = 0;

    assert(!(taken & ~all));
    for (int i = 0; i < gpu->layout.count; i++)
        slices += gpu->board->profiles[gpu->layout.instances[i].profile].compute_slices;
    if (gpu->board->has_mig)
        str_addf(&text, "memory units: %d of %d used; compute slices: %d of %d used",
                 __builtin_popcount(taken), gpu->board->memory_units, slices,
                 gpu->board->compute_slices);
    else
        str_addf(&text, "without MIG, %s", gpu->layout.count ? "in use" : "not in use");
    if (lost)
        str_addf(&text, "; %d unit%s unusable", lost, lost == 1 ? "" : "s");
    words_at(canvas, left, top + (gpu->board->has_mig ? CAPTION_ROW : NUMBERS_ROW), text.bytes,
             (struct canvas_text){.colour = CANVAS_MUTED});
}

static void draw_one(struct canvas *canvas, const struct draw_gpu *gpu, const struct grid *grid,
                     const int at[2])
{
    int left = at[0], top = at[1];
    const char *title = gpu->title ? gpu->title : gpu->board->slug;
    CLEANUP(str_done) struct str fitting = STR_EMPTY;
    int used = (int)text_columns(title) + 2;

    assert(gpu->board && gpu->layout.count <= MIG_INSTANCES_MAX);
    canvas_fit_words(title, grid->bar_columns, &fitting);
    words_at(canvas, left, top, fitting.bytes,
             (struct canvas_text){.colour = CANVAS_INK, .bold = true});
    if (gpu->remark) {
        str_clear(&fitting);
        canvas_fit_words(gpu->remark, grid->bar_columns - used, &fitting);
        words_at(canvas, left + used, top, fitting.bytes,
                 (struct canvas_text){.colour = CANVAS_MUTED});
    }
    draw_free(canvas, gpu, left, top);
    for (int i = 0; i < gpu->layout.count; i++)
        draw_instance(canvas, gpu, i, left, top);
    draw_numbers(canvas, gpu, left, top);
    draw_caption(canvas, gpu, left, top);
}

static struct grid grid_of(const struct layout_picture *picture, int columns, int margin)
{
    struct grid grid = {.margin = margin, .columns = columns, .bar_columns = BAR_COLUMNS_MIN};
    int rows;

    assert(picture->gpu_count > 0 && columns > 0);
    for (size_t i = 0; i < picture->gpu_count; i++) {
        int bar = unit_columns(picture->gpus[i].board) * picture->gpus[i].board->memory_units;

        if (bar > grid.bar_columns)
            grid.bar_columns = bar;
    }
    grid.head_rows = picture->title ? HEAD_ROWS : 0;
    rows = ((int)picture->gpu_count + columns - 1) / columns;
    grid.width = 2 * margin + columns * (grid.bar_columns + 1) + (columns - 1) * GAP_COLUMNS;
    grid.height = grid.head_rows + rows * GPU_ROWS + (picture->key_count ? 1 : -1);
    return grid;
}

/* The keys, one after the other, on the last row. */
static void draw_keys(struct canvas *canvas, const struct layout_picture *picture,
                      const struct grid *grid, int row)
{
    int column = grid->margin;

    assert(picture->key_count > 0);
    for (size_t i = 0; i < picture->key_count; i++) {
        struct canvas_point middle = cell_middle(column, row);

        canvas_rect(
            canvas,
            (struct canvas_rect){middle.x - 0.5, middle.y - 6, 2 * CANVAS_CELL_WIDTH, 12},
            picture->keys[i].colour, CANVAS_KEY);
        words_at(canvas, column + 3, row, picture->keys[i].label,
                 (struct canvas_text){.colour = CANVAS_INK});
        column += (int)text_columns(picture->keys[i].label) + 6;
    }
}

static void draw_picture(struct canvas *canvas, const struct layout_picture *picture,
                         const struct grid *grid, int top)
{
    assert(canvas && grid->columns > 0);
    if (picture->title)
        words_at(canvas, grid->margin, top, picture->title,
                 (struct canvas_text){.colour = CANVAS_INK, .bold = true, .large = true});
    for (size_t i = 0; i < picture->gpu_count; i++) {
        int column = (int)i % grid->columns, row = (int)i / grid->columns;

        draw_one(canvas, &picture->gpus[i], grid,
                 (int[2]){grid->margin + column * (grid->bar_columns + 1 + GAP_COLUMNS),
                          top + grid->head_rows + row * GPU_ROWS});
    }
    if (picture->key_count)
        draw_keys(canvas, picture, grid, top + grid->height - 1);
}

void layout_picture_svg(const struct layout_picture *picture, struct str *svg)
{
    int columns = picture->columns ? picture->columns : picture->gpu_count > 1 ? 2 : 1;
    struct grid grid = grid_of(picture, columns, MARGIN_COLUMNS);
    CLEANUP(canvas_free_ptr) struct canvas *canvas = NULL;

    assert(svg);
    canvas =
        canvas_svg_new(grid.width * CANVAS_CELL_WIDTH, (grid.height + 2) * CANVAS_CELL_HEIGHT,
                       picture->title ? picture->title : "GPU layout");
    draw_picture(canvas, picture, &grid, 1);
    canvas_finish(canvas, svg);
}

void layout_picture_text(const struct layout_picture *picture, bool colour, struct str *text)
{
    struct grid grid = grid_of(picture, picture->columns ? picture->columns : 1, 0);
    CLEANUP(canvas_free_ptr) struct canvas *canvas = NULL;

    assert(text);
    canvas = canvas_text_new(grid.width * CANVAS_CELL_WIDTH, grid.height * CANVAS_CELL_HEIGHT,
                             colour);
    draw_picture(canvas, picture, &grid, 0);
    canvas_finish(canvas, text);
}
