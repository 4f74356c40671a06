/* SPDX-License-Identifier: Apache-2.0
 *
 * The protocol: what the built-in workload writes is read back, what others may write is
 * taken, what breaks the rules is refused with what was expected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "load/workload_protocol.h"

/* A step that wants only its phases. */
#define STEP "{\"event\": \"step\", \"i\": 0, \"t_ns\": 1, \"dur_ns\": 2, \"items\": 1, "

static struct workload_event event;

static void parse(const char *line)
{
    struct error err;
    if (workload_event_parse(line, strcspn(line, "\n"), &event, &err))
        fail_msg("%s: %s", line, err.text);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct ready_event ready = {.framework = "onnx \"x\"",
                                .version = "1.2",
                                .visible = "MIG-1",
                                .waits = true,
                                .output_count = 1,
                                .outputs = {{-1.5, 2.5, 7}}};
    protocol_add_ready(&ready, "m", "inference", 4, &text);
    parse(text.bytes);
    assert_int_equal(event.kind, EVENT_READY);
    assert_string_equal(event.ready.framework, "onnx \"x\"");
    assert_string_equal(event.ready.visible, "MIG-1");
    assert_true(event.ready.waits);
    assert_int_equal(event.ready.output_count, 1);
    assert_float_equal(event.ready.outputs[0].absolute_sum, 2.5, 0);
    assert_int_equal(event.ready.outputs[0].count, 7);

    struct steps_event steps = {.first = 3,
                                .count = 2,
                                .start_ns = {9000000000, 9000000001},
                                .duration_ns = {5, 6},
                                .loss = {0.25, 0.5},
                                .items = 8,
                                .cpu_ns = 77};
    str_clear(&text);
    protocol_add_steps(&steps, &text);
    parse(text.bytes);
    assert_int_equal(event.kind, EVENT_STEPS);
    assert_int_equal(event.steps.first, 3);
    assert_int_equal(event.steps.count, 2);
    assert_int_equal(event.steps.start_ns[1], 9000000001);
    assert_int_equal(event.steps.duration_ns[0], 5);
    assert_float_equal(event.steps.loss[1], 0.5, 0);
    assert_int_equal(event.steps.items, 8);
    assert_int_equal(event.steps.cpu_ns, 77);

    str_clear(&text);
    protocol_add_done(&(struct done_event){.steps = 5, .memory_peak_bytes = 6}, &text);
    parse(text.bytes);
    assert_int_equal(event.kind, EVENT_DONE);
    assert_int_equal(event.done.memory_peak_bytes, 6);

    for (int c = 0; c < ERROR_CLASS_COUNT; c++) {
        str_clear(&text);
        protocol_add_error((enum error_class)c, "line\none", &text);
        assert_ptr_equal(strchr(text.bytes, '\n'), text.bytes + text.length - 1);
        parse(text.bytes);
        assert_int_equal(event.kind, EVENT_ERROR);
        assert_int_equal(event.error.error_class, c);
        assert_string_equal(event.error.text, "line\none");
    }
}

static void what_others_write_is_taken(void **state)
{
    (void)state;
    parse("{\"event\": \"step\", \"i\": 0, \"t_ns\": 1, \"dur_ns\": 2, \"items\": 16, \"x\": "
          "[]}");
    assert_int_equal(event.kind, EVENT_STEPS);
    assert_int_equal(event.steps.count, 1);
    assert_int_equal(event.steps.cpu_ns, -1);
    assert_true(isnan(event.steps.loss[0]));
    assert_int_equal(event.steps.phases, 0);
    parse(STEP "\"phases\": {\"backward\": 7, \"update\": 8}}");
    assert_int_equal(event.steps.phases, 1 << WORKLOAD_BACKWARD | 1 << WORKLOAD_UPDATE);
    assert_int_equal(event.steps.phase_ns[WORKLOAD_UPDATE][0], 8);
    parse(
        "{\"event\": \"steps\", \"i\": 0, \"t_ns\": [1, 4], \"dur_ns\": [2, 2], \"items\": 1, "
        "\"phases\": {\"input\": [5, 6]}}");
    assert_int_equal(event.steps.phases, 1 << WORKLOAD_INPUT);
    assert_int_equal(event.steps.phase_ns[WORKLOAD_INPUT][1], 6);
    parse("{\"v\": 1, \"event\": \"done\", \"steps\": 3, \"peak_mem_bytes\": null}");
    assert_int_equal(event.done.memory_peak_bytes, -1);
    static const char *const log[] = {"Loading weights…",      "", "{ not json", "[1]", "12",
                                      "{\"event\": \"later\"}"};
    for (size_t i = 0; i < sizeof log / sizeof *log; i++) {
        parse(log[i]);
        assert_int_equal(event.kind, EVENT_LOG);
    }
}

