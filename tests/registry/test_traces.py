"""Traces: a real receiver of OpenTelemetry's protocol gets spans that join the client and all nodes."""

import hashlib
import http.client
import json
import os
import subprocess
import sys
from contextlib import closing
from itertools import count
from uuid import uuid4

import pytest
from click.testing import CliRunner

from harness.otlp import OtlpReceiver
from harness.registry import RegistryNode
from harness.waiting import until
from strata.registry.commands.cli import main
from strata.registry.features.tracing.tracer import is_configured

SERVER, CLIENT, INTERNAL = 2, 3, 1
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
# What an application does that has OpenTelemetry.
APPLICATION = """
import sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from strata.serdes import RegistryClient

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
with trace.get_tracer("application").start_as_current_span("work"):
    print(RegistryClient(sys.argv[1]).register("orders-value", '"int"').schema_id)
"""


@pytest.fixture
def receiver(monkeypatch):
    """Run a receiver, to which processes that are started from now on send their spans at once."""
    with OtlpReceiver() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield running


def call(node, method, path, body=None, **headers):
    """Send one request to a node and return status and answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)) as connection:
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, response.read()


def register_as_an_application(node):
    """Register a schema from a process of its own, which traces what it does."""
    command = [sys.executable, "-c", APPLICATION, node.url]
    env = os.environ | {"OTEL_SERVICE_NAME": "application"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert "1\n" == ended.stdout, ended.stderr


ROUTE = "POST /subjects/{subject}/versions"
PATH = [("application", "work"), ("application", "schema registry POST"), ("node", ROUTE), ("holder", ROUTE)]


@pytest.mark.kafka
def test_one_trace_from_the_client_to_the_holder_of_the_pen(receiver, monkeypatch, kafka_broker):
    """A write that a node forwards is one trace: application, client, node, holder, and the holder's append."""
    spans = until(lambda: _forwarded(receiver, monkeypatch, kafka_broker))
    by_name = {(span.service, span.name): span for span in spans}
    chain = [by_name[key] for key in PATH]

    assert [""] + [span.span_id for span in chain[:-1]] == [span.parent_id for span in chain]
    assert [INTERNAL, CLIENT, SERVER, SERVER] == [span.kind for span in chain]
    parts = [span.name for span in spans if span.parent_id == chain[-1].span_id]
    assert "log append" in parts
    assert "decide" in parts
    written = chain[-1].attributes
    assert ("orders-value", 1) != (written["strata.subject"], written["strata.schema_id"])
    assert hashlib.sha256(b"orders-value").hexdigest()[:16] == written["strata.subject"]
    assert (1, 200) == (written["strata.schema_id"], written["http.response.status_code"])
    assert written["strata.offset"] > 0


def _forwarded(receiver, monkeypatch, broker):
    """Return the spans of a write that a new node forwards; None if its holder was paused and then passed over."""
    receiver.spans.clear()
    url = f"kafka://{broker.bootstrap}/traces-{uuid4().hex}"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "holder")
    with RegistryNode(url) as holder:
        assert 200 == call(holder, "PUT", "/config", {"compatibility": "NONE"})[0]
        monkeypatch.setenv("OTEL_SERVICE_NAME", "node")
        with RegistryNode(url) as node:
            register_as_an_application(node)
            if "does not respond, taking over" in node.output:
                return None
            return until(lambda: _joined(receiver))


def _joined(receiver):
    """Return the spans of the application's trace, once it has the whole path and the holder's parts."""
    received = [*receiver.spans]
    traces = {span.trace_id for span in received if span.name == "work"}
    spans = [span for span in received if span.trace_id in traces]
    found = {(span.service, span.name) for span in spans}
    return spans if found >= {*PATH, ("holder", "decide"), ("holder", "log append")} else None


def test_one_trace_across_workers(receiver, tmp_path):
    """A write that a worker passes on is one trace: the request, the same in the worker that writes, its append."""
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", "--workers=2", "--trace-subjects=name") as node:
        until(lambda: "ready in" in node.output)
        numbers = count()

        def passed_on():
            """Register a schema; return the spans of a write that was passed on, in both workers."""
            assert 200 == call(node, "POST", f"/subjects/s{next(numbers)}/versions", {"schema": '"int"'})[0]
            ids = {span.span_id: span for span in [*receiver.spans] if span.kind == SERVER}
            return next(((ids[span.parent_id], span) for span in ids.values() if span.parent_id in ids), None)

        outer, inner = until(passed_on)
        append = until(lambda: [one for one in receiver.spans if one.parent_id == inner.span_id])

    assert (outer.trace_id, outer.name) == (inner.trace_id, inner.name)
    assert outer.attributes["strata.subject"] == inner.attributes["strata.subject"]
    assert outer.attributes["strata.request_id"] == inner.attributes["strata.request_id"]
    assert {"decide", "log append"} >= {span.name for span in append}


