#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `tranche bench one|sweep` with the built-in workload on CPU slices. Needs the library that
# tools/fetch_packages.sh lays; skips without.
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

if [ -z "${TRANCHE_ORT_LIBRARY:-}" ]; then
    for library in "${TRANCHE%/*}"/ort/libonnxruntime.so* \
        "$TRANCHE_SOURCE_ROOT"/build/ort/libonnxruntime.so*; do
        [ -e "$library" ] && export TRANCHE_ORT_LIBRARY=$library
    done
fi

fails 4 "no-such.onnx: cannot read this model" "a model that is not there" \
    bench one -m no-such.onnx -S 1g
fails 4 "resnt: cannot read this model" "neither file nor built-in" bench one -m x=resnt -S 1g
fails 3 "no size \"deep\"" "a wrong size" bench one -m resnet:deep=3 -S 1g
fails 3 "9g" "an unknown slice" bench one -m cnn -S 9g
fails 3 "a100" "an unknown board" bench one -m cnn -S 1g -B a100
fails 2 "--append goes with -o" "append to nothing" bench one -m cnn -S 1g --append
fails 2 "needs --uuid" "a GPU without its instance" bench one -m cnn -S 1g --device cuda
fails 2 "expected whole numbers" "wrong batches" bench sweep -m cnn -b 1,x
fails 2 "two models named cnn" "a model twice" bench sweep -m cnn -m cnn
fails 2 "expected NAME/INPUT" "a shape of no model" bench sweep -m cnn --shape y/x=Nx3x8x8
TRANCHE_ORT_LIBRARY=/nonexistent.so fails 4 "/nonexistent.so" "no library" \
    bench one -m cnn -S 1g

if [ -z "${TRANCHE_ORT_LIBRARY:-}" ]; then
    skip_missing "no ONNX Runtime (tools/fetch_packages.sh)" "measuring"
    finish
fi

# A field of the last row of a CSV.
field() {
    python3 -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
print(rows[-1].get(sys.argv[2], "no such column"))' "$1" "$2"
}
quick="-d 0.1 --warmup 0 --longest 1 --min-steps 3"

# A busy machine makes short measurements INVALID: here that is not the question.
lenient="$quick --allow-invalid"

