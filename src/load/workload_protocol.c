/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON-lines protocol of workloads. See workload_protocol.h.
 */
#include "load/workload_protocol.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

#define NANOSECONDS_MAX 9.2e18

static const char *const class_names[ERROR_CLASS_COUNT] = {
    [CLASS_INIT] = "init",
    [CLASS_OOM] = "oom",
    [CLASS_UNSUPPORTED] = "unsupported",
    [CLASS_CRASH] = "crash",
};

static const char *const phase_names[WORKLOAD_PHASE_COUNT] = {
    [WORKLOAD_INPUT] = "input",       [WORKLOAD_COMPUTE] = "compute",
    [WORKLOAD_OUTPUT] = "output",     [WORKLOAD_FORWARD] = "forward",
    [WORKLOAD_BACKWARD] = "backward", [WORKLOAD_UPDATE] = "update",
};

static const struct json_place root_place = {.file = "workload event"};

const char *error_class_name(enum error_class error_class)
{
    assert(error_class < ERROR_CLASS_COUNT);
    return class_names[error_class];
}

const char *workload_phase_name(enum workload_phase phase)
{
    assert(phase < WORKLOAD_PHASE_COUNT);
    return phase_names[phase];
}

static int bad(struct error *err, const char *what)
{
    return error_set(err, E_UNSUPPORTED, "the workload broke the protocol: %s", what);
}

/* A text member, cut to size; absent or null leaves "". */
static void copy_text(const json_t *event, const char *key, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(event, key));
    assert(size > 0);
    snprintf(ret, size, "%s", text ? text : "");
}

static void parse_outputs(const json_t *event, struct ready_event *ready)
{
    const json_t *list = json_object_get(event, "outputs");
    for (size_t i = 0; i < json_array_size(list) && i < PROTOCOL_OUTPUTS_MAX; i++) {
        const json_t *item = json_array_get(list, i);
        ready->outputs[i] = (struct output_summary){
            .sum = json_number_value(json_object_get(item, "sum")),
            .absolute_sum = json_number_value(json_object_get(item, "absolute_sum")),
            .count = json_integer_value(json_object_get(item, "count")),
        };
        ready->output_count++;
    }
}

static int parse_ready(const json_t *event, struct ready_event *ready)
{
    memset(ready, 0, sizeof *ready);
    copy_text(event, "framework", ready->framework, sizeof ready->framework);
    copy_text(event, "version", ready->version, sizeof ready->version);
    copy_text(event, "device", ready->device, sizeof ready->device);
    copy_text(event, "name", ready->device_name, sizeof ready->device_name);
    copy_text(event, "visible", ready->visible, sizeof ready->visible);
    ready->port = (int)json_integer_value(json_object_get(event, "port"));
    ready->resumed_steps = json_integer_value(json_object_get(event, "resumed"));
    ready->waits = json_is_true(json_object_get(event, "waits"));
    parse_outputs(event, ready);
    return 0;
}

static bool whole(const json_t *value, int64_t minimum, int64_t *ret)
{
    if (!json_is_integer(value) || json_integer_value(value) < minimum)
        return false;
    *ret = json_integer_value(value);
    return true;
}

static int parse_lists(const json_t *event, struct steps_event *steps, struct error *err)
{
    const json_t *starts = json_object_get(event, "t_ns");
    const json_t *durations = json_object_get(event, "dur_ns");
    const json_t *losses = json_object_get(event, "loss");
    size_t count = json_array_size(starts);
    if (count == 0 || count > PROTOCOL_STEPS_MAX || json_array_size(durations) != count ||
        (losses && json_array_size(losses) != count))
        return bad(err,
                   "steps: expected equally long lists t_ns and dur_ns of 1 to 512 numbers");
    for (size_t i = 0; i < count; i++) {
        if (!whole(json_array_get(starts, i), 0, &steps->start_ns[i]) ||
            !whole(json_array_get(durations, i), 0, &steps->duration_ns[i]))
            return bad(err, "steps: expected whole nanoseconds in t_ns and dur_ns");
        const json_t *loss = losses ? json_array_get(losses, i) : NULL;
        steps->loss[i] = json_is_number(loss) ? json_number_value(loss) : NAN;
    }
    steps->count = (int)count;
    return 0;
}

static int find_phase(const char *name)
{
    for (int i = 0; i < WORKLOAD_PHASE_COUNT; i++)
        if (strcmp(name, phase_names[i]) == 0)
            return i;
    return -1;
}

