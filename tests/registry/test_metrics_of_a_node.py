"""`/metrics` of a real node: all workers as one answer, an address of its own, limits, access, files."""

import base64
import contextlib
import http.client
import json
import os
import re
import signal
import socket
from contextlib import closing
from datetime import UTC, datetime

import pytest

from harness.certificates import Authority
from harness.metric_samples import samples_in
from harness.passwords import cheap_hash
from harness.registry import RegistryNode
from harness.waiting import until

BY_ID = {"method": "GET", "route": "/schemas/ids/{schema_id}"}


def ask(connection, method, path, body=None, **headers):
    """Send a request over a connection, and return status and body."""
    connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


class Metrics(dict):
    """The samples of one scrape, by name and labels, and those of them that may only grow."""

    def __init__(self, text):
        super().__init__()
        self.growing = {}
        for name, labels, value, kind in samples_in(text):
            self[name, frozenset(labels.items())] = value
            if kind in ("counter", "histogram"):
                self.growing[name, frozenset(labels.items())] = value

    def of(self, name, **labels):
        """Return the sum of the series of a name with some labels."""
        return sum(value for (found, given), value in self.items() if found == name and labels.items() <= given)


def scraped(node, **headers):
    """Return the metrics of a node, from whichever worker answers."""
    with closing(node.connect()) as connection:
        status, text = ask(connection, "GET", "/metrics", **headers)
    assert 200 == status, text
    return Metrics(text)


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """Run a node of three workers."""
    with RegistryNode(f"sqlite:///{tmp_path_factory.mktemp('node')}/strata.db", "--workers=3") as running:
        until(lambda: "ready in" in running.output)
        yield running


def test_workers_are_one_answer(node):
    """Counts are exact whichever worker answered and whichever is scraped, also after a worker was killed."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(closing(node.connect())) for _ in range(9)]
        assert 200 == ask(connections[0], "POST", "/subjects/s/versions", {"schema": '"int"'})[0]
        for connection in connections:
            for _ in range(10):
                assert 200 == ask(connection, "GET", "/schemas/ids/1")[0]
        for connection in connections:  # of any worker

            def counted(connection=connection):  # a request has ended for the client before its worker counts it
                found = Metrics(ask(connection, "GET", "/metrics")[1])
                return 90 <= found.of("strata_requests_total", **BY_ID) and found

            found = until(counted)
            assert 90 == found.of("strata_requests_total", **BY_ID)
            assert 1 == found.of("strata_requests_total", route="/subjects/{subject}/versions", status="2xx")
            assert 3 == found.of("strata_workers")
        until(lambda: 9 <= scraped(node).of("kafka_schema_registry_jetty_metrics_connections_active") <= 10)
        assert found.of("strata_connections_opened_total") >= 9
    victim = node.workers[-1]
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in node.workers and len(node.workers) == 3)
    troubles = AssertionError, OSError, http.client.HTTPException

    def whole():  # a scrape may have ended for the client before its worker counts it
        found = scraped(node)
        return (3, 1) == (found.of("strata_workers"), found.of("strata_requests_in_flight")) and found

    after = until(whole, *troubles)

    assert 90 == after.of("strata_requests_total", **BY_ID)
    assert 90 == after.of("strata_request_duration_seconds_count", **BY_ID)
    assert after.of("process_resident_memory_bytes") > 3 * 20_000_000


def test_no_counter_goes_back_when_workers_die(node):
    """Rates would jump: Prometheus takes a smaller number for a new count from zero."""
    with closing(node.connect()) as connection:  # the writer needs more CPU time than its successor needs to start
        for number in range(300):
            schema = {"type": "record", "name": f"R{number}", "fields": []}
            assert 200 == ask(connection, "POST", f"/subjects/{number}/versions", {"schema": json.dumps(schema)})[0]
    for victim in node.workers[:2]:
        before = scraped(node)
        os.kill(victim, signal.SIGKILL)
        until(lambda victim=victim: victim not in node.workers and len(node.workers) == 3)
        until(lambda: 3 == scraped(node).of("strata_workers"), AssertionError, OSError, http.client.HTTPException)
        after = scraped(node)

        assert {} == {key: number for key, number in before.growing.items() if after.get(key, -1) < number}


def test_what_the_server_refuses_is_counted(node):
    """Requests that do not reach the app count by code and limit."""
    before = scraped(node)
    with socket.create_connection(("127.0.0.1", node.port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000 + b"\r\n\r\n")
        assert b" 431 " in connection.recv(100)
    with closing(node.connect()) as connection:
        assert 413 == ask(connection, "POST", "/subjects/s/versions", {"schema": "x" * (2 << 20)})[0]

    names = [
        ("strata_errors_total", {"code": "431"}),
        ("strata_limits_hit_total", {"limit": "header_size"}),
        ("strata_errors_total", {"code": "413"}),
        ("strata_limits_hit_total", {"limit": "body_size"}),
    ]

    def moved():
        after = scraped(node)
        return [1] * 4 == [after.of(name, **labels) - before.of(name, **labels) for name, labels in names]

    until(moved)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Run a node with all that is counted only if it is on; return it, its address for metrics, and its folder."""
    folder = tmp_path_factory.mktemp("guarded")
    authority = Authority(folder)
    pair = authority.issue("registry")
    users = [{"name": name, "password": str(cheap_hash(name))} for name in ("alice", "root")]
    folder.joinpath("auth.yaml").write_text(json.dumps({"users": users}))
    options = [f"--auth-file={folder}/auth.yaml", "--superusers=User:root", f"--audit={folder}/audit.jsonl",
               f"--tls-certfile={pair.cert}", f"--tls-keyfile={pair.key}", "--metrics-listen=127.0.0.1:0",
               "--rate-limit=0.002", "--rate-burst-seconds=3600"]  # fmt: skip
    context = authority.context()
    with RegistryNode("memory:", *options, tls=context) as running:
        port = int(until(lambda: re.search(r"metrics at 127\.0\.0\.1:(\d+)", running.output))[1])
        yield running, lambda: http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context), folder


