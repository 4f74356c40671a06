#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tranche layout check|place|enumerate|draw|diff.
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

board=a100-40gb
json() { python3 -c "import json, sys; x = json.load(sys.stdin); assert $1, x" <"$out"; }

# check
tranche layout check $board 4g.20gb@0,2g.10gb@4,1g.5gb@6
is_status 0 "a legal layout"
out_is "4g.20gb@0 2g.10gb@4 1g.5gb@6" "check prints the layout"
tranche layout check $board 1g@6 2g@4 4g@0
out_is "4g.20gb@0 2g.10gb@4 1g.5gb@6" "words, bare kinds, any order"
tranche layout check $board -
out_is "-" "the empty layout"
tranche layout check $board 3g,2g,1g,1g
is_status 0 "check chooses open starts"
out_is "2g.10gb@0 1g.5gb@2 1g.5gb@3 3g.20gb@4" "check prints the starts chosen"
tranche layout check rtxpro6000-96gb 2g+me.all@0,2g-me@6
is_status 0 "all media engines beside an instance without"
fails 1 "rule 2 (disjoint spans): 3g.20gb@0 and 2g.10gb@2 both take memory units 2 and 3" \
    "an overlap names rule and instances" layout check $board 3g@0,2g@2
fails 1 "rule 1 (starts): 2g.10gb@5" "an illegal start" layout check $board 2g@5
fails 1 "rule 3 (maximum of a profile): 1g.5gb+me@0, 1g.5gb+me@1" "too many of a profile" \
    layout check $board 1g+me@0,1g+me@1
fails 1 "rule 4 (engines): 1g.6gb+me@0, 2g.12gb+me@2: need 2 JPEG engines" "engines" \
    layout check a30-24gb 1g+me@0,2g+me@2
fails 1 "rule 5 (instances): 9 instances" "too many instances" layout check $board 9x1g
tranche layout check $board 3g@0,2g@2 --json
is_status 1 "a refusal in JSON exits with 1"
err_empty "a refusal in JSON says nothing on stderr"
json 'x["legal"] is False and len(x["reasons"]) == 1 and "3g.20gb@0" in x["reasons"][0]'
ok $? "a refusal in JSON has the reason"

# place
tranche layout place $board 3g,2g,1g,1g
is_status 0 "place"
out_is "2g.10gb@0 1g.5gb@2 1g.5gb@3 3g.20gb@4" "place prints full names and starts"
tranche layout place $board 2x2g --existing 3g@4
out_is "2g.10gb@0 2g.10gb@2 3g.20gb@4" "place beside existing instances"
tranche layout place $board 2g --existing -
out_is "2g.10gb@0" "nothing existing"
tranche layout place t4-16gb whole
out_is "whole@0" "a board without MIG"
fails 1 "4x1g.10gb and 3x1g.5gb take 11 memory units, a100-40gb has 8" \
    "slices add up, units do not" layout place $board 4x1g.10gb,3x1g
fails 1 "4g.20gb and 2x2g.10gb never fit together" "starts clash" layout place $board 4g,2x2g
fails 1 "3g.20gb has no free start beside 1g.5gb@0 1g.5gb@6" "existing instances in the way" \
    layout place $board 3g --existing 1g@0,1g@6
fails 1 "--existing: rule 2" "existing instances overlap" \
    layout place $board 1g --existing 3g@0,2g@2
fails 3 "an instance that is there has a start" "existing without start" \
    layout place $board 1g --existing 3g
tranche layout place $board 7g,1g --json
is_status 1 "a proof in JSON exits with 1"
json 'x["board"] == "a100-40gb" and not x["legal"] and "9 memory units" in x["reasons"][0]'
ok $? "a proof in JSON"
tranche layout place $board 2g,3g --json
json 'x["instances"] == [{"slice": "3g.20gb", "start": 0}, {"slice": "2g.10gb", "start": 4}]'
ok $? "a placement in JSON"

# enumerate
for counts in "base 298 19" "base+rev2 723 78" "base+me 1089 67" "full 2319 239"; do
    read -r universe all maximal <<<"$counts"
    tranche layout enumerate $board --universe "$universe" --count
    out_is "$all" "$universe: $all layouts"
    tranche layout enumerate $board --universe "$universe" --maximal --count
    out_is "$maximal" "$universe: $maximal maximal"
