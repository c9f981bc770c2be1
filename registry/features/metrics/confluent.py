"""Metrics under the names that Confluent's exporter gives them, so that its public Grafana board works.

Windows are those of Kafka's metrics (`windows.py`). What describes a JVM is missing: it would be invented.
"""

from collections.abc import Callable, Iterator, Mapping
from math import nan

from prometheus_client.core import GaugeMetricFamily, Metric

from strata import __version__
from strata.registry.core.metric_table import CLASSES
from strata.registry.core.writer import Writer
from strata.registry.features.metrics.facts import fact
from strata.registry.features.metrics.windows import Sample, Windows
from strata.registry.features.metrics.workers import Node
from strata.registry.http.route_facts import RouteTable
from strata.storage.encryption_keys import EncryptionKeys

__all__ = ["ENDPOINTS", "NAMES", "ConfluentCollector"]

_PREFIX = "kafka_schema_registry_"
_NOT_API = ("/metrics", "/health/", "/docs", "/openapi", "/ui")
"""The starts of paths that Confluent's registry does not have, and that its figures must not count."""

_MS = 1000.0
_JERSEY: Mapping[str, Callable[[Sample], float]] = {
    "request_rate": lambda window: window.rate(sum(window.counts())),
    "request_byte_rate": lambda window: window.rate(window.total("received")),
    "request_size_avg": lambda window: _ratio(window.total("received"), sum(window.counts())),
    "request_size_max": lambda window: window.top.received,
    "response_rate": lambda window: window.rate(sum(window.counts()[1:])),
    "response_byte_rate": lambda window: window.rate(window.total("sent")),
    "response_size_avg": lambda window: _ratio(window.total("sent"), sum(window.counts()[1:])),
    "response_size_max": lambda window: window.top.sent,
    "request_latency_avg": lambda window: _MS * _ratio(window.total("seconds"), sum(window.counts())),
    "request_latency_max": lambda window: _MS * window.top.seconds,
    "request_latency_95": lambda window: _MS * window.percentile(0.95),
    "request_latency_99": lambda window: _MS * window.percentile(0.99),
}
_TYPES = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}

NAMES: Mapping[str, str] = {
    "registered_count": "versions that this node has seen registered since it began to read the log",
    "deleted_count": "versions that this node has seen soft-deleted since it began to read the log",
    "schemas": "versions seen registered, by format",
    "schemas_created": "the same, under the name that older exporters gave it",
    "schemas_deleted": "versions seen soft-deleted, by format",
    "master_slave_role": "1 if this node writes to the log: it holds the pen, or the log needs none",
    "node_count": "nodes that this one knows of: itself, and the holder of the pen",
    "api_success_count": "requests answered with a status below 400",
    "api_failure_count": "requests answered with another status",
    "association_batch_get_success_count": "batches of look-ups of associations that succeeded",
    "association_batch_get_failure_count": "batches of look-ups of associations that failed",
    "association_batch_mutate_success_count": "batches of changes of associations that succeeded",
    "association_batch_mutate_failure_count": "batches of changes of associations that failed",
    "custom_schema_provider_count": "formats besides Avro, JSON and Protobuf",
    "certificate_expiration_keystore": "when the certificate of this node ends, since the epoch",
    "certificate_expiration_truststore": "when the first trusted certificate ends, since the epoch",
    "leader_initialization_latency": (
        "time in ms this node needed to take the pen the last time; absent without a pen"
    ),
    "dek_registry_num_keks": "key encryption keys, soft-deleted ones included",
    "dek_registry_num_keks_shared": "those that are shared",
    "dek_registry_num_deks": "versions of data encryption keys, soft-deleted ones included",
    "app_info": "1, with the version of the service",
    "jetty_metrics_connections_active": "open connections of clients",
    "jetty_metrics_connections_opened_rate": "connections opened per second",
    "jetty_metrics_connections_accepted_rate": "the same",
    "jetty_metrics_connections_closed_rate": "connections closed per second",
    **{f"jersey_metrics_{name}": f"{name.replace('_', ' ')} of the last minute" for name in _JERSEY},
    "jersey_metrics_request_error_rate": "error answers per second, by class of status",
}
"""The names, without their prefix. Those of `jersey_metrics` exist for each of the `ENDPOINTS` too, once it is used."""
_KEKS, _DEKS = "/dek-registry/v1/keks", "/dek-registry/v1/keks/{name}/deks"
_VERSIONS, _VERSION = "/subjects/{subject}/versions", "/subjects/{subject}/versions/{version}"
_CHECKS = "/compatibility/subjects/{subject}/versions"

ENDPOINTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "subjects.list": (("GET", "/subjects"),),
    "subjects.get-schema": (("POST", "/subjects/{subject}"),),
    "subjects.get-latest-with-metadata": (("GET", "/subjects/{subject}/metadata"),),
    "subjects.delete-subject": (("DELETE", "/subjects/{subject}"),),
    "subjects.versions.register": (("POST", _VERSIONS),),
    "subjects.versions.list": (("GET", _VERSIONS),),
    "subjects.versions.get-schema": (("GET", _VERSION),),
    "subjects.versions.get-schema.only": (("GET", f"{_VERSION}/schema"),),
    "subjects.versions.list-schema-refs": (("GET", f"{_VERSION}/referencedby"),),
    "subjects.versions.deleteSchemaVersion-schema": (("DELETE", _VERSION),),
    "subjects.versions.modify.tags": (("POST", f"{_VERSION}/tags"),),
    "schemas.get-schemas": (("GET", "/schemas"),),
    "schemas.ids.get-schema": (("GET", "/schemas/ids/{schema_id}"),),
    "schemas.ids.get-schema.only": (("GET", "/schemas/ids/{schema_id}/schema"),),
    "schemas.get-subjects": (("GET", "/schemas/ids/{schema_id}/subjects"),),
    "schemas.get-versions": (("GET", "/schemas/ids/{schema_id}/versions"),),
    "schemas.guids.get-schema": (("GET", "/schemas/guids/{guid}"),),
    "schemas.guids.get-ids": (("GET", "/schemas/guids/{guid}/ids"),),
    "schemas.get-types": (("GET", "/schemas/types"),),
    "compatibility.subjects.versions.verify": (("POST", _CHECKS), ("POST", f"{_CHECKS}/{{version}}")),
    "config.get-global": (("GET", "/config"),),
    "config.update-global": (("PUT", "/config"),),
    "config.delete-global": (("DELETE", "/config"),),
    "config.get-subject": (("GET", "/config/{subject}"),),
    "config.update-subject": (("PUT", "/config/{subject}"),),
    "config.delete-subject": (("DELETE", "/config/{subject}"),),
    "mode.get-global": (("GET", "/mode"),),
    "mode.update-global": (("PUT", "/mode"),),
    "mode.delete-global": (("DELETE", "/mode"),),
    "mode.get-subject": (("GET", "/mode/{subject}"),),
    "mode.update-subject": (("PUT", "/mode/{subject}"),),
    "mode.delete-subject": (("DELETE", "/mode/{subject}"),),
    "contexts.list": (("GET", "/contexts"),),
    "context.delete": (("DELETE", "/contexts/{context}"),),
    "metadata.id": (("GET", "/v1/metadata/id"),),
    "metadata.version": (("GET", "/v1/metadata/version"),),
    "metadata.deployment": (("GET", "/v1/metadata/deployment"),),
    "associations.by-subject": (("GET", "/associations/subjects/{subject}"),),
    "associations.by-resource-name": (("GET", "/associations/resources/{resource_namespace}/{resource_name}"),),
    "associations.by-resource-id": (("GET", "/associations/resources/{resource_id}"),),
    "association.create": (("POST", "/associations"),),
    "association.upsert": (("PUT", "/associations/resources/{resource_id}"),),
    "associations.batch-get": (("POST", "/associations:batchGet"),),
    "associations.batch-mutate": (("POST", "/associations:batchMutate"),),
    "associations.delete": (("DELETE", "/associations/resources/{resource_id}"),),
    "keks.list": (("GET", _KEKS),),
    "keks.get": (("GET", f"{_KEKS}/{{name}}"),),
    "keks.create": (("POST", _KEKS),),
    "keks.test": (("POST", f"{_KEKS}/{{name}}/test"),),
    "keks.put": (("PUT", f"{_KEKS}/{{name}}"),),
    "keks.delete": (("DELETE", f"{_KEKS}/{{name}}"),),
    "keks.undelete": (("POST", f"{_KEKS}/{{name}}/undelete"),),
    "deks.list": (("GET", _DEKS),),
    "deks.get": (("GET", f"{_DEKS}/{{subject}}"),),
    "deks.create": (("POST", _DEKS), ("POST", f"{_DEKS}/{{subject}}")),
    "deks.delete": (("DELETE", f"{_DEKS}/{{subject}}"),),
    "deks.undelete": (("POST", f"{_DEKS}/{{subject}}/undelete"),),
    "deks.versions.list": (("GET", f"{_DEKS}/{{subject}}/versions"),),
    "deks.versions.get": (("GET", f"{_DEKS}/{{subject}}/versions/{{version}}"),),
    "deks.versions.delete": (("DELETE", f"{_DEKS}/{{subject}}/versions/{{version}}"),),
    "deks.versions.undelete": (("POST", f"{_DEKS}/{{subject}}/versions/{{version}}/undelete"),),
}


