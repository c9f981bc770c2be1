"""`/metrics`: every name is moved by traffic, and says what the traffic was."""

import re
import time
from collections import defaultdict
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from harness.metric_samples import samples_in
from strata.registry.app import route_table
from strata.registry.core import errors
from strata.registry.core.metric_table import METRICS, Kind
from strata.registry.features.metrics.confluent import ENDPOINTS, NAMES

DOCS = Path(__file__).parents[2] / "docs"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
CONFLUENT = "kafka_schema_registry_"
JERSEY = f"{CONFLUENT}jersey_metrics_"


class Scraped:
    """The samples of one scrape."""

    def __init__(self, text, parse=parse_text):
        self.families = list(parse(text))
        self.samples = defaultdict(float)
        for family in self.families:
            for name, labels, value, *_ in family.samples:
                self.samples[name, frozenset(labels.items())] = value

    def __call__(self, name, **labels):
        """Return a number; 0 if there is no such series."""
        return self.samples[name, frozenset(labels.items())]

    def total(self, name, **labels):
        """Return the sum of all series of a name with some labels."""
        wanted = labels.items()
        return sum(value for (found, given), value in self.samples.items() if found == name and wanted <= given)

    @property
    def names(self):
        """The names of all samples."""
        return {name for name, _ in self.samples}


def scrape(api, accept=None):
    """Return the metrics of a node."""
    status, text = api.get("/metrics", **({"Accept": accept} if accept else {}))
    assert 200 == status, text
    return Scraped(text, parse_openmetrics if accept else parse_text)


def test_counts_of_requests_are_exact(api):
    """Requests count by route template and class of status, with the bytes of both bodies and the code of an error."""
    before = scrape(api)
    body = b'{"schema":"\\"int\\""}'
    assert 200 == api.call("POST", "/subjects/a%2Fb/versions", body)[0]
    sizes = []
    for _ in range(7):
        assert 200 == api.get("/schemas/ids/1")[0]
        sizes.append(int(api.headers["content-length"]))
    for number in range(3):
        assert 404 == api.get(f"/schemas/ids/9{number}")[0]
    assert 404 == api.get("/none")[0]
    after = scrape(api)

    def moved(name, **labels):
        return after(name, **labels) - before(name, **labels)

    by_id = {"method": "GET", "route": "/schemas/ids/{schema_id}"}
    register = {"method": "POST", "route": "/subjects/{subject}/versions"}
    assert 7 == moved("strata_requests_total", **by_id, status="2xx")
    assert 3 == moved("strata_requests_total", **by_id, status="4xx")
    assert 7 == moved("strata_request_duration_seconds_count", **by_id, status="2xx")
    assert 7 == moved("strata_request_duration_seconds_bucket", **by_id, status="2xx", le="+Inf")
    assert 1 == moved("strata_requests_total", **register, status="2xx")
    assert 1 == moved("strata_requests_total", method="none", route="none", status="4xx")
    assert len(body) == moved("strata_request_bytes_total", **register)
    assert sum(sizes) < moved("strata_response_bytes_total", **by_id)
    assert (3, 1) == (moved("strata_errors_total", code="40403"), moved("strata_errors_total", code="404"))
    assert 1 == after("strata_requests_in_flight")  # the scrape itself
    assert 6 == moved("strata_cache_hits_total", cache="hot_answers")
    assert (8, 4) == tuple(moved(f"{CONFLUENT}api_{what}_count") for what in ("success", "failure"))


def test_durations_are_below_those_of_the_client(api):
    """The durations add up to less than what the client has waited, and buckets never count down."""
    began = time.perf_counter()
    for number in range(20):
        api.register(f"s{number}", '"string"')
    found = scrape(api)
    waited = time.perf_counter() - began  # a request has ended for the client a moment before the service counts it
    labels = {"method": "POST", "route": "/subjects/{subject}/versions", "status": "2xx"}
    buckets = sorted(
        (float(dict(given)["le"]), count)
        for (name, given), count in found.samples.items()
        if name == "strata_request_duration_seconds_bucket" and labels.items() <= set(given)
    )

    assert 0 < found("strata_request_duration_seconds_sum", **labels) < waited
    assert [count for _, count in buckets] == sorted(count for _, count in buckets)
    assert 20 == buckets[-1][1]
    latency = {
        what: found(f"{JERSEY}subjects_versions_register_request_latency_{what}") for what in ("avg", "max", "95", "99")
    }
    assert 0 < latency["avg"] <= latency["max"] < 1000 * waited
    assert 0 < latency["95"] <= latency["99"] <= latency["max"]
    assert 20 / (30 + waited) < found(f"{JERSEY}subjects_versions_register_request_rate") < 20 / 29.9


@pytest.mark.parametrize("accept", [None, OPENMETRICS])
def test_every_name_is_in_the_table(api, accept):
    """Both formats parse, and hold the names of the table with their kinds, and no other name of ours."""
    api.register("a", '"int"')
    found = scrape(api, accept)
    ours = {family.name: family.type for family in found.families if family.name.startswith("strata_")}

    assert {metric.name.removesuffix("_total") if metric.kind is Kind.COUNTER else metric.name: metric.kind.value
            for metric in METRICS} == ours  # fmt: skip
    confluent = {family.name.removeprefix(CONFLUENT) for family in found.families if family.name.startswith(CONFLUENT)}
    known = {*NAMES, *(f"jersey_metrics_{endpoint_name(one)}_{name.removeprefix('jersey_metrics_')}"
                       for one in ENDPOINTS for name in NAMES if name.startswith("jersey_metrics_"))}  # fmt: skip
    absent = {"certificate_expiration_keystore", "certificate_expiration_truststore", "leader_initialization_latency"}
    assert set(NAMES) - absent <= confluent <= known


def test_the_quick_parser_reads_the_same(api):
    """The parser of other tests finds the samples that prometheus-client's finds, escapes included."""
    api.register("a", '"int"')
    text = api.get("/metrics")[1] + '# TYPE x_total counter\nx_total{a="1\\\\2\\n\\"3\\"",b=""} 4.5e+06\n'
    kinds = {family.name: family.type for family in parse_text(text)}

    assert [
        (name, labels, str(value), kinds[family.name])
        for family in parse_text(text)
        for name, labels, value, *_ in family.samples
    ] == [(name, labels, str(value), kind) for name, labels, value, kind in samples_in(text)]


def test_errors_are_counted_by_every_code():
    """No code of the service is counted as another one."""
    source = Path(errors.__file__).read_text()
    codes = {int(code) for code in re.findall(r"(?:_Case|RegistryError|__init__)\((\d+),", source)}

    assert len(codes) > 40
    assert codes <= set(errors.codes())


def endpoint_name(endpoint):
    """Return the part of a name that stands for an endpoint."""
    return endpoint.lower().replace(".", "_").replace("-", "_")


def test_endpoints_are_routes():
    """Each of Confluent's endpoints is a route of ours."""
    routes = {(route.method, route.path) for route in route_table().every}

    assert {route for found in ENDPOINTS.values() for route in found} <= routes


def test_documents_name_every_metric():
    """docs/metrics.md has a row for each metric, with its kind, its labels and what it counts."""
    page = DOCS.joinpath("metrics.md").read_text().splitlines()
    ours = [f"| `{m.name}` | {m.kind} | {', '.join(m.labels)} | {m.help} |" for m in METRICS]
    confluent = [f"| `{CONFLUENT}{name}` | {text} |" for name, text in NAMES.items()]

    assert [*ours, *confluent] == [line for line in page if line.startswith("| `") and "_" in line.split("`")[1]]
