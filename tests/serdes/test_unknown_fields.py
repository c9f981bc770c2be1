"""Fields that the writer's schema lacks are refused, with their path and the nearest known name, or dropped."""

import asyncio
import json

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.serdes.aio import AsyncSerializer
from strata.serdes.avro import AvroDeserializer, AvroSerializer, compile_encoder
from strata.serdes.client import Schema
from strata.serdes.errors import EncodeError
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.protobuf.files import find_message, link

LEG = {"type": "record", "name": "Leg", "fields": [{"name": "miles", "type": "int"}]}
FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "carrier", "type": "string"},
        {"name": "gate", "type": ["null", "string"], "default": None, "aliases": ["door"]},
        {"name": "legs", "type": {"type": "array", "items": LEG}, "default": []},
        {"name": "by", "type": {"type": "map", "values": "Leg"}, "default": {}},
        {"name": "back", "type": ["null", "Flight"], "default": None},
    ],
}
TEXT = json.dumps(FLIGHT)
NEAREST = "the schema has no such field; did you mean '{}'?"
BARE = "the schema has no such field"

UNKNOWN = [
    ("a typo of a nullable field", {"carrier": "UA", "gat": "C7"}, NEAREST.format("gate"), "gat"),
    (
        "as many keys as fields",
        {"carrier": "UA", "legs": [], "by": {}, "back": None, "Gate": "C7"},
        NEAREST.format("gate"),
        "Gate",
    ),
    ("a typo of a required field", {"carier": "UA"}, NEAREST.format("carrier"), "carier"),
    ("nothing like it", {"carrier": "UA", "zzz": 1}, BARE, "zzz"),
    ("an alias", {"carrier": "UA", "door": "C7"}, NEAREST.format("gate"), "door"),
    (
        "in an array",
        {"carrier": "UA", "legs": [{"miles": 1}, {"miles": 1, "mile": 2}]},
        NEAREST.format("miles"),
        "legs[1].mile",
    ),
    ("in a map", {"carrier": "UA", "by": {"k": {"miles": 1, "m": 2}}}, BARE, "by['k'].m"),
    (
        "in a record in itself",
        {"carrier": "UA", "back": {"carrier": "AA", "leg": []}},
        NEAREST.format("legs"),
        "back.leg",
    ),
    ("a key that expected encrypted text", {"carrier": "UA", 7: 1}, BARE, "['7']"),
]


@pytest.mark.parametrize(("value", "detail", "path"), [row[1:] for row in UNKNOWN], ids=[row[0] for row in UNKNOWN])
def test_avro_refuses_unknown_fields(value, detail, path):
    """The error names the field, its path and the nearest field of the schema."""
    with pytest.raises(EncodeError) as caught:
        compile_encoder(TEXT)(value)

    assert (detail, path) == (caught.value.detail, caught.value.path)


def test_avro_takes_every_known_field_and_the_mark_of_a_type():
    """A key `-type` names the record and is not a field."""
    value = {"-type": "Flight", "carrier": "UA", "back": {"carrier": "AA", "gate": "C7"}}

    assert compile_encoder(TEXT)({"carrier": "UA", "back": {"carrier": "AA", "gate": "C7"}}) == compile_encoder(TEXT)(
        value
    )


def test_avro_drops_unknown_fields_on_request(client):
    """With `unknown.fields` set to `drop`, unknown fields are left out at every depth."""
    value = {"carrier": "UA", "gat": "C7", "legs": [{"miles": 1, "x": 2}], "back": {"carrier": "AA", "y": 1}}
    serialize = AvroSerializer(client, TEXT, conf={"unknown.fields": "drop"})

    read = AvroDeserializer(client)(serialize(value, topic="unknown-drop"))

    back = {"carrier": "AA", "gate": None, "legs": [], "by": {}, "back": None}
    assert {"carrier": "UA", "gate": None, "legs": [{"miles": 1}], "by": {}, "back": back} == read


