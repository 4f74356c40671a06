/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading of objects by their table of fields. Values are stored through offsets; a list of
 * the struct is a VEC whose memory is the arena's.
 */
#include "control/schema.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "control/timestamp.h"
#include "format/measurement.h"
#include "mig/board.h"

struct reader {
    struct arena *arena;
    bool tolerant;                 /* a status */
    const struct mig_board *board; /* of the object, or of one around it */
    int profile;                   /* of the slice read last; -1: none */
};

/* Where a value goes. */
struct target {
    const struct field *field;
    void *at;
};

static_assert(sizeof(enum task) == sizeof(int), "choices are stored as int");

static struct json_place place_of(const struct json_place *parent, const char *key)
{
    return (struct json_place){.file = parent->file, .parent = parent, .key = key};
}

static void store(void *at, const void *value, size_t size)
{
    memcpy(at, value, size);
}

/* All vectors have one form: see VEC. */
static void store_vector(void *at, void *data, size_t count)
{
    typedef VEC(void) vector;
    vector made = {.data = data, .count = count, .capacity = count};

    memcpy(at, &made, sizeof made);
}

static int read_fields(struct reader *reader, const struct json_place *place,
                       const json_t *object, const struct field *group, void *base,
                       struct error *err);

static void store_absent(const struct field *field, void *at)
{
    static const char *const no_text = "";
    static const double no_number = NAN;

    assert(field->offset != FIELD_UNREAD);
    if (field->type == FIELD_TEXT)
        store(at, &no_text, sizeof no_text);
    else if (field->type == FIELD_NUMBER || field->type == FIELD_PERCENTILE)
        store(at, &no_number, sizeof no_number);
}

static int read_text(const struct json_place *place, const json_t *object, struct target target,
                     struct error *err)
{
    const char *text = "";
    const struct field *field = target.field;
    int rc = json_get_text(place, object, field->name, true, &text, err);

    if (rc < 0)
        return rc;
    double length = (double)strlen(text);
    struct json_place at = place_of(place, field->name);
    if (length < field->minimum)
        return json_error_at(&at, err, "is empty, expected text");
    if (field->maximum > 0 && length > field->maximum)
        return json_error_at(&at, err, "has %.0f bytes, expected at most %.0f", length,
                             field->maximum);
    store(target.at, &text, sizeof text);
    return 0;
}

static int read_whole(const struct json_place *place, const json_t *object,
                      struct target target, struct error *err)
{
    long long whole = 0;
    const struct field *field = target.field;
    bool is_int = field->type != FIELD_LONG;
    long long most = is_int ? INT_MAX : LLONG_MAX;
    if (field->maximum > 0)
        most = (long long)field->maximum;
    int rc = json_get_int(place, object, field->name, true, (long long)field->minimum, most,
                          &whole, err);

    if (rc < 0)
        return rc;
    int narrow = (int)whole;
    store(target.at, is_int ? (const void *)&narrow : &whole,
          is_int ? sizeof narrow : sizeof whole);
    return 0;
}

static int read_number(const struct json_place *place, const json_t *object,
                       struct target target, struct error *err)
{
    double number = 0;
    const struct field *field = target.field;
    double most = field->maximum > 0 ? field->maximum : 1e300;
    int rc =
        json_get_number(place, object, field->name, true, field->minimum, most, &number, err);

    if (rc < 0)
        return rc;
    struct json_place at = place_of(place, field->name);
    if (field->above && number <= field->minimum)
        return json_error_at(&at, err, "found %g, expected a number above %g", number,
                             field->minimum);
    store(target.at, &number, sizeof number);
    return 0;
}

static int read_choice(const struct json_place *place, const json_t *object,
                       struct target target, struct error *err)
{
    const char *text = "";
    const struct field *field = target.field;
    CLEANUP(str_done) struct str known = STR_EMPTY;
    int rc = json_get_text(place, object, field->name, true, &text, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < field->choice_count; i++) {
        if (strcmp(field->choices[i], text) == 0) {
            int index = (int)i;
            store(target.at, &index, sizeof index);
            return 0;
        }
        str_addf(&known, "%s%s",
                 i == 0                        ? ""
                 : i + 1 < field->choice_count ? ", "
                                               : " or ",
                 field->choices[i]);
    }
    struct json_place at = place_of(place, field->name);
    return json_error_at(&at, err, "found \"%s\", expected %s", text, known.bytes);
}

static int read_time(const struct json_place *place, const json_t *object, struct target target,
                     struct error *err)
{
    const char *text = "";
    int64_t seconds = 0;
    struct json_place at = place_of(place, target.field->name);
    int rc = json_get_text(place, object, target.field->name, true, &text, err);

    if (rc < 0)
        return rc;
    if (!timestamp_parse(text, &seconds))
        return json_error_at(&at, err,
                             "found \"%s\", expected a time as "
                             "2026-03-01T12:00:00Z",
                             text);
    store(target.at, &seconds, sizeof seconds);
    return 0;
}

