#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PyTorch (Debian's python3-torch) beside the training steps of tranche: the first losses of
# each model that trains; and as a workload of its own in a CPU slice.
. "$TRANCHE_SOURCE_ROOT/tests/peers/peers.sh" || exit 99

python=/usr/bin/python3 # the distribution's: another one does not see its packages
"$python" -c 'import torch' 2>/dev/null || skip_all "no python3-torch"
for library in "$TRANCHE_BUILD"/ort/libonnxruntime.so* "$TRANCHE_SOURCE_ROOT"/build/ort/libonnxruntime.so*; do
    [ -e "$library" ] && export TRANCHE_ORT_LIBRARY=$library
done
[ -n "${TRANCHE_ORT_LIBRARY:-}" ] || skip_all "no ONNX Runtime: run tools/fetch_packages.sh"

run "$python" "$TRANCHE_SOURCE_ROOT/tests/engine/torch_losses.py" --check "$TRANCHE"
is_status 0 "the first losses equal PyTorch's"
out_has "6 passed, 0 failed" "on six models"

for task in inference training; do
    run "$TRANCHE" bench one -m torch-cnn -S 3g -b 4 --task $task -d 0.5 --allow-invalid -o $task.csv -- \
        "$python" "$TRANCHE_SOURCE_ROOT/adapters/torch_workload.py" --model cnn --size 32 --batch 4 --task $task
    is_status 0 "PyTorch in a slice: $task"
    file_has $task.csv "torch-cnn,a100-40gb,3g.20gb,4,1," "its row"
    file_has $task.csv ",torch " "says what it ran in"
done
run "$TRANCHE" bench one -m torch-cnn -S 3g -b 4 --task training -d 0.5 --allow-invalid -o phases.csv -- \
    "$python" "$TRANCHE_SOURCE_ROOT/adapters/torch_workload.py" --model cnn --size 32 --batch 4 --task training --phases
is_status 0 "PyTorch times the parts of its training step"
"$python" - <<'END'
import csv

(row,) = csv.DictReader(open("phases.csv"))
parts = [float(row[f"{name}_ms_mean"]) for name in ("forward", "backward", "update")]
assert all(part > 0 for part in parts) and sum(parts) <= float(row["latency_ms_mean"]) * 1.001, row
END
ok $? "which come to no more than the step"
run "$TRANCHE" bench one -m big -S 3g -b 1 -d 0.5 --memory-limit-mib 100 --allow-invalid -o oom.csv -- \
    "$python" "$TRANCHE_SOURCE_ROOT/adapters/torch_workload.py" --model cnn --size 4096
is_status 0 "PyTorch without memory is a row"
file_has oom.csv ",oom," "out of memory"
finish