@pytest.mark.parametrize("kind", ["plain", "asyncio"])
def test_a_field_that_the_latest_version_lacks_is_refused(client, kind):
    """A required field of the local schema that the registry's latest version lacks is refused, not lost."""
    client.register(f"unknown-latest-{kind}-value", json.dumps(LEG))
    local = {**LEG, "fields": [*LEG["fields"], {"name": "tail", "type": "string"}]}
    conf = {"use.latest.version": True, "auto.register.schemas": False}
    serialize = AvroSerializer(client, json.dumps(local), conf=conf)
    later = AsyncSerializer(serialize)
    write = serialize if kind == "plain" else lambda value, topic: asyncio.run(later(value, topic=topic))

    with pytest.raises(EncodeError, match=r"the schema has no such field \(at field tail\)"):
        write({"miles": 1, "tail": "N7"}, topic=f"unknown-latest-{kind}")


def test_the_setting_is_refuse_or_drop(client):
    """Any other value is refused by the constructor."""
    with pytest.raises(ValueError, match=r"unknown\.fields: expected refuse or drop, got 'ignore'"):
        AvroSerializer(client, TEXT, conf={"unknown.fields": "ignore"})


CLOSED = {"type": "object", "properties": {"miles": {"type": "integer"}}, "additionalProperties": False}
TRIP = {
    "type": "object",
    "properties": {
        "carrier": {"type": "string"},
        "legs": {"type": "array", "items": CLOSED},
        "by": {"type": "object", "additionalProperties": CLOSED},
        "free": {"type": "object"},
    },
    "additionalProperties": False,
}
TRIP_VALUE = {"carrier": "UA", "gat": 1, "legs": [{"miles": 1, "x": 2}], "by": {"k": {"y": 1}}, "free": {"z": 1}}


@pytest.mark.parametrize(
    ("value", "detail", "path"),
    [
        pytest.param({"carier": "UA"}, NEAREST.format("carrier"), "carier", id="a typo"),
        pytest.param({"legs": [{"miles": 1}, {"mile": 2}]}, NEAREST.format("miles"), "legs[1].mile", id="in an array"),
        pytest.param({"by": {"k": {"zzz": 2}}}, BARE, "by['k'].zzz", id="in a map"),
    ],
)
def test_json_refuses_unknown_properties_of_closed_schemas(client, value, detail, path):
    """The JSON serializer refuses unknown properties, as Avro's does, where the schema allows no others."""
    with pytest.raises(EncodeError) as caught:
        JsonSerializer(client, json.dumps(TRIP))(value, topic="unknown-json")

    assert (detail, path) == (caught.value.detail.partition(" (rule ")[0], caught.value.path)


def test_json_drops_unknown_properties_on_request(client):
    """Properties are dropped only where the schema is closed; allowed ones stay, and other errors are still raised."""
    serialize = JsonSerializer(client, json.dumps(TRIP), conf={"unknown.fields": "drop"})

    read = JsonDeserializer(client)(serialize(TRIP_VALUE, topic="unknown-json-drop"))

    assert {"carrier": "UA", "legs": [{"miles": 1}], "by": {"k": {}}, "free": {"z": 1}} == read
    with pytest.raises(EncodeError, match="expected a string, got an integer"):
        serialize({"carrier": 5, "x": 1}, topic="unknown-json-drop")


def test_json_without_validation_writes_every_property(client):
    """Without validation every property is written, also those that the schema lacks."""
    conf = {"validate": False, "unknown.fields": "drop"}
    frame = JsonSerializer(client, json.dumps(TRIP), conf=conf)(TRIP_VALUE, topic="unknown-json-loose")

    assert TRIP_VALUE == JsonDeserializer(client, conf={"validate": False})(frame)


OLD = """syntax = "proto3"; package trip;
message Trip { string carrier = 1; repeated Leg legs = 2; map<string, Leg> by = 3; message Leg { int32 miles = 1; } }"""
NEW = OLD.replace("int32 miles = 1;", "int32 miles = 1; int32 mile = 2;").replace(
    "Trip {", "Trip { string gate = 4;", 1
)
PINNED = {"use.latest.version": True, "auto.register.schemas": False}


def trip(text):
    """Return the class of the message Trip."""
    return GetMessageClass(find_message(link(Schema(text, "PROTOBUF"), {}), (0,)))


