/* SPDX-License-Identifier: Apache-2.0
 *
 * What happened, for people: the last events in memory for `tranche status`, and each as a
 * line of the log.
 */
#ifndef TRANCHE_RUNTIME_EVENTS_H
#define TRANCHE_RUNTIME_EVENTS_H

#include <jansson.h>

#include "base/log.h"

enum { EVENTS_KEPT = 64, EVENT_TEXT_SIZE = 320 };

struct event {
    char time[21]; /* UTC */
    enum log_level level;
    char text[EVENT_TEXT_SIZE];
};

struct events {
    struct event ring[EVENTS_KEPT];
    unsigned long long count; /* ever */
};

/* Adds an event with the time of now, in place of the oldest when EVENTS_KEPT are there, and
 * writes it to the log. Text beyond EVENT_TEXT_SIZE is cut. */
void events_add(struct events *events, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The kept ones, oldest first; a new reference. */
json_t *events_to_json(const struct events *events);

#endif
