"""ProtobufSerializer and ProtobufDeserializer work against the real registry, with classes made from descriptors."""

import pickle

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct, Value
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.serdes.client import Reference, RegistryClient, Schema
from strata.serdes.errors import DecodeError, EncodeError, FrameError, SchemaError, SerdeError
from strata.serdes.framing import join, split
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.protobuf.files import find_message, indexes_of, link

ORDER = """syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto"; import "google/type/date.proto"; import "confluent/meta.proto";
message Order {
  option (confluent.message_meta) = { doc: "an order" };
  int64 id = 1; google.protobuf.Timestamp at = 2; google.type.Date day = 3; map<string, Line> lines = 4;
  message Line { string sku = 1; Order inner = 2; }
}
message Last { bytes raw = 1; }
"""


PART = 'syntax = "proto3"; package s; message Part { int32 n = 1; }'
ITEM = 'syntax = "proto3"; package s; import "s/part.proto"; message Item { int32 n = 1; Part part = 2; }'


def proto(text, *references):
    """Return a Protobuf schema."""
    return Schema(text, "PROTOBUF", references)


def message_of(text, *path):
    """Return the class of a message in a text."""
    return GetMessageClass(find_message(link(proto(text), {}), path or (0,)))


def frame_of(client, schema, payload, path=b"\x00"):
    """Return a frame of a payload, under a schema that is registered for it."""
    return join(client.register("proto-any", schema).schema_id, path + payload)


@pytest.fixture(autouse=True)
def _no_rules(client):
    client.set_config("NONE", "proto-any")


def test_a_text_is_enough_to_read(client):
    """Imports of well-known files, maps, nesting and options all link."""
    order = message_of(ORDER)(id=5)
    order.at.seconds, order.day.year, order.lines["a"].sku = 60, 2024, "x"
    order.lines["a"].inner.id = 6
    frame = frame_of(client, proto(ORDER), order.SerializeToString())

    expected = {
        "id": "5",
        "at": "1970-01-01T00:01:00Z",
        "day": {"year": 2024},
        "lines": {"a": {"sku": "x", "inner": {"id": "6"}}},
    }

    assert expected == ProtobufDeserializer(client, as_dict=True)(frame)
    assert order == ProtobufDeserializer(client, type(order))(frame)
    assert 2024 == ProtobufDeserializer(client, from_dict=lambda it, _: it.day.year)(frame)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param(b"\x00", "shop.Order", id="the first"),
        pytest.param(b"\x02\x00", "shop.Order", id="the first, spelled out"),
        pytest.param(b"\x02\x02", "shop.Last", id="the last"),
        pytest.param(b"\x04\x00\x00", "shop.Order.Line", id="nested"),
    ],
)
def test_the_path_names_the_message(client, path, name):
    """The message at the frame's path in the schema's file is decoded."""
    assert name == ProtobufDeserializer(client)(frame_of(client, proto(ORDER), b"", path)).DESCRIPTOR.full_name


@pytest.mark.parametrize("path", [b"\x02\x06", b"\x06\x00\x00\x06", b"\x04\x02\x00"])
def test_a_path_to_nowhere(client, path):
    """A path without a message is an error of the record that names the schema."""
    with pytest.raises(SchemaError, match="has no message at"):
        ProtobufDeserializer(client)(frame_of(client, proto(ORDER), b"", path))


def test_paths_to_nowhere_ask_for_nothing(client, monkeypatch):
    """References are requested once, so that a topic full of damaged frames costs few requests."""
    part = client.register("proto-part", proto(PART)).version
    item = proto(ITEM, Reference("s/part.proto", "proto-part", part))
    frames = [frame_of(client, item, b"", path) for path in (b"\x02\x06", b"\x02\x08", b"\x00")]
    deserialize = ProtobufDeserializer(client)
    with pytest.raises(SchemaError, match="has no message at"):
        deserialize(frames[0])

    monkeypatch.delattr(RegistryClient, "get_version")

    with pytest.raises(SchemaError, match="has no message at"):
        deserialize(frames[1])
    assert "s.Item" == deserialize(frames[2]).DESCRIPTOR.full_name