static void what_breaks_the_rules_is_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{}",
        "{\"v\": 2, \"event\": \"done\"}",
        "{\"event\": \"step\"}",
        "{\"event\": \"step\", \"i\": -1, \"t_ns\": 1, \"dur_ns\": 2, \"items\": 1}",
        "{\"event\": \"step\", \"i\": 0, \"t_ns\": 1.5, \"dur_ns\": 2, \"items\": 1}",
        "{\"event\": \"step\", \"i\": 0, \"t_ns\": 1, \"dur_ns\": 2, \"items\": 0}",
        "{\"event\": \"step\", \"i\": 0, \"t_ns\": 1, \"dur_ns\": -2, \"items\": 1}",
        "{\"event\": \"step\", \"i\": 0, \"t_ns\": 1, \"dur_ns\": 2, \"items\": 99999999999}",
        "{\"event\": \"steps\", \"i\": 0, \"t_ns\": [], \"dur_ns\": [], \"items\": 1}",
        "{\"event\": \"steps\", \"i\": 0, \"t_ns\": [1, 2], \"dur_ns\": [1], \"items\": 1}",
        "{\"event\": \"error\", \"class\": \"other\", \"text\": \"\"}",
        STEP "\"phases\": []}",
        STEP "\"phases\": {\"think\": 1}}",
        STEP "\"phases\": {\"input\": 1.5}}",
        STEP "\"phases\": {\"input\": -1}}",
        STEP "\"phases\": {\"input\": [1, 2]}}",
        "{\"event\": \"error\"}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct error err = {0};
        int result = workload_event_parse(lines[i], strlen(lines[i]), &event, &err);
        if (result != -E_UNSUPPORTED || !strstr(err.text, "expected"))
            fail_msg("%s: %d %s", lines[i], result, err.text);
    }
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    str_add(&text, "{\"event\": \"error\", \"class\": \"oom\", \"text\": \"");
    for (int i = 0; i < 5000; i++)
        str_add_char(&text, 'x');
    str_add(&text, "\"}");
    parse(text.bytes);
    assert_int_equal(strlen(event.error.text), PROTOCOL_TEXT_MAX - 1);
}

/* Lines come whole whatever the pieces; one that never ends is dropped once. */
static void lines_from_pieces(void **state)
{
    (void)state;
    int ends[2];
    struct line_reader reader = {.buffer = STR_EMPTY};
    const char *line;
    size_t length;
    bool too_long;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "one\ntw", 6), 6);
    assert_true(line_reader_fill(&reader, ends[0]) == 6);
    assert_true(line_reader_next(&reader, &line, &length, &too_long) && length == 3);
    assert_false(line_reader_next(&reader, &line, &length, &too_long));
    assert_int_equal(write(ends[1], "o\n", 2), 2);
    line_reader_fill(&reader, ends[0]);
    assert_true(line_reader_next(&reader, &line, &length, &too_long));
    assert_memory_equal(line, "two", 3);
    int reports = 0;
    char piece[4096];
    memset(piece, 'y', sizeof piece);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(write(ends[1], piece, sizeof piece), sizeof piece);
        line_reader_fill(&reader, ends[0]);
        while (line_reader_next(&reader, &line, &length, &too_long))
            reports += too_long;
    }
    assert_int_equal(reports, 1);
    assert_int_equal(write(ends[1], "\nlast\n", 6), 6);
    line_reader_fill(&reader, ends[0]);
    assert_true(line_reader_next(&reader, &line, &length, &too_long));
    assert_false(too_long);
    assert_memory_equal(line, "last", 4);
    line_reader_done(&reader);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_others_write_is_taken),
        cmocka_unit_test(what_breaks_the_rules_is_refused),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(lines_from_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
