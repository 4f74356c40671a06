#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command as on a machine with the simulated GPUs:
#
#     tools/simulated_machine.sh BUILD COMMAND [ARGUMENT...]
#
# The command finds BUILD/sim/libnvidia-ml.so.1 and BUILD/sim/nvidia-smi first, the module
# `nvidia` in /proc/modules, its device numbers in /proc/devices, the capabilities of every
# instance in /proc/driver/nvidia, and the GPUs, and they alone, in /sys/bus/pci/devices:
# programs such as NVIDIA/mig-parted look there before they call NVML. The files are laid over the
# real ones in a mount namespace of the command's own (a user namespace too, when not root),
# so nothing outside changes. TRANCHE_SIM_STATE and TRANCHE_SIM_FLEET choose the machine. Exit: the
# command's, or 4 where namespaces are not allowed.
set -euo pipefail

[ $# -ge 2 ] || {
    echo "usage: simulated_machine.sh BUILD COMMAND [ARGUMENT...]" >&2
    exit 2
}
sim=$(cd "$1/sim" && pwd)
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$sim/tranche-sim" sysfs "$folder"

# shellcheck disable=SC2016 # expanded by the inner shell
lay_over='
set -e
folder=$1
shift
if [ -e /proc/modules ]; then
    mount --bind "$folder/proc/modules" /proc/modules
    mount --bind "$folder/proc/devices" /proc/devices
    mount --bind "$folder/proc/driver" /proc/driver
else # a kernel without modules: a /proc with little beside the file
    mkdir "$folder/real" "$folder/new"
    mount --rbind /proc "$folder/real"
    mount -t tmpfs tmpfs "$folder/new"
    cp -r "$folder"/proc/* "$folder/new"
    ln -s "$folder"/real/* "$folder/new" 2>/dev/null || true # processes come and go
    mount --bind "$folder/new" /proc
fi
mount --bind "$folder/sys/bus/pci/devices" /sys/bus/pci/devices
exec "$@"
'
namespaces=(--mount --propagation private)
[ "$(id -u)" = 0 ] || namespaces+=(--user --map-root-user)
if ! unshare "${namespaces[@]}" true 2>/dev/null; then
    echo "simulated_machine: mount namespaces are not allowed here" >&2
    exit 4
fi
status=0
LD_LIBRARY_PATH=$sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PATH=$sim:$PATH \
    unshare "${namespaces[@]}" bash -c "$lay_over" bash "$folder" "$@" || status=$?
exit "$status"