def test_references_of_references(client):
    """Files import each other under the names of references, deeply and more than once."""
    base = client.register("proto-base", proto('syntax = "proto3"; package b; message Base { int32 n = 1; }')).version
    middle = proto(
        'syntax = "proto3"; package m; import "b.proto"; message Middle { b.Base base = 1; }',
        Reference("b.proto", "proto-base", base),
    )
    version = client.register("proto-middle", middle).version
    top = proto(
        'syntax = "proto3"; import "m.proto"; import "b.proto"; message Top { m.Middle middle = 1; b.Base base = 2; }',
        Reference("b.proto", "proto-base", base),
        Reference("m.proto", "proto-middle", version),
    )

    value = ProtobufDeserializer(client, as_dict=True)(
        frame_of(client, top, b"\x0a\x04\x0a\x02\x08\x05\x12\x02\x08\x06")
    )

    assert {"middle": {"base": {"n": 5}}, "base": {"n": 6}} == value


def test_imports_are_registered(client):
    """Imports are registered under their own names; well-known files are not, unless requested."""
    kind = message_of(
        'syntax = "proto3"; import "google/protobuf/struct.proto"; message A { google.protobuf.Struct s = 1; }'
    )
    ProtobufSerializer(client, kind)(kind(), topic="proto-known")
    assert () == client.get_version("proto-known-value").schema.references

    conf = {"skip.known.types": False, "reference.subject.name.strategy": lambda _, file: f"own-{file.name}"}
    ProtobufSerializer(client, kind, conf)(kind(), topic="proto-registered")
    found = client.get_version("proto-registered-value").schema.references

    assert [("google/protobuf/struct.proto", "own-google/protobuf/struct.proto")] == [
        (one.name, one.subject) for one in found
    ]


def test_well_known_messages_themselves(client):
    """A well-known message may itself be the record; it is decoded to the generated class."""
    value = Struct(fields={"a": Value(number_value=1)})
    frame = ProtobufSerializer(client, Struct)(value, topic="proto-struct")

    assert value == ProtobufDeserializer(client, Struct)(frame)
    assert {"a": 1.0} == ProtobufDeserializer(client, as_dict=True)(frame)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"\x08", id="a field without value"),
        pytest.param(b"\x12\x05\x08", id="longer than what is there"),
        pytest.param(b"\x0f\x00", id="no wire type"),
        pytest.param(b"\x00\x00", id="field number 0"),
    ],
)
def test_damaged_payloads(client, payload):
    """A damaged payload is an error with a reason, id and topic."""
    frame = frame_of(client, proto(ORDER), payload)
    with pytest.raises(DecodeError) as caught:
        ProtobufDeserializer(client)(frame, topic="proto-damage")

    found = caught.value
    assert ("malformed", split(frame)[0], "proto-damage") == (found.reason, found.schema_id, found.topic)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        pytest.param("timestamp.proto Timestamp", b"\x08\xff\xff\xff\xff\xff\xff\xff\x7f", id="after the last year"),
        pytest.param("duration.proto Duration", b"\x08\xff\xff\xff\xff\xff\xff\xff\x7f", id="too long"),
        pytest.param("any.proto Any", b"\x0a\x08secret/x", id="of an unknown type"),
        pytest.param("any.proto Any", b"\x0a\x1fsecret/google.protobuf.Duration\x12\x01\xff", id="damaged inside"),
        pytest.param("struct.proto Value", b"\x11" + bytes(6) + b"\xf8\x7f", id="not a number"),
        pytest.param("field_mask.proto FieldMask", b"\x0a\x08secret__", id="no name of a field"),
    ],
)
def test_what_a_dict_cannot_hold(client, kind, payload):
    """A value that Protobuf's JSON cannot express is an error without the value; the message itself can be read."""
    file, name = kind.split()
    text = f'syntax = "proto3"; import "google/protobuf/{file}"; message A {{ google.protobuf.{name} a = 1; }}'
    frame = frame_of(client, proto(text), b"\x0a" + bytes([len(payload)]) + payload)

    with pytest.raises(DecodeError) as caught:
        ProtobufDeserializer(client, as_dict=True)(frame)

    assert ("invalid value", split(frame)[0]) == (caught.value.reason, caught.value.schema_id)
    assert "secret" not in str(caught.value)
    assert ProtobufDeserializer(client)(frame).HasField("a")


def test_messages_nested_without_end(client):
    """Messages nested too deeply are refused, since protobuf bounds the depth."""
    text = 'syntax = "proto3"; message N { N n = 1; }'
    payload = b""
    for _ in range(500):
        size, number = b"", len(payload)
        while number > 127:
            size, number = size + bytes([number & 127 | 128]), number >> 7
        payload = b"\x0a" + size + bytes([number]) + payload
    with pytest.raises(DecodeError, match="malformed"):
        ProtobufDeserializer(client, as_dict=True)(frame_of(client, proto(text), payload))


