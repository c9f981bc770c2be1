"""Clients explain values and arguments that do not fit; the cases are named rows for each format."""

import enum
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaRegistryClient
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct
from pydantic import BaseModel

from strata.serdes.avro import AvroDeserializer, AvroSerializer, compile_encoder
from strata.serdes.client import Schema
from strata.serdes.errors import EncodeError
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.protobuf.files import find_message, link


class Suit(enum.Enum):
    """A Python enum whose names are symbols."""

    CLUBS = 1


class Colour(enum.StrEnum):
    """A Python enum whose values are texts."""

    RED = "HEARTS"


@dataclass
class Leg:
    """A dataclass."""

    miles: int


@dataclass
class Stop:
    """A dataclass with a time."""

    at: datetime


class LegModel(BaseModel):
    """A pydantic model."""

    miles: int


ENUM = {"type": "enum", "name": "Suit", "symbols": ["CLUBS", "HEARTS"]}
LEG = {"type": "record", "name": "Leg", "fields": [{"name": "miles", "type": "int"}]}
STOP = {
    "type": "record",
    "name": "Stop",
    "fields": [{"name": "city", "type": "string"}, {"name": "hours", "type": "int"}],
}
UNION = ["null", "int", LEG, STOP]
NEST = '{"type": "record", "name": "N", "fields": [{"name": "v", "type": ["int", "string", "N"]}]}'


def logical(kind, name, **more):
    """Return a schema with a logical type."""
    return {"type": kind, "logicalType": name, **more}


ZONED, NAIVE = datetime(2024, 3, 1, 12, 0, 0, 5000, UTC), datetime(2024, 3, 1, 12, 0, 0, 5000)  # noqa: DTZ001
DATE, MILLIS, MICROS = logical("int", "date"), logical("long", "timestamp-millis"), logical("long", "timestamp-micros")
LOCAL, CLOCK = logical("long", "local-timestamp-millis"), logical("int", "time-millis")
MONEY = logical("bytes", "decimal", precision=4, scale=2)
UUID = logical("string", "uuid")
ADD_ZONE = "expected a datetime with a time zone, got one without; add it, such as by value.replace(tzinfo=UTC)"
NO_ZONE = "expected a datetime without a time zone, got one with a time zone"
TOO_FINE = "expected a time in whole milliseconds, got a finer one; round it first, or set round.times"


def around(schema):
    """Return a record with an array and a map of a type."""
    types = {"l": {"type": "array", "items": schema}, "m": {"type": "map", "values": name_of(schema)}}
    fields = [{"name": name, "type": kind, "default": [] if name == "l" else {}} for name, kind in types.items()]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def name_of(schema):
    """Return a schema as it is written when it is used a second time."""
    if isinstance(schema, list):
        return [name_of(one) for one in schema]
    return schema.get("name", schema) if isinstance(schema, dict) else schema


