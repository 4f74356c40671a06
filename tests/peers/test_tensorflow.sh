#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# TensorFlow as a workload of its own in a CPU slice, inference and training. It is large, so it is
# fetched only on request: PEERS_TENSORFLOW=1 make check-peers.
. "$TRANCHE_SOURCE_ROOT/tests/peers/peers.sh" || exit 99
if [ "${PEERS_TENSORFLOW:-0}" = 1 ]; then need_peer tensorflow/bin/python; else may_lack_peer tensorflow/bin/python; fi

python=$peers/tensorflow/bin/python
adapter=$TRANCHE_SOURCE_ROOT/adapters/tensorflow_workload.py

# The protocol itself: every line an event, as many steps as asked for, and a loss that falls on
# the one batch there is.
run env OMP_NUM_THREADS=1 "$python" "$adapter" --model cnn --size 32 --batch 4 --task training --steps 20
is_status 0 "twenty training steps by themselves"
"$python" - "$out" <<'END'
import json
import sys

events = [json.loads(line) for line in open(sys.argv[1])]
assert events[0]["event"] == "ready" and events[0]["framework"] == "tensorflow", events[0]
assert events[-1]["event"] == "done" and events[-1]["steps"] == 20, events[-1]
losses = [loss for event in events[1:-1] for loss in event["loss"]]
assert len(losses) == 20 and losses[-1] < losses[0], losses
END
ok $? "speak the protocol, and the loss falls"

for task in inference training; do
    run "$TRANCHE" bench one -m tf-cnn -S 3g -b 4 --task $task -d 0.5 --allow-invalid -o $task.csv -- \
        "$python" "$adapter" --model cnn --size 32 --batch 4 --task $task
    is_status 0 "TensorFlow in a slice: $task"
    file_has $task.csv "tf-cnn,a100-40gb,3g.20gb,4,1," "its row"
    file_has $task.csv ",tensorflow " "says what it ran in"
done
run "$TRANCHE" bench one -m app -S 7g -b 1 -d 0.5 --allow-invalid -o app.csv -- \
    "$python" "$adapter" --model MobileNetV2 --size 96
is_status 0 "a Keras application"
file_has app.csv "app,a100-40gb,7g.40gb,1,1," "its row"
run "$TRANCHE" bench one -m none -S 3g -b 1 -d 0.5 -- "$python" "$adapter" --model NoSuchNet
is_status 4 "a model that Keras does not have"
err_has "keras.applications has no model NoSuchNet" "is said"
finish
