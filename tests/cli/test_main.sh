#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The program as a whole: help, version, wrong command lines, exit statuses, failing output.
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

# Help and version.
tranche --version
is_status 0 "--version succeeds"
[[ $(cat "$out") =~ ^tranche\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
ok $? "--version is name and number"
tranche help --version
out_has "tranche " "--version after a command"
tranche --help
is_status 0 "--help succeeds"
out_has "commands:" "--help lists commands"
err_empty "--help says nothing on stderr"
cp "$out" "$work/root_help"
tranche help
same_file "$work/root_help" "$out" "help is --help"
tranche help help
cp "$out" "$work/help_help"
golden help_help.txt "help of a command"
tranche help --help
same_file "$work/help_help" "$out" "COMMAND --help is help COMMAND"
tranche --help help
same_file "$work/help_help" "$out" "--help before the command"
tranche -h
same_file "$work/root_help" "$out" "-h"
awk 'length($0) > 84 { exit 1 }' "$work/root_help"
ok $? "help fits 80 columns"

# Every command has help, and it names the exit through usage.
mapfile -t commands < <(sed -n '/^commands:/,/^$/s/^  \([a-z-]\{1,\}\).*/\1/p' "$work/root_help")
for command in "${commands[@]}"; do
    tranche help "$command"
    is_status 0 "help $command"
    out_has "usage: tranche $command" "help $command shows the usage"
done

# Wrong command lines: status 2, nothing on stdout, what is meant.
tranche
is_status 2 "no command"
out_empty "no command prints no result"
err_has "commands:" "no command: the help on stderr"
fails 2 "unknown command 'hlep' (did you mean 'help'?)" "unknown command" hlep
fails 2 "help:  tranche help" "how to get help" hlep
fails 2 "unknown command 'frobnicate'" "unknown command, none near" frobnicate
fails 2 "unknown command 'bogus'" "unknown command with --help" bogus --help
fails 2 "unknown command 'bogus'" "unknown command after --help" --help bogus
fails 2 "unknown command 'bogus'" "unknown command with --version" gpu --quiet bogus --version
fails 2 "unknown command 'nosuch'" "help of an unknown command" help nosuch
fails 2 "unknown option --vresion (did you mean --version?)" "unknown option" --vresion
fails 2 "unknown option --outptu (did you mean --output?)" "unknown option of a command" \
    help --outptu x
fails 2 "unknown option -Z" "unknown letter" help -Z
fails 2 "option --output needs a value, FILE" "missing value" help --output
fails 2 "option --output needs a value, FILE, but option --man follows" "option as value" \
    help --output --man
fails 2 "option --man takes no value, got 'x'" "value of a flag" help --man=x
fails 2 "option --completion is 'bahs', expected one of bash (did you mean 'bash'?)" \
    "wrong choice" help --completion bahs
fails 2 "usage: tranche help [OPTION…] [COMMAND…]" "usage line" help --man x

# Manual page and completion.
tranche help --man
is_status 0 "the manual page"
out_has ".SH EXIT STATUS" "the manual page has the exit statuses"
if command -v man >/dev/null; then
    MANWIDTH=80 man --warnings -l "$out" >"$work/rendered" 2>"$work/warnings"
    grep -q "EXIT STATUS" "$work/rendered" && [ ! -s "$work/warnings" ]
    ok $? "the manual page renders without warnings"
else
    skip "man is not installed" "the manual page renders"
fi
tranche help --completion bash
is_status 0 "the completion script"
bash -n "$out"
ok $? "the completion script is valid bash"
complete_words() { # WORD…: what completion offers for the last
    # shellcheck disable=SC2016
    bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tranche; echo "${COMPREPLY[@]}"' \
        "$out" "$@"
}
[ "$(complete_words tranche hel)" = help ]
ok $? "completes a command"
[ "$(complete_words tranche help --comp)" = --completion ]
ok $? "completes an option"
[ "$(complete_words tranche help --completion b)" = bash ]
ok $? "completes a choice"

# Where output goes.
tranche help -o page --man
is_status 0 "-o FILE"
out_empty "-o FILE prints nothing"
tranche help --man
same_file page "$out" "-o FILE has the output"
tranche help -o /nonexistent/page
is_status 4 "-o into a missing folder"
err_has "/nonexistent/page" "-o into a missing folder is named"
tranche help -o .
is_status 4 "-o onto a directory"
if [ -c /dev/full ]; then
    status=0
    "$TRANCHE" help --man >/dev/full 2>"$err" || status=$?
    is_status 4 "full disk"
    err_has "No space left on device" "full disk is named"
    status=0
    "$TRANCHE" --help >/dev/full 2>"$err" || status=$?
    is_status 4 "full disk, help"
else
    skip "no /dev/full" "full disk"
fi
mkdir small
(
    ulimit -f 1
    exec "$TRANCHE" help --man -o small/page 2>"$err"
)
status=$?
is_status 4 "no room for the file"
err_has "small/page" "no room for the file: it is named"
[ -z "$(ls -A small)" ]
ok $? "no room for the file: none is left, whole or in part"
cp page small/page
(
    ulimit -f 1
    exec "$TRANCHE" help --man -o small/page 2>"$err"
)
same_file page small/page "no room for the file: the one before is kept"
status=0
"$TRANCHE" help >&- 2>"$err" || status=$?
is_status 4 "closed stdout"
err_has "standard output" "closed stdout is named"
exec 3> >(:)
wait $!
status=0
"$TRANCHE" help --man >&3 2>"$err" || status=$?
exec 3>&-
is_status 4 "a reader that has left"
err_empty "a reader that has left gets no complaint"
finish