# shellcheck disable=SC2086
{
    tranche bench one -m cnn:size=16 -S 3g -b 2 $lenient -o one.csv
    is_status 0 "one is measured"
    [ "$(head -c 45 one.csv)" = "model,board,slice,batch,procs,throughput_rps," ]
    ok $? "the contract's columns come first"
    [ "$(field one.csv slice) $(field one.csv batch)" = "3g.20gb 2" ]
    ok $? "the row's key"
    [ "$(field one.csv cpu_quota) $(field one.csv device)" = "0.4286 cpu-slice" ]
    ok $? "the quota is 3/7"
    grep -q "cpu-slice (emulated)" one.csv
    ok $? "it says that it is emulated"

    tranche bench one -m cnn:size=16 -S 3g -b 2 $lenient -o one.csv --append
    [ "$(wc -l <one.csv)" = 2 ]
    ok $? "the same cell replaces its row"
    tranche bench one -m cnn:size=16 -S 3g -b 2 -p 2 $lenient -o one.csv --append
    [ "$(wc -l <one.csv)" = 3 ]
    ok $? "another cell is added"

    tranche bench one -m cnn:size=16 -S 7g -d 0.1 --longest 0.1 --min-steps 1000000 -o few.csv
    is_status 1 "too few batches are INVALID"
    err_has "too-few-steps" "and it says why"
    [ "$(field few.csv verdict)" = INVALID ]
    ok $? "in the row as well"
    tranche bench sweep -m cnn:size=16 -S 7g -d 0.1 --longest 0.1 --min-steps 1000000
    is_status 1 "a sweep with an INVALID measurement ends with 1"
    tranche bench sweep -m cnn:size=16 -S 7g -d 0.1 --longest 0.1 --min-steps 1000000 --allow-invalid
    is_status 0 "a sweep is done all the same"
    err_has "1 of 1 measurements are INVALID" "and says which"
    tranche bench one -m cnn:size=16 -S 3g -r 3 $lenient -o repeated.csv
    [ "$(field repeated.csv repetitions)" = 3 ]
    ok $? "repetitions"
    awk -v l="$(field repeated.csv throughput_rps_low)" -v h="$(field repeated.csv throughput_rps_high)" \
        -v m="$(field repeated.csv throughput_rps)" 'BEGIN { exit !(l < m && m < h) }'
    ok $? "their mean is in its interval"

    tranche bench one -m cnn:size=16 --task training -S 7g -b 2 $lenient -o train.csv
    is_status 0 "training is measured"
    [ "$(field train.csv task)" = training ]
    ok $? "the row's task"

    tranche bench one -m cnn:size=16 -S 7g --arrivals constant:50 -d 1 --warmup 0.2 --allow-invalid -o open.csv
    is_status 0 "an open loop is measured"
    [ "$(field open.csv scheduled) $(field open.csv offered_rps)" = "50 50" ]
    ok $? "all of the schedule after the warm-up counts"
    [ "$(field open.csv steps)" -le 50 ] && [ "$(field open.csv steps)" -gt 0 ]
    ok $? "what was completed is counted"
    fails 3 "expected constant:RATE" "a wrong schedule" \
        bench one -m cnn:size=16 -S 7g --arrivals often $quick
    tranche bench one -m cnn:size=32 -S 1g -b 16 --arrivals constant:200 --in-flight 5 -d 1 -o drop.csv
    is_status 1 "an overload is INVALID"
    err_has "dropped" "for what was dropped"

    cat >own.sh <<'EOS'
echo '{"event":"ready","framework":"own","version":"7","waits":true}'
read -r go
trap 'stop=1' TERM
i=0
while [ -z "${stop:-}" ]; do
    t=$(awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime)
    sleep 0.01
    echo "{\"event\":\"step\",\"i\":$i,\"t_ns\":$t,\"dur_ns\":10000000,\"items\":1}"
    i=$((i + 1))
done
echo '{"event":"done","steps":1}'
EOS
    tranche bench one -m mine -S 7g $lenient -o own.csv -- sh own.sh
    is_status 0 "a workload of one's own"
    [ "$(field own.csv model) $(field own.csv runtime)" = "mine own 7" ]
    ok $? "its name and framework"
    fails 4 "/nonexistent" "a workload that is not there" bench one -m mine -S 7g -- /nonexistent
    if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
        tranche bench one -m torch-cnn -S 7g -b 2 --task training $lenient -o torch.csv -- \
            /usr/bin/python3 "$TRANCHE_SOURCE_ROOT/adapters/torch_workload.py" --model cnn \
            --size 32 --batch 2 --task training
        is_status 0 "PyTorch as a workload"
        [ "$(field torch.csv runtime | cut -d ' ' -f 1)" = torch ]
        ok $? "its name"
    else
        skip "no python3-torch" "PyTorch as a workload"
    fi

    tranche bench one -m big=bert:layers=12,hidden=768 -S 7g --memory-limit-mib 150 $quick -o oom.csv
    is_status 0 "out of memory is a row"
    [ "$(field oom.csv status) $(field oom.csv throughput_rps)" = "oom " ]
    ok $? "with its status and no throughput"

    head -c 1000 /dev/urandom >garbage.onnx
    fails 4 "garbage.onnx: cannot load this model" "garbage is no model" \
        bench sweep -m garbage.onnx -S 1g,2g $quick -o garbage.csv
    [ ! -e garbage.csv ]
    ok $? "and nothing is written"
    : >empty.onnx
    fails 4 "empty.onnx" "an empty file is no model" bench one -m empty.onnx -S 1g $quick
    mkdir folder.onnx
    fails 4 "directory" "a directory is no model" bench one -m folder.onnx -S 1g $quick

    tranche bench sweep --allow-invalid -m a=cnn:size=16 -m conv-stack:channels=4,layers=1,size=8 -S 1g,7g \
        -b 1,2 --slice-method paced $quick -o sweep.csv
    is_status 0 "a sweep is measured by pacing"
    [ "$(wc -l <sweep.csv)" = 9 ]
    ok $? "2 models, 2 slices, 2 batches"
    [ "$(grep -c 'by pacing signals' sweep.csv) $(grep -c 'not enforced' sweep.csv)" = "4 4" ]
    ok $? "a whole core is not paced"
    tranche bench one -m cnn:size=16 -B t4-16gb -S whole $lenient
    is_status 0 "a board without MIG has one slice"
}

# Ctrl-C keeps what was measured, and leaves no process and no control group. On a busy machine the
# first of the cells may take long: then once more, with more time.
for seconds in 3 10 30; do
    "$TRANCHE" bench sweep -m cnn:size=16 -S 7g -b "$(seq -s, 60)" -d 1 --warmup 0 -o kept.csv 2>"$err" &
    runner=$!
    sleep "$seconds"
    kill -INT "$runner"
    status=0
    wait "$runner" || status=$?
    [ ! -s kept.csv ] || break
done
last_command="bench sweep, interrupted"
is_status 4 "an interrupted sweep ends with 4"
[ "$(wc -l <kept.csv)" -ge 2 ]
ok $? "and keeps what was measured"
[ -z "$(find /sys/fs/cgroup -maxdepth 3 -name "tranche-$runner-*" 2>/dev/null)" ]
ok $? "no control group is left"
[ -z "$(pgrep -P "$runner")" ]
ok $? "no process is left"

finish
