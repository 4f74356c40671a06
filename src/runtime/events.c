/* SPDX-License-Identifier: Apache-2.0
 *
 * See events.h.
 */
#include "runtime/events.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"

static const char *const LEVEL_NAMES[LOG_LEVEL_COUNT] = {
    [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};

void events_add(struct events *events, enum log_level level, const char *format, ...)
{
    struct event *event = &events->ring[events->count++ % EVENTS_KEPT];
    va_list arguments;
    assert(level < LOG_LEVEL_COUNT);
    clock_wall_text(event->time);
    event->level = level;
    va_start(arguments, format);
    vsnprintf(event->text, sizeof event->text, format, arguments);
    va_end(arguments);
    log_write(level, event->text, "time=%s", event->time);
}

json_t *events_to_json(const struct events *events)
{
    json_t *list = json_array();
    unsigned long long first = events->count > EVENTS_KEPT ? events->count - EVENTS_KEPT : 0;
    for (unsigned long long i = first; i < events->count; i++) {
        const struct event *event = &events->ring[i % EVENTS_KEPT];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "time", event->time, "level",
                                              LEVEL_NAMES[event->level], "text", event->text));
    }
    return list;
}
