/* SPDX-License-Identifier: Apache-2.0
 *
 * See html.h. The style sheet is the whole look; pictures bring their own (draw/canvas_svg.c).
 */
#include "report/html.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>

static const char STYLE[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--muted:#5c6670;--line:#d5dbe1;--page:#fff;"
    "--soft:#f4f6f8;--good:#1f7a3d;--bad:#b3261e}"
    "@media screen and "
    "(prefers-color-scheme:dark){:root{--ink:#eceff3;--muted:#a3adb8;--line:#3a434d;"
    "--page:#14181d;--soft:#1d232a;--good:#55c17a;--bad:#f08a80}}"
    "@media print{:root{color-scheme:light;--ink:#000;--muted:#444;--line:#bbb;--page:#fff;"
    "--soft:#fff}nav{display:none}figure,table{break-inside:avoid}}"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);"
    "max-width:1320px;margin:0 auto;padding:24px}"
    "h1{font-size:26px;margin:0 0 4px}h2{font-size:20px;margin:40px 0 8px;padding-top:12px;"
    "border-top:1px solid var(--line)}h3{font-size:16px;margin:24px 0 8px}"
    "p{max-width:80ch;margin:6px 0}.muted{color:var(--muted)}.good{color:var(--good)}"
    ".bad{color:var(--bad);font-weight:600}"
    "nav a{color:inherit;margin-right:16px}"
    ".figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(340px,100%),1fr));"
    "gap:16px}svg{max-width:100%;height:auto}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;"
    "margin:8px 0 16px}th,td{padding:3px 12px 3px 0;text-align:left;white-space:nowrap;"
    "border-bottom:1px solid var(--line)}th{color:var(--muted);font-weight:500}"
    ".answer{max-width:100ch;padding-left:20px}.answer li{margin:4px 0}"
    ".question{font-size:17px}td.wide{white-space:normal;min-width:16em;overflow-wrap:anywhere}"
    "td.n{text-align:right}tr.invalid td.wide{color:var(--bad)}tr.bad "
    "td{color:var(--bad)}tr:hover td{background:var(--soft)}";

void html_add_words(struct str *html, const char *words)
{
    static const struct {
        char plain;
        const char *escaped;
    } ESCAPES[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    for (; *words; words++) {
        const char *escaped = NULL;
        for (size_t i = 0; i < sizeof ESCAPES / sizeof *ESCAPES && !escaped; i++)
            if (ESCAPES[i].plain == *words)
                escaped = ESCAPES[i].escaped;
        if (escaped)
            str_add(html, escaped);
        else if (iscntrl((unsigned char)*words) && *words != '\n')
            str_add(html, "\xEF\xBF\xBD");
        else
            str_add_char(html, *words);
    }
}

void html_page_begin(struct str *html, const char *title)
{
    str_add(html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                  "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    html_add_words(html, title);
    str_addf(html, "</title>\n<style>%s</style></head>\n<body><h1>", STYLE);
    html_add_words(html, title);
    str_add(html, "</h1>\n");
}

void html_page_end(struct str *html)
{
    str_add(html, "</body></html>\n");
}

void html_add_heading(struct str *html, int level, const char *words)
{
    assert(level == 2 || level == 3);
    str_addf(html, "<h%d", level);
    if (level == 2) {
        str_add(html, " id=\"");
        for (const char *c = words; *c; c++)
            str_add_char(html, isalnum((unsigned char)*c) ? *c : '-');
        str_add(html, "\"");
    }
    str_add(html, ">");
    html_add_words(html, words);
    str_addf(html, "</h%d>\n", level);
}

void html_add_paragraph(struct str *html, const char *klass, const char *words)
{
    str_add(html, "<p");
    if (klass)
        str_addf(html, " class=\"%s\"", klass);
    str_add(html, ">");
    html_add_words(html, words);
    str_add(html, "</p>\n");
}

void html_list_begin(struct str *html, const char *klass)
{
    str_addf(html, "<ul class=\"%s\">\n", klass);
}

void html_list_item(struct str *html, const char *words)
{
    str_add(html, "<li>");
    html_add_words(html, words);
    str_add(html, "</li>\n");
}

void html_list_end(struct str *html)
{
    str_add(html, "</ul>\n");
}

void html_table_begin(struct str *html, const char *const *headers)
{
    str_add(html, "<div class=\"scroll\"><table><thead><tr>");
    for (; *headers; headers++) {
        str_add(html, "<th>");
        html_add_words(html, *headers);
        str_add(html, "</th>");
    }
    str_add(html, "</tr></thead><tbody>\n");
}

void html_row_begin(struct str *html, const char *klass)
{
    if (klass)
        str_addf(html, "<tr class=\"%s\">", klass);
    else
        str_add(html, "<tr>");
}

void html_cell(struct str *html, const char *words)
{
    str_add(html, "<td>");
    html_add_words(html, words);
    str_add(html, "</td>");
}

void html_cell_wide(struct str *html, const char *words)
{
    str_add(html, "<td class=\"wide\">");
    html_add_words(html, words);
    str_add(html, "</td>");
}

void html_cell_number(struct str *html, double value)
{
    if (isnan(value))
        str_add(html, "<td class=\"n\"></td>");
    else
        str_addf(html, "<td class=\"n\">%.6g</td>", value);
}

void html_row_end(struct str *html)
{
    str_add(html, "</tr>\n");
}

void html_table_end(struct str *html)
{
    str_add(html, "</tbody></table></div>\n");
}

void html_figures_begin(struct str *html)
{
    str_add(html, "<div class=\"figures\">\n");
}

void html_figures_end(struct str *html)
{
    str_add(html, "</div>\n");
}