AVRO = [
    ("wrong type in an array", "int", {"l": [1, "x"]}, "expected an integer, got str", "l[1]"),
    ("wrong type in a map", "int", {"m": {"k": "x"}}, "expected an integer, got str", "m['k']"),
    ("null", "int", {"l": [None]}, "expected an integer, got None", "l[0]"),
    (
        "Python enum",
        ENUM,
        {"l": [Suit.CLUBS]},
        "expected a symbol of the enum, got the Python enum member Suit.CLUBS; its name is one",
        "l[0]",
    ),
    (
        "near symbol",
        ENUM,
        {"l": ["heart"]},
        "expected 'CLUBS' or 'HEARTS', got 'heart'; did you mean 'HEARTS'?",
        "l[0]",
    ),
    (
        "dataclass",
        LEG,
        {"l": [Leg(1)]},
        "expected a mapping, got Leg; convert it first, such as by dataclasses.asdict(value)",
        "l[0]",
    ),
    (
        "model",
        LEG,
        {"l": [LegModel(miles=1)]},
        "expected a mapping, got LegModel; convert it first, such as by value.model_dump()",
        "l[0]",
    ),
    ("class", LEG, {"l": [LegModel]}, "expected a mapping, got the class LegModel instead of a value", "l[0]"),
    (
        "missing field",
        LEG,
        {"m": {"k": {}}},
        "expected a value, got none: the field is required and has no default",
        "m['k'].miles",
    ),
    (
        "branch by tuple",
        ["null", LEG, STOP],
        {"l": [("Log", {})]},
        "expected null, record Leg or record Stop, got the name 'Log'; did you mean 'Leg'?",
        "l[0]",
    ),
    (
        "branch by mark",
        UNION,
        {"l": [{"-type": "Stopp", "city": "x"}]},
        "expected null, int, record Leg or record Stop, got the name 'Stopp'; did you mean 'Stop'?",
        "l[0]",
    ),
    (
        "another record",
        LEG,
        {"l": [{"-type": "Stop", "miles": 1}]},
        "expected the record Leg, got the name 'Stop'",
        "l[0]",
    ),
    (
        "another record of a nullable",
        ["null", LEG],
        {"m": {"k": {"-type": "Stop", "miles": 1}}},
        "expected the record Leg, got the name 'Stop'",
        "m['k']",
    ),
    ("no branch", UNION, {"l": ["x"]}, "expected null, int, record Leg or record Stop, got str", "l[0]"),
    (
        "typo in a branch",
        ["null", LEG, STOP],
        {"l": [{"citty": "x", "hours": 1}]},
        "the schema has no such field; did you mean 'city'? (in the branch record Stop of the union)",
        "l[0].citty",
    ),
    (
        "unknown field in a branch",
        ["null", LEG, STOP],
        {"l": [{"miles": 1, "milez": 2}]},
        "the schema has no such field; did you mean 'miles'?",
        "l[0].milez",
    ),
    (
        "wrong type in a branch",
        ["null", LEG, STOP],
        {"l": [{"city": "x", "hours": "y"}]},
        "expected an integer, got str (in the branch record Stop of the union)",
        "l[0].hours",
    ),
    (
        "large number in a union",
        ["null", "int", "string"],
        {"l": [2**40]},
        "expected an integer of at most 32 bits, got one of 42 bits (in the branch int of the union)",
        "l[0]",
    ),
]


@pytest.mark.parametrize(("schema", "value", "detail", "path"), [row[1:] for row in AVRO], ids=[row[0] for row in AVRO])
def test_avro_values(schema, value, detail, path):
    """The error says what was expected, what was given and where."""
    with pytest.raises(EncodeError) as caught:
        compile_encoder(around(schema))(value)

    assert (detail, path) == (caught.value.detail, caught.value.path)


TIMES = ["null", DATE, MILLIS, LOCAL, "double", "string"]
BRANCHES = [
    ("fine datetime", TIMES, ZONED.replace(microsecond=1), TOO_FINE),
    (
        "fine decimal",
        [MONEY, "double"],
        Decimal("1.555"),
        "expected a decimal with at most 2 digits after the point, got 3",
    ),
    ("datetime for a date", ["null", DATE, "string"], ZONED, "expected a date, got datetime"),
    ("naive datetime", [DATE, MILLIS, "string"], NAIVE, ADD_ZONE),
    (
        "deep in a union in itself",
        json.loads(NEST),
        {"v": {"v": {"v": 1.5}}},
        "expected int, string or record N, got float (in the branch record N of the union)",
    ),
]


@pytest.mark.parametrize(("union", "value", "detail"), [row[1:] for row in BRANCHES], ids=[row[0] for row in BRANCHES])
def test_values_meant_for_a_branch(union, value, detail):
    """A value whose Python type belongs to one branch is not encoded with another."""
    with pytest.raises(EncodeError) as caught:
        compile_encoder(json.dumps(union))(value)

    assert detail == caught.value.detail


@pytest.mark.parametrize(
    ("value", "position"),
    [
        pytest.param(ZONED, 2, id="aware"),
        pytest.param(NAIVE, 3, id="naive"),
        pytest.param(date(2024, 3, 1), 1, id="date"),
        pytest.param("2024-03-01", 5, id="text"),
    ],
)
def test_branches_for_times(value, position):
    """The time zone decides between timestamp types; a text goes to the string branch if there is one."""
    assert 2 * position == compile_encoder(json.dumps(TIMES))(value)[0]


