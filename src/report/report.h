/* SPDX-License-Identifier: Apache-2.0
 *
 * One self-contained HTML page from any of our files: each becomes a section of its kind.
 */
#ifndef TRANCHE_REPORT_REPORT_H
#define TRANCHE_REPORT_REPORT_H

#include "base/error.h"
#include "base/str.h"

/* One kind of file. */
struct report_section {
    const char *name;          /* "plan": for messages */
    const char *schema_prefix; /* of the JSON's "schema"; NULL: the CSV of measurements */
    /* Appends the section for the file's bytes; path is for messages and headings. */
    int (*add)(const char *path, const struct str *bytes, struct str *html, struct error *err);
};

extern const struct report_section report_change, report_measurements, report_plan,
    report_results, report_summary, report_transition;

/* Appends the page for `count` files, in their order. E_IO for a file that cannot be read,
 * E_INPUT for one of no known kind (the kinds are named) or with a fault in it. */
int report_page(const char *title, const char *const *paths, size_t count, struct str *html,
                struct error *err);

#endif
