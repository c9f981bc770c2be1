"""With `unfit.values` set to `bend`, values are written as confluent-kafka writes them, with a warning."""

import json
import time
import uuid
import warnings
from datetime import UTC, datetime, timedelta, timezone
from datetime import time as clock
from decimal import Decimal
from enum import StrEnum

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvro
from confluent_kafka.schema_registry.json_schema import JSONSerializer as TheirJson
from confluent_kafka.serialization import MessageField, SerializationContext

from strata.serdes.avro.encoder import compile_encoder
from strata.serdes.errors import EncodeError
from strata.serdes.json_schema.json_text import dump
from strata.serdes.serializer import BentValueWarning

CONTEXT = SerializationContext("bending", MessageField.VALUE)
NAIVE = datetime(2024, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001 - what is bent
AWARE = NAIVE.replace(tzinfo=UTC)
EAST = AWARE.astimezone(timezone(timedelta(hours=5)))
IN_ONE, IN_TWO = (
    {"type": "record", "name": name, "fields": [{"name": one, "type": "int"} for one in fields]}
    for name, fields in (("One", "a"), ("Two", "ab"))
)


class Suit(StrEnum):
    """A member is a text."""

    CLUBS = "CLUBS"


def _logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


def _record(kind, **more):
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind, **more}]}


MILLIS, MICROS = _logical("long", "timestamp-millis"), _logical("long", "timestamp-micros")
LOCAL = _logical("long", "local-timestamp-millis")
ENUM = {"type": "enum", "name": "Suit", "symbols": ["CLUBS"]}
INTS = {"type": "array", "items": "int"}
BENT = [
    ("bool for int", "int", True),
    ("float for int", "int", 1.9),
    ("whole float for int", "int", 3.0),
    ("decimal for long", "long", Decimal("3.9")),
    ("int of 41 bits", "int", 2**40),
    ("negative int of 41 bits", "int", -(2**40)),
    ("bool for float", "float", True),
    ("float out of range", "float", -1e300),
    ("int for boolean", "boolean", 2),
    ("text for boolean", "boolean", "x"),
    ("text for bytes", "bytes", "ab"),
    ("number for null", "null", 5),
    ("bool in a record", _record("int"), {"f": True}),
    ("null in a record", _record("null"), {"f": 7}),
    ("naive timestamp-millis", MILLIS, NAIVE),
    ("naive timestamp-micros", MICROS, NAIVE),
    ("naive in winter", MICROS, datetime(1960, 1, 1, 0, 0, 0, 1500)),  # noqa: DTZ001
    ("micros in millis", MILLIS, AWARE),
    ("micros before 1970", MILLIS, datetime(1900, 1, 1, 0, 0, 0, 1500, UTC)),
    ("float timestamp", MILLIS, 1.5),
    ("micros in local millis", LOCAL, NAIVE),
    ("zone in a local one", LOCAL, AWARE),
    ("another zone in a local one", _logical("long", "local-timestamp-micros"), EAST),
    ("micros in time-millis", _logical("int", "time-millis"), clock(1, 2, 3, 4567)),
    ("zone in time-micros", _logical("long", "time-micros"), clock(1, 2, 3, 4567, UTC)),
    ("datetime for date", _logical("int", "date"), NAIVE),
    ("bool for date", _logical("int", "date"), True),
    ("a long for date", _logical("int", "date"), 2**40),
    ("text for uuid", _logical("string", "uuid"), "nope"),
    ("bool in an array", INTS, [True]),
    ("text for an array", {"type": "array", "items": "string"}, "ab"),
    ("dict for an array", INTS, {1: 2}),
    ("bytes for an array", INTS, b"ab"),
    ("bool in a map", {"type": "map", "values": "int"}, {"a": True}),
    ("unknown field", _record("int"), {"f": 1, "z": 3}),
    ("naive in a union", _record(["null", MILLIS]), {"f": NAIVE}),
    ("micros in a union", _record(["null", MILLIS]), {"f": AWARE}),
    ("naive in a union with text", ["string", MILLIS], NAIVE),
    ("datetime where date comes first", [_logical("int", "date"), MILLIS], AWARE),
    ("unknown field in a union", [IN_ONE, IN_TWO], {"a": 1, "z": 1}),
]
"""What is changed, and warned of: the bytes of both are compared."""

