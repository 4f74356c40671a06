/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA mig-parted's config format, version v1: read, checked for form, and written.
 *
 *     version: v1
 *     mig-configs:
 *       all-balanced:
 *         - device-filter: ["0x20B010DE"]   # optional: one PCI device id or a list
 *           devices: all                    # or a list of indexes
 *           mig-enabled: true
 *           mig-devices: {"1g.5gb": 2, "1c.3g.20gb": 3}
 *
 * A Kubernetes ConfigMap that holds such a file under data."config.yaml" is read too. What the
 * names mean on a real machine is gpu_target.h's business.
 */
#ifndef TRANCHE_GPU_MIG_CONFIG_H
#define TRANCHE_GPU_MIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

struct mig_config_device {
    const char *name; /* "3g.20gb", "1c.3g.20gb" */
    int count;
    unsigned line, column;
};

struct mig_config_entry {
    VEC(uint32_t) filters; /* 0xDDDDVVVV; empty: every board */
    bool all;              /* devices: all */
    VEC(int) devices;      /* else these indexes */
    bool mig_enabled;
    VEC(struct mig_config_device) mig_devices;
    unsigned line, column;
};

struct mig_config {
    const char *name;
    VEC(struct mig_config_entry) entries;
    unsigned line, column;
};

struct mig_config_file {
    struct arena arena; /* owns the text */
    const char *path;
    VEC(struct mig_config) configs; /* in file order */
};

/* E_INPUT with FILE:LINE:COL; a fragment without version and mig-configs is named as one. */
int mig_config_read(const char *path, struct mig_config_file *ret_file, struct error *err);
/* The same from bytes; name is for messages. */
int mig_config_parse(const char *name, const char *bytes, size_t length,
                     struct mig_config_file *ret_file, struct error *err);
/* Frees configs and texts. */
void mig_config_file_done(struct mig_config_file *file);

/* The config of this name; NULL asks for the only one. E_INPUT naming the nearest, or all. */
int mig_config_select(const struct mig_config_file *file, const char *name,
                      const struct mig_config **ret_config, struct error *err);

/* Appends the file as mig-parted writes it. */
void mig_config_format(const struct mig_config_file *file, struct str *text);

#endif