def test_spans_of_requests(receiver, tmp_path):
    """Each request is a span with route, status and schema id, and the log has its trace id; a 5xx is an error."""
    given = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", "--log-format=json", "--access-log") as node:
        assert 200 == call(node, "POST", "/subjects/s/versions", {"schema": '"int"'}, **given)[0]
        assert 200 == call(node, "GET", "/schemas/ids/1", **given)[0]
        assert 404 == call(node, "GET", "/subjects/none/versions", **given)[0]
        assert 200 == call(node, "POST", "/compatibility/subjects/s/versions", {"schema": '"int"'}, **given)[0]
        assert 200 == call(node, "HEAD", "/subjects", **given)[0]
        assert 404 == call(node, "GET", "/nowhere", **given)[0]
        (tmp_path / "strata.db").rename(tmp_path / "gone.db")
        assert 503 == call(node, "GET", "/mode", **given)[0]
        # A node that ends sends the rest for a few seconds only.
        until(lambda: [span for span in [*receiver.spans] if span.name == "GET /mode" and span.kind == SERVER])
        node.terminate()
        lines = [json.loads(line) for line in node.output.splitlines()]
    mine = [span for span in receiver.spans if span.trace_id == TRACE]
    requests = {
        span.name: (span.attributes["http.response.status_code"], span.failed) for span in mine if span.kind == SERVER
    }

    assert {
        "POST /subjects/{subject}/versions": (200, False),
        "GET /schemas/ids/{schema_id}": (200, False),
        "GET /subjects/{subject}/versions": (404, False),
        "POST /compatibility/subjects/{subject}/versions": (200, False),
        "HEAD /subjects": (200, False),
        "GET": (404, False),
        "GET /mode": (503, True),
    } == requests
    assert {PARENT} == {span.parent_id for span in mine if span.kind == SERVER}
    assert {"decide", "log append", "log read", "check"} == {span.name for span in mine if span.kind == INTERNAL}
    assert {"strata"} == {span.service for span in mine}
    [read] = [span for span in mine if span.name == "GET /schemas/ids/{schema_id}"]
    assert 1 == read.attributes["strata.schema_id"]
    assert all(span.began <= span.ended for span in mine)
    assert {TRACE} == {line["trace_id"] for line in lines if line.get("event") == "request" and line["path"] != "/"}


def test_hot_reads_have_spans_and_new_traces_reach_the_log(receiver, tmp_path):
    """A read from memory has a span with its route; a request without a trace begins one, which its answer keeps."""
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db") as node:
        assert 200 == call(node, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]
        for _ in range(3):
            assert 200 == call(node, "GET", "/schemas/ids/1?format=")[0]

        def reads_sent():
            return [span for span in [*receiver.spans] if span.name == "GET /schemas/ids/{schema_id}"]

        reads = until(lambda: len(found := reads_sent()) == 3 and found)
        node.terminate()
        output = node.output
    [write] = [span for span in receiver.spans if span.name == "POST /subjects/{subject}/versions"]

    assert 3 == len({span.trace_id for span in reads})
    assert f"trace_id={write.trace_id}" in output


def test_a_collector_that_is_away_delays_nothing(tmp_path, monkeypatch):
    """Requests are answered, the log has few lines about it, and the node ends without waiting for retries."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    with RegistryNode("memory:") as node:
        for _ in range(20):
            assert 200 == call(node, "GET", "/subjects")[0]
        until(lambda: "Connection refused" in node.output)
        assert 0 == node.terminate(grace_s=30)

        assert "Traceback" not in node.output
        assert node.output.count("\n") < 20


@pytest.mark.usefixtures("logging_as_before")
def test_a_missing_package_is_named(monkeypatch):
    """A node that is configured for traces and lacks OpenTelemetry does not start, and says what to install."""
    for name in [name for name in sys.modules if name.startswith("opentelemetry.exporter")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    command = ["serve", "--log=memory:", "--listen=127.0.0.1:0"]
    ended = CliRunner(env={"OTEL_TRACES_EXPORTER": "otlp"}).invoke(main, command)

    assert 2 == ended.exit_code
    assert "install strata-registry[otel]" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("variables", "on"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "strata"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, False),
    ],
)
def test_the_standard_variables_switch_traces_on(variables, on):
    """Traces are on if a variable names the exporter or its address, and none switches them off."""
    assert on is is_configured(variables)
