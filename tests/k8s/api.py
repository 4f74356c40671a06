# SPDX-License-Identifier: Apache-2.0
"""A plain client of the Kubernetes API for tests: one request, one answer, nothing hidden.

Paths are those of the API ("/api/v1/namespaces/default/pods/a"). Every thread has a
connection of its own. It is deliberately not the client under test.
"""
import http.client
import json
import os
import ssl
import threading
import time
import urllib.parse

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"  # JSON is YAML


# For a hung test; nothing is measured by it.
BOUND_S = int(os.environ.get("TRANCHE_K8S_BOUND_S", "600"))

# What a server says that starts, or that is too busy: the request is sent again.
BUSY = (429, 500, 503, 504)


class ApiError(Exception):
    """A refusal: .status is HTTP's, .reason and .message those of the Status object."""

    def __init__(self, method, path, status, answer):
        answer = answer if isinstance(answer, dict) else {"message": str(answer)}
        self.status = status
        self.reason = answer.get("reason", "")
        self.message = answer.get("message", "")
        super().__init__(f"{method} {path}: {status} {self.reason}: {self.message}")


class Client:
    """token, or certificate (a pair of files) says who asks. patience_s: how long a server that
    is away or busy is waited for; 0 for none."""

    def __init__(self, port, authority, token=None, certificate=None, patience_s=BOUND_S):
        self.port = port
        self.token = token
        self.patience_s = patience_s
        self.context = ssl.create_default_context(cafile=authority)
        if certificate:
            self.context.load_cert_chain(*certificate)
        self.local = threading.local()

    def connection(self, timeout=60):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.context)

    def headers(self, content_type=None):
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if content_type:
            headers["Content-Type"] = content_type
        return headers

    def send_once(self, method, path, body, content_type):
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = self.connection()
        try:
            connection.request(method, path, body, self.headers(content_type))
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self.local.connection = None
            raise
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode("utf-8", "replace")

    def request(self, method, path, body=None, content_type="application/json", query=None):
        """The status and the answer. A connection that breaks is made anew, and the request sent
        again, for patience_s; the same for BUSY. local.resent says that it was: a create may then
        meet its own object."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        data = None if body is None else json.dumps(body)
        until = time.monotonic() + self.patience_s
        self.local.resent = False
        while True:
            try:
                status, answer = self.send_once(method, path, data, content_type if data is not None else None)
                if status not in BUSY or time.monotonic() >= until:
                    return status, answer
                time.sleep(0.2)
            except (OSError, http.client.HTTPException):
                if time.monotonic() >= until:
                    raise
                time.sleep(0.05)
            self.local.resent = True

    def call(self, method, path, body=None, content_type="application/json", query=None):
        status, answer = self.request(method, path, body, content_type, query)
        if status >= 300:
            raise ApiError(method, path, status, answer)
        return answer

    def get(self, path, **query):
        return self.call("GET", path, query=query)

    def find(self, path):
        """The object, or None where there is none."""
        status, answer = self.request("GET", path)
        if status == 404:
            return None
        if status >= 300:
            raise ApiError("GET", path, status, answer)
        return answer

    def items(self, path, **query):
        return self.get(path, **query).get("items", [])

    def create(self, path, body):
        status, answer = self.request("POST", path, body)
        if status == 409 and self.local.resent:
            return self.get(f"{path}/{body['metadata']['name']}")
        if status >= 300:
            raise ApiError("POST", path, status, answer)
        return answer

    def ensure(self, path, body):
        """Creates it unless an object of that name is there."""
        status, answer = self.request("POST", path, body)
        if status >= 300 and status != 409:
            raise ApiError("POST", path, status, answer)
        return answer

    def apply(self, path, body, manager="test", force=True):
        return self.call("PATCH", path, body, APPLY, {"fieldManager": manager, "force": str(force).lower()})

    def merge(self, path, body):
        return self.patch(path, body, MERGE)

    def strategic(self, path, body):
        return self.patch(path, body, STRATEGIC)

    def patch(self, path, body, content_type):
        """One that is tied to no version is sent again when many write at once: the API server
        tries but a few times itself."""
        until = time.monotonic() + self.patience_s
        while True:
            try:
                return self.call("PATCH", path, body, content_type)
            except ApiError as error:
                tied = "resourceVersion" in body.get("metadata", {})
                if error.status != 409 or tied or time.monotonic() >= until:
                    raise
                time.sleep(0.05)

    def delete(self, path, grace_s=None, uid=None):
        """An object that is gone already is no error."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid:
            options["preconditions"] = {"uid": uid}
        status, answer = self.request("DELETE", path, options)
        if status >= 300 and status != 404:
            raise ApiError("DELETE", path, status, answer)
        return answer

    def watch(self, path, version, seconds=60, **query):
        """Yields events until the stream ends; it may end at any time."""
        query.update(watch="1", resourceVersion=version, timeoutSeconds=seconds, allowWatchBookmarks="true")
        connection = self.connection(timeout=seconds + 30)
        try:
            connection.request("GET", path + "?" + urllib.parse.urlencode(query), headers=self.headers())
            answer = connection.getresponse()
            if answer.status != 200:
                raise ApiError("GET", path, answer.status, json.loads(answer.read()))
            for line in answer:
                yield json.loads(line)
        except (OSError, http.client.HTTPException, ValueError):
            return
        finally:
            connection.close()


def wait_for(what, check, timeout_s=BOUND_S, every_s=0.1):
    """check()'s first true value. The bound is for a hung test, not a measure of speed."""
    until = time.monotonic() + timeout_s
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() >= until:
            raise TimeoutError(f"{what}: not within {timeout_s} s")
        time.sleep(every_s)
