/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine of workers in a slice: each request is one batch, done by the process with the
 * fewest outstanding; a line on its standard input asks for it, its step event says when
 * it began and ended. Parent and children share one clock, so times are exact however late
 * they are read.
 */
#ifndef TRANCHE_LOAD_ENGINE_WORKERS_H
#define TRANCHE_LOAD_ENGINE_WORKERS_H

#include "load/child.h"
#include "load/engine.h"

/* The children run with --requests and were told to go; they are borrowed, and their
 * on_steps is taken over. Close with workers_engine_close(). */
void workers_engine_open(struct children *children, struct load_target *ret_target);
/* Frees the engine; the children go on. */
void workers_engine_close(struct load_target *target);

#endif
