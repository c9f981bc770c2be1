"""The figures under Confluent's names are those of the traffic, for all requests and for each endpoint."""

import json
import platform
import sys
import time
from collections import defaultdict
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from harness.access_questions import QUESTIONS
from harness.metric_samples import samples_in
from harness.registry import RegistryNode
from harness.waiting import until
from strata import __version__
from strata.registry.app import route_table
from strata.registry.features.metrics.confluent import ENDPOINTS
from strata.storage.log import MemoryLog
from strata.storage.record_json import encode
from strata.storage.records import KekKey, KekValue

ROUTES = route_table()

PREFIX = "kafka_schema_registry_"
JERSEY = f"{PREFIX}jersey_metrics_"
WINDOW_S = 30.0
NOT_API = "/metrics", "/health", "/docs", "/openapi", "/ui"
KEK = {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "arn"}
DEKS = "/dek-registry/v1/keks/k/deks"


def samples(text):
    """Return the values of a scrape, by name and value of the label."""
    return {(one.name, *one.labels.values()): one.value for one in samples_in(text)}


def scrape(api):
    """Return the values of a scrape."""
    return samples(api.get("/metrics")[1])


def figures(requests, window_s):
    """Return the figures of some requests in a window: bytes of both bodies, and status."""
    received, sent, statuses = zip(*requests, strict=True)
    count = len(requests)
    classes = {name: sum(status // 100 == int(name[0]) for status in statuses) for name in ("4xx", "5xx")}
    return {
        ("request_rate",): count / window_s, ("response_rate",): count / window_s,
        ("request_byte_rate",): sum(received) / window_s, ("response_byte_rate",): sum(sent) / window_s,
        ("request_size_avg",): sum(received) / count, ("response_size_avg",): sum(sent) / count,
        ("request_size_max",): max(received), ("response_size_max",): max(sent),
        **{("request_error_rate", name): number / window_s for name, number in classes.items()},
        ("request_error_rate", "unknown"): 0,
    }  # fmt: skip


def test_figures_of_requests_are_those_of_the_client(api):
    """Rates, sizes and errors are exact, and latencies below the client's own, together and for each endpoint."""
    asked, began = defaultdict(list), time.perf_counter()
    for method, path, body in [*QUESTIONS, ("GET", "/nowhere", None), ("POST", "/subjects/s/versions", b"{" * 999)]:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        status, _ = api.call(method, path, data or None)
        route = ROUTES.find(method, path.partition("?")[0].replace("/contexts/.c/", "/"))
        size = int(api.headers.get("content-length", 0))
        if not path.startswith(NOT_API):
            asked[(method, route.path) if route else None].append((len(data), size, status))
    found = scrape(api)
    waited = time.perf_counter() - began  # a request has ended for the client a moment before the service counts it

    groups = {"": [one for requests in asked.values() for one in requests]}
    for endpoint, routes in ENDPOINTS.items():
        groups[endpoint.lower().replace(".", "_").replace("-", "_") + "_"] = [r for at in routes for r in asked[at]]
    assert sum(map(bool, groups.values())) > 20
    window_s = len(groups[""]) / found[f"{JERSEY}request_rate",]
    assert WINDOW_S - 0.001 < window_s < max(WINDOW_S + 0.001, waited + 5)  # longer only if the requests took longer
    for prefix, requests in groups.items():
        if not requests:
            assert (f"{JERSEY}{prefix}request_rate",) not in found
            continue
        expected = {
            (f"{JERSEY}{prefix}{name}", *label): value for (name, *label), value in figures(requests, window_s).items()
        }
        assert expected == {key: pytest.approx(found[key]) for key in expected}
        average, p95, p99, most = (
            found[f"{JERSEY}{prefix}request_latency_{one}",] for one in ("avg", "95", "99", "max")
        )
        assert 0 < average <= most < 1000 * waited
        assert 0 < p95 <= p99 <= most


def test_keys_and_formats(start):
    """Keys of encryption count as they come and go; no format is one of a plug-in."""
    log = MemoryLog()
    api = start(log)
    counts = [f"{PREFIX}dek_registry_num_{name}" for name in ("keks", "keks_shared", "deks")]

    def now():
        found = scrape(api)
        return [found[name, "default"] for name in counts]

    assert [0, 0, 0] == now()
    assert 200 == api.post("/dek-registry/v1/keks", KEK)[0]
    shared = KekValue(
        "aws-kms", "arn", {}, None, shared=True, deleted=False, created=1
    )  # of another registry that wrote to the log before
    log.append(log.end(), [encode(KekKey("shared"), shared)])
    assert ["k", "shared"] == api.get("/dek-registry/v1/keks")[1]
    assert 200 == api.post(DEKS, {"subject": "s", "encryptedKeyMaterial": "QUJD"})[0]
    assert [2, 1, 1] == now()
    api.delete(f"{DEKS}/s")
    assert [2, 1, 1] == now()
    api.delete(f"{DEKS}/s?permanent=true")
    assert [2, 1, 0] == now()
    found = scrape(api)
    assert 1 == found[f"{PREFIX}app_info", __version__]
    assert len(api.get("/schemas/types")[1]) - 3 == found[f"{PREFIX}custom_schema_provider_count",]
    assert (f"{PREFIX}leader_initialization_latency",) not in found  # this log has no pen


def test_rates_of_connections():
    """Connections that are opened and closed count as such, those that stay open as active."""
    assert any(are_connections_counted() for _ in range(4))


def are_connections_counted():
    """Return whether the figures of a new node became those of the test while it was in its first windows."""
    began = time.monotonic()
    with RegistryNode("memory:") as node, closing(node.connect()) as connection, ExitStack() as stack:

        def now():
            connection.request("GET", "/metrics")
            found = samples(connection.getresponse().read().decode())
            names = ("active", "opened_rate", "accepted_rate", "closed_rate")
            active, *rates = [found[f"{PREFIX}jetty_metrics_connections_{name}",] for name in names]
            return [active, *(round(rate * WINDOW_S) for rate in rates)]

        def becomes(expected):
            while (is_so := expected == now()) is False and time.monotonic() < began + 25:
                time.sleep(0.02)
            return is_so

        while now()[0] > 1:  # the harness has waited for the node over other connections
            pass
        _, opened, _, closed = now()
        for _ in range(6):
            stack.enter_context(closing(node.connect())).connect()
        if not becomes([7, opened + 6, opened + 6, closed]):
            return False
        stack.close()
        return becomes([1, opened + 6, opened + 6, closed + 6])


def test_figures_of_the_process():
    """Memory, files, CPU and collections are those of the system, and move with traffic."""
    before = time.time()
    with RegistryNode("memory:") as node, ExitStack() as stack:

        def now():
            with closing(node.connect()) as connection:
                connection.request("GET", "/metrics")
                return samples(connection.getresponse().read().decode())

        def moved():
            for connection in connections:
                connection.request("GET", "/subjects?deleted=true")
                connection.getresponse().read()
            found = now()
            return found if found["process_cpu_seconds_total",] > first["process_cpu_seconds_total",] else None

        first = now()
        connections = [stack.enter_context(closing(node.connect())) for _ in range(50)]
        second = until(moved)  # the counter moves in steps of 10 ms
        with Path(f"/proc/{node.pid}/limits").open() as limits:
            most = next(int(line.split()[3]) for line in limits if line.startswith("Max open files"))
        with Path(f"/proc/{node.pid}/statm").open() as memory:
            pages = memory.read().split()

    assert before - 60 < first["process_start_time_seconds",] < time.time() + 60  # the system rounds it
    assert most == first["process_max_fds",]
    versions = map(str, sys.version_info[:3])
    assert 1 == first["python_info", "CPython", *versions, platform.python_version()]
    assert 45 <= second["process_open_fds",] - first["process_open_fds",] <= 55
    assert 0 < first["process_cpu_seconds_total",] < second["process_cpu_seconds_total",] < time.time() - before + 60
    assert second["process_resident_memory_bytes",] == pytest.approx(4096 * int(pages[1]), rel=0.2)
    assert second["process_virtual_memory_bytes",] == pytest.approx(4096 * int(pages[0]), rel=0.2)
    for name in ("collections", "objects_collected", "objects_uncollectable"):
        for generation in "012":
            key = f"python_gc_{name}_total", generation
            assert 0 <= first[key] <= second[key]