static int read_percentile(const struct json_place *place, const json_t *object,
                           struct target target, struct error *err)
{
    static const double allowed[] = {50, 90, 95, 99, 99.9};
    const json_t *value = json_object_get(object, target.field->name);
    const char *text = json_string_value(value);
    struct json_place at = place_of(place, target.field->name);
    double number = json_number_value(value);

    if (text && strcmp(text, "mean") == 0) {
        double mean = MEASUREMENT_PERCENTILE_MEAN;
        store(target.at, &mean, sizeof mean);
        return 0;
    }
    if (text && !text_to_double(text, &number))
        number = -1;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (number == allowed[i]) {
            store(target.at, &number, sizeof number);
            return 0;
        }
    }
    return json_error_at(&at, err, "expected 50, 90, 95, 99, \"99.9\" or mean");
}

static int read_board(struct reader *reader, const struct json_place *place,
                      const json_t *object, struct target target, struct error *err)
{
    const char *slug = "";
    struct error inner;
    struct json_place at = place_of(place, target.field->name);
    int rc = json_get_text(place, object, target.field->name, true, &slug, err);

    if (rc < 0)
        return rc;
    if (mig_board_get(slug, &reader->board, &inner) < 0)
        return json_error_at(&at, err, "%s", inner.text);
    if (target.field->offset != FIELD_UNREAD)
        store(target.at, &reader->board, sizeof reader->board);
    return 0;
}

static int read_slice(struct reader *reader, const struct json_place *place,
                      const json_t *object, struct target target, struct error *err)
{
    const char *name = "";
    struct error inner;
    struct json_place at = place_of(place, target.field->name);
    int rc = json_get_text(place, object, target.field->name, true, &name, err);

    assert(reader->board);
    if (rc < 0)
        return rc;
    if (mig_profile_get(reader->board, name, &reader->profile, &inner) < 0)
        return json_error_at(&at, err, "%s", inner.text);
    store(target.at, &reader->profile, sizeof reader->profile);
    return 0;
}

static int read_start(const struct reader *reader, const struct json_place *place,
                      const json_t *object, struct target target, struct error *err)
{
    long long start = 0;
    struct json_place at = place_of(place, target.field->name);
    int rc = json_get_int(place, object, target.field->name, true, 0, MIG_UNITS_MAX - 1, &start,
                          err);

    assert(reader->board && reader->profile >= 0);
    if (rc < 0)
        return rc;
    const struct mig_profile *profile = &reader->board->profiles[reader->profile];
    if (!(profile->starts >> start & 1))
        return json_error_at(&at, err, "%lld is not one of the starts of %s on %s", start,
                             profile->name, reader->board->slug);
    int narrow = (int)start;
    store(target.at, &narrow, sizeof narrow);
    return 0;
}

static int read_texts(struct reader *reader, const struct json_place *place,
                      const json_t *object, struct target target, struct error *err)
{
    const json_t *list = NULL;
    struct json_place at = place_of(place, target.field->name);
    int rc = json_get_list(place, object, target.field->name, true, &list, err);

    if (rc < 0)
        return rc;
    size_t count = json_array_size(list);
    const char **texts = arena_alloc(reader->arena, count, sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        struct json_place here = {.file = at.file, .parent = &at, .index = i};
        texts[i] = json_string_value(json_array_get(list, i));
        if (!texts[i])
            return json_error_at(&here, err, "expected text");
    }
    store_vector(target.at, texts, count);
    return 0;
}

static int read_map(const struct json_place *place, const json_t *object, struct target target,
                    struct error *err)
{
    const json_t *map = NULL;
    struct json_place at = place_of(place, target.field->name);
    int rc = json_get_object(place, object, target.field->name, true, &map, err);
    const char *key;
    json_t *value;

    if (rc < 0)
        return rc;
    json_object_foreach((json_t *)map, key, value)
    {
        struct json_place here = place_of(&at, key);
        if (target.field->type == FIELD_MAP && !json_is_string(value))
            return json_error_at(&here, err, "expected text");
    }
    store(target.at, &map, sizeof map);
    return 0;
}

static int read_list(struct reader *reader, const struct json_place *place,
                     const json_t *object, struct target target, struct error *err)
{
    const struct field *field = target.field;
    const json_t *list = NULL;
    struct json_place at = place_of(place, field->name);
    int rc = json_get_list(place, object, field->name, true, &list, err);
    size_t count = json_array_size(list), kept = 0;

    assert(field->size > 0);
    if (rc < 0)
        return rc;
    if (field->maximum > 0 && (double)count > field->maximum)
        return json_error_at(&at, err, "has %zu items, expected at most %.0f", count,
                             field->maximum);
    char *items = arena_alloc(reader->arena, count, field->size);
    for (size_t i = 0; i < count; i++) {
        struct json_place here = {.file = at.file, .parent = &at, .index = i};
        struct reader inner = *reader;
        char *item = items + kept * field->size;
        memset(item, 0, field->size);
        rc = read_fields(&inner, &here, json_array_get(list, i), field, item, err);
        if (rc < 0 && !reader->tolerant)
            return rc;
        kept += rc == 0;
    }
    store_vector(target.at, items, kept);
    return 0;
}

