# SPDX-License-Identifier: Apache-2.0
"""A proxy between a program under test and the API server that makes faults on order.

    proxy = cluster.proxy()
    proxy.fault("GET", r"/pods\\?.*watch=", cut_after=120)            # bytes of the answer's body
    proxy.fault("PATCH", "/transitions/", status=409, times=2)
    proxy.fault("*", "", status=429, retry_after=1, times=1)
    proxy.fault("POST", "/pods", lose_answer=True)                   # carried out, no answer
    proxy.fault("GET", "/pods", delay_s=0.5, times=-1)               # -1: until clear()
    proxy.fault("GET", r"/pods(\\?|$)", stale=True, times=-1)         # the first answer, again and again
    held = proxy.fault("GET", "watch=", hold=True, times=-1)         # answers wait...
    held = proxy.fault("GET", "watch=", hold_request=True)           # ...or requests do
    held.release()                                                   # ...and go on
    proxy.cut_all(); proxy.refuse(True)                              # connections
    proxy.requests                                                   # (method, path, status)
    proxy.expired()                                                  # watches that were told 410

It ends TLS with the API server's own certificate and speaks HTTP/1.1 on both sides; who asks is
known by token, since a client certificate does not pass. The first rule that matches decides.
"""
import http.client
import http.server
import json
import re
import socket
import ssl
import threading
import time

REASONS = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
           429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "host", "accept-encoding"}


class Rule:
    def __init__(self, method, pattern, times, effect):
        self.method = method
        self.pattern = re.compile(pattern)
        self.times = times
        self.effect = effect
        self.hits = 0
        self.held = 0  # times that something was there to be told, and waited
        self.kept = None  # of a stale rule: the answer
        self.released = threading.Event()

    def release(self):
        self.released.set()

    def take(self, method, path):
        if self.times == 0 or self.method not in ("*", method) or not self.pattern.search(path):
            return False
        self.hits += 1
        if self.times > 0:
            self.times -= 1
        return True


class Proxy:
    EFFECTS = {"cut_after", "status", "retry_after", "lose_answer", "lose_request", "delay_s", "stale", "hold",
               "hold_request", "chunk", "before", "after"}

    def __init__(self, port, authority, certificate):
        self.target = port
        self.rules = []
        self.requests = []
        self.decide = None
        self.refusing = False
        self.cuts = 0  # answers that were cut by cut_after
        self.lock = threading.Lock()
        self.sockets = set()
        self.upstream = ssl.create_default_context(cafile=authority)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        self.context = context
        proxy = self

        class Handler(_Handler):
            pass

        Handler.proxy = proxy
        self.server = _Server(("127.0.0.1", 0), Handler)
        self.server.proxy = proxy
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True).start()

    def fault(self, method, pattern, times=1, **effect):
        assert set(effect) <= self.EFFECTS, effect
        rule = Rule(method, pattern, times, effect)
        with self.lock:
            self.rules.append(rule)
        return rule

    def clear(self):
        with self.lock:
            rules, self.rules = self.rules, []
        for rule in rules:
            rule.release()

    def match(self, method, path):
        with self.lock:
            effect = self.decide(method, path, len(self.requests)) if self.decide else None
            if effect:
                return Rule(method, "", 1, effect)
            return next((rule for rule in self.rules if rule.take(method, path)), None)

    def refuse(self, on):
        """New connections are closed at once."""
        self.refusing = on

    def cut_all(self):
        with self.lock:
            sockets = list(self.sockets)
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def count(self, method="*", pattern=""):
        return sum(method in ("*", m) and bool(re.search(pattern, p)) for m, p, _ in list(self.requests))

    def expired(self):
        """Watches that were told that their version is too old: as a status, or in the stream."""
        return sum(status == 410 for _, _, status in list(self.requests))

    def close(self):
        self.clear()
        self.server.shutdown()
        self.server.server_close()
        self.cut_all()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def finish_request(self, request, address):
        if self.proxy.refusing:
            return
        request.settimeout(60)
        with self.proxy.context.wrap_socket(request, server_side=True) as secured:
            secured.settimeout(None)
            with self.proxy.lock:
                self.proxy.sockets.add(secured)
            try:
                self.RequestHandlerClass(secured, address, self)
            finally:
                with self.proxy.lock:
                    self.proxy.sockets.discard(secured)

    def handle_error(self, request, address):
        pass  # clients that go away are what this is for


class _Cut(Exception):
    pass


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def log_message(self, *_):
        pass

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
        rule = self.proxy.match(self.command, self.path)
        effect = rule.effect if rule else {}
        entry = [self.command, self.path, None]
        self.proxy.requests.append(entry)
        try:
            self.answer(body, rule, effect, entry)
        except (OSError, http.client.HTTPException, _Cut):
            self.close_connection = True
            try:
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = forward

    def answer(self, body, rule, effect, entry):
        if effect.get("delay_s"):
            time.sleep(effect["delay_s"])
        if effect.get("hold_request"):
            rule.released.wait()
        if effect.get("before") and effect["before"]():
            raise _Cut
        if effect.get("lose_request"):
            raise _Cut
        if effect.get("status"):
            entry[2] = effect["status"]
            self.refuse(effect["status"], effect.get("retry_after"))
            return
        if effect.get("stale") and rule.kept:
            entry[2] = rule.kept[0]
            self.send_whole(*rule.kept)
            return
        upstream = http.client.HTTPSConnection("127.0.0.1", self.proxy.target, timeout=700,
                                               context=self.proxy.upstream)
        try:
            upstream.request(self.command, self.path, body,
                             {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP})
            answer = upstream.getresponse()
            entry[2] = answer.status
            if effect.get("after") or effect.get("lose_answer"):
                text = answer.read()
                if effect.get("lose_answer") or (effect.get("after") and effect["after"](answer.status, text)):
                    raise _Cut
                self.send_whole(answer.status, [
                    ("Content-Type", answer.getheader("Content-Type") or "application/json")], text)
                return
            self.pass_on(answer, rule, effect, entry)
        finally:
            upstream.close()

    def refuse(self, status, retry_after):
        text = json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                           "message": "a fault on order", "reason": REASONS.get(status, "Unknown"),
                           "code": status}).encode()
        headers = [("Content-Type", "application/json")]
        if retry_after is not None:
            headers.append(("Retry-After", str(retry_after)))
        self.send_whole(status, headers, text)

    def send_whole(self, status, headers, text):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def pass_on(self, answer, rule, effect, entry):
        headers = [(k, v) for k, v in answer.getheaders() if k.lower() not in HOP_BY_HOP]
        if effect.get("stale"):
            rule.kept = (answer.status, headers, answer.read())
            self.send_whole(*rule.kept)
            return
        if answer.getheader("Content-Length") and "cut_after" not in effect:
            self.send_whole(answer.status, headers, answer.read())
            return
        self.send_response(answer.status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        left = effect.get("cut_after", -1)
        if left == 0:
            self.cut()
        told = b""
        while True:
            data = answer.read1(effect.get("chunk", 65536))
            if effect.get("hold") and data and not rule.released.is_set():
                rule.held += 1
                rule.released.wait()
            if not data:
                break
            told = told[-512:] + data
            if b'"type":"ERROR"' in told and b'"code":410' in told:
                entry[2] = 410
            part = data if left < 0 else data[:left]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            if left >= 0:
                left -= len(part)
                if left == 0:
                    self.cut()
        self.wfile.write(b"0\r\n\r\n")

    def cut(self):
        with self.proxy.lock:
            self.proxy.cuts += 1
        raise _Cut
