"""JSON frames are decoded to columns: schema evolution, validation, damage; no Spark session is needed."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.examples import examples
from harness.payload_columns import FrameRefused, json_column, json_frame, json_schema
from strata.compat.check import Previous
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.proofs import Altered, Budget, Witness
from strata.compat.schema import SchemaFormat
from strata.compat.witness.search import silent_changes
from strata.serdes.client import Reference, RegistryClient, Schema
from strata.serdes.framing import join, split
from strata.serdes.json_schema import JsonSerializer
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode

INT, NUM, STR = {"type": "integer"}, {"type": "number"}, {"type": "string"}
ORDER = {
    "properties": {
        "id": INT,
        "ok": {"type": "boolean"},
        "lines": {"type": "array", "items": {"properties": {"price": NUM, "sku": STR}}},
        "by": {"type": "object", "additionalProperties": INT},
    }
}
ORDER_1 = {"id": 1, "ok": True, "lines": [{"price": 1.5, "sku": "a"}], "by": {"k": 1}}


def test_three_versions_in_one_column(client: RegistryClient) -> None:
    """Frames of several versions, written by the serializer, may be mixed with nulls."""
    versions: list[Any] = [
        {"title": "O", "properties": {"id": INT, "gone": STR}},
        {"title": "O", "properties": {"id": INT, "by": STR}},
        {"title": "O", "properties": {"id": NUM}},
    ]
    values = [{"id": 1, "gone": "x"}, {"id": 2, "by": "me"}, {"id": 2.5}]
    frames = [
        JsonSerializer(client, json.dumps(document))(value, topic="json-growing")
        for document, value in zip(versions, values, strict=True)
    ]
    column = json_column(client, client.get_version("json-growing-value", 2).schema)

    assert 3 == len({split(one)[0] for one in frames if one})
    assert [
        {"id": 1, "by": None},
        None,
        {"id": 2, "by": "me"},
        ("invalid value: expected integer, got number at id", split(frames[2] or b"")[0]),
    ] == column.read(frames[0], None, frames[1], frames[2])


def test_references(client: RegistryClient) -> None:
    """A `$ref` resolves to the schema registered under its name, through further references."""
    unit = client.register("json-columns-unit", json_schema({"enum": ["m", "km"]})).version
    length = json_schema(
        {"properties": {"n": NUM, "unit": {"$ref": "unit.json"}}},
        Reference("unit.json", "json-columns-unit", unit or 0),
    )
    version = client.register("json-columns-length", length).version
    way = json_schema(
        {"properties": {"legs": {"type": "array", "items": {"$ref": "length.json"}}}},
        Reference("length.json", "json-columns-length", version or 0),
    )
    way_id = client.register("json-columns-way", way).schema_id
    good = {"legs": [{"n": 1.5, "unit": "m"}]}
    frames = [join(way_id, json.dumps(one).encode()) for one in (good, {"legs": [{"n": 1.5, "unit": "ft"}]})]

    assert "struct<legs:array<struct<n:double,unit:string>>>" == json_column(client, way).type.simpleString()
    assert [good, {"legs": [{"n": 1.5, "unit": "ft"}]}] == json_column(client, way).read(*frames)
    refused = ("invalid value: expected 'm' or 'km', got another string (rule enum)", way_id)
    assert [good, refused] == json_column(client, way, validate=True).read(*frames)


def test_validate(client: RegistryClient) -> None:
    """On request a payload is validated against its writer schema, and not against the reader's."""
    strict = {"properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]}
    reader = {"properties": {"n": {"type": "integer", "maximum": 5}}}
    frames = [json_frame(client, one, strict) for one in ({"n": 7}, {"n": -1}, {})]

    assert [{"n": 7}, {"n": -1}, {"n": None}] == json_column(client, reader).read(*frames)
    number = split(frames[0])[0]
    assert [
        {"n": 7},
        ("invalid value: expected a number of at least 0, got a smaller one (rule properties/n/minimum)", number),
        ("invalid value: expected a value, got none: the property is required (rule required)", number),
    ] == json_column(client, reader, validate=True).read(*frames)


def test_failfast(client: RegistryClient) -> None:
    """FAILFAST names record, reason and column, and never the value."""
    column = json_column(client, ORDER, mode=Mode.FAILFAST, origin=["topic", "offset"])
    bad = json_frame(client, {"by": {"secret": "secret"}})

    with pytest.raises(FrameRefused) as caught:
        column.decode(pa.array([None, bad], pa.binary()), pa.array(["t", "t"]), pa.array([1, 2]))

    expected = "invalid value: expected integer, got string (at field by{})"
    assert f"a frame cannot be decoded (schema id {split(bad)[0]}, topic t, offset 2): {expected}" == str(caught.value)
    assert [None] == json_column(client, ORDER, mode=Mode.PERMISSIVE).read(bad)


# arguments of the source, of the plan, the error's message
WRONG: list[Any] = [
    pytest.param(
        {"reader_schema": '"int"'},
        {"message": "a.B"}, "message needs a Protobuf schema, and the reader schema is AVRO", id="message of Avro",
    ),
    pytest.param(
        {"reader_schema": '"int"'},
        {"validate": True}, "validate needs a JSON Schema, and the reader schema is AVRO", id="validate Avro",
    ),
    pytest.param(
        {"reader_schema": "{}", "format": "JSON"},
        {"message": "a.B"}, "the reader schema is JSON", id="message of JSON",
    ),
    pytest.param(
        {"reader_schema": "{}", "format": "XML"},
        {}, "got 'XML'", id="no such format",
    ),
    pytest.param(
        {"reader_schema": Schema("{}", "JSON"), "format": "AVRO"},
        {}, "expected a reader schema of format AVRO, got JSON", id="other format than said",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("source", "options", "says"), WRONG)
def test_options_of_other_formats(registry: RegistryClient, source: Any, options: Any, says: str) -> None:
    """An option without a meaning for the reader schema's format is refused, not ignored."""
    with pytest.raises(ValueError, match=says):
        plan_decode(registry.settings, ReaderSource(**source), mode=Mode.PERMISSIVE, **options)


ROUNDED: list[Any] = [
    pytest.param({"n": INT}, {"n": NUM}, id="a number"),
    pytest.param({"n": INT}, {"n": {"anyOf": [INT, NUM]}}, id="a number among branches"),
    pytest.param({"n": {"oneOf": [INT, {"type": "null"}]}}, {"n": {"oneOf": [NUM, {"type": "null"}]}}, id="optional"),
    pytest.param({"n": {"type": "array", "items": INT}}, {"n": {"type": "array", "items": NUM}}, id="items"),
]


@pytest.mark.parametrize(("written", "read"), ROUNDED)
def test_a_silent_change_is_another_value_in_the_column(client: RegistryClient, written: Any, read: Any) -> None:
    """The number that is said to be rounded is in the column of the writer's schema, not in that of the reader's."""
    previous, new = (
        FORMATS[SchemaFormat.JSON].parse(json.dumps({"properties": one}), strict=True) for one in (written, read)
    )
    [found] = silent_changes(new, [Previous(1, previous)], Level.BACKWARD, (), Budget())
    proof = found.proof
    assert isinstance(proof, Witness)
    assert isinstance(proof.outcome, Altered)
    frame = json_frame(client, proof.payload)
    values = [json_column(client, {"properties": one}).read(frame)[0]["n"] for one in (written, read)]

    assert [proof.outcome.written_as, proof.outcome.read_as] == [
        one[0] if isinstance(one, list) else one for one in values
    ]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "ok", "lines", "by", "sku"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(VALUES, max_size=4), junk=st.binary(max_size=6))
def test_any_values(client: RegistryClient, values: list[Any], junk: bytes) -> None:
    """Any payload is a row or a dead letter with its bytes; text columns hold it all."""
    schema_id = split(json_frame(client, ORDER_1))[0]
    good = join(schema_id, json.dumps(ORDER_1).encode())
    frames = [join(schema_id, json.dumps(one).encode()) for one in values]

    rows = json_column(client, ORDER).read(good, *frames, join(schema_id, junk), good)

    assert ORDER_1 == rows[0] == rows[-1]
    texts = json_column(client, True).read(*frames)
    assert values == [None if one is None else json.loads(one) for one in texts]