static int read_value(struct reader *reader, const struct json_place *place,
                      const json_t *object, struct target target, struct error *err)
{
    switch (target.field->type) {
    case FIELD_TEXT:
        return read_text(place, object, target, err);
    case FIELD_INT:
    case FIELD_LONG:
        return read_whole(place, object, target, err);
    case FIELD_NUMBER:
        return read_number(place, object, target, err);
    case FIELD_BOOL:
        return json_get_bool(place, object, target.field->name, true, target.at, err);
    case FIELD_CHOICE:
        return read_choice(place, object, target, err);
    case FIELD_TIME:
        return read_time(place, object, target, err);
    case FIELD_BOARD:
        return read_board(reader, place, object, target, err);
    case FIELD_SLICE:
        return read_slice(reader, place, object, target, err);
    case FIELD_START:
        return read_start(reader, place, object, target, err);
    case FIELD_PERCENTILE:
        return read_percentile(place, object, target, err);
    case FIELD_TEXTS:
        return read_texts(reader, place, object, target, err);
    case FIELD_MAP:
    case FIELD_OPEN:
        return read_map(place, object, target, err);
    case FIELD_LIST:
        return read_list(reader, place, object, target, err);
    case FIELD_GROUP:
    case FIELD_OPEN_LIST:
    case FIELD_CONDITIONS:
    case FIELD_TYPE_COUNT:
        break;
    }
    assert(!"a field that is in the schema alone has no offset");
    return 0;
}

/* The default's value goes the same way as one that stands there. */
static int read_fallback(struct reader *reader, const struct json_place *place,
                         struct target target, struct error *err)
{
    json_t *value = json_loads(target.field->fallback, JSON_DECODE_ANY, NULL);
    assert(value);
    json_t *object = json_object();
    json_object_set_new(object, target.field->name, value);
    const char *text = json_string_value(value);
    int rc = read_value(reader, place, object, target, err);
    if (rc == 0 && text && target.field->type == FIELD_TEXT) {
        text = arena_strdup(reader->arena, text);
        store(target.at, &text, sizeof text);
    }
    json_decref(object);
    return rc;
}

static int read_field(struct reader *reader, const struct json_place *place,
                      const json_t *object, const struct field *field, void *base,
                      struct error *err)
{
    const json_t *value = json_object_get(object, field->name);
    struct json_place at = place_of(place, field->name);
    bool there = value && !json_is_null(value) &&
                 !(reader->tolerant && field->type == FIELD_GROUP && !json_is_object(value));

    if (field->type == FIELD_GROUP) {
        if (there && !json_is_object(value))
            return json_error_at(&at, err, "expected an object");
        if (!there && field->required)
            return json_error_at(&at, err, "is missing, expected an object");
        return read_fields(reader, &at, there ? value : NULL, field, base, err);
    }
    if (field->offset == FIELD_UNREAD && field->type != FIELD_BOARD)
        return 0;
    struct target target = {field, (char *)base + field->offset};
    if (field->offset != FIELD_UNREAD)
        store_absent(field, target.at);
    if (there) {
        int rc = read_value(reader, place, object, target, err);
        if (rc == 0 || !reader->tolerant || field->required)
            return rc;
    }
    if (field->required)
        return json_error_at(&at, err, "is missing");
    return field->fallback ? read_fallback(reader, place, target, err) : 0;
}

static int read_fields(struct reader *reader, const struct json_place *place,
                       const json_t *object, const struct field *group, void *base,
                       struct error *err)
{
    if (object && !json_is_object(object))
        return json_error_at(place, err, "expected an object");
    for (size_t i = 0; i < group->field_count; i++) {
        const struct field *field = &group->fields[i];
        int rc = read_field(reader, place, object, field, base, err);
        if (rc < 0 && !(reader->tolerant && !field->required))
            return rc;
    }
    return 0;
}

int schema_read(const struct schema_kind *kind, const json_t *object, struct arena *arena,
                void *ret, struct error *err)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *namespace = json_string_value(json_object_get(metadata, "namespace"));
    const char *name = json_string_value(json_object_get(metadata, "name"));
    CLEANUP(free_ptr)
    char *title = xasprintf("%s %s%s%s", kind->kind->kind, namespace ? namespace : "",
                            namespace ? "/" : "", name ? name : "");
    struct json_place root = {.file = title};
    struct reader reader = {.arena = arena, .profile = -1};
    struct error ignored;

    assert(kind && arena && ret);
    int rc = read_field(&reader, &root, object, &kind->spec, ret, err);
    if (rc < 0)
        return rc;
    reader.tolerant = true;
    (void)read_field(&reader, &root, object, &kind->status, ret, &ignored);
    return 0;
}
