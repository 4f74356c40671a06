/* SPDX-License-Identifier: Apache-2.0
 *
 * What a workload says to the parent that measures it: JSON, one event a line, on its
 * standard output (docs/spec/workload-protocol.md). A line that is not JSON is kept as log
 * text; JSON that breaks the protocol ends the run with what was expected.
 */
#ifndef TRANCHE_LOAD_WORKLOAD_PROTOCOL_H
#define TRANCHE_LOAD_WORKLOAD_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

enum {
    PROTOCOL_VERSION = 1,
    PROTOCOL_LINE_MAX = 64 << 10,
    PROTOCOL_STEPS_MAX = 512, /* in one event */
    PROTOCOL_TEXT_MAX = 512,
    PROTOCOL_NAME_MAX = 128,
    PROTOCOL_OUTPUTS_MAX = 16,
};

enum event_kind { EVENT_LOG, EVENT_READY, EVENT_STEPS, EVENT_DONE, EVENT_ERROR };

enum error_class {
    CLASS_INIT,        /* cannot start: no model, no device, no framework */
    CLASS_OOM,         /* out of memory */
    CLASS_UNSUPPORTED, /* this model cannot do that here (a batch it fixes) */
    CLASS_CRASH,       /* failed while running */
    ERROR_CLASS_COUNT
};

/* Parts of a step that a workload may time. */
enum workload_phase {
    WORKLOAD_INPUT,   /* inputs made ready, to the device */
    WORKLOAD_COMPUTE, /* the model */
    WORKLOAD_OUTPUT,  /* outputs, from the device */
    WORKLOAD_FORWARD, /* training: forward pass and loss, gradients, weights */
    WORKLOAD_BACKWARD,
    WORKLOAD_UPDATE,
    WORKLOAD_PHASE_COUNT
};
const char *workload_phase_name(enum workload_phase phase); /* "input", "compute" … */

/* Says what one output was, so that runs can be compared without moving tensors. */
struct output_summary {
    double sum, absolute_sum;
    int64_t count;
};

struct ready_event {
    char framework[PROTOCOL_NAME_MAX], version[PROTOCOL_NAME_MAX];
    char device[PROTOCOL_NAME_MAX], device_name[PROTOCOL_NAME_MAX];
    char visible[PROTOCOL_NAME_MAX]; /* CUDA_VISIBLE_DEVICES as the child saw it */
    int port;                        /* of a server that measures through HTTP; 0: none */
    int64_t resumed_steps;           /* training steps done before, by a checkpoint */
    bool waits;                      /* starts only at the line "go" on its stdin */
    int output_count;
    struct output_summary outputs[PROTOCOL_OUTPUTS_MAX]; /* of a first run */
};

struct steps_event {
    int64_t first; /* number of the first step */
    int count;
    int64_t start_ns[PROTOCOL_STEPS_MAX]; /* CLOCK_MONOTONIC */
    int64_t duration_ns[PROTOCOL_STEPS_MAX];
    double loss[PROTOCOL_STEPS_MAX]; /* NAN: none */
    int items;                       /* of each step */
    unsigned phases;                 /* 1 << enum workload_phase, those that are told */
    int64_t phase_ns[WORKLOAD_PHASE_COUNT][PROTOCOL_STEPS_MAX];
    int64_t cpu_ns; /* CPU time of the process at the last end; -1: unknown */
};

struct done_event {
    int64_t steps;
    int64_t memory_peak_bytes; /* -1: unknown */
};

struct error_event {
    enum error_class error_class;
    char text[PROTOCOL_TEXT_MAX];
};

struct workload_event {
    enum event_kind kind;
    struct ready_event ready;
    struct steps_event steps;
    struct done_event done;
    struct error_event error;
};

/* Reads one line (no newline). E_UNSUPPORTED when it is JSON with an event that breaks the
 * protocol. The event is large: keep one and reuse it. */
int workload_event_parse(const char *line, size_t length, struct workload_event *ret_event,
                         struct error *err);

/* The class's word in the protocol. */
const char *error_class_name(enum error_class error_class);

/* Writers for the built-in workload; each appends one line with its newline. */
void protocol_add_ready(const struct ready_event *ready, const char *workload, const char *task,
                        int batch, struct str *text);
/* The same of a group of steps … */
void protocol_add_steps(const struct steps_event *steps, struct str *text);
/* … of the end … */
void protocol_add_done(const struct done_event *done, struct str *text);
/* … and of a failure. */
void protocol_add_error(enum error_class error_class, const char *message, struct str *text);

/* Cuts a child's output into lines. Zero-initialised except buffer = STR_EMPTY. */
struct line_reader {
    struct str buffer;
    size_t used;   /* bytes before the next line */
    bool skipping; /* inside a line that was too long */
};
/* Reads what is there from fd: bytes read, 0 at the end, -1 with errno. */
ssize_t line_reader_fill(struct line_reader *reader, int fd);
/* The next whole line without its newline, valid until the next fill; false: none yet. A
 * line over PROTOCOL_LINE_MAX is dropped and reported as E_UNSUPPORTED through *ret_long. */
bool line_reader_next(struct line_reader *reader, const char **ret_line, size_t *ret_length,
                      bool *ret_too_long);
/* Frees the part of a line that is held. */
void line_reader_done(struct line_reader *reader);

#endif
