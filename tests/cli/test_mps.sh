# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# `tranche mps` against a stand-in control program.
# shellcheck source=tests/cli/lib.sh
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

export TRANCHE_SIM_FLEET=a100-40gb:2 TRANCHE_SIM_STATE=$work/state TRANCHE_MPS_DIR=$work/m
export FAKE_MPS_LOG=$work/asked
control=$TRANCHE_SOURCE_ROOT/tests/gpu/fake_mps_control.sh

tranche gpu apply --gpu 0 '4g@0,3g@4'
tranche mps start 1 --control "$control" --active-threads 50
is_status 0 "start on a whole GPU"
out_has "MPS runs for GPU-" "it says for which"
fails 3 "name an instance, as in 0@0" "a partitioned GPU" mps start 0 --control "$control"
tranche mps start 0@4 --control "$control" --pinned-memory 4G
is_status 0 "start on an instance by its start"
run grep -c "set_default_device_pinned_mem_limit 0 4G" "$work/asked"
out_is 1 "the limit was set"
tranche mps status 0@4 --control "$control"
is_status 0 "status"
out_has "default active threads 100 %, no client yet" "status in words"
tranche mps status 0@4 --control "$control" --json
out_has '"running": true' "status in JSON"
tranche mps env 0@4 --active-threads 25
out_has "export CUDA_MPS_PIPE_DIRECTORY='$work/m/MIG-" "a client's environment"
out_has "export CUDA_MPS_ACTIVE_THREAD_PERCENTAGE='25'" "with its own limit"
tranche mps stop 0@4 --control "$control"
is_status 0 "stop"
tranche mps status 0@4 --control "$control"
is_status 1 "status of none: exit 1"
tranche mps status 1 --control "$control"
is_status 0 "the other device still runs"
fails 4 "cannot run nvidia-cuda-mps-control" "no MPS on this machine" mps start 0@0
finish
