#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the simulated library exports and needs: NVML's names and nothing else, the C library
# and nothing else; and tranche-sim's words.
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh" || exit 99

run readelf -d "$TRANCHE_SIM_LIBRARY"
out_has 'Library soname: [libnvidia-ml.so.1]' "the soname is NVML's"
grep NEEDED "$out" | grep -vE 'lib(c|m|dl|pthread|asan|ubsan|tsan|gcc_s)\.so|ld-linux' >"$work/needed"
[ ! -s "$work/needed" ]
ok $? "it needs the C library alone"

run nm -D --defined-only "$TRANCHE_SIM_LIBRARY"
awk '$2 ~ /[TDBVWR]/ && $3 !~ /^nvml[A-Z]/ && $3 !~ /^__(asan|ubsan|tsan|odr)/ { print $3 }' "$out" >"$work/foreign"
[ ! -s "$work/foreign" ]
ok $? "every exported name is NVML's"
missing=0 names=0
# Every name of the tables, and the versions that clients resolve by hand.
for name in $(sed -n 's/^UNSUPPORTED(\(.*\))$/\1/p' "$TRANCHE_SOURCE_ROOT/src/sim/unsupported.def") \
    $(grep -ohE 'nvml(Device|Gpu|Compute|System|Event|Gpm|Init|Shutdown|Error)[A-Za-z_0-9]*, *\\?$|X\([A-Z]+, [a-zA-Z_ *]+, nvml[A-Za-z_0-9]+' \
        "$TRANCHE_SOURCE_ROOT/src/gpu/nvml_abi.h" | grep -oE 'nvml[A-Z][A-Za-z_0-9]*' | grep -v '_t$' | grep -v '^nvmlReturn') \
    nvmlInit nvmlDeviceGetCount nvmlDeviceGetComputeRunningProcesses{,_v2,_v3} nvmlDeviceGetPciInfo{,_v2,_v3}; do
    names=$((names + 1))
    grep -q " $name$" "$out" || {
        missing=$((missing + 1))
        echo "# missing: $name"
    }
done
[ "$missing" -eq 0 ] && [ "$names" -gt 350 ]
ok $? "each of the $names names of the tables is exported"

sim=${TRANCHE_SIM_LIBRARY%/*}
export TRANCHE_SIM_STATE=$work/state TRANCHE_SIM_FLEET=a100-40gb:1
says() { # says STATUS TEXT NAME WORD…
    local expected=$1 text=$2 name=$3
    shift 3
    run "$sim/tranche-sim" "$@"
    [ "$status" -eq "$expected" ] && grep -qF -e "$text" "$out" "$err"
    ok $? "$name"
}
says 0 'gpu 0: a100-40gb GPU-' "show" show
says 4 'the machine has 1 GPUs' "a GPU that is not there" reset 1
says 3 'is not a GPU' "no GPU at all" reset x
says 4 'no such instance' "an instance that is not there" add --keep --device 0/1
says 4 'no process' "a process that is not there" add --pid 4194304
says 2 'no Xid number' "an Xid that is none" xid 0 x
says 2 'unknown command' "a command that is none" fly
says 4 'cannot run' "a program that is not there" run -- ./nothing
says 0 '7 MiB 30% job' "a command runs as a process of the GPU" \
    run --name job --memory-mib 7 --sm 30 -- "$sim/tranche-sim" show
says 0 'fleet a100-40gb:1' "and is gone with it" show
! grep -q ' job' "$out"
ok $? "no process is left"
run "$sim/tranche-sim" sysfs "$work/fs"
is_status 0 "sysfs"
file_is "$work/fs/sys/bus/pci/devices/0000:07:00.0/device" 0x20b0 "sysfs has the PCI device"
run "$sim/nvidia-smi" -L
out_has 'GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-' "nvidia-smi -L"
run "$sim/nvidia-smi" --query-gpu=name
is_status 2 "the simulated nvidia-smi says what it does not know"
finish