/* "phases": a list of nanoseconds for each, in "step" a number. */
static int parse_phases(const json_t *event, struct steps_event *steps, struct error *err)
{
    const json_t *phases = json_object_get(event, "phases");
    const char *name;
    json_t *times;
    steps->phases = 0;
    if (phases && !json_is_object(phases))
        return bad(err, "phases: expected an object of names and times");
    json_object_foreach((json_t *)phases, name, times)
    {
        int phase = find_phase(name);
        if (phase < 0)
            return bad(err,
                       "phases: expected input, compute, output, forward, backward, update");
        bool list = json_is_array(times);
        if (list && json_array_size(times) != (size_t)steps->count)
            return bad(err, "phases: expected lists as long as t_ns");
        for (int i = 0; i < steps->count; i++)
            if (!whole(list ? json_array_get(times, (size_t)i) : times, 0,
                       &steps->phase_ns[phase][i]))
                return bad(err, "phases: expected whole nanoseconds");
        steps->phases |= 1u << phase;
    }
    return 0;
}

/* One step ("step") or several ("steps"). */
static int parse_steps(const json_t *event, bool several, struct steps_event *steps,
                       struct error *err)
{
    int64_t items = 0;
    steps->cpu_ns = -1;
    if (!whole(json_object_get(event, "i"), 0, &steps->first))
        return bad(err, "step: expected a whole number i");
    if (!whole(json_object_get(event, "items"), 1, &items) || items > INT32_MAX)
        return bad(err, "step: expected items, a whole number from 1");
    steps->items = (int)items;
    whole(json_object_get(event, "cpu_ns"), 0, &steps->cpu_ns);
    if (several) {
        int failure = parse_lists(event, steps, err);
        return failure ? failure : parse_phases(event, steps, err);
    }
    const json_t *loss = json_object_get(event, "loss");
    steps->count = 1;
    steps->loss[0] = json_is_number(loss) ? json_number_value(loss) : NAN;
    if (!whole(json_object_get(event, "t_ns"), 0, &steps->start_ns[0]) ||
        !whole(json_object_get(event, "dur_ns"), 0, &steps->duration_ns[0]))
        return bad(err, "step: expected whole nanoseconds in t_ns and dur_ns");
    return parse_phases(event, steps, err);
}

static int parse_done(const json_t *event, struct done_event *done)
{
    done->steps = -1;
    done->memory_peak_bytes = -1;
    whole(json_object_get(event, "steps"), 0, &done->steps);
    whole(json_object_get(event, "peak_mem_bytes"), 0, &done->memory_peak_bytes);
    return 0;
}

static int parse_error(const json_t *event, struct error_event *error, struct error *err)
{
    const char *name = json_string_value(json_object_get(event, "class"));
    copy_text(event, "text", error->text, sizeof error->text);
    for (int i = 0; i < ERROR_CLASS_COUNT; i++)
        if (name && strcmp(name, class_names[i]) == 0) {
            error->error_class = (enum error_class)i;
            return 0;
        }
    return bad(err, "error: expected class init, oom, unsupported or crash");
}

static int parse_event(const json_t *event, struct workload_event *ret_event, struct error *err)
{
    const char *name = json_string_value(json_object_get(event, "event"));
    const json_t *version = json_object_get(event, "v");
    if (!name)
        return bad(err, "expected a member event");
    if (version && json_integer_value(version) != PROTOCOL_VERSION)
        return bad(err, "expected v 1");
    if (strcmp(name, "ready") == 0) {
        ret_event->kind = EVENT_READY;
        return parse_ready(event, &ret_event->ready);
    }
    if (strcmp(name, "step") == 0 || strcmp(name, "steps") == 0) {
        ret_event->kind = EVENT_STEPS;
        return parse_steps(event, name[4] == 's', &ret_event->steps, err);
    }
    if (strcmp(name, "done") == 0) {
        ret_event->kind = EVENT_DONE;
        return parse_done(event, &ret_event->done);
    }
    if (strcmp(name, "error") == 0) {
        ret_event->kind = EVENT_ERROR;
        return parse_error(event, &ret_event->error, err);
    }
    ret_event->kind = EVENT_LOG; /* later versions may say more */
    return 0;
}

int workload_event_parse(const char *line, size_t length, struct workload_event *ret_event,
                         struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *event = NULL;
    assert(line || length == 0);
    ret_event->kind = EVENT_LOG;
    if (length == 0 || line[0] != '{' ||
        json_parse(root_place.file, line, length, &event, NULL))
        return 0;
    return parse_event(event, ret_event, err);
}

/* Appends "key":"text" with a comma before. */
static void add_text(struct str *text, const char *key, const char *value)
{
    CLEANUP(json_decref_ptr) json_t *string = json_string(value);
    assert(key);
    str_addf(text, ",\"%s\":", key);
    if (string)
        json_write_line(string, text);
    else
        str_add(text, "null"); /* not UTF-8 */
}

static void add_outputs(const struct ready_event *ready, struct str *text)
{
    assert(ready->output_count <= PROTOCOL_OUTPUTS_MAX);
    str_add(text, ",\"outputs\":[");
    for (int i = 0; i < ready->output_count; i++)
        str_addf(text, "%s{\"sum\":%.9g,\"absolute_sum\":%.9g,\"count\":%" PRId64 "}",
                 i ? "," : "", ready->outputs[i].sum, ready->outputs[i].absolute_sum,
                 ready->outputs[i].count);
    str_add(text, "]");
}

