# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# `tranche gpu` on the simulated driver, without root, and on a machine without any.
# shellcheck source=tests/cli/lib.sh
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

unset TRANCHE_SIM TRANCHE_SIM_FLEET TRANCHE_SIM_STATE TRANCHE_STATE_DIR

# --- no driver: exit 4, and what was looked for ---
export TRANCHE_NVML_LIBRARY=$work/none/libnvidia-ml.so.1
for command in list export "apply 3g" "assert 3g" clear enable-mig disable-mig; do
    # shellcheck disable=SC2086
    fails 4 "looked for $TRANCHE_NVML_LIBRARY" "gpu $command without a driver" gpu $command --driver nvml
done
unset TRANCHE_NVML_LIBRARY

# --- a simulated machine ---
export TRANCHE_SIM_FLEET=a100-40gb:2,h100-80gb-sxm5:1 TRANCHE_SIM_STATE=$work/state
tranche gpu list
is_status 0 "list"
out_has "h100-80gb-sxm5" "the boards are named"
tranche gpu list --json
out_has '"schema": "tranche.gpus/1"' "list --json"
tranche gpu enable-mig
is_status 0 "enable-mig on all GPUs"
tranche gpu apply --gpu 0 --layout '4g@0,2g@4,1g@6'
is_status 0 "apply a layout"
out_has "done, read back and equal" "apply reads back"
tranche gpu apply --gpu 0 --layout '4g@0,2g@4,1g@6'
out_has "nothing to do" "the same again is nothing"
tranche gpu apply --gpu 0 --dry-run '4g@0,1g@4,1g@5'
out_has "keeps 4g.20gb@0, destroys 2g.10gb@4 1g.5gb@6, creates 1g.5gb@4 1g.5gb@5" "a dry run says what stays"
tranche gpu assert --gpu 0 '4g@0,2g@4,1g@6'
is_status 0 "the dry run changed nothing"
tranche gpu assert --gpu 0 '7g'
is_status 1 "assert differs: exit 1"
out_has "wanted is 7g.40gb" "assert says what differs"

# --- mig-parted's format ---
cat >config.yaml <<'EOF'
version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
  all-balanced:
    - device-filter: "0x20B010DE"
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.5gb": 2
        "2g.10gb": 1
        "3g.20gb": 1
    - device-filter: ["0x233010DE"]
      devices: [2]
      mig-enabled: true
      mig-devices:
        "1c.3g.40gb": 3
EOF
tranche gpu apply -f config.yaml -c all-balanced
is_status 0 "apply a config"
tranche gpu assert config.yaml all-balanced
is_status 0 "assert it"
tranche gpu export -o exported.yaml
tranche gpu assert exported.yaml
is_status 0 "what export wrote is what there is"
tranche gpu export --format layout -o exported.txt
tranche gpu clear 0 1
is_status 0 "clear two GPUs"
tranche gpu assert exported.yaml
is_status 1 "cleared"
tranche gpu apply exported.txt
is_status 0 "apply the layout file"
tranche gpu export --format layout -o again.txt
same_file exported.txt again.txt "layouts come back with their starts"
fails 3 'there is no config "all-balance", did you mean "all-balanced"?' "a wrong config name" \
    gpu apply config.yaml all-balance
fails 3 "which config?" "no config name" gpu apply config.yaml
# A file that asks for nothing is no request, neither met nor unmet.
: >empty.yaml
printf '# none yet\n\n' >comment.txt
printf 'version: v1\n' >truncated.yaml
printf '0: 4g@0\n  1' >truncated.txt
for verb in apply assert; do
    fails 3 'empty.yaml:1:1: the file is empty, expected lines "GPU: LAYOUT"' "$verb: an empty file" \
        gpu $verb -f empty.yaml
    fails 3 'comment.txt:3:1: the file ends without a layout, expected lines' "$verb: comments only" \
        gpu $verb -f comment.txt
    fails 3 'truncated.yaml:1:1: there is no mig-configs' "$verb: a config cut short" \
        gpu $verb -f truncated.yaml
    fails 3 'truncated.txt:2:3: expected "GPU: LAYOUT"' "$verb: a layout file cut short" \
        gpu $verb -f truncated.txt
done
fails 1 "rule 2 (disjoint spans)" "an impossible layout" gpu apply --gpu 0 '4x1g.10gb,3x1g.5gb'
fails 3 "there is no GPU \"9\"" "a GPU that is not there" gpu apply --gpu 9 3g
fails 3 'has no slice profile "9g"' "a profile that is not there" gpu apply --gpu 0 9g
fails 2 "give a config file" "nothing asked for" gpu apply
fails 2 "exclude each other" "resume and rollback" gpu apply --resume --rollback
fails 4 "no change was cut short" "nothing to resume" gpu apply --resume

# --- a change cut short ---
TRANCHE_SIM_FAULTS='DeviceCreateGpuInstanceWithPlacement nth 2: kill' tranche gpu apply --gpu 0 7x1g
[ "$status" -ge 128 ]
ok $? "killed between two steps"
tranche gpu apply --rollback
is_status 0 "rolled back"
tranche gpu export --format layout -o again.txt
same_file exported.txt again.txt "the old layouts are there again"
TRANCHE_SIM_FAULTS='DeviceCreateGpuInstanceWithPlacement nth 2: kill' tranche gpu apply --gpu 0 7x1g
tranche gpu apply --gpu 0 7x1g
is_status 0 "the same command carries on"
err_has "was cut short; carrying on with it" "and says so"
tranche gpu assert --gpu 0 7x1g
is_status 0 "to the end"
TRANCHE_SIM_FAULTS='DeviceCreateGpuInstanceWithPlacement nth 1: error INSUFFICIENT_RESOURCES' tranche gpu apply --gpu 0 3g
is_status 4 "a failed step"
err_has "the old layout was restored" "takes everything back"
tranche gpu disable-mig
is_status 0 "disable-mig"
tranche gpu assert config.yaml all-disabled
is_status 0 "no MIG anywhere"

# --- a simulator that cannot keep its state, or has a fleet that is none ---
for path in "$work" /dev/null /dev/full; do
    TRANCHE_SIM_STATE=$path tranche gpu list
    is_status 4 "state in $path"
    err_has "simulated NVML: $path: " "it is named"
    ! grep -qF -e "kernel module" -e ": Success" "$err"
    ok $? "as the simulator's, not the driver's"
done
# shellcheck disable=SC2016
full_disk='mount -t tmpfs -o size=8k none . && cd . && cd "$PWD" && TRANCHE_SIM_STATE=$PWD/state "$1" gpu list
code=$?
[ ! -e state ] || echo "a state was left" >&2
exit $code'
mkdir full
if (cd full && unshare -rm mount -t tmpfs none .) 2>/dev/null; then
    cd full || exit 99
    run unshare -rm sh -c "$full_disk" sh "$TRANCHE"
    cd .. || exit 99
    is_status 4 "a full disk"
    err_has "state: cannot write the simulated machine's state: No space left on device" "why"
    ! grep -qF -e "kernel module" -e "was left" "$err"
    ok $? "no partial state"
else
    skip "no mount name spaces" "a full disk"
fi
rm -f "$work/new"
for fleet in x zz:1 a100-40gb:0 'a100-40gb:*'; do
    TRANCHE_SIM_FLEET=$fleet TRANCHE_SIM_STATE=$work/new fails 3 "TRANCHE_SIM_FLEET: fleet entry \"$fleet\"" \
        "fleet $fleet" gpu list
done
[ ! -e "$work/new" ]
ok $? "a wrong fleet makes no state"
finish