def test_a_member_of_a_text_enum_is_its_text():
    """A member of a text enum is encoded as its text, not its name."""
    assert b"\x02" == compile_encoder(json.dumps(ENUM))(Colour.RED)


BENDING = [
    ("aware datetime", MILLIS, ZONED, 1709294400005),
    ("aware text", MILLIS, "2024-03-01T13:00:00.005+01:00", 1709294400005),
    ("stored number", MILLIS, 1709294400005, 1709294400005),
    ("naive datetime", MILLIS, NAIVE, ADD_ZONE),
    ("naive text", MICROS, "2024-03-01T12:00:00", ADD_ZONE),
    ("date for a timestamp", MILLIS, date(2024, 3, 1), "expected a datetime with a time zone, got date"),
    (
        "date text for a timestamp",
        MILLIS,
        "2024-03-01",
        "expected an ISO 8601 date and time, got a string that is not one",
    ),
    (
        "seven digits of a second",
        MICROS,
        "2024-03-01T12:00:00.1234567Z",
        "expected an ISO 8601 date and time, got a string that is not one",
    ),
    ("microseconds in milliseconds", MILLIS, ZONED.replace(microsecond=5001), TOO_FINE),
    ("fraction for a timestamp", MILLIS, 1.5, "expected a datetime with a time zone, got float"),
    ("naive for local", LOCAL, NAIVE, 1709294400005),
    ("aware for local", LOCAL, ZONED, NO_ZONE),
    ("date", DATE, date(1970, 1, 4), 3),
    ("date text", DATE, "1970-01-04", 3),
    ("datetime for a date", DATE, ZONED, "expected a date, got datetime"),
    ("short date text", DATE, "19700104", "expected an ISO 8601 date, got a string that is not one"),
    ("time", CLOCK, time(0, 0, 1), 1000),
    ("time text", CLOCK, "00:00:01", 1000),
    (
        "aware time",
        CLOCK,
        time(0, 0, 1, tzinfo=UTC),
        "expected a time of day without a time zone, got one with a time zone",
    ),
    ("microseconds in a time", CLOCK, time(0, 0, 1, 1), TOO_FINE),
    ("decimal", MONEY, Decimal("1.5"), b"\x00\x96"),
    ("whole number for a decimal", MONEY, 1, b"\x64"),
    ("text for a decimal", MONEY, "1.50", b"\x00\x96"),
    ("stored bytes", MONEY, b"\x64", b"\x64"),
    ("fraction for a decimal", MONEY, 1.5, "expected a decimal, got float"),
    ("bool for a decimal", MONEY, True, "expected a decimal, got bool"),
    ("no digits", MONEY, "abc", "expected a decimal number, got a string that is not one"),
    ("too fine", MONEY, Decimal("1.501"), "expected a decimal with at most 2 digits after the point, got 3"),
    ("too fine as text", MONEY, "1.501", "expected a decimal with at most 2 digits after the point, got 3"),
    ("too large", MONEY, Decimal(100), "expected a decimal of at most 4 digits, 2 after the point, got more"),
    ("no number", MONEY, Decimal("NaN"), "expected a finite decimal, got NaN or an infinity"),
    ("number for a uuid", UUID, 5, "expected a UUID, got int"),
]


@pytest.mark.parametrize("nullable", [False, True], ids=["alone", "in a union"])
@pytest.mark.parametrize(("schema", "value", "found"), [row[1:] for row in BENDING], ids=[row[0] for row in BENDING])
def test_times_and_decimals_in_avro(schema, value, found, nullable):
    """A value that says exactly what is stored is accepted, and any other is refused."""
    others = ["null", "boolean"] if isinstance(value, date | time | Decimal) else ["null"]
    field = {"name": "a", "type": [*others, schema] if nullable else schema}
    encode = compile_encoder(json.dumps({"type": "record", "name": "R", "fields": [field]}))
    stored = compile_encoder(json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": schema}]}))
    if isinstance(found, str):
        with pytest.raises(EncodeError) as caught:
            encode({"a": value})
        assert ("a", True) == (caught.value.path, caught.value.detail.startswith(found))
    else:
        assert encode({"a": value})[nullable:] == stored({"a": found})


STOPS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "hours": {"type": "integer"}},
    "required": ["city"],
}
CLOSED = {**STOPS, "additionalProperties": False}