def basic(user):
    """Return the header with a user's password."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{user}".encode()).decode()}


def test_an_address_of_their_own(guarded):
    """There any client gets the metrics and nothing else; at the registry's address no client does."""
    node, scrape, _ = guarded
    with closing(scrape()) as connection:
        assert 200 == ask(connection, "GET", "/metrics")[0]
        assert 404 == ask(connection, "GET", "/subjects")[0]
        assert 404 == ask(connection, "POST", "/metrics", {})[0]
    with closing(node.connect()) as connection:
        assert 401 == ask(connection, "GET", "/metrics")[0]
        assert 404 == ask(connection, "GET", "/metrics", **basic("root"))[0]


def test_access_audit_and_files(guarded):
    """Requests count by mechanism and outcome, lines of the audit when they are written; files show their state."""
    node, scrape, folder = guarded

    def now():
        with closing(scrape()) as connection:
            return Metrics(ask(connection, "GET", "/metrics")[1])

    before, lines = now(), len((folder / "audit.jsonl").read_text().splitlines())
    with closing(node.connect()) as connection:
        assert 200 == ask(connection, "POST", "/subjects/s/versions", {"schema": '"int"'}, **basic("root"))[0]
        assert 403 == ask(connection, "DELETE", "/subjects/s", **basic("alice"))[0]
        assert 401 == ask(connection, "GET", "/subjects")[0]
        statuses = [ask(connection, "GET", "/subjects", **basic("alice"))[0] for _ in range(20)]
    after = now()
    throttled = statuses.count(429)
    wanted = [
        ("strata_access_requests_total", {"mechanism": "basic", "outcome": "allowed"}, 1 + statuses.count(200)),
        ("strata_access_requests_total", {"mechanism": "basic", "outcome": "forbidden"}, 1),
        ("strata_access_requests_total", {"mechanism": "none", "outcome": "unauthorized"}, 1),
        ("strata_access_requests_total", {"mechanism": "basic", "outcome": "throttled"}, throttled),
        ("strata_limits_hit_total", {"limit": "request_rate"}, throttled),
        ("strata_errors_total", {"code": "40301"}, 1),
        ("strata_audit_lines_total", {"outcome": "written"},
         len((folder / "audit.jsonl").read_text().splitlines()) - lines),
    ]  # fmt: skip

    assert throttled > 0
    for name, labels, expected in wanted:
        assert (name, labels, expected) == (name, labels, after.of(name, **labels) - before.of(name, **labels))
    assert 1 == after.of("strata_auth_file_in_force")
    ends = after.of("strata_certificate_expiry_timestamp_seconds", certificate="server")
    assert ends > datetime.now(UTC).timestamp()
    assert ends == after.of("kafka_schema_registry_certificate_expiration_keystore")
    (folder / "auth.yaml").write_text("users: no list")
    until(lambda: now().of("strata_auth_file_in_force") == 0 and now().of("strata_auth_file_failures_total") == 1)
