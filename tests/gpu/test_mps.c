/* SPDX-License-Identifier: Apache-2.0
 *
 * MPS against a stand-in control program that records what it is asked
 * (fake_mps_control.sh).
 */
#include "support.h"

#include <math.h>
#include <sys/stat.h>

#include "gpu/mps.h"
#include "gpu/program.h"

#define MIG_UUID "MIG-377e0049-554c-540b-93c6-d0976f8426cb"

static char folder[64], control[512], log_path[128];

static struct mps_options options_of(const char *device)
{
    return (struct mps_options){.device = device, .folder = folder, .control = control};
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tranche-mps-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(log_path, sizeof log_path, "%s/asked", folder);
    snprintf(control, sizeof control, "%s/tests/gpu/fake_mps_control.sh",
             getenv("TRANCHE_SOURCE_ROOT"));
    setenv("FAKE_MPS_LOG", log_path, 1);
    unsetenv("FAKE_MPS_FAIL");
    return 0;
}

static int tear_down(void **state)
{
    const char *words[] = {"rm", "-r", folder, NULL};
    struct program program = {.words = words, .timeout_s = 10};
    CLEANUP(str_done) struct str output = STR_EMPTY;
    int status;

    (void)state;
    return program_run(&program, &output, &status, NULL);
}

static void assert_asked(const char *expected)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    assert_int_equal(file_read(log_path, 1 << 16, &text, NULL), 0);
    assert_string_equal(text.bytes, expected);
    unlink(log_path);
}

static void touch(const char *name, const char *words)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s/pipe/%s", folder, MIG_UUID, name);
    assert_int_equal(file_write(path, words, strlen(words), NULL), 0);
}

static void test_protocol(void **state)
{
    struct mps_options options = options_of(MIG_UUID);
    struct mps_status status;
    struct error err;

    (void)state;
    options.active_thread_percent = 40;
    options.pinned_memory = "4G";
    if (mps_start(&options, &err))
        fail_msg("%s", err.text);
    assert_asked("-d | " MIG_UUID " | \n"
                 " | " MIG_UUID " | set_default_active_thread_percentage 40\n"
                 " | " MIG_UUID " | set_default_device_pinned_mem_limit 0 4G\n");
    assert_int_equal(mps_start(&options, &err), -E_BUSY);
    unlink(log_path);
    assert_int_equal(mps_status(&options, &status, &err), 0);
    assert_true(status.running);
    assert_true(status.active_thread_percent == 40);
    assert_int_equal(status.servers.count, 0);
    mps_status_done(&status);
    touch("server", "4711\n");
    assert_int_equal(mps_status(&options, &status, &err), 0);
    assert_int_equal(status.servers.count, 1);
    assert_int_equal(status.servers.data[0].pid, 4711);
    assert_int_equal(status.servers.data[0].clients.count, 2);
    assert_int_equal(status.servers.data[0].clients.data[1], 4244);
    mps_status_done(&status);
    unlink(log_path);
    assert_int_equal(mps_stop(&options, 10, &err), 0);
    assert_asked(" | " MIG_UUID " | get_server_list\n | " MIG_UUID " | quit -t 10\n");
    assert_int_equal(mps_stop(&options, 10, &err), -E_NOT_FOUND);
    assert_int_equal(mps_status(&options, &status, &err), 0);
    assert_false(status.running);
    assert_true(isnan(status.active_thread_percent));
}

static void test_folders_are_private(void **state)
{
    struct mps_options options = options_of(MIG_UUID);
    char path[160];
    struct stat status;
    struct error err;

    (void)state;
    assert_int_equal(mps_start(&options, &err), 0);
    snprintf(path, sizeof path, "%s/%s/pipe", folder, MIG_UUID);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(mps_stop(&options, 0, &err), 0);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(mps_start(&options, &err), -E_IO);
    assert_has(err.text, "is not a folder of ours alone");
}