def marked(kind):
    """Return an object whose `kind` selects the branch."""
    return {"type": "object", "properties": {"kind": {"const": kind}, "seats": {}}, "required": ["kind", "seats"]}


JSON = [
    ("wrong type in an array", {"type": "integer"}, {"l": [1, "x"]}, "expected an integer, got a string", "l[1]"),
    ("wrong type in a map", {"type": "integer"}, {"m": {"k": "x"}}, "expected an integer, got a string", "m['k']"),
    ("null", {"type": "integer"}, {"l": [None]}, "expected an integer, got null", "l[0]"),
    ("several types", {"type": ["integer", "null"]}, {"l": ["x"]}, "expected an integer or null, got a string", "l[0]"),
    (
        "near symbol",
        {"enum": ["CLUBS", "HEARTS"]},
        {"l": ["heart"]},
        "expected 'CLUBS' or 'HEARTS', got another string; did you mean 'HEARTS'?",
        "l[0]",
    ),
    (
        "Python enum",
        {"enum": ["CLUBS", "HEARTS"]},
        {"l": [Suit.CLUBS]},
        "expected 'CLUBS' or 'HEARTS', got an integer",
        "l[0]",
    ),
    ("constant", {"const": "A"}, {"l": ["B"]}, 'expected "A", got another string', "l[0]"),
    (
        "missing property",
        STOPS,
        {"m": {"k": {}}},
        "expected a value, got none: the property is required",
        "m['k'].city",
    ),
    (
        "misspelled property",
        STOPS,
        {"l": [{"citty": "x"}]},
        "expected a value, got none: the property is required; is it misspelled as 'citty'?",
        "l[0].city",
    ),
    (
        "unknown property",
        CLOSED,
        {"l": [{"city": "x", "hour": 1}]},
        "the schema has no such field; did you mean 'hours'?",
        "l[0].hour",
    ),
    (
        "no branch",
        {"anyOf": [{"type": "integer"}, CLOSED]},
        {"l": ["x"]},
        "expected an integer or an object, got a string",
        "l[0]",
    ),
    (
        "typo in a branch",
        {"oneOf": [{"type": "integer"}, CLOSED]},
        {"l": [{"city": "x", "hour": 1}]},
        "the schema has no such field; did you mean 'hours'?",
        "l[0].hour",
    ),
    (
        "wrong type in a branch",
        {"oneOf": [{"type": "null"}, STOPS]},
        {"l": [{"city": 5}]},
        "expected a string, got an integer",
        "l[0].city",
    ),
    (
        "mark of a branch",
        {"oneOf": [marked("car"), marked("train")]},
        {"l": [{"kind": "trian"}]},
        "expected 'car' or 'train', got another string; did you mean 'train'?",
        "l[0].kind",
    ),
    (
        "typo in a marked branch",
        {"oneOf": [marked("car"), marked("train")]},
        {"l": [{"kind": "train", "seets": 1}]},
        "expected a value, got none: the property is required; is it misspelled as 'seets'?",
        "l[0].seats",
    ),
    (
        "two branches",
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        {"l": [1]},
        "expected a value that fits one branch of oneOf, got one that fits several",
        "l[0]",
    ),
    ("too small", {"minimum": 3}, {"l": [1]}, "expected a number of at least 3, got a smaller one", "l[0]"),
    (
        "too short",
        {"minLength": 3},
        {"l": ["x"]},
        "expected a string of at least 3 characters, got a shorter one",
        "l[0]",
    ),
    ("pattern", {"pattern": "^a"}, {"l": ["x"]}, "expected a string that matches '^a', got another string", "l[0]"),
    ("set", {}, {"l": [{1}]}, "expected a value that JSON can hold, got set; give a list", "l[0]"),
    (
        "bytes",
        {},
        {"l": [b"x"]},
        "expected a value that JSON can hold, got bytes; give text, such as by base64",
        "l[0]",
    ),
    (
        "class",
        {},
        {"l": [LegModel]},
        "expected a value that JSON can hold, got the class LegModel instead of a value",
        "l[0]",
    ),
    ("key that expected encrypted text", {}, {"l": [{5: 1}]}, "expected a string as key, got int", "l[0]"),
    (
        "surrogate",
        {},
        {"l": ["\ud800"]},
        "expected a string that UTF-8 can hold, got one with a lone surrogate",
        "l[0]",
    ),
    (
        "aware datetime for a date",
        {"type": "string", "format": "date"},
        {"l": [ZONED]},
        "expected an ISO 8601 date, got another string",
        "l[0]",
    ),
    (
        "date for a datetime",
        {"type": "string", "format": "date-time"},
        {"l": [date(2024, 3, 1)]},
        "expected an ISO 8601 date and time with a time zone, got another string",
        "l[0]",
    ),
    ("naive datetime", {}, {"l": [NAIVE]}, ADD_ZONE, "l[0]"),
    (
        "naive text",
        {"type": "string", "format": "date-time"},
        {"l": ["2024-03-01T12:00:00"]},
        "expected an ISO 8601 date and time with a time zone, got another string",
        "l[0]",
    ),
    (
        "aware time",
        {},
        {"l": [time(1, tzinfo=UTC)]},
        "expected a time of day without a time zone, got one with a time zone",
        "l[0]",
    ),
    (
        "decimal",
        {},
        {"l": [Decimal("1.5")]},
        "expected a value that JSON can hold, got Decimal; give it as a string or a number, such as by str(value)",
        "l[0]",
    ),
    ("naive datetime in a model", {}, {"l": [Stop(NAIVE)]}, ADD_ZONE, "l[0].at"),
]