done
tranche layout enumerate $board --count
out_is 2319 "the default universe is full"
tranche layout enumerate a30-24gb --universe base
golden layout_enumerate_a30.txt "enumerate prints one layout a line"
tranche layout enumerate a30-24gb --universe base --maximal --json
json 'x["count"] == 5 == len(x["layouts"]) and x["maximal"] and x["universe"] == "base"'
ok $? "enumerate in JSON"
states=$TRANCHE_SOURCE_ROOT/../shared/facts/states
for list in "$states"/*.all.txt; do
    if [ ! -f "$list" ]; then
        skip "no ../shared/facts/states" "published lists"
        continue
    fi
    name=$(basename "$list" .all.txt)
    tranche layout enumerate "${name%%.*}" --universe "${name#*.}"
    same_file "$list" "$out" "the published list $name"
done

# draw
tranche layout draw $board 4g,2g,1g
golden layout_draw.txt "a picture in text"
tranche layout draw rtxpro6000-96gb 1g+me.all@0,2g-me@6 -o picture.svg
is_status 0 "a picture in SVG by the name of the file"
cp picture.svg "$out"
golden layout_draw.svg "a picture in SVG"
python3 -c 'import xml.dom.minidom, sys; xml.dom.minidom.parse(sys.argv[1])' picture.svg
ok $? "the SVG is well-formed XML"
tranche layout draw rtxpro6000-96gb 1g+me.all@0,2g-me@6 --format svg
same_file picture.svg "$out" "--format svg is the same picture"
tranche layout draw $board 4g --format text -o picture.svg
grep -q 4g.20gb picture.svg && ! grep -q "<svg" picture.svg
ok $? "--format goes before the name of the file"
if command -v rsvg-convert >/dev/null; then
    tranche layout draw $board 4g,2g,1g -o picture.svg
    run rsvg-convert picture.svg -o picture.png
    is_status 0 "rsvg-convert renders it"
else
    skip "rsvg-convert is not installed" "rsvg-convert renders it"
fi
[ "$(wc -L <"$golden_folder/layout_draw.txt")" -le 80 ]
ok $? "a picture fits a terminal of 80 columns"
fails 1 "rule 2" "an illegal layout is not drawn" layout draw $board 3g@0,2g@2

# diff
tranche layout diff $board 4g@0,2g@4,1g@6 4g@0,3g@4
out_is "keep   4g.20gb@0
remove 2g.10gb@4 1g.5gb@6
create 3g.20gb@4" "diff"
tranche layout diff $board - 7g
out_is "keep   -
remove -
create 7g.40gb@0" "diff from nothing, with an open start"
tranche layout diff $board 1g@3,3g@4 2x1g,3g
out_is "keep   1g.5gb@3 3g.20gb@4
remove -
create 1g.5gb@0" "open starts of TO are chosen so that the most stays"
tranche layout diff $board 4g@0,2g@4,1g@6 4g@0,3g@4 --format text
golden layout_diff.txt "diff as a picture"
tranche layout diff $board 4g@0 3g@0 --json
json 'x["keep"] == [] and x["create"] == [{"slice": "3g.20gb", "start": 0}]'
ok $? "diff in JSON"
fails 1 "TO: rule 2" "diff with an illegal layout" layout diff $board - 3g@0,2g@2
fails 3 "FROM: layout entry" "diff with a wrong layout" layout diff $board 3g@x 3g

# Wrong input.
fails 3 'unknown board "a100"' "unknown board" layout check a100 1g
fails 3 'no slice profile "5g"' "unknown profile" layout check $board 5g
fails 3 'no slice profile "5g"' "unknown profile, place" layout place $board 5g
fails 3 "layout entry \"1g@\"" "a start is missing" layout check $board 1g@
fails 3 "no text" "an empty layout text" layout check $board ""
fails 3 "after the comma" "a comma too many" layout place $board 1g,,2g
fails 2 "base|base+rev2|base+me|full" "unknown universe" \
    layout enumerate $board --universe me
fails 2 "usage: tranche layout check" "no layout" layout check $board
fails 2 "usage: tranche layout diff" "diff needs two" layout diff $board 1g
fails 2 "--format" "unknown format" layout draw $board 1g --format png
fails 2 "exclude each other" "format and JSON" layout diff $board 1g 2g --format svg --json
fails 4 "/nonexistent" "unwritable file" layout draw $board 1g -o /nonexistent/x.svg

# Numbers are said as they were written, each violation once, and further lines indented.
fails 1 "rule 5 (instances): 99999999999 instances, a100-40gb holds" "a large count" \
    layout check a100-40gb 99999999999x1g
fails 1 "more than 999999999999999 instances" "a count beyond counting" \
    layout check a100-40gb 99999999999999999999999x1g
fails 1 "1g.5gb@99999999999999: " "a large start" layout check a100-40gb 1g@99999999999999
tranche layout check a100-40gb 3x1g@0
[ "$(grep -c "rule 2 (disjoint spans): 1g.5gb@0 and 1g.5gb@0" "$err")" = 1 ]
ok $? "equal violations are said once"
tranche layout check a100-40gb 7g@0,7g@1
grep -q "^  rule " "$err" && ! grep -q "^rule " "$err"
ok $? "further lines are indented"
finish