def test_any_bytes_give_a_message_or_an_error(client):
    """Any path and payload give a message or an error."""
    deserialize = ProtobufDeserializer(client, as_dict=True)
    head = frame_of(client, proto(ORDER), b"", b"")

    @settings(max_examples=examples(100), deadline=None)
    @given(st.binary(max_size=40))
    def law(data):
        try:
            value = deserialize(head + data)
        except (DecodeError, FrameError, SchemaError):
            return
        assert isinstance(value, dict)

    law()


def test_another_message_than_the_one_wanted(client):
    """A class is not filled with the bytes of another message, and no other message is written."""
    with pytest.raises(SchemaError, match=r"expected the message google\.protobuf\.Duration, got shop\.Last"):
        ProtobufDeserializer(client, Duration)(frame_of(client, proto(ORDER), b"", b"\x02\x02"))
    with pytest.raises(EncodeError, match=r"expected a message google\.protobuf\.Duration, got Struct"):
        ProtobufSerializer(client, Duration)(Struct(), topic="proto-wrong")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param('syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }', "linked", id="a tag twice"),
        pytest.param('syntax = "proto3"; message A { Nowhere b = 1; }', "linked", id="a type that is nowhere"),
        pytest.param("message {", "linked", id="no schema"),
        pytest.param('syntax = "proto3";', "no message", id="no message"),
    ],
)
def test_schemas_that_cannot_be_used(scripted_servers, answer, text, says):
    """A schema that the registry stores may be impossible to link; that is an error."""
    server = scripted_servers(answer(body={"schema": text, "schemaType": "PROTOBUF"}))
    with RegistryClient(server.url) as client, pytest.raises(SchemaError, match=says):
        ProtobufDeserializer(client)(join(5, b"\x00"))


def test_an_unused_import_may_lead_nowhere(scripted_servers, answer):
    """An unused import may lead nowhere, since the registry stores such files."""
    text = 'syntax = "proto3"; import "nowhere.proto"; message A { int32 a = 1; }'
    server = scripted_servers(answer(body={"schema": text, "schemaType": "PROTOBUF"}))
    with RegistryClient(server.url) as client:
        assert {"a": 5} == ProtobufDeserializer(client, as_dict=True)(join(5, b"\x00\x08\x05"))


def test_writing_with_the_latest_version(client):
    """The path is that of the message in the registry's file, which may have another order."""
    mine = message_of('syntax = "proto3"; package p; message B { int32 n = 1; }')
    client.register(
        "proto-latest-value", proto('syntax = "proto3"; package p; message A {} message B { int32 n = 1; }')
    )
    conf = {"auto.register.schemas": False, "use.latest.version": True, "latest.compatibility.strict": False}

    frame = ProtobufSerializer(client, mine, conf)(mine(n=5), topic="proto-latest")

    assert b"\x02\x02\x08\x05" == split(frame)[1]
    assert {"n": 5} == ProtobufDeserializer(client, as_dict=True)(frame)
    other = message_of('syntax = "proto3"; package p; message C { int32 n = 1; }')
    with pytest.raises(SchemaError, match=r"has no message p\.C"):
        ProtobufSerializer(client, other, conf)(other(), topic="proto-latest")


CART = 'syntax = "proto3"; package s; import "s/item.proto"; message Cart { Item item = 1; }'