void protocol_add_ready(const struct ready_event *ready, const char *workload, const char *task,
                        int batch, struct str *text)
{
    str_addf(text, "{\"v\":%d,\"event\":\"ready\"", PROTOCOL_VERSION);
    add_text(text, "framework", ready->framework);
    add_text(text, "version", ready->version);
    add_text(text, "device", ready->device);
    add_text(text, "name", ready->device_name);
    add_text(text, "workload", workload);
    add_text(text, "task", task);
    str_addf(text, ",\"batch\":%d", batch);
    add_text(text, "visible", ready->visible);
    if (ready->resumed_steps > 0)
        str_addf(text, ",\"resumed\":%" PRId64, ready->resumed_steps);
    str_addf(text, ",\"waits\":%s", ready->waits ? "true" : "false");
    if (ready->output_count > 0)
        add_outputs(ready, text);
    str_add(text, "}\n");
}

/* Appends a number that is not negative. Twice a step, so not by printf. */
static void add_digits(struct str *text, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    assert(value >= 0);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    str_add_bytes(text, digits + at, sizeof digits - at);
}

static void add_list(struct str *text, const char *key, const int64_t *values, int count)
{
    str_addf(text, ",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            str_add_char(text, ',');
        add_digits(text, values[i]);
    }
    str_add_char(text, ']');
}

void protocol_add_steps(const struct steps_event *steps, struct str *text)
{
    assert(steps->count > 0 && steps->count <= PROTOCOL_STEPS_MAX);
    str_addf(text, "{\"v\":%d,\"event\":\"steps\",\"i\":%" PRId64, PROTOCOL_VERSION,
             steps->first);
    add_list(text, "t_ns", steps->start_ns, steps->count);
    add_list(text, "dur_ns", steps->duration_ns, steps->count);
    if (!isnan(steps->loss[0])) {
        str_add(text, ",\"loss\":[");
        for (int i = 0; i < steps->count; i++)
            str_addf(text, "%s%.9g", i ? "," : "", steps->loss[i]);
        str_add_char(text, ']');
    }
    str_addf(text, ",\"items\":%d", steps->items);
    if (steps->cpu_ns >= 0)
        str_addf(text, ",\"cpu_ns\":%" PRId64, steps->cpu_ns);
    str_add(text, "}\n");
}

void protocol_add_done(const struct done_event *done, struct str *text)
{
    str_addf(text, "{\"v\":%d,\"event\":\"done\",\"steps\":%" PRId64, PROTOCOL_VERSION,
             done->steps);
    if (done->memory_peak_bytes >= 0)
        str_addf(text, ",\"peak_mem_bytes\":%" PRId64, done->memory_peak_bytes);
    str_add(text, "}\n");
}

void protocol_add_error(enum error_class error_class, const char *message, struct str *text)
{
    str_addf(text, "{\"v\":%d,\"event\":\"error\",\"class\":\"%s\"", PROTOCOL_VERSION,
             error_class_name(error_class));
    add_text(text, "text", message);
    str_add(text, "}\n");
}

ssize_t line_reader_fill(struct line_reader *reader, int fd)
{
    char bytes[16 << 10];
    assert(fd >= 0);
    if (reader->used > 0) {
        memmove(reader->buffer.bytes, reader->buffer.bytes + reader->used,
                reader->buffer.length - reader->used);
        reader->buffer.length -= reader->used;
        reader->used = 0;
    }
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got > 0)
        str_add_bytes(&reader->buffer, bytes, (size_t)got);
    return got;
}

bool line_reader_next(struct line_reader *reader, const char **ret_line, size_t *ret_length,
                      bool *ret_too_long)
{
    const char *start = reader->buffer.bytes + reader->used;
    size_t rest = reader->buffer.length - reader->used;
    const char *end = rest ? memchr(start, '\n', rest) : NULL;
    assert(reader->used <= reader->buffer.length);
    *ret_too_long = false;
    if (!end) {
        if (rest <= PROTOCOL_LINE_MAX)
            return false;
        *ret_too_long = !reader->skipping;
        reader->skipping = true;
        reader->used = reader->buffer.length; /* drop what came so far */
        *ret_line = "";
        *ret_length = 0;
        return *ret_too_long;
    }
    reader->used += (size_t)(end - start) + 1;
    if (reader->skipping) { /* the end of a long line */
        reader->skipping = false;
        return line_reader_next(reader, ret_line, ret_length, ret_too_long);
    }
    *ret_line = start;
    *ret_length = (size_t)(end - start);
    return true;
}

void line_reader_done(struct line_reader *reader)
{
    str_done(&reader->buffer);
}
