/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has a GPU's device files open. NVML lists programs that compute; a monitor (DCGM, an
 * exporter), persistenced or the display holds the GPU just as well and makes a change fail
 * with "in use" while NVML names nobody. Read from /proc; other users' processes need root.
 */
#ifndef TRANCHE_GPU_HOLDERS_H
#define TRANCHE_GPU_HOLDERS_H

#include "base/str.h"

/* Appends "pid 812 (nv-hostengine) has /dev/nvidia0 open, …" for every process that holds
 * /dev/nvidia<minor> or an instance's capability node, our own left out; nothing when none is
 * seen. `proc` is the folder to read ("/proc"; fixtures elsewhere). */
void gpu_holders_describe(const char *proc, int minor, struct str *text);

#endif
