#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# On a machine with an NVIDIA driver: what tranche sees of it, against what nvidia-smi sees.
# Reads only: no mode, instance, clock or process is changed. Usage:
#     tests/gpu/run_on_gpu.sh [PROGRAM] [FOLDER]
# PROGRAM: build/tranche; FOLDER: where the answers are kept (default: a new one in /tmp).
# Exit status 0 when everything agrees.
set -u
program=${1:-build/tranche}
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
failed=0

say() {
    if [ "$1" -eq 0 ]; then
        echo "ok   $2"
    else
        echo "FAIL $2"
        failed=1
    fi
}

keep() { # keep FILE COMMAND…: the answer of a command; its status
    local file=$folder/$1
    shift
    "$@" >"$file" 2>"$file.err"
}

"$program" gpu list --driver nvml >"$folder/list.txt" 2>"$folder/list.err"
status=$?
if [ "$status" -eq 4 ] && ! command -v nvidia-smi >/dev/null; then
    echo "skip no driver here: $(head -1 "$folder/list.err")"
    exit 0
fi
say "$status" "gpu list"
cat "$folder/list.txt"

keep list.json "$program" gpu list --driver nvml --json
say $? "gpu list --json"
keep export.yaml "$program" gpu export --driver nvml
say $? "gpu export"
keep assert.txt "$program" gpu assert --driver nvml -f "$folder/export.yaml"
say $? "gpu assert of what was exported"
keep layouts.txt "$program" gpu export --driver nvml --format layout
say $? "gpu export --format layout"
keep dry.txt "$program" gpu apply --driver nvml --dry-run -f "$folder/export.yaml"
say $? "gpu apply --dry-run of what was exported"
if grep -qE '^ +[0-9]+  (create|destroy|enable|disable)' "$folder/dry.txt"; then
    say 1 "the dry run has steps although nothing differs"
    cat "$folder/dry.txt"
fi

if command -v nvidia-smi >/dev/null; then
    nvidia-smi -L >"$folder/smi-L.txt" 2>&1
    grep -o 'GPU-[0-9a-f-]*' "$folder/smi-L.txt" | sort -u >"$folder/smi-gpus"
    grep -o '"uuid": "GPU-[0-9a-f-]*"' "$folder/list.json" | grep -o 'GPU-[0-9a-f-]*' | sort -u >"$folder/our-gpus"
    cmp -s "$folder/smi-gpus" "$folder/our-gpus"
    say $? "the same GPUs as nvidia-smi -L"
    grep -o 'MIG-[0-9a-f-]*' "$folder/smi-L.txt" | sort -u >"$folder/smi-migs"
    grep -o '"uuid": "MIG-[0-9a-f-]*"' "$folder/list.json" | grep -o 'MIG-[0-9a-f-]*' | sort -u >"$folder/our-migs"
    cmp -s "$folder/smi-migs" "$folder/our-migs"
    say $? "the same MIG devices as nvidia-smi -L"
    # Kept for the record: what NVIDIA's tool says of profiles and placements (settles what
    # docs/spec/layout.md calls inferred).
    nvidia-smi mig -lgip >"$folder/smi-lgip.txt" 2>&1
    nvidia-smi mig -lgipp >"$folder/smi-lgipp.txt" 2>&1
    nvidia-smi -q >"$folder/smi-q.txt" 2>&1
fi
if "$program" help bench 2>/dev/null | grep -q probe; then
    keep probe.txt "$program" bench probe
    say $? "bench probe"
fi
grep '^GPU [0-9]*: ' "$folder/list.txt" | sed 's/^/note /'
echo "answers are in $folder"
exit "$failed"
