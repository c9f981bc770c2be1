"""Observers learn of every record, look-up, request and rule; the ready ones count them."""

import json
import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry

from strata.serdes import (
    AsyncSerializer,
    AvroDeserializer,
    AvroSerializer,
    DecodeError,
    EncodeError,
    FrameError,
    JsonDeserializer,
    RegistryClient,
    RegistryError,
    RegistryUnavailable,
    Rule,
    RuleError,
    RuleSet,
    Schema,
    SchemaError,
)
from strata.serdes.observer import Observer
from strata.serdes.otel_observer import OpenTelemetryObserver
from strata.serdes.prometheus_observer import PrometheusObserver

FLIGHT = '{"type": "record", "name": "F", "fields": [{"name": "delay", "type": "int"}]}'
POSITIVE = RuleSet(
    domain_rules=(Rule(name="positive", kind="CONDITION", mode="WRITE", type="CEL", expr="message.delay >= 0"),)
)


class Noted(Observer):
    """An observer that keeps what it learns."""

    def __init__(self):
        self.records, self.lookups, self.requests, self.rules = [], [], [], []

    def record(self, *facts):
        """Keep a record."""
        self.records.append(facts)

    def cached(self, operation, *, hit):
        """Keep a look into the cache."""
        self.lookups.append((operation, hit))

    def request(self, *facts):
        """Keep a request."""
        self.requests.append(facts)

    def rule(self, *facts, failed):
        """Keep a run of a rule."""
        self.rules.append((*facts, failed))

    def skipped(self, *facts):
        """Keep a rule that did not run."""
        self.rules.append((*facts, "skipped"))


@pytest.fixture
def noted(registry_url):
    """Return a client and what its observer learns."""
    observer = Noted()
    with RegistryClient(registry_url, observer=observer, missing_ttl=0) as client:
        yield client, observer


def test_good_records(noted):
    """Each record is noted once; only the first of a schema misses the cache and sends a request."""
    client, observer = noted
    serialize, read = AvroSerializer(client, FLIGHT), AvroDeserializer(client, FLIGHT)
    for number in range(3):
        assert {"delay": number} == read(serialize({"delay": number}, topic="good"))
    assert serialize(None, topic="good") is None

    assert {("encode", "AVRO", "ok"): 3, ("decode", "AVRO", "ok"): 3} == _counted(observer.records)
    assert [("encode", False), ("decode", False)] + 2 * [("encode", True), ("decode", True)] == observer.lookups
    associations, writes, reads = observer.requests
    assert [("GET", 200), ("POST", 200), ("GET", 200)] == [one[:2] for one in (associations, writes, reads)]
    assert all(0 < seconds < 60 for _, _, seconds in observer.requests)


def _counted(items):
    return {item: items.count(item) for item in items}


@pytest.mark.parametrize(
    ("data", "error", "outcome"),
    [
        (b"{oops", FrameError, "no_frame"),
        (b"\0\0\0\0\1", DecodeError, "truncated"),
        (b"\0\0\0\0\1\2\2", DecodeError, "trailing_bytes"),
        (b"\0\x7f\xff\xff\xff\2", RegistryError, "unknown_schema"),
    ],
)
def test_bad_frames(noted, data, error, outcome):
    """A frame that cannot be decoded is noted with the reason."""
    client, observer = noted
    first = client.register("bad-frames", FLIGHT).schema_id
    data = data.replace(b"\0\0\0\0\1", b"\0" + first.to_bytes(4), 1)
    with pytest.raises(error):
        AvroDeserializer(client, FLIGHT)(data)

    assert [("decode", "AVRO", outcome)] == observer.records


def test_other_failures(noted):
    """Values that do not fit, schemas of another format and a silent registry have outcomes of their own."""
    client, observer = noted
    serialize = AvroSerializer(client, FLIGHT)
    with pytest.raises(EncodeError):
        serialize({"delay": "x"}, topic="other")
    frame = serialize({"delay": 1}, topic="other")
    with pytest.raises(SchemaError):
        JsonDeserializer(client)(frame)
    silent = Noted()
    with RegistryClient("http://127.0.0.1:9", observer=silent, retries=0) as away, pytest.raises(RegistryUnavailable):
        AvroSerializer(away, FLIGHT)({"delay": 1}, topic="other")

    assert ["encode_error", "ok", "schema_error"] == [record[2] for record in observer.records]
    assert [("encode", "AVRO", "registry_unavailable")] == silent.records
    assert [("GET", None)] == [request[:2] for request in silent.requests]