@pytest.mark.parametrize(("schema", "value", "detail", "path"), [row[1:] for row in JSON], ids=[row[0] for row in JSON])
def test_json_values(client, schema, value, detail, path):
    """The error says what was expected, what was given and where, and names the rule of the schema."""
    properties = {"l": {"type": "array", "items": schema}, "m": {"type": "object", "additionalProperties": schema}}
    text = json.dumps({"type": "object", "properties": properties})

    with pytest.raises(EncodeError) as caught:
        JsonSerializer(client, text)(value, topic=f"sentences-{sha256(text.encode()).hexdigest()}")

    assert (detail, path) == (caught.value.detail.partition(" (rule ")[0], caught.value.path)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(ZONED, "2024-03-01T12:00:00.005000+00:00", id="aware datetime"),
        pytest.param(date(2024, 3, 1), "2024-03-01", id="date"),
        pytest.param(time(0, 0, 1), "00:00:01", id="time"),
    ],
)
def test_times_in_json(client, value, text):
    """A time without ambiguity becomes its ISO 8601 text."""
    assert json.dumps(text).encode() == JsonSerializer(client, "{}")(value, topic="sentences-times")[5:]


PROTOBUF = [
    (
        "dict",
        {"seconds": 5},
        "expected a message google.protobuf.Duration, got dict; make one by Duration(**fields)",
        "",
    ),
    ("another message", Struct(), "expected a message google.protobuf.Duration, got Struct", ""),
    ("class", Duration, "expected a message google.protobuf.Duration, got the class Duration instead of a value", ""),
    (
        "dataclass",
        Leg(1),
        "expected a message google.protobuf.Duration, got Leg; convert it first, such as by dataclasses.asdict(value)",
        "",
    ),
]


@pytest.mark.parametrize(("value", "detail", "path"), [row[1:] for row in PROTOBUF], ids=[row[0] for row in PROTOBUF])
def test_protobuf_values(client, value, detail, path):
    """A serializer accepts only messages of its class."""
    with pytest.raises(EncodeError) as caught:
        ProtobufSerializer(client, Duration)(value, topic="sentences-protobuf")

    assert (detail, path) == (caught.value.detail, caught.value.path)


def test_a_required_field_of_a_message_has_its_path(client):
    """The path of a missing required proto2 field includes the list index."""
    text = 'syntax = "proto2"; message R { repeated In a = 1; message In { required int32 n = 1; } }'
    kind = GetMessageClass(find_message(link(Schema(text, "PROTOBUF"), {}), (0,)))

    with pytest.raises(
        EncodeError, match=r"expected a value, got none: the field is required .* \(at field a\[0\]\.n\)"
    ):
        ProtobufSerializer(client, kind)(kind(a=[{}]), topic="sentences-required")