@pytest.mark.parametrize("setting", ["latest", "id"])
@pytest.mark.parametrize(
    ("part", "item", "cart", "says"),
    [
        pytest.param(PART, ITEM, CART, None, id="the same"),
        pytest.param(PART, ITEM.replace("int32 n", "string m = 9; int64 n"), CART, None, id="an import grown"),
        pytest.param(PART, ITEM.replace("int32 n", "string n"), CART, "FIELD_SCALAR_KIND", id="an import changed"),
        pytest.param(PART.replace("int32", "string"), ITEM, CART, "FIELD_SCALAR_KIND", id="an import's import changed"),
        pytest.param(PART, ITEM, CART.replace("Item item", "string item"), "FIELD_KIND_CHANGED", id="itself changed"),
        pytest.param(
            PART, ITEM, CART.replace("package s;", "package s; message Item { string n = 1; }").replace(
                'import "s/item.proto";', ""
            ),
            "FIELD_SCALAR_KIND", id="its own type in place of the import's",
        ),
    ],
)  # fmt: skip
def test_imports_are_held_against_the_registrys(client, request, setting, part, item, cart, says):
    """A schema of the registry must read data of the class and all files it imports, unless the check is turned off."""
    files = {"s/part.proto": proto(PART), "s/item.proto": proto(ITEM)}
    kind = GetMessageClass(find_message(link(proto(CART), files), (0,)))
    topic = f"imports-{request.node.callspec.id}"
    found = register_with_imports(client, topic, part, item, cart)
    use = {"use.latest.version": True} if setting == "latest" else {"use.schema.id": found.schema_id}
    conf = {"auto.register.schemas": False, **use}

    if says is None:
        assert ProtobufSerializer(client, kind, conf)(kind(), topic=topic)
    else:
        with pytest.raises(SchemaError, match=says):
            ProtobufSerializer(client, kind, conf)(kind(), topic=topic)
    assert ProtobufSerializer(client, kind, {**conf, f"{setting}.compatibility.strict": False})(kind(), topic=topic)


def register_with_imports(client, topic, part, item, cart):
    """Register the three texts under subjects of this topic, each with a reference to the one before."""
    references = ()
    for subject, name, text in (
        (f"{topic}-part", "s/part.proto", part),
        (f"{topic}-item", "s/item.proto", item),
        (f"{topic}-value", "", cart),
    ):
        found = client.register(subject, Schema(text, "PROTOBUF", references if "import" in text else ()))
        references = (Reference(name, subject, found.version),)
    return found


def test_both_pickle(client):
    """Serializer and deserializer work in another process after pickling."""
    serialize, deserialize = pickle.loads(
        pickle.dumps((ProtobufSerializer(client, Duration), ProtobufDeserializer(client, as_dict=True)))
    )

    assert "5s" == deserialize(serialize(Duration(seconds=5), topic="proto-pickle"))


def test_the_path_in_a_text_with_maps(client):
    """A nested message of a class has the path that it has in the text that the registry stores."""
    inner = "message B { int32 n = 1; } map<string, int32> m = 1; message C { int32 n = 1; }"
    text = f'syntax = "proto3"; message A {{ {inner} }}'
    spelled = message_of(text, 0).DESCRIPTOR.file
    kind = GetMessageClass(spelled.pool.FindMessageTypeByName("A.C"))
    client.register("proto-maps-value", proto(text))

    frame = ProtobufSerializer(client, kind)(kind(n=5), topic="proto-maps")

    assert "A.C" == ProtobufDeserializer(client)(frame).DESCRIPTOR.full_name
    assert b"\x04\x00\x02\x08\x05" == split(frame)[1]


def test_paths_of_messages():
    """The path of a message leads back to it."""
    file = link(proto(ORDER), {})
    for path in ((0,), (1,), (0, 0)):
        assert path == indexes_of(find_message(file, path))


def test_required_fields_must_be_there(client):
    """A proto2 message without a required field is not written."""
    kind = message_of('syntax = "proto2"; message R { required int32 n = 1; }')
    with pytest.raises(SerdeError, match="required"):
        ProtobufSerializer(client, kind)(kind(), topic="proto-required")


def test_files_that_many_import_are_registered_once(client, monkeypatch):
    """Files with many importers are registered once: each of eight layers has two files that import all of the next."""
    pool = DescriptorPool()
    for layer in range(8):
        for side in "ab":
            file = FileDescriptorProto(name=f"layers/{layer}{side}.proto", package="layers", syntax="proto3")
            message = file.message_type.add(name=f"M{layer}{side}")
            for number, below in enumerate("ab" if layer else "", 1):
                file.dependency.append(f"layers/{layer - 1}{below}.proto")
                kind = f".layers.M{layer - 1}{below}"
                message.field.add(name=below, number=number, type=11, label=1, type_name=kind)
            pool.Add(file)
    kind = GetMessageClass(pool.FindMessageTypeByName("layers.M7a"))
    sent, register = [], client.register
    monkeypatch.setattr(
        client, "register", lambda subject, *given, **more: sent.append(subject) or register(subject, *given, **more)
    )

    frame = ProtobufSerializer(client, kind)(kind(), topic="layers")

    assert 1 + 2 * 7 == len(sent) == len(set(sent))
    assert kind() == ProtobufDeserializer(client, kind)(frame)
