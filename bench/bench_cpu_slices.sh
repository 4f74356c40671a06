#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Throughput of three real models against the CPU quota, k/7 of a core for k = 1 … 7: relative
# to 7/7, with the share of CPU time obtained and R² of a straight line.
#
#     bench_cpu_slices.sh TRANCHE MODELS [OPTION…]     (OPTIONs go to `bench sweep`)
#
# 5g and 6g are no profiles of a board; their quotas come by --cpu-full-slice.
set -eu
tranche=$1 models=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# SLICES CORES OPTION…: rows of all models.
sweep() {
    slices=$1 cores=$2
    shift 2
    "$tranche" bench sweep --allow-invalid -m "$models/ppocr_cls.onnx" -m "$models/ppocr_det.onnx" \
        -m "$models/silero_vad.onnx" -S "$slices" --cpu-full-slice "$cores" -d 3 --longest 6 \
        --min-steps 10 "$@" -o "$folder/$slices-$cores.csv" 2>/dev/null
}
sweep 1g,2g,3g,4g,7g 1 "$@"
sweep 7g 0.7142857142857143 "$@" # 5/7
sweep 7g 0.8571428571428571 "$@" # 6/7
python3 - "$folder" <<'PYTHON'
import csv
import glob
import sys

rows = [r for f in glob.glob(sys.argv[1] + "/*.csv") for r in csv.DictReader(open(f))]
for model in sorted({r["model"] for r in rows}):
    mine = sorted(((float(r["cpu_quota"]), float(r["throughput_rps"]), float(r["cpu_share"]))
                   for r in rows if r["model"] == model))
    full = mine[-1][1]
    x, y = [m[0] for m in mine], [m[1] / full for m in mine]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)
    rest = sum((b - my - slope * (a - mx)) ** 2 for a, b in zip(x, y))
    r2 = 1 - rest / sum((b - my) ** 2 for b in y)
    print(f"load/cpu-slices {model}: 7/7 {full:.4g}/s, R2 {r2:.4f}")
    print("  quota   ", " ".join(f"{m[0]:.3f}" for m in mine))
    print("  relative", " ".join(f"{v:.3f}" for v in y))
    print("  share   ", " ".join(f"{m[2]:.3f}" for m in mine))
PYTHON
