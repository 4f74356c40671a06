/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as a picture: every GPU with its instances, each in the colour of its service.
 */
#ifndef TRANCHE_REPORT_PLAN_PICTURE_H
#define TRANCHE_REPORT_PLAN_PICTURE_H

#include "base/str.h"
#include "format/plan_document.h"

/* Appends the picture. Services beyond the number of colours share them in turn; instances
 * say their service, and in SVG, under the pointer, rate, batch and latency. */
void plan_picture_svg(const struct plan *plan, struct str *svg);
/* Appends the picture for a terminal; with `colour`, with ANSI escapes. */
void plan_picture_text(const struct plan *plan, bool colour, struct str *text);

#endif
