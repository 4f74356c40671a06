/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of a self-contained HTML page: no script, no font, no link to anywhere. The page
 * follows the reader's choice of light or dark and prints in black on white.
 */
#ifndef TRANCHE_REPORT_HTML_H
#define TRANCHE_REPORT_HTML_H

#include "base/str.h"

/* Everything up to the first section, and after the last. Title is escaped here. */
void html_page_begin(struct str *html, const char *title);
/* Closes what html_page_begin() opened. */
void html_page_end(struct str *html);
/* Appends words with &, <, >, " and ' escaped; control characters become U+FFFD. */
void html_add_words(struct str *html, const char *words);
/* <h2> (level 2) or <h3>, with an id made of the words for level 2. */
void html_add_heading(struct str *html, int level, const char *words);
/* <p class=CLASS>words</p>; klass NULL: none. */
void html_add_paragraph(struct str *html, const char *klass, const char *words);

/* A list: begin, items, end. */
void html_list_begin(struct str *html, const char *klass);
/* One item; words are escaped. */
void html_list_item(struct str *html, const char *words);
/* Ends the list. */
void html_list_end(struct str *html);

/* A table: begin with the header cells (NULL ends), then rows cell by cell. */
void html_table_begin(struct str *html, const char *const *headers);
/* Begins a row; klass NULL: none. */
void html_row_begin(struct str *html, const char *klass);
void html_cell(struct str *html, const char *words);      /* left */
void html_cell_wide(struct str *html, const char *words); /* broken into lines */
void html_cell_number(struct str *html, double value);    /* right; NAN is blank */
/* Ends the row. */
void html_row_end(struct str *html);
/* Ends the table. */
void html_table_end(struct str *html);

/* Figures side by side where the window allows it. */
void html_figures_begin(struct str *html);
/* Ends the group of figures. */
void html_figures_end(struct str *html);

#endif
