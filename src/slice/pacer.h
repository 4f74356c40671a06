/* SPDX-License-Identifier: Apache-2.0
 *
 * A CPU share without privileges: a thread that stops and continues processes against
 * their CPU clocks. Private to this folder.
 *
 * The processes together earn `cores` seconds of CPU time a second, are stopped when they
 * have none left, and continued at half a period's worth. They hold at most four periods'
 * worth, so that what is lost when the thread is late on a busy machine is made up for. Only
 * the processes named are counted, with their threads, not what they start.
 */
#ifndef TRANCHE_SLICE_PACER_H
#define TRANCHE_SLICE_PACER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct pacer;

/* Starts the thread; nothing is paced before pacer_enable(). cores above 0; period_ns: the time
 * over which the share is kept. E_IO when no thread can be started. */
int pacer_new(double cores, int64_t period_ns, struct pacer **ret_pacer, struct error *err);
void pacer_free(struct pacer *pacer); /* continues what is stopped; NULL is fine */
/* Counts and paces this process from now on, with its threads; safe from any thread. */
void pacer_add(struct pacer *pacer, pid_t pid);
/* Must come before the process is reaped, as its number may be used again. */
void pacer_remove(struct pacer *pacer, pid_t pid);
/* Disabled it lets all run, and continues what is stopped. */
void pacer_enable(struct pacer *pacer, bool enabled);
/* Time for which the processes were stopped so far, ns. */
int64_t pacer_stopped_ns(struct pacer *pacer);

#endif