CHOSEN = [
    ("double before int", ["double", "int"], 5),
    ("long before int", ["long", "int"], 5),
    ("float before long", ["float", "long"], 7),
    ("float gives way to double", ["float", "double"], 0.1),
    ("float gives way to double behind int", ["float", "int", "double"], 5),
    ("map before record", [IN_ONE, {"type": "map", "values": "int"}], {"a": 1}),
    ("record with most fields", [IN_ONE, IN_TWO], {"a": 1, "b": 2}),
    ("record by name", [IN_ONE, IN_TWO], ("Two", {"a": 1, "b": 2})),
    ("record by its mark", [IN_ONE, IN_TWO], {"-type": "Two", "a": 1, "b": 2}),
    ("long by position", ["long", _logical("int", "date")], 5),
    ("text for date", [_logical("int", "date"), "string"], "2024-01-01"),
    ("primitive by name", ["null", "int"], ("int", 3)),
    ("enum member", ["string", ENUM], Suit.CLUBS),
    ("bytes before fixed", ["bytes", {"type": "fixed", "name": "Two", "size": 2}], b"ab"),
    ("tuple for an array", INTS, (1, 2)),
    ("missing nullable", _record(["null", "string"]), {}),
]
"""Branches of unions, chosen as fastavro chooses them; nothing is changed."""

REFUSED = [
    ("text for int", "int", "5"),
    ("int of 71 bits", "long", 2**70),
    ("text for float", "float", "1.5"),
    ("bytes for string", "string", b"ab"),
    ("None for string", "string", None),
    ("unknown symbol", ENUM, "SPADES"),
    ("wrong size", {"type": "fixed", "name": "F", "size": 2}, b"abc"),
    ("missing field", _record("int"), {}),
    ("bool in a union", ["null", "int"], True),
    ("large int in a union", ["null", "int"], 2**40),
    ("float in a union", ["int", "string"], 1.5),
    ("text for nullable bytes", ["null", "bytes"], "a"),
    ("date as text", _logical("int", "date"), "no date"),
    (
        "decimal with too many digits",
        _record(_logical("bytes", "decimal", precision=4, scale=2)),
        {"f": Decimal("1.234")},
    ),
    ("list for a record", _record("int"), [("f", 1)]),
]
"""What neither of the two writes."""


@pytest.fixture(autouse=True)
def new_york(monkeypatch):
    """Run in a time zone with daylight saving time."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _theirs(schema, value):
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TheirAvro(client, json.dumps(schema))(value, CONTEXT)[5:]


@pytest.mark.parametrize(("schema", "value"), [row[1:] for row in BENT], ids=[row[0] for row in BENT])
def test_bent(schema, value):
    """A value that does not fit is written byte for byte as confluent-kafka writes it, and reported; else refused."""
    reports = []

    written = compile_encoder(json.dumps(schema), bends=lambda detail, path: reports.append((detail, path)))(value)

    assert _theirs(schema, value) == written
    assert reports
    with pytest.raises(EncodeError):
        compile_encoder(json.dumps(schema))(value)


@pytest.mark.parametrize(("schema", "value"), [row[1:] for row in CHOSEN], ids=[row[0] for row in CHOSEN])
def test_chosen(schema, value):
    """A union's branch is the one that confluent-kafka chooses; nothing is reported."""
    reports = []

    written = compile_encoder(json.dumps(schema), bends=lambda *report: reports.append(report))(value)

    assert _theirs(schema, value) == written
    assert [] == reports


