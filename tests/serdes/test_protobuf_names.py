"""Messages work even if their fields have the names of message methods, since users choose their own names."""

import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.client import Rule, RuleSet, Schema
from strata.serdes.errors import DecodeError
from strata.serdes.framing import join
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.protobuf.files import find_message, link

NAMES = [
    "HasField",
    "ListFields",
    "CopyFrom",
    "DESCRIPTOR",
    "ByteSize",
    "Clear",
    "ClearField",
    "MergeFrom",
    "ParseFromString",
    "SerializeToString",
    "SerializePartialToString",
    "SetInParent",
    "WhichOneof",
    "FromString",
    "Extensions",
    "UnknownFields",
    "IsInitialized",
    "MergeFromString",
]
ODD = "".join(f"optional string {name} = {number}; " for number, name in enumerate(NAMES, 3))
TEXT = f"""syntax = "proto3"; package odd;
message Odd {{ int64 id = 1; map<string, Odd> inside = 2; {ODD} optional string HasField_ = 50; int32 some_name = 51; }}
"""
SHOUT = "value == 'quiet' ; 'LOUD'"


def odd():
    """Return the class, and a message with a value in each field."""
    kind = GetMessageClass(find_message(link(Schema(TEXT, "PROTOBUF"), {}), (0,)))
    message = kind(id=7)
    message.inside["a"].id = 8
    for name in (*NAMES, "HasField_"):
        setattr(message, name, "quiet")
        setattr(message.inside["a"], name, "quiet")
    return kind, message


def expected(text="quiet"):
    """Return the same as JSON."""
    texts = dict.fromkeys((*NAMES, "HasField_"), text)
    return {"id": "7", "inside": {"a": {"id": "8", **texts}}, **texts}


def test_they_make_the_round_trip(client):
    """They make the round trip as generated messages, as messages of the schema alone, and as dicts."""
    kind, message = odd()
    frame = ProtobufSerializer(client, kind)(message, topic="odd")

    assert message == ProtobufDeserializer(client, kind)(frame)
    assert "quiet" == ProtobufDeserializer(client)(frame).DESCRIPTOR
    assert expected() == ProtobufDeserializer(client, as_dict=True)(frame)
    assert expected() == ProtobufDeserializer(client, kind, as_dict=True)(frame)


@pytest.mark.parametrize("mode", ["WRITE", "READ"])
def test_field_rules_go_through_them(client, mode):
    """A field rule finds each field, and does not change the caller's message."""
    kind, message = odd()
    before = kind.FromString(kind.SerializeToString(message))
    topic = f"odd-{mode.lower()}"

    class Loud:
        def field_transform(self, context):
            return lambda field, value: "LOUD" if field.type_name == "STRING" else value

    rules = RuleSet(domain_rules=(Rule(name="loud", type="LOUD", mode=mode),))
    client.register(f"{topic}-value", Schema(TEXT, "PROTOBUF", rule_set=rules))
    conf = {"rule.executors": {"LOUD": lambda client, settings: Loud()}}
    latest = {"use.latest.version": True}
    serialize = ProtobufSerializer(client, kind, conf={**conf, **latest, "auto.register.schemas": False})

    frame = serialize(message, topic=topic)

    assert expected("LOUD") == ProtobufDeserializer(client, as_dict=True, conf=conf)(frame, topic=topic)
    assert before == message


def test_jsonata_over_them(client):
    """A message becomes JSON for JSONata, and JSON a message."""
    kind, message = odd()
    rules = RuleSet(domain_rules=(Rule(name="one", type="JSONATA", mode="WRITE", expr="$merge([$, {'id': '9'}])"),))
    client.register("odd-jsonata-value", Schema(TEXT, "PROTOBUF", rule_set=rules))
    conf = {"use.latest.version": True, "auto.register.schemas": False}

    frame = ProtobufSerializer(client, kind, conf=conf)(message, topic="odd-jsonata")

    assert expected() | {"id": "9"} == ProtobufDeserializer(client, as_dict=True)(frame)


ANY = """syntax = "proto3"; package any; import "google/protobuf/any.proto";
message Holder { google.protobuf.Any any = 1; } message Held { int32 the_number = 1; string DESCRIPTOR = 2; }
message Plain { int32 the_number = 1; }
"""


@pytest.mark.parametrize(
    ("held", "payload", "value"),
    [
        pytest.param("any.Plain", b"\x08\x05", {"the_number": 5}, id="a type of the schema"),
        pytest.param("google.protobuf.Duration", b"\x08\x05", {"value": "5s"}, id="a type of protobuf's own"),
    ],
)
def test_any(client, held, payload, value):
    """The type in an Any is found in the schema, or among the program's types."""
    url = f"type.googleapis.com/{held}"
    packed = AnyMessage(type_url=url, value=payload).SerializeToString()
    schema_id = client.register("any-value", Schema(ANY, "PROTOBUF")).schema_id
    frame = join(schema_id, b"\x00\x0a" + bytes([len(packed)]) + packed)

    assert {"any": {"@type": url, **value}} == ProtobufDeserializer(client, as_dict=True)(frame)


@pytest.mark.parametrize("held", ["any.Nowhere", "any.Held"])
def test_any_of_what_json_cannot_show(client, held):
    """An unknown type, or one whose fields hide methods that the library calls, is an error of the record."""
    packed = AnyMessage(type_url=f"type.googleapis.com/{held}", value=b"\x08\x05").SerializeToString()
    schema_id = client.register("any-value", Schema(ANY, "PROTOBUF")).schema_id

    with pytest.raises(DecodeError, match=r"cannot convert the any\.Holder"):
        ProtobufDeserializer(client, as_dict=True)(join(schema_id, b"\x00\x0a" + bytes([len(packed)]) + packed))


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_names_that_json_would_have_twice(client, syntax):
    """The registry accepts such a text, so it is read; dicts use the schema's names."""
    fields = "optional int32 a_b = 1; optional int32 aB = 2;"
    text = f'syntax = "{syntax}"; package twice; message Outer {{ message T {{ {fields} }} optional T t = 1; }}'
    frame = join(
        client.register(f"twice-{syntax}", Schema(text, "PROTOBUF")).schema_id, b"\x00\x0a\x04\x08\x05\x10\x06"
    )

    assert {"t": {"a_b": 5, "aB": 6}} == ProtobufDeserializer(client, as_dict=True)(frame)
