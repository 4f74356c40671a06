/* SPDX-License-Identifier: Apache-2.0
 *
 * A measurement file becomes one PerfProfile for each model and board; more rows than one
 * object takes become several.
 */
#include "cli/controller_profiles.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "cli/output.h"
#include "control/resources.h"
#include "control/schema.h"

enum { ENTRIES_MAX = 2000, NAME_MAX_LENGTH = 63, HASH_DIGITS = 8 };

/* "bert-base-uncased-a100-40gb": what a name of an object may hold; where that loses
 * something, a hash of the model tells names apart. */
static void add_name(const char *model, const char *board, int part, struct str *name)
{
    char sum[72];
    bool lossy = strlen(model) + strlen(board) + 1 > NAME_MAX_LENGTH;

    for (const char *c = model; *c; c++) {
        bool kept = islower((unsigned char)*c) || isdigit((unsigned char)*c) ||
                    (*c == '-' && name->length > 0);
        lossy |= !kept;
        if (kept)
            str_add_char(name, *c);
        else if (isupper((unsigned char)*c))
            str_add_char(name, (char)tolower((unsigned char)*c));
        else if (name->length > 0)
            str_add_char(name, '-');
        if (name->length + strlen(board) + HASH_DIGITS + 2 > NAME_MAX_LENGTH)
            break;
    }
    if (lossy) {
        file_sha256(model, strlen(model), sum);
        str_addf(name, "%s%.*s", name->length ? "-" : "", HASH_DIGITS, sum + strlen("sha256:"));
    }
    str_addf(name, "-%s", board);
    if (part > 0)
        str_addf(name, "-%d", part + 1);
}

static void add_profile(const struct measurement *rows, size_t count, int part,
                        struct str *text)
{
    CLEANUP(str_done) struct str name = STR_EMPTY;
    struct perf_profile profile = {.model = rows[0].model, .board = rows[0].board};

    assert(count > 0);
    add_name(rows[0].model, rows[0].board->slug, part, &name);
    profile.meta.name = name.bytes;
    profile.rows.data = (struct measurement *)rows;
    profile.rows.count = count;
    CLEANUP(json_decref_ptr) json_t *object = perf_profile_to_json(&profile);
    str_add(text, "---\n");
    schema_write_yaml(object, text);
}

/* The rows of the model and board of rows[first], in the order of the file. */
static void add_group(const struct measurement_set *set, size_t first, struct str *text)
{
    const struct measurement *head = &set->rows.data[first];
    VEC(struct measurement) rows = {0};

    for (size_t i = first; i < set->rows.count; i++) {
        const struct measurement *row = &set->rows.data[i];
        if (row->board == head->board && strcmp(row->model, head->model) == 0)
            vec_add(&rows, *row);
    }
    for (size_t i = 0; i < rows.count; i += ENTRIES_MAX) {
        size_t rest = rows.count - i;
        add_profile(rows.data + i, rest < ENTRIES_MAX ? rest : ENTRIES_MAX,
                    (int)(i / ENTRIES_MAX), text);
    }
    vec_done(&rows);
}

int controller_profiles(const char *path, struct error *err)
{
    CLEANUP(measurement_set_done) struct measurement_set set = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(map_done) struct map seen = {0};
    int rc = measurement_set_read(path, &set, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < set.rows.count; i++) {
        const struct measurement *row = &set.rows.data[i];
        CLEANUP(free_ptr) char *key = xasprintf("%s %s", row->board->slug, row->model);
        if (map_find(&seen, key) >= 0)
            continue;
        map_put(&seen, key, NULL);
        add_group(&set, i, &text);
    }
    return output_write(NULL, &text, err);
}
