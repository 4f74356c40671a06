/* SPDX-License-Identifier: Apache-2.0
 *
 * The colours in which planned and measured actions are drawn. Private to this folder.
 */
#ifndef TRANCHE_REPORT_ACTION_COLOURS_H
#define TRANCHE_REPORT_ACTION_COLOURS_H

#include "draw/canvas.h"
#include "transition/document.h"

static const enum canvas_colour action_colours[ACTION_KIND_COUNT] = {
    [ACTION_CREATE_INSTANCE] = CANVAS_SERIES + 0,
    [ACTION_DELETE_INSTANCE] = CANVAS_SERIES + 8,
    [ACTION_START] = CANVAS_GOOD,
    [ACTION_DRAIN] = CANVAS_SERIES + 1,
    [ACTION_STOP] = CANVAS_BAD,
};

#endif
