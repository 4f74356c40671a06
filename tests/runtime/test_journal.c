/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal's promises: what was written is read, a cut line is not there and swallows
 * nothing, a full disk leaves it as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/memory.h"
#include "runtime/journal.h"
#include "runtime/process_id.h"

static char folder[64], path[96];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tranche-journal-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/journal.jsonl", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void append(const char *kind)
{
    struct error err = {0};
    CLEANUP(json_decref_ptr) json_t *record = json_pack("{s:s}", "record", kind);
    if (journal_append(path, record, &err) != 0)
        fail_msg("%s", err.text);
}

static size_t count_records(void)
{
    CLEANUP(json_decref_ptr) json_t *records = NULL;
    struct error err = {0};
    if (journal_read(path, &records, &err) != 0)
        fail_msg("%s", err.text);
    return json_array_size(records);
}

static void write_raw(const char *text)
{
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void reads_what_was_written(void **state)
{
    struct stat status;
    (void)state;
    assert_int_equal(count_records(), 0); /* no file */
    for (int i = 0; i < 10; i++)
        append("begin");
    assert_int_equal(count_records(), 10);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void a_cut_line_is_not_there(void **state)
{
    static const char CUT[] = "{\"record\": \"begin\"}";
    (void)state;
    append("up");
    for (size_t length = 1; length < sizeof CUT; length++) {
        CLEANUP(free_ptr) char *part = xstrndup(CUT, length);
        size_t before = count_records();
        write_raw(part);
        assert_int_equal(count_records(), before);
        append("done");
        assert_int_equal(count_records(), before + 1);
    }
}

static void refuses_a_line_that_is_no_json(void **state)
{
    CLEANUP(json_decref_ptr) json_t *records = NULL;
    struct error err = {0};
    (void)state;
    append("up");
    write_raw("nonsense\n");
    append("done");
    assert_int_equal(journal_read(path, &records, &err), -E_INPUT);
}

static void a_full_disk_is_an_error(void **state)
{
    struct error err = {0};
    CLEANUP(json_decref_ptr) json_t *record = json_pack("{s:s}", "record", "begin");
    (void)state;
    assert_int_equal(symlink("/dev/full", path), 0);
    assert_int_equal(journal_append(path, record, &err), -E_IO);
    assert_non_null(strstr(err.text, "No space left"));
}

static void a_number_used_again_is_another_process(void **state)
{
    struct process_id self, other;
    (void)state;
    assert_true(process_id_of(getpid(), &self));
    assert_true(process_id_alive(&self));
    other = self;
    other.start_ticks--;
    assert_false(process_id_alive(&other));
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    struct process_id id = {.pid = child};
    while (process_id_of(child, &id)) /* a zombie is no process */
        usleep(1000);
    assert_true(process_id_wait(&id, 0));
    CLEANUP(json_decref_ptr) json_t *json = process_id_to_json(&self);
    struct process_id again = process_id_from_json(json);
    assert_int_equal(again.start_ticks, self.start_ticks);
    assert_int_equal(process_id_from_json(NULL).pid, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_what_was_written, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cut_line_is_not_there, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_a_line_that_is_no_json, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_is_an_error, setup, teardown),
        cmocka_unit_test(a_number_used_again_is_another_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
