/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds each file's kind and puts the sections on one page.
 */
#include "report/report.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "report/html.h"

static const struct report_section *const SECTIONS[] = {
    &report_measurements, &report_plan,   &report_results,
    &report_transition,   &report_change, &report_summary};
enum { SECTION_COUNT = sizeof SECTIONS / sizeof *SECTIONS };

static bool looks_like_json(const struct str *bytes)
{
    const char *at = bytes->bytes;
    if (text_starts_with(at, "\xEF\xBB\xBF"))
        at += 3;
    at += strspn(at, " \t\r\n");
    return *at == '{' || *at == '[';
}

static const struct report_section *find_section(const char *schema)
{
    for (int i = 0; i < SECTION_COUNT; i++) {
        const struct report_section *section = SECTIONS[i];
        assert(section);
        const char *prefix = section->schema_prefix;
        if (schema ? prefix && text_starts_with(schema, prefix) : !prefix)
            return section;
    }
    return NULL;
}

static int choose_section(const char *path, const struct str *bytes,
                          const struct report_section **ret_section, struct error *err)
{
    if (!looks_like_json(bytes)) {
        *ret_section = find_section(NULL);
        return 0;
    }
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    int failed = json_parse(path, bytes->bytes, bytes->length, &root, err);
    if (failed)
        return failed;
    const char *schema = json_string_value(json_object_get(root, "schema"));
    *ret_section = schema ? find_section(schema) : NULL;
    if (*ret_section)
        return 0;
    CLEANUP(str_done) struct str known = STR_EMPTY;
    for (int i = 0; i < SECTION_COUNT; i++)
        if (SECTIONS[i]->schema_prefix)
            str_addf(&known, " %s…", SECTIONS[i]->schema_prefix);
    struct json_place place = {.file = path};
    return json_error_at(&place, err, "schema is %s; expected measurements as CSV, or one of%s",
                         schema ? schema : "missing", known.bytes);
}

int report_page(const char *title, const char *const *paths, size_t count, struct str *html,
                struct error *err)
{
    html_page_begin(html, title);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(str_done) struct str bytes = STR_EMPTY;
        const struct report_section *section = NULL;
        int failed = file_read(paths[i], FILE_SIZE_LIMIT, &bytes, err);
        if (!failed)
            failed = choose_section(paths[i], &bytes, &section, err);
        if (!failed)
            failed = section->add(paths[i], &bytes, html, err);
        if (failed)
            return failed;
    }
    html_page_end(html);
    return 0;
}
