#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Stands in for nvidia-cuda-mps-control in tests: keeps its state in the pipe folder and
# appends what it was asked to $FAKE_MPS_LOG, one line a request:
#     ARGUMENTS | CUDA_VISIBLE_DEVICES | command
# $FAKE_MPS_FAIL makes the command that begins with it fail.
set -u
pipe=${CUDA_MPS_PIPE_DIRECTORY:?}
pid_file=$pipe/nvidia-cuda-mps-control.pid

record() {
    echo "$1 | ${CUDA_VISIBLE_DEVICES:-} | $2" >>"${FAKE_MPS_LOG:-/dev/null}"
}

if [ "${1:-}" = -d ]; then
    record -d ""
    if [ -n "${FAKE_MPS_FAIL:-}" ] && [ "$FAKE_MPS_FAIL" = -d ]; then
        echo "An instance of this daemon is already running"
        exit 1
    fi
    echo 100 >"$pipe/percentage"
    echo $$ >"$pid_file"
    exit 0
fi
read -r command
record "" "$command"
if [ ! -e "$pid_file" ]; then
    echo "Cannot find MPS control daemon process"
    exit 1
fi
case $command in
"${FAKE_MPS_FAIL:-none}"*)
    echo "Failed"
    exit 1
    ;;
get_server_list) [ -e "$pipe/server" ] && cat "$pipe/server" ;;
get_client_list*) printf '4243\n4244\n' ;;
get_default_active_thread_percentage) cat "$pipe/percentage" ;;
set_default_active_thread_percentage*) echo "${command#* }.0" | tee "$pipe/percentage" ;;
set_default_device_pinned_mem_limit*) echo "${command##* }" ;;
quit*) rm -f "$pid_file" "$pipe/percentage" "$pipe/server" ;;
*)
    echo "unknown command"
    exit 1
    ;;
esac
exit 0
