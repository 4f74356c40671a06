/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs written as JSON by their table of fields.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "control/schema.h"
#include "mig/board.h"

static json_t *write_group(const struct field *group, const void *from,
                           const struct mig_board *board);

static json_t *write_items(const struct field *list, const void *items, size_t count,
                           const struct mig_board *board)
{
    json_t *made = json_array();

    assert(list->type == FIELD_LIST && list->size > 0);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(made,
                              write_group(list, (const char *)items + i * list->size, board));
    return made;
}

/* Whole numbers as such, as far as a double holds them exactly. */
static json_t *write_number(double number)
{
    if (isnan(number))
        return NULL;
    if (trunc(number) == number && fabs(number) < 1e15)
        return json_integer((json_int_t)number);
    return json_real(number);
}

static json_t *write_texts(const char *const *texts, size_t count)
{
    json_t *made = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(made, json_string(texts[i]));
    return made;
}

static json_t *write_percentile(double percentile)
{
    if (percentile == 0)
        return json_string("mean");
    return percentile == 99.9 ? json_string("99.9") : write_number(percentile);
}

static json_t *write_time(int64_t seconds)
{
    char text[21];

    if (seconds == 0)
        return NULL;
    clock_utc_text(seconds, text);
    return json_string(text);
}

static json_t *write_text(const char *text)
{
    return text && *text ? json_string(text) : NULL;
}

/* A field's value, copied out of its struct, as its type is the field's. */
union value {
    int whole;
    long long wide;
    int64_t seconds;
    double number;
    bool flag;
    const void *pointer;
    struct {
        void *data;
        size_t count, capacity;
    } list; /* as every VEC */
};

static const size_t value_sizes[FIELD_TYPE_COUNT] = {
    [FIELD_TEXT] = sizeof(const char *), [FIELD_INT] = sizeof(int),
    [FIELD_LONG] = sizeof(long long),    [FIELD_NUMBER] = sizeof(double),
    [FIELD_BOOL] = sizeof(bool),         [FIELD_CHOICE] = sizeof(int),
    [FIELD_TIME] = sizeof(int64_t),      [FIELD_BOARD] = sizeof(const void *),
    [FIELD_SLICE] = sizeof(int),         [FIELD_START] = sizeof(int),
    [FIELD_MAP] = sizeof(const void *),  [FIELD_OPEN] = sizeof(const void *),
    [FIELD_PERCENTILE] = sizeof(double), [FIELD_TEXTS] = sizeof(union value),
    [FIELD_LIST] = sizeof(union value),
};
static_assert(sizeof(union value) == sizeof(VEC(int)), "vectors are copied whole");

/* One of the field's words. */
static json_t *write_choice(const struct field *field, int index)
{
    assert(index >= 0 && (size_t)index < field->choice_count);
    return json_string(field->choices[index]);
}

static json_t *write_slice(const struct mig_board *board, int profile)
{
    assert(board && profile >= 0 && profile < board->profile_count);
    return json_string(board->profiles[profile].name);
}

static json_t *write_board(const struct mig_board *board)
{
    return board ? json_string(board->slug) : NULL;
}

static json_t *write_as_is(const void *json)
{
    return json ? json_incref((json_t *)json) : NULL;
}

/* The value at `at`, or NULL when it is absent. */
static json_t *write_value(const struct field *field, const void *at,
                           const struct mig_board *board)
{
    union value value = {0};

    memcpy(&value, at, value_sizes[field->type]);
    switch (field->type) {
    case FIELD_TEXT:
        return write_text(value.pointer);
    case FIELD_INT:
    case FIELD_START:
        return json_integer(value.whole);
    case FIELD_LONG:
        return json_integer(value.wide);
    case FIELD_NUMBER:
        return write_number(value.number);
    case FIELD_BOOL:
        return json_boolean(value.flag);
    case FIELD_CHOICE:
        return write_choice(field, value.whole);
    case FIELD_TIME:
        return write_time(value.seconds);
    case FIELD_BOARD:
        return write_board(board);
    case FIELD_SLICE:
        return write_slice(board, value.whole);
    case FIELD_PERCENTILE:
        return write_percentile(value.number);
    case FIELD_MAP:
    case FIELD_OPEN:
        return write_as_is(value.pointer);
    case FIELD_TEXTS:
        return write_texts(value.list.data, value.list.count);
    case FIELD_LIST:
        return write_items(field, value.list.data, value.list.count, board);
    case FIELD_GROUP:
    case FIELD_OPEN_LIST:
    case FIELD_CONDITIONS:
    case FIELD_TYPE_COUNT:
        break;
    }
    return NULL;
}

static json_t *write_group(const struct field *group, const void *from,
                           const struct mig_board *board)
{
    json_t *made = json_object();

    for (size_t i = 0; i < group->field_count; i++) {
        const struct field *field = &group->fields[i];
        json_t *value = NULL;
        if (field->type == FIELD_GROUP) {
            value = write_group(field, from, board);
            if (json_object_size(value) == 0) {
                json_decref(value);
                value = NULL;
            }
        } else if (field->offset != FIELD_UNREAD) {
            const void *at = (const char *)from + field->offset;
            if (field->type == FIELD_BOARD)
                memcpy(&board, at, sizeof board);
            value = write_value(field, at, board);
        }
        if (value)
            json_object_set_new(made, field->name, value);
    }
    return made;
}

json_t *schema_write(const struct field *group, const void *from)
{
    assert(group && from);
    return write_group(group, from, NULL);
}

json_t *schema_write_items(const struct field *list, const void *items, size_t count)
{
    assert(list && (items || count == 0));
    return write_items(list, items, count, NULL);
}

const struct field *schema_field(const struct field *group, const char *name)
{
    const struct field *found = NULL;

    for (size_t i = 0; i < group->field_count && !found; i++)
        if (strcmp(group->fields[i].name, name) == 0)
            found = &group->fields[i];
    assert(found);
    return found;
}
