"""Values that only seem to fit a schema are written readably, or refused without being quoted."""

import dataclasses
import json
import math
from typing import Any

import pytest
from pydantic import BaseModel

from strata.serdes.avro import AvroDeserializer, compile_decoder, compile_encoder
from strata.serdes.avro.rule_values import AvroValues
from strata.serdes.avro.schema import parse
from strata.serdes.client import RegistryClient
from strata.serdes.errors import EncodeError, FrameError
from strata.serdes.json_schema import JsonSerializer

UUID_TEXT = {"type": "string", "logicalType": "uuid"}
DATE = {"type": "int", "logicalType": "date"}
INNER = {"type": "record", "name": "n.R", "fields": [{"name": "a", "type": "int"}]}


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        pytest.param(
            UUID_TEXT, "secret-4711", "expected a UUID, got a string that is not one", id="a text that is not a uuid"
        ),
        pytest.param(
            ["null", UUID_TEXT],
            "secret-4711",
            "expected a UUID, got a string that is not one",
            id="a text that is not a uuid, in a union",
        ),
        pytest.param(
            DATE,
            "secret-4711",
            "expected an ISO 8601 date, got a string that is not one",
            id="a text that is not a date",
        ),
    ],
)
def test_what_nobody_could_read_is_not_written(schema, value, says):
    """The error names the type and not the value."""
    with pytest.raises(EncodeError, match=says) as caught:
        compile_encoder(json.dumps(schema))(value)

    assert "4711" not in str(caught.value)


@pytest.mark.parametrize(
    ("union", "value", "payload"),
    [
        pytest.param(["int", "long"], ("long", 5), b"\x02\x0a", id="a primitive"),
        pytest.param(["null", "float", "double"], ("float", 0.5), b"\x02\x00\x00\x00\x3f", id="a narrower one"),
        pytest.param(["string", INNER], ("R", {"a": 1}), b"\x02\x02", id="a record"),
        pytest.param(["string", INNER], ("n.R", {"a": 1}), b"\x02\x02", id="a record by its full name"),
        pytest.param(
            ["string", {"type": "array", "items": "string"}],
            ("string", "x"),
            b"\x02\x04\x0cstring\x02x\x00",
            id="an array",
        ),
    ],
)
def test_tuples_name_branches(union, value, payload):
    """A tuple names a branch as in fastavro, except in a union with an array, where a tuple is an array."""
    assert payload == compile_encoder(json.dumps(union))(value)
    assert compile_decoder(json.dumps(union))(payload) in (value[1], list(value))


def test_rules_see_what_does_not_fit_as_it_is():
    """A rule sees a value that does not fit unchanged: it may correct it, and the encoder refuses the rest."""
    schema = json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "day", "type": DATE},
                {"name": "id", "type": UUID_TEXT},
                {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 3}},
            ],
        }
    )
    value = {"day": "nope", "id": "nope", "sum": 12345}

    assert value == AvroValues(parse(schema)).lower(value)


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: float
    y: Any = None


class Model(BaseModel):
    """A pydantic model."""

    x: float
    y: int | None = None


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        pytest.param(lambda number: number, "", id="alone"),
        pytest.param(lambda number: {"a": [None, (number,)]}, "a[1][0]", id="in lists"),
        pytest.param(lambda number: Point(1.0, {"b": number}), "y.b", id="in a dataclass"),
        pytest.param(lambda number: [Model(x=number)], "[0].x", id="in a model"),
    ],
)
def test_json_has_no_such_number(client, wrap, path, number):
    """NaN and infinities are refused: as null, readers would take them for a missing value."""
    with pytest.raises(EncodeError, match="NaN or an infinity") as caught:
        JsonSerializer(client, "{}", conf={"validate": False})(wrap(number), topic="odd-numbers")

    assert path == caught.value.path


def test_null_is_null(client):
    """A null of the caller's is written as null."""
    value = {"a": None, "b": [Point(1.5), Model(x=2.5)], "c": "null"}

    frame = JsonSerializer(client, "{}")(value, topic="odd-numbers")

    assert b'{"a":null,"b":[{"x":1.5,"y":null},{"x":2.5,"y":null}],"c":"null"}' == frame[5:]


def test_a_header_that_is_no_bytes():
    """A header value that is not bytes, which only handmade headers have, is refused."""
    deserialize = AvroDeserializer(RegistryClient("http://localhost:1"))

    with pytest.raises(FrameError, match="header __value_schema_id: expected bytes, got str"):
        deserialize(b"\x02", headers=[("__value_schema_id", "text")])
