#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Renders the chart to plain YAML for those without Helm:
#
#     tools/render_install.sh [FOLDER]
#
#     FOLDER/install.yaml   everything, with both namespaces (kubectl apply --server-side)
#     FOLDER/cleanup.yaml   the Job to run before it is deleted (kubectl create)
#
# FOLDER is deploy by default. Helm is $HELM, or that of tools/setup_k8s.sh, or on the path.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/deploy}
helm=${HELM:-}
[ -n "$helm" ] || { [ -x "$root/build/k8s/helm" ] && helm=$root/build/k8s/helm; } || helm=$(command -v helm) || {
    echo "render_install: no helm: set \$HELM, or run tools/setup_k8s.sh build" >&2
    exit 4
}
mkdir -p "$folder"

render() { # NAME HEADLINE ARGUMENTS...
    local name=$1 headline=$2
    shift 2
    {
        printf '# SPDX-License-Identifier: Apache-2.0\n# %s\n# Made from deploy/chart by tools/render_install.sh.\n' "$headline"
        "$helm" template tranche "$root/deploy/chart/tranche" --namespace tranche-system "$@" 2>"$folder/.$name.log" |
            sed -e '/^# Source: /d' -e '/^ *app.kubernetes.io\/managed-by: Helm$/d' -e '/^ *helm.sh\//d' -e 's/[ \t]*$//'
    } >"$folder/.$name.new" || {
        cat "$folder/.$name.log" >&2
        rm -f "$folder/.$name.new" "$folder/.$name.log"
        exit 4
    }
    rm -f "$folder/.$name.log"
    mv "$folder/.$name.new" "$folder/$name"
}

render install.yaml "tranche: kubectl apply --server-side -f install.yaml" \
    --no-hooks --set namespaces.create=true --set crds.keep=false
render cleanup.yaml "Before tranche is deleted: kubectl create -f cleanup.yaml, and wait for the Job." \
    --set cleanup.asHook=false --show-only templates/cleanup.yaml
