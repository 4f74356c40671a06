# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# `tranche controller` without a cluster: its options, a server that is not there, its endpoints
# and its end; names that the options of `tranche agent` cannot have. With one: tests/k8s/test_controller.py.
# shellcheck source=tests/cli/lib.sh
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

unset KUBECONFIG KUBERNETES_SERVICE_HOST POD_NAME POD_NAMESPACE
export HOME=$work/in

tranche controller --help
is_status 0 "help"
out_has "--elect" "help names the options"

fails 2 "lease-seconds" "a Lease that is too short" controller --lease-seconds 1
fails 4 "kubeconfig" "no cluster is known" controller --once
fails 4 "no-such-file" "a kubeconfig that is not there" controller --once --kubeconfig no-such-file
echo "not: [a kubeconfig" >bad
fails 3 "bad" "a kubeconfig that cannot be read" controller --once --kubeconfig bad

# Port 9 of loopback: nobody listens there.
cat >nobody <<'EOF'
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {}}]
EOF
fails 2 "127.0.0.1:9090" "an address that is none" controller --kubeconfig nobody --listen localhost
fails 4 "cannot be read" "one round without a server" \
    controller --kubeconfig nobody --once --wait 0.5

fails 4 "127.0.0.1" "a check without a server" controller --kubeconfig nobody --check
fails 2 "deletes" "a clean-up is no dry run" controller --dry-run --clean-up
fails 2 "deletes" "a clean-up is no check" controller --check --clean-up
fails 2 "only reads" "a check is no round" controller --check --once
fails 2 "--namespace 'a/b'" "a namespace that is none" controller --namespace a/b --once
fails 2 "--lease-name ''" "a Lease without a name" controller --lease-name= --once
fails 2 "--pool '../p'" "a pool that cannot be" controller --pool ../p --once
export POD_NAMESPACE=-x
fails 2 "POD_NAMESPACE '-x'" "a namespace of the environment" controller --once
unset POD_NAMESPACE
fails 2 "--node-name '../../x'" "a node that cannot be" agent --node-name ../../x
export NODE_NAME=Gpu.1
fails 2 "NODE_NAME 'Gpu.1'" "a node of the environment" agent
unset NODE_NAME
fails 2 "--check" "JSON of no check" controller --once --json
fails 4 "127.0.0.1" "a clean-up without a server" \
    controller --kubeconfig nobody --clean-up --clean-up-seconds 0

# GET PATH: status line and body in $out.
get() {
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' "$1" >&3
    cat <&3 >"$out"
    exec 3>&-
}

"$TRANCHE" controller --kubeconfig nobody --elect --listen 127.0.0.1:0 2>"$err" &
process=$!
last_command="tranche controller"
port=
for _ in $(seq 600); do
    port=$(sed -n 's/.*"msg":"listening","port":"\([0-9]*\)".*/\1/p' "$err")
    [ -n "$port" ] && break
    sleep 0.1
done
[ -n "$port" ]
ok $? "it listens, and says so in JSON"
get /healthz
out_has "200 OK" "/healthz"
get /readyz
out_has "503" "/readyz without a cluster"
out_has "waiting for the cluster" "/readyz says why"
get /metrics
out_has "tranche_controller_leader 0" "/metrics"
kill -TERM $process
wait $process
status=$?
is_status 0 "SIGTERM ends it with 0"

finish
