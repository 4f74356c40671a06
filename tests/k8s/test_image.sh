#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The image, built without a container engine, inspected, and run in its own root.
#
#     test_image.sh BUILD
set -uo pipefail
source_root=${TRANCHE_SOURCE_ROOT:?}
build=$1
# shellcheck source=tests/skip_all.sh
. "$source_root/tests/skip_all.sh" || exit 99
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

check() { # NAME STATUS [FILE TO SHOW]
    number=$((number + 1))
    if [ "$2" = 0 ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        [ -z "${3:-}" ] || head -n 20 "$3" | sed 's/^/# /'
        failed=1
    fi
}

for tool in umoci skopeo; do
    command -v $tool >/dev/null || skip_all "no $tool: tools/setup.sh k8s"
done

"$source_root/tools/build_image.sh" "$build" "$work/image" 2>"$work/log"
check "build_image.sh" $? "$work/log"
tail -n 1 "$work/log" | sed 's/^/# /'
"$source_root/tools/build_image.sh" "$build" "$work/again" 2>"$work/log"
first=$(skopeo inspect "oci:$work/image:tranche" --format '{{.Digest}}')
[ -n "$first" ] && [ "$first" = "$(skopeo inspect "oci:$work/again:tranche" --format '{{.Digest}}')" ]
check "the same files give the same image" $? "$work/log"

skopeo inspect --config "oci:$work/image:tranche" >"$work/config"
python3 - "$work/config" <<'PYTHON' >"$work/log" 2>&1
import json, sys
config = json.load(open(sys.argv[1]))
assert config["os"] == "linux" and config["architecture"], config
assert config["config"]["Entrypoint"] == ["/usr/bin/tranche"], config
assert config["config"]["User"] == "65532:65532", config
assert config["config"]["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0", config
PYTHON
check "entry point, user and labels" $? "$work/log"
skopeo copy "oci:$work/image:tranche" "oci-archive:$work/tranche.tar" >"$work/log" 2>&1
check "skopeo makes an archive of it" $? "$work/log"

rootless=()
inside=(chroot --userspec=65532:65532 "$work/unpacked/rootfs")
if [ "$(id -u)" != 0 ]; then
    rootless=(--rootless)
    inside=(unshare -r chroot "$work/unpacked/rootfs")
fi
umoci unpack "${rootless[@]}" --image "$work/image:tranche" "$work/unpacked" >"$work/log" 2>&1
check "umoci unpacks it" $? "$work/log"
chmod 755 "$work" "$work/unpacked" # for the image's user

run() { # the program in its own root, with an empty environment
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "${inside[@]}" /usr/bin/tranche "$@"
}
run --version >"$work/log" 2>&1 && [ "$(cat "$work/log")" = "$("$build/tranche" --version)" ]
check "it runs in its root, as its user" $? "$work/log"
run layout place a100-40gb "3g 2g 1g" >"$work/log" 2>&1
check "and works there" $? "$work/log"
for command in controller agent; do
    run $command --help >"$work/log" 2>&1
    check "tranche $command is in it" $? "$work/log"
done
run controller --check --kubeconfig /nowhere >"$work/log" 2>&1
[ $? = 4 ]
check "without a cluster the check ends with 4" $? "$work/log"
[ ! -e "$work/unpacked/rootfs/bin/sh" ] && [ -z "$(find "$work/unpacked/rootfs" -perm /6000)" ]
check "no shell and no set-user-id file" $?
[ -s "$work/unpacked/rootfs/usr/share/doc/tranche/LICENSE" ]
check "licences are in it" $?
echo "1..$number"
exit $failed
