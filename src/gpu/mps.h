/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA MPS for one GPU or one MIG instance. Each has a control daemon of its own, which
 * sees that device alone (CUDA_VISIBLE_DEVICES), with a pipe and a log folder of its own:
 *
 *     FOLDER/UUID/pipe   CUDA_MPS_PIPE_DIRECTORY, 0700
 *     FOLDER/UUID/log    CUDA_MPS_LOG_DIRECTORY, 0700
 *
 * so that one instance's faults and limits never reach another's clients. The program
 * nvidia-cuda-mps-control is spoken to on its standard input, one command a line, without a
 * shell.
 */
#ifndef TRANCHE_GPU_MPS_H
#define TRANCHE_GPU_MPS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

struct mps_options {
    const char *device;           /* "GPU-…" or "MIG-…" */
    const char *folder;           /* see mps_folder() */
    const char *control;          /* the program; NULL: nvidia-cuda-mps-control by $PATH */
    double active_thread_percent; /* of each client by default, 0 < p <= 100; 0: not set */
    const char *pinned_memory;    /* each client's device memory, "4G", "512M"; NULL: not set */
};

struct mps_server {
    long pid;
    VEC(long) clients;
};

struct mps_status {
    bool running;
    double active_thread_percent;   /* NAN: not told */
    VEC(struct mps_server) servers; /* none until the first client came */
};
/* Frees the servers. */
void mps_status_done(struct mps_status *status);

/* The default folder: $TRANCHE_MPS_DIR, /run/tranche/mps for root, else below
 * $XDG_RUNTIME_DIR or /tmp, by user id. */
void mps_folder(struct str *path);

/* E_INPUT: the device, percentage or memory is malformed, or the path too long for a socket;
 * E_BUSY: a daemon runs already; E_MISSING: no such program; E_IO: the folders are not ours
 * alone, or the program failed (its words are told). */
int mps_start(const struct mps_options *options, struct error *err);
/* Lets clients finish for timeout_s seconds, then ends them. E_NOT_FOUND: none runs. */
int mps_stop(const struct mps_options *options, int timeout_s, struct error *err);
/* Asks the device's daemon. 0 also when none runs (ret_status->running tells). */
int mps_status(const struct mps_options *options, struct mps_status *ret_status,
               struct error *err);

/* A client's environment, NAME=VALUE lines that a shell can read ("export …"), limits of this
 * client included. */
int mps_env(const struct mps_options *options, struct str *text, struct error *err);
/* The same environment as an object; a new reference. */
json_t *mps_env_to_json(const struct mps_options *options);
/* The status as an object; a new reference. */
json_t *mps_status_to_json(const struct mps_status *status);

#endif