CLIENT = "client: expected a strata.serdes.client.RegistryClient, got {}"
SCHEMA = "{}: expected a schema text or a strata.serdes.client.Schema, got {}"
MAKE = "make one by RegistryClient.from_settings(ClientSettings.from_conf(conf))"
ARGUMENTS = [
    (
        "dict as Avro schema",
        lambda it: AvroSerializer(it, LEG),
        SCHEMA.format("schema", "dict; give its text, json.dumps(schema)"),
    ),
    (
        "list as Avro schema",
        lambda it: AvroSerializer(it, ["null"]),
        SCHEMA.format("schema", "list; give its text, json.dumps(schema)"),
    ),
    (
        "dict as reader schema",
        lambda it: AvroDeserializer(it, LEG),
        SCHEMA.format("reader_schema", "dict; give its text, json.dumps(schema)"),
    ),
    (
        "dict as JSON schema",
        lambda it: JsonSerializer(it, STOPS),
        SCHEMA.format("schema", "dict; give its text, json.dumps(schema)"),
    ),
    (
        "dict as JSON reader schema",
        lambda it: JsonDeserializer(it, STOPS),
        SCHEMA.format("reader_schema", "dict; give its text, json.dumps(schema)"),
    ),
    (
        "dict to register",
        lambda it: it.register("s", LEG),
        SCHEMA.format("schema", "dict; give its text, json.dumps(schema)"),
    ),
    (
        "dict to look up",
        lambda it: it.lookup("s", LEG),
        SCHEMA.format("schema", "dict; give its text, json.dumps(schema)"),
    ),
    (
        "dict to compile",
        lambda _: compile_encoder(LEG),
        SCHEMA.format("schema", "dict; give its text, json.dumps(schema)"),
    ),
    (
        "bytes as schema",
        lambda it: AvroSerializer(it, b"{}"),
        SCHEMA.format("schema", "bytes; give its text, schema.decode()"),
    ),
    ("path as schema", lambda it: AvroSerializer(it, Path("a.avsc")), "give its text, path.read_text()"),
    ("another library's schema", lambda it: AvroSerializer(it, TheirSchema('"string"', "AVRO")), "give its schema_str"),
    (
        "another library's client",
        lambda _: AvroSerializer(SchemaRegistryClient({"url": "http://h"}), LEG),
        CLIENT.format("confluent_kafka."),
    ),
    (
        "address as client",
        lambda _: AvroDeserializer("http://h"),
        CLIENT.format("str; make one by RegistryClient(url)"),
    ),
    (
        "another library's order",
        lambda it: JsonSerializer("{}", it),
        CLIENT.format("str; make one by RegistryClient(url)"),
    ),
    (
        "settings as to_dict",
        lambda it: AvroSerializer(it, '"int"', {"a": 1}),
        "to_dict: expected a function, got dict; settings are given as conf",
    ),
    ("no settings", lambda it: AvroSerializer(it, '"int"', None, 5), "conf: expected a dict of settings, got int"),
    (
        "message as class",
        lambda it: ProtobufSerializer(it, Duration()),
        "expected a message class, got google.protobuf.duration_pb2.Duration; pass type(message)",
    ),
    (
        "dict as class",
        lambda it: ProtobufDeserializer(it, {}),
        "message_type: expected a message class made by protoc, or a class with fields, got dict",
    ),
    (
        "class without fields as message",
        lambda it: ProtobufSerializer(it, str),
        "message_type: expected a message class made by protoc, or a class with fields, got the class str",
    ),
]


@pytest.mark.parametrize(("make", "says"), [row[1:] for row in ARGUMENTS], ids=[row[0] for row in ARGUMENTS])
def test_arguments(client, make, says):
    """The error names the argument, what it should be, what it is, and what to pass instead."""
    with pytest.raises(TypeError) as caught:
        make(client)

    assert says in str(caught.value)


def test_a_schema_of_another_format_is_refused(client):
    """A schema of another format is refused, since it would be registered in the wrong format."""
    with pytest.raises(ValueError, match="schema: expected a schema in the format JSON, got AVRO"):
        JsonSerializer(client, Schema("{}"))
