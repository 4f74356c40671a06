/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of a workload: lines cut from any bytes, and events that are taken only when
 * their numbers are in range.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "load/workload_protocol.h"

static struct workload_event event;

static void check_event(const char *line, size_t length)
{
    struct error err = {0};
    if (workload_event_parse(line, length, &event, &err)) {
        assert(err.code == E_UNSUPPORTED && strstr(err.text, "expected"));
        return;
    }
    if (event.kind != EVENT_STEPS)
        return;
    assert(event.steps.count >= 1 && event.steps.count <= PROTOCOL_STEPS_MAX);
    assert(event.steps.items >= 1 && event.steps.first >= 0);
    for (int i = 0; i < event.steps.count; i++)
        assert(event.steps.start_ns[i] >= 0 && event.steps.duration_ns[i] >= 0);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    protocol_add_steps(&event.steps, &text);
    int again = workload_event_parse(text.bytes, text.length - 1, &event, &err);
    assert(again == 0);
    (void)again;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2];
    struct line_reader reader = {.buffer = STR_EMPTY};
    const char *line;
    size_t length, done = 0;
    bool too_long;
    if (pipe(ends))
        return 0;
    while (done < size) {
        size_t piece = size - done < 4096 ? size - done : 4096;
        if (write(ends[1], data + done, piece) != (ssize_t)piece)
            break;
        done += piece;
        line_reader_fill(&reader, ends[0]);
        while (line_reader_next(&reader, &line, &length, &too_long))
            if (!too_long)
                check_event(line, length);
    }
    line_reader_done(&reader);
    close(ends[0]);
    close(ends[1]);
    return 0;
}
