/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of gpu share: cmocka, a simulated machine in a folder of its own, requests
 * by layout text, and what a machine holds as text. The library under test is the one of the
 * build ($TRANCHE_SIM_LIBRARY).
 */
#ifndef TRANCHE_TESTS_GPU_SUPPORT_H
#define TRANCHE_TESTS_GPU_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "gpu/apply.h"

/* A simulated machine; the environment names its state file. */
struct sim_box {
    char folder[64];
    char state[96];     /* TRANCHE_SIM_STATE */
    char state_dir[96]; /* lock and journal of apply */
};

static inline void box_open(struct sim_box *box, const char *fleet)
{
    /* In memory where that is possible: the journal is synced to its file system. */
    snprintf(box->folder, sizeof box->folder, "%s/tranche-gpu-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(box->folder))
        fail_msg("mkdtemp");
    snprintf(box->state, sizeof box->state, "%s/state", box->folder);
    snprintf(box->state_dir, sizeof box->state_dir, "%s/run", box->folder);
    setenv("TRANCHE_SIM_STATE", box->state, 1);
    setenv("TRANCHE_SIM_FLEET", fleet, 1);
    unsetenv("TRANCHE_SIM_FAULTS");
    unsetenv("TRANCHE_SIM_PRIVILEGE");
    unsetenv("TRANCHE_SIM_TRACE");
}

static inline void box_close(struct sim_box *box)
{
    static const char *const names[] = {
        "run/gpu.lock", "run/gpu-journal.json", "run", "state", "trace", "saved"};
    char path[160];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", box->folder, names[i]);
        remove(path);
    }
    remove(box->folder);
}

static inline int box_open_driver(struct gpu_driver *driver, struct error *err)
{
    struct gpu_driver_options options = {.kind = GPU_DRIVER_SIM};
    return gpu_driver_open(&options, driver, err);
}

static inline void box_driver(struct gpu_driver *driver)
{
    struct error err;
    if (box_open_driver(driver, &err))
        fail_msg("%s", err.text);
}

/* Layouts of all GPUs with MIG by "LAYOUT" or "LAYOUT|LAYOUT|…", "off" or "." (not named). */
static inline int layouts_targets(void *context, const struct gpu_inventory *inventory,
                                  struct gpu_target_list *ret, struct error *err)
{
    CLEANUP(str_done) struct str lines = STR_EMPTY;
    const char *text = context;

    for (size_t i = 0; i < inventory->gpus.count; i++) {
        size_t length = strcspn(text, "|");
        if (length != 1 || *text != '.')
            str_addf(&lines, "%zu: %.*s\n", i, (int)length, text);
        text += text[length] ? length + 1 : 0; /* the last one is for all that follow */
    }
    return gpu_targets_from_layout_file(inventory, "layouts", lines.bytes, ret, err);
}

static inline int box_apply_with(const struct sim_box *box, const struct gpu_driver *driver,
                                 const char *layouts, struct gpu_apply_options options,
                                 struct error *err)
{
    struct gpu_apply_report report;
    struct gpu_request request = {
        .targets = layouts_targets, .context = (void *)(uintptr_t)layouts, .text = layouts};

    options.state_dir = box->state_dir;
    gpu_apply_report_init(&report);
    int r = gpu_apply(driver, &request, &options, &report, err);
    gpu_apply_report_done(&report);
    return r;
}

/* Uses nothing of cmocka, so that a forked child may call it. */
static inline int box_apply(const struct sim_box *box, const char *layouts, struct error *err)
{
    struct gpu_driver driver = {0};
    struct gpu_apply_options options = {0};

    int r = box_open_driver(&driver, err);
    if (r)
        return r;
    r = box_apply_with(box, &driver, layouts, options, err);
    gpu_driver_close(&driver);
    return r;
}

static inline void box_must_apply(const struct sim_box *box, const char *layouts)
{
    struct error err;
    if (box_apply(box, layouts, &err))
        fail_msg("apply %s: %s", layouts, err.text);
}

static inline void box_read(struct gpu_inventory *inventory)
{
    struct gpu_driver driver = {0};
    struct error err;

    box_driver(&driver);
    if (gpu_inventory_read(&driver, inventory, &err))
        fail_msg("%s", err.text);
    gpu_driver_close(&driver);
}

/* "LAYOUT|LAYOUT" of all GPUs, "off" where MIG is. Free it. */
static inline char *box_layouts(void)
{
    struct gpu_inventory inventory;
    struct str text = STR_EMPTY;

    box_read(&inventory);
    for (size_t i = 0; i < inventory.gpus.count; i++) {
        const struct gpu *gpu = &inventory.gpus.data[i];
        str_add(&text, i ? "|" : "");
        if (gpu->live && gpu->mode.current)
            gpu_layout_format(&gpu->live->board, &gpu->layout, &text);
        else
            str_add(&text, "off");
    }
    gpu_inventory_done(&inventory);
    return str_take(&text);
}

static inline void assert_layouts(const char *expected)
{
    CLEANUP(free_ptr) char *layouts = box_layouts();
    assert_string_equal(layouts, expected);
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not have \"%s\"", text, part);
}

#endif
