# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# bench http and bench slo against a server of this test: documents, samples, refusals.
# shellcheck source=tests/cli/lib.sh
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

cat >server.py <<'END'
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_GET(self):
        status = 500 if self.path == "/broken" else 200
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *words):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
END
python3 server.py >port 2>/dev/null &
server=$!
trap 'kill $server; rm -rf "$work"' EXIT
for _ in $(seq 600); do
    [ -s port ] && break
    sleep 0.1
done
url=http://127.0.0.1:$(cat port)

tranche bench http "$url/" -d 0.5 --warmup 0.1 --min-requests 10 -o r.json --samples s.jsonl -n 2
[ "$status" -le 1 ] # INVALID where others take the CPU
ok $? "a closed loop"
out_has "requests/s answered" "says what came back"
python3 - <<'END'
import json
document = json.load(open("r.json"))
samples = [json.loads(line) for line in open("s.jsonl")]
(cell,) = document["cells"]
assert document["schema"] == "tranche.result/1" and len(cell["runs"]) == 2
assert len(samples) == sum(run["counts"]["completed"] for run in cell["runs"])
assert all(sample["end_ns"] > sample["intended_ns"] for sample in samples)
END
ok $? "its document and samples agree"
tranche bench http "$url/" -r constant:50 -d 1 --warmup 0 --min-requests 10 --json
out_has '"scheduled": 50' "an open loop sends what is due"
tranche bench http "$url/broken" -r constant:50 -d 0.5 --warmup 0
is_status 1 "failures make it INVALID"
out_has "first failure: status: 500" "and are said"
tranche bench slo "$url/" -l 30000 --first-rate 20 --highest-rate 20 -d 0.3 --warmup 0 --confirmations 1
is_status 0 "a rate that holds"
out_has "at least 20 requests/s" "is said with its bound"
fails 2 "https is not spoken" "https" bench http https://127.0.0.1/
fails 2 "expected http://" "no URL" bench http nowhere
fails 4 "is the server running" "nobody there" bench http http://127.0.0.1:1/
fails 2 "needs --model" "no model" bench http --api openai "$url"
fails 3 "poisson" "an arrival pattern that there is not" bench http -r often:1 "$url"
finish
