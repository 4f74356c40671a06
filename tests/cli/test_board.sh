#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tranche board list|show.
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

tranche board list
is_status 0 "board list"
golden board_list.txt "board list prints every board"
tranche board list --json
python3 -c '
import json, sys
boards = json.load(sys.stdin)
assert len(boards) == 21, len(boards)
by = {board["board"]: board for board in boards}
assert by["a100-40gb"]["memory_units"] == 8 and by["a100-40gb"]["mig"] is True
assert by["t4-16gb"]["mig"] is False and by["t4-16gb"]["memory_mib"] == 15360
assert by["b200-180gb"]["memory_mib"] is None
' <"$out"
ok $? "board list --json has the boards, null where unknown"

for board in a100-40gb rtxpro6000-96gb t4-16gb; do
    tranche board show "$board"
    is_status 0 "board show $board"
    golden "board_show_$board.txt" "board show $board prints its table"
done
tranche board show a30-24gb --json
python3 -c '
import json, sys
board = json.load(sys.stdin)
profile = {p["name"]: p for p in board["profiles"]}["2g.12gb+me"]
assert profile["placement_starts"] == [0, 2] and profile["placement_size"] == 2
assert profile["profile_id"] == 6 and profile["kind"] == "2g+me"
assert profile["engines"] == {"decoders": 2, "encoders": 0, "jpeg": 1, "ofa": 1}
assert board["engine_limits"]["decoders"] == 4
assert [c["compute_slices"] for c in profile["compute_instance_profiles"]] == [1, 2]
' <"$out"
ok $? "board show --json has the profiles"
tranche board list -o list.txt
out_empty "-o prints nothing"
same_file "$golden_folder/board_list.txt" list.txt "-o writes the list"

fails 3 'unknown board "a100-4gb": did you mean a100-40gb?' "unknown board" board show a100-4gb
fails 3 'did you mean a100-40gb or a100-80gb?' "part of a slug" board show a100
fails 2 "usage: tranche board show" "no board" board show
fails 2 "usage: tranche board list" "too many arguments" board list a100-40gb
fails 4 "/nonexistent/x" "unwritable file" board list -o /nonexistent/x
finish
