# SPDX-License-Identifier: Apache-2.0
"""A small API server in memory, for the node agent's tests: lists, watches, create, merge patch,
server-side apply and the status subresource, with resourceVersion and generation. Plain HTTP.

It checks nothing: that is the real server's business (tests/k8s). A spec or status that is
applied replaces the one before.
"""
import copy
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def merge(target, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    target = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merge(target.get(key), value)
    return target


class Api:
    """objects: by path ("/api/v1/nodes/n0"). writes: (method, path) of each that changed or
    might have changed something."""

    def __init__(self):
        self.lock = threading.Condition()
        self.objects = {}
        self.events = []  # (version, type, path, object)
        self.version = 0
        self.writes = []
        self.missing = set()  # collections that are not served
        self.broken = set()  # … whose connection ends before an answer
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                api.get(self)

            def do_POST(self):
                api.write(self, "POST")

            def do_PATCH(self):
                api.write(self, "PATCH")

            def do_DELETE(self):
                api.write(self, "DELETE")

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_):
                """A client that was killed: nothing to be said."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.ending = False
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.ending = True
        with self.lock:
            self.lock.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def kubeconfig(self, path):
        with open(path, "w") as file:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "t",
                       "contexts": [{"name": "t", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
                       "users": [{"name": "u", "user": {}}]}, file)
        return path

    # What tests do.

    def find(self, path):
        with self.lock:
            return copy.deepcopy(self.objects.get(path))

    def put(self, path, body, status=False):
        """Sets the whole object, or with status that part alone."""
        with self.lock:
            self.store(path, copy.deepcopy(body), status)

    def patch(self, path, body, status=False):
        with self.lock:
            self.store(path, merge(copy.deepcopy(self.objects[path]), body), status)

    def delete(self, path):
        with self.lock:
            gone = self.objects.pop(path)
            self.note("DELETED", path, gone)

    # With the lock held.

    def note(self, kind, path, body):
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, kind, path, copy.deepcopy(body)))
        self.lock.notify_all()

    def store(self, path, body, status):
        old = self.objects.get(path)
        meta = body.setdefault("metadata", {})
        meta["name"] = path.rsplit("/", 1)[1]
        if old is None:
            meta.setdefault("uid", f"uid-{self.version + 1}")
            meta["generation"] = 1
        else:
            kept = old["metadata"]
            meta["uid"] = kept["uid"]
            changed = body.get("spec") != old.get("spec") and not status
            meta["generation"] = kept["generation"] + changed
            meta["resourceVersion"] = kept["resourceVersion"]
            if body == old:
                return old
        self.objects[path] = body
        self.note("ADDED" if old is None else "MODIFIED", path, body)
        return body

    # The wire.

    @staticmethod
    def answer(request, status, body):
        data = json.dumps(body).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def refuse(self, request, status, reason):
        self.answer(request, status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
                                      "reason": reason, "message": reason})

    @staticmethod
    def selects(query, body):
        for term in filter(None, query.get("fieldSelector", "").split(",")):
            key, value = term.split("=", 1)
            at = body
            for part in key.split("."):
                at = at.get(part, {}) if isinstance(at, dict) else {}
            if at != value:
                return False
        return True

    def get(self, request):
        url = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if any(url.path.startswith(one) for one in self.broken):
            request.close_connection = True
            return None
        if any(url.path.startswith(one) for one in self.missing):
            return self.refuse(request, 404, "NotFound")
        if query.get("watch") in ("1", "true"):
            return self.watch(request, url.path, query)
        with self.lock:
            body = copy.deepcopy(self.objects.get(url.path))
            items = [copy.deepcopy(one) for path, one in self.objects.items()
                     if path.rsplit("/", 1)[0] == url.path and self.selects(query, one)]
            version = self.version
        if body is not None:
            return self.answer(request, 200, body)
        if url.path.rsplit("/", 1)[1] in ("nodes", "nodegpustates", "resourceslices"):
            return self.answer(request, 200, {"kind": "List", "apiVersion": "v1", "items": items,
                                              "metadata": {"resourceVersion": str(version)}})
        return self.refuse(request, 404, "NotFound")

    def watch(self, request, collection, query):
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        seen = int(query.get("resourceVersion", "0"))
        try:
            while not self.ending:
                with self.lock:
                    self.lock.wait_for(lambda: self.ending or self.version > seen, timeout=5)
                    news = [one for one in self.events if one[0] > seen]
                    seen = self.version
                for _, kind, path, body in news:
                    if path.rsplit("/", 1)[0] == collection and self.selects(query, body):
                        line = json.dumps({"type": kind, "object": body}).encode() + b"\n"
                        request.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                        request.wfile.flush()
        except OSError:
            pass
        request.close_connection = True

    def write(self, request, method):
        url = urllib.parse.urlsplit(request.path)
        length = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(length) or b"null")
        path = url.path
        status = path.endswith("/status")
        if status:
            path = path[:-len("/status")]
        with self.lock:
            self.writes.append((method, url.path))
            if method == "POST":
                path += "/" + body["metadata"].get("name", f"generated-{self.version}")
                if path in self.objects:
                    return self.refuse(request, 409, "AlreadyExists")
                return self.answer(request, 201, self.store(path, body, False))
            if path not in self.objects:
                return self.refuse(request, 404, "NotFound")
            if method == "DELETE":
                self.note("DELETED", path, self.objects.pop(path))
                return self.answer(request, 200, {"kind": "Status", "code": 200})
            new = copy.deepcopy(self.objects[path])
            if request.headers.get("Content-Type", "").startswith("application/apply-patch"):
                part = "status" if status else "spec"
                if part in body:
                    new[part] = body[part]
            else:
                new = merge(new, body)
            return self.answer(request, 200, self.store(path, new, status))
