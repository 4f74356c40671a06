#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""src/kube against a real API server: what its own tests assume of one."""
import os
import subprocess

from cluster import Authority, Checks, Client, Cluster, wait_for
from probe import Probe, kind

GROUP = "test.tranche.dev"
WIDGET = kind(GROUP, "v1", "widgets", "Widget")
DEFINITION = kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
CONFIG_MAP = kind("", "v1", "configmaps", "ConfigMap")
NODE = kind("", "v1", "nodes", "Node", False)
PATH = f"/apis/{GROUP}/v1/namespaces/default/widgets"
checks = Checks()
ok, equal = checks.ok, checks.equal


def widget(name, **spec):
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def definition():
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{GROUP}"}, "spec": {
                "group": GROUP, "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                              "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                                  "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                                           "properties": {"size": {"type": "integer", "minimum": 0}}},
                                  "status": {"type": "object",
                                             "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


def on(verb, name, **more):
    return {"verb": verb, "of": WIDGET, "namespace": "default", "name": name} | more


def test_definition(probe, cluster):
    equal(probe.call("create", DEFINITION, body=definition())["status"], 201, "a definition is created")

    def established():
        got = probe.call("get", DEFINITION, name=f"widgets.{GROUP}")
        return any(c["type"] == "Established" and c["status"] == "True"
                   for c in got["json"].get("status", {}).get("conditions") or [])

    ok(wait_for("the definition", established), "and becomes established")
    cluster.wait_served()


def test_objects(probe):
    made = probe.call("create", WIDGET, namespace="default", body=widget("a", size=1, shape={"deep": [1, 2]}))
    equal((made["status"], made["error"]), (201, "E_NONE"), "an object is created")
    again = probe.call("create", WIDGET, namespace="default", body=widget("a", size=1))
    equal((again["status"], again["error"], again["reason"], again["sent"], again["unknown"]),
          (409, "E_CONFLICT", "AlreadyExists", 1, False), "creating it again is a conflict, known and sent once")
    bad = probe.call("create", WIDGET, namespace="default", body=widget("bad", size=-1))
    equal((bad["status"], bad["error"]), (422, "E_INPUT"), "the schema is kept")
    ok("spec.size" in bad["text"], "and the message names the field", bad["text"])
    missing = probe.call(**on("get", "nothing"))
    equal((missing["status"], missing["error"]), (404, "E_NOT_FOUND"), "what is not there is not found")
    patched = probe.call(**on("merge", "a", body={"spec": {"size": 2}}))
    equal(patched["json"]["spec"], {"size": 2, "shape": {"deep": [1, 2]}}, "a merge patch leaves other fields")
    stale = probe.call(**on("merge", "a", body={
        "metadata": {"resourceVersion": made["json"]["metadata"]["resourceVersion"]}, "spec": {"size": 3}}))
    equal((stale["status"], stale["error"], stale["reason"], stale["sent"]), (409, "E_CONFLICT", "Conflict", 1),
          "a patch that is tied to an old version is refused, and not sent again")
    fresh = probe.call(**on("merge", "a", body={
        "metadata": {"resourceVersion": patched["json"]["metadata"]["resourceVersion"]}, "spec": {"size": 3}}))
    equal((fresh["status"], fresh["json"]["spec"]["size"]), (200, 3), "tied to the newest it is carried out")


def test_deletion(probe, cluster):
    first = cluster.admin.get(f"{PATH}/a")["metadata"]
    wrong = probe.call(**on("delete", "a", uid="00000000-0000-0000-0000-000000000000"))
    equal((wrong["status"], wrong["error"]), (409, "E_CONFLICT"), "a deletion of another UID is refused")
    wrong = probe.call(**on("delete", "a", resource_version="1"))
    equal((wrong["status"], wrong["error"]), (409, "E_CONFLICT"), "and of another version")
    probe.call(**on("merge", "a", body={"metadata": {"finalizers": [f"{GROUP}/drain"]}}))
    gone = probe.call(**on("delete", "a", uid=first["uid"]))
    equal(gone["status"], 200, "a deletion of the right UID is taken")
    held = probe.call(**on("get", "a"))["json"]["metadata"]
    ok("deletionTimestamp" in held and held["finalizers"] == [f"{GROUP}/drain"], "a finalizer holds the object", held)
    probe.call(**on("merge", "a", body={"metadata": {"finalizers": None}}))
    equal(probe.call(**on("get", "a"))["status"], 404, "without it the object goes")


def test_apply(probe, cluster):
    made = probe.call(**on("apply", "b", body=widget("b", size=1, colour="red")))
    equal((made["status"], made["error"]), (201, "E_NONE"), "an apply creates")
    same = probe.call(**on("apply", "b", body=widget("b", size=1, colour="red")))
    equal((same["status"], same["json"]["metadata"]["resourceVersion"]),
          (200, made["json"]["metadata"]["resourceVersion"]), "the same apply changes nothing, not even the version")
    cluster.admin.apply(f"{PATH}/b", widget("b", size=5), manager="somebody", force=True)
    refused = probe.call(**on("apply", "b", body=widget("b", size=2, colour="red")))
    equal((refused["status"], refused["error"], refused["reason"]), (409, "E_CONFLICT", "Conflict"),
          "a field of somebody else is not taken")
    ok("somebody" in refused["text"], "and the message names who", refused["text"])
    forced = probe.call(**on("apply", "b", body=widget("b", size=2, colour="red"), force=True))
    equal((forced["status"], forced["json"]["spec"]["size"]), (200, 2), "with force it is")
    owners = {m["manager"] for m in forced["json"]["metadata"]["managedFields"]}
    ok("kube-probe" in owners, "the field manager is ours", owners)
    less = probe.call(**on("apply", "b", body=widget("b", size=2)))
    equal(less["json"]["spec"], {"size": 2}, "a field that is applied no more goes")


def test_status(probe, cluster):
    before = cluster.admin.get(f"{PATH}/b")["metadata"]["generation"]
    conditions = [{"type": "Ready", "status": "True", "reason": "Done", "message": "", "observedGeneration": before,
                   "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "b"}, "status": {
        "conditions": conditions}}
    done = probe.call(**on("apply", "b", subresource="status", body=body, field_manager="probe-status"))
    equal(done["json"]["status"]["conditions"], conditions, "status is applied through its subresource")
    waited = cluster.kubectl("wait", "--for=condition=Ready", "widget/b", "--timeout=600s", check=False)
    equal(waited.returncode, 0, "kubectl wait understands the conditions")
    done = probe.call(**on("merge", "b", subresource="status", body={"status": {"count": 7}, "spec": {"size": 99}}))
    equal((done["json"]["status"]["count"], done["json"]["spec"]["size"], done["json"]["metadata"]["generation"]),
          (7, 2, before), "a patch of the status changes neither spec nor generation")
    done = probe.call(**on("merge", "b", body={"status": {"count": 8}, "spec": {"size": 4}}))
    equal((done["json"]["status"]["count"], done["json"]["metadata"]["generation"]), (7, before + 1),
          "a patch of the object changes no status")


def test_pages(probe, cluster):
    for index in range(25):
        cluster.admin.create(PATH, widget(f"page-{index:02}", size=index) | {"metadata": {
            "name": f"page-{index:02}", "labels": {"set": "pages"}}})
    names, token, pages = [], None, 0
    while True:
        got = probe.call("list", WIDGET, namespace="default", limit=7, label_selector="set=pages",
                         **({"continue": token} if token else {}))
        names += [item["metadata"]["name"] for item in got["json"]["items"]]
        pages += 1
        token = got["json"]["metadata"].get("continue")
        if not token:
            break
    equal(names, [f"page-{index:02}" for index in range(25)], "pages give every object once, in order")
    equal(pages, 4, "in as many pages as it takes")
    got = probe.call("list", WIDGET, namespace="default", limit=7,
                     **{"continue": "not a token"})
    equal((got["status"], got["error"]), (400, "E_INPUT"), "a wrong token is refused")


def test_unknown_answers(cluster):
    proxy = cluster.proxy()
    with Probe(cluster.kubeconfig("admin", proxy=proxy)) as probe:
        proxy.fault("POST", "/widgets", lose_answer=True)
        lost = probe.call("create", WIDGET, namespace="default", body=widget("lost"))
        equal((lost["unknown"], lost["sent"], cluster.admin.find(f"{PATH}/lost") is not None), (True, 1, True),
              "a create whose answer is lost is unknown, and was carried out")
        probe.call(**on("get", "lost"))
        proxy.fault("PATCH", "/widgets", lose_answer=True)
        before = proxy.count("PATCH")
        version = cluster.admin.get(f"{PATH}/lost")["metadata"]["resourceVersion"]
        lost = probe.call(**on("merge", "lost", body={"metadata": {"resourceVersion": version}, "spec": {"size": 9}}))
        equal((lost["unknown"], lost["sent"], proxy.count("PATCH") - before), (True, 1, 1),
              "so is a patch on a connection that was used before: it is not sent twice behind our back")
        proxy.fault("GET", "/widgets", status=429, retry_after=1, times=1)
        got = probe.call(**on("get", "lost"))
        equal((got["status"], got["sent"]), (200, 2), "429 is sent again")
        proxy.fault("GET", "/widgets", status=503, times=2)
        got = probe.call(**on("get", "lost"))
        equal((got["status"], got["sent"]), (200, 3), "so is a read after 503")
        proxy.fault("PATCH", "/widgets", status=503, times=1)
        version = cluster.admin.get(f"{PATH}/lost")["metadata"]["resourceVersion"]
        got = probe.call(**on("merge", "lost", body={"metadata": {"resourceVersion": version}, "spec": {"size": 1}}))
        equal((got["status"], got["sent"], got["unknown"]), (503, 1, True), "a patch tied to a version is not")
        proxy.fault("DELETE", "/widgets", lose_answer=True)
        got = probe.call(**on("delete", "lost"))
        ok(got["status"] == 404 and got["sent"] == 2 and cluster.admin.find(f"{PATH}/lost") is None,
           "a deletion whose answer is lost is sent again, and finds nothing", got)
    proxy.close()


def test_events(probe, cluster):
    widget_b = cluster.admin.get(f"{PATH}/b")
    node = cluster.admin.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    for _ in range(3):
        probe.send(op="event", kind=WIDGET, object=widget_b, reason="StepDone", action="Create", note="done")
    probe.send(op="event", kind=NODE, object=node, reason="Fenced", action="Fence", note="taken", warning=True)

    def events():
        return [e for e in cluster.admin.items("/apis/events.k8s.io/v1/events")
                if e.get("reportingController") == "tranche.dev/probe"]

    wait_for("events", lambda: len(events()) == 2)
    about = {e["regarding"]["kind"]: e for e in events()}
    equal((about["Widget"]["metadata"]["namespace"], about["Widget"]["regarding"]["uid"], about["Widget"]["type"]),
          ("default", widget_b["metadata"]["uid"], "Normal"), "an Event is beside its object")
    equal((about["Node"]["metadata"]["namespace"], about["Node"]["type"], about["Node"]["note"]),
          ("kube-system", "Warning", "taken"), "one about an object without namespace is in kube-system")
    series = wait_for("a series", lambda: next((e["series"] for e in events() if e.get("series")), None))
    equal(series["count"], 3, "the same thrice is one Event with a series")
    counts = probe.ask("events")
    equal((counts["created"], counts["failed"], counts["dropped"]), (2, 0, 0), "none failed")


def test_rights(cluster):
    with Probe(cluster.kubeconfig("tranche")) as probe:
        refused = probe.call(**on("get", "b"))
        equal((refused["status"], refused["error"], refused["reason"], refused["sent"]),
              (403, "E_USAGE", "Forbidden", 1), "without rights nothing is given")
        ok("widgets" in refused["text"] and "token" not in refused["text"], "and the message says what",
           refused["text"])
        cluster.user("tranche", [{"apiGroups": [GROUP], "resources": ["widgets"], "verbs": ["get"]}])
        ok(wait_for("rights", lambda: probe.call(**on("get", "b"))["status"] == 200), "with them it is")
        equal(probe.call(**on("merge", "b", body={"spec": {"size": 1}}))["status"], 403, "and no more than that")


def test_identities(cluster):
    with Probe(cluster.kubeconfig("cert", certificate=cluster.admin_certificate)) as probe:
        equal(probe.call(**on("get", "b"))["status"], 200, "a client certificate is taken")
    folder = f"{cluster.folder}/other"
    os.mkdir(folder)
    other, real = Authority(folder), cluster.authority
    cluster.authority = other
    config = cluster.kubeconfig("admin", name="wrong-authority")
    cluster.authority = real
    with Probe(config) as probe:
        got = probe.call(**on("get", "b", attempts=1))
        ok(got["status"] == 0 and got["error"] != "E_NONE", "a server of another authority is not talked to", got)
        ok("certificate" in got["text"].lower(), "and the message says why", got["text"])


def test_token_expiry(cluster):
    admin = cluster.admin
    account = admin.ensure("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "short"}})
    admin.apply("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/short", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "short"},
        "subjects": [{"kind": "ServiceAccount", "name": "short", "namespace": "default"}],
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}})
    cluster.wait_account("default", "short")
    path = f"{cluster.folder}/token"

    def write(seconds):
        token = cluster.authority.service_account_token(account, seconds, cluster.ISSUER)
        with open(path + ".new", "w") as file:
            file.write(token)
        os.rename(path + ".new", path)
        return Client(cluster.port, cluster.authority.certificate, token)

    write(3600)
    with Probe(cluster.kubeconfig("short", token_file=path)) as probe:
        equal(probe.call(**on("get", "b"))["status"], 200, "a service account's token is taken")
    with_short = write(5)
    with Probe(cluster.kubeconfig("short", token_file=path)) as probe:
        wait_for("the token's end", lambda: with_short.request("GET", "/api/v1/nodes")[0] == 401)
        got = probe.call(**on("get", "b"))
        equal((got["status"], got["error"]), (401, "E_USAGE"), "one that ran out is refused")
        write(3600)
        equal(probe.call(**on("get", "b"))["status"], 200, "the new one is read from the file at once")


def test_one_connection(cluster):
    with Probe(cluster.kubeconfig("admin")) as probe:
        probe.send(op="watch", kind=WIDGET)
        probe.hear(lambda m: m["heard"] == "synced")
        numbers = [probe.send(op="call", verb="get", kind=WIDGET, namespace="default", name="b") for _ in range(40)]
        equal({probe.answer(number)["status"] for number in numbers}, {200}, "40 calls at once are answered")
        equal(probe.connections(), 1, "they and a watch share one connection: HTTP/2")


def main():
    subprocess.run(["openssl", "version"], check=True, capture_output=True)
    with Cluster() as cluster, Probe(cluster.kubeconfig("admin")) as probe:
        test_definition(probe, cluster)
        test_objects(probe)
        test_deletion(probe, cluster)
        test_apply(probe, cluster)
        test_status(probe, cluster)
        test_pages(probe, cluster)
        test_unknown_answers(cluster)
        test_events(probe, cluster)
        test_rights(cluster)
        test_identities(cluster)
        test_token_expiry(cluster)
        test_one_connection(cluster)
    checks.finish()


if __name__ == "__main__":
    main()
