/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices: the share that a busy child gets, what is written to a (made-up) version 2
 * hierarchy, memory caps, and that nothing is left behind, not even by a crash.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "slice/slice.h"

static const char *const BUSY[] = {"sh", "-c", "while :; do :; done", NULL};
static const char *const SLEEPING[] = {"sleep", "100", NULL};

static int64_t now_ns(void)
{
    return clock_now_ns(clock_real());
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status, (void)type, (void)ftw;
    return remove(path);
}

static void remove_tree(char **folder)
{
    if (*folder)
        nftw(*folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(*folder);
}

static char *make_folder(void)
{
    char *folder = xstrdup("/tmp/tranche-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static void put(const char *folder, const char *file, const char *text)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", folder, file);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
}

/* The text of the one file that matches. */
static char *get(const char *folder, const char *pattern)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", folder, pattern);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    glob_t found = {0};
    assert_int_equal(glob(path, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_int_equal(file_read(found.gl_pathv[0], 1000, &text, NULL), 0);
    globfree(&found);
    return str_take(&text);
}

static char *fake_version_2(void)
{
    char *root = make_folder();
    put(root, "cgroup.controllers", "cpu memory\n");
    put(root, "cgroup.subtree_control", "cpu\n");
    return root;
}

static void version_2_files(void **state)
{
    (void)state;
    CLEANUP(remove_tree) char *root = fake_version_2();
    struct slice_options options = {
        .cpu_cores = 3.0 / 7, .method = SLICE_CGROUP2, .cgroup_root = root};
    struct slice *slice = NULL;
    struct error err;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (slice_open(&options, &slice, &err))
        fail_msg("%s", err.text);
    assert_int_equal(slice_method_used(slice), SLICE_CGROUP2);
    slice_describe(slice, &text);
    assert_string_equal(text.bytes, "cpu-slice (emulated): 0.429 cores by cgroup v2 quota, "
                                    "period 100 ms");
    CLEANUP(free_ptr) char *before = get(root, "tranche-*/cpu.max");
    assert_true(text_starts_with(before, "max 100000"));
    assert_int_equal(slice_limit(slice, true, &err), 0);
    CLEANUP(free_ptr) char *limited = get(root, "tranche-*/cpu.max");
    assert_true(text_starts_with(limited, "42857 100000"));
    CLEANUP(free_ptr) char *weight = get(root, "tranche-*/cpu.weight");
    assert_string_equal(weight, "10000");
    struct slice_process *process = NULL;
    const struct slice_command command = {.words = SLEEPING};
    assert_int_equal(slice_spawn(slice, &command, &process, &err), 0);
    CLEANUP(free_ptr) char *joined = get(root, "tranche-*/cgroup.procs");
    assert_string_equal(joined, "0"); /* the child writes itself */
    slice_process_free(process);
    slice_free(slice);
}

static void version_2_usage(void **state)
{
    (void)state;
    CLEANUP(remove_tree) char *root = fake_version_2();
    struct slice_options options = {
        .cpu_cores = 0.5, .method = SLICE_CGROUP2, .cgroup_root = root};
    CLEANUP(slice_free_ptr) struct slice *slice = NULL;
    struct slice_usage usage;
    assert_int_equal(slice_open(&options, &slice, NULL), 0);
    slice_read_usage(slice, &usage);
    assert_int_equal(usage.throttled_ns, -1); /* no such file: unknown, not zero */
    CLEANUP(free_ptr) char *pattern = xasprintf("%s/tranche-*", root);
    glob_t found = {0};
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    put(found.gl_pathv[0], "cpu.stat",
        "usage_usec 1234\nuser_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 567\n");
    globfree(&found);
    slice_read_usage(slice, &usage);
    assert_int_equal(usage.cpu_ns, 1234000);
    assert_int_equal(usage.periods, 10);
    assert_int_equal(usage.throttled_periods, 4);
    assert_int_equal(usage.throttled_ns, 567000);
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    CLEANUP(remove_tree) char *root = fake_version_2();
    CLEANUP(remove_tree) char *empty = make_folder();
    struct slice *slice = NULL;
    struct error err;
    struct slice_options tiny = {
        .cpu_cores = 0.05, .period_ns = 10000000, .method = SLICE_CGROUP2, .cgroup_root = root};
    assert_int_equal(slice_open(&tiny, &slice, &err), -E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "longer period"));
    struct slice_options none = {
        .cpu_cores = 0.5, .method = SLICE_CGROUP1, .cgroup_root = empty};
    assert_int_equal(slice_open(&none, &slice, &err), -E_UNSUPPORTED);
    assert_null(slice);
    none.method = SLICE_AUTO; /* falls back to pacing */
    assert_int_equal(slice_open(&none, &slice, &err), 0);
    assert_int_equal(slice_method_used(slice), SLICE_PACED);
    slice_free(slice);
}

static void sweeps_groups_of_the_dead(void **state)
{
    (void)state;
    CLEANUP(remove_tree) char *root = fake_version_2();
    CLEANUP(free_ptr) char *dead = xasprintf("%s/tranche-%ld-1-0", root, (long)getpid());
    CLEANUP(free_ptr) char *other = xasprintf("%s/tranche-other", root);
    assert_int_equal(mkdir(dead, 0755), 0); /* our number, another start time */
    assert_int_equal(mkdir(other, 0755), 0);
    struct slice_options options = {
        .cpu_cores = 0.5, .method = SLICE_CGROUP2, .cgroup_root = root};
    struct slice *slice = NULL;
    assert_int_equal(slice_open(&options, &slice, NULL), 0);
    assert_int_not_equal(access(dead, F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
    slice_free(slice);
}

static struct slice_process *start_busy(struct slice *slice)
{
    struct slice_process *process = NULL;
    struct error err;
    const struct slice_command command = {.words = BUSY};
    if (slice_spawn(slice, &command, &process, &err) || slice_limit(slice, true, &err))
        fail_msg("%s", err.text);
    return process;
}

/* CPU time a second that two slices get beside each other, in cores. */
static void busy_shares(struct slice *const slices[2], double ret_shares[2])
{
    struct slice_usage before[2], after[2];
    struct slice_process *processes[2];
    for (int i = 0; i < 2; i++)
        processes[i] = start_busy(slices[i]);
    clock_sleep_until_ns(clock_real(), now_ns() + 150000000);
    int64_t start = now_ns();
    for (int i = 0; i < 2; i++)
        slice_read_usage(slices[i], &before[i]);
    clock_sleep_until_ns(clock_real(), start + 600000000);
    for (int i = 0; i < 2; i++)
        slice_read_usage(slices[i], &after[i]);
    double passed = (double)(now_ns() - start);
    for (int i = 0; i < 2; i++) {
        ret_shares[i] = (double)(after[i].cpu_ns - before[i].cpu_ns) / passed;
        slice_process_free(processes[i]);
    }
}

/* Beside a slice without a limit, which tells what this machine has to give. */
static void keeps_the_share(enum slice_method method)
{
    struct slice_options options = {.cpu_cores = 0.3, .period_ns = 20000000, .method = method};
    struct slice_options whole = {0};
    CLEANUP(slice_free_ptr) struct slice *slice = NULL;
    CLEANUP(slice_free_ptr) struct slice *other = NULL;
    struct error err;
    double shares[2];
    if (slice_open(&options, &slice, &err) || slice_open(&whole, &other, &err)) {
        print_message("%s\n", err.text);
        skip();
    }
    busy_shares((struct slice *const[]){slice, other}, shares);
    double fair = shares[1] < 0.3 ? shares[1] : 0.3;
    print_message("%s: asked 0.300 cores, got %.3f; without a limit %.3f\n",
                  slice_method_name(method), shares[0], shares[1]);
    /* Neighbours may take some away, but nobody gives more than the quota. */
    assert_true(shares[0] < 0.3 * 1.2);
    /* A pacer that waits for its own turn continues its child late. */
    assert_true(shares[0] > fair * (method == SLICE_PACED ? 0.1 : 0.5));
}

static void paced_share(void **state)
{
    (void)state;
    keeps_the_share(SLICE_PACED);
}

static void version_1_share(void **state)
{
    (void)state;
    keeps_the_share(SLICE_CGROUP1);
}

static void no_limit_before_it_is_asked_for(void **state)
{
    (void)state;
    struct slice_options options = {.cpu_cores = 0.1, .method = SLICE_PACED};
    CLEANUP(slice_free_ptr) struct slice *slice = NULL;
    assert_int_equal(slice_open(&options, &slice, NULL), 0);
    struct slice_process *process = NULL;
    struct slice_usage usage;
    const struct slice_command command = {.words = BUSY};
    assert_int_equal(slice_spawn(slice, &command, &process, NULL), 0);
    clock_sleep_until_ns(clock_real(), now_ns() + 200000000);
    slice_read_usage(slice, &usage);
    assert_int_equal(usage.throttled_ns, 0);
    slice_process_free(process);
}

static char *read_all(int fd)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    char bytes[256];
    ssize_t got;
    while ((got = read(fd, bytes, sizeof bytes)) > 0)
        str_add_bytes(&text, bytes, (size_t)got);
    return str_take(&text);
}

static void a_child_sees_its_mig_instance(void **state)
{
    (void)state;
    static const char *const words[] = {
        "sh", "-c", "echo $CUDA_VISIBLE_DEVICES $EXTRA; echo err >&2", NULL};
    static const char *const environment[] = {"EXTRA=yes", NULL};
    struct slice_options options = {.mig_uuid = "MIG-1234"};
    CLEANUP(slice_free_ptr) struct slice *slice = NULL;
    struct slice_process *process = NULL;
    const struct slice_command command = {.words = words, .environment = environment};
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    assert_int_equal(slice_open(&options, &slice, NULL), 0);
    assert_int_equal(slice_spawn(slice, &command, &process, NULL), 0);
    CLEANUP(free_ptr) char *out = read_all(process->stdout_fd);
    CLEANUP(free_ptr) char *err = read_all(process->stderr_fd);
    assert_string_equal(out, "MIG-1234 yes\n");
    assert_string_equal(err, "err\n");
    assert_true(slice_process_wait(process, now_ns() + 5000000000));
    assert_true(WIFEXITED(process->wait_status) && WEXITSTATUS(process->wait_status) == 0);
    slice_process_free(process);
}

static void an_unknown_program_is_missing(void **state)
{
    (void)state;
    static const char *const words[] = {"/nonexistent/program", NULL};
    struct slice_options options = {0};
    CLEANUP(slice_free_ptr) struct slice *slice = NULL;
    struct slice_process *process = NULL;
    struct error err;
    const struct slice_command command = {.words = words};
    assert_int_equal(slice_open(&options, &slice, NULL), 0);
    assert_int_equal(slice_spawn(slice, &command, &process, &err), -E_MISSING);
    assert_non_null(strstr(err.text, "/nonexistent/program"));
    assert_null(process);
}

static void memory_is_capped(void **state)
{
    (void)state;
    /* dd wants one block of 200 MB. */
    static const char *const words[] = {"dd",      "if=/dev/zero", "of=/dev/null",
                                        "bs=200M", "count=1",      NULL};
    for (int m = SLICE_CGROUP1; m <= SLICE_PACED; m++) {
        struct slice_options options = {.memory_bytes = 100 << 20,
                                        .method = (enum slice_method)m};
        CLEANUP(slice_free_ptr) struct slice *slice = NULL;
        struct slice_process *process = NULL;
        struct slice_usage usage;
        const struct slice_command command = {.words = words};
        if (slice_open(&options, &slice, NULL))
            continue;
        assert_int_equal(slice_spawn(slice, &command, &process, NULL), 0);
        assert_true(slice_process_wait(process, now_ns() + 20000000000));
        slice_read_usage(slice, &usage);
        assert_true(process->wait_status != 0);
        assert_int_equal(usage.oom_killed, m == SLICE_CGROUP1);
        slice_process_free(process);
    }
}

/* A maker that is killed leaves no child running, and the next slice removes its group. */
static void a_crash_leaves_nothing(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t maker = fork();
    if (maker == 0) {
        struct slice_options options = {.cpu_cores = 0.5};
        struct slice *slice = NULL;
        struct slice_process *process = NULL;
        const struct slice_command command = {.words = SLEEPING};
        if (slice_open(&options, &slice, NULL) || slice_spawn(slice, &command, &process, NULL))
            _exit(1);
        if (write(ends[1], &process->pid, sizeof process->pid) < 0)
            _exit(1);
        pause();
    }
    pid_t child = 0;
    assert_int_equal(read(ends[0], &child, sizeof child), sizeof child);
    kill(maker, SIGKILL);
    waitpid(maker, NULL, 0);
    for (int i = 0; i < 2000 && kill(child, 0) == 0; i++) {
        CLEANUP(free_ptr) char *path = xasprintf("/proc/%ld/stat", (long)child);
        CLEANUP(str_done) struct str stat = STR_EMPTY;
        if (file_read(path, 4096, &stat, NULL) || strstr(stat.bytes, ") Z "))
            break; /* dead, and only waits for whoever adopted it */
        clock_sleep_until_ns(clock_real(), now_ns() + 1000000);
        assert_true(i < 1999);
    }
    struct slice_options options = {.cpu_cores = 0.5};
    struct slice *slice = NULL;
    assert_int_equal(slice_open(&options, &slice, NULL), 0);
    CLEANUP(free_ptr)
    char *pattern = xasprintf("/sys/fs/cgroup/cpu*/tranche-%ld-*", (long)maker);
    glob_t found = {0};
    assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    globfree(&found);
    slice_free(slice);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_2_files),
        cmocka_unit_test(version_2_usage),
        cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(sweeps_groups_of_the_dead),
        cmocka_unit_test(paced_share),
        cmocka_unit_test(version_1_share),
        cmocka_unit_test(no_limit_before_it_is_asked_for),
        cmocka_unit_test(a_child_sees_its_mig_instance),
        cmocka_unit_test(an_unknown_program_is_missing),
        cmocka_unit_test(memory_is_capped),
        cmocka_unit_test(a_crash_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
