"""Grafana boards on metrics of a real node, scraped by a real Prometheus: every query gives the expected figure."""

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from harness.waiting import until

BOARD = json.loads(Path(__file__).parents[2].joinpath("docs", "grafana", "strata.json").read_text())
SELECTOR = '{job="schema-registry",env="test",instance=~".*"}'
CONFLUENT = "kafka_schema_registry_"

# The queries of Confluent's public board "Schema Registry cluster", without those about a JVM, and what they must give.
CONFLUENT_BOARD = [
    ("role", f"{CONFLUENT}master_slave_role{SELECTOR}", [1]),
    ("instances", f"count({CONFLUENT}registered_count{SELECTOR})", [1]),
    ("over time", f"sum by(schema_type)({CONFLUENT}schemas{SELECTOR})", {"avro": 3, "json": 1, "protobuf": 1}),
    ("over time, older exporter", f"sum by(schema_type)({CONFLUENT}schemas_created{SELECTOR})",
     {"avro": 3, "json": 1, "protobuf": 1}),
    ("deleted", f"avg by(schema_type)({CONFLUENT}schemas_deleted{SELECTOR})", {"avro": 1, "json": 0, "protobuf": 0}),
    ("registered", f"sum({CONFLUENT}registered_count{SELECTOR})", [5]),
    ("CPU", f"irate(process_cpu_seconds_total{SELECTOR}[5m])*100", None),
    ("active connections", f"{CONFLUENT}jetty_metrics_connections_active{SELECTOR}", None),
    ("requests rate", f"{CONFLUENT}jersey_metrics_request_rate{SELECTOR}", None),
    ("latency 99p", f"{CONFLUENT}jersey_metrics_request_latency_99{SELECTOR}", None),
]  # fmt: skip
# Panels of ours that show a number of the traffic below.
EXPECTED = {"Ready nodes": 1, "Subjects": 3, "Live versions": 4}
# What a node without TLS, access control, audit and Kafka has not.
EMPTY = {"Certificates end in", "Auth file in force", "Pen"}


@pytest.fixture(scope="module")
def started(scraped):
    """Return a Prometheus and its node, of which there is something to see."""
    if scraped is None:
        pytest.skip("there is no prometheus, and Debian's package cannot be installed: no query was checked")
    use(scraped[1])
    return scraped


@pytest.fixture(scope="module")
def prometheus(started):
    """Scrape the node until rates can be computed."""
    found, node = started
    until(lambda: found.query("count_over_time(strata_ready[1m]) > 1"))
    look(node)
    until(lambda: found.query('rate(strata_errors_total{code="404"}[1m]) > 0'))
    until(lambda: stays(found))
    return found


def stays(found):
    """Ask about the moment of the last scrape from now on; return whether rates can be computed there.

    Now there may be no figures at all, because a scrape has failed: the node has paused for a second.
    """
    found.moment = None
    found.moment = next((moment for _, moment in found.query("timestamp(strata_ready)")), None)
    return found.moment and found.query('rate(strata_errors_total{code="404"}[1m]) > 0')


def use(node):
    """Register five versions, delete one, read, and ask for what is not there."""
    registered = [
        ("a", {"schema": '"int"'}), ("a", {"schema": '["int","long"]'}), ("b", {"schema": '"string"'}),
        ("c", {"schema": '{"type":"object"}', "schemaType": "JSON"}),
        ("d", {"schema": 'syntax = "proto3"; message M { int32 a = 1; }', "schemaType": "PROTOBUF"}),
    ]  # fmt: skip
    call(node, *(("POST", f"/subjects/{name}/versions", body) for name, body in registered), ("DELETE", "/subjects/b"))
    look(node)


def look(node):
    """Read what there is, and what is not."""
    call(node, ("GET", "/schemas/ids/1"), ("GET", "/nowhere"))


def call(node, *requests):
    """Send requests over one connection."""
    with closing(node.connect()) as connection:
        for method, path, *body in requests:
            connection.request(method, path, json.dumps(*body) if body else None, {"Content-Type": "application/json"})
            connection.getresponse().read()


def test_prometheus_starts(started):
    """A Prometheus answers before it has scraped."""
    assert [({}, 1)] == started[0].query("vector(1)")


def test_prometheus_finds_the_node(started):
    """A Prometheus can scrape a node."""
    until(lambda: started[0].query("up == 1"))


@pytest.mark.parametrize(("name", "query", "expected"), CONFLUENT_BOARD, ids=[row[0] for row in CONFLUENT_BOARD])
def test_board_of_confluent(prometheus, name, query, expected):
    """The panel shows the figure."""
    found = prometheus.query(query)

    if isinstance(expected, dict):
        assert expected == {labels["schema_type"]: value for labels, value in found}
    elif expected is not None:
        assert expected == [value for _, value in found]
    else:
        assert [value >= 0 for _, value in found] == [True]


def test_variables_of_the_board_of_confluent(prometheus):
    """The board's variables find the environment and the instance."""
    assert ["test"] == prometheus.label_values("env", f"{CONFLUENT}registered_count")
    assert 1 == len(prometheus.label_values("instance", f"{CONFLUENT}registered_count"))


@pytest.mark.parametrize("panel", BOARD["panels"], ids=lambda panel: panel["title"])
def test_our_board(prometheus, panel):
    """Every query of every panel is valid, and has a figure unless the node lacks what it shows."""
    for target in panel["targets"]:
        query = target["expr"].replace("$job", "schema-registry").replace("$instance", ".*")
        found = prometheus.query(query.replace("$__rate_interval", "1m"))

        assert not re.search(r"\$\w", query.replace("$__rate_interval", ""))
        assert (found == []) == (panel["title"] in EMPTY and "pen_taken" not in query)
        if panel["title"] in EXPECTED:
            assert [EXPECTED[panel["title"]]] == [value for _, value in found]


def test_our_board_shows_every_family():
    """The board's titles are unique, and its panels do not overlap."""
    places = [tuple(panel["gridPos"].values()) for panel in BOARD["panels"]]
    titles = [panel["title"] for panel in BOARD["panels"]]

    assert len(set(places)) == len(places)
    assert len(set(titles)) == len(titles)