@pytest.mark.parametrize(("schema", "value"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(schema, value):
    """What confluent-kafka refuses stays an error."""
    with pytest.raises(Exception):  # noqa: B017, PT011 - of any class of its libraries
        _theirs(schema, value)
    with pytest.raises(EncodeError):
        compile_encoder(json.dumps(schema), bends=lambda *_: None)(value)


def test_report_names_fields():
    """Each field is reported once, with its path, however many records and items are bent."""
    inner = {"type": "record", "name": "Line", "fields": [{"name": "at", "type": MILLIS}, {"name": "n", "type": "int"}]}
    schema = {"type": "record", "name": "Order", "fields": [
        {"name": "lines", "type": {"type": "array", "items": inner}}, {"name": "paid", "type": "boolean"}]}  # fmt: skip
    reports = []
    encode = compile_encoder(json.dumps(schema), bends=lambda detail, path: reports.append(path))

    for _ in range(3):
        encode({"lines": [{"at": AWARE, "n": True}, {"at": AWARE, "n": 1.5}], "paid": 1})

    assert ["lines[0].at", "lines[0].n", "lines[1].n", "paid"] == reports


STRICT = [
    ("validate.strict", {"f": 1, "z": 1}),
    ("validate.strict", {}),
    ("validate.strict.allow.default", {"f": 1, "z": 1}),
]


@pytest.mark.parametrize(("setting", "value"), STRICT)
def test_validate_strict(setting, value):
    """With `validate.strict`, records must have exactly the fields of the schema, as in confluent-kafka."""
    from strata.serdes.confluent.avro import AvroSerializer

    schema = json.dumps(_record("int", default=5))
    client = SchemaRegistryClient.new_client({"url": "mock://"})

    for kind in (TheirAvro, AvroSerializer):
        with pytest.raises(ValueError):  # noqa: PT011 - its words are its own
            kind(client, schema, conf={setting: True})(value, CONTEXT)


def test_allow_default():
    """`validate.strict.allow.default` allows to leave out a field with a default, as in confluent-kafka."""
    from strata.serdes.confluent.avro import AvroSerializer

    schema, conf = json.dumps(_record("int", default=5)), {"validate.strict.allow.default": True}
    client = SchemaRegistryClient.new_client({"url": "mock://"})

    theirs = TheirAvro(client, schema, conf=conf)({}, CONTEXT)

    assert theirs[5:] == AvroSerializer(client, schema, conf=conf)({}, CONTEXT)[5:]


JSON_ROWS = [
    ("NaN", {"a": [1, float("nan")]}, ["a[1]"]),
    ("infinity", {"a": float("-inf"), "b": float("inf")}, ["a", "b"]),
    ("naive", {"when": [{"at": NAIVE}]}, ["when[0].at"]),
]


@pytest.mark.parametrize(("value", "paths"), [row[1:] for row in JSON_ROWS], ids=[row[0] for row in JSON_ROWS])
def test_bent_json(value, paths):
    """JSON is written byte for byte as confluent-kafka writes it with orjson, and each change is reported."""
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    reports = []

    written = dump(value, lambda detail, path: reports.append(path))

    assert TheirJson('{"title": "T"}', client)(value, CONTEXT)[5:] == written
    assert paths == reports
    with pytest.raises(EncodeError):
        dump(value)


@pytest.mark.parametrize("value", [{1: 2}, {"a": uuid.UUID(int=1), "b": {2}}, {"a": 2**70}, {"a": b"x"}])
def test_refused_json(value):
    """What JSON cannot hold stays an error."""
    with pytest.raises(EncodeError):
        dump(value, lambda *_: None)


def test_warning_once():
    """A serializer warns once for each field."""
    from strata.serdes.confluent.avro import AvroSerializer

    client = SchemaRegistryClient.new_client({"url": "mock://"})
    serialize = AvroSerializer(client, json.dumps(_record("int")))
    with pytest.warns(BentValueWarning, match="field f: expected an integer, got bool"):
        serialize({"f": True}, CONTEXT)

    serialize({"f": False}, CONTEXT)  # another warning would be an error


def test_refuse():
    """`unfit.values` set to `refuse` refuses instead."""
    from strata.serdes.confluent.avro import AvroSerializer
    from strata.serdes.confluent.error import SerializationError

    client = SchemaRegistryClient.new_client({"url": "mock://"})
    with pytest.raises(SerializationError, match="expected an integer, got bool"):
        AvroSerializer(client, json.dumps(_record("int")), conf={"unfit.values": "refuse"})({"f": True}, CONTEXT)
