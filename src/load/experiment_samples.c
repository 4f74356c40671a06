/* SPDX-License-Identifier: Apache-2.0
 *
 * See experiment_samples.h. In a run they are {"every": k, "began": "start_ns" or
 * "intended_ns", "times": [began, end, process, …]}.
 */
#include "load/experiment_samples.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

static const char MEMBER[] = "samples";
enum { NUMBERS = 3 }; /* of a sample */

static void add_sample(json_t *times, int64_t began_ns, int64_t end_ns, int process)
{
    json_array_append_new(times, json_integer(began_ns));
    json_array_append_new(times, json_integer(end_ns));
    json_array_append_new(times, json_integer(process));
}

void run_samples_put(json_t *run, size_t most, const struct measure_result *result,
                     const struct open_loop_result *open)
{
    size_t count = open ? open->samples.count : result->steps.count;
    json_t *times = json_array();
    assert(json_is_object(run));
    if (most == 0 || count == 0) {
        json_decref(times);
        return;
    }
    size_t every = (count + most - 1) / most;
    for (size_t i = 0; i < count; i += every) {
        if (open) {
            const struct open_loop_sample *sample = &open->samples.data[i];
            add_sample(times, sample->intended_ns, sample->end_ns, -1);
        } else {
            const struct measured_step *step = &result->steps.data[i];
            add_sample(times, step->start_ns, step->start_ns + step->duration_ns, step->child);
        }
    }
    json_object_set_new(run, MEMBER,
                        json_pack("{s:I, s:s, s:o}", "every", (json_int_t)every, "began",
                                  open ? "intended_ns" : "start_ns", "times", times));
}

int sample_file_open(struct sample_file *file, const char *path, off_t length,
                     struct error *err)
{
    struct stat status;
    *file = (struct sample_file){.path = path, .length = length};
    file->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file->fd < 0 || fstat(file->fd, &status) < 0)
        return error_set_errno(err, E_IO, "%s: cannot open", path);
    if (status.st_size < file->length)
        file->length = status.st_size; /* somebody took it away: what is new is still kept */
    if (ftruncate(file->fd, file->length) < 0 || lseek(file->fd, 0, SEEK_END) < 0)
        return error_set_errno(err, E_IO, "%s: cannot write", path);
    return 0;
}

/* The samples of one instance. */
struct origin {
    size_t cell, instance;
    int repetition;
};

static void add_lines(const json_t *samples, const struct origin *origin, struct str *text)
{
    const json_t *times = json_object_get(samples, "times");
    const char *began = json_string_value(json_object_get(samples, "began"));
    json_int_t every = json_integer_value(json_object_get(samples, "every"));
    for (size_t i = 0; i + NUMBERS <= json_array_size(times); i += NUMBERS) {
        json_int_t process = json_integer_value(json_array_get(times, i + 2));
        str_addf(text, "{\"cell\":%zu,\"repetition\":%d,\"instance\":%zu", origin->cell,
                 origin->repetition, origin->instance);
        if (process >= 0)
            str_addf(text, ",\"process\":%" JSON_INTEGER_FORMAT, process);
        str_addf(text,
                 ",\"%s\":%" JSON_INTEGER_FORMAT ",\"end_ns\":%" JSON_INTEGER_FORMAT
                 ",\"every\":%" JSON_INTEGER_FORMAT "}\n",
                 began, json_integer_value(json_array_get(times, i)),
                 json_integer_value(json_array_get(times, i + 1)), every);
    }
}

int sample_file_move(struct sample_file *file, json_t *run, size_t cell, int repetition,
                     struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    json_t *instances = json_object_get(run, "instances");
    size_t count = json_is_array(instances) ? json_array_size(instances) : 1;
    for (size_t i = 0; i < count; i++) {
        json_t *holder = json_is_array(instances) ? json_array_get(instances, i) : run;
        const json_t *samples = json_object_get(holder, MEMBER);
        if (samples)
            add_lines(samples, &(struct origin){cell, i, repetition}, &text);
        json_object_del(holder, MEMBER);
    }
    if (file->fd < 0)
        return 0;
    if (file_write_all(file->fd, text.bytes, text.length) < 0)
        return error_set_errno(err, E_IO, "%s: cannot write", file->path);
    file->length += (off_t)text.length;
    return 0;
}

void sample_file_close(struct sample_file *file)
{
    close_fd(&file->fd);
}
