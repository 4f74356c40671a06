# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# bench probe and bench compare.
# shellcheck source=tests/cli/lib.sh
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

tranche bench probe -f torch -f jax --python python3 --timeout 100
[ "$status" = 0 ]
ok $? "frameworks are asked"
out_has "jax" "one that may be absent is listed"
fails 2 "torch, tensorflow" "an unknown framework" bench probe -f nothing
fails 4 "--adapters" "no adapters" bench probe --adapters "$work"

mkdir broken
cat >broken/probe.py <<'END'
import sys
print('{"check": "import", "verdict": "pass", "detail": "1"}')
print('no JSON')
print('{"check": "infer", "verdict": "fail", "detail": "wrong"}')
END
tranche bench probe -f torch --adapters broken --json
is_status 1 "a failed check is exit status 1"
out_has '"schema": "tranche.probe/1"' "as JSON"
out_has '"detail": "wrong"' "with what was wrong"
echo 'import sys; sys.exit("no such thing")' >broken/probe.py
tranche bench probe -f torch --adapters broken
is_status 1 "a framework that crashes has failed"
out_has "no such thing" "and says why"
echo 'import time; time.sleep(60)' >broken/probe.py
tranche bench probe -f torch --adapters broken --timeout 1
out_has "no answer in time" "one that hangs is given up"

# Two results; B is A with half the throughput.
result() { # FILE FACTOR
    python3 - "$1" "$2" <<'END'
import json, sys
runs = [{"status": "ok", "verdict": "VALID", "verdict_reasons": [],
         "figures": {"throughput_rps": float(sys.argv[2]) * (100 + i)}} for i in range(4)]
json.dump({"schema": "tranche.result/1", "kind": "experiment", "provenance": {},
           "cells": [{"key": {"model": "m"}, "runs": runs}]}, open(sys.argv[1], "w"))
END
}
result a.json 1
result b.json 0.5
tranche bench compare a.json a.json
is_status 0 "a result is no worse than itself"
tranche bench compare a.json b.json
is_status 1 "half the throughput is a regression"
out_has "worse" "and is said"
tranche bench compare b.json a.json --test mann-whitney
is_status 0 "twice the throughput is none"
tranche bench compare a.json b.json --threshold 0.6
is_status 0 "within the threshold"
tranche bench compare a.json b.json --json
out_has '"outcome": "worse"' "as JSON"
echo '{"schema": "tranche.result/1", "kind": "experiment", "provenance": {}, "cells": []}' >c.json
tranche bench compare a.json c.json
is_status 1 "a missing cell is a regression"
tranche bench compare a.json c.json --allow-missing
is_status 0 "unless allowed"
echo "{}" >d.json
fails 3 "schema" "another document" bench compare a.json d.json

# Measurements compare by row.
measurements() { # FILE THROUGHPUT STATUS
    printf 'model,board,slice,batch,procs,throughput_rps,latency_ms_p99,status\n%s\n%s\n' \
        'm,a100-40gb,1g.5gb,1,1,100,10,ok' "m,a100-40gb,2g.10gb,1,1,$2,9,$3" >"$1"
}
measurements a.csv 200 ok
measurements b.csv 100 ok
measurements c.csv '' oom
tranche bench compare a.csv a.csv
is_status 0 "measurements are no worse than themselves"
out_has "0 worse, 0 better, 4 the same" "row by row"
out_has "no test is possible" "without a test, which is said"
tranche bench compare a.csv b.csv
is_status 1 "half the throughput is worse"
out_has "slice=2g.10gb" "in its row"
tranche bench compare a.csv b.csv --threshold 0.6
is_status 0 "unless within the threshold"
tranche bench compare a.csv b.csv --json
out_has '"test": "none"' "no test, in JSON"
tranche bench compare a.csv c.csv
is_status 1 "a row that is not ok in B is missing"
fails 3 "expected two of a kind" "a result and measurements" bench compare a.json a.csv
echo "x,y" >d.csv
fails 3 "(read as measurements, CSV; a result document of bench run is JSON)" "neither" bench compare d.csv d.csv
finish
