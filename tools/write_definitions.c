/* SPDX-License-Identifier: Apache-2.0
 *
 * Build tool: writes the files of deploy/crds and the generated part of
 * docs/spec/kubernetes-api.md, both out of the tables of src/control/resource_fields_user.c and
 * resource_fields_made.c.
 *
 *     write_definitions SOURCE FOLDER
 *
 * SOURCE is the repository's root, whose page has the part's markers; FOLDER gets the files:
 * the root again (make definitions), or another folder to compare with (make check).
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "control/schema.h"

enum { PAGE_LIMIT = 1 << 20 };
static const char PAGE[] = "docs/spec/kubernetes-api.md";
static const char BEGIN[] = "<!-- fields: made by make definitions -->\n";
static const char END[] = "<!-- fields: end -->\n";

static int write_text(const char *folder, const char *name, const struct str *text,
                      struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", folder, name);
    CLEANUP(free_ptr) char *parent = xstrdup(path);

    *strrchr(parent, '/') = '\0';
    int rc = file_make_dirs(parent, 0777, err);
    return rc < 0 ? rc : file_write(path, text->bytes, text->length, err);
}

static int write_definition(const char *folder, const struct schema_kind *kind,
                            struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(free_ptr) char *name = xasprintf("deploy/crds/%s.yaml", kind->kind->plural);
    CLEANUP(json_decref_ptr) json_t *definition = schema_definition(kind);

    str_add(&text, "# SPDX-License-Identifier: Apache-2.0\n"
                   "# Made from src/control/resource_fields_*.c: make definitions\n");
    schema_write_yaml(definition, &text);
    return write_text(folder, name, &text, err);
}

static int write_page(const char *source, const char *folder, struct error *err)
{
    CLEANUP(str_done) struct str old = STR_EMPTY;
    CLEANUP(str_done) struct str page = STR_EMPTY;
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", source, PAGE);
    int rc = file_read(path, PAGE_LIMIT, &old, err);

    if (rc < 0)
        return rc;
    const char *begin = strstr(old.bytes, BEGIN), *end = strstr(old.bytes, END);
    if (!begin || !end || end < begin)
        return error_set(err, E_INPUT, "%s: expected the lines %.*s and %.*s", path,
                         (int)strlen(BEGIN) - 1, BEGIN, (int)strlen(END) - 1, END);
    str_add_bytes(&page, old.bytes, (size_t)(begin - old.bytes) + strlen(BEGIN));
    for (int i = 0; i < SCHEMA_KIND_COUNT; i++) {
        str_add_char(&page, '\n');
        schema_write_reference(SCHEMA_KINDS[i], &page);
    }
    str_addf(&page, "\n%s", end);
    return write_text(folder, PAGE, &page, err);
}

int main(int argc, char **argv)
{
    struct error err = {0};
    int rc = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: write_definitions SOURCE FOLDER\n");
        return 2;
    }
    for (int i = 0; rc == 0 && i < SCHEMA_KIND_COUNT; i++)
        rc = write_definition(argv[2], SCHEMA_KINDS[i], &err);
    if (rc == 0)
        rc = write_page(argv[1], argv[2], &err);
    if (rc < 0)
        fprintf(stderr, "write_definitions: %s\n", err.text);
    return rc < 0 ? error_exit_status(err.code) : 0;
}