@pytest.mark.parametrize(
    ("fields", "detail", "path"),
    [
        pytest.param({"gate": "C7"}, BARE, "gate", id="at the top"),
        pytest.param({"legs": [{"miles": 1}, {"mile": 2}]}, NEAREST.format("miles"), "legs[1].mile", id="in a list"),
        pytest.param({"by": {"k": {"mile": 2}}}, NEAREST.format("miles"), "by['k'].mile", id="in a map"),
    ],
)
def test_protobuf_refuses_fields_that_the_registrys_schema_lacks(client, fields, detail, path):
    """A message of a later version is written with an older schema only if it sets no new field."""
    client.register("unknown-proto-value", Schema(OLD, "PROTOBUF"))
    kind = trip(NEW)
    serialize = ProtobufSerializer(client, kind, PINNED)

    with pytest.raises(EncodeError) as caught:
        serialize(ParseDict(fields, kind()), topic="unknown-proto")

    assert (detail, path) == (caught.value.detail, caught.value.path)
    assert serialize(kind(carrier="UA"), topic="unknown-proto")[6:] == b"\x0a\x02UA"


def test_protobuf_drops_fields_that_the_registrys_schema_lacks_on_request(client):
    """Unknown fields are dropped at every depth, and known ones stay."""
    client.register("unknown-proto-drop-value", Schema(OLD, "PROTOBUF"))
    kind = trip(NEW)
    fields = {"carrier": "UA", "gate": "C7", "legs": [{"miles": 1, "mile": 2}], "by": {"k": {"mile": 2}}}

    frame = ProtobufSerializer(client, kind, {**PINNED, "unknown.fields": "drop"})(
        ParseDict(fields, kind()), topic="unknown-proto-drop"
    )

    assert {"carrier": "UA", "legs": [{"miles": 1}], "by": {"k": {}}} == ProtobufDeserializer(client, as_dict=True)(
        frame
    )
    assert kind(carrier="UA", legs=[{"miles": 1}], by={"k": {}}) == kind.FromString(frame[6:])


@st.composite
def schemas(draw, depth=0):
    """Draw a schema of records in arrays and unions with null."""
    kind = (
        "record"
        if depth == 0
        else draw(st.sampled_from(["leaf", "record", "array", "nullable"][: 1 + 3 * (depth < 4)]))
    )
    if kind == "leaf":
        return draw(st.sampled_from(["int", "string", ["null", "int"]]))
    if kind == "record":
        fields = [{"name": f"f{number}", "type": draw(schemas(depth + 1))} for number in range(draw(st.integers(0, 3)))]
        return {"type": "record", "name": f"R{draw(st.integers(0, 10**12))}", "fields": fields}
    inner = draw(schemas(depth + 1))
    if kind == "array":
        return {"type": "array", "items": inner}
    return inner if isinstance(inner, list) else ["null", inner]


def value_of(schema):
    """Return a value of a schema with every field in it."""
    match schema:
        case [_, inner]:
            return value_of(inner)
        case {"type": "array", "items": items}:
            return [value_of(items), value_of(items)]
        case {"fields": fields}:
            return {field["name"]: value_of(field["type"]) for field in fields}
    return {"int": 5, "string": "x"}[schema]


def records_in(schema, value, path=""):
    """Yield the records in a value with their schemas and paths."""
    match schema:
        case [_, inner]:
            yield from records_in(inner, value, path)
        case {"type": "array", "items": items}:
            for index, one in enumerate(value):
                yield from records_in(items, one, f"{path}[{index}]")
        case {"fields": fields}:
            yield schema, value, path
            for field in fields:
                yield from records_in(field["type"], value[field["name"]], f"{path}.{field['name']}")


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_an_unknown_field_anywhere_is_refused_or_dropped(data):
    """An unknown field of any record in any schema is refused or dropped, even if known fields are left out."""
    schema = data.draw(schemas())
    value, text = value_of(schema), json.dumps(schema)
    kind, record, path = data.draw(st.sampled_from(list(records_in(schema, value))))
    for field in kind["fields"]:
        if isinstance(field["type"], list) and data.draw(st.booleans()):
            del record[field["name"]]
    known = compile_encoder(text)(value)
    record["unknown"] = 1

    with pytest.raises(EncodeError) as caught:
        compile_encoder(text)(value)

    assert f"{path}.unknown".lstrip(".") == caught.value.path
    assert known == compile_encoder(text, drop_unknown=True)(value)
