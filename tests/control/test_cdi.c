/* SPDX-License-Identifier: Apache-2.0
 *
 * CDI specifications: the text against golden files, capabilities from both of the driver's
 * forms, files that come and go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "control/cdi.h"

static const struct cdi_device mig = {.uuid = "MIG-1", .minor = 3, .gi = 2, .ci = 0};

/* A host's tree in a folder of its own. */
struct host {
    char root[64], cdi[80];
    struct cdi_options options;
};

static void host_open(struct host *host)
{
    snprintf(host->root, sizeof host->root, "/tmp/tranche-cdi-XXXXXX");
    assert_non_null(mkdtemp(host->root));
    snprintf(host->cdi, sizeof host->cdi, "%s/cdi", host->root);
    host->options = (struct cdi_options){.folder = host->cdi, .host_root = host->root};
}

static void host_done(struct host *host)
{
    CLEANUP(free_ptr) char *command = NULL;

    if (asprintf(&command, "rm -rf '%s'", host->root) > 0 && system(command))
        fail_msg("%s", command);
}

static void host_put(const struct host *host, const char *path, const char *text)
{
    CLEANUP(free_ptr) char *whole = NULL, *folder = NULL;

    assert_true(asprintf(&whole, "%s%s", host->root, path) > 0);
    folder = strdup(whole);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(file_make_dirs(folder, 0755, NULL), 0);
    assert_int_equal(file_write(whole, text, strlen(text), NULL), 0);
}

static void assert_golden(const char *name, const char *text)
{
    CLEANUP(str_done) struct str wanted = STR_EMPTY;
    CLEANUP(free_ptr) char *path = NULL;

    assert_true(
        asprintf(&path, "%s/tests/control/golden/%s", getenv("TRANCHE_SOURCE_ROOT"), name) > 0);
    if (getenv("UPDATE_GOLDEN"))
        assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    assert_int_equal(file_read(path, 1 << 20, &wanted, NULL), 0);
    assert_string_equal(text, wanted.bytes);
}

static void test_text(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY, whole = STR_EMPTY;
    const struct cdi_device gpu = {.uuid = "GPU-1", .minor = 0, .gi = -1, .ci = -1};

    (void)state;
    cdi_format(&mig, (const int[2]){426, 427}, &text);
    assert_golden("cdi_mig.json", text.bytes);
    cdi_format(&gpu, NULL, &whole);
    assert_golden("cdi_gpu.json", whole.bytes);
}

static void test_capabilities(void **state)
{
    CLEANUP(host_done) struct host host;
    int minors[2] = {0};
    struct error err;

    (void)state;
    host_open(&host);
    assert_int_equal(cdi_read_capabilities(&host.options, &mig, minors, &err), -E_MISSING);
    assert_non_null(strstr(err.text, "MIG-1"));
    host_put(&host, "/proc/driver/nvidia-caps/mig-minors",
             "config 1\nmonitor 2\ngpu3/gi2/access 426\ngpu3/gi2/ci0/access 427\n"
             "gpu3/gi20/access 9\n");
    assert_int_equal(cdi_read_capabilities(&host.options, &mig, minors, &err), 0);
    assert_int_equal(minors[0], 426);
    assert_int_equal(minors[1], 427);
    /* The live form goes first. */
    host_put(&host, "/proc/driver/nvidia/capabilities/gpu3/mig/gi2/access",
             "DeviceFileMinor: 21\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
    assert_int_equal(cdi_read_capabilities(&host.options, &mig, minors, &err), 0);
    assert_int_equal(minors[0], 21);
    assert_int_equal(minors[1], 427);
    host_put(&host, "/proc/driver/nvidia/capabilities/gpu3/mig/gi2/access", "nonsense\n");
    host_put(&host, "/proc/driver/nvidia-caps/mig-minors", "gpu3/gi2/access x\n");
    assert_int_equal(cdi_read_capabilities(&host.options, &mig, minors, &err), -E_MISSING);
}

static ino_t file_of(const struct host *host, const char *uuid)
{
    CLEANUP(free_ptr) char *path = NULL;
    struct stat status;

    assert_true(asprintf(&path, "%s/tranche-%s.json", host->cdi, uuid) > 0);
    return stat(path, &status) ? 0 : status.st_ino;
}

static void test_files(void **state)
{
    CLEANUP(host_done) struct host host;
    struct error err;

    (void)state;
    host_open(&host);
    host_put(&host, "/proc/driver/nvidia-caps/mig-minors",
             "gpu3/gi2/access 426\ngpu3/gi2/ci0/access 427\n");
    /* No node, and no driver to make one from: no specification either. */
    assert_int_equal(cdi_write(&host.options, &mig, &err), -E_MISSING);
    assert_int_equal(file_of(&host, "MIG-1"), 0);
    host_put(&host, "/dev/nvidia-caps/nvidia-cap426", "");
    host_put(&host, "/dev/nvidia-caps/nvidia-cap427", "");
    if (cdi_write(&host.options, &mig, &err))
        fail_msg("%s", err.text);
    ino_t first = file_of(&host, "MIG-1");
    assert_true(first > 0);
    assert_int_equal(cdi_write(&host.options, &mig, &err), 0);
    assert_true(file_of(&host, "MIG-1") == first); /* as it should be: not written again */
    host_put(&host, "/cdi/nvidia.json", "{}");
    host_put(&host, "/cdi/tranche-MIG-2.json", "{}");
    assert_int_equal(cdi_prune(&host.options, (const char *const[]){"MIG-1"}, 1, &err), 0);
    assert_true(file_of(&host, "MIG-1") == first);
    assert_int_equal(file_of(&host, "MIG-2"), 0);
    CLEANUP(free_ptr) char *foreign = NULL;
    assert_true(asprintf(&foreign, "%s/nvidia.json", host.cdi) > 0);
    assert_int_equal(access(foreign, F_OK), 0);
}

static void test_refused(void **state)
{
    static const char *const uuids[] = {"", "../x", "a/b", "."};
    CLEANUP(host_done) struct host host;
    struct error err;

    (void)state;
    host_open(&host);
    for (size_t i = 0; i < sizeof uuids / sizeof uuids[0]; i++) {
        struct cdi_device device = {.uuid = uuids[i], .minor = 0, .gi = -1, .ci = -1};
        assert_int_equal(cdi_write(&host.options, &device, &err), -E_INPUT);
    }
    assert_int_equal(cdi_prune(&host.options, NULL, 0, &err), 0); /* no folder: nothing to do */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_capabilities),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("control/cdi", tests, NULL, NULL);
}
