/* SPDX-License-Identifier: Apache-2.0
 *
 * The state file: one simulated machine that several processes see and change, as they
 * would see one driver.
 *
 *     offset 0     header: magic, format, machine size, and `active` (8 bytes):
 *                  sequence << 1 | slot
 *     offset 4096  slot 0 (checksum, length, the machine)
 *     …            slot 1
 *
 * A change is written into the slot that is not active and becomes the machine by the 8
 * bytes of `active` alone, so a process killed at any instant leaves the old machine or the
 * new one. Byte 0 is locked (fcntl, open file description: shared to read, exclusive to
 * change) for the length of one NVML call; byte 1 is locked shared by every process that
 * has NVML initialised, which is how a GPU reset learns of other clients. The kernel drops
 * both with the process.
 *
 * Not safe to use from two threads at once: sim/call.c holds one mutex over it.
 */
#ifndef TRANCHE_SIM_STORE_H
#define TRANCHE_SIM_STORE_H

#include "base/error.h"
#include "sim/machine.h"

struct sim_store {
    int fd; /* -1: closed */
    bool writable;
    bool cached;     /* machine is the one of `active` */
    uint64_t active; /* header word as last read */
    char path[512];
    struct sim_machine machine; /* a copy; changed in place, then committed */
    bool kill_commit;           /* see sim_store_kill_next_commit() */
};

/* The path in use: TRANCHE_SIM_STATE, or a file named after the fleet in
 * $XDG_RUNTIME_DIR/tranche-sim or /tmp/tranche-sim-UID (made 0700; refused when it is not
 * ours alone). */
int sim_store_path(char *ret_path, size_t size, struct error *err);

/* Opens the machine, making it from TRANCHE_SIM_FLEET (default a100-40gb:2) when the file is
 * new. E_CONFLICT: the file has another fleet than the environment asks for; E_INPUT: the
 * file is damaged or of another version; E_IO. */
int sim_store_open(struct sim_store *store, struct error *err);
/* Lets the state file go; the machine in it stays for others. */
void sim_store_close(struct sim_store *store);

/* Locks and loads; the machine is store->machine until unlock. E_UNSUPPORTED: exclusive was
 * asked of a file that we may not write. */
int sim_store_lock(struct sim_store *store, bool exclusive, struct error *err);
/* Makes store->machine the machine. On failure the file's stays. */
int sim_store_commit(struct sim_store *store, struct error *err);
/* Unlocks. changed: store->machine was touched and not committed, so read it anew. */
void sim_store_unlock(struct sim_store *store, bool changed);

/* Whether another process has NVML initialised on this machine. */
bool sim_store_held_by_others(const struct sim_store *store);

/* For tests and fault plans: the next commit is killed (SIGKILL) after its slot is written
 * and before it becomes active. */
void sim_store_kill_next_commit(struct sim_store *store);

#endif