def test_rules(noted):
    """Each run of a rule is noted with its mode, subject, name, action and outcome."""
    client, observer = noted
    client.register("ruled-value", Schema(FLIGHT, rule_set=POSITIVE))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    serialize = AvroSerializer(client, FLIGHT, conf=conf)
    serialize({"delay": 1}, topic="ruled")
    with pytest.raises(RuleError):
        serialize({"delay": -1}, topic="ruled")

    run = "CEL", "WRITE", "ruled-value", "positive"
    assert [(*run, "NONE", False), (*run, "ERROR", True)] == observer.rules
    assert ["ok", "rule_error"] == [record[2] for record in observer.records]


DISABLED = Rule(name="off", kind="CONDITION", mode="WRITE", type="CEL", expr="false", disabled=True)
UPPER = [
    Rule(name=name, kind="TRANSFORM", mode="WRITE", type="CEL_FIELD", tags=frozenset({"PII"}), expr="value")
    for name in ("first", "again")
]


def test_skipped_rules(noted):
    """A disabled rule, one that repeats another, and one that has sent the record here before are noted as skipped."""
    client, observer = noted
    rules = RuleSet(domain_rules=(DISABLED, *UPPER, *POSITIVE.domain_rules))
    client.register("skipping-value", Schema(FLIGHT, rule_set=rules))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    serialize = AvroSerializer(client, FLIGHT, conf=conf)
    serialize({"delay": 1}, topic="skipping")
    serialize({"delay": -1}, SimpleNamespace(topic="skipping", field="value", headers=[("__rule.name", b"positive")]))

    assert observer.rules == [
        ("CEL", "WRITE", "skipping-value", "off", "skipped"),
        ("CEL_FIELD", "WRITE", "skipping-value", "first", "NONE", False),
        ("CEL_FIELD", "WRITE", "skipping-value", "again", "skipped"),
        ("CEL", "WRITE", "skipping-value", "positive", "NONE", False),
        ("CEL", "WRITE", "skipping-value", "off", "skipped"),
        ("CEL_FIELD", "WRITE", "skipping-value", "first", "NONE", False),
        ("CEL_FIELD", "WRITE", "skipping-value", "again", "skipped"),
        ("CEL", "WRITE", "skipping-value", "positive", "skipped"),
    ]
    assert ["ok", "ok"] == [record[2] for record in observer.records]


COUNTS = """
import json, pickle, sys
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import REGISTRY
reader = InMemoryMetricReader()
set_meter_provider(MeterProvider([reader]))
for file in sys.argv[1:]:
    read, frame = pickle.load(open(file, "rb"))
    for _ in range(3):
        assert read(frame) == {"delay": 7}
    again, _ = pickle.load(open(file, "rb"))
    assert again(frame) == {"delay": 7}
labels = {"operation": "decode", "format": "AVRO", "outcome": "ok"}
metrics = (metric for resource in reader.get_metrics_data().resource_metrics
           for scope in resource.scope_metrics for metric in scope.metrics)
print(json.dumps({
    "prometheus": REGISTRY.get_sample_value("strata_serde_records_total", labels),
    "otel": next(one.data.data_points[0].value for one in metrics if one.name == "strata.serde.records"),
}))
"""