static void test_two_devices_do_not_meet(void **state)
{
    struct mps_options one = options_of(MIG_UUID), two = options_of("GPU-1-2");
    struct mps_status status;
    struct error err;

    (void)state;
    assert_int_equal(mps_start(&one, &err), 0);
    assert_int_equal(mps_status(&two, &status, &err), 0);
    assert_false(status.running);
    assert_int_equal(mps_start(&two, &err), 0);
    assert_int_equal(mps_stop(&one, 0, &err), 0);
    assert_int_equal(mps_status(&two, &status, &err), 0);
    assert_true(status.running);
    mps_status_done(&status);
}

static void test_failures(void **state)
{
    struct mps_options options = options_of(MIG_UUID);
    struct mps_status status;
    struct error err;

    (void)state;
    setenv("FAKE_MPS_FAIL", "-d", 1);
    assert_int_equal(mps_start(&options, &err), -E_IO);
    assert_has(err.text, "already running");
    /* A limit that cannot be set leaves no daemon without it. */
    setenv("FAKE_MPS_FAIL", "set_default", 1);
    options.active_thread_percent = 10;
    assert_int_equal(mps_start(&options, &err), -E_IO);
    unsetenv("FAKE_MPS_FAIL");
    assert_int_equal(mps_status(&options, &status, &err), 0);
    assert_false(status.running);
    options.control = "/nowhere/nvidia-cuda-mps-control";
    assert_int_equal(mps_start(&options, &err), -E_MISSING);
    assert_int_equal(error_exit_status(err.code), 4);
}

static void test_wrong_words(void **state)
{
    static const struct {
        const char *device;
        double percent;
        const char *memory, *message;
    } cases[] = {
        {"0", 0, NULL, "is no device"},        {"MIG-../../etc", 0, NULL, "is no device"},
        {MIG_UUID, 101, NULL, "percentage"},   {MIG_UUID, 0, "4", "pinned memory"},
        {MIG_UUID, 0, "4GB", "pinned memory"}, {MIG_UUID, 0, "4G\nquit", "pinned memory"},
    };
    struct error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mps_options options = options_of(cases[i].device);
        options.active_thread_percent = cases[i].percent;
        options.pinned_memory = cases[i].memory;
        assert_int_equal(mps_start(&options, &err), -E_INPUT);
        assert_has(err.text, cases[i].message);
    }
    struct mps_options options = options_of(MIG_UUID);
    options.folder =
        "/tmp/a-folder-name-that-makes-the-path-of-the-socket-much-too-long-for-it";
    assert_int_equal(mps_start(&options, &err), -E_INPUT);
    assert_has(err.text, "too long for a socket");
}

static void test_env(void **state)
{
    struct mps_options options = options_of(MIG_UUID);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct error err;

    (void)state;
    options.folder = "/run/it's";
    options.active_thread_percent = 12.5;
    options.pinned_memory = "512M";
    assert_int_equal(mps_env(&options, &text, &err), 0);
    assert_string_equal(text.bytes,
                        "export CUDA_VISIBLE_DEVICES='" MIG_UUID "'\n"
                        "export CUDA_MPS_PIPE_DIRECTORY='/run/it'\\''s/" MIG_UUID "/pipe'\n"
                        "export CUDA_MPS_LOG_DIRECTORY='/run/it'\\''s/" MIG_UUID "/log'\n"
                        "export CUDA_MPS_ACTIVE_THREAD_PERCENTAGE='12.5'\n"
                        "export CUDA_MPS_PINNED_DEVICE_MEM_LIMIT='0=512M'\n");
}

static void test_program_runs_out_of_time(void **state)
{
    const char *words[] = {"sleep", "30", NULL};
    struct program program = {.words = words, .timeout_s = 1};
    CLEANUP(str_done) struct str output = STR_EMPTY;
    struct error err;
    int status;

    (void)state;
    assert_int_equal(program_run(&program, &output, &status, &err), -E_TIMEOUT);
}

#define BOXED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOXED(test_protocol),
        BOXED(test_folders_are_private),
        BOXED(test_two_devices_do_not_meet),
        BOXED(test_failures),
        BOXED(test_wrong_words),
        BOXED(test_env),
        BOXED(test_program_runs_out_of_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
