/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder in which a running plan keeps its state, 0700 and ours alone:
 *
 *     runtime.lock      held by the process that steers
 *     journal.jsonl     what was decided and done (journal.h)
 *     control.sock      commands (control.h)
 *     haproxy.{cfg,sock,json}, services.map
 *     units/KEY.{json,live,lock}   one server of one instance (keeper.h)
 *     log/              what the processes say
 */
#ifndef TRANCHE_RUNTIME_STATE_FOLDER_H
#define TRANCHE_RUNTIME_STATE_FOLDER_H

#include "base/error.h"
#include "base/str.h"

/* Appends the default: $TRANCHE_RUNTIME_DIR, /run/tranche/runtime for root where it can be
 * made, else $XDG_RUNTIME_DIR/tranche-runtime, else /tmp/tranche-runtime-UID. */
void state_folder_default(struct str *path);

/* Makes folder, units/ and log/. E_IO when it is somebody else's or others may enter it;
 * E_USAGE when its path is too long for a socket. */
int state_folder_make(const char *folder, struct error *err);

/* "FOLDER/NAME", owned by the caller. */
char *state_folder_file(const char *folder, const char *name);

#endif
