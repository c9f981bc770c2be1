"""Source of classes for Protobuf and JSON schemas: it runs, and its classes make the schema again."""

import json
import sys
import types
from itertools import count

import jsonschema_rs
import pytest

from harness.class_sources import ORDER_JSON, ORDER_PROTO, json_source, proto_source
from strata.serdes import (
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryClient,
    Schema,
)
from strata.serdes.classes import schema_of
from strata.serdes.classes.code import STYLES
from strata.serdes.errors import SchemaError
from strata.serdes.protobuf.files import link

_modules = count()


def run(source):
    """Run the source of a module, and return the module."""
    module = types.ModuleType(f"generated_formats_{next(_modules)}")
    sys.modules[module.__name__] = module  # hints are resolved in the module of a class
    exec(compile(source, module.__name__, "exec"), module.__dict__)
    return module


@pytest.fixture
def client():
    """Return a client of a registry in memory."""
    with RegistryClient("mock://") as made:
        yield made


@pytest.mark.parametrize("style", STYLES)
def test_a_protobuf_schema_again(style, client):
    """The class makes a schema that is compatible both ways and equal in names, numbers, presence and nesting."""
    module = run(proto_source(ORDER_PROTO, style))
    again = schema_of(module.Order, "PROTOBUF").text

    def messages(text):
        file = link(Schema(text, "PROTOBUF"), {})
        rows = []
        pending = list(file.message_types_by_name.values())
        enums = {one.full_name: one for one in file.enum_types_by_name.values()}
        while pending:
            message = pending.pop()
            pending += message.nested_types
            enums |= {one.full_name: one for one in message.enum_types}
            for one in message.fields:
                inner = one.message_type or one.enum_type
                union = one.containing_oneof
                rows.append(
                    (one.full_name, one.number, one.type, one.is_repeated, one.has_presence,
                     inner and inner.full_name, union and union.name)
                )  # fmt: skip
        values = {name: [(one.name, one.number) for one in enum.values] for name, enum in enums.items()}
        return sorted(rows), values

    assert messages(ORDER_PROTO) == messages(again)


@pytest.mark.parametrize("style", STYLES)
def test_objects_of_a_protobuf_schema(style, client):
    """Objects of the classes are written under the schema of the registry, and read again."""
    client.register("orders-value", Schema(ORDER_PROTO, "PROTOBUF"))
    module = run(proto_source(ORDER_PROTO, style))
    value = module.Order(
        id=7, from_="x", count=0, state=module.State.OLD, lines=[module.Line(sku="a", parent=module.Order(id=8))],
        paid=module.Card(number="1"), hash=5, other=module.Other.SOME,
    )  # fmt: skip
    for conf in ({"auto.register.schemas": False, "use.latest.version": True}, {}):
        frame = ProtobufSerializer(client, module.Order, conf)(value, topic="orders")

        assert value == ProtobufDeserializer(client, module.Order)(frame, topic="orders")
    as_dict = ProtobufDeserializer(client, as_dict=True)(frame, topic="orders")
    assert ("STATE_OLD", {"number": "1"}, "SOME") == (as_dict["state"], as_dict["card"], as_dict["other"])


@pytest.mark.parametrize("style", STYLES)
def test_a_json_schema_again(style):
    """The class makes the very schema, with names, docs, defaults, and which properties may be absent."""
    module = run(json_source(ORDER_JSON, style))

    assert ORDER_JSON == json.loads(schema_of(module.Order, "JSON").text)


@pytest.mark.parametrize("style", STYLES)
def test_objects_of_a_json_schema(style, client):
    """Objects are written as the schema of the registry says, with absent properties absent, and read again."""
    module = run(json_source(ORDER_JSON, style))
    document = {
        "id": 1, "first-name": "a", "state": "OLD", "lines": [{"sku": "x"}], "at": "2026-01-02T03:04:05+00:00",
        "tags": {"a": 0.5}, "uid": "00000000-0000-0000-0000-000000000005", "_raw": "YWI=", "choice": {"sku": "y"},
        "note": None, "count": 4,
    }  # fmt: skip
    jsonschema_rs.validator_for(ORDER_JSON).validate(document)
    client.register("orders-value", Schema(json.dumps(ORDER_JSON), "JSON"))
    written = JsonSerializer(client, json.dumps(ORDER_JSON))(document, topic="orders")

    value = JsonDeserializer(client, module.Order)(written, topic="orders")

    assert (None, "a", module.State.OLD) == (value.gate, value.first_name, value.state)
    again = JsonSerializer(client, module.Order)(value, topic="orders")
    assert document == JsonDeserializer(client)(again, topic="orders")


# schema, part of the error
NO_CLASS = [
    ({"type": "object"}, "the schema: an object without properties"),
    ({"type": "object", "properties": {"a": {}}}, r"Order\.a: a schema without a known type"),
    ({"type": "object", "properties": {"a": True}}, r"Order\.a: a schema for any value"),
    ({"type": "object", "properties": {"a": {"$ref": "other.json"}}}, r"Order\.a: only references to definitions"),
    ({"type": "object", "properties": {"a": {"enum": [1]}}}, r"Order\.a: expected names as values of the enum"),
    ({"type": "object", "properties": {"a": {"type": "array"}}}, r"Order\.a\[\]: a schema for any value"),
    ({"$ref": "#/definitions/A", "definitions": {"A": {"$ref": "#/definitions/A"}}}, "nested too deeply"),
]


@pytest.mark.parametrize(("document", "words"), NO_CLASS)
def test_json_schemas_without_a_class(document, words):
    """A part that has no class is an error that names the place."""
    with pytest.raises(SchemaError, match=words):
        json_source(document, "dataclass")


# body of a message, part of the error
NO_MESSAGE = [
    ("oneof a { string b = 1; string c = 2; }", r"M\.a: a oneof with two fields of one Python type"),
    ("map<int32, string> a = 1;", r"M\.a: a class holds only maps whose keys are strings"),
    ("google.protobuf.Any a = 1;", r"M\.a: google\.protobuf\.Any of another file has no class"),
]


@pytest.mark.parametrize(("body", "words"), NO_MESSAGE)
def test_protobuf_schemas_without_a_class(body, words):
    """A part that has no class is an error that names the field."""
    text = f'syntax = "proto3"; import "google/protobuf/any.proto"; message M {{ {body} }}'
    with pytest.raises(SchemaError, match=words):
        proto_source(text, "dataclass")
    with pytest.raises(SchemaError, match=r"M\.a: a required field"):
        proto_source('syntax = "proto2"; message M { required int32 a = 1; }', "dataclass")
