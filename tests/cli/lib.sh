# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# TAP for tests of the command line. A test file sources this, calls the functions below
# and ends with `finish`. Set by the build: TRANCHE (the program), TRANCHE_SOURCE_ROOT.
#
#   run COMMAND…                 runs it; $status, files $out and $err (stdin: /dev/null)
#   tranche ARGUMENT…            run the program with them
#   is_status N NAME             the exit status was N
#   out_is TEXT NAME             stdout was TEXT (final newlines aside)
#   out_has TEXT NAME            stdout contains TEXT; err_has, err_is likewise
#   out_empty NAME               stdout was empty; err_empty likewise
#   golden FILE NAME             stdout equals tests/cli/golden/FILE; UPDATE_GOLDEN=1 writes it
#   same_file A B NAME           the files are equal
#   fails N TEXT NAME ARGUMENT…  tranche ARGUMENT… exits with N, prints nothing, says TEXT
#   ok STATUS NAME               a check of one's own: `[ -s x ]; ok $? "x was written"`
#   skip REASON NAME             one skipped check
#   skip_missing REASON NAME     … for want of something that CI has: there it fails
#   skip_all REASON              the whole test, likewise (tests/skip_all.sh)
#
# $work is an empty folder of this test, removed at the end and made the working directory.
set -u
# shellcheck source=tests/skip_all.sh
. "$TRANCHE_SOURCE_ROOT/tests/skip_all.sh" || exit 99

golden_folder=$TRANCHE_SOURCE_ROOT/tests/cli/golden
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
mkdir "$work/in"
cd "$work/in" || exit 99
out=$work/out
err=$work/err
status=
last_command=
checks=0
export LC_ALL=C.UTF-8
unset NO_COLOR

run() {
    last_command=$*
    status=0
    "$@" >"$out" 2>"$err" </dev/null || status=$?
}

tranche() {
    run "$TRANCHE" "$@"
}

# One TAP line; on failure what was run and what it said.
ok() {
    checks=$((checks + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $checks - $2"
        return
    fi
    echo "not ok $checks - $2"
    {
        echo "command: $last_command"
        echo "status:  $status"
        echo "stdout:"
        head -c 2000 "$out"
        echo "stderr:"
        head -c 2000 "$err"
    } | sed 's/^/#   /'
    failed=1
}

failed=0

skip() {
    checks=$((checks + 1))
    echo "ok $checks - $2 # SKIP $1"
}

skip_missing() {
    if [ -n "${CI:-}" ]; then
        echo "# $1"
        ok 1 "$2"
    else
        skip "$1" "$2"
    fi
}

is_status() {
    [ "$status" -eq "$1" ]
    ok $? "$2"
}

file_is() {
    [ "$(cat "$1")" = "$2" ]
    ok $? "$3"
}

file_has() {
    grep -qF -e "$2" "$1"
    ok $? "$3"
}

out_is() { file_is "$out" "$1" "$2"; }
err_is() { file_is "$err" "$1" "$2"; }
out_has() { file_has "$out" "$1" "$2"; }
err_has() { file_has "$err" "$1" "$2"; }

out_empty() {
    [ ! -s "$out" ]
    ok $? "$1"
}

err_empty() {
    [ ! -s "$err" ]
    ok $? "$1"
}

same_file() {
    diff -u "$1" "$2" | head -40 | sed 's/^/#   /'
    cmp -s "$1" "$2"
    ok $? "$3"
}

golden() {
    if [ "${UPDATE_GOLDEN:-}" = 1 ]; then
        cp "$out" "$golden_folder/$1"
    fi
    same_file "$golden_folder/$1" "$out" "$2"
}

fails() {
    local expected=$1 text=$2 name=$3
    shift 3
    tranche "$@"
    if [ "$status" -eq "$expected" ] && [ ! -s "$out" ] && grep -qF -e "$text" "$err"; then
        ok 0 "$name"
    else
        echo "#   expected status $expected, no output, and: $text"
        ok 1 "$name"
    fi
}

finish() {
    echo "1..$checks"
    exit "$failed"
}
