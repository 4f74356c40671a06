/* SPDX-License-Identifier: Apache-2.0
 *
 * Specifications of the Container Device Interface (CDI 0.6.0), by which container runtimes
 * find a MIG device: one file a device, `tranche-UUID.json`, that names the GPU's device node
 * and the capability nodes of the GPU instance and the compute instance. A runtime cannot
 * resolve a device without its file, and a stale file names nodes of somebody else: so files
 * are written after the instance is there, and removed with it.
 *
 * Libraries and hooks are the business of NVIDIA's container toolkit.
 */
#ifndef TRANCHE_CONTROL_CDI_H
#define TRANCHE_CONTROL_CDI_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

struct cdi_options {
    const char *folder;    /* of the specifications: "/var/run/cdi" */
    const char *host_root; /* before /proc and /dev of the host; "" */
};

struct cdi_device {
    const char *uuid; /* its name: "MIG-…", or "GPU-…" of a board without MIG */
    int minor;        /* of /dev/nvidiaN */
    int gi, ci;       /* -1: a whole GPU */
};

/* The text of a specification; capabilities: minors of the GPU instance and compute instance
 * in /dev/nvidia-caps, or NULL of a whole GPU. */
void cdi_format(const struct cdi_device *device, const int capabilities[2], struct str *text);

/* The minors, from /proc/driver/nvidia/capabilities/gpuN/mig/giG[/ciC]/access, or from
 * /proc/driver/nvidia-caps/mig-minors. E_MISSING when neither tells. */
int cdi_read_capabilities(const struct cdi_options *options, const struct cdi_device *device,
                          int ret_minors[2], struct error *err);

/* Makes missing capability nodes, then writes the file, unless it is as it should be.
 * E_MISSING, E_IO. */
int cdi_write(const struct cdi_options *options, const struct cdi_device *device,
              struct error *err);
/* Removes our files of devices that are not among these. E_IO when the folder cannot be read;
 * one that is not there is fine. */
int cdi_prune(const struct cdi_options *options, const char *const *uuids, size_t count,
              struct error *err);

#endif