def test_copies_in_another_process_count_there(registry_url, tmp_path):
    """A pickled deserializer reports in the process that has it, each copy of it to the same metrics."""
    files = {PrometheusObserver: tmp_path / "prometheus", OpenTelemetryObserver: tmp_path / "otel"}
    for observer, file in files.items():
        with RegistryClient(registry_url, observer=observer()) as client:
            frame = AvroSerializer(client, FLIGHT)({"delay": 7}, topic="elsewhere")
            file.write_bytes(pickle.dumps((AvroDeserializer(client, FLIGHT), frame)))

    command = [sys.executable, "-c", COUNTS, *files.values()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    assert {"prometheus": 4, "otel": 4} == json.loads(done.stdout)


@pytest.mark.anyio
async def test_asyncio(noted):
    """The awaitable forms report as the plain ones do."""
    client, observer = noted
    serialize = AsyncSerializer(AvroSerializer(client, FLIGHT))
    await serialize({"delay": 1}, topic="async")
    await serialize({"delay": 2}, topic="async")

    assert 2 * [("encode", "AVRO", "ok")] == observer.records
    assert [("encode", False), ("encode", True)] == observer.lookups


def test_without_an_observer_nothing_is_in_the_way(registry_url):
    """A serializer without an observer has the methods of its class; an observer of one's own is not pickled."""
    with RegistryClient(registry_url) as client:
        plain = AvroSerializer(client, FLIGHT)
    with RegistryClient(registry_url, observer=Noted()) as client:
        copy = pickle.loads(pickle.dumps(AvroSerializer(client, FLIGHT)))

    for serializer in (plain, copy):
        assert not {"known", "target", "write"} & vars(serializer).keys()


def test_prometheus(registry_url):
    """The ready observer counts in metrics, those of rules under Confluent's names."""
    metrics = CollectorRegistry()
    with RegistryClient(registry_url, observer=PrometheusObserver(metrics)) as client:
        _work(client, "prometheus")

    def value(name, **labels):
        return metrics.get_sample_value(name, labels)

    rule = {"rule_type": "CEL", "rule_mode": "WRITE", "subject": "prometheus-value", "rule_name": "positive"}
    assert 2 == value("strata_serde_records_total", operation="encode", format="AVRO", outcome="ok")
    assert 1 == value("strata_serde_records_total", operation="encode", format="AVRO", outcome="rule_error")
    assert 2 == value("strata_serde_schema_cache_total", operation="encode", result="hit")
    assert 1 == value("strata_serde_request_seconds_count", method="POST", status="200")
    assert (3, 2, 1) == tuple(value(f"rule_{name}_total", **rule) for name in ("executions", "success", "failure"))
    assert 1 == value("rule_actions_total", **rule, action="ERROR")
    assert value("rule_last_success_timestamp_ms", **rule) > 1e12


def test_opentelemetry(registry_url):
    """The other ready observer counts the same in OpenTelemetry's metrics."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    with RegistryClient(registry_url, observer=OpenTelemetryObserver(provider)) as client:
        _work(client, "opentelemetry")
    found = {
        metric.name: {
            tuple(sorted(point.attributes.values(), key=str)): getattr(point, "value", None) or point.count
            for point in metric.data.data_points
        }
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    provider.shutdown()

    rule = ("CEL", "WRITE", "opentelemetry-value", "positive")
    assert {("AVRO", "encode", "ok"): 2, ("AVRO", "encode", "rule_error"): 1} == found["strata.serde.records"]
    assert {("encode", "hit"): 2, ("encode", "miss"): 1} == found["strata.serde.schema_cache"]
    assert 1 == found["strata.serde.request.duration"][200, "POST"]
    assert ({rule: 3}, {rule: 2}, {rule: 1}) == tuple(
        found[f"rule.{name}.total"] for name in ("executions", "success", "failure")
    )


def _work(client, topic):
    """Write two records and one that a rule rejects."""
    client.register(f"{topic}-value", Schema(FLIGHT, rule_set=POSITIVE))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    serialize = AvroSerializer(client, FLIGHT, conf=conf)
    for delay in (1, 2):
        serialize({"delay": delay}, topic=topic)
    with pytest.raises(RuleError):
        serialize({"delay": -1}, topic=topic)


def test_the_client_imports_neither_library():
    """A client without observers and without traces of its own imports no library for metrics or traces."""
    program = "import sys, strata.serdes.client; print([m for m in sys.modules if m.startswith(('prom', 'opentel'))])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert "[]\n" == ended.stdout
