# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Reports of users, by number, that a user of the program meets as a whole; those of layouts
# and drivers are in tests/gpu/test_user_reports.c.
# shellcheck source=tests/cli/lib.sh
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

export TRANCHE_SIM_FLEET=a100-40gb:2 TRANCHE_SIM_STATE=$work/state TRANCHE_MPS_DIR=$work/m

# R16: an autoscaler knows nothing of slices; the planner says how many GPUs of which geometry.
cat >services.yaml <<'EOF'
services:
  - {name: search, model: m, rate_rps: 1000, latency_ms: 100, percentile: mean}
latency_rule: batch
EOF
cat >measurements.csv <<'EOF'
model,board,slice,batch,procs,throughput_rps,latency_ms_mean
m,a100-40gb,7g.40gb,8,1,100,50
m,a100-40gb,1g.5gb,8,1,20,50
EOF
tranche plan -s services.yaml -m measurements.csv --fleet a100-40gb:2
is_status 1 "R16: two GPUs are not enough"
out_has "search (stock)" "R16: stock is what is missing"
tranche plan -s services.yaml -m measurements.csv
is_status 0 "R16: with as many as needed"
out_has "8 GPUs (8 x a100-40gb)" "R16: so many of this board"
out_has "1g.5gb@6=search" "R16: in this geometry"

# R18: a process computes on one MIG device; a partitioned GPU is never handed over as a whole.
tranche gpu apply --driver sim --gpu 0 '3g@0,3g@4'
fails 3 "name an instance, as in 0@0" "R18: not the whole of a partitioned GPU" mps env --driver sim 0
tranche mps env --driver sim 0@4
is_status 0 "R18: one instance"
cp "$out" environment
run grep -c "^export CUDA_VISIBLE_DEVICES='MIG-[0-9a-f-]*'$" environment
out_is 1 "U4: named by its UUID, alone"
finish
