"""A Thrift server offers the functions to JDBC clients, with the jar and the settings that the guide names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import spark_jar
from harness.spark_servers import ThriftServer
from strata.compat.protobuf.formats import serialized
from strata.compat.protobuf.parser import parse

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

FLIGHT = {"type": "record", "name": "Flight", "fields": [{"name": "delay", "type": "int"}]}
NOTE = '{"properties": {"by": {"type": "object", "additionalProperties": {"type": "integer"}}}}'
TEXT = b'{"by":{"a":7}}'
SEAT = 'syntax = "proto3"; message Seat { string id = 1; Place at = 2; } message Place { int32 row = 1; }'


def test_jdbc(tmp_path: Path, scripted_registry: Any, frame: Callable[[int, Any, Any], bytes]) -> None:
    """A session decodes, encodes and lists dead letters over JDBC; it gives its own token by SET."""
    schema_id = scripted_registry.add(FLIGHT)
    json_id = scripted_registry.add_text('{"properties": {"n": {"minimum": 1}}}', {"schemaType": "JSON"})
    scripted_registry.accepted = {"Bearer s3cret"}
    note_id = scripted_registry.add_text(NOTE, {"schemaType": "JSON"})
    seat_id = scripted_registry.add_text(serialized(parse(SEAT, strict=True)), {"schemaType": "PROTOBUF"})
    note, seat = (one.to_bytes(5, "big").hex() for one in (note_id, seat_id))
    good = frame(schema_id, FLIGHT, {"delay": 11})
    settings = {
        "spark.jars": str(spark_jar.build()),
        "spark.sql.extensions": "strata.spark.StrataExtensions",
        "spark.sql.catalog.strata": "strata.spark.StrataCatalog",
        "spark.sql.catalog.strata.urls": scripted_registry.url,
    }
    name = f"'?id={schema_id}'"

    with ThriftServer(tmp_path, settings) as server:
        lines = server.run(
            "SET strata.strata.token=s3cret",
            f"CREATE TEMPORARY VIEW frames AS SELECT * FROM VALUES (X'{good.hex()}'), (X'7B') AS frames(value)",
            f"CREATE TEMPORARY VIEW decoded AS SELECT strata_decode(value, {name}) AS decoded FROM frames",
            "SELECT concat('res', 'ult ', decoded.value.delay + 1) FROM decoded WHERE decoded.error IS NULL",
            f"SELECT concat('res', 'ult ', hex(strata_encode(decoded.value, {name}))) FROM decoded "
            "WHERE decoded.error IS NULL",
            "SELECT concat('res', 'ult ', reason) FROM strata_dead_letters('decoded')",
            f"SELECT concat('res', 'ult ', strata_schema({name}) LIKE '%delay%')",
            f"SELECT concat('res', 'ult ', strata_decode(X'{note}{TEXT.hex()}', '?id={note_id}').value.by['a'])",
            f"SELECT concat('res', 'ult ', strata_decode(X'{seat}000A013112020802', '?id={seat_id}').value.at.row)",
            "SELECT concat('res', 'ult ', error.path) FROM (SELECT inline(array("
            f"strata_encode(named_struct('n', 0), '?id={json_id}&mode=DEADLETTER'))))",
        )

    results = [line.partition("result ")[2] for line in lines if "result " in line]  # the client repeats statements
    assert ["12", good.hex().upper(), "frame too short", "true", "7", "2", "n"] == results