class ConfluentCollector:
    """Collects the metrics with Confluent's names.

    Args:
        node: the workers.
        windows: the counts at the start of the last two windows.
        routes: the routes.
        writer: the writer of this worker.
        certificates: returns when the first certificate of each file ends, in seconds since the epoch.
    """

    def __init__(
        self,
        node: Node,
        windows: Windows,
        routes: RouteTable,
        writer: Writer,
        certificates: Callable[[], Mapping[str, float]],
    ) -> None:
        numbers = {(route.method, route.path): number for number, route in enumerate(routes.every)}
        self._groups = [[numbers[route] for route in group if route in numbers] for group in ENDPOINTS.values()]
        api = [number for (_, path), number in numbers.items() if not path.startswith(_NOT_API)]
        self._api = [*api, routes.number(None)]
        self._batches = {
            name: [numbers[route] for route in ENDPOINTS[f"associations.batch-{name}"][:1] if route in numbers]
            for name in ("get", "mutate")
        }
        self._node, self._writer, self._certificates = node, writer, certificates
        self._windows = windows

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from self._registered()
        yield from self._jetty()
        every, *endpoints = self._windows.samples([self._api, *self._groups])
        yield from self._calls()
        yield from _jersey("", every)
        for name, sample in zip(ENDPOINTS, endpoints, strict=True):
            if sample.ever:
                yield from _jersey(name.lower().replace(".", "_").replace("-", "_") + "_", sample)

    def _registered(self) -> Iterator[Metric]:
        state, log = self._writer.state, self._writer.log
        created = {
            name: state.formats[schema_type].created
            for name, schema_type in _TYPES.items()
            if schema_type in state.formats
        }
        removed = {
            name: state.formats[schema_type].removed
            for name, schema_type in _TYPES.items()
            if schema_type in state.formats
        }
        yield _gauge("registered_count", sum(count.created for count in state.formats.values()))
        yield _gauge("deleted_count", sum(count.removed for count in state.formats.values()))
        for name in ("schemas", "schemas_created"):
            yield _labelled(name, "schema_type", {schema_type: created.get(schema_type, 0) for schema_type in _TYPES})
        yield _labelled(
            "schemas_deleted", "schema_type", {schema_type: removed.get(schema_type, 0) for schema_type in _TYPES}
        )
        holds = max(fact(self._node.running, "holds_pen"))
        yield _gauge("master_slave_role", 1 if holds else 0)
        yield _gauge("node_count", 2 if holds == 0 and log.holder() is not None else 1)
        yield _gauge("custom_schema_provider_count", 0)
        if holds >= 0:
            yield _gauge("leader_initialization_latency", _MS * max(fact(self._node.running, "pen_taking_s")))
        yield from _keys(state.encryption_keys)
        yield _labelled("app_info", "version", {__version__: 1})
        ends = self._certificates()
        if "server" in ends:
            yield _gauge("certificate_expiration_keystore", ends["server"])
        if "client_ca" in ends:
            yield _gauge("certificate_expiration_truststore", ends["client_ca"])

    def _calls(self) -> Iterator[Metric]:
        for prefix, routes in [
            ("api", self._api),
            *((f"association_batch_{name}", batch) for name, batch in self._batches.items()),
        ]:
            counts = self._windows.ever(routes)
            yield _gauge(f"{prefix}_success_count", sum(counts[1:4]))
            yield _gauge(f"{prefix}_failure_count", sum(counts[4:]))

    def _jetty(self) -> Iterator[Metric]:
        active, opened_rate, closed_rate = self._windows.connections()
        yield _gauge("jetty_metrics_connections_active", active)
        yield _gauge("jetty_metrics_connections_opened_rate", opened_rate)
        yield _gauge("jetty_metrics_connections_accepted_rate", opened_rate)
        yield _gauge("jetty_metrics_connections_closed_rate", closed_rate)


def _jersey(endpoint: str, sample: Sample) -> Iterator[Metric]:
    for name, figure in _JERSEY.items():
        yield _gauge(f"jersey_metrics_{name}", figure(sample), endpoint)
    errors = dict(zip(("unknown", *CLASSES[1:]), map(sample.rate, sample.counts()), strict=True))
    failed = {name: errors[name] for name in ("unknown", "4xx", "5xx")}
    yield _labelled("jersey_metrics_request_error_rate", "http_status_code", failed, endpoint)


def _keys(keys: EncryptionKeys) -> Iterator[Metric]:
    shared = sum(kek.shared for kek in keys.keks.values())
    counts = {"keks": len(keys.keks), "keks_shared": shared, "deks": keys.dek_count}
    for name, count in counts.items():
        yield _labelled(f"dek_registry_num_{name}", "tenant", {"default": count})


def _gauge(name: str, value: float, endpoint: str = "") -> Metric:
    return GaugeMetricFamily(_full(name, endpoint), NAMES[name], value)


def _labelled(name: str, label: str, values: Mapping[str, float], endpoint: str = "") -> Metric:
    made = GaugeMetricFamily(_full(name, endpoint), NAMES[name], labels=(label,))
    for value, number in values.items():
        made.add_metric((value,), number)
    return made


def _full(name: str, endpoint: str) -> str:
    return _PREFIX + (name.replace("jersey_metrics_", f"jersey_metrics_{endpoint}") if endpoint else name)


def _ratio(amount: float, count: float) -> float:
    return amount / count if count else nan
